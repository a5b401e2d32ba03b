"""Distributions made of others: transformed, with dimensions joined, mixed; and those that are such."""

from __future__ import annotations

import math
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.continuous import Cauchy, Normal
from genesis.distributions.discrete import Categorical, OneHotCategorical, _Probability, set_probabilities
from genesis.distributions.distribution import Distribution
from genesis.distributions.transforms import (
    AbsTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    StickBreakingTransform,
    Transform,
)
from genesis.distributions.utils import clamped, size, sum_last, tiny


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to the event: log probabilities are sums over them.

    >>> import genesis
    >>> from genesis.distributions import Independent, Normal
    >>> Independent(Normal(genesis.zeros(3), 1.0), 1).event_shape
    genesis.Size([3])
    """

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        n, shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if not 0 <= n <= len(shape):
            raise ArgumentValueError(message("Independent", f"{n} dimensions of the batch {list(shape)} are asked for"))
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(shape) - n
        super().__init__(shape[:cut], size(shape[cut:], base_distribution.event_shape), validate_args)

    def _expanded(self, batch_shape: Size) -> Distribution:
        cut = len(self.base_dist.batch_shape) - self.reinterpreted_batch_ndims
        base = self.base_dist.expand(size(batch_shape, self.base_dist.batch_shape[cut:]))
        return type(self)(base, self.reinterpreted_batch_ndims, False)

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]
    has_enumerate_support = property(  # type: ignore[assignment]
        lambda self: not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def support(self) -> Any:
        n = self.reinterpreted_batch_ndims
        return c.independent(self.base_dist.support, n) if n else self.base_dist.support

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)  # type: ignore[no-any-return]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)  # type: ignore[no-any-return]

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the values of several dimensions together are not enumerated")
        return self.base_dist.enumerate_support(expand)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a function of values: $\\ln p(y) = \\ln p(x) - \\ln |\\det \\partial y / \\partial x|$.

    >>> import genesis
    >>> from genesis.distributions import AffineTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), AffineTransform(0.0, 2.0)).log_prob(genesis.tensor(0.0))
    tensor(-1.6121)
    """

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in parts):
            raise ArgumentValueError(
                message("TransformedDistribution", "transforms must be a Transform or a list of them")
            )
        self.transforms = parts
        joined = ComposeTransform(parts)
        whole = base_distribution.batch_shape + base_distribution.event_shape
        if len(whole) < joined.domain.event_dim:
            raise ArgumentValueError(
                message(
                    "TransformedDistribution",
                    f"at least {joined.domain.event_dim} dimensions are needed, got {len(whole)}",
                )
            )
        event = len(base_distribution.event_shape)
        forward = Size(joined.forward_shape(whole))
        inner = Size(joined.inverse_shape(forward))
        base = base_distribution if inner == whole else base_distribution.expand(inner[: len(inner) - event])
        missing = joined.domain.event_dim - event
        self.base_dist = Independent(base, missing, validate_args=False) if missing > 0 else base
        extra = max(event - joined.domain.event_dim, 0)
        dims = joined.codomain.event_dim + extra
        cut = len(forward) - dims
        super().__init__(forward[:cut], forward[cut:], validate_args)

    def _expanded(self, batch_shape: Size) -> Distribution:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        inner = ComposeTransform(self.transforms).inverse_shape(size(batch_shape, self._event_shape))
        event = len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(Size(inner[: len(inner) - event]))
        new._batch_shape = batch_shape
        return new

    has_rsample = property(lambda self: self.base_dist.has_rsample)  # type: ignore[assignment]

    @property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        missing = len(self._event_shape) - found.event_dim
        return c.independent(found, missing) if missing > 0 else found

    def _forward(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        dims, total, y = len(self._event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_last(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotone(self, value: Tensor) -> Tensor:
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotone(value)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


class _OfBase(TransformedDistribution):
    """Distributions whose parameters are those of the base, ``_names`` in its words."""

    def __getattr__(self, name: str) -> Any:
        if name in self.arg_constraints and "base_dist" in self.__dict__:
            base = self.base_dist
            return getattr(base.base_dist if isinstance(base, Independent) else base, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LogNormal(_OfBase):
    """The distribution of the exponential of a normal number.

    >>> import genesis
    >>> genesis.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args)

    mean = property(lambda self: (self.loc + self.scale**2 / 2).exp())
    mode = property(lambda self: (self.loc - self.scale**2).exp())
    variance = property(lambda self: (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc  # type: ignore[no-any-return]


class _Half(_OfBase):
    """The distribution of the magnitude of a number with a symmetric one about zero."""

    has_rsample = True
    arg_constraints = {"scale": c.positive}
    support = c.nonnegative
    _base: Any = None

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._base(0.0, scale, validate_args=False), AbsTransform(), False)
        Distribution.__init__(self, self._batch_shape, (), validate_args)
        if self._validate_args:
            self._base(0.0, scale, validate_args=True)

    mode = property(lambda self: self.scale * 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return g.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1  # type: ignore[no-any-return]

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)  # type: ignore[no-any-return]


class HalfNormal(_Half):
    """The distribution of the magnitude of a normal number.

    >>> import genesis
    >>> genesis.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale**2 * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """The distribution of the magnitude of a Cauchy number.

    >>> import genesis
    >>> genesis.distributions.HalfCauchy(1.0).cdf(genesis.tensor(1.0))
    tensor(0.5000)
    """

    _base = Cauchy
    mean = property(lambda self: self.scale.new_full(self._batch_shape, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class LogisticNormal(_OfBase):
    """The distribution of `StickBreakingTransform` of a vector of normal numbers.

    >>> import genesis
    >>> genesis.distributions.LogisticNormal(genesis.zeros(2), genesis.ones(2)).event_shape
    genesis.Size([3])
    """

    arg_constraints = {"loc": c.real, "scale": c.positive}
    support = c.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)


# ---- relaxations


class _LogitRelaxedBernoulli(_Probability):
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


class RelaxedBernoulli(_OfBase):
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


class RelaxedOneHotCategorical(_OfBase):
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


# ---- mixtures


class MixtureSameFamily(Distribution):
    """A mixture of the distributions in the last batch dimension, with the probabilities of a `Categorical`.

    >>> import genesis
    >>> from genesis.distributions import Categorical, MixtureSameFamily, Normal
    >>> parts = Normal(genesis.tensor([-1.0, 3.0]), genesis.ones(2))
    >>> MixtureSameFamily(Categorical(genesis.ones(2)), parts).mean
    tensor(1.)
    """

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        name = "MixtureSameFamily"
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentValueError(message(name, "the mixture must be a Categorical"))
        if not isinstance(component_distribution, Distribution):
            raise ArgumentValueError(message(name, "the components must be a Distribution"))
        parts = component_distribution.batch_shape
        if not len(parts) or parts[-1] != mixture_distribution.param_shape[-1]:
            raise ArgumentValueError(
                message(
                    name, f"{mixture_distribution.param_shape[-1]} probabilities for components of batch {list(parts)}"
                )
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = parts[-1]
        super().__init__(parts[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _expanded(self, batch_shape: Size) -> Distribution:
        parts = self._component_distribution.expand(size(batch_shape, self._num_component))
        return type(self)(self._mixture_distribution.expand(batch_shape), parts, False)

    @property
    def support(self) -> Any:
        return c.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self) -> Tensor:
        p = self._mixture_distribution.probs
        return p.reshape((*p.shape, *[1] * len(self._event_shape)))  # type: ignore[no-any-return]

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - len(self._event_shape))

    @property
    def variance(self) -> Tensor:
        place, parts = -1 - len(self._event_shape), self._component_distribution
        within = (self._weights() * parts.variance).sum(place)
        away = parts.mean - self.mean.unsqueeze(place)
        return within + (self._weights() * away**2).sum(place)

    def cdf(self, value: Tensor) -> Tensor:
        found = self._component_distribution.cdf(self._padded(value))
        return (found * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        found = self._component_distribution.log_prob(self._padded(value))
        weights = self._mixture_distribution.logits.log_softmax(-1)
        return (found + weights).logsumexp(-1)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self._event_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            place = len(size(sample_shape)) + len(self._batch_shape)
            which = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            event = [1] * len(self._event_shape)
            which = which.reshape((*which.shape, 1, *event)).expand((*which.shape, 1, *self._event_shape))
            return values.gather(place, which).squeeze(place)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"


__all__ = [
    "HalfCauchy", "HalfNormal", "Independent", "LogNormal", "LogisticNormal", "MixtureSameFamily", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "TransformedDistribution",
]  # fmt: skip
