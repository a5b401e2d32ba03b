"""Running reductions along a dimension: element i of the result is the reduction of the elements up to i."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.errors import ShapeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.halves import F32, F64
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.elementwise import log_of_sum
from genesis.ops.indexing.gather import coordinates
from genesis.ops.reductions.along import WIDE, check_floating, check_ordered, pick, rounded, widened
from genesis.ops.shapes.join import cat
from genesis.ops.shapes.narrow import pad_dim

_usual = lambda t: [
    case(t(3, 4), 1),
    case(t(3, 4), 0),
    case(t(2, 3), -1),
    case(t(5), 0),
    case(t(), 0),
    case(t(0, 3), 0),
    case(t(0, 3), 1),
]
_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


def _prepared(name: str) -> Any:
    def prepare(input: Tensor, dim: int, dtype: Any) -> tuple[Any, ...]:
        mine = input._array.dtype
        wide = dtypes.as_np(dtype) if dtype is not None else np.dtype(np.int64) if mine.kind in "iub" else mine
        return input, normalize_dim(name, dim, input.ndim), wide

    return prepare


def _infer(input: Spec, dim: int, dtype: Any) -> Spec:
    return Spec(input.shape, dtype, input.device)


_IN_DOUBLE = (*WIDE, F32)  # a running sum is a sum one after the other: its error grows with its length


def _accumulate(ufunc: Any, x: Any, dim: int, dtype: Any) -> Any:
    if not x.ndim:
        return x.astype(dtype)
    return packed(rounded(ufunc.accumulate(x, dim, F64 if dtype in _IN_DOUBLE else dtype), dtype))


def running_back(g: Tensor, ratio: Tensor, dim: int) -> Tensor:
    """$y_i = g_i + r_i y_{i+1}$ along ``dim``: how the gradient of a scan runs back; there is one ratio less than
    elements.

    By doubling: y_i over a window of s elements, and the product of its ratios, give those of 2 s. It takes
    log2(n) rounds and divides by nothing, so zeros need no special case, here and in the derivatives of this.
    """
    size, step = g.shape[dim], 1
    ratio = pad_dim(ratio, dim, 0, size)
    while step < size:
        g_ahead, ratio_ahead = (pad_dim(x.narrow(dim, step, size - step), dim, 0, size) for x in (g, ratio))
        g, ratio, step = g + ratio * g_ahead, ratio * ratio_ahead, 2 * step
    return g


@primitive(
    "scan",
    {"input": lambda g, dim: g.flip(dim).cumsum(dim).flip(dim)},
    jvp="linear",
    infer=_infer,
    inplace=True,
    prepare=_prepared("cumsum"),
    dtypes="fcib",
    autocast="float32:gpu",
    out=True,
)
def cumsum(input: Array, dim: int, *, dtype: Any = None) -> Any:
    """Running sum along ``dim``, $y_i = x_1 + ... + x_i$; integers and bool give int64.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.cumsum(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    """
    return _accumulate(np.add, input, dim, dtype)


samples(cumsum, _usual)

wrong_inputs(cumsum, _out_of_range)


def _cumprod_rule(g: Tensor, input: Tensor, dim: int) -> Tensor:
    """The product of the elements before, times what comes back from those after."""
    if not input.ndim or not input.numel():
        return g
    size = input.shape[dim]
    one = input.new_ones(input.narrow(dim, 0, 1).shape)
    before = cat([one, input.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    return before * running_back(g, input.narrow(dim, 1, size - 1), dim)


@primitive(
    "scan",
    {"input": _cumprod_rule},
    infer=_infer,
    inplace=True,
    prepare=_prepared("cumprod"),
    dtypes="fcib",
    autocast="float32:gpu",
    out=True,
)
def cumprod(input: Array, dim: int, *, dtype: Any = None) -> Any:
    """Running product along ``dim``, $y_i = x_1 ... x_i$; integers and bool give int64.

    The gradient is right where elements are zero, too.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.cumprod(genesis.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    return _accumulate(np.multiply, input, dim, dtype)


samples(cumprod, _usual)

wrong_inputs(cumprod, _out_of_range)


def _logcumsumexp_rule(g: Tensor, input: Tensor, out: Tensor, dim: int) -> Tensor:
    """$\\sum_{j \\ge i} g_j e^{x_i - y_j}$; the ratios $e^{y_i - y_{i+1}}$ are at most 1, so nothing overflows."""
    if not input.ndim or not input.numel():
        return g
    size, y = input.shape[dim], out
    if not input.is_complex():
        limits = dtypes.finfo(out.dtype)
        input, y = input.clamp(max=limits.max), out.clamp(limits.min, limits.max)  # inf - inf would be nan
    ratio = (y.narrow(dim, 0, size - 1) - y.narrow(dim, 1, size - 1)).exp()
    return (input - y).exp() * running_back(g, ratio, dim)


def _prepared_floating(input: Tensor, dim: int) -> tuple[Any, ...]:
    check_floating("logcumsumexp", input)
    return input, normalize_dim("logcumsumexp", dim, input.ndim)


@primitive(
    "scan",
    {"input": _logcumsumexp_rule},
    infer=lambda input, dim: input,
    dtypes="fc",
    prepare=_prepared_floating,
    out=True,
)
def logcumsumexp(input: Array, dim: int) -> Any:
    """Running logarithm of a sum of exponentials along ``dim``, $y_i = \\ln(e^{x_1} + ... + e^{x_i})$, without
    overflow.

    Raises:
        RuntimeError: a tensor that is neither floating nor complex
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.logcumsumexp(genesis.tensor([-1000., -1000., 0.]), 0)
    tensor([-1000.0000,  -999.3068,     0.0000])
    """
    if not input.ndim or not input.size:
        return input.copy()
    if input.dtype.kind != "c":
        return packed(rounded(np.logaddexp.accumulate(input.astype(F64, copy=False), dim), input.dtype))
    rows = itertools.accumulate(np.moveaxis(input, dim, 0).astype(np.complex128, copy=False), log_of_sum)
    return rounded(np.stack(list(rows), dim), input.dtype)


samples(logcumsumexp, _usual)

wrong_inputs(
    logcumsumexp, _out_of_range, (lambda t: case(t.int(3), 0), RuntimeError, "logcumsumexp: the input must be floating")
)


# ---- running extremes


@named_result
class cummax_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    values: Tensor
    indices: Tensor


@named_result
class cummin_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


@primitive(
    "scan",
    infer=lambda input, dim, largest: Spec(input.shape, np.dtype(np.int64), input.device),
    method=False,
    torch_name="",
    dtypes="fib",
)
def running_position(input: Array, dim: int, largest: bool) -> Any:
    """Where along ``dim`` the running maximum (or minimum) was last reached; what `cummax` and `cummin` are made of.

    >>> import genesis
    >>> from genesis.ops.reductions.scan import running_position
    >>> running_position(genesis.tensor([1., 3., 2., 3.]), 0, True)
    tensor([0, 1, 1, 3])
    """
    if not input.ndim:
        return np.zeros((), np.int64)
    x = widened(input)
    extreme = (np.maximum if largest else np.minimum).accumulate(x, dim)
    reached = x == extreme
    if x.dtype.kind == "f":
        reached |= x != x  # nan
    return packed(np.maximum.accumulate(np.multiply(reached, coordinates(x.shape)[dim]), dim))


samples(running_position, lambda t: [case(t(3, 4), 1, True), case(t(3, 4), 0, False), case(t(), 0, True)])


def _running(name: str, input: Tensor, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    dim = normalize_dim(name, dim, input.ndim)
    check_ordered(name, input)
    return pick(input, dim, running_position(input, dim, largest), True, distinct=False)


@composite(dtypes="fib", out=True)
def cummax(input: Tensor, dim: int) -> Any:
    """Running maximum along ``dim`` as a named tuple ``(values, indices)``; of equals the last, nan once there is one.

    Raises:
        IndexError: a dim out of range
        RuntimeError: a complex tensor

    >>> import genesis
    >>> genesis.cummax(genesis.tensor([1., 3., 2.]), 0).values
    tensor([1., 3., 3.])
    """
    return cummax_result(*_running("cummax", input, dim, True))


samples(cummax, _usual)

wrong_inputs(cummax, _out_of_range)


@composite(dtypes="fib", out=True)
def cummin(input: Tensor, dim: int) -> Any:
    """Running minimum along ``dim``, with the indices where it was last reached; see `cummax`.

    >>> import genesis
    >>> genesis.cummin(genesis.tensor([3., 1., 2.]), 0).values
    tensor([3., 1., 1.])
    """
    return cummin_result(*_running("cummin", input, dim, False))


samples(cummin, _usual)

wrong_inputs(cummin, _out_of_range)


# ---- differences


@composite(halves="wide", dtypes="fcib", out=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours along ``dim``, $y_i = x_{i+1} - x_i$, taken ``n`` times; for bool, whether they differ.

    Args:
        prepend, append: elements to put before and after along ``dim`` first

    Raises:
        RuntimeError: a 0-d tensor, or a negative ``n``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.diff(genesis.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
    if not input.ndim:
        raise ShapeError(message("diff", "the input needs at least one dimension", [("input", input._spec())]))
    if n < 0:
        raise ShapeError(message("diff", f"n must not be negative, got {n}"))
    dim = normalize_dim("diff", dim, input.ndim)
    if n == 0:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, x.shape[dim])):
        size = max(x.shape[dim] - 1, 0)
        after, before = x.narrow(dim, x.shape[dim] - size, size), x.narrow(dim, 0, size)
        x = after ^ before if x.dtype is dtypes.bool else after - before
    return x


samples(
    diff,
    lambda t: [
        case(t(5)),
        case(t(3, 4), n=2),
        case(t(3, 4), dim=0),
        case(t(3), 5),
        case(t(0, 3)),
        case(t(2, 3), prepend=t(2, 1), append=t(2, 2)),
    ],
)

wrong_inputs(
    diff,
    (lambda t: case(t()), RuntimeError, "diff: the input needs at least one dimension"),
    (lambda t: case(t(3), -1), RuntimeError, "diff: n must not be negative, got -1"),
    (lambda t: case(t(2, 3), dim=2), IndexError, "diff: dim 2 is out of range"),
)


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp"]
