"""Distributions of choices: of two, of several, and of how often each was made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.counts import Binomial
from genesis.distributions.distribution import Distribution, ExponentialFamily, derived
from genesis.distributions.scalar import Probability, set_probabilities
from genesis.distributions.utils import clamped, size


class Bernoulli(Probability, ExponentialFamily):
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
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return g.where(self.probs == 0.5, math.nan, likelier)

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

    @derived
    def logits(self) -> Tensor:
        return clamped(self.probs).log()

    @derived
    def probs(self) -> Tensor:
        return self.logits.softmax(-1)  # type: ignore[no-any-return]

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
            drawn = g.multinomial(rows, count, True).mT
            return drawn.reshape(shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._drawn(size(sample_shape, self._batch_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        index = value.long().unsqueeze(-1)
        index, logits = g.broadcast_tensors(index, self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

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

    def _one_hot(self, index: Tensor) -> Tensor:
        return g.nn.functional.one_hot(index, self._num_events).to(self._param.dtype)

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

    logits = derived(lambda self: self._categorical.logits)
    probs = derived(lambda self: self._categorical.probs)

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


__all__ = ["Bernoulli", "Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]
