"""Products of 16-bit floats, as products of float32 numbers that are rounded at the end: what the kernels of eager calls do.

    c = linear(x, w)      x' = convert(x)   w' = convert(w)   c' = linear(x', w')   c = convert(c')

What was rounded just before never is 16 bits wide in memory then: to round and to widen is a step of a loop like others.
"""

from __future__ import annotations

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, HALVES
from genesis.core.graph.site import Site
from genesis.jit.arguments import Var
from genesis.jit.lowering.plan import dense
from genesis.jit.lowering.products import OPS
from genesis.jit.program import Call, Program


def widened(program: Program) -> Program:
    """The program, with such products."""
    calls: list[Call] = []
    wide: dict[Var, Var] = {}

    def widen(value: Var, site: Site | None) -> Var:
        if value not in wide:
            spec = dense(value.spec)
            wide[value] = Var(Spec(spec.shape, F32, spec.device, spec.strides))
            calls.append(Call("convert", (value, F32), (wide[value],), site))
        return wide[value]

    for call in program.calls:
        if call.op not in OPS or not all([v.spec.dtype in HALVES for v in (*call.inputs, *call.outs)]):
            calls.append(call)
            continue
        args = [widen(a, call.site) if isinstance(a, Var) else a for a in call.args]
        (out,) = call.outs
        result = Var(Spec(out.spec.shape, F32, out.spec.device, out.spec.strides))
        calls.append(Call(call.op, tuple(args), (result,), call.site))
        calls.append(Call("convert", (result, out.spec.dtype), (out,), call.site))
    return program.with_calls(calls) if wide else program
