"""Variance and standard deviation over some or all dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, message
from genesis.base.quiet import unnamed
from genesis.core.call.halves import F32
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import ALL_DIMS, case, composite, fails, normalize_dims, primitive, reduced_shape
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.along import average, check_floating, count, real_of, restore, rounded, total, widened


def _spread(name: str) -> Any:
    """Arguments of var and std: ``unbiased`` and ``axis`` are other spellings; ``var(x, False)`` is an old one."""

    def prepare(
        input: Tensor, dim: Any, unbiased: Any, keepdim: Any, correction: Any, axis: Any, keepdims: Any
    ) -> tuple[Any, ...]:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise ArgumentError(
                message(
                    name,
                    f"unbiased={unbiased} and correction={correction} were both given",
                    hint="correction=1 is unbiased",
                )
            )
        if input._array.dtype is not F32:
            check_floating(name, input)
        correction = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
        return (
            input,
            normalize_dims(name, dim, input.ndim) or ALL_DIMS[input.ndim],
            None,
            keepdim,
            correction,
            None,
            None,
        )

    return prepare


def _infer_spread(input: Spec, dim: Any, unbiased: Any, keepdim: Any, *rest: Any) -> Spec:
    return Spec(reduced_shape(input.shape, dim, keepdim), real_of(input.dtype), input.device)


@unnamed
def _variance(input: Any, dim: Any, keepdim: Any, correction: Any) -> Any:
    x, n = widened(input), count(input.shape, dim)
    away = x - average(x, dim, True)
    squares = (away * away.conj()).real if x.dtype.kind == "c" else away * away
    return total(squares, dim, keepdim) / max(n - correction, 0)


def _variance_rule(g: Tensor, input: Tensor, dim: Any, correction: Any) -> Tensor:
    freedom = count(input.shape, dim) - correction
    return restore(g * (2 / freedom if freedom > 0 else math.inf), input.shape, dim) * (input - input.mean(dim, True))


def _std_rule(g: Tensor, input: Tensor, out: Tensor, dim: Any, correction: Any) -> Tensor:
    return _variance_rule(g / (2 * out).masked_fill(out == 0, math.inf), input, dim, correction)


_spread_samples = lambda t: [
    case(t(3, 4)),
    case(t(3, 4), 1),
    case(t(3, 4), 1, correction=0),
    case(t(2, 3, 4), (0, 2), correction=2, keepdim=True),
    case(t(3, 4), -1, False),
    case(t(3, 4), unbiased=False),
    case(t(3, 4), axis=0, keepdims=True),
]
_spread_fails = fails(
    (lambda t: case(t(2, 3), 2), IndexError, "dim 2 is out of range for 2 dimensions"),
    (lambda t: case(t.int(3)), RuntimeError, "the input must be floating or complex, it is genesis.int64"),
    (lambda t: case(t(3), unbiased=True, correction=0), TypeError, "unbiased=True and correction=0 were both given"),
)


@primitive("reduction", {"input": _variance_rule}, infer=_infer_spread, prepare=_spread("var"), dtypes="fc", out=True)
@unnamed
def var(
    input: Array,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Any:
    """Variance over ``dim`` (None: all), $\\frac{1}{n - c} \\sum_i |x_i - \\bar x|^2$ with correction $c$, 1 unless
    given.

    ``unbiased`` is an older way to say ``correction=1`` (True) or ``correction=0``. Real, also for complex tensors.

    Raises:
        RuntimeError: an integer tensor
        TypeError: both ``unbiased`` and ``correction``
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.var(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.6667)
    """
    return rounded(_variance(input, dim, keepdim, correction), real_of(input.dtype))


samples(var, _spread_samples)

wrong_inputs(var, *_spread_fails)


@primitive("reduction", {"input": _std_rule}, infer=_infer_spread, prepare=_spread("std"), dtypes="fc", out=True)
@unnamed
def std(
    input: Array,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
) -> Any:
    """Standard deviation, the square root of `var`; its gradient is zero where it is zero.

    >>> import genesis
    >>> genesis.std(genesis.tensor([1., 2., 3., 4.]))
    tensor(1.2910)
    """
    return rounded(np.sqrt(_variance(input, dim, keepdim, correction)), real_of(input.dtype))


samples(std, _spread_samples)

wrong_inputs(std, *_spread_fails)


@composite(halves="wide", dtypes="fc")
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Variance and mean.

    >>> import genesis
    >>> genesis.var_mean(genesis.tensor([1., 3.]))
    (tensor(2.), tensor(2.))
    """
    spread = var(input, dim, unbiased, keepdim, correction=correction)
    return spread, input.mean(None if isinstance(dim, bool) else dim, keepdim)


samples(var_mean, None)


@composite(halves="wide", dtypes="fc")
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Standard deviation and mean.

    >>> import genesis
    >>> genesis.std_mean(genesis.tensor([1., 3.]))
    (tensor(1.4142), tensor(2.))
    """
    spread = std(input, dim, unbiased, keepdim, correction=correction)
    return spread, input.mean(None if isinstance(dim, bool) else dim, keepdim)


samples(std_mean, None)


__all__ = ["std", "std_mean", "var", "var_mean"]
