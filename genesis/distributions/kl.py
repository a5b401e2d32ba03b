"""Divergences of Kullback and Leibler, $KL(p \\| q) = E_p[\\ln p - \\ln q]$, by the classes of both."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Tensor
from genesis.distributions.combined import (
    HalfNormal,
    Independent,
    LogNormal,
    TransformedDistribution,
)
from genesis.distributions.continuous import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Gumbel,
    InverseGamma,
    Laplace,
    Normal,
    Pareto,
    Uniform,
    Weibull,
)  # fmt: skip
from genesis.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    ContinuousBernoulli,
    Geometric,
    OneHotCategorical,
    Poisson,
)  # fmt: skip
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.multivariate import Dirichlet, LowRankMultivariateNormal, MultivariateNormal, Wishart
from genesis.distributions.utils import sum_last

_EULER = 0.57721566490153286
_TABLE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """Decorate a function of two distributions of these classes, or of classes derived from them.

    Raises:
        TypeError: not classes of distributions

    >>> import genesis
    >>> from genesis.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal): pass
    >>> _ = register_kl(Mine, Normal)(lambda p, q: p.loc * 0)
    >>> kl_divergence(Mine(0.0, 1.0), Normal(5.0, 1.0))
    tensor(0.)
    """
    for each in (type_p, type_q):
        if not isinstance(each, type) or not issubclass(each, Distribution):
            raise ArgumentError(message("register_kl", f"expected a class of distributions, got {each!r}"))

    def decorate(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _TABLE[type_p, type_q] = function
        _found.cache_clear()
        return function

    return decorate


@functools.cache
def _found(p: type, q: type) -> Callable[[Any, Any], Tensor] | None:
    """The function for the nearest classes, those of p first."""
    fits = [pair for pair in _TABLE if issubclass(p, pair[0]) and issubclass(q, pair[1])]
    if not fits:
        return None
    return _TABLE[min(fits, key=lambda pair: (p.__mro__.index(pair[0]), q.__mro__.index(pair[1])))]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """$KL(p \\| q)$, for each member of the batch.

    Raises:
        NotImplementedError: it is not known for these classes

    >>> import genesis
    >>> from genesis.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    function = _found(type(p), type(q))
    if function is None:
        raise NotImplementedError(f"kl_divergence: nothing is registered for {type(p).__name__} and {type(q).__name__}")
    return function(p, q)


# ---- of one family


def _xlogx_over(x: Tensor, y: Tensor) -> Tensor:
    """$x \\ln (x / y)$."""
    return g.xlogy(x, x) - g.xlogy(x, y)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    a, b = p.probs, q.probs
    return _xlogx_over(a, b) + _xlogx_over(1 - a, 1 - b)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return g.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = g.where(q.probs == 0, math.inf, terms)
    return g.where(p.probs == 0, 0.0, terms).sum(-1)


register_kl(OneHotCategorical, OneHotCategorical)(_categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    mean = p.mean * (p.logits - q.logits)
    return mean + p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    norm = (c.lgamma() + d.lgamma() - (c + d).lgamma()) - (a.lgamma() + b.lgamma() - (a + b).lgamma())
    return norm + (a - c) * a.digamma() + (b - d) * b.digamma() + (c + d - a - b) * (a + b).digamma()


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Chyzak and Nielsen 2019."""
    return (((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale)).log()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _family(p: Any, q: Any) -> Tensor:
    """Bregman's divergence of the normalizer (Nielsen and Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError("kl_divergence: of two exponential families nothing is known in general")
    mine = [x.detach().requires_grad_() for x in p._natural_params]
    theirs = q._natural_params
    with g.enable_grad():
        normalizer = p._log_normalizer(*mine)
        slopes = g.autograd.grad(normalizer.sum(), mine, create_graph=True)
    found = q._log_normalizer(*theirs) - normalizer
    for a, b, slope in zip(mine, theirs, slopes, strict=True):
        found = found - sum_last((b - a) * slope, len(q.event_shape))
    return found


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    found = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return found + (q.rate - p.rate) * (a / p.rate)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Tensor:
    return _gamma(p, q)  # the divergence of inverses is that of the numbers


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() - away + ratio * _EULER + (-away + (1 + ratio).lgamma()).exp() - (1 + _EULER) + 2 * away


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return g.where(p.scale < q.scale, math.inf, found)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return g.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Weibull, Weibull)
def _weibull(p: Any, q: Any) -> Tensor:
    """Bauckhage 2013, "Computing the Kullback-Leibler divergence between two Weibull distributions"."""
    ratio, away = q.concentration / p.concentration, q.concentration * (p.scale / q.scale).log()
    return (away + (1 + ratio).lgamma()).exp() - 1 - ratio.log() - away - (1 - ratio) * _EULER


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: the two join different numbers of dimensions")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two have other transforms or shapes")
    missing = len(p.event_shape) - len(p.base_dist.event_shape)
    return sum_last(kl_divergence(p.base_dist, q.base_dist), max(missing, 0))


register_kl(LogNormal, LogNormal)(_transformed)

# ---- normal vectors


def _gaussian(p: Any, q: Any, log_det_p: Tensor, log_det_q: Tensor) -> Tensor:
    """From both covariances and the second one's inverse."""
    away = p.loc - q.loc
    precision = q.precision_matrix
    trace = (precision * p.covariance_matrix).sum((-2, -1))
    square = (away.unsqueeze(-2) @ precision @ away.unsqueeze(-1)).squeeze((-2, -1))
    return 0.5 * (log_det_q - log_det_p + trace + square - p.event_shape[0])


def _log_det(d: Any) -> Tensor:
    if isinstance(d, LowRankMultivariateNormal):
        return d.log_det()
    return 2 * d._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)


def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: events have shapes {list(p.event_shape)} and {list(q.event_shape)}")
    return _gaussian(p, q, _log_det(p), _log_det(q))


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_normal_vectors)


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    n, m, size = p.df, q.df, p.event_shape[-1]
    steps = g.arange(size, dtype=n.dtype, device=n.device)
    psi = (0.5 * (n.unsqueeze(-1) - steps)).digamma().sum(-1)
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    norms = g.special.multigammaln(0.5 * m, size) - g.special.multigammaln(0.5 * n, size)
    return norms + 0.5 * (m * (_log_det(q) - _log_det(p)) + n * (trace - size) + (n - m) * psi)


# ---- of two families


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


def _inside_unit(p: Any, q: Any, low: Any, high: Any, found: Tensor) -> Tensor:
    return g.where((high > 1) | (low < 0), math.inf, found)


for _p in (Beta, ContinuousBernoulli, Gamma, Gumbel, Pareto, Uniform):
    register_kl(_p, Exponential)(_to_exponential)
for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, InverseGamma, Laplace, Uniform):
    register_kl(_p, Normal)(_to_normal)
register_kl(Beta, Gamma)(_to_gamma(lambda p: p.concentration1.digamma() - p._total.digamma()))
register_kl(Exponential, Gamma)(_to_gamma(lambda p: -p.rate.log() - _EULER))
register_kl(Pareto, Gamma)(_to_gamma(lambda p: p.scale.log() + 1 / p.alpha))
register_kl(Uniform, Gamma)(_to_gamma(lambda p: _mean_log(p.low, p.high)))


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    return (g.xlogy(high, high) - g.xlogy(low, low)) / (high - low) - 1


_EXPONENTIAL = _to_exponential


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    return g.where(p.alpha <= 1, math.inf, _EXPONENTIAL(p, q))


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    return g.where(p.alpha <= 2, math.inf, _to_normal(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return g.where(p.low < 0, math.inf, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    low = g.where(p.low < 0, 0.0, p.low)
    found = _to_gamma(lambda p: _mean_log(low, p.high))(p, q)
    return g.where(p.low < 0, math.inf, found)


for _p in (Gumbel,):
    register_kl(_p, Exponential)(_infinite)


def _to_uniform(p: Any, q: Any) -> Tensor:
    found = -p.entropy() + (q.high - q.low).log()
    return g.where((q.high < 1) | (q.low > 0), math.inf, found)


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
    found = -p.entropy() + a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * first - (b - 1) * second
    return _inside_unit(p, q, p.low, p.high, found)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    found = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    return _inside_unit(p, q, p.low, p.high, found)


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
    found = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * log
    return g.where(p.low < q.scale, math.inf, found)


@register_kl(Exponential, Exponential)
def _exponentials(p: Any, q: Any) -> Tensor:
    return _exponential(p, q)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Tensor:
    return _to_exponential(p, q)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    y = (p.loc - q.loc) / p.scale
    away = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * y * y).exp() + y * (y / math.sqrt(2)).erf())
    return -p.entropy() + (2 * q.scale).log() + away / q.scale


__all__ = ["kl_divergence", "register_kl"]
