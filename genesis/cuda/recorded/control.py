"""What the host decides at each call, in the device's memory: numbers, and where draws begin in their streams.

    n0 n1 ...  | key, block  key, block ...
    float64    | uint64, two for each draw

A call writes it before it launches anything, by a copy from pinned memory that nobody waits for. The calls take turns
with pieces of that, in two halves: of a half that is done with an event is recorded, and before it is written to again
that is waited for. (An event for each call would be three more calls of the driver.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from struct import Struct
from typing import Any

import numpy as np

from genesis.cuda.arrays import MEMORY
from genesis.cuda.memory.pinned import block_of, pinned
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Event, Stream

HALF = 32  # calls
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
        self._turns: _Turns | None = None

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
        turns = self._turns
        if turns is None:
            if not self.words:
                return
            turns = self._turns = _Turns(self.words, self.array.on)
        drawn: list[int] = []
        for which, offset in self.draws:
            generator, start = starts[which]
            drawn += generator._seed & _MASK, (start + offset) & _MASK
        at, driver = turns.next(stream), self.array.on.enter()
        source = turns.block.address + at
        driver.host_uses(source, turns.size, True)
        self._form.pack_into(turns.memory, at, *numbers, *drawn)
        driver.copy_in(self.array.address, source, turns.size, stream.handle)

    @cached_property
    def _form(self) -> Struct:
        return Struct(f"<{self.numbers}d{2 * len(self.draws)}Q")


class _Turns:
    """Pinned memory for many calls, one behind the other."""

    def __init__(self, words: int, on: Device) -> None:
        self.size = WORD * words
        array = pinned((2 * HALF * self.size,), np.uint8)
        block = block_of(array, on.driver)
        assert block is not None
        self.block, self.memory = block, memoryview(array)  # type: ignore[arg-type]
        self.stream: Stream | None = None  # of the last call
        self.ends: tuple[list[Event], list[Event]] = [], []  # of the copies of each half
        self.turn = 0

    def next(self, stream: Stream) -> int:
        """Where the next call may write, for a copy that a stream is told at once."""
        turn = self.turn
        if self.stream is not stream or turn in (0, HALF):
            self._turned(stream)
        self.turn = (turn + 1) % (2 * HALF)
        return self.size * turn

    def _turned(self, stream: Stream) -> None:
        """Another stream, or another half, from this call on."""
        half, within = divmod(self.turn, HALF)
        if self.stream is not None:
            self.ends[half if within else 1 - half].append(self.stream.record_event())
        if self.stream is not stream:
            self.block.used_later(stream)
            self.stream = stream
        if not within:
            for event in self.ends[half]:
                event.synchronize()
            self.ends[half].clear()
