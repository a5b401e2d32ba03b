"""Distinct values, counts and searching in order. Nothing here is differentiable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import check_floating, resized, widened
from genesis.ops.creation.outside import as_tensor

_out_of_range = (lambda t: case(t(2, 3), dim=2), IndexError, "dim 2 is out of range for 2 dimensions")

# ---- distinct values and counts


def _needs_data(name: str) -> Any:
    def infer(*args: Any) -> Any:
        raise UnsupportedError(
            message(
                name,
                "the shape of the result depends on data, and there is no data here: the tensor is on the meta "
                "device, or being traced",
            )
        )

    return infer


def _distinct(input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: Any) -> tuple[Any, ...]:
    d = None if dim is None else normalize_dim("unique", dim, input.ndim)
    if d is not None and 0 in resized(input.shape, d, 1):
        raise ShapeError(message("unique", f"slices along dim {dim} have no elements", [("input", input._spec())]))
    return input, True, bool(return_inverse), bool(return_counts), d if input.ndim else None


@primitive("search", infer=_needs_data("unique"), prepare=_distinct, dtypes="cib")
def unique(
    input: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements in order (or slices along ``dim``), on request with where each element went and how often
    each occurs.

    Each nan is distinct. Complex numbers are in the order of their real parts, then of their imaginary parts. Not
    differentiable.

    Raises:
        IndexError: a dim out of range
        RuntimeError: slices without elements

    >>> import genesis
    >>> genesis.unique(genesis.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    values, inverse, counts = np.unique(
        widened(input), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    inverse = inverse.reshape(input.shape if dim is None else (input.shape[dim],))
    results = [values.astype(input.dtype, copy=False), *[inverse] * return_inverse, *[counts] * return_counts]
    return tuple(results) if len(results) > 1 else results[0]


samples(
    unique,
    lambda t: [
        case(t(3, 4)),
        case(t(6), return_counts=True),
        case(t(2, 3), return_inverse=True),
        case(t(4, 1), True, True, True, 0),
        case(t()),
    ],
)

wrong_inputs(
    unique, _out_of_range, (lambda t: case(t(0, 3), dim=1), RuntimeError, "unique: slices along dim 1 have no elements")
)


def _runs(input: Tensor, return_inverse: bool, return_counts: bool, dim: Any) -> tuple[Any, ...]:
    return (
        input,
        bool(return_inverse),
        bool(return_counts),
        None if dim is None else normalize_dim("unique_consecutive", dim, input.ndim),
    )


@primitive("search", infer=_needs_data("unique_consecutive"), prepare=_runs, dtypes="ib")
def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along ``dim``) without those that equal the one before, on request with where each went and
    how many there were.

    Not differentiable.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.unique_consecutive(genesis.tensor([1, 1, 2, 1]), return_counts=True)
    (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    x = input.reshape(-1) if dim is None or not input.ndim else np.moveaxis(input, dim, 0)
    change = (x[1:] != x[:-1]).any(tuple(range(1, x.ndim)))
    first = np.concatenate([np.ones(min(len(x), 1), bool), change])
    starts = np.flatnonzero(first)
    values = x[starts] if dim is None or not input.ndim else np.moveaxis(x[starts], 0, dim)
    inverse = (np.cumsum(first) - 1).reshape(input.shape if dim is None else -1)
    counts = np.diff(np.append(starts, len(x)))
    results = [
        np.ascontiguousarray(values).reshape(values.shape),
        *[inverse] * return_inverse,
        *[counts] * return_counts,
    ]
    return tuple(results) if len(results) > 1 else results[0]


samples(
    unique_consecutive,
    lambda t: [
        case(t.int(8, low=0, high=2)),
        case(t.int(8, low=0, high=2), True, True),
        case(t(4, 1), return_inverse=True, dim=0),
        case(t()),
    ],
)

wrong_inputs(unique_consecutive, _out_of_range)


def _counted(input: Tensor, weights: Tensor | None, minlength: int) -> tuple[Any, ...]:
    if input.ndim != 1 or input.dtype.category != 1:
        raise ShapeError(
            message("bincount", "expected a 1-d tensor of non-negative integers", [("input", input._spec())])
        )
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(
            message(
                "bincount",
                "weights must have the input's shape",
                [("input", input._spec()), ("weights", weights._spec())],
            )
        )
    if minlength < 0:
        raise ShapeError(message("bincount", f"minlength must not be negative, got {minlength}"))
    return input, weights, int(minlength)


@primitive("search", infer=_needs_data("bincount"), prepare=_counted, dtypes="f")
def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> Any:
    """How often each integer from 0 to the largest occurs, as int64; or the sum of its weights, as float32 or float64.

    Not differentiable.

    Raises:
        RuntimeError: the input is not 1-d or has negative elements; ``weights`` of another shape

    >>> import genesis
    >>> genesis.bincount(genesis.tensor([0, 1, 1]))
    tensor([1, 2])
    """
    if input.size and input.min() < 0:
        raise ShapeError(message("bincount", f"expected non-negative integers, got {input.min()}"))
    counts = np.bincount(
        input.astype(np.int64, copy=False), None if weights is None else weights.astype(np.float64), minlength
    )
    return counts.astype(np.float32) if weights is not None and weights.dtype == np.float32 else counts


samples(
    bincount,
    lambda t: [
        case(t.int(5, low=0, high=4)),
        case(t.int(5, low=0, high=4), t(5).detach(), 6),
        case(t.int(0), minlength=2),
    ],
)

wrong_inputs(
    bincount,
    (lambda t: case(t.int(3, low=-5, high=-1)), RuntimeError, "bincount: expected non-negative integers, got"),
    (lambda t: case(t(3)), RuntimeError, "bincount: expected a 1-d tensor of non-negative integers"),
    (lambda t: case(t.int(3, low=0), t(2)), RuntimeError, "bincount: weights must have the input's shape"),
)


def _ranged(input: Tensor, bins: int, min: Any, max: Any) -> tuple[Any, ...]:
    check_floating("histc", input, "floating")
    if bins < 1:
        raise ShapeError(message("histc", f"bins must be positive, got {bins}"))
    if max < min:
        raise ShapeError(message("histc", f"max must not be smaller than min, got {min} and {max}"))
    return input, int(bins), float(min), float(max)


@primitive(
    "search",
    infer=lambda input, bins, min, max: Spec((bins,), input.dtype, input.device),
    prepare=_ranged,
    dtypes="f",
    out=True,
)
def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements fall into each of ``bins`` equal bins from ``min`` to ``max`` (both equal: of the data's
    range).

    The last bin includes its end. Elements outside and nan are left out. Not differentiable.

    Raises:
        RuntimeError: an input that is not floating, no bins, ``max`` below ``min``, or a range that is not finite

    >>> import genesis
    >>> genesis.histc(genesis.tensor([1., 2., 1.]), bins=2, min=0, max=3)
    tensor([2., 1.])
    """
    x = widened(input).ravel()
    low, high = (float(x.min()), float(x.max())) if min == max and x.size else (min, max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    if not np.isfinite(high - low):
        raise ShapeError(message("histc", f"the range from {low} to {high} is not finite", hint="give min and max"))
    return np.histogram(x, bins, (low, high))[0].astype(input.dtype)


samples(histc, lambda t: [case(t(3, 4).detach(), 5), case(t(6).detach(), 4, -1, 1), case(t(0).detach(), 3)])

wrong_inputs(
    histc,
    (lambda t: case(t(3), 4, 3, 1), RuntimeError, "histc: max must not be smaller than min, got 3 and 1"),
    (lambda t: case(t(3), 0), RuntimeError, "histc: bins must be positive, got 0"),
    (lambda t: case(t.int(3)), RuntimeError, "histc: the input must be floating"),
)


# ---- searching


def _searched(
    sorted_sequence: Tensor, input: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> tuple[Any, ...]:
    values = input if isinstance(input, Tensor) else as_tensor(input, device=sorted_sequence.device)
    if side not in (None, "left", "right"):
        raise ArgumentValueError(message("searchsorted", f"side must be 'left' or 'right', got {side!r}"))
    if side == "left" and right:
        raise ArgumentValueError(
            message("searchsorted", "side='left' and right=True contradict each other", hint="give one of them")
        )
    shape = sorted_sequence.shape
    if not shape or (len(shape) > 1 and shape[:-1] != values.shape[:-1]):
        raise ShapeError(
            message("searchsorted", "the sequence must be 1-d, or have the leading dimensions of the values",
                    [("sorted_sequence", sorted_sequence._spec()), ("input", values._spec())])
        )  # fmt: skip
    if sorter is not None and sorter.shape != shape:
        raise ShapeError(
            message("searchsorted", "the sorter must have the shape of the sequence", [("sorter", sorter._spec())])
        )
    return sorted_sequence, values, out_int32, None, "right" if right else side or "left", sorter


def _searched_batch(
    b: Any, seq: Tensor, values: Tensor, out_int32: bool, right: Any, side: str, sorter: Tensor | None
) -> Any:
    if seq.ndim == 1 and not b.batched[0] and not b.batched[2]:
        return b.run(seq, values, out_int32, right, side, sorter)  # one sequence for all values, of whatever shape
    seq, values = b.spread(seq, b.batched[0]), b.spread(values, b.batched[1])
    sorter = None if sorter is None else b.spread(sorter, b.batched[2])
    rows = values if seq.ndim > 2 else values.reshape(b.size, values.numel() // b.size)  # a row for each sequence
    return b.run(seq, rows, out_int32, right, side, sorter).reshape(values.shape)


@primitive(
    "search",
    prepare=_searched,
    batch=_searched_batch,
    dtypes="fi",
    infer=lambda seq, input, out_int32, right, side, sorter: Spec(
        input.shape, np.dtype(np.int32 if out_int32 else np.int64), input.device
    ),
    out=True,
)
def searchsorted(
    sorted_sequence: Array,
    input: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Any:
    """Where values would go in a sorted sequence to keep it sorted: $s_{i-1} < v \\le s_i$.

    Args:
        sorted_sequence: in order along its last dimension; 1-d, or with the leading dimensions of ``input``
        input: the values, a tensor or a number
        out_int32: int32 instead of int64
        right, side: ``right=True`` or ``side="right"`` is $s_{i-1} \\le v < s_i$
        sorter: the indices that sort a sequence that is not in order

    Raises:
        RuntimeError: leading dimensions that differ
        ValueError: ``side`` is neither, or contradicts ``right``

    >>> import genesis
    >>> genesis.searchsorted(genesis.tensor([1., 3., 5.]), genesis.tensor([3., 4.]))
    tensor([1, 2])
    """
    seq, values = widened(sorted_sequence), widened(input)
    seq = seq if sorter is None else np.take_along_axis(seq, sorter, -1)
    if seq.ndim == 1:
        indices = np.searchsorted(seq, values, side)
    else:
        count = math.prod(seq.shape[:-1])
        rows = zip(seq.reshape(count, seq.shape[-1]), values.reshape(count, values.shape[-1]), strict=True)
        indices = np.array([np.searchsorted(s, v, side) for s, v in rows]).reshape(values.shape)
    return np.asarray(indices).astype(np.int32 if out_int32 else np.int64)


samples(
    searchsorted,
    lambda t: [
        case(t(5).sort().values, t(2, 3)),
        case(t(2, 5).sort().values, t(2, 3), right=True),
        case(t(5).sort().values, 0.5, out_int32=True),
    ],
)

wrong_inputs(
    searchsorted,
    (lambda t: case(t(2, 3), t(3)), RuntimeError, "searchsorted: the sequence must be 1-d, or have the leading"),
    (lambda t: case(t(3), 1, side="left", right=True), ValueError, "side='left' and right=True contradict"),
)


@composite(dtypes="fi", method=False, out=True)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket, between sorted boundaries, that each element falls into, $b_{i-1} < x \\le b_i$; see `searchsorted`.

    Raises:
        RuntimeError: the boundaries are not 1-d

    >>> import genesis
    >>> genesis.bucketize(genesis.tensor([0., 2.]), genesis.tensor([1., 3.]))
    tensor([0, 1])
    """
    if boundaries.ndim != 1:
        raise ShapeError(message("bucketize", f"the boundaries must be 1-d, they have {boundaries.ndim} dimensions"))
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


samples(bucketize, lambda t: [case(t(2, 3), t(5).sort().values), case(0.5, t(5).sort().values, right=True)])

wrong_inputs(
    bucketize,
    (lambda t: case(t(3), t(2, 3)), RuntimeError, "bucketize: the boundaries must be 1-d, they have 2 dimensions"),
)


__all__ = ["bincount", "bucketize", "histc", "searchsorted", "unique", "unique_consecutive"]
