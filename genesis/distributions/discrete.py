"""Distributions of integers and of choices (Johnson, Kemp and Kotz 2005, "Univariate discrete distributions")."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor, known_values
from genesis.distributions import constraints as c
from genesis.distributions.continuous import _Scalar
from genesis.distributions.continuous import _uniform as uniform_of
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.utils import clamped, sampled, size, standard_gamma


def set_probabilities(d: Any, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
    """Keep the one of both that was given; the other is computed when it is asked for."""
    if (probs is None) == (logits is None):
        name = type(d).__name__
        raise ArgumentValueError(message(name, "either probs or logits must be given, and not both"))
    which, value = ("logits", logits) if probs is None else ("probs", probs)
    d._set(validate_args, **{which: value}, **others)


class _Probability(_Scalar):
    """Distributions with a probability, or its logit, log p / (1 - p)."""

    has_rsample = False

    def __getattr__(self, name: str) -> Any:
        if name == "logits" and "probs" in self.__dict__:
            p = clamped(self.probs)
            return p.log() - (-p).log1p()
        if name == "probs" and "logits" in self.__dict__:
            return self.logits.sigmoid()
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def _param(self) -> Tensor:
        return self.__dict__.get("probs", self.__dict__.get("logits"))  # type: ignore[return-value]

    param_shape = property(lambda self: self._param.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._missing("rsample")  # type: ignore[no-any-return]


class Bernoulli(_Probability, ExponentialFamily):
    """One with probability p, else zero.

    >>> import genesis
    >>> genesis.distributions.Bernoulli(0.25).variance
    tensor(0.1875)
    """

    arg_constraints = {"probs": c.unit_interval, "logits": c.real}
    support = c.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        set_probabilities(self, probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        found = (self.probs >= 0.5).to(self.probs.dtype)
        return g.where(self.probs == 0.5, math.nan, found)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            return g.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return value * self.logits - g.nn.functional.softplus(self.logits)

    def entropy(self) -> Tensor:
        return g.nn.functional.softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(g.arange(2, dtype=self._param.dtype), expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return g.nn.functional.softplus(x)


class Geometric(_Probability):
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


class Binomial(_Probability):
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
        self.total_count = self.total_count.to(self._param.dtype)

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


class NegativeBinomial(_Probability):
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
        self.total_count = self.total_count.to(self._param.dtype)

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


class Poisson(_Scalar, ExponentialFamily):
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


class ContinuousBernoulli(_Probability):
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
        return self.icdf(uniform_of(self, sample_shape, self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits = self.logits
        return value * logits - g.nn.functional.softplus(logits) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        p = self._cut()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        found = g.where(self._outside, exact, value)
        return g.where(value <= 0, 0.0, g.where(value >= 1, 1.0, found))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return g.where(self._outside, exact, value)

    def entropy(self) -> Tensor:
        log0, log1 = (-clamped(self.probs)).log1p(), clamped(self.probs).log()
        return self.mean * (log0 - log1) - self._log_norm() - log0


# ---- choices


class Categorical(Distribution):
    """One of n choices, with probabilities (which are normalised) or their logarithms in the last dimension.

    >>> import genesis
    >>> genesis.distributions.Categorical(genesis.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": c.simplex, "logits": c.real_vector}
    has_enumerate_support = True
    _event_dims = {"probs": 1, "logits": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name = type(self).__name__
        if (probs is None) == (logits is None):
            raise ArgumentValueError(message(name, "either probs or logits must be given, and not both"))
        given = logits if probs is None else probs
        if not isinstance(given, Tensor) or given.ndim < 1:
            raise ArgumentValueError(message(name, "probs or logits must be a tensor of at least one dimension"))
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = logits - logits.logsumexp(-1, True)
        self._set_shapes(given)
        super().__init__(self._batch_shape, self._event_shape, validate_args)

    def _set_shapes(self, given: Tensor) -> None:
        self._num_events = given.shape[-1]
        self._batch_shape, self._event_shape = Size(given.shape[:-1]), Size()

    def __getattr__(self, name: str) -> Any:
        if name == "logits" and "probs" in self.__dict__:
            return clamped(self.probs).log()
        if name == "probs" and "logits" in self.__dict__:
            return self.logits.softmax(-1)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def _param(self) -> Tensor:
        return self.__dict__.get("probs", self.__dict__.get("logits"))  # type: ignore[return-value]

    param_shape = property(lambda self: self._param.shape)
    support = c.dependent_property(lambda self: c.integer_interval(0, self._num_events - 1), is_discrete=True)
    mean = property(lambda self: self._param.new_full(self._batch_shape, math.nan))
    variance = property(lambda self: self._param.new_full(self._batch_shape, math.nan))
    mode = property(lambda self: self.probs.argmax(-1))

    def _drawn(self, shape: Any) -> Tensor:
        """Which choice, for each of a batch of this shape."""
        with g.no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = math.prod(shape) // max(len(rows), 1) if len(rows) else 0
            if not count:
                return g.zeros(tuple(shape), dtype=g.int64)
            found = g.multinomial(rows, count, True).mT
            return found.reshape(shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._drawn(size(sample_shape, self._batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        place = value.long().unsqueeze(-1)
        place, logits = g.broadcast_tensors(place, self.logits)
        return logits.gather(-1, place[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=float(g.finfo(self._param.dtype).min))
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(g.arange(self._num_events), expand)


class OneHotCategorical(Categorical):
    """`Categorical`, with values that are vectors of zeros and a one.

    >>> import genesis
    >>> genesis.distributions.OneHotCategorical(genesis.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    support = c.one_hot
    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _set_shapes(self, given: Tensor) -> None:
        super()._set_shapes(given)
        self._event_shape = Size(given.shape[-1:])

    def _one_hot(self, place: Tensor) -> Tensor:
        return g.nn.functional.one_hot(place, self._num_events).to(self._param.dtype)

    mode = property(lambda self: self._one_hot(self.probs.argmax(-1)))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._one_hot(self._drawn(size(sample_shape, self._batch_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        value, logits = g.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value.argmax(-1).unsqueeze(-1)).squeeze(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._num_events
        values = g.eye(n, dtype=self._param.dtype).reshape((n, *[1] * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical`, whose samples have the gradient of the probabilities (Bengio et al. 2013).

    >>> import genesis
    >>> genesis.distributions.OneHotCategoricalStraightThrough(genesis.ones(2)).rsample().sum()
    tensor(1.)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each of several choices is taken in so many draws.

    >>> import genesis
    >>> genesis.distributions.Multinomial(4, genesis.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    arg_constraints = {"probs": c.simplex, "logits": c.real_vector}
    _event_dims = {"probs": 1, "logits": 1}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if isinstance(total_count, bool) or not isinstance(total_count, int | np.integer):
            raise NotImplementedError("Multinomial: total_count must be an integer, the same for the whole batch")
        self.total_count = int(total_count)
        base = Categorical(probs, logits, validate_args=validate_args)
        self.__dict__["probs" if probs is not None else "logits"] = base._param
        super().__init__(base.batch_shape, base.param_shape[-1:], validate_args)

    @property
    def _categorical(self) -> Categorical:
        return Categorical(self.__dict__.get("probs"), self.__dict__.get("logits"), validate_args=False)

    def __getattr__(self, name: str) -> Any:
        if name in ("logits", "probs") and ("probs" in self.__dict__ or "logits" in self.__dict__):
            return getattr(self._categorical, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    param_shape = property(lambda self: self._categorical.param_shape)
    support = c.dependent_property(lambda self: c.multinomial(self.total_count), is_discrete=True, event_dim=1)
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(size((self.total_count,), sample_shape))
        return g.nn.functional.one_hot(drawn, self._event_shape[0]).sum(0).to(self._categorical._param.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        logits = g.where((value == 0) & (self.logits == -math.inf), 0.0, self.logits)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = g.tensor(float(self.total_count), dtype=self._categorical._param.dtype)
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        values = counts.enumerate_support(False)[1:]
        weights = counts.log_prob(values).exp()
        return n * self._categorical.entropy() - (n + 1).lgamma() + (weights * (values + 1).lgamma()).sum((0, -1))


__all__ = [
    "Bernoulli", "Binomial", "Categorical", "ContinuousBernoulli", "Geometric", "Multinomial", "NegativeBinomial", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Poisson",
]  # fmt: skip
