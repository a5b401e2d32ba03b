"""Elements by their rank: the k-th, the middle one, the most frequent, and quantiles, which lie between two.

Values are differentiable, through the positions they came from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.kinds import case, check_empty, composite, normalize_dim, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import as_tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.arithmetic import lerp
from genesis.ops.pointwise.choice import where
from genesis.ops.reductions.along import check_floating, check_ordered, pick, resized, widened
from genesis.ops.reductions.extremes import argmax
from genesis.ops.reductions.scan import cummax
from genesis.ops.reductions.sort import argsort, sort
from genesis.ops.shapes.join import cat

_I64 = np.dtype(np.int64)
_out_of_range = (lambda t: case(t(2, 3), dim=2), IndexError, "dim 2 is out of range for 2 dimensions")


@named_result
class kthvalue_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    values: Tensor
    indices: Tensor


@named_result
class median_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


@named_result
class mode_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


@primitive(
    "sort",
    infer=lambda input, k, dim: Spec(resized(input.shape, dim, 1), _I64, input.device),
    method=False,
    torch_name="",
    dtypes="fib",
)
def kth_position(input: Array, k: int, dim: int) -> Any:
    """Where along ``dim``, which is kept, the ``k``-th smallest element is; what `kthvalue` and `median` are made of.

    >>> import genesis
    >>> from genesis.ops.reductions.ranks import kth_position
    >>> kth_position(genesis.tensor([3., 1., 2.]), 2, 0)
    tensor([2])
    """
    return np.argpartition(widened(input), k - 1, dim).take([k - 1], dim) if input.ndim else np.zeros((), _I64)


samples(kth_position, lambda t: [case(t(3, 4), 2, 1), case(t(3, 4), 3, 0), case(t(), 1, 0)])


@composite(dtypes="fi", out=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The ``k``-th smallest element along ``dim`` (counted from 1) and its index.

    Raises:
        RuntimeError: there are fewer than ``k``, or a complex tensor
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.kthvalue(genesis.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """
    check_ordered("kthvalue", input)
    d = normalize_dim("kthvalue", dim, input.ndim)
    check_empty("kthvalue", input.shape, (d,))
    size = input.shape[d] if input.ndim else 1
    if not 1 <= k <= size:
        raise ShapeError(
            message("kthvalue", f"k={k} is not between 1 and the size {size} of dim {dim}", [("input", input._spec())])
        )
    return kthvalue_result(*pick(input, d, kth_position(input, int(k), d), keepdim))


samples(kthvalue, lambda t: [case(t(3, 4), 2), case(t(3, 4), 1, 0, True), case(t(5), 5), case(t(), 1)])

wrong_inputs(
    kthvalue,
    (lambda t: case(t(3), 4), RuntimeError, "kthvalue: k=4 is not between 1 and the size 3 of dim -1"),
    (lambda t: case(t(2, 3), 1, 2), IndexError, "kthvalue: dim 2 is out of range"),
)


@composite(dtypes="fi")
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower of two: of all, or along ``dim`` with its index; nan if there is one.

    The gradient goes to the element at the index, also where others are equal. Of no floating elements it is nan.

    Raises:
        IndexError: a dim out of range, or of size 0
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.median(genesis.tensor([3., 1., 2., 9.]))
    tensor(2.)
    """
    if dim is None:
        flat = input.reshape(-1)
        nothing = input.is_floating_point() and not flat.numel()
        return flat.sum() * float("nan") if nothing else median(flat, 0).values
    check_ordered("median", input)
    d = normalize_dim("median", dim, input.ndim)
    check_empty("median", input.shape, (d,))
    position = kth_position(input, (input.shape[d] + 1) // 2 if input.ndim else 1, d)
    if input.is_floating_point():
        nan = input.isnan()
        position = where(nan.any(d, True), argmax(nan, d, True), position)
    return median_result(*pick(input, d, position, keepdim))


samples(
    median, lambda t: [case(t(3, 5)), case(t(4)), case(t(3, 5), 0), case(t(3, 4), -1, True), case(t()), case(t(), 0)]
)

wrong_inputs(median, _out_of_range, (lambda t: case(t(0, 2), 0), IndexError, "median: dim 0 has size 0"))


@composite(dtypes="fib", out=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along ``dim``, the smallest if there are several, and the index of its last occurrence.

    Raises:
        IndexError: a dim out of range, or of size 0
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.mode(genesis.tensor([3, 1, 2, 1]))
    mode_result(values=tensor(1), indices=tensor(3))
    """
    d = normalize_dim("mode", dim, input.ndim)
    check_empty("mode", input.shape, (d,))
    if not input.ndim:
        return mode_result(*pick(input, d, argsort(input), keepdim))
    values, order = sort(input.detach().movedim(d, -1))
    first = cat([values[..., :1] != values[..., :1], values[..., 1:] != values[..., :-1]], -1)
    position = arange(input.shape[d], device=input.device)
    run = position - cummax(where(first, position, 0), -1).values  # how many equals came before
    index = order.gather(-1, argmax(run, -1, True)).movedim(-1, d)
    return mode_result(*pick(input, d, index, keepdim))


samples(mode, lambda t: [case(t(3, 5)), case(t(3, 4), 0, True), case(t())])

wrong_inputs(mode, _out_of_range, (lambda t: case(t(0, 2), 0), IndexError, "mode: dim 0 has size 0"))


_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _fractions(input: Tensor, q: Any) -> Tensor:
    """``q`` as a tensor of the input's dtype, in [0, 1]."""
    part = as_tensor(q, dtype=input.dtype, device=input.device)
    if part.ndim > 1:
        raise ShapeError(
            message("quantile", f"q must be a number or have one dimension, it has {part.ndim}", [("q", part._spec())])
        )
    known = (
        [q]
        if isinstance(q, int | float)
        else np.asarray(part._array, np.float64).reshape(-1).tolist()
        if isinstance(part._array, np.ndarray)
        else []
    )
    for value in known:
        if not 0 <= value <= 1:
            raise ShapeError(message("quantile", f"q must be between 0 and 1, got {value}"))
    return part


@composite(halves="wide", dtypes="f", out=True, autocast="float32:cpu")
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The value below which a part ``q`` of the elements lies: number $q (n - 1)$ in order, counted from 0.

    Args:
        q: a number or a tensor in [0, 1]; a 1-d tensor adds a leading dimension to the result
        dim: along which dimension; None: of all elements
        interpolation: between neighbours: "linear", "lower", "higher", "midpoint" or "nearest"

    Raises:
        RuntimeError: q outside [0, 1], nothing to take a quantile of, or a tensor that is not floating
        ValueError: an unknown interpolation
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.quantile(genesis.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    check_floating("quantile", input, "floating")
    if interpolation not in _BETWEEN:
        raise ArgumentValueError(
            message("quantile", f"interpolation must be one of {', '.join(_BETWEEN)}, got {interpolation!r}")
        )
    part = _fractions(input, q)
    d = None if dim is None else normalize_dim("quantile", dim, input.ndim)
    rows = input.reshape(-1) if d is None or not input.ndim else input.movedim(d, -1)
    if not rows.shape[-1]:
        raise ShapeError(message("quantile", "there is nothing to take a quantile of", [("input", input._spec())]))
    ordered, position = sort(rows).values, part.reshape(-1) * (rows.shape[-1] - 1)
    result = between(lambda at: ordered.index_select(-1, at), position, interpolation)
    result = where(rows.isnan().any(-1, True), float("nan"), result).movedim(-1, 0)
    if keepdim and input.ndim:
        result = result.reshape([-1] + [1] * input.ndim) if d is None else result.unsqueeze(d + 1)
    return result if part.ndim else result.squeeze(0)


samples(
    quantile,
    lambda t: [
        case(t(3, 5), 0.3),
        case(t(3, 5), 0.75, 1),
        case(t(5), 0.5, keepdim=True),
        case(t(), 0.5),
        case(t(3, 5), 0.3, 0, True, interpolation="lower"),
        case(t(3, 5), t(2, low=0.1, high=0.9), 1),
    ],
)

wrong_inputs(
    quantile,
    (lambda t: case(t(3), 1.5), RuntimeError, "quantile: q must be between 0 and 1, got 1.5"),
    (lambda t: case(t(3), 0.5, 1), IndexError, "dim 1 is out of range"),
    (
        lambda t: case(t(3), 0.5, interpolation="cubic"),
        ValueError,
        "interpolation must be one of linear, lower, higher",
    ),
    (lambda t: case(t.int(3), 0.5), RuntimeError, "quantile: the input must be floating"),
)


def between(elements: Callable[[Tensor], Tensor], position: Tensor, interpolation: str) -> Tensor:
    """Elements at fractional places of rows in order; ``elements`` gives those at whole ones."""
    if interpolation == "nearest":
        position = position.round()
    low = position.detach().ceil() if interpolation == "higher" else position.detach().floor()
    below = elements(low.long())
    if interpolation not in ("linear", "midpoint"):
        return below
    above = elements(position.detach().ceil().long())
    return lerp(below, above, position - low if interpolation == "linear" else 0.5)


__all__ = ["kthvalue", "median", "mode", "quantile"]
