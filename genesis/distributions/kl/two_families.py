"""Divergences between distributions of different families."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor
from genesis.distributions.choices import Bernoulli
from genesis.distributions.counts import Binomial, Poisson
from genesis.distributions.interval import Beta, ContinuousBernoulli, Uniform
from genesis.distributions.kl.table import register_kl
from genesis.distributions.positive import Exponential, Gamma, InverseGamma, Pareto
from genesis.distributions.real_line import Gumbel, Laplace, Normal
from genesis.distributions.utils import EULER


def _infinite(p: Any, q: Any) -> Tensor:
    """Where q gives no weight to what p does."""
    shape = g.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return p.mean.new_full(shape, math.inf)


_BEYOND = {
    Bernoulli: (), Beta: (Pareto,), ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform), Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform), Poisson: (Bernoulli, Binomial),
}  # fmt: skip
for _p, _others in _BEYOND.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_normal(p: Any, q: Any) -> Tensor:
    square = p.variance + (p.mean - q.loc) ** 2
    return -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * square / q.scale**2


def _to_gamma(log_mean: Callable[[Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    def divergence(p: Any, q: Any) -> Tensor:
        a = q.concentration
        return -p.entropy() - a * q.rate.log() + a.lgamma() - (a - 1) * log_mean(p) + q.rate * p.mean

    return divergence


def _inside_unit(p: Any, q: Any, low: Any, high: Any, divergence: Tensor) -> Tensor:
    return g.where((high > 1) | (low < 0), math.inf, divergence)


for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_to_exponential)
for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, InverseGamma, Laplace, Uniform):
    register_kl(_p, Normal)(_to_normal)
register_kl(Beta, Gamma)(_to_gamma(lambda p: p.concentration1.digamma() - p._total.digamma()))
register_kl(Exponential, Gamma)(_to_gamma(lambda p: -p.rate.log() - EULER))
register_kl(Pareto, Gamma)(_to_gamma(lambda p: p.scale.log() + 1 / p.alpha))


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    return (g.xlogy(high, high) - g.xlogy(low, low)) / (high - low) - 1


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    return g.where(p.alpha <= 1, math.inf, _to_exponential(p, q))


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    return g.where(p.alpha <= 2, math.inf, _to_normal(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return g.where(p.low < 0, math.inf, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    low = g.where(p.low < 0, 0.0, p.low)
    divergence = _to_gamma(lambda p: _mean_log(low, p.high))(p, q)
    return g.where(p.low < 0, math.inf, divergence)


def _to_uniform(p: Any, q: Any) -> Tensor:
    divergence = -p.entropy() + (q.high - q.low).log()
    return g.where((q.high < 1) | (q.low > 0), math.inf, divergence)


for _p in (Beta, ContinuousBernoulli):
    register_kl(_p, Uniform)(_to_uniform)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    low, high = p.low.clamp(0, 1), p.high.clamp(0, 1)
    width = g.where(high > low, high - low, 1.0)
    first = (g.xlogy(high, high) - g.xlogy(low, low)) / width - 1
    second = (g.xlogy(1 - low, 1 - low) - g.xlogy(1 - high, 1 - high)) / width - 1
    divergence = -p.entropy() + a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * first - (b - 1) * second
    return _inside_unit(p, q, p.low, p.high, divergence)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    divergence = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    return _inside_unit(p, q, p.low, p.high, divergence)


def _to_gumbel(moment: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """``moment``: the mean of $e^{-x / \\beta}$."""

    def divergence(p: Any, q: Any) -> Tensor:
        y = (p.mean - q.loc) / q.scale
        return -p.entropy() + q.scale.log() + y + (q.loc / q.scale).exp() * moment(p, q.scale)

    return divergence


register_kl(Exponential, Gumbel)(_to_gumbel(lambda p, b: p.rate / (p.rate + 1 / b)))
register_kl(Gamma, Gumbel)(_to_gumbel(lambda p, b: (1 + 1 / (b * p.rate)) ** -p.concentration))
register_kl(Normal, Gumbel)(_to_gumbel(lambda p, b: (-p.loc / b + 0.5 * (p.scale / b) ** 2).exp()))
register_kl(Uniform, Gumbel)(_to_gumbel(lambda p, b: b * ((-p.low / b).exp() - (-p.high / b).exp()) / (p.high - p.low)))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    log = _mean_log(g.where(p.low > 0, p.low, 1.0), p.high)
    divergence = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * log
    return g.where(p.low < q.scale, math.inf, divergence)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    y = (p.loc - q.loc) / p.scale
    away = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * y * y).exp() + y * (y / math.sqrt(2)).erf())
    return -p.entropy() + (2 * q.scale).log() + away / q.scale
