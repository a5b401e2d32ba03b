"""Transforms from all real numbers to a constraint: bijective ones, and others where those are simpler."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.distributions import constraints as c
from genesis.distributions import transforms as t

Factory = Callable[[Any], t.Transform]


class ConstraintRegistry:
    """Which transform goes to a constraint, by its class, or by the constraint itself.

    >>> import genesis
    >>> from genesis.distributions import biject_to, constraints
    >>> biject_to(constraints.positive)(genesis.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._factories: dict[Any, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Say which transform goes to a constraint, or to all of a class; without ``factory``, a decorator.

        Raises:
            TypeError: neither a constraint nor a class of them
        """
        if factory is None:
            return lambda f: self.register(constraint, f)
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise ArgumentError(message("register", f"expected a constraint or a class of them, got {constraint!r}"))
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> t.Transform:
        key = type(constraint)
        if key not in self._factories:
            raise NotImplementedError(f"no transform to {constraint!r} is registered")
        return self._factories[key](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(constraint: Any, factory: Factory) -> None:
    biject_to.register(constraint, factory)
    transform_to.register(constraint, factory)


def _interval(x: Any) -> t.Transform:
    low, high = x.lower_bound, x.upper_bound
    if isinstance(low, numbers.Number) and isinstance(high, numbers.Number) and low == 0 and high == 1:
        return t.SigmoidTransform()  # type: ignore[no-any-return]
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _independent(registry: ConstraintRegistry) -> Factory:
    return lambda x: t.IndependentTransform(registry(x.base_constraint), x.reinterpreted_batch_ndims)


_both(c.real, lambda x: t.identity_transform)
_both(c.greater_than, lambda x: t.ExpTransform() if isinstance(x.lower_bound, float) and not x.lower_bound else t.ComposeTransform([t.ExpTransform(), t.AffineTransform(x.lower_bound, 1)]))  # fmt: skip
_both(c.greater_than_eq, lambda x: t.ExpTransform() if isinstance(x.lower_bound, float) and not x.lower_bound else t.ComposeTransform([t.ExpTransform(), t.AffineTransform(x.lower_bound, 1)]))  # fmt: skip
_both(c.less_than, lambda x: t.ComposeTransform([t.ExpTransform(), t.AffineTransform(x.upper_bound, -1)]))
_both(c.interval, _interval)
_both(c.half_open_interval, _interval)
biject_to.register(c.simplex, lambda x: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda x: t.SoftmaxTransform())
_both(c.lower_cholesky, lambda x: t.LowerCholeskyTransform())
_both(c.positive_definite, lambda x: t.PositiveDefiniteTransform())
_both(c.positive_semidefinite, lambda x: t.PositiveDefiniteTransform())
_both(c.corr_cholesky, lambda x: t.CorrCholeskyTransform())
for _registry in (biject_to, transform_to):
    _registry.register(c.independent, _independent(_registry))
    _registry.register(c.cat, lambda x, r=_registry: t.CatTransform([r(y) for y in x.cseq], x.dim, x.lengths))
    _registry.register(c.stack, lambda x, r=_registry: t.StackTransform([r(y) for y in x.cseq], x.dim))

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
