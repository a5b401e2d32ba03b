"""Memory of tensors: which of them share it, and views of it that are checked before they are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.protocol import Virtual
from genesis.base import dtypes
from genesis.base.errors import UnsupportedError, message
from genesis.core.graph.site import line_here
from genesis.core.graph.tensor import Tensor
from genesis.io.source import Damaged

Array = np.ndarray[Any, Any]
_WORK = 10_000  # steps that may be spent to find out whether two interleaved views have an element in common


def array_of(value: Any) -> Array:
    """The elements of a tensor, or of an array or number of NumPy's, to be saved; on its own memory."""
    if isinstance(value, Tensor):
        if isinstance(value._array, Virtual):
            raise value._array.refuse("save", line_here())
        if value._layout is not None:
            text = "this rank has a part of a tensor that others have, too"
            raise UnsupportedError(
                message("save", text, hint="genesis.distributed.checkpoint.save, or x.full_tensor()")
            )
        return value.detach()._on_host()
    dtypes.from_numpy(value.dtype)  # text, objects and dates are refused
    return np.asarray(value)


@dataclass(frozen=True, slots=True)
class Region:
    """Where the elements of an array lie: in which block of memory, from which byte on."""

    array: Array  # with these strides
    block: Array  # contiguous: one of the arrays, or bytes
    offset: int  # bytes


def regions(arrays: Sequence[Array], keep_strides: bool = False) -> list[Region]:
    """A place for each array; arrays that share memory are in one block, the others in blocks of their own.

    An array alone is laid out in C order; with ``keep_strides`` it stays if its elements fill its memory without a gap,
    as those of a transposed one do. Arrays of negative strides, or of the other byte order, are copied.
    """
    ready = [_in_order(a) for a in arrays]
    out: list[Region | None] = [None] * len(ready)
    for group in _groups(ready):
        if len(group) == 1:
            ready[group[0]] = _alone(ready[group[0]], keep_strides)
        low, high = _joint_span([ready[i] for i in group])
        block = _block(
            next((ready[i] for i in group if _fills(ready[i], low, high)), None), [ready[i] for i in group], low, high
        )
        for i in group:
            out[i] = Region(ready[i], block, _span(ready[i])[0] - low)
    return out  # type: ignore[return-value]


def _in_order(a: Array) -> Array:
    a = a.astype(a.dtype.newbyteorder("="), copy=False) if a.dtype.kind != "V" else a
    if any(step < 0 for step in a.strides) or not a.size:
        return np.ascontiguousarray(a).reshape(a.shape)
    return a


def _alone(a: Array, keep_strides: bool) -> Array:
    low, high = _span(a)
    return a if keep_strides and high - low == a.nbytes else np.ascontiguousarray(a).reshape(a.shape)


def _span(a: Array) -> tuple[int, int]:
    """First and last address of an array whose strides are not negative."""
    start = a.__array_interface__["data"][0]
    return start, start + (
        sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)) + a.itemsize if a.size else 0
    )


def _joint_span(group: list[Array]) -> tuple[int, int]:
    spans = [_span(a) for a in group]
    return min(low for low, _ in spans), max(high for _, high in spans)


def _fills(a: Array, low: int, high: int) -> bool:
    return _span(a) == (low, high) and a.flags.c_contiguous


def _block(whole: Array | None, group: list[Array], low: int, high: int) -> Array:
    if whole is not None:
        return whole
    first = min(group, key=lambda a: _span(a)[0])
    corner = first[(slice(0, 1),) * first.ndim].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(corner, (high - low,), (1,), writeable=False)


def _groups(arrays: list[Array]) -> list[list[int]]:
    """Indices of arrays that have elements in common, directly or through others."""
    root = list(range(len(arrays)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    spans = [_span(a) for a in arrays]
    near: list[int] = []  # whose spans may reach the next one
    for i in sorted(range(len(arrays)), key=lambda i: spans[i]):
        near = [j for j in near if spans[j][1] > spans[i][0]]
        for j in near:
            if find(i) != find(j) and _meet(arrays[i], arrays[j], len(near)):
                root[find(i)] = find(j)
        near.append(i)
    groups: dict[int, list[int]] = {}
    for i in range(len(arrays)):
        groups.setdefault(find(i), []).append(i)
    return list(groups.values())


def _meet(a: Array, b: Array, crowd: int) -> bool:
    if not (a.size and b.size):
        return False
    if crowd > 64:  # too many to compare each with each
        return True
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def strided(
    memory: Array, dtype: Any, offset: int, shape: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """An array on bytes, with strides in bytes, all inside.

    Raises:
        Damaged: sizes or strides that are not integers or negative, or that reach beyond the memory
    """
    for numbers in (shape, strides or (), (offset,)):
        if not isinstance(numbers, list | tuple) or any(type(n) is not int or not 0 <= n < 1 << 62 for n in numbers):
            raise Damaged(
                f"has a tensor of impossible sizes: shape {short(shape)}, strides {short(strides)}, offset "
                f"{short(offset)}"
            )
    if len(shape) > 64 or (strides is not None and len(strides) != len(shape)):
        raise Damaged(f"has a tensor of {len(shape)} dimensions, with {short(strides)} as strides")
    if math.prod(n for n in shape if n) * dtype.itemsize >= 1 << 62:
        raise Damaged(f"has a tensor of shape {short(shape)}, which has too many elements")
    if not math.prod(shape):
        return np.empty(tuple(shape), dtype)
    steps = strides if strides is not None else _c_order(shape, dtype.itemsize)
    end = offset + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) + dtype.itemsize
    if end > memory.nbytes:
        raise Damaged(f"has a tensor of shape {short(shape)} that reaches to byte {end} of {memory.nbytes}")
    array = np.ndarray(tuple(shape), dtype, memory, offset, tuple(steps))
    return array if array.flags.aligned else array.copy()


def _c_order(shape: Sequence[int], itemsize: int) -> list[int]:
    steps = [itemsize] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        steps[i] = steps[i + 1] * shape[i + 1]
    return steps


def short(value: Any) -> str:
    """A hostile value, in at most 80 characters."""
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(short, value[:8]))}{', ...' if len(value) > 8 else ''}]"
    else:
        text = str(value) if type(value) is int and value.bit_length() < 128 else type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."
