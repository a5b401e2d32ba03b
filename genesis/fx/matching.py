"""Where in a graph a pattern is: a search backwards from its results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.fx.graph import Graph
from genesis.fx.node import Node, nodes_in


@dataclass
class InternalMatch:
    """One place where a pattern is: ``anchors`` are those of the pattern, by which it was met."""

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    values: dict[Node, Any] = field(default_factory=dict)  # of the pattern's placeholders
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Looks for a pattern: placeholders stand for any value, other nodes for calls of the same.

    >>> import genesis
    >>> from genesis.fx.matching import SubgraphMatcher
    >>> pattern = genesis.fx.symbolic_trace(lambda x: genesis.relu(x) + 1).graph
    >>> graph = genesis.fx.symbolic_trace(lambda y: (genesis.relu(y * 2) + 1) * (genesis.relu(y) + 2)).graph
    >>> [match.returning_nodes for match in SubgraphMatcher(pattern).match(graph)]
    [[add]]
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False) -> None:  # fmt: skip
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.remove_overlapping_matches, self.match_placeholder = remove_overlapping_matches, match_placeholder
        self.returning = nodes_in(pattern.output_node().args[0])
        output = pattern.output_node()
        self.anchors = [n for n in self.returning if set(n.users) == {output}] or self.returning[:1]
        if not self.anchors or any([n.op == "placeholder" for n in self.anchors]):
            raise ArgumentValueError(
                message("replace_pattern", "a pattern has calls, and returns what the last of them gives")
            )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All matches in the order of the program, without overlapping ones."""
        every: list[InternalMatch] = []
        for node in graph.nodes:
            if not node_name_match or node_name_match in node.name:
                every += self._from(node, graph)
        return _apart(every) if self.remove_overlapping_matches else every

    def _from(self, node: Node, graph: Graph) -> list[InternalMatch]:
        """The matches whose first anchor is a node; for others of several results any node is tried."""
        matches = [InternalMatch(self.anchors)]
        for i, anchor in enumerate(self.anchors):
            candidates = [node] if i == 0 else list(graph.nodes)
            longer = []
            for match in matches:
                for candidate in candidates:
                    copy = InternalMatch(self.anchors, dict(match.nodes_map), values=dict(match.values))
                    if self._same(anchor, candidate, copy):
                        longer.append(copy)
            matches = longer
        return [match for match in matches if self._closed(match)]

    def _same(self, pattern: Any, given: Any, match: InternalMatch) -> bool:
        """Whether a value of a graph is what the pattern says."""
        if isinstance(pattern, Node):
            return self._node(pattern, given, match)
        if isinstance(given, Node):
            return False
        if isinstance(pattern, list | tuple):
            return isinstance(given, list | tuple) and len(pattern) == len(given) and all(
                [self._same(p, g, match) for p, g in zip(pattern, given, strict=True)]
            )  # fmt: skip
        if isinstance(pattern, dict):
            return isinstance(given, dict) and pattern.keys() == given.keys() and all(
                [self._same(p, given[key], match) for key, p in pattern.items()]
            )  # fmt: skip
        if isinstance(pattern, slice):
            parts = ((getattr(x, name) for name in ("start", "stop", "step")) for x in (pattern, given))
            return isinstance(given, slice) and all([self._same(p, g, match) for p, g in zip(*parts, strict=True)])
        return self.ignore_literals or (type(pattern) is type(given) and bool(pattern == given))

    def _node(self, pattern: Node, given: Any, match: InternalMatch) -> bool:
        if pattern in match.nodes_map or pattern in match.values:
            return bool(match.nodes_map.get(pattern, match.values.get(pattern)) is given)
        if pattern.op == "placeholder":
            match.values[pattern] = given
            if isinstance(given, Node):
                match.nodes_map[pattern] = given
            return True
        if not isinstance(given, Node) or (given in match.nodes_map.values() and not self._is_input(given, match)):
            return False
        if (pattern.op, pattern.target) != (given.op, given.target):
            return False
        match.nodes_map[pattern] = given
        given_args, given_kwargs = given.args, given.kwargs
        if len(pattern.args) != len(given_args) or pattern.kwargs.keys() != given_kwargs.keys():
            normal, other = pattern.normalized_arguments(None), given.normalized_arguments(None)
            if pattern.op != "call_function" or normal is None or other is None:
                return False
            return self._same(normal.kwargs, other.kwargs, match) and self._same(normal.args, other.args, match)
        return self._same(pattern.args, given_args, match) and self._same(pattern.kwargs, given_kwargs, match)

    def _is_input(self, given: Node, match: InternalMatch) -> bool:
        return any([value is given for value in match.values.values()])

    def _closed(self, match: InternalMatch) -> bool:
        """Whether nobody outside uses what is inside, but for the results."""
        if any([n not in match.nodes_map for n in self.returning]):
            return False
        inputs = [n for n in self.pattern.nodes if n.op == "placeholder"]
        match.placeholder_nodes = [match.values.get(n) for n in inputs]
        match.returning_nodes = [match.nodes_map[n] for n in self.returning]
        inner = {g: p for p, g in match.nodes_map.items() if p.op != "placeholder"}
        return all(
            [
                user in inner
                for given, p in inner.items()
                if p not in self.returning and p.op != "get_attr"
                for user in given.users
            ]
        )


def _apart(matches: list[InternalMatch]) -> list[InternalMatch]:
    taken: set[Node] = set()
    kept: list[InternalMatch] = []
    for match in matches:
        own = {g for p, g in match.nodes_map.items() if p.op != "placeholder"}
        if taken.isdisjoint(own):
            kept.append(match)
            taken |= own
    return kept
