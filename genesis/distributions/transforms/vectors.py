"""Transforms of vectors and matrices: to simplexes, triangles, definite and correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.transforms.elementwise import _expit, _Same, _softplus
from genesis.distributions.utils import eps, tiny


class SoftmaxTransform(_Same):
    """$y = \\text{softmax}(x)$; the inverse is the logarithm, up to a constant."""

    bijective = False
    _sign = None
    domain, codomain = c.real_vector, c.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_Same):
    """From n real numbers to n + 1 positive ones with sum 1, each a part of what is left (Stan reference manual, "Unit
    simplex").

    >>> import genesis
    >>> genesis.distributions.StickBreakingTransform()(genesis.zeros(1))
    tensor([0.5000, 0.5000])
    """

    _sign = None
    domain, codomain = c.real_vector, c.simplex

    def _offset(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        return g.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _expit(x - self._offset(x))
        one = z.new_ones(z.shape[:-1] + (1,))
        return g.cat([z, one], -1) * g.cat([one, (1 - z).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=tiny(y))
        return head.log() - rest.log() + self._offset(head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        z = x - self._offset(x)
        return (-z + g.nn.functional.logsigmoid(z) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Same):
    """From any matrix to a lower triangle with a positive diagonal."""

    _sign = None
    domain, codomain = c.independent(c.real, 2), c.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(_Same):
    """From any matrix to a positive definite one, the square of a triangle."""

    _sign = None
    domain, codomain = c.independent(c.real, 2), c.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        low = LowerCholeskyTransform()(x)
        return low @ low.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(g.linalg.cholesky(y))


class CorrCholeskyTransform(_Same):
    """From n (n - 1) / 2 real numbers to Cholesky's factor of a matrix of correlations (Stan reference manual,
    "Cholesky factors of correlation matrices").
    """

    _sign = None
    domain, codomain = c.real_vector, c.corr_cholesky

    def _indices(self, n: int) -> tuple[list[int], list[int]]:
        return [i for i in range(n) for _ in range(i)], [j for i in range(n) for j in range(i)]

    def _triangle(self, x: Tensor, n: int) -> Tensor:
        rows, columns = self._indices(n)
        out = x.new_zeros((*x.shape[:-1], n, n))
        out[..., rows, columns] = x
        return out

    def _call(self, x: Tensor) -> Tensor:
        n = round((1 + math.sqrt(1 + 8 * x.shape[-1])) / 2)
        r = self._triangle(x.tanh().clamp(-1 + eps(x), 1 - eps(x)), n)
        rest = (1 - r * r).sqrt().cumprod(-1)
        before = g.cat([rest.new_ones((*rest.shape[:-1], 1)), rest[..., :-1]], -1)
        return (r + g.eye(n, dtype=x.dtype, device=x.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        before = g.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)
        rows, columns = self._indices(n)
        x = y[..., rows, columns] / before[..., rows, columns].clamp(min=tiny(y)).sqrt()
        return (x.log1p() - (-x).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        rows = [i for i in range(n) for _ in range(i - 1)]
        columns = [j for i in range(n) for j in range(i - 1)]
        stick = 0.5 * left[..., rows, columns].log().sum(-1)
        return stick - 2 * (x + _softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        n = round((1 + math.sqrt(1 + 8 * shape[-1])) / 2)
        if n * (n - 1) // 2 != shape[-1]:
            raise ArgumentValueError(
                message("CorrCholeskyTransform", f"{shape[-1]} is no number of elements of a triangle")
            )
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


__all__ = [
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StickBreakingTransform",
]
