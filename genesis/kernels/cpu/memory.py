"""Memory of large arrays, used again.

Each page of memory that comes from the system costs a fault and is cleared first: for 50 MB that takes as long as to
compute what goes in, or ten times as long where the system has to gather large pages. The C library gives memory back
to the system whenever much of it is free, and that of the largest arrays at once. `empty` keeps the memory of those
that it made, up to `LIMIT` bytes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

LARGE = 1 << 22  # bytes of an array from where its memory is kept
LIMIT = 1 << 29  # bytes that are kept at most

# the oldest first; every step on it is a single one, so threads need no lock
_kept: deque[np.ndarray[Any, Any]] = deque()


class _Loan:
    """Who has a piece of memory: arrays and views of it refer to this, and with the last of them it goes."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: np.ndarray[Any, Any]) -> None:
        self.memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        _kept.append(self.memory)
        while sum([m.nbytes for m in _kept.copy()]) > LIMIT:
            _kept.popleft()


def empty(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """``np.empty``, in memory that a large array of as many bytes gave back, if there is one.

    >>> a = empty((1 << 13, 1 << 10), np.float32)
    >>> address = a.ctypes.data
    >>> del a
    >>> empty((1 << 10, 1 << 13), np.float32).ctypes.data == address
    True
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.empty(shape, dtype)
    memory = _kept_of(size)
    return np.asarray(_Loan(np.empty(size, np.uint8) if memory is None else memory)).view(dtype).reshape(shape)


def release() -> None:
    """Give the system back what is kept."""
    _kept.clear()


def _kept_of(size: int) -> np.ndarray[Any, Any] | None:
    """Memory of that size, which is kept no longer."""
    for _ in range(len(_kept)):
        try:
            memory = _kept.popleft()
        except IndexError:  # another thread was faster
            return None
        if memory.nbytes == size:
            return memory
        _kept.append(memory)
    return None
