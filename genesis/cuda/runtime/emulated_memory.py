"""The memory of the emulated device: arrays of bytes at addresses that the host has not, and pinned memory of the host."""

from __future__ import annotations

import bisect
import mmap
from typing import Any

import numpy as np

FIRST = 1 << 56  # no address of the host's is as large
GARBAGE = 0xCB  # what new memory holds: as float32 it is -26710934, as int64 a negative number
ALIGNED = 2 << 20

Bytes = np.ndarray[Any, Any]


class Outside(Exception):
    """An access that is not inside one piece of memory."""


class Spaces:
    """All memory, by address.

    Raises:
        Outside: at an access that is not inside one piece of memory
    """

    def __init__(self, devices: int, total: int) -> None:
        self.total = total
        self.used = [0] * devices
        self.sizes: dict[int, int] = {}  # bytes, by address
        self.pinned: dict[int, Bytes] = {}
        self._owners: dict[int, int] = {}
        self._arrays: dict[int, Bytes] = {}
        self._starts: list[int] = []  # of arrays, in order
        self._backed: dict[int, dict[int, int]] = {}  # of a range: bytes that have memory, by where they begin
        self._next = FIRST

    def free(self, device: int) -> int:
        return self.total - self.used[device]

    # ---- whole pieces

    def allocate(self, device: int, count: int) -> int:
        """The address of new memory; 0 if there is not so much."""
        if count > self.free(device):
            return 0
        self.used[device] += count
        address = self._enter(np.full(count, GARBAGE, np.uint8))
        self.sizes[address], self._owners[address] = count, device
        return address

    def give_back(self, address: int) -> None:
        self.used[self._owners.pop(address)] -= self.sizes.pop(address)
        self._leave(address)

    def _enter(self, array: Bytes) -> int:
        address, self._next = self._next, self._next + -(-(len(array) + 1) // ALIGNED) * ALIGNED
        self._arrays[address] = array
        self._starts.append(address)
        return address

    def _leave(self, address: int) -> None:
        del self._arrays[address]
        self._starts.remove(address)

    # ---- ranges

    def reserve(self, count: int) -> int:
        """A range of addresses: memory that the system gives when it is written."""
        address = self._enter(np.frombuffer(mmap.mmap(-1, count), np.uint8))
        self._backed[address] = {}
        return address

    def release(self, address: int) -> None:
        del self._backed[address]
        self._leave(address)

    def back(self, address: int, count: int, device: int) -> bool:
        """Give a part of a range memory; whether there is so much."""
        if count > self.free(device):
            return False
        self.used[device] += count
        self._owners[address] = device
        start = self._start(address)
        self._backed[start][address - start] = count
        self._arrays[start][address - start : address - start + count] = GARBAGE
        return True

    def unback(self, address: int, count: int) -> None:
        start = self._start(address)
        assert self._backed[start].pop(address - start) == count
        self.used[self._owners.pop(address)] -= count

    def _start(self, address: int) -> int:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            raise Outside(address)
        return self._starts[at]

    # ---- access

    def bytes(self, address: int, count: int) -> Bytes:
        """The bytes at an address, to be read and written: of a device, or pinned ones."""
        if not count:
            return np.empty(0, np.uint8)
        if address < FIRST:
            return self._pinned_bytes(address, count)
        start = self._start(address)
        array, offset = self._arrays[start], address - start
        if offset + count > len(array) or not self._is_backed(start, offset, count):
            raise Outside(address)
        return array[offset : offset + count]

    def _is_backed(self, start: int, offset: int, count: int) -> bool:
        backed = self._backed.get(start)
        if backed is None:
            return True
        at = offset
        for first in sorted(backed):
            if first <= at < first + backed[first]:
                at = first + backed[first]
        return at >= offset + count

    def write(self, address: int, content: Bytes) -> None:
        self.bytes(address, len(content))[...] = content

    def array(self, address: int, dtype: Any, count: int) -> Bytes:
        """Elements of a dtype at an address."""
        return self.bytes(address, count * np.dtype(dtype).itemsize).view(dtype)

    # ---- the host's

    def pin(self, count: int) -> int:
        memory = np.full(count, GARBAGE, np.uint8)
        address = int(memory.ctypes.data)
        self.pinned[address] = memory
        return address

    def _pinned_bytes(self, address: int, count: int) -> Bytes:
        for start, memory in self.pinned.items():
            if start <= address and address + count <= start + len(memory):
                return memory[address - start : address - start + count]
        raise Outside(address)

    def is_pinned(self, address: int) -> bool:
        return any([start <= address < start + len(memory) for start, memory in self.pinned.items()])
