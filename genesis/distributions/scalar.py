"""Distributions of one number, with parameters that broadcast; those with a probability or its logit."""

from __future__ import annotations

from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions.distribution import Distribution, derived
from genesis.distributions.utils import clamped, eps, tensors, tiny


def uniform_for(d: Distribution, sample_shape: Any, like: Tensor) -> Tensor:
    """Numbers in (0, 1)."""
    u = g.rand(tuple(d._extended_shape(sample_shape)), dtype=like.dtype, device=like.device)
    return u.clamp(tiny(u), 1 - eps(u) / 2)


def normal_for(d: Distribution, sample_shape: Any, like: Tensor) -> Tensor:
    return g.randn(tuple(d._extended_shape(sample_shape)), dtype=like.dtype, device=like.device)


class Scalar(Distribution):
    """Distributions of one number, with parameters that broadcast."""

    has_rsample = True

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        numbers = all(not isinstance(p, Tensor) for p in parameters.values())
        for name, value in zip(parameters, tensors(*parameters.values()), strict=True):
            self.__dict__[name] = value
        shape = Size() if numbers else next(iter(self.__dict__[name] for name in parameters)).shape
        super().__init__(shape, validate_args=validate_args)


def set_probabilities(d: Any, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
    """Keep the one of both that was given; the other is computed when it is asked for. ``others`` take its dtype."""
    if (probs is None) == (logits is None):
        name = type(d).__name__
        raise ArgumentValueError(message(name, "either probs or logits must be given, and not both"))
    which, value = ("logits", logits) if probs is None else ("probs", probs)
    d._set(validate_args, **{which: value}, **others)
    for name in others:
        setattr(d, name, getattr(d, name).to(d._param.dtype))


class Probability(Scalar):
    """Distributions with a probability, or its logit, log p / (1 - p)."""

    has_rsample = False

    @derived
    def logits(self) -> Tensor:
        p = clamped(self.probs)
        return p.log() - (-p).log1p()

    @derived
    def probs(self) -> Tensor:
        return self.logits.sigmoid()  # type: ignore[no-any-return]

    @property
    def _param(self) -> Tensor:
        return self.__dict__.get("probs", self.__dict__.get("logits"))  # type: ignore[return-value]

    param_shape = property(lambda self: self._param.shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._missing("rsample")  # type: ignore[no-any-return]
