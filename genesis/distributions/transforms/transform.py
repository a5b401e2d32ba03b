"""What all transforms have, their inverses and compositions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.utils import sum_last


class Transform:
    """An invertible function: ``t(x)``, ``t.inv(y)`` and ``t.log_abs_det_jacobian(x, y)``.

    ``bijective`` says whether the inverse is one; ``sign`` is 1 or -1 of monotone functions; with ``cache_size=1`` the
    last pair is kept, so that ``t.inv(t(x))`` is x.
    """

    bijective = False
    domain: Any = c.real
    codomain: Any = c.real
    _sign: Any = None

    def __init__(self, cache_size: int = 0) -> None:
        self._remember(cache_size)
        super().__init__()  # of a class that is a module, too

    def _remember(self, cache_size: int) -> None:
        if cache_size not in (0, 1):
            raise ArgumentValueError(message(type(self).__name__, f"cache_size must be 0 or 1, got {cache_size}"))
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)  # a name that transforms of users read
        self._inv: Any = None

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ArgumentValueError(message(type(self).__name__, "use domain.event_dim and codomain.event_dim"))

    @property
    def inv(self) -> Transform:
        """The inverse."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        """1 of an increasing function, -1 of a decreasing one."""
        if self._sign is None:
            raise NotImplementedError(f"{type(self).__name__}: it is not monotone, or does not say how")
        return self._sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with another cache."""
        if cache_size == self._cache_size:
            return self
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._remember(cache_size)
        return new

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        if x is self._cached_x_y[0]:
            return self._cached_x_y[1]  # type: ignore[no-any-return]
        self._cached_x_y = (x, self._call(x))
        return self._cached_x_y[1]  # type: ignore[no-any-return]

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is self._cached_x_y[1]:
            return self._cached_x_y[0]  # type: ignore[no-any-return]
        self._cached_x_y = (self._inverse(y), y)
        return self._cached_x_y[0]  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: there is no function")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: there is no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """$\\ln |\\det \\partial y / \\partial x|$ at a pair of values."""
        raise NotImplementedError(f"{type(self).__name__}: there is no Jacobian's determinant")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values that values of this shape are taken to."""
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of values that are taken to values of this shape."""
        return Size(shape)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = property(lambda self: self._inv.codomain)  # type: ignore[assignment]
    codomain = property(lambda self: self._inv.domain)  # type: ignore[assignment]
    bijective = property(lambda self: self._inv.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after the other.

    >>> import genesis
    >>> from genesis.distributions.transforms.elementwise import AffineTransform, ExpTransform
    >>> from genesis.distributions.transforms.transform import ComposeTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(genesis.tensor(0.0))
    tensor(1.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return c.real
        domain, dims = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return c.independent(domain, dims - domain.event_dim) if dims > domain.event_dim else domain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return c.real
        codomain, dims = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return c.independent(codomain, dims - codomain.event_dim) if dims > codomain.event_dim else codomain

    bijective = property(lambda self: all(p.bijective for p in self.parts))  # type: ignore[assignment]
    sign = property(lambda self: reduce(operator.mul, [p.sign for p in self.parts], 1))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total, dims = g.zeros_like(x) if not self.parts else None, self.domain.event_dim
        for part in self.parts:
            after = part(x)
            term = sum_last(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            total = term if total is None else total + term
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total  # type: ignore[return-value]

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


__all__ = ["ComposeTransform", "Transform", "identity_transform"]
