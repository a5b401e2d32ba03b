"""Dead code: nodes whose results nobody uses."""

from __future__ import annotations

from dataclasses import replace

from genesis.jit.graph import Graph
from genesis.jit.nodes import Write


def dead_code(graph: Graph) -> Graph:
    """Drop nodes, captured tensors, constants and numbers that no result and no write depends on.

    (A draw may be dropped: the stream moves on by what the whole function draws, whoever draws it.)

    Before: ``a = exp(x); b = sin(x); return b``     After: ``b = sin(x); return b``

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: (x.exp(), x.sin())[1], genesis.ones(2))
    >>> [n.op for n in graph.nodes], [n.op for n in jit.dead_code(graph).nodes]
    (['exp', 'sin'], ['sin'])
    """
    wanted = set(graph.ends)
    kept = []
    for node in reversed(graph.nodes):
        if wanted.intersection(node.outs):
            kept.append(node)
            wanted.update(node.inputs)
    written = {w.place for w in graph.writes if w.kind == "captured"}
    places = [i for i, (var, _) in enumerate(graph.captured) if var in wanted or i in written]
    moved = {place: i for i, place in enumerate(places)}
    writes = [Write(w.kind, moved[w.place], w.value) if w.kind == "captured" else w for w in graph.writes]
    return graph.with_nodes(
        kept[::-1],
        captured=[graph.captured[i] for i in places],
        constants=[c for c in graph.constants if c[0] in wanted],
        numbers=[n for n in graph.numbers if n[0] in wanted],
        writes=writes,
        leaves=[leaf if leaf.var is None or leaf.var in wanted else replace(leaf, var=None) for leaf in graph.leaves],
    )
