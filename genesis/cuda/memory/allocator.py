"""Memory of a device that is used again: after the first steps of a training the driver is not asked any more.

A block belongs to the stream that it was made on, and is used again on that stream without waiting: what comes next
there comes after what was there before. Where another stream has used it (`record_stream`), it waits for that first.
Blocks are given back by finalizers, which only write down that they are; the next call does the rest. Those that are not
large stay as they are, for the next call that wants as many bytes, until a call finds no memory: then neighbours become
one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from genesis.cuda.memory.blocks import (
    ALIGNED,
    LARGE,
    SMALL,
    Block,
    GrowingSegment,
    Room,
    Segment,
    merged,
    rounded,
    split,
)
from genesis.cuda.memory.exhausted import Exhausted, climbed
from genesis.cuda.memory.statistics import Statistics
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.errors import CudaOutOfMemory
from genesis.cuda.runtime.streams import Event, Stream, current

DEFAULT = 0  # the pool of what no graph holds
MEDIUM = 20 << 20  # bytes of the segments that blocks of up to half of that are cut from
READY = 64 << 20  # bytes of the largest blocks that stay as they are
REACH = 1.25  # a growing segment's addresses are so many times the memory of the device


class _Pool(threading.local):
    """The pool that a thread takes memory from."""

    number = DEFAULT


class Allocator:
    """The memory of one device."""

    def __init__(self, on: Device) -> None:
        self.on = on
        self.statistics = Statistics()
        self._of_blocks = self.statistics.of_blocks()
        self.rooms: dict[tuple[int, int], Room] = {}
        self.gone: deque[Block] = deque()  # given back since the last call, by finalizers
        # nobody has a block any more: called by finalizers, in any thread and at any time
        self.give_back: Callable[[Block], None] = self.gone.append
        self.parked: list[tuple[Block, list[Event]]] = []  # given back, but other streams may still use them
        self.limit: int | None = None  # bytes that may be reserved
        self.pool = _Pool()
        self.kept: dict[int, int] = {}  # pools, by how many graphs were recorded with them
        self._lock = threading.RLock()
        self._room_of_last: Room | None = None  # that of the last call
        self._grain = on.enter().granularity(on.index)
        self._pools = DEFAULT

    # ---- in and out

    def take(self, count: int, stream: Stream | None = None) -> Block:
        """A block of at least so many bytes, for work of a stream.

        Raises:
            CudaOutOfMemory: there is not so much memory, whatever is given back
        """
        stream = current(self.on) if stream is None else stream
        size = -(-count // ALIGNED) * ALIGNED if 0 < count <= SMALL else rounded(count)
        with self._lock:
            room = self._room_of_last
            if room is None or room.stream is not stream or room.pool != self.pool.number:
                room = self._room_of_last = self._room(stream)
            ready = room.ready.get(size)
            blocks, sizes, wanted = self._of_blocks
            gone = self.gone
            if gone:
                block = gone[0]
                if block.home is ready and block.asked == count and len(gone) == 1 and not block.foreign:
                    gone.popleft()  # what was given back last is what is wanted next: as much is in use as before
                    blocks.freed += 1
                    sizes.freed += block.size
                    wanted.freed += count
                    return block
                self._sort()
            block = ready.pop() if ready else self._cut(room, size, count)
            block.asked = count
            blocks.current = more = blocks.current + 1
            if more > blocks.peak:
                blocks.peak = more
            sizes.current = more = sizes.current + block.size
            if more > sizes.peak:
                sizes.peak = more
            wanted.current = more = wanted.current + count
            if more > wanted.peak:
                wanted.peak = more
            return block

    def _cut(self, room: Room, size: int, count: int) -> Block:
        """A block of free memory, or of memory that the driver gives."""
        if self.parked:
            self._look_after_parked()
        block = room.best(size)
        if block is None:
            self.collect()
            block = room.best(size) or climbed(self, count, lambda: room.best(size) or self._new(room, size))
        rest = split(block, size)
        if rest is not None:
            room.put(rest)
        block.free, block.home = False, room.ready.setdefault(block.size, [])
        self.statistics.add(active=1, active_bytes=block.size)
        return block

    def _sort(self) -> None:
        """Make what was given back ready to be taken again, where no other stream uses it."""
        gone, recording = self.gone, self.pool.number != DEFAULT  # no event can be asked then
        blocks, sizes, wanted = self._of_blocks
        for _ in range(len(gone)):
            block = gone.popleft()
            size, asked = block.size, block.asked
            if recording and (block.foreign or block.segment.room.pool == DEFAULT):
                gone.append(block)
                continue
            blocks.current -= 1
            blocks.freed += 1
            sizes.current -= size
            sizes.freed += size
            wanted.current -= asked
            wanted.freed += asked
            if block.foreign:
                self._park(block, [stream.record_event() for stream in block.foreign])
                block.foreign.clear()
            elif size > READY:
                self._free(block)
            else:
                block.home.append(block)

    def collect(self) -> None:
        """Make what was given back free, and one with free neighbours, where nobody uses it any more."""
        with self._lock:
            self._sort()
            for room in self.rooms.values():
                for ready in room.ready.values():
                    while ready:
                        self._free(ready.pop())
            self._look_after_parked()

    def _look_after_parked(self) -> None:
        if self.pool.number == DEFAULT:  # else a graph is recorded, and no event can be asked
            waiting, self.parked = self.parked, []
            for block, events in waiting:
                self._park(block, [event for event in events if not event.query()])

    def _park(self, block: Block, events: list[Event]) -> None:
        if events:
            self.parked.append((block, events))
        else:
            self._free(block)

    def _free(self, block: Block) -> None:
        self.statistics.take(active=1, active_bytes=block.size)
        room = block.segment.room
        block.free, block.asked = True, 0
        room.put(merged(block, room))

    # ---- segments

    def _room(self, stream: Stream) -> Room:
        key = self.pool.number, stream.handle
        return self.rooms.setdefault(key, Room(key[0], stream))

    def _new(self, room: Room, size: int) -> Block:
        """A free block of memory that the driver gives now."""
        if self._grain:
            return self._grown(room, size)
        whole = LARGE if size <= SMALL else MEDIUM if size <= MEDIUM // 2 else -(-size // LARGE) * LARGE
        self._check_limit(whole)
        segment = Segment(room, self.on.enter().allocate(whole), whole)
        room.segments.append(segment)
        self._reserved(whole, segments=1)
        assert segment.first is not None
        return segment.first

    def _grown(self, room: Room, size: int) -> Block:
        driver = self.on.enter()
        if not room.segments:
            reach = -(-int(driver.total_memory(self.on.index) * REACH) // self._grain) * self._grain
            room.segments.append(GrowingSegment(room, driver.reserve(reach), reach))
            self.statistics.add(segment=1)
        segment = room.segments[0]
        assert isinstance(segment, GrowingSegment)
        last = segment.blocks()[-1] if segment.first is not None else None
        there = last.size if last is not None and last.free else 0
        more = -(-(size - there) // self._grain) * self._grain
        self._check_limit(more)
        made = segment.grow(self.on, more)
        self._reserved(more)
        return merged(made, room)

    def _check_limit(self, more: int) -> None:
        if self.limit is not None and self.statistics.gauges["reserved_bytes"].current + more > self.limit:
            raise CudaOutOfMemory("cuda: the memory that this process may use is used up")

    def _reserved(self, size: int, segments: int = 0) -> None:
        self.statistics.add(reserved_bytes=size, segment=segments)
        self.statistics.counts["num_device_alloc"] += 1

    # ---- giving memory back to the driver

    def release(self, pools: set[int] | None = None) -> int:
        """Give the driver what is free; returns how many bytes. (Of some pools only, if they are named.)"""
        with self._lock:
            self.collect()
            self.kept = {pool: count for pool, count in self.kept.items() if count > 0}
            wanted = [room for room in self.rooms.values() if pools is None or room.pool in pools]
            return sum([self._release(room) for room in wanted if room.pool not in self.kept])

    def _release(self, room: Room) -> int:
        driver, gone = self.on.enter(), 0
        for segment in list(room.segments):
            gone += self._shrunk(room, segment) if isinstance(segment, GrowingSegment) else 0
            if segment.is_free:
                if segment.first is not None:
                    room.drop(segment.first)
                room.segments.remove(segment)
                gone += segment.release(driver)
                self.statistics.take(segment=1)
                self.statistics.counts["num_device_free"] += 1
        self.statistics.take(reserved_bytes=gone)
        return gone

    def _shrunk(self, room: Room, segment: GrowingSegment) -> int:
        last = segment.blocks()[-1] if segment.first is not None else None
        if last is None or not last.free:
            return 0
        room.drop(last)
        gone = segment.shrink(self.on.enter(), last)
        if last.size:
            room.put(last)
        elif last.before is None:
            segment.first = None
        else:
            last.before.behind = None
        return gone

    def finish(self) -> None:
        """Wait for all work, so that what other streams used is free."""
        self.on.enter().synchronize()
        self.collect()

    # ---- pools

    def new_pool(self) -> int:
        """A pool of its own: what is taken from it is never handed out for another."""
        with self._lock:
            self._pools += 1
            return self._pools

    def keep_pool(self, pool: int) -> None:
        """What is free of a pool stays, for a graph may use it."""
        self.kept[pool] = self.kept.get(pool, 0) + 1

    def drop_pool(self, pool: int) -> None:
        """A graph is gone. Called by finalizers, too: what is free of its pool is given back with the next `release`."""
        self.kept[pool] = self.kept.get(pool, 0) - 1

    def release_pool(self, pool: int) -> int:
        """Give the driver what is free of a pool."""
        self.collect()
        return self.release({pool})

    # ---- asking

    def exhausted(self, asked: int) -> Exhausted:
        """What an error about memory says."""
        gauges, (free, total) = self.statistics.gauges, self.on.enter().memory_info()
        holes = [room.free[-1].size for room in self.rooms.values() if room.free]
        return Exhausted(
            asked,
            gauges["allocated_bytes"].current,
            gauges["reserved_bytes"].current,
            free,
            total,
            max(holes, default=0),
        )

    def snapshot(self) -> list[dict[str, Any]]:
        """The segments and their blocks, as data."""
        with self._lock:
            self.collect()
            return [_described(self.on.index, s) for room in self.rooms.values() for s in room.segments]


def _described(index: int, segment: Segment) -> dict[str, Any]:
    blocks = [
        {"address": b.address, "size": b.size, "requested_size": b.asked, "state": "inactive" if b.free else "active_allocated"}
        for b in segment.blocks()
    ]  # fmt: skip
    return {
        "device": index, "address": segment.address, "total_size": segment.size, "stream": segment.room.stream.handle,
        "segment_pool_id": (0, segment.room.pool), "is_expandable": segment.grows, "blocks": blocks,
        "allocated_size": sum([b["size"] for b in blocks if b["state"] != "inactive"]),
    }  # fmt: skip


def allocator(on: Device) -> Allocator:
    """The allocator of a device."""
    return on.keep("allocator", Allocator)  # type: ignore[no-any-return]
