"""How views come out of their bases, step by step, and how they are taken again from another base."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.core.call.op import Op
from genesis.core.graph.tensor import Tensor

# The steps from a base to a view, as a list linked backwards: (the steps before the last, its op, its arguments). Views
# of views share them.
Path = tuple[Any, Op, tuple[Any, ...]]


class View(NamedTuple):
    """How a tensor comes out of its base."""

    base: Tensor
    # not for views made under `no_grad`, and for results of Functions: nobody knows the history of what they see
    recorded: bool
    path: Path | None = None  # None: not known either

    def replay(self, base: Tensor) -> Tensor:
        """The same view of another tensor."""
        return base if self.path is None else Replay(base).of(self.path)


class Replay:
    """Views of a base, taken again from another one; what several have in common is done once."""

    def __init__(self, base: Tensor) -> None:
        self.base = base
        self.done: dict[int, Tensor] = {}  # by the id of the path

    def own(self, path: Path) -> Tensor:
        """A view that no other is a view of: hooks on it see its own gradient only."""
        before, op, args = path
        return op.run(op, (self.of(before), *args))  # type: ignore[no-any-return]

    def of(self, path: Path | None) -> Tensor:
        ahead: list[Path] = []
        while path is not None and id(path) not in self.done:
            ahead.append(path)
            path = path[0]
        result = self.base if path is None else self.done[id(path)]
        for path in reversed(ahead):
            _, op, args = path
            self.done[id(path)] = result = op.run(op, (result, *args))
        return result
