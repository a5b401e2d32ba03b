"""Norms of vectors, and the logarithm of a sum of exponentials. A norm of zero has the gradient zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.core.call.kinds import (
    ALL_DIMS,
    case,
    check_empty,
    normalize_dims,
    primitive,
    reduced_shape,
    reduction,
)
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explained
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import axes, check_floating, real_of, restore, rounded, total, widened
from genesis.ops.pointwise.choice import nothing
from genesis.ops.reductions.extremes import shared_evenly
from genesis.ops.reductions.reduce import Dims

_out_of_range = (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions")


def _normed(input: Tensor, p: Any, dim: Any, keepdim: bool, dtype: Any) -> tuple[Any, ...]:
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
        return nothing(input)
    if math.isinf(p):
        return input.sgn() * shared_evenly(g, input.abs(), out, dim, keepdim)
    return input.sgn() * _power(input.abs(), p - 1) * restore(g * _power(out, 1 - p), shape, dim)


@primitive(
    "reduction",
    {"input": _norm_rule},
    prepare=_normed,
    dtypes="fc",
    autocast="float32:gpu",
    infer=lambda input, p, dim, keepdim, dtype: Spec(
        reduced_shape(input.shape, dim, keepdim), real_of(input.dtype), input.device
    ),
    out=True,
)
def norm(
    input: Array, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None
) -> Any:
    """Vector norm over ``dim`` (None: all), $(\\sum_i |x_i|^p)^{1/p}$.

    Args:
        p: any number; inf is the largest and -inf the smallest magnitude, 0 counts what is not zero, "fro" is 2; "nuc" is
            the sum of singular values of matrices, of which ``dim`` has the two dimensions
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


_vector_norm = norm


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    if p != "nuc":
        return _vector_norm(input, p, dim, keepdim, dtype, out=out)  # type: ignore[no-any-return]
    from genesis.ops.linalg.norms import linalg_matrix_norm

    dims = tuple(range(input.ndim)) if dim is None else dim
    return linalg_matrix_norm(input, "nuc", dims, keepdim, dtype=dtype, out=out)  # type: ignore[no-any-return]


norm.op, norm.__doc__ = _vector_norm.op, _vector_norm.__doc__  # type: ignore[attr-defined]
norm = explained(norm)
Tensor.norm = norm


def _floating(dtype: Any) -> Any:
    return dtypes.as_np(dtypes.get_default_dtype()) if dtype.kind in "biu" else dtype


@reduction(
    {"input": lambda g, input, out, dim: restore(g, input.shape, dim) * (input - restore(out, input.shape, dim)).exp()},
    dtypes="fc",
    autocast="float32:gpu",
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
    logs = np.log(total(np.exp(x - top), dim, keepdim))
    return rounded(logs + top.reshape(logs.shape), dtype)


samples(logsumexp, lambda t: [case(t(3, 4), 1), case(t(3, 4), (0, 1)), case(t(2, 3), -1, True), case(t(), 0)])

wrong_inputs(logsumexp, _out_of_range)

__all__ = [
    "logsumexp",
    "norm",
]
