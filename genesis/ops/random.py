"""Random tensors, from a counter-based stream (`core/graph/generator.py`): same seed, same numbers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, meta
from genesis.base import dtypes
from genesis.base.device import META, as_device, default_device, require_available
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, DomainError, ShapeError, message
from genesis.core.graph.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.halves import wide
from genesis.core.call.kinds import case, composite, drawn, random
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, known_values, wrap
from genesis.core.call.views import bump, check_writable, inplace_method, write, written_over
from genesis.ops.create import _finish, arange
from genesis.ops.choice import minimum, where
from genesis.ops.search import searchsorted
from genesis.ops.shape import sizes


_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)


@random("uniform")
def uniform(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform numbers in [0, 1)."""
    return stream.uniform(shape, dtype)


@random("normal")
def standard_normal(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal numbers."""
    return stream.normal(shape, dtype)


@random("integers", samples=lambda t: [case((2, 3), _I64, -1, 5)])
def integers(stream: Generator, shape: tuple[int, ...], dtype: Any, low: int, high: int) -> Any:
    """Integers in [low, high)."""
    return stream.integers(low, high, shape)


@random("permutation", samples=lambda t: [case((4,), _I64)])
def permutation(stream: Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    """The integers from 0 to n - 1 in random order, along the last dimension."""
    return np.argsort(stream.words(int(np.prod(shape))).reshape(shape), -1, kind="stable")


def _stream(generator: Any) -> Generator:
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(message("generator", f"expected a genesis.Generator, got {type(generator).__name__}"))
    return default_generator if generator is None else generator


def _draw(
    name: str, kind_of_draw: str, shape: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool, generator: Any
) -> Tensor:
    kind = dtypes.as_np(dtypes.get_default_dtype() if dtype is None else dtype)
    if not dtypes.from_numpy(kind).is_floating_point:
        raise DTypeError(message(name, f"only floating dtypes are drawn, got {dtypes.from_numpy(kind)}"))
    if any(n < 0 for n in shape):
        raise ShapeError(message(name, f"sizes cannot be negative, got {list(shape)}"))
    place = require_available(default_device() if device is None else as_device(device))
    return _finish(
        meta(shape, kind) if place == META else drawn(_stream(generator), kind_of_draw, shape, kind, place=place),
        requires_grad,
    )


def rand(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Uniform numbers in [0, 1).

    >>> import genesis
    >>> genesis.rand(2, 3).shape
    genesis.Size([2, 3])
    """
    return _draw("rand", "uniform", sizes(size), dtype, device, requires_grad, generator)


def randn(
    *size: Any, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Standard normal numbers.

    >>> import genesis
    >>> genesis.randn(2, 3).shape
    genesis.Size([2, 3])
    """
    return _draw("randn", "normal", sizes(size), dtype, device, requires_grad, generator)


def randint(
    low: Any,
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
    if size is None:
        low, high, size = 0, low, high
    if high <= low:
        raise ShapeError(message("randint", f"the range from {low} to {high} is empty"))
    kind = dtypes.as_np(dtypes.int64 if dtype is None else dtype)
    shape = sizes((size,))
    place = require_available(default_device() if device is None else as_device(device))
    array = (
        meta(shape, kind)
        if place == META
        else drawn(_stream(generator), "integers", shape, kind, int(low), int(high), place=place)
    )
    return _finish(array, requires_grad)


def randperm(n: int, *, generator: Any = None, dtype: Any = None, device: Any = None) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    >>> import genesis
    >>> genesis.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    if n < 0:
        raise ShapeError(message("randperm", f"n cannot be negative, got {n}"))
    place = require_available(default_device() if device is None else as_device(device))
    kind = dtypes.as_np(dtypes.int64 if dtype is None else dtype)
    return _finish(
        meta((n,), kind) if place == META else drawn(_stream(generator), "permutation", (n,), kind, place=place), False
    )


def _like(call: Any) -> Any:
    def create_like(
        input: Tensor, *, generator: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        kind, place = input._array.dtype if dtype is None else dtype, input.device if device is None else device
        return call(
            tuple(input._array.shape), generator=generator, dtype=kind, device=place, requires_grad=requires_grad
        )

    create_like.__name__ = call.__name__ + "_like"
    create_like.__doc__ = f"`{call.__name__}` in the shape, dtype and place of ``input``."
    return create_like


rand_like, randn_like = _like(rand), _like(randn)


def randint_like(input: Tensor, low: Any, high: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`randint` in the shape, dtype and place of ``input``."""
    low, high = (0, low) if high is None else (low, high)
    return randint(
        low,
        high,
        tuple(input._array.shape),
        dtype=input._array.dtype if dtype is None else dtype,
        device=device or input.device,
    )


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
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
    return (
        randn(tuple(shape), generator=generator, dtype=kind, device=None if tensor is None else tensor.device) * std
        + mean
    ).detach()


def _uniform_like(generator: Any, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Numbers in [0, 1) of the dtype, and on the device, of another tensor."""
    if isinstance(like._array, Spec):
        return like.new_empty(shape)
    return wrap(drawn(_stream(generator), "uniform", shape, like._array.dtype, place=like.device))


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
    return (_uniform_like(generator, tuple(chance._array.shape), chance) < chance).to(input._array.dtype)


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
        u = _uniform_like(generator, (*w.shape[:-1], num_samples), w)
        ends = (w / w.sum(-1, keepdim=True)).cumsum(-1)
        # rounding may leave the last end below u
        last = ((w > 0) * arange(w.shape[-1], device=w.device)).amax(-1, keepdim=True)
        return minimum(searchsorted(ends, u, right=True), last)
    u = _uniform_like(generator, tuple(w.shape), w)
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


@random("dropout", samples=lambda t: [case((2, 3), _F32, 0.5)])
def dropout_factors(stream: Generator, shape: tuple[int, ...], dtype: Any, p: float) -> Any:
    """0 with probability p, 1 / (1 - p) otherwise."""
    kind = np.float64 if dtype == np.float64 else np.float32
    return (stream.uniform(shape, kind) >= p) * kind(1 / (1 - p))


@composite(method=False, torch_name="nn.functional.dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p`` and scale the others by 1 / (1 - p) (Srivastava et al. 2014).

    Raises:
        ValueError: ``p`` outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.dropout(genesis.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    if not 0 <= p <= 1:
        raise ArgumentValueError(message("dropout", f"p must be between 0 and 1, got {p}"))
    if not training or p == 0:
        return input
    if p == 1:
        result = input * 0.0
    elif isinstance(input._array, Spec):
        result = input * 1.0
    else:
        x = wide(input)  # a factor of 16 bits would be rounded, and the product again
        result = (
            x
            * wrap(drawn(default_generator, "dropout", tuple(x._array.shape), x._array.dtype, float(p), place=x.device))
        ).to(input._array.dtype)
    return input.copy_(result) if inplace else result


samples(dropout, lambda t: [case(t(3, 4), 0.0), case(t(3, 4), 0.5, False), case(t(3), 1.0)])

wrong_inputs(dropout, (lambda t: case(t(3), 1.5), ValueError, "dropout: p must be between 0 and 1, got 1.5"))


@composite(method=False, inplace=True, torch_name="nn.functional.rrelu")
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`leaky_relu` with slopes drawn from [lower, upper) for each element in training, else with their mean (Xu et al.
    2015).

    Raises:
        ValueError: ``lower`` is above ``upper``

    >>> import genesis
    >>> genesis.nn.functional.rrelu(genesis.tensor([-4., 1.]), 0.1, 0.4)
    tensor([-1.,  1.])
    """
    if lower > upper:
        raise ArgumentValueError(message("rrelu", f"the lower slope {lower} is above the upper one, {upper}"))
    slope = (
        _uniform_like(None, tuple(input._array.shape), input) * (upper - lower) + lower
        if training
        else (lower + upper) / 2
    )
    return where(input > 0, input, input * slope)


samples(rrelu, lambda t: [case(t(3, 4)), case(t(2, 3), 0.2, 0.4)])

wrong_inputs(
    rrelu, (lambda t: case(t(3), 0.5, 0.1), ValueError, "rrelu: the lower slope 0.5 is above the upper one, 0.1")
)


rrelu_ = inplace_method(rrelu.op)  # type: ignore[attr-defined]

# ---- in place


def _filler(name: str, make: Any, doc: str, samples: Any = None) -> None:
    """Declare a draw, and the method that fills a tensor with it."""

    def fill(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        _check_options(name, args, kwargs)
        check_writable(self, name, False)
        if isinstance(self._array, Spec):
            return self
        given = op.signature.bind(None, None, None, *args, **kwargs)
        given.apply_defaults()
        options = [p.detach()._on_host() if isinstance(p, Tensor) else p for p in given.args[3:]]
        new = drawn(_stream(generator), name, self._array.shape, self._array.dtype, *options, place=self.device)
        self._own_memory()
        write(self, wrap(new))
        bump(self, name)
        written_over(self)
        return self

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
    "random_": ("low must be below high", lambda low=0, high=None: low >= 0 if high is None else low < high),
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
    real = np.float64 if kind == np.float64 else np.float32
    drawn = (stream.uniform(tuple(shape), kind) * real(high - low) + real(low)).astype(kind)
    # rounding may have reached the end
    return np.where(drawn.astype(real) >= high, real(low), drawn.astype(real)) if high > low else drawn


def _normal(stream: Generator, shape: Any, kind: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    wide = np.float64 if kind == np.float64 else np.float32
    return stream.normal(tuple(shape), wide) * wide(std) + wide(mean)


def _random(stream: Generator, shape: Any, kind: Any, low: int = 0, high: int | None = None) -> Any:
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


_filler("uniform_", _uniform, "Fill with uniform numbers in [from, to).")
_filler("normal_", _normal, "Fill with normal numbers of a mean and standard deviation.")
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
    lambda t: [case((2, 3), _F32, 0.5)],
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
    "rrelu",
    "rrelu_",
    "seed",
    "set_rng_state",
]
FUNCTIONAL = ["rrelu", "rrelu_"]
