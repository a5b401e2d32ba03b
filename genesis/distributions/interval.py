"""Distributions on an interval (Johnson, Kotz and Balakrishnan 1994, "Continuous univariate distributions")."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor, known_values
from genesis.distributions import constraints as c
from genesis.distributions.distribution import ExponentialFamily
from genesis.distributions.scalar import Probability, Scalar, set_probabilities, uniform_for
from genesis.distributions.utils import EULER, clamped, eps, log_gammas, simplex_mode, tiny


class Uniform(Scalar):
    """The uniform distribution on [low, high).

    >>> import genesis
    >>> genesis.distributions.Uniform(0.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"low": c.dependent, "high": c.dependent}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)
        inside = known_values((self.low < self.high).detach())
        if self._validate_args and inside is not None and not inside.all():
            raise ArgumentValueError(message("Uniform", "low must be below high", [("low", low), ("high", high)]))

    support = c.dependent_property(lambda self: c.interval(self.low, self.high))
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.high * math.nan)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = g.rand(tuple(self._extended_shape(sample_shape)), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        inside = (value >= self.low) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Beta(Scalar, ExponentialFamily):
    """The beta distribution, with density $x^{\\alpha - 1} (1 - x)^{\\beta - 1} / B(\\alpha, \\beta)$.

    >>> import genesis
    >>> genesis.distributions.Beta(2.0, 2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": c.positive, "concentration0": c.positive}
    support = c.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    mean = property(lambda self: self.concentration1 / self._total)
    variance = property(lambda self: self.concentration1 * self.concentration0 / (self._total**2 * (self._total + 1)))

    @property
    def mode(self) -> Tensor:
        return simplex_mode(g.stack([self.concentration1, self.concentration0], -1))[..., 0]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        logs = [log_gammas(a.expand(shape)) for a in (self.concentration1, self.concentration0)]
        x = (logs[0] - logs[1]).sigmoid()
        return x.clamp(tiny(x), 1 - eps(x) / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b = self.concentration1, self.concentration0
        return g.xlogy(a - 1, value) + g.special.xlog1py(b - 1, -value) + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total
        beta = a.lgamma() + b.lgamma() - total.lgamma()
        return beta - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (total - 2) * total.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class Kumaraswamy(Scalar):
    """The distribution of Kumaraswamy, with distribution function $1 - (1 - x^a)^b$ on the unit interval.

    >>> import genesis
    >>> genesis.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": c.positive, "concentration0": c.positive}
    support = c.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return b * ((1 + n / a).lgamma() + b.lgamma() - (1 + n / a + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1) ** 2)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = (a >= 1) & (b >= 1) & (a * b > 1)
        base = (a - 1) / g.where(inner, a * b - 1, 1.0)
        return g.where(inner, g.where(inner, base, 1.0) ** (1 / a), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.concentration1))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b = self.concentration1, self.concentration0
        return a.log() + b.log() + (a - 1) * value.log() + (b - 1) * (-(value**a)).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 1 - (1 - value**self.concentration1) ** self.concentration0

    def icdf(self, value: Tensor) -> Tensor:
        return (-((-value).log1p() / self.concentration0).expm1()) ** (1 / self.concentration1)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()


class ContinuousBernoulli(Probability):
    """The continuous Bernoulli distribution on the unit interval, with density $C(\\lambda) \\lambda^x (1 -
    \\lambda)^{1 - x}$ (Loaiza-Ganem and Cunningham 2019).

    Near $\\lambda = 1/2$, inside ``lims``, Taylor series take the place of quotients of small numbers.

    >>> import genesis
    >>> genesis.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    has_rsample = True
    arg_constraints = {"probs": c.unit_interval, "logits": c.real}
    support = c.unit_interval

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        self._lims = lims
        set_probabilities(self, probs, logits, validate_args)

    @property
    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return g.where(self._outside, clamped(self.probs), self._lims[0])

    def _log_norm(self) -> Tensor:
        """ln C, where C is $2 \\tanh^{-1}(1 - 2 \\lambda) / (1 - 2 \\lambda)$."""
        p = self._cut()
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5) ** 2
        return g.where(self._outside, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        x = self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return g.where(self._outside, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        x = (self.probs - 0.5) ** 2
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        return g.where(self._outside, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits = self.logits
        return value * logits - g.nn.functional.softplus(logits) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        p = self._cut()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = g.where(self._outside, exact, value)
        return g.where(value <= 0, 0.0, g.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return g.where(self._outside, exact, value)

    def entropy(self) -> Tensor:
        log0, log1 = (-clamped(self.probs)).log1p(), clamped(self.probs).log()
        return self.mean * (log0 - log1) - self._log_norm() - log0


__all__ = ["Beta", "ContinuousBernoulli", "Kumaraswamy", "Uniform"]
