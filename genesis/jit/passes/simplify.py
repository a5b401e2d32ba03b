"""Algebraic simplification: nodes that change nothing, and pairs that undo each other.

Only what is exact for every value is done, NaN, infinities and signed zeros included: ``x + 0`` is kept where ``x`` may
be -0.0 (``-0.0 + 0`` is ``0.0``), unless the result cannot show it; ``x * 0`` is always kept (it is NaN for
infinities). A node that changes the order of elements in memory is kept, too: a sum over them would round differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.jit.graph import Graph
from genesis.jit.nodes import Node, Var, inferred, renamed
from genesis.jit.passes.common import replaced


def simplification(graph: Graph) -> Graph:
    """Replace nodes that are one of their arguments by it.

    Before: ``a = mul(x, 1); b = neg(a); c = neg(b); d = reshape(c, x's shape)``     After: ``x``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: -(-(x * 1)).reshape(2), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.dead_code(jit.simplification(graph)).nodes]
    (['mul', 'neg', 'reshape', 'neg'], [])
    """
    same: dict[Var, Var] = {}
    made: dict[Var, Node] = {}
    constants = dict(graph.constants)
    nodes = []
    for node in graph.nodes:
        node = Node(node.op, renamed(node.args, lambda v: same.get(v, v)), node.outs, node.site)  # noqa: PLW2901
        rule = RULES.get(node.op)
        if rule is not None:
            found = rule(node, made, constants)
            if isinstance(found, Node) and inferred(found)[0].strides == node.outs[0].spec.strides:
                node = found  # noqa: PLW2901
                again = RULES.get(node.op)
                found = again(node, made, constants) if again is not None else None
            if (
                isinstance(found, Var)
                and found.spec == node.outs[0].spec
                and found.spec.strides == node.outs[0].spec.strides
            ):
                same[node.outs[0]] = found
                continue
        for var in node.outs:
            made[var] = node
        nodes.append(node)
    return replaced(graph, nodes, same)


Made = dict[Var, Node]
Constants = dict[Var, Any]


def _is(value: Any, number: float, constants: Constants) -> bool:
    """Whether an argument is a number, or a constant full of it."""
    if isinstance(value, Var):
        array = constants.get(value)
        return (
            array is not None
            and array.size > 0
            and bool(np.all(array == number))
            and not (number == 0 and bool(np.signbit(array).any()))
        )
    return isinstance(value, int | float) and value == number and not (number == 0 and np.signbit(value))


def _mul(node: Node, made: Made, constants: Constants) -> Any:
    a, b = node.args
    return a if _is(b, 1, constants) else b if _is(a, 1, constants) else None


def _div(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0] if _is(node.args[1], 1, constants) else None


def _sub(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0] if _is(node.args[1], 0, constants) else None  # x - 0 is x, also for -0.0


def _add(node: Node, made: Made, constants: Constants) -> Any:
    a, b = node.args
    for x, zero in ((a, b), (b, a)):
        if (
            _is(zero, 0, constants)
            and isinstance(x, Var)
            and (x.spec.dtype.kind in "iub" or _never_minus_zero(x, made))
        ):
            return x
    return None


def _never_minus_zero(x: Var, made: Made) -> bool:
    """Whether a value cannot be -0.0: results of these ops are positive, or sums with +0.0."""
    node = made.get(x)
    return node is not None and (
        node.op in ("exp", "abs", "square", "sigmoid", "softmax")
        or (node.op == "add" and any(isinstance(a, int | float) and a == 0 for a in node.args))
    )


def _pow(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0] if _is(node.args[1], 1, constants) else None


def _undone(op: str) -> Callable[[Node, Made, Constants], Any]:
    """An op that is its own inverse."""

    def rule(node: Node, made: Made, constants: Constants) -> Any:
        inner = made.get(node.args[0])
        return inner.args[0] if inner is not None and inner.op == op else None

    return rule


def _reshape(node: Node, made: Made, constants: Constants) -> Any:
    x, shape = node.args
    if tuple(shape) == x.spec.shape:
        return x
    inner = made.get(x)
    if inner is not None and inner.op in ("reshape", "view_shape"):  # one reshape does what two do
        return Node("reshape", (inner.args[0], tuple(shape)), node.outs, node.site)
    return None


def _permute(node: Node, made: Made, constants: Constants) -> Any:
    x, dims = node.args
    if tuple(dims) == tuple(range(len(dims))):
        return x
    inner = made.get(x)
    if inner is not None and inner.op == "permute":
        return Node("permute", (inner.args[0], tuple(inner.args[1][d] for d in dims)), node.outs, node.site)
    return None


def _transpose(node: Node, made: Made, constants: Constants) -> Any:
    x, d0, d1 = node.args
    inner = made.get(x)
    if d0 == d1:
        return x
    return (
        inner.args[0]
        if inner is not None and inner.op == "transpose" and {inner.args[1], inner.args[2]} == {d0, d1}
        else None
    )


def _same_shape(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0] if tuple(node.args[1]) == node.args[0].spec.shape else None


def _convert(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0] if node.args[1] == node.args[0].spec.dtype else None


def _clone(node: Node, made: Made, constants: Constants) -> Any:
    return node.args[0]  # a graph has no memory: a copy is the value


RULES: dict[str, Callable[[Node, Made, Constants], Any]] = {
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
