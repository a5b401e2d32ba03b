"""Parts of a graph that look like a pattern, and others in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentValueError, message
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule, _copy_attr
from genesis.fx.matching import InternalMatch, SubgraphMatcher
from genesis.fx.node import Node, map_arg, nodes_in
from genesis.fx.tracer import symbolic_trace
from genesis.nn.module import Module


class Match(NamedTuple):
    """A part that looks like a pattern: the last node of that, and which node each of the pattern's is."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A part that was replaced, and what stands there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(x: Any) -> Graph:
    if isinstance(x, Graph):
        return x
    return x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace every part of a module that looks like ``pattern``; parts do not overlap.

    Args:
        pattern, replacement: functions or modules with the same arguments, which stand for any values

    >>> import genesis
    >>> module = genesis.fx.symbolic_trace(lambda x, w: genesis.neg(genesis.relu(x) * w))
    >>> matches = genesis.fx.replace_pattern(module, lambda a, b: genesis.relu(a) * b, lambda a, b: genesis.maximum(a, b))
    >>> len(matches), [node.name for node in module.graph.nodes]
    (1, ['x', 'w', 'maximum', 'neg', 'output'])
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """`replace_pattern` where all filters of ``(match, graph, pattern)`` are true.

    Args:
        ignore_literals: numbers of the pattern stand for any; replacement_callback: makes the graph that is put for a match
    """
    if replacement is None and replacement_callback is None:
        raise ArgumentValueError(message("replace_pattern", "give a replacement or a replacement_callback"))
    graph, patterns = gm.graph, _graph_of(pattern)
    matches = SubgraphMatcher(patterns, ignore_literals=ignore_literals).match(graph, node_name_match)
    kept = [m for m in matches if all([f(m, graph, patterns) for f in match_filters or ()])]
    common = _graph_of(replacement) if replacement_callback is None else None
    replaced: list[ReplacedPatterns] = []
    now: dict[Node, Node] = {}
    for match in kept:
        new = replacement_callback(match, graph, patterns) if replacement_callback is not None else common
        assert new is not None
        replaced.append(_replaced(graph, match, new, now))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_over(gm, replacement)
    return replaced


def _replaced(graph: Graph, match: InternalMatch, new: Graph, now: dict[Node, Node]) -> ReplacedPatterns:
    """Put a graph for a match; ``now`` says what became of nodes that earlier matches had."""
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise ArgumentValueError(
            message("replace_pattern", "pattern and replacement have different numbers of arguments")
        )
    values = {p: _latest(v, now) for p, v in zip(inputs, match.placeholder_nodes, strict=True)}
    before = set(graph.nodes)
    with graph.inserting_before(_first(match)):
        result = _copied(graph, new, values)
    made = [n for n in graph.nodes if n not in before]
    results = nodes_in(result)
    if len(results) != len(match.returning_nodes):
        raise ArgumentValueError(
            message("replace_pattern", "pattern and replacement have different numbers of results")
        )
    for old, node in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(node)
        now[old] = node
    inside = set(match.nodes_map.values()) - set(match.placeholder_nodes)
    for node in reversed(graph.nodes):
        if node in inside and not node.users and node.op not in ("placeholder", "output"):
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _latest(value: Any, now: dict[Node, Node]) -> Any:
    while isinstance(value, Node) and value in now:
        value = now[value]
    return value


def _first(match: InternalMatch) -> Node:
    """Where the new nodes stand: at the only result, or before the first that uses one."""
    if len(match.returning_nodes) == 1:
        return match.returning_nodes[0]
    users = [user for node in match.returning_nodes for user in node.users]
    return min(users) if users else match.returning_nodes[-1]


def _copied(graph: Graph, new: Graph, values: dict[Node, Any]) -> Any:
    for node in new.nodes:
        if node in values:
            continue
        if node.op == "output":
            return map_arg(node.args[0], values.__getitem__)
        values[node] = graph.node_copy(node, values.__getitem__)
    return None


def _take_over(gm: GraphModule, replacement: Module) -> None:
    """Modules and parameters of the replacement that the graph names now."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            name = str(node.target)
            try:
                _copy_attr(replacement, gm, name)
            except AttributeError:
                continue
    gm.delete_all_unused_submodules()
