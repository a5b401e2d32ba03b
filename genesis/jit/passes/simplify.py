"""Algebraic simplification: nodes that change nothing, and pairs that undo each other.

Only what is exact for every value is done, NaN, infinities and signed zeros included: ``x + 0`` is kept where ``x`` may
be -0.0 (``-0.0 + 0`` is ``0.0``), unless the result cannot show it; ``x * 0`` is always kept (it is NaN for
infinities). A node that changes the order of elements in memory is kept, too: a sum over them would round differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.jit.arguments import Var
from genesis.jit.passes.common import replaced
from genesis.jit.passes.on_graphs import on_graphs
from genesis.jit.program import Call, Program, inferred


@on_graphs
def simplification(program: Program) -> Program:
    """Replace nodes that are one of their arguments by it.

    Before: ``a = mul(x, 1); b = neg(a); c = neg(b); d = reshape(c, x's shape)``     After: ``x``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: -(-(x * 1)).reshape(2), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.dead_code(jit.simplification(graph)).nodes]
    (['mul', 'neg', 'reshape', 'neg'], [])
    """
    same: dict[Var, Var] = {}
    producers: dict[Var, Call] = {}
    constants = dict(program.constants)
    calls = []
    for call in program.calls:
        call = call.renamed(lambda v: same.get(v, v))  # noqa: PLW2901
        rule = RULES.get(call.op)
        if rule is not None:
            simpler = rule(call, producers, constants)
            if isinstance(simpler, Call) and inferred(simpler)[0].strides == call.outs[0].spec.strides:
                call = simpler  # noqa: PLW2901
                again = RULES.get(call.op)
                simpler = again(call, producers, constants) if again is not None else None
            if (
                isinstance(simpler, Var)
                and simpler.spec == call.outs[0].spec
                and simpler.spec.strides == call.outs[0].spec.strides
            ):
                same[call.outs[0]] = simpler
                continue
        for var in call.outs:
            producers[var] = call
        calls.append(call)
    return replaced(program, calls, same)


Producers = dict[Var, Call]
Constants = dict[Var, Any]


def _is(value: Any, number: float, constants: Constants) -> bool:
    """Whether an argument is a number, or a constant full of it."""
    if isinstance(value, Var):
        array = constants.get(value)
        if array is None or not array.size or not np.all(array == number):
            return False
        return number != 0 or not any([np.signbit(part).any() for part in (array.real, array.imag)])
    return isinstance(value, int | float) and value == number and not (number == 0 and np.signbit(value))


def _mul(call: Call, producers: Producers, constants: Constants) -> Any:
    a, b = call.args
    return a if _is(b, 1, constants) else b if _is(a, 1, constants) else None


def _div(call: Call, producers: Producers, constants: Constants) -> Any:
    return call.args[0] if _is(call.args[1], 1, constants) else None


def _sub(call: Call, producers: Producers, constants: Constants) -> Any:
    return call.args[0] if _is(call.args[1], 0, constants) else None  # x - 0 is x, also for -0.0


def _add(call: Call, producers: Producers, constants: Constants) -> Any:
    a, b = call.args
    for x, zero in ((a, b), (b, a)):
        if (
            _is(zero, 0, constants)
            and isinstance(x, Var)
            and (x.spec.dtype.kind in "iub" or _never_minus_zero(x, producers))
        ):
            return x
    return None


def _never_minus_zero(x: Var, producers: Producers) -> bool:
    """Whether a value cannot be -0.0: results of these ops are positive, or sums with +0.0."""
    call = producers.get(x)
    return call is not None and (
        call.op in ("exp", "abs", "square", "sigmoid", "softmax")
        or (call.op == "add" and any(isinstance(a, int | float) and a == 0 for a in call.args))
    )


def _pow(call: Call, producers: Producers, constants: Constants) -> Any:
    x, exponent = call.args
    out = call.outs[0].spec
    if _is(exponent, 2, constants) and isinstance(x, Var) and x.spec == out and out.dtype.kind == "f":
        return Call(
            "square", (x,), call.outs, call.site
        )  # the same bits of real numbers; a power takes ten times as long
    return x if _is(exponent, 1, constants) else None


def _undone(op: str) -> Callable[[Call, Producers, Constants], Any]:
    """An op that is its own inverse."""

    def rule(call: Call, producers: Producers, constants: Constants) -> Any:
        inner = producers.get(call.args[0])
        return inner.args[0] if inner is not None and inner.op == op else None

    return rule


def _reshape(call: Call, producers: Producers, constants: Constants) -> Any:
    x, shape = call.args
    if tuple(shape) == x.spec.shape:
        return x
    inner = producers.get(x)
    if inner is not None and inner.op in ("reshape", "view_shape"):  # one reshape does what two do
        return Call("reshape", (inner.args[0], tuple(shape)), call.outs, call.site)
    return None


def _permute(call: Call, producers: Producers, constants: Constants) -> Any:
    x, dims = call.args
    if tuple(dims) == tuple(range(len(dims))):
        return x
    inner = producers.get(x)
    if inner is not None and inner.op == "permute":
        return Call("permute", (inner.args[0], tuple(inner.args[1][d] for d in dims)), call.outs, call.site)
    return None


def _transpose(call: Call, producers: Producers, constants: Constants) -> Any:
    x, d0, d1 = call.args
    inner = producers.get(x)
    if d0 == d1:
        return x
    return (
        inner.args[0]
        if inner is not None and inner.op == "transpose" and {inner.args[1], inner.args[2]} == {d0, d1}
        else None
    )


def _same_shape(call: Call, producers: Producers, constants: Constants) -> Any:
    return call.args[0] if tuple(call.args[1]) == call.args[0].spec.shape else None


def _convert(call: Call, producers: Producers, constants: Constants) -> Any:
    return call.args[0] if call.args[1] == call.args[0].spec.dtype else None


def _clone(call: Call, producers: Producers, constants: Constants) -> Any:
    return call.args[0]  # a graph has no memory: a copy is the value


RULES: dict[str, Callable[[Call, Producers, Constants], Any]] = {
    "add": _add,
    "clone": _clone,
    "conj_physical": _undone("conj_physical"),
    "convert": _convert,
    "div": _div,
    "expand": _same_shape,
    "mul": _mul,
    "neg": _undone("neg"),
    "permute": _permute,
    "pow": _pow,
    "reshape": _reshape,
    "sub": _sub,
    "transpose": _transpose,
    "view_shape": _reshape,
}
