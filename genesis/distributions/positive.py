"""Distributions of positive numbers (Johnson, Kotz and Balakrishnan 1994, "Continuous univariate distributions")."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.distribution import ExponentialFamily
from genesis.distributions.scalar import Scalar, uniform_for
from genesis.distributions.utils import EULER, standard_gamma, tiny


class Exponential(Scalar, ExponentialFamily):
    """The exponential distribution, with density $\\lambda e^{-\\lambda x}$.

    >>> import genesis
    >>> genesis.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": c.positive}
    support = c.nonnegative

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = property(lambda self: 1 / self.rate)
    mode = property(lambda self: self.rate * 0)
    stddev = property(lambda self: 1 / self.rate)
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return -uniform_for(self, sample_shape, self.rate).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()


class Gamma(Scalar, ExponentialFamily):
    """The gamma distribution, with density $\\frac{\\beta^\\alpha}{\\Gamma(\\alpha)} x^{\\alpha - 1} e^{-\\beta x}$.

    Samples are functions of the parameters by implicit reparametrization (Figurnov et al. 2018).

    >>> import genesis
    >>> genesis.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": c.positive, "rate": c.positive}
    support = c.nonnegative

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return (standard_gamma(self.concentration.expand(shape)) / self.rate).clamp(min=tiny(self.rate))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b = self.concentration, self.rate
        return g.xlogy(a, b) + g.xlogy(a - 1, value) - b * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The distribution of the sum of squares of ``df`` standard normal numbers.

    >>> import genesis
    >>> genesis.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": c.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)

    def _expanded(self, batch_shape: Size) -> Chi2:
        new = Chi2(self.df.expand(batch_shape), validate_args=False)
        new._validate_args = self._validate_args
        return new


class InverseGamma(Scalar):
    """The distribution of the inverse of a gamma number.

    >>> import genesis
    >>> genesis.distributions.InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"concentration": c.positive, "rate": c.positive}
    support = c.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def base_dist(self) -> Gamma:
        return Gamma(self.concentration, self.rate, validate_args=False)

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return g.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return g.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return 1 / self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.base_dist.log_prob(1 / value) - 2 * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.special.gammaincc(self.concentration, self.rate / value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Scalar):
    """The distribution of the quotient of two chi-squared numbers, each over its degrees of freedom.

    >>> import genesis
    >>> genesis.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": c.positive, "df2": c.positive}
    support = c.positive

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, df1=df1, df2=df2)

    @property
    def mean(self) -> Tensor:
        return g.where(self.df2 > 2, self.df2 / g.where(self.df2 > 2, self.df2 - 2, 1.0), math.nan)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return g.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        m, n = self.df1, g.where(self.df2 > 4, self.df2, math.nan)
        return 2 * n**2 * (m + n - 2) / (m * (n - 2) ** 2 * (n - 4))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        a = Gamma(0.5 * self.df1, self.df1, validate_args=False).rsample(sample_shape)
        b = Gamma(0.5 * self.df2, self.df2, validate_args=False).rsample(sample_shape)
        return (a / b).clamp(min=tiny(a))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return norm + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class Weibull(Scalar):
    """The distribution of Weibull, with distribution function $1 - e^{-(x / \\lambda)^k}$.

    >>> import genesis
    >>> genesis.distributions.Weibull(1.0, 1.0).mean
    tensor(1.)
    """

    arg_constraints = {"scale": c.positive, "concentration": c.positive}
    support = c.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, concentration=concentration)

    mean = property(lambda self: self.scale * (1 + 1 / self.concentration).lgamma().exp())

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0) ** (1 / k)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return self.scale**2 * ((1 + 2 / k).lgamma().exp() - (2 * (1 + 1 / k).lgamma()).exp())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k, y = self.concentration, value.log() - self.scale.log()
        return k.log() - self.scale.log() + (k - 1) * y - (k * y).exp()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-((value / self.scale) ** self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER * (1 - 1 / k) + (self.scale / k).log() + 1


class Pareto(Scalar):
    """The distribution of Pareto, with density $\\alpha x_m^\\alpha / x^{\\alpha + 1}$ from $x_m$ on.

    >>> import genesis
    >>> genesis.distributions.Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints = {"alpha": c.positive, "scale": c.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale, alpha=alpha)

    support = c.dependent_property(lambda self: c.greater_than_eq(self.scale))
    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.scale * (-uniform_for(self, sample_shape, self.scale).log() / self.alpha).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha


class GeneralizedPareto(Scalar):
    """The generalized Pareto distribution, with distribution function $1 - (1 + \\xi (x - \\mu) / \\sigma)^{-1/\\xi}$.

    >>> import genesis
    >>> genesis.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive, "concentration": c.real}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @c.dependent_property
    def support(self) -> Any:
        upper = g.where(self.concentration < 0, self.loc - self.scale / self._k, math.inf)
        return c.interval(self.loc, upper)

    @property
    def _flat(self) -> Tensor:
        return self.concentration == 0

    @property
    def _k(self) -> Tensor:
        return g.where(self._flat, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return g.where(k < 1, self.loc + self.scale / g.where(k < 1, 1 - k, 1.0), math.inf)

    @property
    def variance(self) -> Tensor:
        k = g.where(self.concentration < 0.5, self.concentration, 0.0)
        return g.where(self.concentration < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.inf)

    mode = property(lambda self: self.loc)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform_for(self, sample_shape, self.loc))

    def _hazard(self, value: Tensor) -> Tensor:
        """Minus the logarithm of the probability of larger values."""
        y = (value - self.loc) / self.scale
        return g.where(self._flat, y, (self._k * g.where(self._flat, 0.0, y)).log1p() / self._k)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -self.scale.log() - (1 + self.concentration) * self._hazard(value)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-self._hazard(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        log = -(-value).log1p()
        return self.loc + self.scale * g.where(self._flat, log, (self._k * log).expm1() / self._k)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


__all__ = ["Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "InverseGamma", "Pareto", "Weibull"]
