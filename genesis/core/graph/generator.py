"""Random numbers by counting: the same seed gives the same numbers on every machine and in every mode.

A stream is a key (the seed) and a counter. Block ``b`` of the stream is the four 64-bit words of
Philox4x64-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) for counter ``b + 1``
and key ``(seed, 0)``; word ``i`` of the stream is lane ``i % 4`` of block ``i // 4``. A draw of n words takes whole
blocks, so a stream's position is one integer. NumPy's C implementation computes the words, or machine code that makes
normal numbers at once, where it is attached. From words to numbers:

- floats: the top 53, 24, 11 or 8 bits (float64, float32, float16, bfloat16), times 2**-53 and so on: in [0, 1), never
  rounded to 1
- normal: Box and Muller's ``sqrt(-2 ln(1 - u1)) cos(2 pi u2)`` and ``sin``, u1 from the first half of the words, see `normals`
- integers in [low, high): ``low + word % (high - low)``; of ranges of 2**32 and more, words above the last multiple of the
  range are drawn again (of smaller ones that would make less than 2**-32 of a difference)
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from contextvars import ContextVar
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.base import dtypes
from genesis.base.device import as_device, device, require_available
from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.graph import normals
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer

_MASK = 2**64 - 1
BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
EVEN = 2**32  # of ranges below that each integer is as likely as others, but for a part in as many


class Generator:
    """A stream of random numbers.

    >>> import genesis
    >>> g = genesis.Generator().manual_seed(0)
    >>> a = genesis.rand(2, generator=g); b = genesis.rand(2, generator=g.manual_seed(0))
    >>> genesis.equal(a, b)
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device: device = as_device(device)
        require_available(self.device)
        self._lock = threading.Lock()
        active = tracer.get()
        if active is not None:
            active.stream_made(self)
        self.manual_seed(67280421310721)
        generators.add(self)

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self.get_state())

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of ``seed`` (any integer, taken modulo 2**64); returns the generator.

        Raises:
            TypeError: the seed is not an integer
        """
        if not is_integer(seed):
            raise ArgumentError(message("manual_seed", f"the seed must be an integer, got {type(seed).__name__}"))
        active = tracer.get()
        if active is not None:
            active.stream_set(self, None)
        with self._lock:
            self._seed = seed.__index__()
            self._position(0)
        return self

    def _position(self, block: int) -> None:
        self._block = block
        self._philox: Any = None  # made when words are drawn next: importing `numpy.random` takes 10 ms
        self._reached = block  # where it is

    def seed(self) -> int:
        """Begin the stream of a seed that nobody can guess; returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8)) >> 1)
        return self._seed

    def initial_seed(self) -> int:
        active = tracer.get()
        if active is not None:
            active.seed_read(self)
        return self._seed

    def get_state(self) -> Tensor:
        """Key and position as 16 bytes: two little-endian 64-bit words."""
        state = np.array(self.key_and_block(), dtype="<u8").view(np.uint8).copy()
        active = tracer.get()
        if active is not None:
            active.state_read(self, state)
        return wrap(state)

    def key_and_block(self) -> tuple[int, int]:
        """Key and position."""
        active = tracer.get()
        if active is not None:
            active.stream(self)
        with self._lock:
            return self._seed & _MASK, self._block

    def set_state(self, state: Tensor) -> Generator:
        """Go back to a state that `get_state` returned."""
        if not hasattr(state, "_array"):
            raise ArgumentError(message("set_state", f"a state is a tensor of 16 bytes, got {type(state).__name__}"))
        array = memory_of(state._array).to_host(state._array) if isinstance(state._array, DeviceArray) else state._array
        if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.shape != (16,):
            raise ArgumentValueError(message("set_state", f"a state is 16 bytes, got {state._spec()}"))
        return self.move_to(*(int(w) for w in np.ascontiguousarray(array).view("<u8")))

    def move_to(self, key: int, block: int) -> Generator:
        """Go to a place of the stream of a key."""
        active = tracer.get()
        if active is not None:
            active.stream_set(self, (key, block))
        with self._lock:
            self._seed = key
            self._position(block)
        return self

    def words(self, count: int) -> np.ndarray[Any, Any]:
        """The next ``count`` 64-bit words; the stream moves on by whole blocks."""
        blocks = -(-count // 4)
        with self._lock:
            if self._philox is None:
                counter = [self._block & _MASK, self._block >> 64 & _MASK, 0, 0]
                key = np.array([self._seed & _MASK, 0], np.uint64)  # of a list NumPy makes floats from 2**63 on
                self._philox = np.random.Philox(key=key, counter=np.array(counter, np.uint64))
            elif self._reached != self._block:  # somebody `reserve`d what is between
                self._philox.advance(self._block - self._reached)
            self._block += blocks
            self._reached = self._block
            return self._philox.random_raw(blocks * 4)[:count]  # type: ignore[no-any-return]

    def reserve(self, count: int) -> tuple[int, int]:
        """Move on as if so many words were drawn, for whoever makes them himself; the key and the block of the first."""
        with self._lock:
            first = self._block
            self._block += -(-count // 4)
            return self._seed & _MASK, first

    def uniform(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Numbers in [0, 1) that the dtype has; those of 16 bits come as float32."""
        make = normals.uniform_maker(dtype)
        if make is not None:
            count = math.prod(shape)
            return make(shape, count, *self.reserve(count))
        bits = BITS[_drawn(dtype).name]
        kind = np.float64 if bits == 53 else np.float32
        return ((self.words(math.prod(shape)) >> np.uint64(64 - bits)).astype(kind) * kind(2.0**-bits)).reshape(shape)  # type: ignore[no-any-return, operator]

    def normal(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """Standard normal numbers."""
        count = math.prod(shape)
        make = normals.maker(dtype)
        if make is not None:
            return make(shape, count, *self.reserve(count))
        bits = BITS[_drawn(dtype).name]
        kind = np.dtype(np.float64 if bits == 53 else np.float32)
        if kind is not dtype:
            return self.normal(shape, kind).astype(dtype, copy=False)
        half = -(-count // 2)
        out = np.empty((2, half), kind)
        normals.normals(self.words(2 * half).reshape(2, half), out, BITS[kind.name])
        return out.reshape(-1)[:count].reshape(shape)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Integers in [low, high), all of them equally often."""
        words = self.words(math.prod(shape))
        # beyond the last whole multiple of the range some integers would have one chance more
        whole = 2**64 - 2**64 % (high - low) if high - low >= EVEN else 2**64
        while whole < 2**64 and (beyond := words >= np.uint64(whole)).any():
            words[beyond] = self.words(int(beyond.sum()))
        return ((words % np.uint64(high - low)).astype(np.int64) + low).reshape(shape)


def _drawn(dtype: Any) -> dtypes.dtype:
    """The dtype of numbers that are drawn."""
    kind = dtypes.from_numpy(np.dtype(dtype))
    if kind in dtypes.STORED:
        problem = f"{kind} is for storing numbers, not for computing"
        raise UnsupportedError(message("random", problem, hint="draw float32 numbers, and convert them"))
    return kind


def _restored(device: str, state: Tensor) -> Generator:
    return Generator(device).set_state(state)


class SeededStream:
    """Where the default generator's numbers depend on a seed and a number alone, such as an example of a data set.

    The stream is made at the first draw: where nothing is drawn it costs nothing.
    """

    __slots__ = ("_stream", "number", "seed")

    def __init__(self, seed: int) -> None:
        self.move(seed, 0)

    def move(self, seed: int, number: int) -> None:
        """Begin the stream of another number."""
        self.seed, self.number = seed, number
        self._stream: Generator | None = None

    def stream(self) -> Generator:
        if self._stream is None:
            self._stream = Generator().manual_seed(mixed(self.seed, self.number))
        return self._stream


def mixed(seed: int, number: int) -> int:
    """64 bits of a seed and a number: for one seed, other bits for each number (Steele et al., SplitMix, OOPSLA 2014).

    >>> len({mixed(7, n) for n in range(1000)})
    1000
    """
    z = seed + (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


# what the default generator's numbers in this thread are from instead of the stream of the process, if anything
seeded_stream: ContextVar[SeededStream | None] = ContextVar("genesis_seeded_stream", default=None)


def _of_the_stream(name: str) -> Any:
    return property(lambda self: getattr(self.here(), name), lambda self, value: setattr(self.here(), name, value))


class DefaultGenerator(Generator):
    """The default generator: the stream of the process, or the `seeded_stream` of this thread."""

    _seed, _block, _philox, _reached, _lock = (
        _of_the_stream(name) for name in ("_seed", "_block", "_philox", "_reached", "_lock")
    )

    def __init__(self) -> None:
        self._process = Generator()
        self.device = self._process.device

    def __reduce__(self) -> Any:
        return "default_generator"

    def here(self) -> Generator:
        seeded = seeded_stream.get()
        return self._process if seeded is None else seeded.stream()

    def words(self, count: int) -> np.ndarray[Any, Any]:
        seeded = seeded_stream.get()
        return (self._process if seeded is None else seeded.stream()).words(count)

    def reserve(self, count: int) -> tuple[int, int]:
        seeded = seeded_stream.get()
        return (self._process if seeded is None else seeded.stream()).reserve(count)


generators: weakref.WeakSet[Generator] = weakref.WeakSet()
default_generator = DefaultGenerator()


def _after_fork() -> None:
    """A child may have been forked while another thread, which it does not have, was drawing: it gets locks and streams
    of its own.
    """
    for generator in list(generators):
        generator._lock = threading.Lock()
        generator._position(generator._block)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def manual_seed(seed: int) -> Generator:
    """Begin the stream of ``seed``, as an integer, in the default generator.

    >>> import genesis
    >>> _ = genesis.manual_seed(0)
    """
    return default_generator.manual_seed(int(seed) if hasattr(seed, "__int__") else seed)


def seed() -> int:
    """Begin a stream that nobody can guess in the default generator; returns its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back into a state."""
    default_generator.set_state(new_state)
