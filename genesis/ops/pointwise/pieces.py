"""What special functions share: other formulas on other pieces of the line, in blocks that stay in the cache."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BLOCK = 8192  # elements; half a dozen arrays of so many float64 numbers fit into the level-2 cache

Formula = Callable[[Any], Any]


def in_blocks(formula: Formula, dtype: Any = None) -> Formula:
    """A formula as a kernel for arrays of any size and layout: computed in ``dtype``, the array's own if None, and
    rounded once.
    """

    @functools.wraps(formula)
    def kernel(x: Any) -> Any:
        if isinstance(x, np.ndarray) and not x.ndim:  # functions of these give scalars, and write into no memory
            return kernel(x.reshape(1)).reshape(())
        if isinstance(x, np.ndarray) and 0 in x.strides:
            x = np.array(x, order="C")  # along a dimension that repeats, results would lie beside each other
        if not isinstance(x, np.ndarray) or x.size <= BLOCK:  # or it is a symbol (`core/call/scalars.py`)
            return formula(x if dtype is None else x.astype(dtype)).astype(x.dtype)
        out = np.empty_like(x)
        kinds: Any = [dtype or x.dtype, x.dtype]
        flags: Any = ["external_loop", "buffered"]
        access: Any = [["readonly"], ["writeonly"]]
        with np.nditer([x, out], flags, access, kinds, casting="same_kind", buffersize=BLOCK) as blocks:
            for source, target in blocks:
                target[...] = formula(source)
        return out

    return kernel


def in_float64(formula: Formula) -> Formula:
    """A formula for float64 arrays as a kernel for any real dtype."""
    return in_blocks(formula, np.float64)


_ROWS = 1 << 15  # elements of a block of rows


def row_blocks(x: Any, dim: Sequence[int]) -> list[tuple[slice, ...]]:
    """Indices of blocks of rows along ``dim``, which stay in the cache; of one with all where that is not possible."""
    axis = next((i for i in range(x.ndim) if i not in dim), None)
    if x.size <= _ROWS or axis is None or (axis and math.prod(x.shape[axis + 1 :]) < 64):
        return [()]
    step = max(1, _ROWS * x.shape[axis] // x.size)
    return [(*[slice(None)] * axis, slice(i, i + step)) for i in range(0, x.shape[axis], step)]


def in_row_blocks(formula: Formula, x: Any, dim: Sequence[int], reduced: bool = False) -> Any:
    """A formula of float64 arrays that treats each row along ``dim`` alone, applied to a block of rows at a time.

    Args:
        reduced: the result has size 1 along ``dim``, not the shape of x
    """
    out = np.empty([1 if i in dim else n for i, n in enumerate(x.shape)], x.dtype) if reduced else np.empty_like(x)
    for part in row_blocks(x, dim):
        out[part] = formula(x[part].astype(np.float64))
    return out


def piecewise(x: Any, here: Any, formula: Formula, elsewhere: Formula) -> Any:
    """One formula where ``here`` holds, another elsewhere; each sees its own elements only."""
    if here.all():
        return formula(x)
    out, there = np.empty_like(x), ~here
    out[here] = formula(x[here])
    out[there] = elsewhere(x[there])
    return out


def corrected(values: Any, x: Any, where: Any, formula: Formula) -> Any:
    """What was found, and in its place where few of the elements want another formula what that says of them."""
    if where.any():
        values[where] = formula(x[where])
    return values


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """By Horner's rule, the highest power first."""
    y = x * coefficients[0]
    y += coefficients[1]
    for c in coefficients[2:]:
        y *= x
        y += c
    return y


def ratio(x: Any, p: Sequence[float], q: Sequence[float]) -> Any:
    """A quotient of two polynomials."""
    y = polynomial(x, p)
    y /= polynomial(x, q)
    return y
