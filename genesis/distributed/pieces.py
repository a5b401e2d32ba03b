"""Arrays of the CPU or of a device in pieces: what is divided among ranks, and travels, without a copy where none is needed.

All arrays here are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import memory_of
from genesis.arrays.protocol import device_of
from genesis.base import dtypes
from genesis.base.device import MEMORIES
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.kernels.cpu import memory as room
from genesis.ops.shapes.join import cat


def empty(shape: Sequence[int], dtype: Any, like: Any) -> Any:
    """New memory beside an array."""
    if isinstance(like, np.ndarray):
        return room.empty(shape, dtype)
    return memory_of(like).empty(tuple(shape), dtype, like.device)


def zeros(shape: Sequence[int], dtype: Any, like: Any) -> Any:
    """New memory of zeros beside an array."""
    return MEMORIES[device_of(like).type].zeros(tuple(shape), dtype, device_of(like))


def nothing(shape: Sequence[int], dtype: Any, like: Any) -> Any:
    """An array that is NaN everywhere and has the memory of one element."""
    one = np.full((), np.nan).astype(dtype)
    if isinstance(like, np.ndarray):
        return np.broadcast_to(one, tuple(shape))
    memory = memory_of(like)
    return memory.seen(memory.from_host(one, like.device), 0, tuple(shape), dtype, (0,) * len(shape))


def rows(array: Any, begin: int, end: int) -> Any:
    """Some rows, as a view."""
    if isinstance(array, np.ndarray):
        return array[begin:end]
    rest = array.shape[1:]
    step = math.prod(rest) * array.dtype.itemsize
    return memory_of(array).seen(array, begin * step, (end - begin, *rest), array.dtype)


def shaped(array: Any, shape: Sequence[int]) -> Any:
    """The same elements in another shape."""
    if isinstance(array, np.ndarray):
        return array.reshape(shape)
    return memory_of(array).seen(array, 0, tuple(shape), array.dtype)


def columns(array: Any, begin: int, end: int) -> Any:
    """Some columns of a matrix, as a view, which has gaps."""
    if isinstance(array, np.ndarray):
        return array[:, begin:end]
    count, width = array.shape
    at = begin * array.dtype.itemsize
    return memory_of(array).seen(array, at, (count, end - begin), array.dtype, (width, 1))


def assign(target: Any, source: Any) -> None:
    """Write the elements of one into another."""
    memory_of(target).assign(target, source)


@no_grad()
def add(target: Any, source: Any) -> None:
    """Add the elements of one to another, in place."""
    wrap(target).add_(wrap(source))  # type: ignore[attr-defined]


def without_gaps(array: Any) -> Any:
    """Itself, or a copy."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return wrap(array).contiguous()._array  # type: ignore[attr-defined]


@no_grad()
def joined(arrays: Sequence[Any], dim: int = 0) -> Any:
    """One array of several along a dimension."""
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays, axis=dim)
    return cat([wrap(each) for each in arrays], dim)._array


@no_grad()
def in_dtype(array: Any, dtype: Any) -> Any:
    """An array with elements of a dtype: itself, or a copy."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype, copy=False)
    return array if array.dtype == dtype else wrap(array).to(dtype=dtypes.from_numpy(dtype))._array  # type: ignore[attr-defined]


@no_grad()
def divided(array: Any, by: float) -> Any:
    """The quotient by a number, rounded to the dtype of the array first."""
    number = array.dtype.type(by)
    return array / number if isinstance(array, np.ndarray) else (wrap(array) / float(number))._array


def lengthened(array: Any, length: int) -> Any:
    """With zeros behind the rows, up to a length: itself if it has that."""
    if array.shape[0] == length:
        return without_gaps(array)
    out = zeros((length, *array.shape[1:]), array.dtype, array)
    if array.size:
        assign(rows(out, 0, array.shape[0]), array)
    return out
