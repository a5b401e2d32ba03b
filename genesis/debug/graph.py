"""A recorded graph as plain data: what pictures and reports are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genesis.arrays.memory import owner_of
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, GraphError, message
from genesis.base.text import name_of
from genesis.core.graph.node import FREED, FUNCTION, AccumulateGrad, Node, Output, node_of
from genesis.core.graph.site import Site
from genesis.core.graph.tensor import Tensor


@dataclass(eq=False)
class Box:
    """One node of the picture, or a run of nodes folded into one."""

    name: str
    kind: str  # "operation", "function", "composite", "leaf", "result" or "folded"
    shape: tuple[int, ...] = ()
    dtype: str = ""
    saved: int = 0  # bytes that are counted here first
    freed: bool = False
    where: Site | None = None
    # where its values came from, and what to write on the arrow
    inputs: list[tuple[Box, str]] = field(default_factory=list)
    scope: tuple[Any, ...] = ()  # the calls of modules and composites that it is part of, see `scopes.py`
    view: bool = False  # shows its input's values in another shape
    inside: list[Box] = field(default_factory=list)  # of a call that is shown as one box

    def __post_init__(self) -> None:
        self.name = name_of(self.name)

    @property
    def detail(self) -> str:
        """The second line: dtype and shape."""
        return f"{self.dtype}{list(self.shape)}" if self.dtype else ""


def graph(tensors: Iterable[Tensor], params: Any = None, scopes: Mapping[Node, Any] | None = None) -> list[Box]:
    """The boxes of the graph behind some results, results first; each after everything that uses it.

    Args:
        tensors: the results
        params: names of leaves: a module, or a dict of tensors
        scopes: the calls that recorded the nodes

    Raises:
        TypeError: not tensors
        RuntimeError: none of them has a graph
    """
    results = list(tensors)
    for t in results:
        if not isinstance(t, Tensor):
            raise ArgumentError(message("draw", f"expected tensors, got {type(t).__name__}", hint="draw(loss)"))
    if not any(t._node is not None for t in results):
        raise GraphError(
            message(
                "draw",
                "the tensor has no graph: it does not require grad",
                hint="genesis.autograd.explain(x, y) tells why",
            )
        )
    names = _names(params)
    boxes: dict[Any, Box] = {}
    counted: set[int] = set()
    order: list[Box] = []
    for t in results:
        if t._node is not None:
            result = Box("result", "result", tuple(t.shape), str(t.dtype).removeprefix("genesis."))
            order.append(result)
            node = node_of(t._node)
            first = [node] if node not in boxes else []
            for n in [*first, *_from(node, boxes)]:
                boxes[n] = box = _box(n, names, counted)
                box.scope = () if scopes is None else scopes.get(n, ())
                order.append(box)
            result.inputs.append((boxes[node], _label(t._node)))
    for node, box in boxes.items():
        for index, edge in enumerate(node._edges):
            if edge is not None:
                box.inputs.append(
                    (
                        boxes[node_of(edge)],
                        _label(edge)
                        or (node.slot_name(index) if len([e for e in node._edges if e is not None]) > 1 else ""),
                    )
                )
    return order


def _from(root: Node, known: Mapping[Any, Any]) -> Iterator[Node]:
    """Every node behind one, that is not known yet."""
    seen = {root}
    ahead = [root]
    for node in ahead:  # grows while it is walked
        for edge in node._edges:
            target = None if edge is None else node_of(edge)
            if target is not None and target not in seen and target not in known:
                seen.add(target)
                ahead.append(target)
                yield target


def _label(edge: Any) -> str:
    return f"output {edge.index}" if isinstance(edge, Output) else ""


def _names(params: Any) -> dict[Any, str]:
    if params is None:
        return {}
    named = params.named_parameters() if hasattr(params, "named_parameters") else params.items()
    return {t._node: name for name, t in named if isinstance(t, Tensor) and t._node is not None}


def _box(node: Node, names: Mapping[Any, str], counted: set[int]) -> Box:
    dtype = str(dtypes.from_numpy(node._dtype)).removeprefix("genesis.") if hasattr(node, "_dtype") else ""
    if isinstance(node, AccumulateGrad):
        return Box(names.get(node, "leaf"), "leaf", tuple(node._shape), dtype)
    name = type(node).__name__.removesuffix("Backward")
    kind = "function" if node._role is FUNCTION else "operation"
    return Box(
        name,
        kind,
        tuple(node._shape),
        dtype,
        saved_bytes(node, counted),
        node._saved is FREED,
        node.where(),
        view=hasattr(type(node), "op") and node.op.kind.views,
    )


def saved_bytes(node: Node, counted: set[int]) -> int:
    """Bytes of the arrays that a node saved and that were not counted before (parameters and other leaves are not its
    own).
    """
    total = 0
    held = getattr(node, "_held", None) or {}
    values = [
        *(() if node._saved is FREED else node._saved),
        *(leaf for h in held.values() if h is not FREED for leaf in h[0]),
    ]
    for value in _flat(values):
        array = getattr(value, "_array", None)
        if not isinstance(array, np.ndarray) or (value._node is not None and value._node.is_leaf):
            continue
        owner = owner_of(array)
        if id(owner) not in counted:
            counted.add(id(owner))
            total += owner.nbytes
    return total


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def nodes(tensors: Iterable[Tensor]) -> Iterator[Node]:
    """Every node behind some results, once."""
    known: dict[Any, None] = {}
    for t in tensors:
        if t._node is not None and node_of(t._node) not in known:
            root = node_of(t._node)
            for node in [root, *_from(root, known)]:
                known[node] = None
                yield node


def fold(order: list[Box], most: int) -> list[Box]:
    """At most ``most`` boxes: what is furthest from the results becomes one box that says how many it stands for."""
    if len(order) <= most:
        return order
    kept, rest = order[: most - 1], set(order[most - 1 :])
    more = Box(f"{len(rest)} more nodes", "folded", saved=sum(b.saved for b in rest))
    for box in kept:
        inside = [(b, label) for b, label in box.inputs if b not in rest]
        box.inputs = inside if len(inside) == len(box.inputs) else [*inside, (more, "")]
    return [*kept, more]
