"""Gradients that a call uses again: nobody but the leaves has those that the call before made, nor did anything to them.

A step that sets ``.grad`` to None and makes new ones then writes into the old, and nobody can tell; to make tensors and
their memory takes longer than the work on small ones. Native code looks whether it is so, see `identity.Rows.alone`; what
anybody else has is left to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.jit.binding import Graph
from genesis.jit.compiling.identity import Rows
from genesis.jit.lowering.step import Step

LONGEST = 1000  # calls until it is tried again


class Again:
    """The arrays of gradients that the call before made.

    Attributes:
        arrays: of those, or nothing; they are what the rows look for
    """

    __slots__ = ("_calls", "_nodes", "_rows", "_wait", "arrays")

    def __init__(self, rows: Rows, nodes: Sequence[Any]) -> None:
        for node in nodes:
            rows.alone(node, "_grad")
        self.arrays: tuple[Any, ...] = ()
        self._rows, self._nodes = rows, nodes
        self._calls, self._wait = 0, 0

    def keep(self, values: tuple[Any, ...]) -> None:
        """New ones have been made, and are where they belong. Where somebody often has them it is tried ever less often."""
        if self._wait:
            self._wait -= 1
            return
        self.arrays = values[-len(self._nodes) :]
        self._rows.expect([node._grad for node in self._nodes])
        self._wait = self._calls = min(2 * self._calls + 1, LONGEST)


def renewed(graph: Graph, step: Any) -> list[int]:
    """The leaves whose gradients are the last of what the step returns, if all that it returns for writes are small
    gradients that take the place of others, which it does not read.
    """
    if not isinstance(step, Step) or not step.small:
        return []
    leaves = graph.program.leaves
    writes = [w for w, here in zip(graph.program.writes, step.overwrites, strict=True) if w.value and not here]
    plain = all([w.kind == "new grad" and leaves[w.index].var is None for w in writes])
    return [w.index for w in writes] if plain else []
