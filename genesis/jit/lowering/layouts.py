"""Arrays laid out as specs say, and specs whose arrays have no gaps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_in_order, strides_of
from genesis.kernels.cpu import memory

Array = np.ndarray[Any, Any]
LINE = 64  # bytes: where arrays of a step begin
_NOWHERE = -(1 << 62)  # the end of an array without elements: it overlaps nothing


def aligned(size: int) -> Array:
    """Bytes that begin where a line of the cache does."""
    whole = memory.empty((size + LINE,), np.uint8)
    start = -whole.ctypes.data % LINE
    return whole[start : start + size]


def maker(spec: Spec) -> Callable[[], Array]:
    """What makes an array laid out as a spec says, without gaps."""
    if spec.strides is None or not spec.shape:
        make = memory.empty if math.prod(spec.shape) * spec.dtype.itemsize >= memory.LARGE else np.empty
        return functools.partial(make, spec.shape, spec.dtype)
    order = memory_order(strides_of(spec))
    shape, back = [spec.shape[d] for d in order], np.argsort(order)
    return lambda: memory.empty(shape, spec.dtype).transpose(back)


def laid_out(array: Array, spec: Spec) -> Array:
    """An array with the strides of a spec: itself, or a copy."""
    strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
    same = all([n == 1 or s == t for n, s, t in zip(array.shape, array.strides, strides, strict=True)])
    return array if same or not array.size else copy_as(array, spec)


def copy_as(array: Array, spec: Spec) -> Array:
    """A copy with the strides of a spec, which may have gaps."""
    if is_dense(spec):
        copy = maker(spec)()
    else:
        low, high = extent(spec)
        strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
        copy = np.ndarray(spec.shape, spec.dtype, np.empty(high - low, np.uint8), -low, strides)
    copy[...] = array
    return copy


def extent(spec: Spec) -> tuple[int, int]:
    """Where the elements of an array begin and end, in bytes from its address."""
    if 0 in spec.shape:
        return 0, _NOWHERE
    steps = [(n - 1) * s * spec.dtype.itemsize for n, s in zip(spec.shape, strides_of(spec), strict=True)]
    return sum([s for s in steps if s < 0]), sum([s for s in steps if s > 0]) + spec.dtype.itemsize


def share(a: Array, b: Array) -> bool:
    """Whether two arrays have an element in common, or that is too hard to say."""
    try:
        return np.shares_memory(a, b, max_work=1 << 16)
    except np.exceptions.TooHardError:
        return True


# ---- of specs


def size_of(spec: Spec) -> int:
    """Bytes of an array."""
    return math.prod(spec.shape) * spec.dtype.itemsize


def room_of(spec: Spec) -> int:
    """Bytes from the first element of an array to behind the last, with what is between them."""
    return max(size_of(spec), extent(spec)[1])


def same_layout(a: Spec, b: Spec) -> bool:
    """Whether an element is at the same offset in both, and they have no gaps."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if 0 in a.shape:
        return True
    same = [n == 1 or s == t for n, s, t in zip(a.shape, strides_of(a), strides_of(b), strict=True)]
    return all(same) and is_dense(a)


def is_dense(spec: Spec) -> bool:
    """Whether an array has no gaps, and begins with its first element."""
    strides = strides_of(spec)
    step = 1
    for d in reversed(memory_order(strides)):
        if spec.shape[d] > 1:
            if strides[d] != step:
                return False
            step *= spec.shape[d]
    return True


def dense(spec: Spec) -> Spec:
    """The same array without gaps, with its dimensions in the same order."""
    if is_dense(spec):
        return spec
    return Spec(spec.shape, spec.dtype, spec.device, strides_in_order(spec.shape, memory_order(strides_of(spec))))
