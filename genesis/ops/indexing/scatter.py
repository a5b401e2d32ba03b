"""Elements put, added and combined at places named along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import ArgumentValueError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import case, composite, indexing
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.writes import only_writes
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.switches import LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.indexing.adding import positions_of
from genesis.ops.indexing.gather import along, along_key, scatter_sum
from genesis.ops.pointwise.choice import gate, where

_ALL = "fcib"
_AT = lambda t: t.int(2, 2, low=0, high=3)  # noqa: E731
_UFUNCS = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
_COMBINE: dict[str, Any] = {
    "prod": lambda a, b: a * b,
    "amax": lambda a, b: a.maximum(b),
    "amin": lambda a, b: a.minimum(b),
}


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


def _named_part(src: Tensor, index: Any) -> Tensor:
    """The elements of a source that an index of places goes with: the first ones along each dimension."""
    if not index.ndim or src._array.shape == index.shape:
        return src
    return src[tuple([slice(0, n) for n in index.shape])]


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
    d, array = along("scatter", input, dim, index)
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
    d, array = along("scatter_add", input, dim, index)
    part = _named_part(src, array)
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
    d, array = along("scatter_reduce", input, dim, index)
    shape = tuple(input._array.shape)
    part = _named_part(src, array)
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
    combined = _scatter_slow if isinstance(array, np.ndarray) else scatter_dense
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


def scatter_dense(own: Tensor, part: Tensor, d: int, array: Any, reduce: str) -> Tensor:
    """The same where the index is known to a transform only, or lies on a device: every element against every place along
    the dimension.
    """
    if not array.ndim:
        own, part, array = own.unsqueeze(0), part.unsqueeze(0), wrap(array).unsqueeze(0)._array
        return scatter_dense(own, part, 0, array, reduce).squeeze(0)
    positions = wrap(placed(np.arange(own.shape[d]), own.device))
    hit = wrap(array).movedim(d, -1).unsqueeze(-1) == positions  # (..., elements, places)
    spread = where(hit, part.movedim(d, -1).unsqueeze(-1), _neutral(reduce, part))
    extremes = (
        spread.prod(-2) if reduce == "prod" else spread.amax(-2) if reduce == "amax" else spread.amin(-2)
    ).movedim(-1, d)
    head = tuple(slice(0, n) for n in extremes.shape)
    out = own.clone(memory_format=contiguous_format)
    out[head] = _COMBINE[reduce](own[head], extremes)
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
    for r in range(int(rank.max()) + 1 if flat.size else 0):
        chosen = np.flatnonzero(rank == r)
        at = wrap(flat[chosen])
        out = out.index_copy(0, at, _COMBINE[reduce](out[at], values[wrap(chosen)]))
    return out.reshape(own.shape)


__all__ = ["scatter", "scatter_add", "scatter_reduce"]
