"""Memory filled with random numbers in place: ``uniform_``, ``normal_`` and their relatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.device import CPU
from genesis.base.errors import ShapeError, message
from genesis.core.call.halves import F32
from genesis.core.call.kinds import case, drawn, random
from genesis.core.call.views import written_over
from genesis.core.call.writes import bump, check_writable, only_writes, write
from genesis.core.graph.generator import (
    Generator,
)
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.random import in_pairs, stream_of


def _filler(name: str, make: Any, doc: str, samples: Any = None) -> None:
    """Declare a draw, and the method that fills a tensor with it."""

    def fill(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        _check_options(name, args, kwargs)
        plain = only_writes(self)
        if not plain:
            check_writable(self, name, False)
        array = self._array
        if isinstance(array, Spec):
            return self
        if kwargs:
            given = op.signature.bind(None, None, None, *args, **kwargs)
            given.apply_defaults()
            args = given.args[3:]
        options = [p.detach()._on_host() if isinstance(p, Tensor) else p for p in (*args, *defaults()[len(args) :])]
        device = CPU if array.__class__ is np.ndarray else self.device
        new = drawn(stream_of(generator), name, array.shape, array.dtype, *options, device=device)
        if plain:
            array[...] = new
            bump(self, name)
            return self
        self._own_memory()
        write(self, wrap(new))
        bump(self, name)
        written_over(self)
        return self

    @functools.cache
    def defaults() -> tuple[Any, ...]:
        return tuple([p.default for p in op.signature.parameters.values()][3:])

    @functools.wraps(make)
    def meaning(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return make(*arguments)

    meaning.__doc__ = doc
    op = random(name, samples)(meaning).op

    fill.__name__, fill.__doc__ = name, doc
    setattr(Tensor, name, fill)


# what the parameters of a fill must be, in words and as a question; nan is never
_ALLOWED: dict[str, tuple[str, Callable[..., bool]]] = {
    "uniform_": (
        "from must not be above to",
        lambda from_=0.0, to=1.0, a=None, b=None: (from_ if a is None else a) <= (to if b is None else b),
    ),
    "normal_": ("std must not be negative", lambda mean=0.0, std=1.0: std >= 0),
    "log_normal_": ("std must be positive", lambda mean=1.0, std=2.0: std > 0),
    "exponential_": ("lambd must be positive", lambda lambd=1.0: lambd > 0),
    "cauchy_": ("sigma must be positive", lambda median=0.0, sigma=1.0: sigma > 0),
    "geometric_": ("p must be between 0 and 1, and neither", lambda p: 0 < p < 1),
    "bernoulli_": (
        "p must be between 0 and 1",
        lambda p=0.5: bool(((p >= 0) & (p <= 1)).all()) if isinstance(p, Tensor) else 0 <= p <= 1,
    ),
    "random_": (
        "low must be below high",
        lambda low=0, high=None, to=None: low >= 0 if high is to is None else low < (to if high is None else high),
    ),
}


def _check_options(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse parameters that no distribution has."""
    what, allowed = _ALLOWED[name]
    if not allowed(*args, **kwargs):
        given = [str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()]
        raise ShapeError(message(name, f"{what}, got {', '.join(given)}"))


def _open_unit(stream: Generator, shape: Any) -> Any:
    return 1.0 - stream.uniform(tuple(shape), np.float64)


def _uniform(
    stream: Generator,
    shape: Any,
    kind: Any,
    from_: float = 0.0,
    to: float = 1.0,
    a: float | None = None,
    b: float | None = None,
) -> Any:
    low, high = from_ if a is None else a, to if b is None else b
    if kind.kind == "c":
        return in_pairs(lambda size, real: _uniform(stream, size, real, low, high), shape, kind)
    real = np.float64 if kind == np.float64 else np.float32
    drawn = (stream.uniform(tuple(shape), kind) * real(high - low) + real(low)).astype(kind, copy=False)
    if not high > low:
        return drawn
    wide = drawn.astype(real, copy=False)
    beyond = wide >= high  # rounding may have reached the end
    if isinstance(beyond, np.ndarray) and not beyond.any():  # (in a program they are no arrays)
        return drawn
    return np.where(beyond, real(low), wide)


def _normal(stream: Generator, shape: Any, kind: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    if kind.kind == "c":  # the variance is that of both parts together
        return in_pairs(lambda size, real: _normal(stream, size, real, 0.0, std * math.sqrt(0.5)), shape, kind) + mean
    wide = np.float64 if kind == np.float64 else np.float32
    return stream.normal(tuple(shape), wide) * wide(std) + wide(mean)


def _random(
    stream: Generator, shape: Any, kind: Any, low: int = 0, high: int | None = None, to: int | None = None
) -> Any:
    high = to if high is None else high
    if high is None:
        low, high = (
            (0, low)
            if low
            else (
                0,
                2 ** {2: 11, 4: 24, 8: 53}[kind.itemsize]
                if kind.kind not in "iub"
                else 2
                if kind.kind == "b"
                else int(np.iinfo(kind).max),
            )
        )
    return stream.integers(low, high, tuple(shape))


_filler("uniform_", _uniform, "Fill with uniform numbers in [from, to); of complex numbers both parts.")
_filler(
    "normal_",
    _normal,
    "Fill with normal numbers of a mean and standard deviation; of complex ones each part has half of the variance.",
)
_filler("random_", _random, "Fill with integers in [low, high), or of the dtype's whole range.")
_filler(
    "exponential_",
    lambda s, shape, kind, lambd=1.0: -np.log(_open_unit(s, shape)) / lambd,
    "Fill with exponential numbers of a rate.",
)
_filler(
    "geometric_",
    lambda s, shape, kind, p: np.ceil(np.log(_open_unit(s, shape)) / np.log1p(-p)).clip(1),
    "Fill with the number of trials to a first success.",
    lambda t: [case((2, 3), F32, 0.5)],
)
_filler(
    "log_normal_",
    lambda s, shape, kind, mean=1.0, std=2.0: np.exp(_normal(s, shape, kind, mean, std)),
    "Fill with exponentials of normal numbers.",
)
_filler(
    "cauchy_",
    lambda s, shape, kind, median=0.0, sigma=1.0: median + sigma * np.tan(np.pi * (_open_unit(s, shape) - 0.5)),
    "Fill with Cauchy numbers.",
)
_filler(
    "bernoulli_",
    lambda s, shape, kind, p=0.5: s.uniform(tuple(shape), np.float64) < p,
    "Fill with ones of probability p, zeros otherwise.",
)

__all__: list[str] = []
