"""Memory of large arrays, used again.

Each page of memory that comes from the system costs a fault and is cleared first: for 50 MB that takes as long as to
compute what goes in, or ten times as long where the system has to gather large pages. The C library gives memory back
to the system whenever much of it is free, and that of the largest arrays at once. `empty` keeps the memory of those
that it made, up to `LIMIT` bytes.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import LENT
from genesis.base import blas
from genesis.base.threads import in_parallel
from genesis.kernels.llvm.native import ARRAY_DATA

LARGE = 1 << 17  # bytes of an array from where its memory is kept
LIMIT = 1 << 29  # bytes that are kept at most
LINE = 64  # bytes that a cache holds together
SHARED = 1 << 20  # bytes that threads copy together
_BYTE = np.dtype(np.uint8)

# by size, that of the longest unused first; every step on it is a single one, so threads need no lock: where two meet,
# one piece may go back to the system
_kept: dict[int, deque[np.ndarray[Any, Any]]] = {}


# bytes that are kept at most: what was counted, and all that came back since. It is counted again only where this is
# above the limit, so threads that add at the same time put that off, no more
_at_most = [0]


class _Piece(np.ndarray[Any, Any]):
    """Memory that is lent. The base of a NumPy array is never an array of its own class that has a base, hence this."""

    __slots__ = ()


class _Loan(np.ndarray[Any, Any]):
    """Who has a piece of memory: an array has this as its base, its views refer to that, and with the last of them it
    goes.
    """

    __slots__ = ()

    def __del__(self) -> None:
        size = self.nbytes
        pieces = _kept.pop(size, None) or deque()
        pieces.append(self.base)  # type: ignore[arg-type]
        _kept[size] = pieces
        _at_most[0] += size
        if _at_most[0] > LIMIT:
            _limit()


LENT.add(_Loan)


def _limit() -> None:
    """Count what is kept, and give back what is too much."""
    while (size := sum([n * len(some) for n, some in list(_kept.items())])) > LIMIT:
        _drop()
    _at_most[0] = size


def _drop() -> None:
    """Give the system back a piece of the size that was not used for the longest time, the oldest of them."""
    try:
        size = next(iter(_kept))
        pieces = _kept[size]
        if pieces:  # else all of this size are lent
            pieces.popleft()
        if not pieces:
            del _kept[size]
    except (StopIteration, RuntimeError, KeyError, IndexError):  # another thread was faster
        pass


def empty(shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> np.ndarray[Any, Any]:
    """``np.empty``, in memory that a large array of as many bytes gave back, if there is one.

    Args:
        strides: in bytes, of an array without gaps; row-major order, unless they are given

    >>> a = empty((1 << 13, 1 << 10), np.float32)
    >>> address = a.ctypes.data
    >>> del a
    >>> empty((1 << 10, 1 << 13), np.float32).ctypes.data == address
    True
    """
    size = math.prod(shape) * (dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)).itemsize
    if size < LARGE:
        return np.empty(shape, dtype) if strides is None else np.ndarray(shape, dtype, strides=strides)
    try:
        memory = _kept[size].pop()
    except (KeyError, IndexError):
        memory = _aligned(size).view(_Piece)
    return np.ndarray(shape, dtype, _Loan(size, _BYTE, memory), 0, strides)


blas.empty = empty


def like(array: Any) -> np.ndarray[Any, Any]:
    """`empty` for an array of the same shape and dtype. (Of a small one this takes a third of the time.)

    >>> like(np.ones((2, 3), np.float32)).shape
    (2, 3)
    """
    return np.empty(array.shape, array.dtype) if array.nbytes < LARGE else empty(array.shape, array.dtype)


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """Bytes that begin where a vector may: one that crosses a border of `LINE` bytes is read and written twice."""
    whole = np.empty(size + LINE, np.uint8)
    start = -address(whole) % LINE
    return whole[start : start + size]


def aligned(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """``np.empty`` that begins where a vector may, however small it is.

    >>> aligned((3, 4), np.float32).ctypes.data % LINE
    0
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return _aligned(size).view(dtype).reshape(shape) if size < LARGE else empty(shape, dtype)


def address(array: Any) -> int:
    """Where a contiguous array of NumPy's begins. (``array.ctypes.data`` takes 1.2 us, this 0.15: it reads the word of the
    array's object that says it.)

    >>> a = np.ones(3)
    >>> address(a) == a.ctypes.data
    True
    """
    if ARRAY_DATA:
        return _word(id(array) + ARRAY_DATA).value
    return int(array.ctypes.data)


_word = ctypes.c_size_t.from_address


def contiguous(array: Any) -> Any:
    """``np.ascontiguousarray``, in such memory, by several threads where there is much to copy.

    >>> contiguous(np.broadcast_to(np.float32(2), (2, 3)))
    array([[2., 2., 2.],
           [2., 2., 2.]], dtype=float32)
    """
    if array.flags.c_contiguous:
        return array
    out = empty(array.shape, array.dtype)
    if array.nbytes < SHARED or len(array) < 2:
        np.copyto(out, array)
    else:
        in_parallel(lambda some: np.copyto(out[some], array[some]), len(array))
    return out


def zeros(shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """``np.zeros``, in such memory."""
    array = empty(shape, dtype)
    array.fill(0)
    return array


def release() -> None:
    """Give the system back what is kept."""
    _kept.clear()
    _at_most[0] = 0
