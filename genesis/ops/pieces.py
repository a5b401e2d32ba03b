"""What special functions share: other formulas on other pieces of the line, in blocks that stay in the cache."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_BLOCK = 4096  # elements; a dozen arrays of so many float64 numbers fit into the level-2 cache

Formula = Callable[[Any], Any]


def in_blocks(formula: Formula, dtype: Any = None) -> Formula:
    """A formula as a kernel for arrays of any size and layout: computed in ``dtype``, the array's own if None, and
    rounded once.
    """

    @functools.wraps(formula)
    def kernel(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.size <= _BLOCK:  # or it is a symbol (`core/call/scalars.py`)
            return formula(x if dtype is None else x.astype(dtype)).astype(x.dtype)
        out = np.empty_like(x)
        kinds, access = [dtype or x.dtype, x.dtype], [["readonly"], ["writeonly"]]
        with np.nditer(
            [x, out], ["external_loop", "buffered"], access, kinds, casting="same_kind", buffersize=_BLOCK
        ) as blocks:  # type: ignore[list-item, arg-type]
            for source, target in blocks:
                target[...] = formula(source)
        return out

    return kernel


def in_float64(formula: Formula) -> Formula:
    """A formula for float64 arrays as a kernel for any real dtype."""
    return in_blocks(formula, np.float64)


def piecewise(x: Any, here: Any, formula: Formula, elsewhere: Formula) -> Any:
    """One formula where ``here`` holds, another elsewhere; each sees its own elements only."""
    if here.all():
        return formula(x)
    out, there = np.empty_like(x), ~here
    out[here] = formula(x[here])
    out[there] = elsewhere(x[there])
    return out


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
