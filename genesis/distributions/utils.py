"""What distributions share: parameters of one shape, samples that NumPy draws, positive numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import genesis as g
from genesis.arrays.memory import placed
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Size, Tensor, wrap
from genesis.ops.creation.sampled import sampled as sampled
from genesis.ops.pointwise.gamma_functions import digamma
from genesis.ops.transcendental import incomplete_gamma

EULER = 0.57721566490153286  # the constant of Euler and Mascheroni


def tensors(*values: Any) -> list[Tensor]:
    """Tensors and numbers as tensors of one shape; numbers have the dtype of the tensors."""
    given = [v for v in values if isinstance(v, Tensor)]
    for v in values:
        if isinstance(v, bool) or not isinstance(v, Tensor | int | float | np.number):
            raise ArgumentError(message("distributions", f"parameters are tensors or numbers, got {type(v).__name__}"))
    like = next((v for v in given if v.is_floating_point()), None)
    dtype = g.get_default_dtype() if like is None else like.dtype
    device = given[0].device if given else None
    full = [v if isinstance(v, Tensor) else g.tensor(float(v), dtype=dtype, device=device) for v in values]
    return list(g.broadcast_tensors(*full))


def size(*parts: Any) -> Size:
    """Shapes joined."""
    return Size([int(n) for part in parts for n in (part if isinstance(part, Sequence | Size) else (part,))])


def sum_last(x: Tensor, count: int) -> Tensor:
    """The sum over the last dimensions."""
    return x if not count else x.reshape((*x.shape[: x.ndim - count], -1)).sum(-1)


def tiny(x: Tensor) -> float:
    """The smallest normal number of a dtype."""
    return float(dtypes.finfo(x.dtype).tiny)


def eps(x: Tensor) -> float:
    return float(dtypes.finfo(x.dtype).eps)


def clamped(p: Tensor) -> Tensor:
    """Probabilities that have logarithms, of the complement, too."""
    return p.clamp(eps(p), 1 - eps(p))  # type: ignore[attr-defined, no-any-return]


def simplex_mode(concentration: Tensor) -> Tensor:
    """The mode of Dirichlet's distribution; where all numbers are below one, the corner of the largest."""
    above = (concentration - 1).clamp(min=0)
    corner = g.nn.functional.one_hot(concentration.argmax(-1), concentration.shape[-1]).to(concentration.dtype)
    return g.where((concentration < 1).all(-1, True), corner, above / above.sum(-1, True))


# ---- gamma numbers as functions of their shape


def _by_series(a: Any, x: Any) -> Any:
    """$dx / da$ for x not far above a: all terms of the series of $\\partial P / \\partial a$ over the density."""
    log, psi = np.log(x), digamma(a + 1)
    term, total, n = 1 / a, (log - psi) / a, 0
    while n < 2000:
        n += 1
        term = term * (x / (a + n))
        psi = psi + 1 / (a + n)
        part = term * (log - psi)
        total = total + part
        if not (np.abs(part) > 1e-16 * np.abs(total)).any():
            break
    return -x * total


def _by_differences(a: Any, x: Any) -> Any:
    """The same by differences of Q of fourth order."""
    h = 1e-3 * np.maximum(a, 0.1)
    q = incomplete_gamma.gammaincc
    slope = (q(a - 2 * h, x) - 8 * q(a - h, x) + 8 * q(a + h, x) - q(a + 2 * h, x)) / (12 * h)
    from genesis.ops.pointwise.gamma_functions import lgamma

    return slope * np.exp(x + lgamma(a) - (a - 1) * np.log(x))


def standard_gamma_grad(alpha: Tensor, sample: Tensor) -> Tensor:
    """The derivative of a number of the distribution gamma by its shape, $-\\frac{\\partial P(\\alpha, x) / \\partial
    \\alpha}{p(x)}$ (Figurnov et al. 2018, "Implicit reparameterization gradients").

    >>> import genesis
    >>> from genesis.distributions.utils import standard_gamma_grad
    >>> standard_gamma_grad(genesis.tensor([1.0]), genesis.tensor([1.0]))
    tensor([1.1736])
    """
    values = [v.detach()._on_host().astype(np.float64) for v in (alpha, sample)]
    a, x = np.broadcast_arrays(*values)
    safe = np.maximum(x, 1e-300)
    with np.errstate(all="ignore"):
        near = safe < a + 2
        gradient = np.where(
            near, _by_series(a, np.where(near, safe, 1.0)), _by_differences(a, np.where(near, a + 2.0, safe))
        )
    return wrap(placed(gradient.astype(sample._array.dtype), sample.device))


class StandardGamma(g.Function):
    """A number of the distribution gamma as a function of its shape."""

    @staticmethod
    def forward(ctx: Any, alpha: Tensor) -> Tensor:
        x = sampled("standard_gamma", alpha).clamp(min=tiny(alpha))
        ctx.save_for_backward(alpha, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        alpha, x = ctx.saved_tensors
        return grad * standard_gamma_grad(alpha, x)


def standard_gamma(alpha: Tensor) -> Tensor:
    """Numbers of the distribution gamma with these shapes, differentiable."""
    return StandardGamma.apply(alpha)


def log_gammas(alpha: Tensor) -> Tensor:
    """Logarithms of gamma numbers, which do not underflow: $\\ln G(\\alpha + 1) + \\ln(U) / \\alpha$."""
    u = g.rand(tuple(alpha.shape), dtype=alpha.dtype, device=alpha.device).clamp(min=tiny(alpha))
    return standard_gamma(alpha + 1).log() + u.log() / alpha
