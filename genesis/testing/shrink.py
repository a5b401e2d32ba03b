"""Programs that go wrong, made shorter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shortest(program: Sequence[T], wrong: Callable[[list[T]], bool]) -> list[T]:
    """The fewest statements of a program that are still wrong.

    >>> from genesis.testing.shrink import shortest
    >>> shortest([1, 2, 3, 4], lambda program: 2 in program and 4 in program)
    [2, 4]
    """
    best, changed = list(program), True
    while changed:
        changed = False
        for i in reversed(range(len(best))):
            shorter = best[:i] + best[i + 1 :]
            if wrong(shorter):
                best, changed = shorter, True
    return best
