"""Segments of memory that the driver gave, cut into blocks: what is handed out, and what is left.

    segment   2 MiB or more, from the driver
      block   in use | free | in use | free        neighbours that are free are one block

A segment of its own is given by the driver as a whole. One that grows is a range of addresses, with memory behind as much
of it as was needed so far: so there are no holes between large blocks. (That is what PyTorch calls expandable segments.)
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Any

from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.driver import Driver

ALIGNED = 512  # bytes that every address and every size is a multiple of: 16 elements of every dtype, and more
SMALL = 1 << 20  # from here on sizes are multiples of `LARGE`
LARGE = 2 << 20


def rounded(count: int) -> int:
    """The bytes that are set aside for so many.

    >>> rounded(1), rounded(513), rounded((1 << 20) + 1)
    (512, 1024, 2097152)
    """
    step = ALIGNED if count <= SMALL else LARGE
    return -(-count // step) * step or step


class Block:
    """Memory that lies together, free or in use."""

    __slots__ = ("address", "asked", "before", "behind", "foreign", "free", "home", "segment", "size", "stream")

    home: list[Block]  # where those of its size wait that stay as they are

    def __init__(self, segment: Segment, address: int, size: int) -> None:
        self.segment, self.address, self.size = segment, address, size
        self.stream = segment.room.stream
        self.before: Block | None = None  # neighbours in the segment
        self.behind: Block | None = None
        self.free = True
        self.asked = 0  # bytes that somebody wanted
        self.foreign: set[Any] = set()  # streams besides the segment's that use it

    def __lt__(self, other: Block) -> bool:
        return (self.size, self.address) < (other.size, other.address)


class Segment:
    """Memory of the driver for one stream and one pool."""

    grows = False

    def __init__(self, room: Room, address: int, size: int) -> None:
        self.room, self.address, self.size = room, address, size
        self.first = Block(self, address, size) if size else None

    def blocks(self) -> list[Block]:
        out, each = [], self.first
        while each is not None:
            out.append(each)
            each = each.behind
        return out

    @property
    def is_free(self) -> bool:
        return self.first is None or (self.first.free and self.first.behind is None)

    def release(self, driver: Driver) -> int:
        """Give it back to the driver; returns its bytes."""
        driver.free(self.address)
        return self.size


class GrowingSegment(Segment):
    """A range of addresses with memory behind its beginning."""

    grows = True

    def __init__(self, room: Room, address: int, reach: int) -> None:
        super().__init__(room, address, 0)
        self.reach = reach
        self.pieces: list[tuple[int, int]] = []  # size and handle of each piece of memory, in order
        self.last: Block | None = None

    def grow(self, on: Device, size: int) -> Block:
        """Put memory behind more of it; returns the free block at its end."""
        handle = on.enter().back(self.address + self.size, size, on.index)
        self.pieces.append((size, handle))
        made = Block(self, self.address + self.size, size)
        self.size += size
        last = self.blocks()[-1] if self.first is not None else None
        if last is None:
            self.first = made
        else:
            made.before, last.behind = last, made
        return made

    def shrink(self, driver: Driver, last: Block) -> int:
        """Take back the pieces at its end that lie in a free block; returns how many bytes. Its stream may still be at work
        in them, for which the driver does not wait.
        """
        gone = 0
        if self.pieces and self.pieces[-1][0] <= last.size:
            driver.stream_synchronize(self.room.stream.handle)
        while self.pieces and self.pieces[-1][0] <= last.size - gone:
            size, handle = self.pieces.pop()
            gone += size
            driver.unback(self.address + self.size - gone, size, handle)
        self.size -= gone
        last.size -= gone
        return gone

    def release(self, driver: Driver) -> int:
        driver.release(self.address, self.reach)
        return 0


@dataclass(slots=True, eq=False)
class Room:
    """The segments of one stream and one pool, and their free blocks in the order of their sizes.

    Attributes:
        ready: what was given back, by its size, as it is: the next call that wants as much has it
    """

    pool: int
    stream: Any
    segments: list[Segment] = field(default_factory=list)
    free: list[Block] = field(default_factory=list)
    ready: dict[int, list[Block]] = field(default_factory=dict)

    def best(self, size: int) -> Block | None:
        """The smallest free block that is large enough, taken out; of several the first."""
        at = bisect_left(self.free, size, key=lambda block: block.size)
        return self.free.pop(at) if at < len(self.free) else None

    def put(self, block: Block) -> None:
        insort(self.free, block)

    def drop(self, block: Block) -> None:
        at = bisect_left(self.free, block)
        assert self.free[at] is block
        del self.free[at]


def split(block: Block, size: int) -> Block | None:
    """Cut a block after so many bytes; returns the rest, a free block, if there is one."""
    left = block.size - size
    if left < ALIGNED:
        return None
    rest = Block(block.segment, block.address + size, left)
    block.size = size
    rest.before, rest.behind = block, block.behind
    if block.behind is not None:
        block.behind.before = rest
    block.behind = rest
    return rest


def merged(block: Block, room: Room) -> Block:
    """A free block with its free neighbours, which are taken out of the room, as one."""
    before, behind = block.before, block.behind
    if behind is not None and behind.free:
        room.drop(behind)
        _swallow(block, behind)
    if before is not None and before.free:
        room.drop(before)
        _swallow(before, block)
        return before
    return block


def _swallow(block: Block, behind: Block) -> None:
    block.size += behind.size
    block.behind = behind.behind
    if behind.behind is not None:
        behind.behind.before = block
