"""Distributions of counts (Johnson, Kemp and Kotz 2005, "Univariate discrete distributions")."""

from __future__ import annotations

from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor, known_values
from genesis.distributions import constraints as c
from genesis.distributions.distribution import ExponentialFamily
from genesis.distributions.scalar import Probability, Scalar, set_probabilities
from genesis.distributions.utils import sampled, standard_gamma


class Geometric(Probability):
    """How many failures come before the first success, of probability p.

    >>> import genesis
    >>> genesis.distributions.Geometric(0.5).mean
    tensor(1.)
    """

    arg_constraints = {"probs": c.unit_interval, "logits": c.real}
    support = c.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        set_probabilities(self, probs, logits, validate_args)
        values = known_values((self.__dict__["probs"] > 0).detach()) if probs is not None else None
        if self._validate_args and values is not None and not values.all():
            raise ArgumentValueError(message("Geometric", "probs must be greater than zero", [("probs", probs)]))

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: self.probs * 0)
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            p = self.probs
            u = g.rand(tuple(self._extended_shape(sample_shape)), dtype=p.dtype, device=p.device)
            return ((-u).log1p() / (-p).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        p = self.probs
        rest = g.where((p == 1) & (value == 0), 0.0, p)
        return value * (-rest).log1p() + p.log()

    def entropy(self) -> Tensor:
        return (g.nn.functional.softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(Probability):
    """How many of n trials succeed.

    >>> import genesis
    >>> genesis.distributions.Binomial(4, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"total_count": c.nonnegative_integer, "probs": c.unit_interval, "logits": c.real}
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        set_probabilities(self, probs, logits, validate_args, total_count=total_count)

    support = c.dependent_property(lambda self: c.integer_interval(0, self.total_count), is_discrete=True)
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            shape = self._extended_shape(sample_shape)
            p = self.probs.expand(shape)
            return sampled("binomial", self.total_count.expand(shape), p).to(p.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, x = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * x - n * g.nn.functional.softplus(x)

    def entropy(self) -> Tensor:
        values = known_values(self.total_count.detach())
        if values is not None and values.size and not (values == values.flat[0]).all():
            raise NotImplementedError("Binomial: the entropy of several total counts is not there")
        x = self.enumerate_support(False)
        log = self.log_prob(x)
        return -(log.exp() * log).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = known_values(self.total_count.detach())
        if values is None or not (values == values.flat[0]).all():
            raise NotImplementedError("Binomial: the values of several total counts differ")
        return self._enumerated(g.arange(int(values.flat[0]) + 1, dtype=self._param.dtype), expand)


class NegativeBinomial(Probability):
    """How many successes, of probability p, come before so many failures.

    >>> import genesis
    >>> genesis.distributions.NegativeBinomial(3.0, 0.5).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": c.greater_than_eq(0),
        "probs": c.half_open_interval(0.0, 1.0),
        "logits": c.real,
    }
    support = c.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        set_probabilities(self, probs, logits, validate_args, total_count=total_count)

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            shape = self._extended_shape(sample_shape)
            rate = standard_gamma(self.total_count.expand(shape)) * self.logits.exp()
            return sampled("poisson", rate)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, x = self.total_count, self.logits
        plain = n * g.nn.functional.logsigmoid(-x) + value * g.nn.functional.logsigmoid(x)
        ways = (n + value).lgamma() - (value + 1).lgamma() - n.lgamma()
        return plain + g.where(n + value == 0, 0.0, ways)


class Poisson(Scalar, ExponentialFamily):
    """How many events of a rate come in a unit of time, $\\lambda^k e^{-\\lambda} / k!$.

    >>> import genesis
    >>> genesis.distributions.Poisson(4.0).mean
    tensor(4.)
    """

    has_rsample = False
    arg_constraints = {"rate": c.nonnegative}
    support = c.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._missing("rsample")  # type: ignore[no-any-return]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            return sampled("poisson", self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.xlogy(value, self.rate) - self.rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()


__all__ = ["Binomial", "Geometric", "NegativeBinomial", "Poisson"]
