"""Tensors that a function uses without being given them.

A rule of one's own has gradients for arguments. What else requires grad and went into the value would silently get
none, so it is looked for where it cannot hide, in the graph of the value, and named by where the function finds it:
its closure, its globals, the attributes of its objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from genesis.base.errors import GraphError, message
from genesis.base.pytree import tree_flatten
from genesis.core.functions.captures import captured
from genesis.core.graph.node import AccumulateGrad, edge_key, node_of
from genesis.core.graph.tensor import Tensor

if TYPE_CHECKING:
    from genesis.autograd.forms.rules import Differentiable


def used_variables(rule: Differentiable, results: list[Tensor], args: tuple[Any, ...], kept: Any) -> list[Tensor]:
    """Tensors that require grad, are no arguments, and were used; refused where the rule has no gradients for them.

    A result of earlier operations on the arguments that is returned unchanged is not counted: there the rule stands for
    its derivative, as when the gradient in a first-order rule is given a rule of its own.
    """
    results = [v for v in results if v._node is not None]
    if not results:
        return []
    near = {edge_key(x._node): (name, x) for f in rule.sources() for name, x in captured(f, args)}
    given = [x for x in tree_flatten(args)[0] if isinstance(x, Tensor)]
    stop = {edge_key(x._node) for x in given if x._node is not None}
    used: list[tuple[str, Tensor | None]] = []
    for v in results:
        key = edge_key(v._node)
        if key in near and not v.is_leaf:  # returned unchanged
            used += _used(v.grad_fn._edges, {k: named for k, named in near.items() if k != key}, stop)  # type: ignore[union-attr]
        else:
            used += _used([v._node], near, set())
    known = {id(x) for x in given}  # read by another name, an argument is still an argument
    used = list({id(x): (name, x) for name, x in used if id(x) not in known}.values())
    if used and not rule.takes_variables(kept):
        _refuse_captured(rule, used)
    return [x for _, x in used if x is not None]


def _used(roots: Iterable[Any], near: dict[Any, tuple[str, Tensor]], stop: set[Any]) -> list[tuple[str, Tensor | None]]:
    """Those tensors of ``near``, and other leaves, that the roots were computed from, not by way of ``stop``."""
    leaves: list[tuple[str, Tensor | None]] = []
    order = list(near)
    named: list[Any] = []
    seen: set[Any] = set()
    stack = list(roots)
    while stack:
        edge = stack.pop()
        key = edge_key(edge)
        if edge is None or key in seen or key in stop:
            continue
        seen.add(key)
        if key in near:
            named.append(key)
        elif isinstance(edge, AccumulateGrad):
            leaves.append(("", edge.variable))
        else:
            stack.extend(node_of(edge)._edges)
    return [near[key] for key in sorted(named, key=order.index)] + leaves


def _refuse_captured(rule: Differentiable, tensors: list[tuple[str, Tensor | None]]) -> None:
    names = [name or "a tensor" for name, _ in tensors]
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    verb, gradients = (
        ("requires", "is not an argument: its gradient")
        if len(names) == 1
        else ("require", "are not arguments: their gradients")
    )
    raise GraphError(
        message(rule.name, f"the function uses {listed}, which {verb} grad and {gradients} would be lost",
                [(name or "captured", x._spec()) for name, x in tensors if x is not None],
                rule.capture_hint(tensors[0][0] or "it"))
    )  # fmt: skip
