"""Distributions made of others: with dimensions joined, and mixed."""

from __future__ import annotations

from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.choices import Categorical
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import size, sum_last


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
        new = self._uninitialized()  # classes derived from this one may be made of other arguments
        Independent.__init__(new, base, self.reinterpreted_batch_ndims, False)
        return new

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
        new = self._uninitialized()
        MixtureSameFamily.__init__(new, self._mixture_distribution.expand(batch_shape), parts, False)
        return new

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
        dim, parts = -1 - len(self._event_shape), self._component_distribution
        within = (self._weights() * parts.variance).sum(dim)
        away = parts.mean - self.mean.unsqueeze(dim)
        return within + (self._weights() * away**2).sum(dim)

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(self._padded(value))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        each = self._component_distribution.log_prob(self._padded(value))
        weights = self._mixture_distribution.logits.log_softmax(-1)
        return (each + weights).logsumexp(-1)

    def _padded(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - len(self._event_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with g.no_grad():
            dim = len(size(sample_shape)) + len(self._batch_shape)
            which = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            event = [1] * len(self._event_shape)
            which = which.reshape((*which.shape, 1, *event)).expand((*which.shape, 1, *self._event_shape))
            return values.gather(dim, which).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"


__all__ = ["Independent", "MixtureSameFamily"]
