"""The divergence of Kullback and Leibler, looked up by the classes of both distributions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Tensor
from genesis.distributions.distribution import Distribution

_TABLE: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """Decorate a function of two distributions of these classes, or of classes derived from them.

    Raises:
        TypeError: not classes

    >>> import genesis
    >>> from genesis.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal): pass
    >>> _ = register_kl(Mine, Normal)(lambda p, q: p.loc * 0)
    >>> kl_divergence(Mine(0.0, 1.0), Normal(5.0, 1.0))
    tensor(0.)
    """
    for each in (type_p, type_q):
        if not isinstance(each, type):
            raise ArgumentError(message("register_kl", f"expected a class, got {each!r}"))

    def decorate(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _TABLE[type_p, type_q] = function
        _nearest.cache_clear()
        return function

    return decorate


@functools.cache
def _nearest(p: type, q: type) -> Callable[[Any, Any], Tensor] | None:
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
    function = _nearest(type(p), type(q))
    if function is None:
        raise NotImplementedError(f"kl_divergence: nothing is registered for {type(p).__name__} and {type(q).__name__}")
    return function(p, q)


__all__ = ["kl_divergence", "register_kl"]
