"""Reductions, and running ones."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import genesis as _g
from genesis import bool, int64, uint64
from genesis.array_api.dtypes import Axis
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor


def _reduced(name: str) -> Callable[..., Tensor]:
    call = getattr(_g, name)

    def reduction(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
        return x.clone() if axis == () else call(x, axis, keepdims)

    reduction.__name__, reduction.__doc__ = name, f"`genesis.{name}` along an axis, several, or (None) all."
    return reduction


max, min = _reduced("amax"), _reduced("amin")


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Averages."""
    return x.clone() if axis == () else _g.mean(x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all are not zero."""
    return x != 0 if axis == () else _g.all(x, axis, keepdims).to(bool)


def any(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether one is not zero."""
    return x != 0 if axis == () else _g.any(x, axis, keepdims).to(bool)


def _wide(x: Tensor, dtype: Any) -> Any:
    """Sums and products of small integers are in 64 bits."""
    if dtype is not None or x.is_floating_point() or x.is_complex():
        return dtype
    return uint64 if x.dtype.name.startswith("uint") else int64


def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Sums; of integers in 64 bits."""
    kind = _wide(x, dtype)
    return x.to(kind or x.dtype, copy=True) if axis == () else _g.sum(x, axis, keepdims, dtype=kind)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Tensor:
    """Products; of integers in 64 bits."""
    kind = _wide(x, dtype)
    return x.to(kind or x.dtype, copy=True) if axis == () else _g.prod(x, axis, keepdims, dtype=kind)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """Standard deviations, of the whole population unless corrected."""
    return _g.std(x, axis, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Tensor:
    """Variances, of the whole population unless corrected."""
    return _g.var(x, axis, correction=correction, keepdim=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Places of the largest elements."""
    return _g.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Places of the smallest elements."""
    return _g.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: builtins.bool = False) -> Tensor:
    """How many are not zero."""
    return sum((x != 0).to(int64), axis=axis, keepdims=keepdims)


def _cumulative(
    x: Tensor, call: Any, first: int, axis: int | None, dtype: Any, include_initial: builtins.bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ArgumentValueError(
                message(
                    f"cumulative_{'prod' if first else 'sum'}",
                    f"axis may be left out for one dimension only, x has {x.ndim}",
                    [("x", x._spec())],
                )
            )
        axis = 0
    kind = _wide(x, dtype) or x.dtype
    out = call(x.to(kind), axis, dtype=kind)
    if not include_initial:
        return out  # type: ignore[no-any-return]
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return _g.cat([out.new_full(shape, first), out], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Running sums; with ``include_initial`` a zero in front."""
    return _cumulative(x, _g.cumsum, 0, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Tensor:
    """Running products; with ``include_initial`` a one in front."""
    return _cumulative(x, _g.cumprod, 1, axis, dtype, include_initial)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours, n times."""
    parts = [p for p in (prepend, x, append) if p is not None]
    x = _g.cat(parts, axis) if len(parts) > 1 else x
    return _g.diff(x, n, axis)


__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
