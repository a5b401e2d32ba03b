"""Transforms of dimensions: more of them in an event, other shapes, parts with a transform each."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.transforms.transform import Transform
from genesis.distributions.utils import sum_last


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = property(lambda self: c.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))  # type: ignore[assignment]
    codomain = property(lambda self: c.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims))  # type: ignore[assignment]
    bijective = property(lambda self: self.base_transform.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Another shape of the event."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentValueError(
                message("ReshapeTransform", f"{list(in_shape)} and {list(out_shape)} have other numbers of elements")
            )
        super().__init__(cache_size)

    domain = property(lambda self: c.independent(c.real, len(self.in_shape)))  # type: ignore[assignment]
    codomain = property(lambda self: c.independent(c.real, len(self.out_shape)))  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.in_shape)], *self.out_shape))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.out_shape)], *self.in_shape))


# ---- of parts


class _Parts(Transform):
    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]

    def _each(self, x: Tensor, apply: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        pieces = self._split(x)
        return self._join([apply(t, p) for t, p in zip(self.transforms, pieces, strict=True)])

    def _split(self, x: Tensor) -> Any:
        return g.split(x, self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return g.cat(parts, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._each(x, lambda t, p: t(p))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(y, lambda t, p: t.inv(p))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), self._split(y), strict=True)
        dims = max(t.domain.event_dim for t in self.transforms)
        parts = [sum_last(t.log_abs_det_jacobian(a, b), dims - t.domain.event_dim) for t, a, b in pairs]
        if self.dim < 0 and self.dim + dims >= 0:
            return reduce(operator.add, parts)
        return self._join(parts)


class CatTransform(_Parts):
    """Transforms of parts along a dimension, of given lengths."""

    domain = property(lambda self: c.cat([t.domain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]
    codomain = property(lambda self: c.cat([t.codomain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]


class StackTransform(_Parts):
    """Transforms of slices along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, None, cache_size)

    domain = property(lambda self: c.stack([t.domain for t in self.transforms], self.dim))  # type: ignore[assignment]
    codomain = property(lambda self: c.stack([t.codomain for t in self.transforms], self.dim))  # type: ignore[assignment]

    def _split(self, x: Tensor) -> Any:
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return g.stack(parts, self.dim)


__all__ = ["CatTransform", "IndependentTransform", "ReshapeTransform", "StackTransform"]
