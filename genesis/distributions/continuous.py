"""Distributions of real numbers (Johnson, Kotz and Balakrishnan 1994, "Continuous univariate distributions")."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor, known_values
from genesis.distributions import constraints as c
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.utils import eps, log_gammas, sampled, simplex_mode, standard_gamma, tensors, tiny

_EULER = 0.57721566490153286


def _uniform(d: Distribution, sample_shape: Any, like: Tensor) -> Tensor:
    """Numbers in (0, 1)."""
    u = g.rand(tuple(d._extended_shape(sample_shape)), dtype=like.dtype, device=like.device)
    return u.clamp(tiny(u), 1 - eps(u) / 2)


def _normal(d: Distribution, sample_shape: Any, like: Tensor) -> Tensor:
    return g.randn(tuple(d._extended_shape(sample_shape)), dtype=like.dtype, device=like.device)


class _Scalar(Distribution):
    """Distributions of one number, with parameters that broadcast."""

    has_rsample = True

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        numbers = all(not isinstance(p, Tensor) for p in parameters.values())
        for name, value in zip(parameters, tensors(*parameters.values()), strict=True):
            self.__dict__[name] = value
        shape = Size() if numbers else next(iter(self.__dict__[name] for name in parameters)).shape
        super().__init__(shape, validate_args=validate_args)


class Normal(_Scalar, ExponentialFamily):
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
        return self.loc + _normal(self, sample_shape, self.loc) * self.scale

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


class Uniform(_Scalar):
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


class Exponential(_Scalar, ExponentialFamily):
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
        return -_uniform(self, sample_shape, self.rate).log() / self.rate

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


class Laplace(_Scalar):
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
        return self.icdf(_uniform(self, sample_shape, self.loc))

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


class Cauchy(_Scalar):
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
        return self.icdf(_uniform(self, sample_shape, self.loc))

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


class Gamma(_Scalar, ExponentialFamily):
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


class InverseGamma(_Scalar):
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


class Beta(_Scalar, ExponentialFamily):
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


class StudentT(_Scalar):
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
        x = _normal(self, sample_shape, self.df)
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


class FisherSnedecor(_Scalar):
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
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return g.where(self.df1 > 2, found, math.nan)

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


class Gumbel(_Scalar):
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

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(_uniform(self, sample_shape, self.loc))

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
        return self.scale.log() + (1 + _EULER)


class Weibull(_Scalar):
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
        return self.icdf(_uniform(self, sample_shape, self.scale))

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
        return _EULER * (1 - 1 / k) + (self.scale / k).log() + 1


class Pareto(_Scalar):
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
        return self.scale * (-_uniform(self, sample_shape, self.scale).log() / self.alpha).exp()

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


class GeneralizedPareto(_Scalar):
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
        return self.icdf(_uniform(self, sample_shape, self.loc))

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


class Kumaraswamy(_Scalar):
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
        return self.icdf(_uniform(self, sample_shape, self.concentration1))

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
        harmonic = (b + 1).digamma() + _EULER
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()


class VonMises(_Scalar):
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


__all__ = [
    "Beta", "Cauchy", "Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto",
    "Gumbel", "InverseGamma", "Kumaraswamy", "Laplace", "Normal", "Pareto", "StudentT", "Uniform", "VonMises", "Weibull",
]  # fmt: skip
