"""Elements named along one dimension: gather, scatter and take."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of, placed
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, composite, indexing, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.call.writes import only_writes
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.indexing.adding import add_at, positions_of
from genesis.ops.indexing.index import check_index, index_by
from genesis.ops.indexing.keys import all_within, as_index, in_range
from genesis.ops.pointwise.choice import gate, where

_ALL, _I64 = "fcib", np.dtype(np.int64)


def _along(name: str, input: Tensor, dim: int, index: Any, reads: bool = False) -> tuple[int, Any]:
    """Check the shapes of gather and scatter: no dimension but ``dim`` may be larger than the input's; and the index, but
    where a device does so when it ``reads``.
    """
    d = _usual(input, dim, index)
    if d is not None:
        return d, index._array
    array = as_index(name, index)
    check_index(name, input, index)
    d = normalize_dim(name, dim, input.ndim)
    shape = tuple(input._array.shape)
    if array.size and len(array.shape) != len(shape):
        raise ShapeError(
            message(
                name,
                f"index has {len(array.shape)} dimensions, input {len(shape)}",
                [("input", input._spec()), ("index", index._spec())],
            )
        )
    if (
        array.size
        and array.shape != shape
        and any([a > b and i != d for i, (a, b) in enumerate(zip(array.shape, shape, strict=True))])
    ):
        raise ShapeError(
            message(name, f"index of shape {list(array.shape)} is larger than the input {list(shape)} outside dim {d}")
        )
    there = (
        reads and shape and isinstance(array, DeviceArray) and array.__class__ is input._array.__class__ and not ACTIVE
    )
    if there and memory_of(array).reports_indices(input._array):
        return d, array
    size = shape[d] if shape else 1
    return d, in_range(name, index, size, f"dim {d} of size {size}")


def _usual(input: Tensor, dim: Any, index: Any) -> int | None:
    """The dimension, where NumPy's arrays meet and all indices are int64 numbers of elements that are there; None where
    there is more to look at, or to explain.
    """
    x = input._array
    if ACTIVE or index.__class__ is not Tensor or x.__class__ is not np.ndarray or dim.__class__ is not int:
        return None
    array = index._array
    if array.__class__ is not np.ndarray or array.dtype is not _I64:
        return None
    d = _dimension(x.shape, array.shape, dim)
    return d if d is not None and all_within(array, x.shape[d]) else None


@functools.lru_cache(maxsize=1 << 10)
def _dimension(shape: tuple[int, ...], named: tuple[int, ...], dim: int) -> int | None:
    """The dimension along which an index of a shape names elements, where both have several, and it fits."""
    if not 0 < len(shape) == len(named) or not -len(shape) <= dim < len(shape) or 0 in named:
        return None
    dim %= len(shape)
    return dim if all([b <= a or i == dim for i, (a, b) in enumerate(zip(shape, named, strict=True))]) else None


def along_key(index: Any, dim: int) -> tuple[Any, ...]:
    """The advanced index that names, for each element of ``index``, its element along ``dim``."""
    if not index.ndim:
        return ()
    # in a trace what was there before is captured
    key = coordinates(index.shape) if index.__class__ is np.ndarray else _grid.__wrapped__(index.shape)
    return (*key[:dim], index, *key[dim + 1 :])


def coordinates(shape: tuple[int, ...]) -> Any:
    """For each dimension its places, as they broadcast with those of the others. Nobody writes to them."""
    return (_grid if sum(shape) <= _SMALL else _grid.__wrapped__)(shape)


_SMALL = 1 << 12  # numbers of an index that are kept for the next call


@functools.lru_cache(maxsize=128)
def _grid(shape: tuple[int, ...]) -> Any:
    ndim = len(shape)
    return tuple([np.arange(n).reshape([n if i == d else 1 for d in range(ndim)]) for i, n in enumerate(shape)])


@indexing(
    {"input": lambda g, input_shape, dim, index, distinct: scatter_sum(g, input_shape, dim, index, distinct)},
    infer=lambda input, dim, index, distinct: Spec(index.shape, input.dtype, input.device),
    dtypes=_ALL,
    quiet=True,
)
def gather_at(input: Array, dim: int, index: Array, distinct: bool = False) -> Any:
    """Elements named by an index array along ``dim``, none of them twice if they are ``distinct``; what `gather` calls.

    >>> import genesis
    >>> genesis.gather(genesis.tensor([1., 2.]), 0, genesis.tensor([1]))
    tensor([2.])
    """
    return packed(np.asarray(input[along_key(index, dim)])) if index.ndim else input.reshape(()).copy()


samples(
    gather_at,
    lambda t: [
        case(t(3, 4), 1, wrap(np.array([[0, 1], [3, 3]]))),
        case(t(3, 4), 1, wrap(np.array([[0, 1], [3, 2]])), True),
    ],
)


@indexing(
    {"input": lambda g, dim, index, distinct: gather_at(g, dim, index, distinct)},
    infer=lambda input, shape, dim, index, distinct: Spec(tuple(shape), input.dtype, input.device),
    dtypes="fci",
)
def scatter_sum(input: Array, shape: Sequence[int], dim: int, index: Array, distinct: bool = False) -> Any:
    """Zeros of a shape, with elements added at the places of an index array along ``dim``, no two at one place if these are
    ``distinct``: the transpose of `gather`.

    >>> import genesis
    >>> from importlib import import_module
    >>> import_module("genesis.ops.indexing.gather").scatter_sum(genesis.ones(2), (3,), 0, genesis.tensor([2, 2]))
    tensor([0., 0., 2.])
    """
    out = np.zeros(shape, input.dtype)
    if index.size:
        key, some = along_key(index, dim), input[tuple(slice(0, n) for n in index.shape)]
        if distinct:
            out[key] = some
        else:
            add_at(out, key, some)
    return out


samples(
    scatter_sum,
    lambda t: [
        case(t(2, 2), (3, 4), 1, wrap(np.array([[0, 1], [3, 3]]))),
        case(t(2, 2), (3, 4), 1, wrap(np.array([[0, 1], [3, 2]])), True),
    ],
)


_AT = lambda t: t.int(2, 2, low=0, high=3)  # noqa: E731
_UFUNCS = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@indexing(
    {},
    infer=lambda input, value, dim, index, reduce: Spec(input.shape, input.dtype, input.device),
    dtypes="fi",
)
def scatter_combined(input: Array, value: Array, dim: int, index: Array, reduce: str) -> Any:
    """``input`` with the products, maxima or minima of its elements and those of ``value`` at the places of an index array
    along ``dim``; what `scatter_reduce` calls where no history is kept.

    >>> import genesis
    >>> genesis.scatter_reduce(genesis.zeros(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "amax")
    tensor([0., 5.])
    """
    out = np.array(input, F32 if input.dtype in HALVES else None, order="C")
    positions = np.broadcast_to(positions_of(along_key(index, dim), out.shape), index.shape)
    with np.errstate(all="ignore"):
        _UFUNCS[reduce].at(out.reshape(-1), positions.reshape(-1), value.astype(out.dtype).reshape(-1))
    return out.astype(input.dtype, copy=False)


samples(
    scatter_combined,
    lambda t: [
        case(t(3, 4), t(2, 2), 0, wrap(np.array([[0, 1], [2, 0]])), "amax"),
        case(t(3, 4), t(2, 2), 1, wrap(np.array([[0, 1], [3, 3]])), "prod"),
    ],
)


@composite(dtypes=_ALL, out=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements named along ``dim``, ``out[i][j] = input[index[i][j]][j]`` for dim 0; in the shape of ``index``.

    Raises:
        IndexError: an index out of range
        RuntimeError: ``index`` has other dimensions, or is larger than the input elsewhere

    >>> import genesis
    >>> genesis.gather(genesis.tensor([[1., 2.], [3., 4.]]), 1, genesis.tensor([[0], [1]]))
    tensor([[1.],
            [4.]])
    """
    usual = _usual(input, dim, index)
    if usual is not None:
        return gather_at(input, usual, index)
    key = _there(input._array, index._array, dim) if index.__class__ is Tensor and dim.__class__ is int else None
    known = None if key is None else _fit.get(key)
    if known is not None:
        return gather_at(input, known, wrap(index._array))
    if isinstance(index, Tensor) and {input.ndim, index.ndim} == {0, 1}:  # a number and a list of numbers go together
        return gather(input.reshape(-1), dim, index.reshape(-1)).reshape(index.shape)
    if isinstance(index, Tensor) and index.ndim != input.ndim and not index.numel() and index._array.dtype.kind in "iu":
        return input.reshape(-1)[:0].reshape(index.shape)  # nothing is named: its dimensions are not looked at
    d, array = _along("gather", input, dim, index, reads=True)
    if key is not None and array is index._array:
        if len(_fit) == _MANY:
            _fit.clear()
        _fit[key] = d
    return gather_at(input, d, wrap(array))


_MANY = 1 << 10
_fit: dict[Any, int] = {}  # the dimension, by shapes of arrays of a device that were looked at


def _there(x: Any, index: Any, dim: Any) -> Any:
    """What a gather on a device is known by, whose kernel says which index is none; None elsewhere."""
    if not isinstance(x, DeviceArray) or index.__class__ is not x.__class__ or index.device is not x.device or ACTIVE:
        return None
    return (x.shape, x.dtype, index.shape, index.dtype, dim) if memory_of(x).reports_indices(x) else None


samples(gather, lambda t: [case(t(3, 4), 1, _AT(t)), case(t(3, 4), 0, _AT(t))])

wrong_inputs(
    gather,
    (
        lambda t: case(t(2, 2), 0, t.int(2, 2, low=5, high=6)),
        IndexError,
        "gather: index 5 is out of range for dim 0 of size 2",
    ),
    (lambda t: case(t(2, 2), 0, t.int(2)), RuntimeError, "gather: index has 1 dimensions, input 2"),
)


def _only_moves(src: Any, out: Tensor) -> bool:
    """Whether numbers go from one of NumPy's arrays into another, or one number that is the same in its dtype, and there is
    nothing to convert or to record.
    """
    x = out._array
    if isinstance(src, Tensor):
        y = src._array
        fits = y.__class__ is np.ndarray and x.dtype is y.dtype and (not y.ndim or y.ndim == x.ndim)
        return fits and (src._node is None or not grad_mode.get()) and only_writes(out)
    return src.__class__ is float and abs(src) < 1e30 and x.dtype.char in "fd" and only_writes(out)


def _scatter_into(input: Tensor, d: int, array: Any, src: Any) -> Tensor:
    """``input`` with elements of ``src``, or that number, in place of those named; the last one written stays."""
    key, out = along_key(array, d), input.clone(memory_format=contiguous_format)
    if array.ndim and array.__class__ is np.ndarray and _only_moves(src, out):
        values = src._array if isinstance(src, Tensor) else src
        several = isinstance(src, Tensor) and values.shape and values.shape != array.shape
        out._array[key] = values[tuple([slice(0, n) for n in array.shape])] if several else values
        return out
    if not isinstance(src, Tensor):
        src = input.new_full((), src)
    part = src[tuple(slice(0, n) for n in array.shape)] if src.ndim else src.expand(array.shape)
    if array.ndim:
        out[key] = part
    else:
        out.copy_(part)
    return out


@composite(dtypes=_ALL, inplace=True, out=True)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """``input`` with the elements named along ``dim`` replaced by those of ``src`` (or by one value).

    Args:
        reduce: "add" or "multiply" to combine instead of replacing

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.scatter(genesis.zeros(3), 0, genesis.tensor([2]), genesis.tensor([5.]))
    tensor([0., 0., 5.])
    """
    d, array = _along("scatter", input, dim, index)
    source = src if src is not None else value
    if reduce is None:
        return _scatter_into(input, d, array, source)
    if not isinstance(source, Tensor):
        source = input.new_full((), source)
    if reduce not in ("add", "multiply"):
        raise ArgumentValueError(
            message("scatter", f"reduce must be 'add' or 'multiply', got {reduce!r}", hint="scatter_reduce")
        )
    return scatter_reduce(
        input,
        dim,
        index,
        source.expand(array.shape) if not source.ndim else source,
        "sum" if reduce == "add" else "prod",
    )


samples(
    scatter,
    lambda t: [
        case(t(3, 4), 1, t.int(1, 1, low=0, high=3), t(1, 1)),
        case(t(3, 4), 0, t.int(1, 1, low=0, high=3), 2.0),
    ],
)

wrong_inputs(
    scatter,
    (
        lambda t: case(t(2, 2), 0, t.int(1, 1, low=0, high=1), t(1, 1), reduce="max"),
        ValueError,
        "scatter: reduce must be 'add' or 'multiply'",
    ),
)


@composite(halves="wide", dtypes="fi", inplace=True, out=True)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """``input`` with elements of ``src`` added at the places named along ``dim``.

    >>> import genesis
    >>> genesis.scatter_add(genesis.zeros(3), 0, genesis.tensor([2, 2]), genesis.tensor([5., 1.]))
    tensor([0., 0., 6.])
    """
    d, array = _along("scatter_add", input, dim, index)
    part = src[tuple(slice(0, n) for n in array.shape)] if array.ndim else src
    return input + scatter_sum(part, tuple(input._array.shape), d, wrap(array))


samples(scatter_add, lambda t: [case(t(3, 4), 1, _AT(t), t(2, 2)), case(t(3, 4), 0, _AT(t), t(2, 2))])


@composite(halves="wide", dtypes="fib", inplace=True, out=True)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Elements of ``src`` combined at the places named along ``dim``: "sum", "prod", "mean", "amax" ("max") or "amin".

    Of bool tensors "sum" is *or* and "prod" is *and*.

    >>> import genesis
    >>> genesis.scatter_reduce(genesis.zeros(2), 0, genesis.tensor([1, 1]), genesis.tensor([3., 5.]), "mean", include_self=False)
    tensor([0., 4.])
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ArgumentValueError(
            message("scatter_reduce", f"unknown reduce {reduce!r}", hint="sum, prod, mean, amax or amin")
        )
    if input.dtype is dtypes.bool:
        kind = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)  # or, and
        return scatter_reduce(input.byte(), dim, index, src.byte(), kind, include_self=include_self).bool()
    d, array = _along("scatter_reduce", input, dim, index)
    shape = tuple(input._array.shape)
    part = src[tuple(slice(0, n) for n in array.shape)] if array.ndim else src
    hits: Any = None
    if reduce == "mean" or not include_self:
        hits = scatter_sum(part.detach().new_ones(part.shape), shape, d, wrap(array))
    own = input if include_self else where(hits > 0, _neutral(reduce, input), input)
    if reduce in ("sum", "mean"):
        total = own + scatter_sum(part, shape, d, wrap(array))
        if reduce == "sum":
            return total
        count = hits + 1 if include_self else where(hits > 0, hits, 1)
        mean = total / count if total.is_floating_point() or total.is_complex() else total.floor_divide(count)
        return where(hits > 0, mean, input)
    recording = grad_mode.get() and (own.requires_grad or part.requires_grad)
    combined = _scatter_slow if isinstance(array, np.ndarray) else _scatter_dense
    if own.device == CPU and own.dtype is part.dtype and not LEVELS and not (recording and reduce == "prod"):
        combined = _scatter_combined
    if not recording or reduce == "prod" or not (own.is_floating_point() and part.is_floating_point()):
        return combined(own, part, d, array, reduce)
    return _shared_evenly(combined(own.detach(), part.detach(), d, array, reduce), own, part, d, wrap(array))


samples(scatter_reduce, lambda t: [case(t(3, 4), 1, _AT(t), t(2, 2), "sum"), case(t(3, 4), 1, _AT(t), t(2, 2), "amax")])

wrong_inputs(
    scatter_reduce,
    (lambda t: case(t(2), 0, t.int(2, low=0, high=2), t(2), "or"), ValueError, "scatter_reduce: unknown reduce 'or'"),
)


def _neutral(reduce: str, x: Tensor) -> Any:
    """What changes no result, in the dtype."""
    whole = x._array.dtype.kind in "iu"
    low, high = (
        (int(np.iinfo(x._array.dtype).min), int(np.iinfo(x._array.dtype).max))
        if whole
        else (float("-inf"), float("inf"))
    )
    return {"prod": 1, "amax": low, "amin": high}.get(reduce, 0)


def _scatter_combined(own: Tensor, part: Tensor, d: int, array: Any, reduce: str) -> Tensor:
    return scatter_combined(own, part, d, wrap(array), reduce)  # type: ignore[no-any-return]


def _scatter_dense(own: Tensor, part: Tensor, d: int, array: Any, reduce: str) -> Tensor:
    """The same where the index is known to a transform only: every element against every place along the dimension."""
    if not array.ndim:
        own, part, array = own.unsqueeze(0), part.unsqueeze(0), wrap(array).unsqueeze(0)._array
        return _scatter_dense(own, part, 0, array, reduce).squeeze(0)
    positions = wrap(placed(np.arange(own.shape[d]), own.device))
    hit = wrap(array).movedim(d, -1).unsqueeze(-1) == positions  # (..., elements, places)
    spread = where(hit, part.movedim(d, -1).unsqueeze(-1), _neutral(reduce, part))
    extremes = (
        spread.prod(-2) if reduce == "prod" else spread.amax(-2) if reduce == "amax" else spread.amin(-2)
    ).movedim(-1, d)
    head = tuple(slice(0, n) for n in extremes.shape)
    combine = {"prod": lambda a, b: a * b, "amax": lambda a, b: a.maximum(b), "amin": lambda a, b: a.minimum(b)}[reduce]
    out = own.clone(memory_format=contiguous_format)
    out[head] = combine(own[head], extremes)
    return out


def _shared_evenly(extremes: Tensor, own: Tensor, part: Tensor, d: int, index: Tensor) -> Tensor:
    """Extremes with their gradient, of which all elements that are equal to one get the same part."""
    mine, theirs = (
        (own.detach() == extremes).to(extremes.dtype),
        (part.detach() == extremes.gather(d, index)).to(extremes.dtype),
    )
    shape = tuple(own._array.shape)
    count = mine + scatter_sum(theirs, shape, d, index)
    shares = gate(part / count.gather(d, index), theirs)
    mean = gate(own / count, mine) + scatter_sum(shares, shape, d, index)
    return where(extremes.isinf(), mean, extremes + (mean - mean.detach()))  # its rounding is taken off again


def _scatter_slow(own: Tensor, part: Tensor, d: int, array: Any, reduce: str) -> Tensor:
    """Product and extremes: one write for each rank of repetition, so that gradients come from `maximum` and `mul`."""
    key = along_key(array, d)
    flat = np.ravel_multi_index(np.broadcast_arrays(*key), own._array.shape).reshape(-1)
    order = np.argsort(flat, kind="stable")
    first = np.concatenate(([True], flat[order][1:] != flat[order][:-1])) if flat.size else np.zeros(0, bool)
    starts = np.maximum.accumulate(np.where(first, np.arange(flat.size), 0)) if flat.size else order
    rank = np.empty(flat.size, np.int64)
    rank[order] = np.arange(flat.size) - starts
    out, values = own.reshape(-1), part.reshape(-1)
    combine = {"prod": lambda a, b: a * b, "amax": lambda a, b: a.maximum(b), "amin": lambda a, b: a.minimum(b)}[reduce]
    for r in range(int(rank.max()) + 1 if flat.size else 0):
        chosen = np.flatnonzero(rank == r)
        at = wrap(flat[chosen])
        out = out.index_copy(0, at, combine(out[at], values[wrap(chosen)]))
    return out.reshape(own.shape)


@composite(dtypes=_ALL, out=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in the shape of ``index``.

    >>> import genesis
    >>> genesis.take(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([0, 3]))
    tensor([1., 4.])
    """
    return index_by(input.reshape(-1), (as_index("take", index),))


samples(take, lambda t: [case(t(3, 4), t.int(2, 2, low=0, high=12))])


@composite(dtypes=_ALL, out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements named along ``dim``, the indices broadcast against the input; of the flattened tensor for None.

    Negative indices count from the end.

    >>> import genesis
    >>> genesis.take_along_dim(genesis.tensor([[3., 1.]]), genesis.tensor([[1, 0]]), 1)
    tensor([[1., 3.]])
    """
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    d = normalize_dim("take_along_dim", dim, input.ndim)
    indices = where(indices < 0, indices + (input.shape[d] if input.ndim else 1), indices)
    mine, theirs = tuple(input._array.shape), tuple(indices._array.shape)
    shape = tuple([max(a, b) if i != d else b for i, (a, b) in enumerate(zip(mine, theirs, strict=True))])
    wide = (*shape[:d], mine[d], *shape[d + 1 :]) if mine else ()
    source = input if mine == wide else input.expand(wide)
    return gather(source, d, indices if theirs == shape else indices.expand(shape))


samples(
    take_along_dim, lambda t: [case(t(3, 4), t.int(3, 1, low=0, high=4), 1), case(t(3, 4), t.int(5, low=0, high=12))]
)

__all__ = [
    "gather",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "take",
    "take_along_dim",
]
