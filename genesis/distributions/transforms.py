"""Transforms of values with the logarithm of their Jacobian's determinant, and compositions of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import genesis as g
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Size, Tensor
from genesis.distributions import constraints as c
from genesis.distributions.utils import eps, sum_last, tiny


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
        if cache_size not in (0, 1):
            raise ArgumentValueError(message(type(self).__name__, f"cache_size must be 0 or 1, got {cache_size}"))
        self._cache_size = cache_size
        self._pair: tuple[Any, Any] = (None, None)
        self._backward: Any = None

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ArgumentValueError(message(type(self).__name__, "use domain.event_dim and codomain.event_dim"))

    @property
    def inv(self) -> Transform:
        """The inverse."""
        if self._backward is None:
            self._backward = _Inverse(self)
        return self._backward  # type: ignore[no-any-return]

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
        Transform.__init__(new, cache_size)
        return new

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        if x is self._pair[0]:
            return self._pair[1]  # type: ignore[no-any-return]
        self._pair = (x, self._call(x))
        return self._pair[1]  # type: ignore[no-any-return]

    def _inverse_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is self._pair[1]:
            return self._pair[0]  # type: ignore[no-any-return]
        self._pair = (self._inverse(y), y)
        return self._pair[0]  # type: ignore[no-any-return]

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


class _Inverse(Transform):
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
        return self._inv._inverse_call(x)

    def _inverse_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after the other.

    >>> import genesis
    >>> from genesis.distributions.transforms import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(genesis.tensor(0.0))
    tensor(1.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)
        super().__init__(cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return c.real
        found, dims = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return c.independent(found, dims - found.event_dim) if dims > found.event_dim else found

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return c.real
        found, dims = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return c.independent(found, dims - found.event_dim) if dims > found.event_dim else found

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


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    domain = property(lambda self: c.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))  # type: ignore[assignment]
    codomain = property(lambda self: c.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims))  # type: ignore[assignment]
    bijective = property(lambda self: self.base_transform.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Another shape of the event."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ArgumentValueError(
                message("ReshapeTransform", f"{list(in_shape)} and {list(out_shape)} have other numbers of elements")
            )
        super().__init__(cache_size)

    domain = property(lambda self: c.independent(c.real, len(self.in_shape)))  # type: ignore[assignment]
    codomain = property(lambda self: c.independent(c.real, len(self.out_shape)))  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.in_shape)], *self.out_shape))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.out_shape)], *self.in_shape))


# ---- element by element


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


# ---- of vectors and matrices


class SoftmaxTransform(_Same):
    """$y = \\text{softmax}(x)$; the inverse is the logarithm, up to a constant."""

    bijective = False
    _sign = None
    domain, codomain = c.real_vector, c.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_Same):
    """From n real numbers to n + 1 positive ones with sum 1, each a part of what is left (Stan reference manual, "Unit
    simplex").

    >>> import genesis
    >>> genesis.distributions.StickBreakingTransform()(genesis.zeros(1))
    tensor([0.5000, 0.5000])
    """

    _sign = None
    domain, codomain = c.real_vector, c.simplex

    def _offset(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        return g.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        z = _expit(x - self._offset(x))
        one = z.new_ones(z.shape[:-1] + (1,))
        return g.cat([z, one], -1) * g.cat([one, (1 - z).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=tiny(y))
        return head.log() - rest.log() + self._offset(head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        z = x - self._offset(x)
        return (-z + g.nn.functional.logsigmoid(z) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Same):
    """From any matrix to a lower triangle with a positive diagonal."""

    _sign = None
    domain, codomain = c.independent(c.real, 2), c.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(_Same):
    """From any matrix to a positive definite one, the square of a triangle."""

    _sign = None
    domain, codomain = c.independent(c.real, 2), c.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        low = LowerCholeskyTransform()(x)
        return low @ low.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(g.linalg.cholesky(y))


class CorrCholeskyTransform(_Same):
    """From n (n - 1) / 2 real numbers to Cholesky's factor of a matrix of correlations (Stan reference manual,
    "Cholesky factors of correlation matrices").
    """

    _sign = None
    domain, codomain = c.real_vector, c.corr_cholesky

    def _places(self, n: int) -> tuple[list[int], list[int]]:
        return [i for i in range(n) for _ in range(i)], [j for i in range(n) for j in range(i)]

    def _triangle(self, x: Tensor, n: int) -> Tensor:
        rows, columns = self._places(n)
        out = x.new_zeros((*x.shape[:-1], n, n))
        out[..., rows, columns] = x
        return out

    def _call(self, x: Tensor) -> Tensor:
        n = round((1 + math.sqrt(1 + 8 * x.shape[-1])) / 2)
        r = self._triangle(x.tanh().clamp(-1 + eps(x), 1 - eps(x)), n)
        rest = (1 - r * r).sqrt().cumprod(-1)
        before = g.cat([rest.new_ones((*rest.shape[:-1], 1)), rest[..., :-1]], -1)
        return (r + g.eye(n, dtype=x.dtype, device=x.device)) * before

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        before = g.cat([left.new_ones((*left.shape[:-1], 1)), left[..., :-1]], -1)
        rows, columns = self._places(n)
        x = y[..., rows, columns] / before[..., rows, columns].clamp(min=tiny(y)).sqrt()
        return (x.log1p() - (-x).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n = y.shape[-1]
        left = 1 - (y * y).cumsum(-1)
        rows = [i for i in range(n) for _ in range(i - 1)]
        columns = [j for i in range(n) for j in range(i - 1)]
        stick = 0.5 * left[..., rows, columns].log().sum(-1)
        return stick - 2 * (x + _softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        n = round((1 + math.sqrt(1 + 8 * shape[-1])) / 2)
        if n * (n - 1) // 2 != shape[-1]:
            raise ArgumentValueError(
                message("CorrCholeskyTransform", f"{shape[-1]} is no number of elements of a triangle")
            )
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


# ---- of parts


class _Parts(Transform):
    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]

    def _each(self, x: Tensor, apply: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        pieces = self._split(x)
        return self._join([apply(t, p) for t, p in zip(self.transforms, pieces, strict=True)])

    def _split(self, x: Tensor) -> Any:
        return g.split(x, self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return g.cat(parts, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._each(x, lambda t, p: t(p))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(y, lambda t, p: t.inv(p))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), self._split(y), strict=True)
        dims = max(t.domain.event_dim for t in self.transforms)
        found = [sum_last(t.log_abs_det_jacobian(a, b), dims - t.domain.event_dim) for t, a, b in pairs]
        if self.dim < 0 and self.dim + dims >= 0:
            return reduce(operator.add, found)
        return self._join(found)


class CatTransform(_Parts):
    """Transforms of parts along a dimension, of given lengths."""

    domain = property(lambda self: c.cat([t.domain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]
    codomain = property(lambda self: c.cat([t.codomain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]


class StackTransform(_Parts):
    """Transforms of slices along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, None, cache_size)

    domain = property(lambda self: c.stack([t.domain for t in self.transforms], self.dim))  # type: ignore[assignment]
    codomain = property(lambda self: c.stack([t.codomain for t in self.transforms], self.dim))  # type: ignore[assignment]

    def _split(self, x: Tensor) -> Any:
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return g.stack(parts, self.dim)


__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip
