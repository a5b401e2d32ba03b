"""Transforms of each element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import genesis as g
from genesis.core.graph.tensor import Tensor
from genesis.distributions import constraints as c
from genesis.distributions.transforms.transform import Transform
from genesis.distributions.utils import eps, sum_last, tiny


class _Same(Transform):
    """A transform without parameters: all of a class are equal."""

    bijective = True
    _sign = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


def _elementwise(
    name: str,
    forward: Callable[[Tensor], Tensor],
    inverse: Callable[[Tensor], Tensor],
    log_slope: Callable[[Tensor, Tensor], Tensor],
    codomain: Any,
    doc: str,
) -> Any:
    members = {
        "_call": lambda self, x: forward(x),
        "_inverse": lambda self, y: inverse(y),
        "log_abs_det_jacobian": lambda self, x, y: log_slope(x, y),
        "codomain": codomain,
        "__doc__": doc,
        "__module__": __name__,
    }
    return type(name, (_Same,), members)


def _softplus(x: Tensor) -> Tensor:
    return g.nn.functional.softplus(x)


def _expit(x: Tensor) -> Tensor:
    y = x.sigmoid()
    return y.clamp(tiny(y), 1 - eps(y))


ExpTransform = _elementwise(
    "ExpTransform", lambda x: x.exp(), lambda y: y.log(), lambda x, y: x, c.positive, "$y = e^x$."
)
SigmoidTransform = _elementwise(
    "SigmoidTransform", _expit, lambda y: y.clamp(tiny(y), 1 - eps(y)).log() - (-y.clamp(tiny(y), 1 - eps(y))).log1p(),
    lambda x, y: -_softplus(-x) - _softplus(x), c.unit_interval, "$y = 1 / (1 + e^{-x})$.",
)  # fmt: skip
TanhTransform = _elementwise(
    "TanhTransform", lambda x: x.tanh(), lambda y: y.atanh(), lambda x, y: 2 * (math.log(2) - x - _softplus(-2 * x)),
    c.interval(-1.0, 1.0), "$y = \\tanh x$.",
)  # fmt: skip
SoftplusTransform = _elementwise(
    "SoftplusTransform", _softplus, lambda y: (-(-y).expm1()).log() + y, lambda x, y: -_softplus(-x), c.positive,
    "$y = \\ln(1 + e^x)$.",
)  # fmt: skip


class AbsTransform(_Same):
    """$y = |x|$, which has no inverse; the positive one is given."""

    bijective = False
    _sign = None
    codomain = c.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """$y = x^p$ of positive numbers."""

    bijective = True
    domain = codomain = c.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else g.tensor(exponent)

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return g.broadcast_shapes(tuple(shape), tuple(self.exponent.shape))

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = object.__hash__


class AffineTransform(Transform):
    """$y = a + b x$.

    >>> import genesis
    >>> genesis.distributions.AffineTransform(1.0, 2.0)(genesis.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return c.independent(c.real, self._event_dim) if self._event_dim else c.real

    codomain = domain  # type: ignore[assignment]
    event_dim = property(lambda self: self._event_dim)  # type: ignore[assignment]

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else x.new_tensor(float(self.scale))
        return sum_last(
            scale.abs().log().expand(g.broadcast_shapes(tuple(x.shape), tuple(scale.shape))), self._event_dim
        )

    def forward_shape(self, shape: Any) -> Any:
        return g.broadcast_shapes(
            tuple(shape), tuple(getattr(self.loc, "shape", ())), tuple(getattr(self.scale, "shape", ()))
        )

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        same = [
            a is b or bool(g.as_tensor(a == b).all()) for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        ]
        return all(same)

    __hash__ = object.__hash__


class CumulativeDistributionTransform(Transform):
    """$y = F(x)$, the distribution function of a distribution."""

    bijective = True
    codomain = c.unit_interval
    _sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]


__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]
