"""Numbers of distributions with parameters, by NumPy's samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, DomainError, DTypeError, UnsupportedError, message
from genesis.core.call.kinds import case, drawn, random
from genesis.core.call.out import takes_out
from genesis.core.call.refusal import explain_all
from genesis.core.graph.generator import Generator
from genesis.core.graph.tensor import Tensor, known_values, wrap
from genesis.ops.creation.random import stream_of

SAMPLERS: dict[str, Callable[..., Any]] = {
    "standard_gamma": lambda rng, shape, a: rng.standard_gamma(a, shape),
    "poisson": lambda rng, shape, rate: rng.poisson(rate, shape),
    "binomial": lambda rng, shape, n, p: rng.binomial(n.astype(np.int64), p, shape),
    "von_mises": lambda rng, shape, k: rng.vonmises(0.0, k, shape),
}


def _sampler(name: str) -> None:
    draw = SAMPLERS[name]

    def meaning(stream: Generator, shape: tuple[int, ...], dtype: Any, first: Any, second: Any = None) -> Any:
        parameters = [first] if second is None else [first, second]
        key = [int(word) for word in stream.words(2)]
        rng = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))
        return draw(rng, shape, *[np.asarray(p, np.float64) for p in parameters])

    meaning.__doc__ = f"Numbers of the distribution {name}, by NumPy's sampler, from a key that the stream gives."
    given = (4, 0.5) if name == "binomial" else (0.5,)
    random(name, lambda t: [case((2, 3), np.dtype(np.float32), *given)])(meaning)


for _name in SAMPLERS:
    _sampler(_name)


def sampled(name: str, *parameters: Tensor, generator: Generator | None = None) -> Tensor:
    """A number for each element of the parameters, without a gradient."""
    first = parameters[0]
    shape = tuple(np.broadcast_shapes(*[tuple(p.shape) for p in parameters]))
    if isinstance(first._array, Spec):
        return first.new_empty(shape)
    values = [p.detach()._on_host().astype(np.float64) for p in parameters]
    return wrap(drawn(stream_of(generator), name, shape, first._array.dtype, *values, device=first.device))


def _check(name: str, text: str, x: Tensor, right: Callable[[Any], Any]) -> None:
    """Refuse parameters with elements that no distribution has."""
    values = known_values(x.detach())
    if values is not None and not (fits := right(values.astype(np.float64))).all():
        raise DomainError(message(name, f"{text}, got {values[~fits].flat[0]}"))


def _check_float(name: str, what: str, x: Tensor, error: type[Exception]) -> None:
    if x._array.dtype.kind in "iubc":
        raise error(message(name, f"{what} must be floating numbers, they are {x.dtype}", hint="x.float()"))


@takes_out
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson-distributed counts with the rates in ``input``, in its dtype.

    Raises:
        RuntimeError: a rate that is negative or not a number
        NotImplementedError: rates that are not floating numbers

    >>> import genesis
    >>> genesis.poisson(genesis.tensor([0., 0.]))
    tensor([0., 0.])
    """
    _check_float("poisson", "rates", input, UnsupportedError)
    _check("poisson", "rates must not be negative", input, lambda x: x >= 0)
    return sampled("poisson", input, generator=generator)


@takes_out
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials succeed, each with the probability ``prob``; the two broadcast.

    Raises:
        ValueError: counts that are not floating numbers; negative ones, and probabilities outside of [0, 1]
        RuntimeError: dtypes that differ

    >>> import genesis
    >>> genesis.binomial(genesis.tensor([10., 10.]), genesis.tensor([0., 1.]))
    tensor([ 0., 10.])
    """
    _check_float("binomial", "counts", count, ArgumentValueError)
    if count.dtype is not prob.dtype:
        raise DTypeError(message("binomial", f"count is {count.dtype}, prob {prob.dtype}", hint="prob.to(count.dtype)"))
    _check("binomial", "counts must not be negative", count, lambda x: x >= 0)
    _check("binomial", "probabilities must be between 0 and 1", prob, lambda x: (x >= 0) & (x <= 1))
    return sampled("binomial", count, prob, generator=generator)


explain_all(globals(), "poisson", "binomial")

__all__ = ["binomial", "poisson"]
