"""Common subexpressions: what is computed twice."""

from __future__ import annotations

from typing import Any

from genesis.jit.graph import Graph
from genesis.jit.nodes import Node, Var, Write, renamed, repeatable


def common_subexpressions(graph: Graph) -> Graph:
    """Compute once what several nodes compute from the same values. (Draws are not: each gives other numbers.)

    Before: ``a = exp(x); b = exp(x); c = add(a, b)``     After: ``a = exp(x); c = add(a, a)``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: x.exp() + x.exp(), genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.common_subexpressions(graph).nodes]
    (['exp', 'exp', 'add'], ['exp', 'add'])
    """
    seen: dict[Any, tuple[Var, ...]] = {}
    same: dict[Var, Var] = {}
    nodes = []
    for node in graph.nodes:
        args = renamed(node.args, lambda v: same.get(v, v))
        key = (node.op, _key(args))
        if repeatable(node) and key in seen:
            same.update(zip(node.outs, seen[key], strict=True))
            continue
        seen[key] = node.outs
        nodes.append(Node(node.op, args, node.outs, node.site))
    return replaced(graph, nodes, same)


def replaced(graph: Graph, nodes: list[Node], same: dict[Var, Var]) -> Graph:
    """A graph whose ends follow a renaming."""
    results = [same.get(r, r) if isinstance(r, Var) else r for r in graph.results]
    writes = [w if w.value is None else Write(w.kind, w.place, same.get(w.value, w.value)) for w in graph.writes]
    return graph.with_nodes(nodes, results=results, writes=writes, made=[same.get(v, v) for v in graph.made])


def _key(value: Any) -> Any:
    """Arguments as something that can be looked up; 1, 1.0 and True are three things."""
    if isinstance(value, tuple | list):
        return type(value).__name__, tuple([_key(v) for v in value])
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    return (type(value).__name__, repr(value)) if isinstance(value, int | float | complex) else value
