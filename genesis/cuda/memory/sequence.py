"""The memory of work that is done again and again: what it asks for is written down once, and has its place from then on.

    first = Sequence(allocator)          with taking(first): work()       memory of the allocator, in which order and how long
    first.over()
    planned = first.planned()            with taking(planned): work()     the same pieces, at offsets in one block

Work that a graph repeats must find its memory where it was recorded. Pieces that are not used at the same time share a
place, but those taken `apart`, which lie together in front. What is still in use when the work is over, as its results are,
has memory of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from genesis.base.errors import message
from genesis.cuda.memory.allocator import DEFAULT, Allocator, allocator
from genesis.cuda.memory.blocks import Block, rounded
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.errors import CudaError
from genesis.cuda.runtime.streams import Stream
from genesis.jit.lowering.plan import Block as Piece
from genesis.jit.lowering.plan import Life, packed


class _Thread(threading.local):
    source: Source | None = None  # where its arrays have their memory from; None: the allocator of their device
    apart = False  # whether nothing else may be there, before and after


here = _Thread()


class Source(Protocol):
    """What gives blocks of memory, and takes them back."""

    def take(self, count: int, stream: Stream | None = None) -> Block: ...

    def give_back(self, block: Block) -> None: ...


class Sequence:
    """Memory of an allocator, with a note of what was asked for and when it was given back.

    Attributes:
        crossed: what went through the host meanwhile, which no graph could repeat; empty if nothing did
    """

    def __init__(self, of: Allocator) -> None:
        self.of, self.crossed = of, ""
        self.pieces: list[tuple[int, int, int | None]] = []  # bytes, and when they were taken and given back
        self._apart: list[int] = []  # the numbers of those that share nothing
        self._taken: dict[int, int] = {}
        self._now = 0
        self._shared: Shared | None = None

    def take(self, count: int, stream: Stream | None = None) -> Block:
        block = self.of.take(count, stream)
        self._now += 1
        self._taken[id(block)] = len(self.pieces)
        if here.apart:
            self._apart.append(len(self.pieces))
        self.pieces.append((rounded(count), self._now, None))
        return block

    def give_back(self, block: Block) -> None:
        number = self._taken.pop(id(block), None)
        if number is not None:
            self._now += 1
            size, begun, _ = self.pieces[number]
            self.pieces[number] = size, begun, self._now
        self.of.give_back(block)

    def over(self) -> None:
        """What is given back from now on is not noted any more."""
        self._taken.clear()

    def planned(self) -> Planned:
        """The same pieces again: in one block, the same each time, or (what is still in use) with new memory of their own."""
        offsets, front = dict[int, int](), 0
        for i in self._apart:
            offsets[i], front = front, front + self.pieces[i][0]
        shared = [
            Piece([i], Life(b, e), n) for i, (n, b, e) in enumerate(self.pieces) if e is not None and i not in offsets
        ]  # type: ignore[list-item]
        packs, size = packed(shared)
        offsets |= {i: front + offset for i, offset in packs.items()}  # type: ignore[attr-defined]
        if self._shared is None:
            self._shared = Shared(self.of, front + size, front)
        return Planned(self.of, self._shared, [(offsets.get(i), n) for i, (n, _, _) in enumerate(self.pieces)])  # type: ignore[call-overload]


class Shared:
    """A block of memory for the pieces of a sequence that are given back while it lasts; in front those that share nothing."""

    def __init__(self, of: Allocator, size: int, front: int) -> None:
        self.of, self.front = of, front
        self.block = of.take(size)

    def used_on(self, stream: Stream) -> None:
        """A stream uses all of it: it is not handed out again before that is done."""
        if self.block.segment.room.stream.handle != stream.handle:
            self.block.foreign.add(stream)

    def __del__(self) -> None:
        block = getattr(self, "block", None)  # None: there was no memory for it
        if block is not None:
            self.of.give_back(block)


class Planned:
    """The pieces of a sequence, given in its order.

    Args:
        pieces: of each the offset in what is shared, or None, and the size

    Raises:
        CudaError: something else is asked for than in the sequence
    """

    def __init__(self, of: Allocator, shared: Shared, pieces: list[tuple[int | None, int]]) -> None:
        self.of, self.shared, self.pieces = of, shared, deque(pieces)
        # taken before anything is recorded: while it is, the driver maps no memory
        self._kept = deque([of.take(size) for offset, size in pieces if offset is None])
        self._own: set[int] = set()

    def take(self, count: int, stream: Stream | None = None) -> Block:
        offset, size = self.pieces.popleft() if self.pieces else (0, -1)
        if rounded(count) != size:
            raise CudaError(message("cuda", "a graph asks for other memory while it is recorded than before"))
        if offset is not None:
            return Block(self.shared.block.segment, self.shared.block.address + offset, size)
        block = self._kept.popleft()
        self._own.add(id(block))
        return block

    def give_back(self, block: Block) -> None:
        """What is shared is that of others anyway."""
        if id(block) in self._own:
            self._own.remove(id(block))
            self.of.give_back(block)

    def over(self) -> Shared:
        """Nothing is taken any more; returns what must stay while the work is repeated."""
        shared = self.shared
        del self.shared
        return shared

    def __del__(self) -> None:
        for block in getattr(self, "_kept", ()):  # what was not asked for, as something went wrong
            self.of.give_back(block)


@contextmanager
def taking(source: Source | None) -> Iterator[None]:
    """Inside, this thread's arrays have their memory from a source; None: from the allocator, whatever is written down."""
    before, here.source = here.source, source
    try:
        yield
    finally:
        here.source = before


@contextmanager
def apart() -> Iterator[None]:
    """Nothing else is ever in the memory that is taken inside while the work that is repeated lasts."""
    before, here.apart = here.apart, True
    try:
        yield
    finally:
        here.apart = before


def crosses(what: str) -> None:
    """Something goes through the host now: who writes down a sequence notes it."""
    source = here.source
    if isinstance(source, Sequence) and not source.crossed:
        source.crossed = what


def taken_elsewhere(on: Device) -> bool:
    """Whether this thread's arrays of a device have their memory from a sequence or a pool of its own."""
    return here.source is not None or allocator(on).pool.number != DEFAULT
