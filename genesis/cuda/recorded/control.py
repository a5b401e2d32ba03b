"""What the host decides at each call, in the device's memory: numbers, and where draws begin in their streams.

    n0 n1 ...  | key, block  key, block ...
    float64    | uint64, two for each draw

A call writes it before it launches anything, by a copy from pinned memory that nobody waits for. The calls take turns
with `SLOTS` pieces of that: one whose copy is still to come is not written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.cuda.arrays import MEMORY
from genesis.cuda.memory.pinned import block_of, pinned
from genesis.cuda.runtime.streams import Stream

SLOTS = 8
WORD = 8  # bytes
_MASK = 2**64 - 1


class Control:
    """The memory of a step.

    Args:
        numbers: how many numbers of the host there are
        draws: of each draw the number of its stream, and how many blocks it is behind the beginning of the call
        capacity: how many draws there may be, if others are added to ``draws``
    """

    def __init__(self, device: Any, numbers: int, draws: Sequence[tuple[int, int]], capacity: int = 0) -> None:
        self.numbers, self.draws = numbers, list(draws)
        words = max(numbers + 2 * len(self.draws), 2 * capacity, 1)
        self.array = MEMORY.empty((words,), np.dtype(np.uint64), device)
        self._slots: list[Any] = []
        self._turn = 0

    @property
    def words(self) -> int:
        return self.numbers + 2 * len(self.draws)

    def number(self, index: int) -> int:
        """The address of a number."""
        return int(self.array.address) + WORD * index

    def draw(self, index: int) -> int:
        """The address of the key of a draw, behind which is its block."""
        return int(self.array.address) + WORD * (self.numbers + 2 * index)

    def write(self, stream: Stream, numbers: Sequence[float], starts: Sequence[tuple[Any, int]]) -> None:
        """Let a stream write them.

        Args:
            starts: the generator of each stream, and the block where it is at the beginning of the call
        """
        if not self.words:
            return
        slot, block = self._slot()
        slot[: self.numbers].view(np.float64)[...] = numbers
        for i, (which, offset) in enumerate(self.draws):
            generator, start = starts[which]
            at = self.numbers + 2 * i
            slot[at], slot[at + 1] = generator._seed & _MASK, (start + offset) & _MASK
        driver = self.array.on.enter()
        driver.host_uses(block.address, slot.nbytes, True)
        driver.copy_in(self.array.address, block.address, slot.nbytes, stream.handle)
        block.used_on(stream)

    def _slot(self) -> tuple[Any, Any]:
        """Pinned memory whose last copy is made."""
        if len(self._slots) < SLOTS:
            self._slots.append(pinned((self.words,), np.uint64))
        slot = self._slots[self._turn % SLOTS]
        self._turn += 1
        block = block_of(slot, self.array.on.driver)
        assert block is not None
        block.wait()
        return slot, block
