"""Arrays laid out as specs say."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.jit.lowering.plan import LINE, is_dense
from genesis.kernels.cpu import memory

Array = np.ndarray[Any, Any]
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
