"""Products of 16-bit floats, as products that are float32 numbers, and are rounded at the end: what the kernels of eager
calls do.

    c = linear(x, w)      x' = convert(x)   w' = convert(w)   c' = linear(x', w')   c = convert(c')

What was rounded just before never is 16 bits wide in memory then: to round and to widen is a step of a loop like others.

Where the processor multiplies pairs of bfloat16 numbers faster (`pairs`) it is the other way round: large products have
operands of 16 bits, also those of gradients, whose rules are given what was widened before.
"""

from __future__ import annotations

import math
from typing import Any

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, HALVES
from genesis.core.graph.site import Site
from genesis.jit.arguments import Var
from genesis.jit.lowering import pairs
from genesis.jit.lowering.layouts import dense
from genesis.jit.lowering.products import BF16, OPS
from genesis.jit.program import Call, Program, inferred
from genesis.kernels.llvm import loops


def widened(program: Program) -> Program:
    """The program, with such products."""
    widening = _Widening(program)
    for call in program.calls:
        widening.add(call)
    return program.with_calls(used(widening.calls, program)) if widening.changed else program


def in_float32(call: Call) -> list[Call]:
    """The calls that compute a float32 product of 16-bit operands, which there is no kernel for; none for others."""
    if call.args[0].spec.dtype not in HALVES or call.outs[0].spec.dtype != F32:
        return []
    wide: dict[Var, Var] = {}
    calls: list[Call] = []
    args = tuple([_wide(a, wide, calls, call.site) for a in call.args])
    return [*calls, Call(call.op, args, call.outs, call.site)]


class _Widening:
    def __init__(self, program: Program) -> None:
        self.calls: list[Call] = []
        self.changed = False
        self.in_pairs = bool(pairs.unit(loops.width() // 4))
        self.wide: dict[Var, Var] = {}
        self.short: dict[Var, Var] = {}  # the bfloat16 values that float32 ones are
        self.made = {call.outs[0]: call for call in program.calls}

    def add(self, call: Call) -> None:
        """One more call, as it is or as others."""
        if call.op not in OPS:
            self.calls.append(call)
            return
        operands = self._paired(call)
        halves = all([v.spec.dtype in HALVES for v in (*call.inputs, *call.outs)])
        if operands is None and not halves:
            self.calls.append(call)
            return
        self.changed = True
        args = tuple([_wide(a, self.wide, self.calls, call.site) for a in call.args[len(operands or ()) :]])
        out = result = call.outs[0]
        if halves:
            result = Var(Spec(out.spec.shape, F32, out.spec.device, out.spec.strides))
        self.calls.append(Call(call.op, (*(operands or ()), *args), (result,), call.site))
        self.calls += [_convert(result, out, call.site)] if halves else []

    def _paired(self, call: Call) -> list[Var] | None:
        """The two bfloat16 matrices that are multiplied, if it pays."""
        if not self.in_pairs or call.outs[0].spec.dtype not in (F32, BF16) or not _is_large(call):
            return None
        operands = [self._short(a) for a in call.args[:2]]
        return None if None in operands else operands  # type: ignore[return-value]

    def _short(self, value: Var) -> Var | None:
        """The bfloat16 value that one has been widened from, also behind views; None if it was not."""
        if value.spec.dtype == BF16:
            return value
        call = self.made.get(value)
        if value in self.short or call is None:
            return self.short.get(value)
        if call.op == "convert":
            return call.args[0] if call.args[0].spec.dtype == BF16 else None
        if call.op not in VIEWS or (source := self._short(call.args[0])) is None:
            return None
        self.calls.append(again := viewed(call, source))
        self.short[value] = again.outs[0]
        return again.outs[0]


VIEWS = "reshape", "view_shape", "transpose", "narrow", "permute"


def viewed(call: Call, source: Var) -> Call:
    """The call of a view, of another value."""
    args = (source, *call.args[1:])
    (spec,) = inferred(Call(call.op, args, (), call.site))
    return Call(call.op, args, (Var(spec),), call.site)


def _wide(value: Any, wide: dict[Var, Var], calls: list[Call], site: Site | None) -> Any:
    if not isinstance(value, Var) or value.spec.dtype not in HALVES:
        return value
    if value not in wide:
        spec = dense(value.spec)
        wide[value] = Var(Spec(spec.shape, F32, spec.device, spec.strides))
        calls.append(_convert(value, wide[value], site))
    return wide[value]


def _convert(value: Var, out: Var, site: Site | None) -> Call:
    return Call("convert", (value, out.spec.dtype), (out,), site)


def _is_large(call: Call) -> bool:
    """Whether two matrices, or batches of them, are so large that pairs pay."""
    x, y = (a.spec.shape for a in call.args[:2])
    if min(len(x), len(y)) < 2:
        return False
    if call.op == "matmul":
        return pairs.fits(x[-2], y[-1], x[-1])
    if call.op == "linear":
        return pairs.fits(math.prod(x[:-1]), y[0], y[1])
    return pairs.fits(x[1], y[1], x[0])


def used(calls: list[Call], program: Program) -> list[Call]:
    """Without those whose results nothing reads any more."""
    wanted, kept = set(program.ends), []
    for call in reversed(calls):
        if wanted.intersection(call.outs):
            kept.append(call)
            wanted.update(call.inputs)
    return kept[::-1]
