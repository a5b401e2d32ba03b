"""Which nodes a backward runs, and how many gradients each of them waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.core.graph.node import (
    Edge,
    Node,
    Output,
)


def planned(roots: Sequence[Node]) -> tuple[dict[Node, int], list[Node]]:
    """How many gradients each node waits for, where it is more than one; and every node that can be reached.

    A root that is also used by another root waits for that use.
    """
    owed: dict[Node, int] = {}
    reached = [*dict.fromkeys(roots)] if len(roots) > 1 else [*roots]
    seen = {*reached}
    inner_roots = seen.copy() if len(roots) > 1 else ()
    add, append = seen.add, reached.append
    for node in reached:  # grows while it is walked
        for target in node._edges:
            if target is None:
                continue
            if target.__class__ is Output:
                target = target.node  # noqa: PLW2901
            if target not in seen:
                add(target)
                append(target)
            elif target in inner_roots:
                owed[target] = owed.get(target, 0) + 1
            else:
                owed[target] = owed.get(target, 1) + 1
    return owed, reached


def all_leaves(edges: Sequence[Edge]) -> bool:
    """Whether the gradients of leaves only are asked for: then (if of all leaves) every node has to run, and none is
    special.
    """
    return all([edge.is_leaf for edge in edges])


def leading_to(reached: list[Node], inputs: set[Any], since: int) -> tuple[set[Node], set[Node]]:
    """The nodes that get a gradient, because they are inputs or one can be reached from them; and of these the latter,
    which must run.
    """
    if since:
        reached = [node for node in reached if node._sequence_nr() >= since]
    users: dict[Node, list[Node]] = {}
    for node in reached:
        for edge in node._edges:
            if edge is not None:
                users.setdefault(edge.node if edge.__class__ is Output else edge, []).append(node)
    stack = [key[0] if isinstance(key, tuple) else key for key in inputs]
    leading, running = set(stack), set()
    while stack:
        for user in users.get(stack.pop(), ()):
            running.add(user)
            if user not in leading:
                leading.add(user)
                stack.append(user)
    return leading, running
