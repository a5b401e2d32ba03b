"""Graphs as data: what is pickled of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import genesis
from genesis.fx.naming import public_path
from genesis.fx.node import Node, map_arg


class Reference(NamedTuple):
    """A node among the arguments of another, by its name."""

    name: str


class Record(NamedTuple):
    """A node: the functions of Genesis by their names, others as they are."""

    op: str
    name: str
    target: Any
    args: Any
    kwargs: Any
    type: Any
    wrapped: bool


class _Ours(NamedTuple):
    path: str


def record(node: Node) -> Record:
    """What is kept of a node."""
    path = public_path(node.target) if node.op == "call_function" else None
    target = node.target if path is None else _Ours(path)
    args, kwargs = (map_arg(given, lambda used: Reference(used.name)) for given in (node.args, node.kwargs))
    return Record(node.op, node.name, target, args, kwargs, node.type, bool(node.meta.get("is_wrapped")))


def fill(graph: Any, records: list[Record]) -> None:
    """Make these nodes in a graph."""
    made: dict[str, Node] = {}
    for each in records:
        target: Any = genesis if isinstance(each.target, _Ours) else each.target
        for part in each.target.path.split(".")[1:] if isinstance(each.target, _Ours) else ():
            target = getattr(target, part)
        args, kwargs = _resolved(each.args, made), _resolved(each.kwargs, made)
        made[each.name] = node = graph.create_node(each.op, target, args, kwargs, each.name, each.type)
        if each.wrapped:
            node.meta["is_wrapped"] = True


def _resolved(a: Any, made: dict[str, Node]) -> Any:
    if isinstance(a, Reference):
        return made[a.name]
    if isinstance(a, tuple):
        parts = [_resolved(x, made) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [_resolved(x, made) for x in a]
    if isinstance(a, dict):
        return {key: _resolved(x, made) for key, x in a.items()}
    if isinstance(a, slice):
        return slice(*[_resolved(x, made) for x in (a.start, a.stop, a.step)])
    return a
