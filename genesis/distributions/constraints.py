"""Sets that parameters and values of distributions are from: ``constraint.check(value)`` says of each which are inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor


class Constraint:
    """A set of tensors, of which the last ``event_dim`` dimensions are one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Which values are inside.

        >>> import genesis
        >>> genesis.distributions.constraints.positive.check(genesis.tensor([-1.0, 2.0]))
        tensor([False,  True])
        """
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_").lower() + "()"


class _Dependent(Constraint):
    """A set that depends on parameters: nothing can be checked without them."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> _Dependent:
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("constraints.dependent: it cannot be checked without the distribution it belongs to")


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; on the class it says what is known without parameters."""

    def __init__(self, fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def dependent_property(fn: Any = None, *, is_discrete: bool = False, event_dim: int = 0) -> Any:
    """Make a property that gives a constraint."""
    return _DependentProperty(fn, is_discrete=is_discrete, event_dim=event_dim)


class _Bounded(Constraint):
    """Sets with bounds; ``repr`` shows them."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def __repr__(self) -> str:
        ends = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{type(self).__name__.lstrip('_')}({ends})"


class _From(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Interval(_Bounded):
    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Bounded):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _GreaterThan(_From):
    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_From):
    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _IntegerGreaterThan(_From):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(_Below):
    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _IndependentConstraint(Constraint):
    """A set whose values are tensors of values of another."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        if valid.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"independent: at least {self.event_dim} dimensions are expected, got {value.ndim}")
        kept = valid.ndim - self.reinterpreted_batch_ndims
        return valid.reshape((*valid.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"Independent({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Pieces(Constraint):
    """Values of several sets, along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)


class _Cat(_Pieces):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = g.split(value, self.lengths, self.dim)
        return g.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Pieces):
    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        return g.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim), strict=True)], self.dim)


def _set_of(name: str, holds: Callable[[Tensor], Tensor], event_dim: int = 0, discrete: bool = False) -> Any:
    """The class of a set without parameters, named as PyTorch's, which programs derive from."""
    check = {"check": staticmethod(holds), "event_dim": event_dim, "is_discrete": discrete}
    return type(name, (Constraint,), {**check, "__module__": __name__, "__repr__": lambda self: f"{name[1:]}()"})


def _symmetric(x: Tensor) -> Tensor:
    square = x.shape[-1] == x.shape[-2]
    if not square:
        return x.new_zeros(x.shape[:-2], dtype=g.bool)
    return ((x - x.mT).abs() <= 1e-6 + 1e-5 * x.abs()).all(-1).all(-1)


def _definite(x: Tensor) -> Tensor:
    return _symmetric(x) & (g.linalg.cholesky_ex(x).info == 0)


def _semidefinite(x: Tensor) -> Tensor:
    return _symmetric(x) & (g.linalg.eigvalsh(x) >= 0).all(-1)


def _lower(x: Tensor) -> Tensor:
    return (x.tril() == x).all(-1).all(-1)


def _lower_positive(x: Tensor) -> Tensor:
    return _lower(x) & (x.diagonal(0, -2, -1) > 0).all(-1)


def _correlation(x: Tensor) -> Tensor:
    rows = (x * x).sum(-1)
    bar = float(g.finfo(x.dtype).eps) * x.shape[-1] * 10
    return _lower_positive(x) & ((rows - 1).abs() < bar).all(-1)


def _on_simplex(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


_Boolean = _set_of("_Boolean", lambda x: (x == 0) | (x == 1), discrete=True)
_OneHot = _set_of("_OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
_Real = _set_of("_Real", lambda x: x == x)
_Simplex = _set_of("_Simplex", _on_simplex, 1)
_LowerTriangular = _set_of("_LowerTriangular", _lower, 2)
_LowerCholesky = _set_of("_LowerCholesky", _lower_positive, 2)
_CorrCholesky = _set_of("_CorrCholesky", _correlation, 2)
_Square = _set_of("_Square", lambda x: x.new_ones(x.shape[:-2], dtype=g.bool) & (x.shape[-1] == x.shape[-2]), 2)
_Symmetric = _set_of("_Symmetric", _symmetric, 2)
_PositiveSemidefinite = _set_of("_PositiveSemidefinite", _semidefinite, 2)
_PositiveDefinite = _set_of("_PositiveDefinite", _definite, 2)

dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
real = _Real()
real_vector = _IndependentConstraint(real, 1)
positive, nonnegative = _GreaterThan(0.0), _GreaterThanEq(0.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
unit_interval = _Interval(0.0, 1.0)
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
multinomial, independent, cat, stack = _Multinomial, _IndependentConstraint, _Cat, _Stack


class MixtureSameFamilyConstraint(Constraint):
    """The set of a mixture's components."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        dim = -1 - self.event_dim
        return self.base_constraint.check(value.unsqueeze(dim)).all(-1)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on parameters."""
    return isinstance(constraint, _Dependent)


__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
