"""Passes: functions from a program to a program (and so from a graph to a graph), one file each."""

from __future__ import annotations

from typing import Any

from genesis.jit.binding import Graph
from genesis.jit.passes.common import common_subexpressions
from genesis.jit.passes.constants import constant_folding
from genesis.jit.passes.dead import dead_code
from genesis.jit.passes.decompose import decomposition
from genesis.jit.passes.simplify import simplification


def optimized(graph: Any) -> Any:
    """All passes over a graph or a program, until nothing changes.

    >>> import genesis
    >>> from genesis import jit
    >>> graph = jit.trace(lambda x: (x * 1 + x * 1) + 0, genesis.ones(2))
    >>> print(jit.optimized(graph))  # doctest: +ELLIPSIS
    def function(x0: f32[2]):
        %...: f32[2] = add(x0, x0)...
        return %...
    """
    while True:
        before = graph
        for one in (constant_folding, simplification, common_subexpressions, dead_code):
            graph = one(graph)
        if _calls(graph) == _calls(before):
            return graph


def _calls(graph: Any) -> list[tuple[str, Any]]:
    return [(call.op, call.args) for call in (graph.nodes if isinstance(graph, Graph) else graph.calls)]


__all__ = ["common_subexpressions", "constant_folding", "dead_code", "decomposition", "optimized", "simplification"]
