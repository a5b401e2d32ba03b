"""How ops act on dual arrays: the value as ever, the tangent by a rule.

An op's rule follows from its kind (`core/call/kinds/`). Where that has none, it follows from the gradient rule,
transposed: $g \\mapsto J^T g$ is linear in $g$, and the transpose of a linear function is its gradient, so $J \\dot
x$ is the derivative of $\\langle J^T u, \\dot x\\rangle$ by $u$.

An op that knows better says ``jvp="linear"``, or gives a function ``(args, tangents, out) -> tangent``, where
``tangents`` holds one tensor or None for each argument.
"""

from __future__ import annotations

from typing import Any

from genesis.arrays.dual import Dual
from genesis.arrays.memory import copied, strides_of
from genesis.core.call import computing, dispatch
from genesis.core.call.halves import HALVES, wide
from genesis.core.call.kind import called, linear
from genesis.core.call.op import Op
from genesis.core.call.views import shares
from genesis.core.graph import engine
from genesis.core.graph.modes import grad_mode, inference
from genesis.core.graph.tensor import Tensor, wrap


def interpret(op: Op, args: tuple[Any, ...], top: Dual) -> Any:
    """The result arrays of an op on arguments among which there are dual arrays of one level, and none of a higher one."""
    if op.kind.views and isinstance(args[0], Dual) and args[0].level == top.level:
        return _view(op, args, args[0])
    primals, tangents, from_outside = _taken_apart(op, args, top.level)
    out = dispatch.apply(op, primals)
    several = isinstance(out, tuple)
    outs = out if several else (out,)
    differentiable = op.node is not None
    pushed: Any = [None] * len(outs)
    if differentiable and any(t is not None for t in _flat(tangents)):
        rule = rule_of(op)
        if outs[0]._array.dtype in HALVES and rule is not linear:  # several steps, rounded once
            primals, tangents, out = tuple([wide(p) for p in primals]), [wide(t) for t in tangents], wide(out)
        pushed = rule(op, primals, tangents, out)
        pushed = pushed if several else (pushed,)
    arrays = [
        _dual(y._array, t, top.level, from_outside, tangents) if differentiable else y._array
        for y, t in zip(outs, pushed, strict=True)
    ]
    return tuple(arrays) if several else arrays[0]


def _view(op: Op, args: tuple[Any, ...], source: Dual) -> Any:
    """A view of a dual array is a view of its value and a view of its tangent."""
    source.own_tangent()
    primal = dispatch.apply(op, (wrap(source.primal), *args[1:]))._array
    if source.tangent is None:
        return Dual(primal, None, source.level, source.from_outside)
    tangent = dispatch.apply(op, (wrap(source.tangent), *args[1:]))._array
    return Dual(primal, tangent, source.level, source.from_outside, shared=not shares(primal, source.primal))


def _dual(array: Any, tangent: Tensor | None, level: int, from_outside: bool, given: list[Any]) -> Any:
    if tangent is None:
        return Dual(array, None, level, from_outside)
    if tangent._array.dtype is not array.dtype:
        tangent = tangent.to(array.dtype)
    if tuple(tangent._array.shape) != tuple(array.shape):
        tangent = dispatch.public("expand")(tangent, tuple(array.shape)).clone()
    moved = tangent._array
    if moved.base is not None or any([t is not None and t._array is moved for t in _flat(given)]):
        moved = copied(moved)  # the tangent of x + 1 is that of x, but x may be written to later
    return Dual(array, moved, level, from_outside, shared=strides_of(moved) != strides_of(array))


def _flat(tangents: list[Any]) -> list[Any]:
    return [t for item in tangents for t in (item if isinstance(item, list) else [item])]


def _taken_apart(op: Op, args: tuple[Any, ...], level: int) -> tuple[tuple[Any, ...], list[Any], bool]:
    """The arguments with values for dual arrays; their tangents at the same positions; whether one is a gradient from
    outside.
    """
    from_outside = False

    def part(a: Any) -> tuple[Any, Any]:
        nonlocal from_outside
        if isinstance(a, Dual) and a.level == level:
            from_outside = from_outside or a.from_outside
            return wrap(a.primal), None if a.tangent is None else wrap(a.tangent)
        return wrap(a) if hasattr(a, "shape") else a, None

    primals: list[Any] = list(args)
    tangents: list[Any] = [None] * len(args)
    if op.variadic:
        pairs = [part(a) for a in args[0]]
        primals[0], tangents[0] = [p for p, _ in pairs], [t for _, t in pairs]
        return tuple(primals), tangents, from_outside
    for i in op.tensors:
        primals[i], tangents[i] = part(args[i])
    return tuple(primals), tangents, from_outside


# ---- rules


def rule_of(op: Op) -> Any:
    """The function ``(op, args, tangents, out) -> tangents of the results``."""
    if callable(op.jvp):
        return lambda op, args, tangents, out: op.jvp(args, tangents, out)
    return linear if op.jvp == "linear" else op.kind.jvp(op) or transposed


def how(op: Op) -> str:
    """What the op matrix prints of forward mode."""
    if op.kind.composed:
        return "composed"
    return str(getattr(rule_of(op), "words", "own rule")) if op.kind.differentiable(op) else "no gradient"


@called("transposed")
def transposed(op: Op, args: tuple[Any, ...], tangents: list[Any], out: Any) -> Any:
    """The tangents of the results from the gradient rules, which are recorded and differentiated."""
    mode, inferring = grad_mode.get(), inference.get()
    try:
        grad_mode.set(True)
        inference.set(False)
        inputs = [_leaf(x, t) for x, t in zip(args[0], tangents[0], strict=True)] if op.variadic else None
        again = (inputs, *args[1:]) if op.variadic else tuple(_leaf(a, t) for a, t in zip(args, tangents, strict=True))
        results = dispatch.apply(op, again)
        several = isinstance(results, tuple)
        pushed = transpose(
            results if several else (results,),
            _paired(again[0] if op.variadic else again, tangents[0] if op.variadic else tangents),
        )
    finally:
        grad_mode.set(mode)
        inference.set(inferring)
    return tuple(pushed) if several else pushed[0]


def _leaf(x: Any, tangent: Any) -> Any:
    return x if tangent is None else wrap(x._array).requires_grad_()


def _paired(inputs: Any, tangents: Any) -> list[tuple[Tensor, Tensor]]:
    return [(x, t) for x, t in zip(inputs, tangents, strict=True) if t is not None]


def transpose(
    outs: tuple[Tensor, ...], inputs: list[tuple[Tensor, Tensor]], create_graph: bool = False
) -> list[Tensor | None]:
    """$J \\dot x$ for outputs recorded from inputs, given as pairs of an input and its tangent: two backwards."""
    roots = [y for y in outs if y._node is not None]
    if not roots:
        return [None] * len(outs)
    seeds = [y._zeros(tuple(y._array.shape), y._array.dtype).requires_grad_() for y in roots]
    pulled = engine.run(
        [y._node for y in roots],
        seeds,
        keep_graph=True,
        create_graph=True,
        inputs=[x._node for x, _ in inputs],
        accumulate=False,
    )
    reached = [(gx, t) for gx, (_, t) in zip(pulled, inputs, strict=True) if gx is not None and gx._node is not None]
    if not reached:
        return [None] * len(outs)
    weights = [t if t._array.dtype is gx._array.dtype else t.to(gx._array.dtype) for gx, t in reached]
    pushed = engine.run([gx._node for gx, _ in reached], weights, keep_graph=create_graph, create_graph=create_graph,
                        inputs=[u._node for u in seeds], accumulate=False)  # fmt: skip
    rest = iter(pushed)
    return [None if y._node is None else next(rest) for y in outs]


computing.INTERPRETERS[Dual] = interpret
