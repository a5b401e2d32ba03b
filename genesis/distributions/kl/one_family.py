"""Divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor
from genesis.distributions.choices import Bernoulli, Categorical, OneHotCategorical
from genesis.distributions.combined import Independent
from genesis.distributions.counts import Binomial, Geometric, Poisson
from genesis.distributions.distribution import ExponentialFamily
from genesis.distributions.interval import Beta, ContinuousBernoulli, Uniform
from genesis.distributions.kl.table import kl_divergence, register_kl
from genesis.distributions.multivariate import Dirichlet, LowRankMultivariateNormal, MultivariateNormal, Wishart
from genesis.distributions.positive import Exponential, Gamma, InverseGamma, Pareto, Weibull
from genesis.distributions.real_line import Cauchy, Gumbel, Laplace, Normal
from genesis.distributions.transformed import HalfNormal, LogNormal, TransformedDistribution
from genesis.distributions.utils import EULER, sum_last


def _xlogx_over(x: Tensor, y: Tensor) -> Tensor:
    """$x \\ln (x / y)$."""
    return g.xlogy(x, x) - g.xlogy(x, y)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    a, b = p.probs, q.probs
    return _xlogx_over(a, b) + _xlogx_over(1 - a, 1 - b)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return g.where(p.total_count > q.total_count, math.inf, divergence)


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
    divergence = q._log_normalizer(*theirs) - normalizer
    for a, b, slope in zip(mine, theirs, slopes, strict=True):
        divergence = divergence - sum_last((b - a) * slope, len(q.event_shape))
    return divergence


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    divergence = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
    return divergence + (q.rate - p.rate) * (a / p.rate)


@register_kl(InverseGamma, InverseGamma)
def _inverse_gamma(p: Any, q: Any) -> Tensor:
    return _gamma(p, q)  # the divergence of inverses is that of the numbers


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() - away + ratio * EULER + (-away + (1 + ratio).lgamma()).exp() - (1 + EULER) + 2 * away


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
    divergence = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return g.where(p.scale < q.scale, math.inf, divergence)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    divergence = ((q.high - q.low) / (p.high - p.low)).log()
    return g.where((q.low > p.low) | (q.high < p.high), math.inf, divergence)


@register_kl(Weibull, Weibull)
def _weibull(p: Any, q: Any) -> Tensor:
    """Bauckhage 2013, "Computing the Kullback-Leibler divergence between two Weibull distributions"."""
    ratio, away = q.concentration / p.concentration, q.concentration * (p.scale / q.scale).log()
    return (away + (1 + ratio).lgamma()).exp() - 1 - ratio.log() - away - (1 - ratio) * EULER


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
