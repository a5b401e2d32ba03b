"""Decomposition: fused calls as the compositions that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.autograd.gradients import grad
from genesis.base.narrow import restrided
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var
from genesis.jit.passes.common import replaced
from genesis.jit.passes.on_graphs import on_graphs
from genesis.jit.program import Call, Program, op_of
from genesis.jit.tracer import trace

_BACKWARD = ".backward"


@on_graphs
def decomposition(program: Program) -> Program:
    """Replace fused kernels and their backwards by calls of primitives: for passes and emitters that know only those.

    The numbers may differ from the kernels' in the last bits. A backward whose forward is not in the program stays.

    Before: ``a = fused.silu(x)``     After: ``a = times_sigmoid(x)``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(genesis.nn.functional.silu, genesis.ones(2))
    >>> [n.op for n in jit.decomposition(graph).nodes]
    ['times_sigmoid']
    """
    forward = {var: call for call in program.calls if op_of(call).kind.fused for var in call.outs}
    needed = _needed(program, forward)
    calls: list[Call] = []
    constants = list(program.constants)
    same: dict[Var, Var] = {}
    for call in program.calls:
        call = call.renamed(lambda v: same.get(v, v))  # noqa: PLW2901
        origin = _origin(call, forward, program) if op_of(call).kind.fused else None
        if origin is None or origin in needed:
            calls.append(call)
            continue
        function, tensors = _composition(call, origin.renamed(lambda v: same.get(v, v)))
        # a composite may be made of others
        composition = decomposition(trace(function, *[_like(v.spec) for v in tensors])).program
        given = [_as_tensor(v, constants, calls) for v in tensors]
        inner: dict[Var, Var] = dict(zip(composition.arguments, given, strict=True))
        constants += composition.constants
        calls += [each.renamed(lambda v, inner=inner: inner.get(v, v)) for each in composition.calls]  # type: ignore[misc]
        for out, result in zip(call.outs, composition.results, strict=False):  # what is kept is not needed any more
            same[out] = _laid_out(inner.get(result, result), out, calls)
    return replaced(program.with_calls(program.calls, constants=constants), calls, same)


def _origin(call: Call, forward: dict[Var, Call], program: Program) -> Call | None:
    """The forward call of a fused call; None if it is not in the program."""
    if not call.op.endswith(_BACKWARD):
        return call
    candidates = [forward[v] for v in call.inputs if v in forward and call.op == forward[v].op + _BACKWARD]
    # one that keeps its arguments alone
    candidates += [other for other in program.calls if call.op == other.op + _BACKWARD and call.args[1] == other.args]
    return candidates[0] if candidates else None


def _needed(program: Program, forward: dict[Var, Call]) -> list[Call]:
    """The forward calls of which something that is kept has another use than their backward."""
    kept = {v: call for v, call in forward.items() if v is not call.outs[0] and not op_of(call).written}
    used = [v for call in program.calls for v in call.inputs if v in kept and call.op != kept[v].op + _BACKWARD]
    return [kept[v] for v in (*used, *[v for v in program.ends if v in kept])]


def _composition(call: Call, origin: Call) -> tuple[Callable[..., Any], list[Var]]:
    """What computes a fused call by its op's function, and the variables that it is to be called with."""
    meaning = op_of(origin).meaning
    indices = [i for i, a in enumerate(origin.args) if isinstance(a, Var)]

    def with_tensors(tensors: tuple[Tensor, ...]) -> list[Any]:
        args = list(origin.args)
        for index, x in zip(indices, tensors, strict=True):
            args[index] = x
        return args

    def forward(*tensors: Tensor) -> Tensor:
        return meaning(*with_tensors(tensors))  # type: ignore[no-any-return]

    def backward(g: Tensor, *tensors: Tensor) -> tuple[Any, ...]:
        args = with_tensors(tensors)
        wanted = [i for i, each in zip(op_of(origin).tensors, call.args[2], strict=True) if each is not None]
        for i in wanted:
            args[i] = args[i].detach().requires_grad_()
        return tuple(grad(meaning(*args), [args[i] for i in wanted], g))

    tensors = [origin.args[i] for i in indices]
    return (forward, tensors) if call.outs is origin.outs else (backward, [call.args[0], *tensors])


def _as_tensor(var: Var, constants: Any, calls: list[Call]) -> Var:
    """A variable; one that is a number of the host as a tensor, for the composition may compute with it alone."""
    if var.spec.device.type != "meta":
        return var
    one, result = Var(Spec((), np.dtype(np.float64))), Var(Spec((), np.dtype(np.float64)))
    constants.append((one, np.ones(())))
    calls.append(Call("mul", (one, var), (result,)))
    return result


def _like(spec: Spec) -> Tensor:
    """A tensor for a trace, laid out like a value; its memory is not there, and a trace does not ask for it."""
    strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
    return wrap(restrided(np.empty(1, spec.dtype), spec.shape, strides, writeable=False))


def _laid_out(value: Var, out: Var, calls: list[Call]) -> Var:
    """A value in the place of a kernel's result, which is contiguous."""
    if value.spec.strides is None:
        return value
    copy = Var(out.spec)
    calls.append(Call("clone", (value,), (copy,)))
    return copy
