"""Where arguments that require grad come from, in functions that take gradients themselves.

A trace takes arguments for tensors that come from nowhere. Outside, one may be another one or a captured tensor, or be
computed from these: a gradient for them then goes through the argument, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from genesis.core.graph.node import Edge, Node, edge_key, node_of
from genesis.core.graph.plan import planned


class Asked(NamedTuple):
    """What gradients were asked for while arguments that require grad led to the roots.

    Attributes:
        reached: nodes of the outside that led to the roots
        nodes: those of the outside that were asked for
        arguments: those that were asked for, by index
    """

    reached: frozenset[Node] = frozenset()
    nodes: frozenset[Node] = frozenset()
    arguments: frozenset[int] = frozenset()


def share_origins(arguments: Sequence[Edge | None], asked: Asked) -> bool:
    """Whether arguments, by their nodes, are each other or what was asked for, or came from that."""
    given = {i: edge for i, edge in enumerate(arguments) if edge is not None}
    if len({edge_key(edge) for edge in given.values()}) < len(given):
        return True
    for i, edge in given.items():
        if node_of(edge) in asked.reached:
            return True
        if not edge.is_leaf:
            behind = planned([node_of(e) for e in node_of(edge)._edges if e is not None])[1]
            others = [node_of(given[k]) for k in asked.arguments if k != i and k in given]
            if not asked.nodes.isdisjoint(behind) or not set(behind).isdisjoint(others):
                return True
    return False
