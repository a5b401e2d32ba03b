"""A sum over ranks in the order of a tree, whose number is a power of two: ``(x0 + x2) + (x1 + x3)``.

Ranks that are half of all apart give each other half of their memory and add; then those that are a quarter apart half of
that. What each has in the end goes back the same way. (Rabenseifner's algorithm, as libraries of MPI have it; which one
they take, and in which order it adds, they do not say.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from genesis.distributed.engine import Host, Request
from genesis.kernels.cpu import memory

Transfer = Callable[[Host, int], Request]  # of memory, to or from a rank


class Halving:
    """What is on its way while everybody's ``x`` becomes the sum; it has as many elements for each rank.

    Args:
        beside: those that are on their way at the same time: who asks for one brings all of them forward, as ranks may
            wait for them in different orders
    """

    def __init__(self, x: Host, rank: int, size: int, send: Transfer, receive: Transfer, beside: list[Halving]) -> None:
        self._rounds = self._run(x.reshape(-1), rank, size, send, receive)
        self._open: list[Request] = []
        self._beside = beside
        beside.append(self)

    def Test(self) -> bool | None:  # noqa: N802
        moved = any([each._advance() for each in list(self._beside)])
        return self not in self._beside or (None if moved else False)

    def _advance(self) -> bool:
        """Begin the rounds whose time has come; whether anything has moved."""
        moved = False
        while True:
            before = len(self._open)
            self._open = [each for each in self._open if not each.Test()]
            moved |= len(self._open) < before
            if self._open:
                return moved
            following = next(self._rounds, None)
            if following is None:
                self._beside.remove(self)
                return True
            self._open = list(following)

    def _run(
        self, part: Host, rank: int, size: int, send: Transfer, receive: Transfer
    ) -> Iterator[tuple[Request, Request]]:
        """Begin the transfers of each round when those before are done."""
        room, rounds, distance = memory.empty((part.size // 2,), part.dtype), [], size // 2
        while distance:
            other, (low, high) = rank ^ distance, np.split(part, 2)
            part, given = (low, high) if rank < other else (high, low)
            came = room[: part.size]
            yield receive(came, other), send(given, other)
            np.add(part, came, out=part)
            rounds.append((other, part, given))
            distance //= 2
        for other, part, given in reversed(rounds):
            yield receive(given, other), send(part, other)
