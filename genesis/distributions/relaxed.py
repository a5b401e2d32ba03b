"""Choices made differentiable by a temperature (Maddison et al. 2017; Jang et al. 2017)."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor
from genesis.distributions import constraints as c
from genesis.distributions.choices import OneHotCategorical
from genesis.distributions.scalar import Probability, set_probabilities
from genesis.distributions.transformed import OfBase
from genesis.distributions.transforms.elementwise import ExpTransform, SigmoidTransform
from genesis.distributions.utils import clamped, tiny


class _LogitRelaxedBernoulli(Probability):
    """The logit of a relaxed Bernoulli number."""

    has_rsample = True
    arg_constraints = {"probs": c.unit_interval, "logits": c.real}
    support = c.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.temperature = temperature
        set_probabilities(self, probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        p = clamped(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamped(g.rand(tuple(p.shape), dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        away = self.logits - value * self.temperature
        return g.as_tensor(self.temperature).log() + away - 2 * g.nn.functional.softplus(away)


class RelaxedBernoulli(OfBase):
    """A number in (0, 1) that is nearly zero or one at low temperatures (Maddison et al. 2017).

    >>> import genesis
    >>> x = genesis.distributions.RelaxedBernoulli(genesis.tensor(0.5), 0.3).rsample()
    >>> bool((x > 0) & (x < 1))
    True
    """

    arg_constraints = {"probs": c.unit_interval, "logits": c.real}
    support = c.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(
            _LogitRelaxedBernoulli(temperature, probs, logits, validate_args), SigmoidTransform(), validate_args
        )

    temperature = property(lambda self: self.base_dist.temperature)


class _ExpRelaxedCategorical(OneHotCategorical):
    """The logarithm of a relaxed choice."""

    has_rsample = True
    has_enumerate_support = False
    support = c.real_vector

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        logits = self.logits.expand(self._extended_shape(sample_shape))
        u = g.rand(tuple(logits.shape), dtype=logits.dtype, device=logits.device).clamp(min=tiny(logits))
        scores = (logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._num_events
        norm = math.lgamma(n) + (n - 1) * g.as_tensor(self.temperature).log()
        scores = self.logits - value * self.temperature
        return (scores - scores.logsumexp(-1, True)).sum(-1) + norm


class RelaxedOneHotCategorical(OfBase):
    """A vector of positive numbers with sum one that is nearly a choice at low temperatures (Maddison et al. 2017, Jang
    et al. 2017).

    >>> import genesis
    >>> genesis.distributions.RelaxedOneHotCategorical(genesis.tensor(0.5), genesis.ones(3)).rsample().sum().round()
    tensor(1.)
    """

    arg_constraints = {"probs": c.simplex, "logits": c.real_vector}
    support = c.simplex
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        super().__init__(
            _ExpRelaxedCategorical(temperature, probs, logits, validate_args), ExpTransform(), validate_args
        )

    temperature = property(lambda self: self.base_dist.temperature)


__all__ = ["RelaxedBernoulli", "RelaxedOneHotCategorical"]
