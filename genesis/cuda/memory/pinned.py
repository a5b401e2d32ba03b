"""Memory of the host that stays where it is: copies between it and a device need nobody to wait.

It is used again when the copies that read or write it are done. `pinned` makes an array of it, `block_of` finds the
memory that an array lies in.
"""

from __future__ import annotations

import bisect
import ctypes
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from genesis.cuda.runtime.devices import Device, device_at
from genesis.cuda.runtime.driver import Driver
from genesis.cuda.runtime.streams import Event, Stream

SMALLEST = 512


class PinnedBlock:
    """Memory of the host, and the copies that may still use it."""

    __slots__ = ("address", "events", "on", "pool", "size", "streams")

    def __init__(self, pool: PinnedPool, address: int, size: int, on: Device) -> None:
        self.pool, self.address, self.size, self.on = pool, address, size, on
        self.events: list[Event] = []
        self.streams: set[Stream] = set()  # whose copies have no events yet

    def used_on(self, stream: Stream) -> None:
        """A copy that was told to a stream just now reads or writes it."""
        self.events = [event for event in self.events if not event.query()]
        self.events.append(stream.record_event())

    def used_later(self, stream: Stream) -> None:
        """Copies that a stream is told until nobody has the memory any more read or write it."""
        self.streams.add(stream)

    def is_free(self) -> bool:
        """Whether no copy uses it any more; nobody has it."""
        if any([self.on.enter().is_capturing(stream.handle) for stream in self.streams]):
            return False
        self._record()
        self.events = [event for event in self.events if not event.query()]
        return not self.events

    def _record(self) -> None:
        while self.streams:
            self.events.append(self.streams.pop().record_event())

    def wait(self) -> None:
        """Until no copy uses it."""
        self._record()
        for event in self.events:
            event.synchronize()
        self.events = []


class PinnedPool:
    """The pinned memory of a process, in blocks of powers of two."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.free: dict[int, list[PinnedBlock]] = {}
        self.gone: deque[PinnedBlock] = deque()  # given back by finalizers
        self.starts: list[int] = []
        self.blocks: dict[int, PinnedBlock] = {}
        self.allocations = 0
        self._lock = threading.RLock()

    def take(self, count: int, on: Device) -> PinnedBlock:
        size = max(1 << max(count - 1, 1).bit_length(), SMALLEST)
        with self._lock:
            self._collect()
            same = self.free.get(size, [])
            for i, block in enumerate(same):
                if block.is_free():
                    return same.pop(i)
            block = PinnedBlock(self, on.enter().host_allocate(size), size, on)
            self.allocations += 1
            bisect.insort(self.starts, block.address)
            self.blocks[block.address] = block
            return block

    def _collect(self) -> None:
        while self.gone:
            block = self.gone.popleft()
            self.free.setdefault(block.size, []).append(block)

    def release(self) -> None:
        """Give back to the driver what nobody uses."""
        with self._lock:
            self._collect()
            for block in [b for blocks in self.free.values() for b in blocks]:
                block.wait()
                self.starts.remove(block.address)
                del self.blocks[block.address]
                block.on.enter().host_free(block.address)
            self.free.clear()

    def block_at(self, address: int) -> PinnedBlock | None:
        """The block that an address of the host is in."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        block = self.blocks[self.starts[at]]
        return block if address < block.address + block.size else None


_pools: weakref.WeakKeyDictionary[Driver, PinnedPool] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def pool_of(driver: Driver) -> PinnedPool:
    with _lock:
        return _pools.setdefault(driver, PinnedPool(driver))


def pinned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of pinned memory, of whatever it holds."""
    on, kind = device_at(), np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    block = pool_of(on.driver).take(max(count, 1), on)
    memory = (ctypes.c_uint8 * max(count, 1)).from_address(block.address)
    weakref.finalize(memory, block.pool.gone.append, block).atexit = False
    return np.frombuffer(memory, np.uint8)[:count].view(kind).reshape(shape)


def block_of(array: np.ndarray[Any, Any], driver: Driver) -> PinnedBlock | None:
    """The pinned memory that an array lies in, if it does."""
    pool = _pools.get(driver)
    return None if pool is None or not pool.starts else pool.block_at(int(array.ctypes.data))
