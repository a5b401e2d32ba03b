"""Random tensors, from a counter-based stream (`core/graph/generator.py`): same seed, same numbers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, meta
from genesis.base import dtypes
from genesis.base.dtypes import whole
from genesis.base.device import CPU, META, as_device, default_device, require_available
from genesis.base.errors import ArgumentError, ArgumentValueError, DomainError, DTypeError, ShapeError, message
from genesis.core.call.creating import creates
from genesis.core.call.out import takes_out
from genesis.core.call.halves import wide
from genesis.core.call.kinds import case, drawn, random
from genesis.core.call.refusal import explain_all
from genesis.core.graph.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, known_values, wrap
from genesis.ops.creation.create import finished, in_order, order_of
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.choice import minimum
from genesis.ops.reductions.search import searchsorted
from genesis.ops.shapes.expand import never_negative, sizes

_I64 = np.dtype(np.int64)


def in_pairs(draw: Callable[..., Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Complex numbers whose two parts are drawn."""
    pairs = draw((*shape, 2), dtypes.from_numpy(dtype).to_real().np)
    return np.ascontiguousarray(pairs).view(dtype)[..., 0]


@random("uniform")
def uniform(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform numbers in [0, 1)."""
    return in_pairs(stream.uniform, shape, dtype) if dtype.kind == "c" else stream.uniform(shape, dtype)


@random("normal")
def standard_normal(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal numbers."""
    if dtype.kind == "c":  # the variance is that of both parts together
        return in_pairs(lambda size, real: stream.normal(size, real) * real.type(math.sqrt(0.5)), shape, dtype)
    return stream.normal(shape, dtype)


@random("integers", samples=lambda t: [case((2, 3), _I64, -1, 5)])
def integers(stream: Generator, shape: tuple[int, ...], dtype: Any, low: int, high: int) -> Any:
    """Integers in [low, high)."""
    return stream.integers(low, high, shape)


@random("permutation", samples=lambda t: [case((4,), _I64)])
def permutation(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """The integers from 0 to n - 1 in random order, along the last dimension."""
    return _ranked(stream.words(math.prod(shape)).reshape(shape))


_MANY = 2048  # words whose order is found faster by sorting them with their positions in them


def _ranked(words: Any) -> Any:
    """The positions of 64-bit words in their order along the last dimension, of equals the first first."""
    n = words.shape[-1]
    if n >= _MANY:  # a third of the time: NumPy sorts numbers in vectors, positions one by one
        bits = np.uint64((n - 1).bit_length())
        keys = words >> bits << bits | np.arange(n, dtype=np.uint64)
        keys.sort(-1)
        order = (keys & np.uint64((1 << int(bits)) - 1)).view(np.int64)
        keys >>= bits
        if not np.equal(keys[..., 1:], keys[..., :-1]).any():  # else the bits that were cut off may decide
            return order
    return words.argsort(-1, "stable")


def stream_of(generator: Any) -> Generator:
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(message("generator", f"expected a genesis.Generator, got {type(generator).__name__}"))
    return default_generator if generator is None else generator


def _draw(
    name: str, kind_of_draw: str, shape: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool, generator: Any
) -> Tensor:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    kind = wanted.np
    if wanted.category < 2:
        raise DTypeError(message(name, f"only floating and complex dtypes are drawn, got {wanted}"))
    if shape and min(shape) < 0:
        raise ShapeError(message(name, f"sizes cannot be negative, got {list(shape)}"))
    if wanted is dtypes.complex32:
        return (
            _draw(name, kind_of_draw, shape, dtypes.complex64, device, False, generator)
            .to(kind)
            .requires_grad_(requires_grad)
        )  # type: ignore[attr-defined, no-any-return]
    device = default_device() if device is None else as_device(device)
    if device is not CPU:
        device = require_available(device)
    there = device is not CPU and device == META
    return finished(
        meta(shape, kind) if there else drawn(stream_of(generator), kind_of_draw, shape, kind, device=device),
        requires_grad,
    )


@creates
def rand(
    *shape: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1); of complex numbers both parts.

    >>> import genesis
    >>> genesis.rand(2, 3).shape
    genesis.Size([2, 3])
    """
    shape = shape if size is None else (*shape, size)
    return _draw("rand", "uniform", sizes(shape), dtype, device, requires_grad, generator)


@creates
def randn(
    *shape: Any, size: Any = None, generator: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Standard normal numbers; of complex ones each part has the variance 1/2.

    >>> import genesis
    >>> genesis.randn(2, 3).shape
    genesis.Size([2, 3])
    """
    shape = shape if size is None else (*shape, size)
    return _draw("randn", "normal", sizes(shape), dtype, device, requires_grad, generator)


@creates
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high), int64 unless given: ``randint(high, size)`` or ``randint(low, high, size)``.

    Raises:
        RuntimeError: an empty range

    >>> import genesis
    >>> x = genesis.randint(3, 5, (100,))
    >>> int(x.min()), int(x.max())
    (3, 4)
    """
    if size is None and low is not None:
        low, high, size = 0, low, high
    low = 0 if low is None else low
    if high is None or size is None:
        raise ArgumentError(message("randint", "needs high and size", hint="randint(10, (3,)) or randint(5, 10, (3,))"))
    if high <= low:
        raise ShapeError(message("randint", f"the range from {low} to {high} is empty"))
    if low < -(2**63) or high > 2**63:
        raise ArgumentValueError(message("randint", f"the range from {low} to {high} does not fit into int64"))
    kind = dtypes.as_np(dtypes.int64 if dtype is None else dtype)
    shape = sizes((size,))
    never_negative("randint", "sizes", shape)
    device = require_available(default_device() if device is None else as_device(device))
    array = (
        meta(shape, kind)
        if device == META
        else drawn(stream_of(generator), "integers", shape, kind, int(low), int(high), device=device)
    )
    return finished(array, requires_grad)


@creates
def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    >>> import genesis
    >>> genesis.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    plain = n.__class__ is int and n >= 0 and generator is dtype is device is None and not (ACTIVE or LEVELS)
    if plain and default_device() is CPU:  # as it is mostly called
        return wrap(drawn(default_generator, "permutation", (n,), _I64))
    if n < 0:
        raise ShapeError(message("randperm", f"n cannot be negative, got {n}"))
    device = require_available(default_device() if device is None else as_device(device))
    kind = dtypes.as_np(dtypes.int64 if dtype is None else dtype)
    return finished(
        meta((n,), kind) if device == META else drawn(stream_of(generator), "permutation", (n,), kind, device=device),
        False,
    )


def _like(call: Any) -> Any:
    def create_like(
        input: Tensor,
        *,
        generator: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        kind, device = input._array.dtype if dtype is None else dtype, input.device if device is None else device
        shape, order = tuple(input._array.shape), order_of(input, memory_format)
        if order is None:
            return call(shape, generator=generator, dtype=kind, device=device, requires_grad=requires_grad)
        return in_order(call(shape, generator=generator, dtype=kind, device=device), order, requires_grad)

    create_like.__name__ = call.__name__ + "_like"
    create_like.__doc__ = f"`{call.__name__}` in the shape, dtype and place of ``input``."
    return creates(create_like, out=False)


rand_like, randn_like = _like(rand), _like(randn)


@creates(out=False)
def randint_like(
    input: Tensor,
    low: Any = 0,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`randint` in the shape, dtype and place of ``input``."""
    low, high = (0, low) if high is None else (low, high)
    order = order_of(input, memory_format)
    made = randint(
        low,
        high,
        tuple(input._array.shape),
        dtype=input._array.dtype if dtype is None else dtype,
        device=device or input.device,
        generator=generator,
        requires_grad=requires_grad and order is None,
    )
    return made if order is None else in_order(made, order, requires_grad)


@takes_out
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of given means and standard deviations (tensors that broadcast, or numbers with a ``size``).

    Raises:
        RuntimeError: a negative standard deviation

    >>> import genesis
    >>> genesis.normal(genesis.zeros(3), 1.0).shape
    genesis.Size([3])
    """
    if not isinstance(std, Tensor) and std < 0:
        raise ShapeError(message("normal", f"std must not be negative, got {std}"))
    if size is None:
        shape = (mean + std * 0).shape if isinstance(mean, Tensor) else std.shape if isinstance(std, Tensor) else ()
    else:
        shape = sizes((size,))
    tensor = next((x for x in (mean, std) if isinstance(x, Tensor)), None)
    kind = dtype if dtype is not None else tensor._array.dtype if tensor is not None else None
    device = tensor.device if device is None and tensor is not None else device
    drawn_ = randn(tuple(shape), generator=generator, dtype=kind, device=device)
    return (drawn_ * std + mean).detach().requires_grad_(requires_grad)


def uniform_like(generator: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Numbers in [0, 1) of the dtype, and on the device, of another tensor."""
    if isinstance(like._array, Spec):
        return like.new_empty(shape)
    return wrap(drawn(stream_of(generator), "uniform", shape, like._array.dtype, device=like.device))


@takes_out
def bernoulli(input: Tensor, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities in ``input`` (or ``p``), zeros otherwise.

    Raises:
        RuntimeError: a probability outside [0, 1]

    >>> import genesis
    >>> genesis.bernoulli(genesis.tensor([0., 1.]))
    tensor([0., 1.])
    """
    chance = input.detach() if p is None else input.detach().new_full(input._array.shape, p, dtype=dtypes.float64)
    chance = wide(chance)  # 16 bits are too few to draw small probabilities with
    values = known_values(chance)
    if values is not None and values.size and not (values.min() >= 0 and values.max() <= 1):
        raise ShapeError(message("bernoulli", "probabilities must be between 0 and 1"))
    chance = chance if chance._array.dtype.kind == "f" else chance.double()
    return (uniform_like(generator, tuple(chance._array.shape), chance) < chance).to(input._array.dtype)


@takes_out
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in (each row of) ``input``.

    Without replacement by the smallest of exponential times (Efraimidis and Spirakis 2006).

    Raises:
        ValueError: negative or infinite weights, or a row of zeros
        RuntimeError: more samples than weights that are not zero

    >>> import genesis
    >>> genesis.multinomial(genesis.tensor([0., 1., 0.]), 2, replacement=True)
    tensor([1, 1])
    """
    if not 1 <= input.ndim <= 2:
        raise ShapeError(message("multinomial", f"weights must be 1-D or 2-D, got {input.ndim}-D"))
    num_samples = whole(num_samples)
    if not isinstance(num_samples, int) or num_samples <= 0:
        raise ShapeError(message("multinomial", f"num_samples must be a positive integer, got {num_samples!r}"))
    if not replacement and num_samples > input.shape[-1]:
        raise ShapeError(
            message("multinomial", f"cannot draw {num_samples} without replacement from {input.shape[-1]} weights")
        )
    w = input.detach().double()
    if (known := known_values(w)) is not None:
        _check_weights(known, num_samples, replacement)
    if replacement:
        u = uniform_like(generator, (*w.shape[:-1], num_samples), w)
        ends = (w / w.sum(-1, keepdim=True)).cumsum(-1)
        # rounding may leave the last end below u
        last = ((w > 0) * arange(w.shape[-1], device=w.device)).amax(-1, keepdim=True)
        return minimum(searchsorted(ends, u, right=True), last)
    u = uniform_like(generator, tuple(w.shape), w)
    return (-(-u).log1p() / w).argsort(-1, stable=True)[..., :num_samples]


def _check_weights(w: Any, num_samples: int, replacement: bool) -> None:
    if not np.isfinite(w).all() or (w < 0).any() or (w.sum(-1) <= 0).any():
        wrong = w[~np.isfinite(w) | (w < 0)]
        what = f"got {wrong.flat[0]}" if wrong.size else "got a sum of 0"
        raise DomainError(
            message(
                "multinomial",
                f"weights must be finite, not negative, and not all zero, {what}",
                hint="softmax(-1) makes weights of any numbers",
            )
        )
    some = (w > 0).sum(-1)
    if not replacement and (some < num_samples).any():
        raise ShapeError(
            message("multinomial", f"cannot draw {num_samples} without replacement from {int(some.min())} weights")
        )


Tensor.bernoulli = bernoulli
Tensor.multinomial = multinomial


@contextlib.contextmanager
def fork_rng(devices: Any = (), enabled: bool = True) -> Iterator[None]:
    """Put the default generator back at the end, as if nothing had been drawn.

    >>> import genesis
    >>> with genesis.random.fork_rng():
    ...     _ = genesis.rand(3)
    """
    before = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)


explain_all(
    globals(),
    "rand",
    "randn",
    "randint",
    "randperm",
    "randint_like",
    "rand_like",
    "randn_like",
    "normal",
    "bernoulli",
    "multinomial",
)

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]
