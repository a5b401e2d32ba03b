"""Files that go to the disk past the system's cache: nobody reads a snapshot soon, and copying it there takes processor time
from the training.

That is `O_DIRECT`, which takes whole pages of memory from its begin on. Where there is none, and for the rest of a file that
is no whole page, it is written as always.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

from genesis.kernels.llvm.crc import crc32

ROOM = 1 << 22  # bytes that are given to the disk at once: two large pages
PAGE = 4096
_LARGE = 1 << 21  # bytes of a large page: of small ones the system takes each by itself, which costs more than the copy
_DIRECT = getattr(os, "O_DIRECT", 0)


class File:
    """A new file, written once from its begin to its end; ``size`` and ``crc32`` are those of what was written.

    Raises:
        OSError: it is there already, or cannot be written to
    """

    def __init__(self, path: Path) -> None:
        self.size = self.crc32 = 0
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._room: Any = None
        self._held, self._full = 0, False

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self._handle)

    def write(self, data: Any) -> None:
        """Write bytes behind those before."""
        given, begin = np.frombuffer(data, np.uint8), 0
        if self._room is None:
            self._room = large_pages(ROOM)
        while begin < given.size:
            count = min(given.size - begin, ROOM - self._held)
            self._room[self._held : self._held + count] = given[begin : begin + count]
            self._held += count
            begin += count
            if self._held == ROOM:
                if not self._full:
                    self._go_direct(True)
                self._full = True
                self._give()

    def write_at_once(self, memory: np.ndarray[Any, Any], crc: int | None = None) -> None:
        """Write bytes that begin with a page, as `large_pages` has them, without a copy; there is nothing before. The CRC
        is computed where it is not given.
        """
        pages = memory.size - memory.size % PAGE
        self._go_direct(pages > 0)
        self._put(memory[:pages])
        self._go_direct(False)
        self._put(memory[pages:])
        self.size, self.crc32 = memory.size, crc32(memory.data) if crc is None else crc

    def end(self) -> None:
        """Write the rest, and wait until all of it is on the disk."""
        self._go_direct(False)
        if self._held:
            self._give()
        os.fsync(self._handle)

    def _give(self) -> None:
        """Give the disk what is held."""
        memory, self._held = self._room[: self._held], 0
        self.crc32, self.size = crc32(memory.data, self.crc32), self.size + memory.size
        self._put(memory)

    def _put(self, memory: np.ndarray[Any, Any]) -> None:
        data = memory.data
        while data:
            try:
                data = data[os.write(self._handle, data) :]
            except OSError as error:
                if error.errno != errno.EINVAL or not self._go_direct(False):
                    raise

    def _go_direct(self, on: bool) -> bool:
        """Write past the cache from now on, if that is possible, or no longer; whether that is another way than before."""
        flags = fcntl.fcntl(self._handle, fcntl.F_GETFL)
        if bool(flags & _DIRECT) == on or not _DIRECT:
            return False
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._handle, fcntl.F_SETFL, flags ^ _DIRECT)
            return True
        return False


def large_pages(size: int) -> np.ndarray[Any, Any]:
    """Memory that begins with a large page, where the system has them."""
    memory = mmap.mmap(-1, size + _LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    room = np.frombuffer(memory, np.uint8)
    begin = -room.ctypes.data % _LARGE
    return room[begin : begin + size]
