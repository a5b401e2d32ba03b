"""Distributions of real numbers (Johnson, Kotz and Balakrishnan 1994, "Continuous univariate distributions")."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor
from genesis.distributions import constraints as c
from genesis.distributions.distribution import ExponentialFamily
from genesis.distributions.positive import Chi2
from genesis.distributions.scalar import Scalar, normal_for, uniform_for
from genesis.distributions.utils import EULER, sampled


class Normal(Scalar, ExponentialFamily):
    """The normal distribution, with density $\\frac{1}{\\sigma \\sqrt{2 \\pi}} e^{-(x - \\mu)^2 / 2 \\sigma^2}$.

    >>> import genesis
    >>> genesis.distributions.Normal(0.0, 1.0).log_prob(genesis.tensor(0.0))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + normal_for(self, sample_shape, self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.special.ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * g.special.ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x * x / y + 0.5 * (-math.pi / y).log()


class Laplace(Scalar):
    """The distribution of Laplace, with density $\\frac{1}{2b} e^{-|x - \\mu| / b}$.

    >>> import genesis
    >>> genesis.distributions.Laplace(0.0, 1.0).variance
    tensor(2.)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale**2)
    stddev = property(lambda self: math.sqrt(2) * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * (-2 * away.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(Scalar):
    """The distribution of Cauchy, with density $\\frac{1}{\\pi \\gamma (1 + ((x - x_0) / \\gamma)^2)}$; it has no mean.

    >>> import genesis
    >>> genesis.distributions.Cauchy(0.0, 1.0).cdf(genesis.tensor(1.0))
    tensor(0.7500)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc.new_full(self._batch_shape, math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.loc.new_full(self._batch_shape, math.inf))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(Scalar):
    """Student's distribution with ``df`` degrees of freedom, moved and scaled.

    >>> import genesis
    >>> genesis.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": c.positive, "loc": c.real, "scale": c.positive}
    support = c.real

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        return g.where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        large = self.scale**2 * self.df / g.where(self.df > 2, self.df - 2, 1.0)
        return g.where(self.df > 2, large, g.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = normal_for(self, sample_shape, self.df)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * x * (self.df / z).sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y, n = (value - self.loc) / self.scale, self.df
        norm = (
            self.scale.log() + 0.5 * n.log() + 0.5 * math.log(math.pi) + (0.5 * n).lgamma() - (0.5 * (n + 1)).lgamma()
        )
        return -0.5 * (n + 1) * (y**2 / n).log1p() - norm

    def entropy(self) -> Tensor:
        n = self.df
        beta = (0.5 * n).lgamma() + math.lgamma(0.5) - (0.5 * (n + 1)).lgamma()
        return (
            self.scale.log() + 0.5 * (n + 1) * ((0.5 * (n + 1)).digamma() - (0.5 * n).digamma()) + 0.5 * n.log() + beta
        )


class Gumbel(Scalar):
    """The distribution of Gumbel, of the largest of many numbers, with distribution function $e^{-e^{-(x - \\mu) /
    \\beta}}$.

    >>> import genesis
    >>> genesis.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    mean = property(lambda self: self.loc + self.scale * EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class VonMises(Scalar):
    """The distribution of von Mises on the circle, with density $e^{\\kappa \\cos(x - \\mu)} / 2 \\pi I_0(\\kappa)$.

    >>> import genesis
    >>> genesis.distributions.VonMises(0.0, 1.0).log_prob(genesis.tensor(0.0))
    tensor(-1.0738)
    """

    has_rsample = False
    arg_constraints = {"loc": c.real, "concentration": c.positive}
    support = c.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """$1 - I_1(\\kappa) / I_0(\\kappa)$, about $1 / 2 \\kappa$: in float64, for it is a difference of near numbers."""
        k = self.concentration.double()
        return (1 - g.special.i1e(k) / g.special.i0e(k)).to(self.concentration.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            x = sampled("von_mises", self.concentration.expand(self._extended_shape(sample_shape))) + self.loc
            return (x + math.pi) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - g.special.i0e(k).log()


__all__ = ["Cauchy", "Gumbel", "Laplace", "Normal", "StudentT", "VonMises"]
