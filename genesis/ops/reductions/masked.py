"""Reductions and normalisations of the elements at which a mask is true.

What is masked out is replaced by what changes no result: 0 in a sum, 1 in a product, -inf in a maximum. So a sum of
nothing is 0, a maximum of nothing -inf and a mean of nothing nan. A mask broadcasts to the input; without one all count.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.dtypes import whole
from genesis.base.errors import ArgumentError, ArgumentValueError, DimError, DTypeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.sequences import arange
from genesis.ops.learning.softmax import log_softmax, softmax
from genesis.ops.linalg.norms import linalg_vector_norm
from genesis.ops.pointwise.choice import maximum, where
from genesis.ops.pointwise.elementwise import logaddexp
from genesis.ops.reductions.norms import logsumexp
from genesis.ops.reductions.reduce import Dims
from genesis.ops.reductions.statistics import nanmedian

Mask = Tensor | None


def _filled(name: str, input: Tensor, mask: Mask, value: Any) -> Tensor:
    """The input with ``value`` in the place of what is masked out."""
    return input if mask is None else where(_mask("masked." + name, input, mask), input, value)


def _mask(name: str, input: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > input.ndim:
        raise DimError(message(name, f"the mask has {mask.ndim} dimensions, the input {input.ndim}"))
    return mask.bool().expand(input.shape)


def _refuse_complex(name: str, *tensors: Tensor) -> None:
    for x in tensors:
        if x.is_complex():
            raise DTypeError(
                message(name, f"{x.dtype} is not supported, it takes real tensors", hint="x.abs() or x.real")
            )


def _all_dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    dim = whole(dim)
    if dim is None or dim == ():
        return tuple(range(ndim))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _limit(input: Tensor, sign: int) -> Any:
    """The smallest (-1) or the largest number of the dtype."""
    if input.dtype.category > 1:
        return sign * math.inf
    info = dtypes.iinfo(input.dtype)
    return info.min if sign < 0 else info.max


def _as(result: Tensor, dtype: Any) -> Tensor:
    return result if dtype is None else result.to(dtype)


_here = lambda *shape: arange(math.prod(shape)).reshape(shape) % 5 != 1  # noqa: E731
_reduced = lambda t: [  # noqa: E731
    case(t(3, 4), 1, mask=_here(3, 4)),
    case(t(3, 4), mask=_here(4)),
    case(t(2, 3), 0, keepdim=True),
    case(t(2, 3), 1, mask=_here(2, 3), keepdim=True),
]
_several = lambda t: [*_reduced(t), case(t(2, 3, 2), (0, -1), mask=_here(2, 3, 1)), case(t())]  # noqa: E731
_along = lambda t: [case(t(3, 4), 1, mask=_here(3, 4)), case(t(3, 4), 0, mask=_here(3, 1)), case(t(3), -1)]  # noqa: E731
_too_many = (
    lambda t: case(t(3), 0, mask=_here(2, 3)),
    IndexError,
    "the mask has 2 dimensions, the input 1",
)


# ---- reductions


@composite(method=False, dtypes="fcib", halves="wide", torch_name="masked.sum")
def masked_sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`sum` of what the mask keeps.

    Raises:
        IndexError: a mask of more dimensions than the input; a dim out of range

    >>> import genesis
    >>> genesis.masked.sum(genesis.tensor([1., 2., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(3.)
    """
    return _filled("sum", input, mask, 0).sum(_all_dims(dim, input.ndim), keepdim, dtype=dtype)


@composite(method=False, dtypes="fcib", halves="wide", torch_name="masked.prod")
def masked_prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`prod` of what the mask keeps.

    >>> import genesis
    >>> genesis.masked.prod(genesis.tensor([3., 2., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(6.)
    """
    return _filled("prod", input, mask, 1).prod(_all_dims(dim, input.ndim), keepdim, dtype=dtype)


@composite(method=False, dtypes="fi", torch_name="masked.amax")
def masked_amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`amax` of what the mask keeps; of nothing -inf, of integers the smallest number.

    >>> import genesis
    >>> genesis.masked.amax(genesis.tensor([3., 2., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(3.)
    """
    return _as(_filled("amax", input, mask, _limit(input, -1)).amax(_all_dims(dim, input.ndim), keepdim), dtype)


@composite(method=False, dtypes="fi", torch_name="masked.amin")
def masked_amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`amin` of what the mask keeps; of nothing inf, of integers the largest number.

    >>> import genesis
    >>> genesis.masked.amin(genesis.tensor([3., 2., 1.]), mask=genesis.tensor([True, True, False]))
    tensor(2.)
    """
    return _as(_filled("amin", input, mask, _limit(input, 1)).amin(_all_dims(dim, input.ndim), keepdim), dtype)


@composite(method=False, dtypes="fi", torch_name="masked.argmax")
def masked_argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`argmax` of what the mask keeps, as PyTorch gives it in the dtype of the input unless another is asked for.

    >>> import genesis
    >>> genesis.masked.argmax(genesis.tensor([3., 2., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(0.)
    """
    indices = _filled("argmax", input, mask, _limit(input, -1)).argmax(dim, keepdim)
    return _as(indices, dtype or input.dtype)


@composite(method=False, dtypes="fi", torch_name="masked.argmin")
def masked_argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`argmin` of what the mask keeps, in the dtype of the input unless another is asked for.

    >>> import genesis
    >>> genesis.masked.argmin(genesis.tensor([3., 2., 1.]), mask=genesis.tensor([True, True, False]))
    tensor(1.)
    """
    indices = _filled("argmin", input, mask, _limit(input, 1)).argmin(dim, keepdim)
    return _as(indices, dtype or input.dtype)


def _count(name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Mask) -> Any:
    """How many elements count."""
    if mask is None:
        return math.prod([input.shape[d] for d in dims])
    return _mask(name, input, mask).sum(dims, keepdim)


@composite(method=False, dtypes="fc", halves="wide", torch_name="masked.mean")
def masked_mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`mean` of what the mask keeps; of nothing nan.

    Raises:
        ValueError: integers, where no floating ``dtype`` is asked for

    >>> import genesis
    >>> genesis.masked.mean(genesis.tensor([1., 2., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(1.5000)
    """
    if dtypes.as_dtype(input.dtype if dtype is None else dtype).category < 2:
        raise ArgumentValueError(message("masked.mean", f"the mean of {input.dtype} is no integer", hint="dtype=..."))
    dims = _all_dims(dim, input.ndim)
    total = _filled("mean", input, mask, 0).sum(dims, keepdim, dtype=dtype)
    return total / _count("masked.mean", input, dims, keepdim, mask)


@composite(method=False, dtypes="fi", torch_name="masked.median")
def masked_median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of what the mask keeps and is not nan; of nothing nan.

    Raises:
        ValueError: of integers a row of which nothing is kept
        RuntimeError: complex numbers, which have no order

    >>> import genesis
    >>> genesis.masked.median(genesis.tensor([1., 2., 9., 3.]), 0, mask=genesis.tensor([True, True, False, True]))
    tensor(2.)
    """
    _refuse_complex("masked.median", input)
    x = input if input.is_floating_point() else input.float()
    medians = nanmedian(_filled("median", x, mask, math.nan), dim, keepdim).values
    if x is input:
        return medians
    values = known_values(medians)
    if values is not None and np.isnan(values).any():
        raise ArgumentValueError(message("masked.median", "a row of integers has no element that is not masked out"))
    return _as(medians, dtype or input.dtype)


@composite(method=False, dtypes="f", halves="wide", torch_name="masked.logsumexp")
def masked_logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """`logsumexp` of what the mask keeps; of nothing -inf.

    >>> import genesis
    >>> genesis.masked.logsumexp(genesis.tensor([0., 0., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(0.6931)
    """
    x = _filled("logsumexp", input, mask, _limit(input, -1))
    return _as(logsumexp(x, _all_dims(dim, input.ndim), keepdim), dtype or input.dtype)


@composite(method=False, dtypes="fc", halves="wide", torch_name="masked.norm")
def masked_norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`linalg.vector_norm` of what the mask keeps.

    >>> import genesis
    >>> genesis.masked.norm(genesis.tensor([3., 4., 9.]), 2, mask=genesis.tensor([True, True, False]))
    tensor(5.)
    """
    x = _filled("norm", input, mask, math.inf if ord == -math.inf else 0)
    return linalg_vector_norm(x, ord, _all_dims(dim, input.ndim), keepdim, dtype=dtype)  # type: ignore[no-any-return]


def _spread(name: str, input: Tensor, dim: Dims, correction: Any, keepdim: bool, dtype: Any, mask: Mask) -> Tensor:
    kind = dtypes.as_dtype(input.dtype if dtype is None else dtype)
    wide = kind if kind.category > 1 else dtypes.get_default_dtype()
    dims, x = _all_dims(dim, input.ndim), input.to(wide)
    count = _count("masked." + name, x, dims, True, mask)
    off = x - _filled(name, x, mask, 0).sum(dims, True) / count
    total = _filled(name, off * off.conj(), mask, 0).sum(dims, keepdim)
    left = count - correction
    if isinstance(left, Tensor):
        return total / left.clamp(min=0).reshape(total.shape).to(wide.to_real())
    return total / max(left, 0) if left > 0 else total * math.nan


def _correction(name: str, unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise ArgumentError(message(name, f"unbiased={unbiased} and correction={correction} were both given"))
    return 1.0 if correction is None and unbiased is not False else float(correction or 0)


@composite(method=False, dtypes="fc", halves="wide", torch_name="masked.var")
def masked_var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """`var` of what the mask keeps, $\\sum |x - m|^2 / (n - c)$; of nothing nan.

    Raises:
        TypeError: both ``unbiased`` and ``correction`` are given

    >>> import genesis
    >>> genesis.masked.var(genesis.tensor([1., 3., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(2.)
    """
    c = _correction("masked.var", unbiased, correction)
    return _as(_spread("var", input, dim, c, keepdim, dtype, mask), dtype)


@composite(method=False, dtypes="fc", halves="wide", torch_name="masked.std")
def masked_std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The root of `masked.var`.

    >>> import genesis
    >>> genesis.masked.std(genesis.tensor([1., 3., 9.]), mask=genesis.tensor([True, True, False]))
    tensor(1.4142)
    """
    c = _correction("masked.std", unbiased, correction)
    return _as(_spread("std", input, dim, c, keepdim, dtype, mask), dtype).sqrt()


# ---- along a dimension


@composite(method=False, dtypes="fci", halves="wide", torch_name="masked.cumsum")
def masked_cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`cumsum` of what the mask keeps, in the dtype of the input.

    >>> import genesis
    >>> genesis.masked.cumsum(genesis.tensor([1., 2., 9.]), 0, mask=genesis.tensor([True, True, False]))
    tensor([1., 3., 3.])
    """
    return _filled("cumsum", input, mask, 0).cumsum(dim, dtype=input.dtype if dtype is None else dtype)


@composite(method=False, dtypes="fci", halves="wide", torch_name="masked.cumprod")
def masked_cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`cumprod` of what the mask keeps, in the dtype of the input.

    >>> import genesis
    >>> genesis.masked.cumprod(genesis.tensor([3., 2., 9.]), 0, mask=genesis.tensor([True, True, False]))
    tensor([3., 6., 6.])
    """
    return _filled("cumprod", input, mask, 1).cumprod(dim, dtype=input.dtype if dtype is None else dtype)


def masked_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`softmax` of what the mask keeps, 0 elsewhere; nan where nothing is kept.

    >>> import genesis
    >>> genesis.masked.softmax(genesis.tensor([1., 1., 9.]), 0, mask=genesis.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return softmax(_filled("softmax", input, mask, -math.inf), dim, dtype=dtype)  # type: ignore[no-any-return]


@composite(method=False, dtypes="f", halves="wide", torch_name="masked.log_softmax")
def masked_log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`log_softmax` of what the mask keeps, -inf elsewhere; nan where nothing is kept.

    >>> import genesis
    >>> genesis.masked.log_softmax(genesis.tensor([1., 1., 9.]), 0, mask=genesis.tensor([True, True, False]))
    tensor([-0.6931, -0.6931,    -inf])
    """
    return log_softmax(_filled("log_softmax", input, mask, -math.inf), dim, dtype=dtype)


def masked_softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """`softmin` of what the mask keeps, 0 elsewhere; nan where nothing is kept.

    >>> import genesis
    >>> genesis.masked.softmin(genesis.tensor([1., 1., 0.]), 0, mask=genesis.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return softmax(-_filled("softmin", input, mask, math.inf), dim, dtype=dtype)  # type: ignore[no-any-return]


@composite(method=False, dtypes="fc", halves="wide", torch_name="masked.normalize")
def masked_normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """What the mask keeps over its norm, $x / \\max(\\lVert x \\rVert, \\epsilon)$, and 0 elsewhere.

    >>> import genesis
    >>> genesis.masked.normalize(genesis.tensor([3., 4., 9.]), 2, 0, mask=genesis.tensor([True, True, False]))
    tensor([0.6000, 0.8000, 0.0000])
    """
    size = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask, 0) / maximum(size, size.new_full((), eps))


@composite(method=False, dtypes="f", torch_name="masked.logaddexp")
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """`logaddexp` of what each mask keeps of its operand; -inf where neither does.

    Raises:
        RuntimeError: complex numbers: -inf has no phase

    >>> import genesis
    >>> genesis.masked.logaddexp(genesis.zeros(2), genesis.zeros(2), other_mask=genesis.tensor([True, False]))
    tensor([0.6931, 0.0000])
    """
    _refuse_complex("masked.logaddexp", input, other)
    x = _filled("logaddexp", input, input_mask, -math.inf)
    y = _filled("logaddexp", other, other_mask, -math.inf)
    return _as(logaddexp(x, y), dtype or input.dtype)


for _call in (masked_sum, masked_prod, masked_amax, masked_amin, masked_mean, masked_logsumexp):
    samples(_call, _several)
for _call in (masked_var, masked_std):
    samples(_call, _reduced)
for _call in (masked_argmax, masked_argmin, masked_median):
    samples(_call, lambda t: _reduced(t)[:1])
for _call in (masked_cumsum, masked_cumprod):
    samples(_call, _along)
samples(masked_log_softmax, lambda t: [case(t(3, 4), 1), case(t(3), -1, mask=_here(1))])  # -inf has no differences
samples(masked_norm, lambda t: [case(t(3, 4), 2, 1, mask=_here(3, 4)), case(t(3, 4), math.inf, mask=_here(4))])
samples(masked_normalize, lambda t: [case(t(3, 4), 2, 1, mask=_here(3, 4)), case(t(3, 4), 1, 0)])
samples(masked_logaddexp, lambda t: [case(t(3), t(3), input_mask=_here(3)), case(t(2, 3), t(3))])

for _call in (masked_sum, masked_prod, masked_amax, masked_amin, masked_argmax, masked_mean, masked_median, masked_var,
              masked_std, masked_cumsum, masked_cumprod, masked_log_softmax):  # fmt: skip
    wrong_inputs(_call, _too_many)

masked_softmax = explained(masked_softmax, "masked.softmax")
masked_softmin = explained(masked_softmin, "masked.softmin")

FUNCTIONS = {name.removeprefix("masked_"): call for name, call in list(globals().items()) if name.startswith("masked_")}

__all__: list[str] = []
