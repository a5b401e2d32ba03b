"""Reductions: sums, means, extremes and norms over some or all dimensions.

The kind (`core/kinds.py`) brings ``dim`` into the form of a tuple of non-negative integers, knows ``keepdim`` and the
NumPy spellings ``axis`` and ``keepdims``, and infers the result; an op says how to compute and how to go back.
16-bit floats are accumulated in float32. Where several elements are the maximum they share its gradient evenly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.base.errors import ArgumentError, message
from genesis.core.dispatch import HALVES
from genesis.core.kinds import case, check_empty, composite, fails, normalize_dim, normalize_dims, reduction
from genesis.core.tensor import Tensor
from genesis.ops.elementwise import exp, log, maximum, minimum, where
from genesis.ops.shape import expand

Dims = int | Sequence[int] | None

_usual = lambda t: [  # noqa: E731
    case(t(3, 4)), case(t(3, 4), 1), case(t(2, 3, 4), (0, -1)), case(t(2, 3), -1, True), case(t()), case(t(), 0), case(t(0, 3), 1),
]  # fmt: skip
_some = lambda t: [case(t(3, 4)), case(t(3, 4), 1), case(t(2, 3, 4), (0, -1)), case(t(2, 3), -1, True), case(t())]  # noqa: E731
_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


def restore(reduced: Tensor, shape: Sequence[int], dim: Sequence[int], keepdim: bool) -> Tensor:
    """Undo a reduction's change of shape: the reduced dimensions come back, expanded to their sizes."""
    ndim = reduced._array.ndim
    if ndim and ndim != len(shape):
        reduced = reduced.reshape([1 if i in dim else n for i, n in enumerate(shape)])
    return expand(reduced, shape)


def axes(x: Any, dim: tuple[int, ...]) -> Any:
    """Dimensions as NumPy wants them: None for all, which it does faster."""
    return None if len(dim) == x.ndim or not x.ndim else dim


# ---- sums and means


@reduction({"input": lambda g, input_shape, dim, keepdim: restore(g, input_shape, dim, keepdim)}, result="sum",
           samples=_usual, autocast="float32", fails=fails(_out_of_range, (lambda t: case(t(2, 3), (0, 0)), RuntimeError, "names a dimension twice")))  # noqa: E501  # fmt: skip
def sum(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum over ``dim`` (None: all), $\\sum_i x_i$.

    Integers and bool are summed as int64; an empty sum is 0.

    Raises:
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.sum(genesis.tensor([[1., 2.], [3., 4.]]), dim=0)
    tensor([4., 6.])
    """
    if dtype in HALVES:
        return np.add.reduce(input, axes(input, dim), np.float32, keepdims=keepdim).astype(dtype)
    return np.add.reduce(input, axes(input, dim), dtype, None, keepdim)


def _count(shape: Sequence[int], dim: Sequence[int]) -> int:
    return math.prod([shape[d] for d in dim if d < len(shape)])


@reduction({"input": lambda g, input_shape, dim, keepdim: restore(g / _count(input_shape, dim), input_shape, dim, keepdim)},
           result="float", dtypes="fc", samples=_some, fails=fails(_out_of_range, (lambda t: case(t.int(3)), RuntimeError, "mean: the input must be floating")))  # noqa: E501  # fmt: skip
def mean(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Mean over ``dim`` (None: all), $\\frac{1}{n} \\sum_i x_i$; nan of nothing.

    Raises:
        RuntimeError: an integer tensor without ``dtype=``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.mean(genesis.tensor([1., 2., 6.]))
    tensor(3.)
    """
    wide = np.float32 if dtype in HALVES else dtype
    total = np.add.reduce(input, axes(input, dim), wide, None, keepdim)
    return np.asarray(total / wide.type(_count(input.shape, dim)) if wide is dtype else total / _count(input.shape, dim)).astype(dtype, copy=False)


@composite(dtypes="f", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1)])
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over ``dim`` with nan counted as zero.

    >>> import genesis
    >>> genesis.nansum(genesis.tensor([1., float("nan"), 2.]))
    tensor(3.)
    """
    return where(input.isnan(), 0, input).sum(dim, keepdim, dtype=dtype)


@composite(dtypes="f", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1)])
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over ``dim`` of the elements that are not nan.

    >>> import genesis
    >>> genesis.nanmean(genesis.tensor([1., float("nan"), 2.]))
    tensor(1.5000)
    """
    return nansum(input, dim, keepdim, dtype=dtype) / (~input.isnan()).sum(dim, keepdim)


def _prod_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
    """The product of all others: by division, except where zeros make that impossible."""
    g, out = restore(g, input.shape, dim, keepdim), restore(out, input.shape, dim, keepdim)
    if input.is_meta or not bool((input == 0).any()):
        return g * (out / input)
    return g * others_product(input, dim)


def others_product(x: Tensor, dim: Sequence[int]) -> Tensor:
    """For each element, the product of the others along ``dim``; right (twice) whatever is zero."""
    if not x.ndim:
        return x.new_ones(x.shape)
    kept = [i for i in range(x.ndim) if i not in dim]
    flat = x.permute([*kept, *dim]).reshape([*(x.shape[i] for i in kept), -1])
    one = flat.new_ones(flat[..., :1].shape)
    before = flat[..., :-1].cumprod(-1) if flat.shape[-1] > 1 else flat[..., :0]
    after = flat[..., 1:].flip(-1).cumprod(-1).flip(-1) if flat.shape[-1] > 1 else flat[..., :0]
    others = _cat([one, before]) * _cat([after, one])
    order = [*kept, *dim]
    return others.reshape([x.shape[i] for i in order]).permute([order.index(i) for i in range(x.ndim)])


def _cat(parts: list[Tensor]) -> Tensor:
    from genesis.ops.join import cat

    return cat(parts, -1)  # type: ignore[no-any-return]


@reduction({"input": _prod_rule}, result="sum", samples=_some, autocast="float32", fails=fails(_out_of_range))
def prod(input: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Product over ``dim`` (None: all), $\\prod_i x_i$; 1 of nothing.

    The gradient is right where elements are zero, too.

    >>> import genesis
    >>> genesis.prod(genesis.tensor([2., 3., 4.]))
    tensor(24.)
    """
    if dtype in HALVES:
        return np.multiply.reduce(input, axes(input, dim), np.float32, keepdims=keepdim).astype(dtype)
    return np.multiply.reduce(input, axes(input, dim), dtype, None, keepdim)


# ---- extremes


def _shared_evenly(g: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
    at = (input == restore(out, input.shape, dim, keepdim)).to(g.dtype)
    return restore(g, input.shape, dim, keepdim) * (at / restore(at.sum(dim, keepdim), input.shape, dim, keepdim))


_no_identity = (lambda t: case(t(0, 3), 0), IndexError, "dim 0 has size 0 and this reduction has no identity")


@reduction({"input": _shared_evenly}, empty=False, dtypes="fib", samples=_some, fails=fails(_out_of_range, _no_identity))
def amax(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Largest element over ``dim`` (None: all); nan if there is one. Equal maxima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([5., 7.])
    """
    return np.maximum.reduce(input, axes(input, dim), keepdims=keepdim)


@reduction({"input": _shared_evenly}, empty=False, dtypes="fib", samples=_some, fails=fails(_out_of_range, _no_identity))
def amin(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Smallest element over ``dim`` (None: all); nan if there is one. Equal minima share the gradient evenly.

    Raises:
        IndexError: a dim out of range, or of size 0

    >>> import genesis
    >>> genesis.amin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1., 2.])
    """
    return np.minimum.reduce(input, axes(input, dim), keepdims=keepdim)


def _flat_or_along(x: Any, dim: tuple[int, ...], keepdim: bool, find: Any) -> Any:
    if len(dim) == 1 and x.ndim:
        return find(x, axis=dim[0], keepdims=keepdim)
    return np.asarray(find(x)).reshape([1] * x.ndim if keepdim else [])


def _comparable(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.kind == "V" else x


@reduction(result="int64", empty=False, dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1), case(t(2, 3), 0, True), case(t())],
           fails=fails(_out_of_range, _no_identity))  # fmt: skip
def argmax(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Index of the largest element along ``dim``, or in the flattened tensor for None; the first of equals.

    >>> import genesis
    >>> genesis.argmax(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([1, 0])
    """
    return _flat_or_along(_comparable(input), dim, keepdim, np.argmax)


@reduction(result="int64", empty=False, dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1), case(t(2, 3), 0, True), case(t())],
           fails=fails(_out_of_range, _no_identity))  # fmt: skip
def argmin(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Index of the smallest element along ``dim``, or in the flattened tensor for None; the first of equals.

    >>> import genesis
    >>> genesis.argmin(genesis.tensor([[1., 5.], [7., 2.]]), dim=1)
    tensor([0, 1])
    """
    return _flat_or_along(_comparable(input), dim, keepdim, np.argmin)


class max_result(NamedTuple):
    values: Tensor
    indices: Tensor


class min_result(NamedTuple):
    values: Tensor
    indices: Tensor


def _extreme(input: Tensor, dim: Any, keepdim: bool, full: Any, where_: Any, pair: Any, form: Any, name: str) -> Any:
    if isinstance(dim, Tensor):
        return pair(input, dim)
    if dim is None:
        return full(input)
    d = normalize_dim(name, dim, input.ndim)
    check_empty(name, input.shape, (d,))
    if not input.ndim:
        return form(input.clone(), where_(input))
    indices = where_(input, d, True)
    values = input.gather(d, indices)
    return form(values, indices) if keepdim else form(values.squeeze(d), indices.squeeze(d))


@composite(dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(2, 3), t(3))], fails=fails(_out_of_range))
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None) -> Any:
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
    return _extreme(input, dim, keepdim, amax, argmax, maximum, max_result, "max")


@composite(dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(2, 3), t(3))], fails=fails(_out_of_range))
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool | None = None) -> Any:
    """Smallest element: of all, along ``dim`` with its indices, or of two tensors; see `max`.

    >>> import genesis
    >>> genesis.min(genesis.tensor([[1., 5.], [7., 2.]]), dim=1).values
    tensor([1., 2.])
    """
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    return _extreme(input, dim, keepdim, amin, argmin, minimum, min_result, "min")


class aminmax_result(NamedTuple):
    min: Tensor
    max: Tensor


@composite(dtypes="fib", samples=lambda t: [case(t(3, 4)), case(t(3, 4), dim=1)])
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Smallest and largest element, as a named tuple.

    >>> import genesis
    >>> genesis.aminmax(genesis.tensor([1., 5., 2.])).max
    tensor(5.)
    """
    return aminmax_result(amin(input, dim, keepdim), amax(input, dim, keepdim))


# ---- counting


@reduction(result="bool", samples=_usual, fails=fails(_out_of_range))
def any(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether one element over ``dim`` (None: all) is non-zero; False of nothing.

    >>> import genesis
    >>> genesis.any(genesis.tensor([False, True]))
    tensor(True)
    """
    return np.any(input, axis=axes(input, dim), keepdims=keepdim)


@reduction(result="bool", samples=_usual, fails=fails(_out_of_range))
def all(input: Array, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether all elements over ``dim`` (None: all) are non-zero; True of nothing.

    >>> import genesis
    >>> genesis.all(genesis.tensor([False, True]))
    tensor(False)
    """
    return np.all(input, axis=axes(input, dim), keepdims=keepdim)


@composite(dtypes="fcib", samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1)])
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements over ``dim`` (None: all) are not zero.

    >>> import genesis
    >>> genesis.count_nonzero(genesis.tensor([0., 1., 2.]))
    tensor(2)
    """
    return (input != 0).sum(dim)


# ---- spread

_spread = lambda t: [case(t(3, 4)), case(t(3, 4), 1), case(t(3, 4), 1, correction=0), case(t(2, 3, 4), (0, 2), correction=2, keepdim=True)]  # noqa: E501, E731


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    if isinstance(dim, bool):  # the old form var(x, unbiased)
        dim, unbiased = None, dim
    if correction is not None and unbiased is not None:
        raise ArgumentError(message("var", "unbiased and correction were both given", hint="correction=1 is unbiased"))
    return dim, (1 if correction is None else correction) if unbiased is None else int(unbiased)


@composite(dtypes="f", samples=_spread, fails=fails(_out_of_range))
def var(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> Tensor:
    """Variance over ``dim`` (None: all), $\\frac{1}{n - c} \\sum_i (x_i - \\bar x)^2$ with correction $c$, 1 unless given.

    Raises:
        TypeError: both ``unbiased`` and ``correction``

    >>> import genesis
    >>> genesis.var(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.6667)
    """
    dim, correction = _correction(dim, unbiased, correction)
    dims = normalize_dims("var", dim, input.ndim)
    away = input - input.mean(dims, True)
    freedom = _count(input.shape, dims) - correction
    squares = (away * away).sum(dims, keepdim)
    return squares / freedom if freedom > 0 else squares * (float("nan") if freedom < 0 or _count(input.shape, dims) <= 1 else math.inf)


@composite(dtypes="f", samples=_spread, fails=fails(_out_of_range))
def std(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> Tensor:
    """Standard deviation, the square root of `var`; its gradient is zero where it is zero.

    >>> import genesis
    >>> genesis.std(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.2910)
    """
    spread = var(input, dim, unbiased, keepdim, correction=correction)
    flat = spread == 0
    return where(flat, 0.0, where(flat, 1.0, spread).sqrt()) if input.requires_grad else spread.sqrt()


@composite(dtypes="f", samples=None)
def var_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> Any:
    """Variance and mean.

    >>> import genesis
    >>> genesis.var_mean(genesis.tensor([1., 3.]))[1]
    tensor(2.)
    """
    dims, _ = _correction(dim, unbiased, None)
    return var(input, dim, unbiased, keepdim, correction=correction), input.mean(dims, keepdim)


@composite(dtypes="f", samples=None)
def std_mean(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> Any:
    """Standard deviation and mean.

    >>> import genesis
    >>> genesis.std_mean(genesis.tensor([1., 3.]))[1]
    tensor(2.)
    """
    dims, _ = _correction(dim, unbiased, None)
    return std(input, dim, unbiased, keepdim, correction=correction), input.mean(dims, keepdim)


# ---- norms and logarithms of sums


@composite(dtypes="f", autocast="float32",
           samples=lambda t: [case(t(3, 4)), case(t(3, 4), 1, 1), case(t(3, 4), 3.0, -1, True), case(t(3, 4), math.inf), case(t(3, 4), 0)])  # fmt: skip
def norm(input: Tensor, p: float | str | None = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Vector norm over ``dim`` (None: all), $(\\sum_i |x_i|^p)^{1/p}$; p may be inf, -inf, 0 or "fro" (2).

    The gradient of the 2-norm at zero is zero.

    >>> import genesis
    >>> genesis.norm(genesis.tensor([3., 4.]))
    tensor(5.)
    """
    x = input if dtype is None else input.to(dtype)
    size = x.abs() if p not in ("fro", None, 2) else x
    if p in ("fro", None, 2):
        squares = ((x * x.conj()).real if x.is_complex() else x * x).sum(dim, keepdim)
        if not x.requires_grad:
            return squares.sqrt()
        zero = squares == 0
        return where(zero, 0.0, where(zero, 1.0, squares).sqrt())
    if p == math.inf:
        return amax(size, dim, keepdim)
    if p == -math.inf:
        return amin(size, dim, keepdim)
    if p == 0:
        return (size != 0).to(size.dtype).sum(dim, keepdim)
    if p == 1:
        return size.sum(dim, keepdim)
    return (size**p).sum(dim, keepdim) ** (1.0 / p)


@composite(dtypes="f", autocast="float32", samples=lambda t: [case(t(3, 4), 1), case(t(3, 4), (0, 1)), case(t(2, 3), -1, True), case(t(), 0)],
           fails=fails(_out_of_range))  # fmt: skip
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Stable $\\ln \\sum_i e^{x_i}$ over ``dim``.

    >>> import genesis
    >>> genesis.logsumexp(genesis.tensor([100., 100.]), dim=0)
    tensor(100.6931)
    """
    dims = normalize_dims("logsumexp", dim, input.ndim)
    if _count(input.shape, dims) == 0:
        return input.sum(dims, keepdim).log()
    top = amax(input.detach(), dims, True)
    top = where(top.isfinite(), top, 0.0)
    total = log(exp(input - top).sum(dims, keepdim))
    return total + (top if keepdim or not input.ndim else top.reshape(total.shape))


__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "nanmean", "nansum",
    "norm", "prod", "std", "std_mean", "sum", "var", "var_mean",
]  # fmt: skip
