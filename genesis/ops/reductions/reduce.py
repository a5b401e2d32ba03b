"""Reductions over some or all dimensions: sums, means, products and counts.

The kind (`core/call/kinds/reduction.py`) brings ``dim`` into the form of a tuple of non-negative integers, knows
``keepdim`` and the NumPy spellings ``axis`` and ``keepdims``, and infers the result; an op says how to compute and how
to go back. 16-bit floats are accumulated in float32 and rounded once. Beside this file: `extremes`, `norms`, and
`spread` for variances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.base.quiet import unnamed
from genesis.core.call.kinds import (
    case,
    composite,
    reduction,
)
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import WIDE, average, axes, count, fold, product_of_others, restore, rounded
from genesis.ops.reductions.spread import std, std_mean, var, var_mean

Dims = int | Sequence[int] | None

some_dims = lambda t: [
    case(t(3, 4)),
    case(t(3, 4), 1),
    case(t(2, 3, 4), (0, -1)),
    case(t(2, 3), -1, True),
    case(t()),
    case(t(), 0),
    case(t(0, 3), 1),
]
_usual = lambda t: [*some_dims(t), case(t(0, 3), 0, True), case(t(0))]
_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


# ---- sums and products


@reduction(
    {"input": lambda g, input_shape, dim: restore(g, input_shape, dim)},
    jvp="linear",
    result="sum",
    autocast="float32:gpu",
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
@unnamed
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


samples(mean, some_dims)

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


@composite(halves="wide", dtypes="f", out=True)
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over ``dim`` (None: all) of the elements that are not nan.

    >>> import genesis
    >>> genesis.nanmean(genesis.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
    return nansum(input, dim, keepdim, dtype=dtype) / (~input.isnan()).sum(dim, keepdim)


samples(nanmean, some_dims)

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


# ---- counting


def _flag(result: Any, input: Any) -> Any:
    """bool, but uint8 of uint8: what PyTorch had before it had bool."""
    return result.astype(np.uint8) if input.dtype == np.uint8 else result


@reduction(result="flag", quiet=True)
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether one element over ``dim`` (None: all) is non-zero; False of nothing. The result is bool (uint8 of uint8).

    >>> import genesis
    >>> genesis.any(genesis.tensor([False, True]))
    tensor(True)
    """
    return _flag(np.logical_or.reduce(input, axes(input, dim), None, None, keepdim), input)


samples(any, _usual)

wrong_inputs(any, _out_of_range)


@reduction(result="flag", quiet=True)
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


def _count_nonzero(self: Tensor, *dim: Any, **named: Any) -> Tensor:
    several = (dim,) if len(dim) > 1 else dim
    return count_nonzero(self, *several, **named)  # type: ignore[no-any-return]


_count_nonzero.__name__, _count_nonzero.__doc__ = "count_nonzero", count_nonzero.__doc__
Tensor.count_nonzero = _count_nonzero

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "mean",
    "nanmean",
    "nansum",
    "prod",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]
