"""Distributions of functions of random values: `TransformedDistribution`, and those that are one."""

from __future__ import annotations

import functools
import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.combined import Independent
from genesis.distributions.distribution import Distribution
from genesis.distributions.real_line import Cauchy, Normal
from genesis.distributions.transforms.elementwise import AbsTransform, ExpTransform
from genesis.distributions.transforms.transform import ComposeTransform, Transform
from genesis.distributions.transforms.vectors import StickBreakingTransform
from genesis.distributions.utils import size, sum_last


class TransformedDistribution(Distribution):
    """The distribution of a function of values: $\\ln p(y) = \\ln p(x) - \\ln |\\det \\partial y / \\partial x|$.

    >>> import genesis
    >>> from genesis.distributions import AffineTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), AffineTransform(0.0, 2.0)).log_prob(genesis.tensor(0.0))
    tensor(-1.6121)
    """

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in parts):
            raise ArgumentValueError(
                message("TransformedDistribution", "transforms must be a Transform or a list of them")
            )
        self.transforms = parts
        joined = ComposeTransform(parts)
        whole = base_distribution.batch_shape + base_distribution.event_shape
        if len(whole) < joined.domain.event_dim:
            raise ArgumentValueError(
                message(
                    "TransformedDistribution",
                    f"at least {joined.domain.event_dim} dimensions are needed, got {len(whole)}",
                )
            )
        event = len(base_distribution.event_shape)
        forward = Size(joined.forward_shape(whole))
        inner = Size(joined.inverse_shape(forward))
        base = base_distribution if inner == whole else base_distribution.expand(inner[: len(inner) - event])
        missing = joined.domain.event_dim - event
        self.base_dist = Independent(base, missing, validate_args=False) if missing > 0 else base
        extra = max(event - joined.domain.event_dim, 0)
        dims = joined.codomain.event_dim + extra
        cut = len(forward) - dims
        super().__init__(forward[:cut], forward[cut:], validate_args)

    def _expanded(self, batch_shape: Size) -> Distribution:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        inner = ComposeTransform(self.transforms).inverse_shape(size(batch_shape, self._event_shape))
        event = len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(Size(inner[: len(inner) - event]))
        new._batch_shape = batch_shape
        return new

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]

    @property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        missing = len(self._event_shape) - codomain.event_dim
        return c.independent(codomain, missing) if missing > 0 else codomain

    def _forward(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        dims, total, y = len(self._event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_last(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotone(self, value: Tensor) -> Tensor:
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotone(value)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


def _of_base(name: str, distribution: TransformedDistribution) -> Any:
    base = distribution.base_dist
    return getattr(base.base_dist if isinstance(base, Independent) else base, name)


class OfBase(TransformedDistribution):
    """Distributions whose parameters are those of the base, ``_names`` in its words."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in cls.arg_constraints:
            if not hasattr(cls, name):
                setattr(cls, name, property(functools.partial(_of_base, name)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LogNormal(OfBase):
    """The distribution of the exponential of a normal number.

    >>> import genesis
    >>> genesis.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class _Half(OfBase):
    """The distribution of the magnitude of a number with a symmetric one about zero."""

    has_rsample = True
    arg_constraints = {"scale": c.positive}
    support = c.nonnegative
    _base: Any = None

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._base(0.0, scale, validate_args=False), AbsTransform(), validate_args)
        if self._validate_args:
            self._base(0.0, scale, validate_args=True)

    mode = property(lambda self: self.scale * 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1  # type: ignore[no-any-return]

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]


class HalfNormal(_Half):
    """The distribution of the magnitude of a normal number.

    >>> import genesis
    >>> genesis.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The distribution of the magnitude of a Cauchy number.

    >>> import genesis
    >>> genesis.distributions.HalfCauchy(1.0).cdf(genesis.tensor(1.0))
    tensor(0.5000)
    """

    _base = Cauchy
    mean = property(lambda self: self.scale.new_full(self._batch_shape, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class LogisticNormal(OfBase):
    """The distribution of `StickBreakingTransform` of a vector of normal numbers.

    >>> import genesis
    >>> genesis.distributions.LogisticNormal(genesis.zeros(2), genesis.ones(2)).event_shape
    genesis.Size([3])
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)


__all__ = ["HalfCauchy", "HalfNormal", "LogNormal", "LogisticNormal", "TransformedDistribution"]
