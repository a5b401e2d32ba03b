"""Orders, distinct values, places."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import genesis as _g
from genesis import int64
from genesis.array_api.elementwise import where
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Elements in order."""
    return _g.sort(x, axis, descending).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Tensor:
    """Places of the elements in order."""
    return _g.argsort(x, axis, descending, True)


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements belong in a sorted tensor."""
    return _g.searchsorted(x1 if sorter is None else x1[sorter], x2, side=side)


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements, where each comes first, which each element is, and how often each comes."""
    values, inverse, counts = _g.unique(x, return_inverse=True, return_counts=True)
    flat = inverse.reshape(-1)
    none = _g.full((values.numel(),), flat.numel(), dtype=int64)
    first = _g.scatter_reduce(none.double(), 0, flat, _g.arange(flat.numel()).double(), "amin").to(int64)
    return UniqueAll(values, first, inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements, and how often each comes."""
    return UniqueCounts(*_g.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements, and which of them each element is."""
    values, inverse = _g.unique(x, return_inverse=True)
    return UniqueInverse(values, inverse.reshape(x.shape))


def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements."""
    return _g.unique(x)


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether elements are among others."""
    a, b = _g.as_tensor(x1), _g.as_tensor(x2)
    hit = (a.unsqueeze(-1) == b.reshape(-1)).any(-1)
    return ~hit if invert else hit


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Places of the elements that are not zero, a tensor for each dimension."""
    if not x.ndim:
        raise ArgumentValueError(message("nonzero", "a 0-d array has no places"))
    return tuple(_g.nonzero(x, as_tuple=True))


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices named by a 1-d index."""
    if axis is None and x.ndim != 1:
        raise ArgumentValueError(
            message("take", f"axis may be left out for one dimension only, x has {x.ndim}", [("x", x._spec())])
        )
    axis = 0 if axis is None else axis
    return _g.index_select(x, axis, where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Elements named along an axis."""
    return _g.take_along_dim(x, where(indices < 0, indices + x.shape[axis], indices), axis)


__all__ = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
