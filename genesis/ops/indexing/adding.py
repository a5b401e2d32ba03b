"""Sums at places of an array that may be named more than once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import ShapeError, message
from genesis.core.call.halves import F32, HALVES

DENSE = 4  # times as many places as values, at most, for which sums of all places are made in float64


def add_at(out: Any, key: Any, values: Any) -> None:
    """``out[key] += values``, adding repeatedly where an element is named more than once; 16-bit floats are rounded
    once.
    """
    if out.dtype in HALVES:
        total = out.astype(F32)
        add_at(total, key, values.astype(F32))
        out[...] = total
        return
    single = key[0] if len(key) == 1 else None
    if isinstance(single, np.ndarray) and single.dtype.kind in "iu" and out.dtype.kind == "f" and single.size:
        _add_rows(out, single, values)
        return
    shape = _shape_named(out, key)
    if values.ndim > len(shape):  # NumPy 2.4 crashes
        text = f"values of shape {list(values.shape)} cannot be added at an index of shape {list(shape)}"
        raise ShapeError(message("index", text))
    if out.flags.c_contiguous and out.size <= DENSE * math.prod(shape):
        positions = positions_of(key, out.shape)
        _add_elements(out.reshape(-1), positions.reshape(-1), np.broadcast_to(values, shape).reshape(-1))
    else:
        np.add.at(out, key, values)


def _shape_named(out: Any, key: Any) -> Any:
    """The shape of what an advanced index names."""
    if len(key) == out.ndim and all([k.__class__ is np.ndarray and k.dtype.kind == "i" for k in key]):
        return np.broadcast(*key).shape  # a tenth of the time
    return np.broadcast_to(np.False_, out.shape)[key].shape


def positions_of(key: Any, shape: Any) -> Any:
    """Which elements of a flattened array of this shape an advanced index names."""
    if len(key) < len(shape) or not all([isinstance(k, np.ndarray) and k.dtype.kind in "iu" for k in key]):
        return np.arange(math.prod(shape)).reshape(shape)[key]
    positions: Any = np.zeros((), np.int64)
    for index, n in zip(key, shape, strict=True):
        positions = positions * n + (
            index if not index.size or index.min() >= 0 else np.where(index < 0, index + n, index)
        )
    return positions


def _add_elements(out: Any, positions: Any, values: Any) -> None:
    """Of one dimension: sums of float32 numbers in float64 where that costs no more, else one after the other."""
    if out.dtype is F32 and out.size <= DENSE * positions.size:
        out += np.bincount(positions, values, out.size)
    else:
        np.add.at(out, positions, values)


def _add_rows(out: Any, index: Any, values: Any) -> None:
    """Rows summed by their index: sorted and reduced in runs, 5 to 20 times faster than ``np.add.at``."""
    rows = out.shape[0]
    flat = row_numbers(index, rows)
    shape = (*index.shape, *out.shape[1:])
    values = (values if values.shape == shape else np.broadcast_to(values, shape)).reshape(flat.size, -1)
    if values.shape[1] == 1 and out.flags.c_contiguous:
        _add_elements(out.reshape(-1), flat, values.reshape(-1))
        return
    order = (flat.astype(np.uint16) if rows <= 1 << 16 else flat).argsort(kind="stable")  # few bits: by digits
    ordered = flat[order]
    begins = np.ones(flat.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    (starts,) = begins.nonzero()
    if values.shape[1]:
        sums = np.add.reduceat(values[order], starts, axis=0, dtype=out.dtype)
        target = ordered[starts]
        out[target] += sums.reshape(len(target), *out.shape[1:])


def row_numbers(index: Any, rows: int) -> Any:
    """An index along the first dimension, counted from its beginning."""
    behind = index < 0
    return (np.where(behind, index + rows, index) if behind.any() else np.ascontiguousarray(index)).reshape(-1)
