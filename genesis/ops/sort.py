"""Ordering: sort, topk, unique, searching and counting. Values are differentiable, positions are not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.kinds import case, composite, fails, normalize_dim, primitive
from genesis.core.tensor import Tensor, wrap

_I64 = np.dtype(np.int64)


class sort_result(NamedTuple):
    values: Tensor
    indices: Tensor


class topk_result(NamedTuple):
    values: Tensor
    indices: Tensor


class kthvalue_result(NamedTuple):
    values: Tensor
    indices: Tensor


class median_result(NamedTuple):
    values: Tensor
    indices: Tensor


def _argsort(x: Any, dim: int, descending: bool) -> Any:
    """Stable order along a dimension; nan counts as the largest, as in PyTorch."""
    if not x.ndim:
        return np.zeros((), np.int64)
    work = x.astype(np.float32) if x.dtype.kind == "V" else x
    if not descending:
        return np.argsort(work, axis=dim, kind="stable")
    order = np.argsort(np.flip(work, dim), axis=dim, kind="stable")  # equals keep their order when flipped twice
    return np.flip(x.shape[dim] - 1 - order, dim)


@primitive("sort", infer=lambda input, dim, descending, stable: Spec(input.shape, _I64, input.device), dtypes="fib",
           prepare=lambda input, dim, descending, stable: (input, normalize_dim("argsort", dim, input.ndim), bool(descending), True),
           samples=lambda t: [case(t(3, 4)), case(t(3, 4), 0), case(t(3, 4), 1, True), case(t()), case(t(0, 2))],
           fails=fails((lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range")))  # fmt: skip
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Indices that sort along ``dim``; the order of equals is kept, nan comes last (first when descending).

    >>> import genesis
    >>> genesis.argsort(genesis.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return _argsort(input, dim, descending)


@composite(dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 0), case(t(3, 4), 1, True)])
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """Elements in order along ``dim`` and the indices they came from.

    >>> import genesis
    >>> genesis.sort(genesis.tensor([3., 1., 2.])).values
    tensor([1., 2., 3.])
    """
    indices = argsort(input, dim, descending)
    return sort_result(input.gather(dim, indices) if input.ndim else input.clone(), indices)


@composite(dtypes="fi", samples=lambda t: [case(t(3, 4))])
def msort(input: Tensor) -> Tensor:
    """Elements in order along dim 0.

    >>> import genesis
    >>> genesis.msort(genesis.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return sort(input, 0).values  # type: ignore[no-any-return]


@composite(dtypes="fi", samples=lambda t: [case(t(3, 4), 2), case(t(3, 4), 2, 0, False)],
           fails=fails((lambda t: case(t(3), 4), RuntimeError, "topk: k=4 is not between 0 and the size 3 of dim -1")))  # fmt: skip
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim``, in order, and their indices.

    Raises:
        RuntimeError: there are fewer than ``k``

    >>> import genesis
    >>> genesis.topk(genesis.tensor([1., 5., 3.]), 2).values
    tensor([5., 3.])
    """
    size = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= size:
        raise ShapeError(message("topk", f"k={k} is not between 0 and the size {size} of dim {dim}"))
    indices = argsort(input, dim, largest)
    if not input.ndim:
        return topk_result(input.clone(), indices)
    indices = indices.narrow(dim, 0, k)
    return topk_result(input.gather(dim, indices), indices)


@composite(dtypes="fi", samples=lambda t: [case(t(3, 4), 2), case(t(3, 4), 1, 0, True)],
           fails=fails((lambda t: case(t(3), 4), RuntimeError, "kthvalue: k=4 is not between 1 and the size 3")))  # fmt: skip
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The ``k``-th smallest element along ``dim`` (counted from 1) and its index.

    >>> import genesis
    >>> genesis.kthvalue(genesis.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    size = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(message("kthvalue", f"k={k} is not between 1 and the size {size} of dim {dim}"))
    if not input.ndim:
        return kthvalue_result(input.clone(), argsort(input))
    indices = argsort(input, dim).narrow(dim, k - 1, 1)
    values = input.gather(dim, indices)
    return kthvalue_result(values, indices) if keepdim else kthvalue_result(values.squeeze(dim), indices.squeeze(dim))


@composite(dtypes="fi", samples=lambda t: [case(t(3, 5)), case(t(4))])
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element (the lower of two), of all or along ``dim`` with its index; nan if there is one.

    >>> import genesis
    >>> genesis.median(genesis.tensor([3., 1., 2., 9.]))
    tensor(2.)
    """
    if dim is None:
        flat = input.reshape(-1)
        if not flat.numel():
            return input.new_full((), float("nan"))
        return median(flat, 0).values
    size = input.shape[dim] if input.ndim else 1
    found = kthvalue(input, (size + 1) // 2, dim, keepdim)
    if not input.is_floating_point():
        return median_result(*found)
    has_nan = input.isnan().any(dim, keepdim)
    last = kthvalue(input, size, dim, keepdim)
    return median_result(_pick(has_nan, last.values, found.values), _pick(has_nan, last.indices, found.indices))


def _pick(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    from genesis.ops.elementwise import where

    return where(condition, a, b)  # type: ignore[no-any-return]


@composite(dtypes="f", samples=lambda t: [case(t(3, 5), 0.3), case(t(3, 5), 0.75, 1), case(t(5), 0.5, keepdim=True)],
           fails=fails((lambda t: case(t(3), 1.5), RuntimeError, "quantile: q must be between 0 and 1, got 1.5")))  # fmt: skip
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The value below which a part ``q`` of the elements lies, interpolated between neighbours.

    Args:
        q: a number or 1-d tensor in [0, 1]; a tensor adds a leading dimension
        interpolation: "linear", "lower", "higher", "midpoint" or "nearest"

    >>> import genesis
    >>> genesis.quantile(genesis.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    if isinstance(q, Tensor) and q.ndim:
        from genesis.ops.join import stack

        return stack([quantile(input, float(v), dim, keepdim, interpolation=interpolation) for v in q])  # type: ignore[no-any-return]
    part = float(q)
    if not 0 <= part <= 1:
        raise ShapeError(message("quantile", f"q must be between 0 and 1, got {part}"))
    shape = [1] * input.ndim
    flat, d = (input.reshape(-1), 0) if dim is None else (input, dim)
    ordered = sort(flat, d).values
    place = part * (ordered.shape[d] - 1)
    low, high = int(np.floor(place)), int(np.ceil(place))
    weights = {"linear": place - low, "lower": 0.0, "higher": 1.0, "midpoint": 0.5, "nearest": float(np.round(place) - low)}
    if interpolation not in weights:
        raise ArgumentValueError(message("quantile", f"unknown interpolation {interpolation!r}", hint=", ".join(weights)))
    a, b = ordered.narrow(d, low, 1), ordered.narrow(d, high, 1)
    result = a + (b - a) * weights[interpolation] if low != high else a
    if dim is None:
        return result.reshape(shape if keepdim else [])
    return result if keepdim else result.squeeze(d)


def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The distinct elements in order (or slices along ``dim``), with where each went and how often it occurs.

    >>> import genesis
    >>> genesis.unique(genesis.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    x = input.detach().numpy_view()
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    shape = x.shape if dim is None else (x.shape[dim],)
    parts = [values] + [inverse.reshape(shape)] * return_inverse + [counts] * return_counts
    tensors = tuple(wrap(np.ascontiguousarray(p)) for p in parts)
    return tensors if len(tensors) > 1 else tensors[0]


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each non-negative integer occurs, or the sum of its weights.

    Raises:
        RuntimeError: the input is not 1-d, or has negative elements

    >>> import genesis
    >>> genesis.bincount(genesis.tensor([0, 1, 1]))
    tensor([1, 2])
    """
    x = input.numpy_view()
    if x.ndim != 1 or x.dtype.kind not in "iu" or (x.size and x.min() < 0):
        raise ShapeError(message("bincount", "expected a 1-d tensor of non-negative integers", [("input", input._spec())]))
    if weights is None:
        return wrap(np.bincount(x, minlength=minlength))
    w = weights.detach().numpy_view()
    return wrap(np.bincount(x, w, minlength).astype(np.float32 if w.dtype == np.float32 else np.float64))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram of ``bins`` equal bins from ``min`` to ``max`` (both zero: of the data's range).

    >>> import genesis
    >>> genesis.histc(genesis.tensor([1., 2., 1.]), bins=2, min=0, max=3)
    tensor([2., 1.])
    """
    x = input.detach().numpy_view()
    low, high = (float(x.min()), float(x.max())) if min == max and x.size else (float(min), float(max))
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return wrap(np.histogram(x, bins, (low, high))[0].astype(x.dtype))


def searchsorted(sorted_sequence: Tensor, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None) -> Tensor:
    """Where values would go in a sorted sequence (of the same leading dimensions) to keep it sorted.

    >>> import genesis
    >>> genesis.searchsorted(genesis.tensor([1., 3., 5.]), genesis.tensor([3.]), right=True)
    tensor([2])
    """
    seq = sorted_sequence.detach().numpy_view()
    vals = values.detach().numpy_view() if isinstance(values, Tensor) else np.asarray(values)
    where_ = side or ("right" if right else "left")
    kind = np.int32 if out_int32 else np.int64
    if seq.ndim == 1:
        return wrap(np.asarray(np.searchsorted(seq, vals, where_)).astype(kind))
    if seq.shape[:-1] != vals.shape[:-1]:
        raise ShapeError(message("searchsorted", f"leading dimensions differ, {list(seq.shape[:-1])} and {list(vals.shape[:-1])}"))
    found = [np.searchsorted(s, v, where_) for s, v in zip(seq.reshape(-1, seq.shape[-1]), vals.reshape(-1, vals.shape[-1]), strict=True)]
    return wrap(np.asarray(found).reshape(vals.shape).astype(kind))


def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket, between sorted boundaries, that each element falls into.

    >>> import genesis
    >>> genesis.bucketize(genesis.tensor([0., 2.]), genesis.tensor([1., 3.]))
    tensor([0, 1])
    """
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


for _function in (unique, bincount, histc):
    setattr(Tensor, _function.__name__, _function)

__all__ = [
    "argsort", "bincount", "bucketize", "histc", "kthvalue", "median", "msort", "quantile", "searchsorted", "sort", "topk", "unique",
]  # fmt: skip
