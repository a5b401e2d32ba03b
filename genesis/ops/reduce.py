"""Reductions: sums, means, extremes, counts and norms over some or all dimensions (`ops/spread.py`: var and std).

The kind (`core/call/kinds/reduction.py`) brings ``dim`` into the form of a tuple of non-negative integers, knows
``keepdim`` and the NumPy spellings ``axis`` and ``keepdims``, and infers the result; an op says how to compute and how
to go back.

- 16-bit floats are accumulated in float32 and rounded once.
- Equal maxima share the gradient evenly; ``max(x, dim)`` sends it to the index it returns.
- A norm of zero has the gradient zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, UnsupportedError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import (
    ALL_DIMS,
    case,
    check_empty,
    composite,
    normalize_dim,
    normalize_dims,
    primitive,
    reduced_shape,
    reduction,
)
from genesis.core.graph.tensor import Tensor
from genesis.ops.along import (
    WIDE,
    average,
    axes,
    check_floating,
    count,
    fold,
    pick,
    product_of_others,
    real_of,
    restore,
    rounded,
    total,
    widened,
)
from genesis.ops.choice import maximum, minimum
from genesis.ops.spread import std, std_mean, var, var_mean

Dims = int | Sequence[int] | None

_some = lambda t: [
    case(t(3, 4)),
    case(t(3, 4), 1),
    case(t(2, 3, 4), (0, -1)),
    case(t(2, 3), -1, True),
    case(t()),
    case(t(), 0),
    case(t(0, 3), 1),
]
_usual = lambda t: [*_some(t), case(t(0, 3), 0, True), case(t(0))]
_one_dim = lambda t: [
    case(t(3, 4)),
    case(t(3, 4), -1),
    case(t(2, 3), 0, True),
    case(t()),
    case(t(), 0),
    case(t(0, 3), 1),
]
_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")
_no_identity = (lambda t: case(t(0, 3), 0), IndexError, "dim 0 has size 0 and this reduction has no identity")


# ---- sums and products


@reduction(
    {"input": lambda g, input_shape, dim: restore(g, input_shape, dim)}, jvp="linear", result="sum", autocast="float32"
)
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over ``dim`` (None: all), $\\sum_i x_i$.

    Integers and bool are summed as int64; an empty sum is 0.

    Raises:
        IndexError: a dim out of range
        RuntimeError: a dim named twice

    >>> import genesis
    >>> genesis.sum(genesis.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    return fold(np.add, input, dim, keepdim, dtype)


samples(sum, _usual)

wrong_inputs(sum, _out_of_range, (lambda t: case(t(2, 3), (0, 0)), RuntimeError, "names a dimension twice"))


@reduction(
    {"input": lambda g, input_shape, dim: restore(g / count(input_shape, dim), input_shape, dim)},
    jvp="linear",
    result="float",
    dtypes="fc",
)
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Mean over ``dim`` (None: all), $\\frac{1}{n} \\sum_i x_i$; nan of nothing.

    Raises:
        RuntimeError: an integer tensor without ``dtype=``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.mean(genesis.tensor([1., 2., 6.]))
    tensor(3.)
    """
    return rounded(average(input.astype(WIDE.get(dtype, dtype), copy=False), dim, keepdim), dtype)


samples(mean, _some)

wrong_inputs(mean, _out_of_range, (lambda t: case(t.int(3)), RuntimeError, "mean: the input must be floating"))


@reduction(
    {"input": lambda g, input, dim: restore(g, input.shape, dim).masked_fill(input.isnan(), 0)},
    result="sum",
    dtypes="fib",
)
def nansum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over ``dim`` (None: all) with nan counted as zero.

    >>> import genesis
    >>> genesis.nansum(genesis.tensor([1., float("nan"), 2.]))
    tensor(3.)
    """
    return fold(np.add, np.where(np.isnan(input), np.zeros((), input.dtype), input), dim, keepdim, dtype)


samples(nansum, _usual)

wrong_inputs(nansum, _out_of_range)


@composite(halves="wide", dtypes="f")
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over ``dim`` (None: all) of the elements that are not nan.

    >>> import genesis
    >>> genesis.nanmean(genesis.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
    return nansum(input, dim, keepdim, dtype=dtype) / (~input.isnan()).sum(dim, keepdim)


samples(nanmean, _some)

wrong_inputs(nanmean, _out_of_range)


@reduction(
    {"input": lambda g, input, dim: restore(g, input.shape, dim) * product_of_others(input, dim)},
    result="sum",
    autocast="float32",
)
def prod(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over ``dim`` (None: all), $\\prod_i x_i$; 1 of nothing.

    Integers and bool are multiplied as int64. The gradient is right where elements are zero, too.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.prod(genesis.tensor([2., 3., 4.]))
    tensor(24.)
    """
    return fold(np.multiply, input, dim, keepdim, dtype)


samples(prod, _usual)

wrong_inputs(prod, _out_of_range)


# ---- extremes


def _shared_evenly(g: Tensor, input: Tensor, out: Tensor, dim: Any, keepdim: bool) -> Tensor:
    at = (input == restore(out, input.shape, dim)).to(g.dtype)
    return at * restore(g / at.sum(dim, keepdim), input.shape, dim)


@reduction({"input": _shared_evenly}, empty=False, dtypes="fib")
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Largest element over ``dim`` (None: all); nan if there is one. Equal maxima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([5., 7.])
    """
    return np.maximum.reduce(input, axes(input, dim), None, None, keepdim)


samples(amax, _some)

wrong_inputs(amax, _out_of_range, _no_identity)


@reduction({"input": _shared_evenly}, empty=False, dtypes="fib")
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Smallest element over ``dim`` (None: all); nan if there is one. Equal minima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return np.minimum.reduce(input, axes(input, dim), None, None, keepdim)


samples(amin, _some)

wrong_inputs(amin, _out_of_range, _no_identity)


def _position_batch(b: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    """Positions in all of a sample are positions in its rows put end to end."""
    n = x.ndim - 1
    if not n:
        return b.run(x.unsqueeze(1), (1,), False)
    if len(dim) == 1:
        return b.run(x, (dim[0] + 1,), keepdim)
    found = b.run(x.reshape(b.size, math.prod(x.shape[1:])), (1,), False)
    return found.reshape(b.size, *[1] * n) if keepdim else found


def _position(find: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if 1 < len(dim) < x.ndim:
        raise ArgumentError(
            message(find.__name__, f"dim must be one integer or None, got {dim}", hint="flatten these dimensions first")
        )
    # as methods: np.argmax takes 1 us more
    return find(widened(x), None if len(dim) >= x.ndim else dim[0], keepdims=keepdim)


@reduction(result="int64", empty=False, dtypes="fib", batch=_position_batch)
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the largest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1, 0])
    """
    return _position(np.ndarray.argmax, input, dim, keepdim)


samples(argmax, _one_dim)

wrong_inputs(argmax, _out_of_range, _no_identity)


@reduction(result="int64", empty=False, dtypes="fib", batch=_position_batch)
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along ``dim``, or in the flattened tensor for None; the first of equals.

    Raises:
        IndexError: a dim out of range, or of size 0
        TypeError: several dims

    >>> import genesis
    >>> genesis.argmin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([0, 1])
    """
    return _position(np.ndarray.argmin, input, dim, keepdim)


samples(argmin, _one_dim)

wrong_inputs(argmin, _out_of_range, _no_identity)


class max_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    values: Tensor
    indices: Tensor


class min_result(NamedTuple):  # noqa: N801
    values: Tensor
    indices: Tensor


class aminmax_result(NamedTuple):  # noqa: N801
    min: Tensor
    max: Tensor


def _along(name: str, find: Any, input: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    dim = normalize_dim(name, dim, input.ndim)
    check_empty(name, input.shape, (dim,))
    return pick(input, dim, find(input, dim, True), keepdim)


@composite(dtypes="fib")
def max(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool | None = None
) -> Any:
    """Largest element: of all, along ``dim`` with its indices, or of two tensors.

    ``max(x)`` gives one value; ``max(x, dim)`` a named tuple ``(values, indices)``, the gradient going to that index;
    ``max(x, other)`` is `maximum`.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.max(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).indices
    tensor([1, 0])
    """
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    if dim is None:
        return amax(input)
    return maximum(input, dim) if isinstance(dim, Tensor) else max_result(*_along("max", argmax, input, dim, keepdim))


samples(max, lambda t: [*_one_dim(t), case(t(3, 4), axis=1, keepdims=True), case(t(2, 3), t(3))])

wrong_inputs(max, _out_of_range, _no_identity)


@composite(dtypes="fib")
def min(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool | None = None
) -> Any:
    """Smallest element: of all, along ``dim`` with its indices, or of two tensors; see `max`.

    >>> import genesis
    >>> genesis.min(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).values
    tensor([1., 2.])
    """
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    if dim is None:
        return amin(input)
    return minimum(input, dim) if isinstance(dim, Tensor) else min_result(*_along("min", argmin, input, dim, keepdim))


samples(min, lambda t: [*_one_dim(t), case(t(3, 4), axis=1, keepdims=True), case(t(2, 3), t(3))])

wrong_inputs(min, _out_of_range, _no_identity)


@composite(dtypes="fib")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Smallest and largest element over ``dim`` (None: all), as a named tuple ``(min, max)``.

    >>> import genesis
    >>> genesis.aminmax(genesis.tensor([1., 5., 2.])).max
    tensor(5.)
    """
    return aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim))


samples(aminmax, lambda t: [case(t(3, 4)), case(t(3, 4), dim=1), case(t(2, 3), dim=-1, keepdim=True), case(t(), dim=0)])


# ---- counting


def _flag(found: Any, input: Any) -> Any:
    """bool, but uint8 of uint8: what PyTorch had before it had bool."""
    return found.astype(np.uint8) if input.dtype == np.uint8 else found


@reduction(result="flag")
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether one element over ``dim`` (None: all) is non-zero; False of nothing. The result is bool (uint8 of uint8).

    >>> import genesis
    >>> genesis.any(genesis.tensor([False, True]))
    tensor(True)
    """
    return _flag(np.logical_or.reduce(input, axes(input, dim), None, None, keepdim), input)


samples(any, _usual)

wrong_inputs(any, _out_of_range)


@reduction(result="flag")
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether all elements over ``dim`` (None: all) are non-zero; True of nothing. The result is bool (uint8 of uint8).

    >>> import genesis
    >>> genesis.all(genesis.tensor([False, True]))
    tensor(False)
    """
    return _flag(np.logical_and.reduce(input, axes(input, dim), None, None, keepdim), input)


samples(all, _usual)

wrong_inputs(all, _out_of_range)


@composite(dtypes="fcib")
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements over ``dim`` (None: all) are not zero, as int64.

    >>> import genesis
    >>> genesis.count_nonzero(genesis.tensor([0., 1., 2.]))
    tensor(2)
    """
    return (input != 0).sum(dim)


samples(
    count_nonzero, lambda t: [case(t(3, 4)), case(t(3, 4), 1), case(t(2, 3, 4), (0, -1)), case(t(0, 3), 1), case(t())]
)


# ---- norms and logarithms of sums


def _normed(input: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any) -> tuple[Any, ...]:
    if p == "nuc":
        raise UnsupportedError(
            message("norm", "the nuclear norm is not there", hint='p="fro" is the norm of all elements')
        )
    x = input if dtype is None else input.to(dtype)
    check_floating("norm", x)
    p, dims = 2.0 if p in ("fro", None) else float(p), normalize_dims("norm", dim, x.ndim) or ALL_DIMS[x.ndim]
    if not 0 <= p < math.inf:
        check_empty("norm", x.shape, dims)
    return x, p, dims, keepdim, None


def _power(x: Tensor, p: float) -> Tensor:
    """$x^p$, and zero where x is zero."""
    return (x.masked_fill(x == 0, 1) ** p).masked_fill(x == 0, 0)


def _norm_rule(g: Tensor, input: Tensor, out: Tensor, p: float, dim: Any, keepdim: bool) -> Tensor:
    shape = input.shape
    if p == 2:
        return input * restore(g / out.masked_fill(out == 0, math.inf), shape, dim)
    if p == 0:
        return restore(g * 0, shape, dim)
    if math.isinf(p):
        return input.sgn() * _shared_evenly(g, input.abs(), out, dim, keepdim)
    return input.sgn() * _power(input.abs(), p - 1) * restore(g * _power(out, 1 - p), shape, dim)


@primitive(
    "reduction",
    {"input": _norm_rule},
    prepare=_normed,
    dtypes="fc",
    autocast="float32",
    infer=lambda input, p, dim, keepdim, dtype: Spec(
        reduced_shape(input.shape, dim, keepdim), real_of(input.dtype), input.device
    ),
)
def norm(
    input: Array, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """Vector norm over ``dim`` (None: all), $(\\sum_i |x_i|^p)^{1/p}$.

    Args:
        p: any number; inf is the largest and -inf the smallest magnitude, 0 counts what is not zero, "fro" is 2
        dtype: what the input is converted to first

    The gradient is zero where the norm, or for p < 1 the element, is zero.

    Raises:
        RuntimeError: an integer tensor
        IndexError: a dim out of range, or of size 0 where p is negative or infinite

    >>> import genesis
    >>> genesis.norm(genesis.tensor([3., 4.]))
    tensor(5.)
    """
    size, axis = np.abs(widened(input)), axes(input, dim)
    if math.isinf(p):
        out = (np.maximum if p > 0 else np.minimum).reduce(size, axis, None, None, keepdim)
    elif p == 0:
        out = np.add.reduce(size != 0, axis, size.dtype, None, keepdim)
    elif p == 2:
        out = np.sqrt(total(size * size, dim, keepdim))
    elif p == 1:
        out = total(size, dim, keepdim)
    else:
        out = total(size**p, dim, keepdim) ** (1 / p)
    return rounded(out, real_of(input.dtype))


samples(
    norm,
    lambda t: [
        case(t(3, 4)),
        case(t(3, 4), 1, 1),
        case(t(3, 4), 3.0, -1, True),
        case(t(3, 4), math.inf),
        case(t(3, 4), -math.inf, 0),
        case(t(3, 4), 0),
        case(t(3, 4), 0.5, (0, 1)),
        case(t()),
        case(t(0, 3), 2, 0),
    ],
)

wrong_inputs(
    norm,
    (lambda t: case(t(2, 3), 2, 2), IndexError, "norm: dim 2 is out of range for 2 dimensions"),
    (lambda t: case(t.int(3)), RuntimeError, "norm: the input must be floating or complex"),
)


def _floating(dtype: Any) -> Any:
    return dtypes.as_np(dtypes.get_default_dtype()) if dtype.kind in "biu" else dtype


@reduction(
    {"input": lambda g, input, out, dim: restore(g, input.shape, dim) * (input - restore(out, input.shape, dim)).exp()},
    dtypes="fc",
    autocast="float32",
    infer=lambda input, dim, keepdim: Spec(
        reduced_shape(input.shape, dim, keepdim), _floating(input.dtype), input.device
    ),
)
def logsumexp(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Logarithm of a sum of exponentials over ``dim`` (None: all), $\\ln \\sum_i e^{x_i}$, without overflow; -inf of
    nothing.

    >>> import genesis
    >>> genesis.logsumexp(genesis.tensor([100., 100.]), dim=0)
    tensor(100.6931)
    """
    dtype = _floating(input.dtype)
    x, axis = widened(input.astype(dtype, copy=False)), axes(input, dim)
    top = np.maximum.reduce(x.real, axis, None, None, True, -np.inf)
    top = np.where(np.isfinite(top), top, 0)
    found = np.log(total(np.exp(x - top), dim, keepdim))
    return rounded(found + top.reshape(found.shape), dtype)


samples(logsumexp, lambda t: [case(t(3, 4), 1), case(t(3, 4), (0, 1)), case(t(2, 3), -1, True), case(t(), 0)])

wrong_inputs(logsumexp, _out_of_range)


__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]
