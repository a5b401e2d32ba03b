"""Random numbers made on a GPU, bit for bit those that the CPU draws: see `genesis.core.graph.generator`.

A program makes the words of some blocks; which they are depends on the position in the stream alone. What is not made of
words one by one or in pairs (integers of large ranges, of which some are drawn again; permutations), and what needs logarithms
that round in their own way, is made by the CPU, and copied.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError
from genesis.core.call.halves import F32, F64
from genesis.core.graph.generator import BITS, EVEN, Generator
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels.draws_code import BLOCKS, WORD, source_of
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to, type_of

MOST = 1 << 31  # numbers
Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Form:
    """What is made of a uniform number, of a ``normal`` one, or of a word.

    Attributes:
        lines: of Triton's language, which make it a ``value``
        meaning: the same with NumPy, of the numbers, the dtype of the result, and the parameters
        parameters: names of floats, or beside words of words, that the lines use
    """

    lines: str
    meaning: Callable[..., Any]
    parameters: tuple[str, ...] = ()
    normal: bool = False


def _scaled(value: Any, dtype: Any, factor: float, add: float) -> Any:
    return value * factor + add


def _between(value: Any, dtype: Any, factor: float, low: float, high: float) -> Any:
    rounded = (value * factor + low).astype(dtype).astype(value.dtype)
    return np.where(rounded >= high, low, rounded)


def _whole(value: Any, dtype: Any, size: Any, low: Any) -> Any:
    with np.errstate(over="ignore"):
        return (value % size + low).astype(np.int64)


NUMBER = Form("pass", lambda value, dtype: value)
NORMAL = Form("pass", lambda value, dtype: value, normal=True)
PART = Form("value = value * factor", lambda value, dtype, factor: value * factor, ("factor",), normal=True)
SPREAD = Form("value = value * factor + add", _scaled, ("factor", "add"), normal=True)
KEPT = Form(
    "value = tl.where(value >= p, factor, 0.0)", lambda value, dtype, p, factor: (value >= p) * factor, ("p", "factor")
)
CHANCE = Form("value = tl.where(value < p, 1.0, 0.0)", lambda value, dtype, p: value < p, ("p",))
BETWEEN = Form(
    "value = (value * factor + low).to(out.dtype.element_ty).to(value.dtype)\nvalue = tl.where(value >= high, low, value)",
    _between,
    ("factor", "low", "high"),
)
INTEGER = Form("value = (value % size + low).to(tl.int64)", _whole, ("size", "low"))


class Draw(Launched):
    """Numbers of a form.

    Args:
        dtype: of the result
        numbers: the dtype whose digits uniform numbers have, or that of words
        values: of the form's parameters
        held: whether the key and the first block lie in memory (what is repeated reads them anew), or are parameters
        each: how many numbers an element is made of
    """

    fused = False
    free = frozenset({1, 2, 3})  # the count, the key and the position are multiples of anything

    def __init__(self, form: Form, dtype: Any, numbers: Any, values: tuple[float, ...], held: bool, each: int) -> None:
        self.form, self.dtype, self.numbers, self.held, self.each = form, dtype, numbers, held, each
        wide = numbers if numbers in (F64, WORD) else F32
        self.values = values if wide == WORD else tuple([float(wide.type(v)) for v in values])
        position = ["position"] if held else ["key", "first"]
        lines = form.lines if not values else "\n".join([_typed(form, wide), form.lines])
        loads = "key, first = tl.load(position), tl.load(position + 1)" if held else ""
        self.source = source_of(numbers, [*position, *form.parameters], loads, lines, form.normal)
        kind = pointer_to(wide)[1:]
        self.signature = (pointer_to(dtype), "i32", *(["*u64"] if held else ["u64", "u64"]), *[kind] * len(values))
        self.letters = ("QiQ" if held else "QiQQ") + ("Q" if wide == WORD else wide.char) * len(values)

    @property
    def _loaded(self) -> Any:  # type: ignore[override]  # the same for all values of parameters
        return _loaded_of(self.source, self.signature)

    def words(self, count: int) -> int:
        """How many of the stream are taken for so many elements."""
        n = count * self.each
        return n + n % 2 if self.form.normal else n

    def draw(self, on: Any, stream: int, address: int, count: int, *position: int) -> None:
        """Write so many elements: the numbers from a key and a block on, or from those at an address."""
        self.start(on, stream, self.grid(count), (address, count * self.each, *position, *self.values))

    def ready(self, on: Any) -> None:
        """Load it, for nothing can be loaded while a graph is recorded."""
        if (on, (0,)) not in self._loaded:
            self._load(on, (0,))

    def grid(self, count: int) -> Grid:
        lanes = self.words(count) // (2 if self.form.normal else 1)
        return -(-lanes // (4 * BLOCKS)), 1, 1

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        out = values[0], values[1] * self.dtype.itemsize, True
        return [out, (values[2], 16, False)] if self.held else [out]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        address, n, *rest = values
        position, parameters = (rest[:1], rest[1:]) if self.held else (rest[:2], rest[2:])
        out = memory.array(address, self.dtype, n)
        at = memory.array(position[0], np.dtype(np.uint64), 2) if self.held else [np.uint64(x) for x in position]
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [out, n, *([at] if self.held else at), *parameters])[0]
            return
        stream = Generator().move_to(int(at[0]), int(at[1]))
        if self.numbers == WORD:
            drawn = stream.words(n)
        else:
            drawn = (stream.normal if self.form.normal else stream.uniform)((n,), self.numbers)
        given = [drawn.dtype.type(p) for p in parameters]
        out[...] = np.asarray(self.form.meaning(drawn, self.dtype, *given)).astype(self.dtype)


def _typed(form: Form, wide: Any) -> str:
    return "\n".join([f"{name} = {name}.to(tl.{type_of(wide)})" for name in form.parameters])


@functools.cache
def _loaded_of(source: str, signature: tuple[str, ...]) -> dict[Any, Any]:
    return {}


# ---- which draw it is


def _asked(name: str, dtype: Any, options: tuple[Any, ...]) -> tuple[Form, Any, tuple[float, ...]] | None:
    """The form of a draw, the numbers that it is made of, and its parameters."""
    wide = F64 if dtype == F64 else F32
    if name == "bernoulli_":
        return CHANCE, F64, options
    if name == "integers":
        low, high = options
        known = high - low < EVEN and (dtype.kind in "iu" or dtype in (F32, F64))
        return (INTEGER, WORD, (high - low, low & (1 << 64) - 1)) if known else None
    if dtype.name not in BITS:
        return None
    if name in ("uniform", "normal"):
        return (NORMAL, wide, ()) if name == "normal" else (NUMBER, dtype, ())
    if name == "dropout":
        return KEPT, wide, (options[0], 1 / (1 - options[0]))
    if name == "normal_":
        mean, std = options
        return SPREAD, wide, (std, mean)
    if name == "uniform_":
        low, high = [other if given is None else given for given, other in zip(options[2:], options, strict=False)]
        return BETWEEN, dtype, (high - low, low, high)
    return None


def _asked_in_pairs(name: str, real: Any, options: tuple[Any, ...]) -> tuple[Form, Any, tuple[float, ...]] | None:
    """The same of complex numbers, whose parts are drawn."""
    if name == "normal":
        return PART, real, (math.sqrt(0.5),)
    return _asked(name, real, options) if name in ("uniform", "uniform_") else None


def kernel_of(name: str, dtype: Any, count: int, options: tuple[Any, ...], held: bool) -> Draw | None:
    """The kernel of a draw; None if the CPU is to draw it."""
    each = 2 if dtype.kind == "c" else 1
    if not 0 < count * each < MOST or not all([v is None or isinstance(v, int | float) for v in options]):
        return None
    real = np.dtype(f"f{dtype.itemsize // 2}") if each == 2 else dtype
    asked = (_asked_in_pairs if each == 2 else _asked)(name, real, options)
    if asked is None:
        return None
    form, numbers, values = asked
    try:
        return _made(form, real, numbers, values, held, each)
    except UnsupportedError:  # numbers that are for storing
        return None


@functools.lru_cache(1024)
def _made(form: Form, dtype: Any, numbers: Any, values: tuple[float, ...], held: bool, each: int) -> Draw:
    return Draw(form, dtype, numbers, values, held, each)


def drawn(
    stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, device: Any, *options: Any
) -> CudaArray | None:
    """The array of a draw; None if the CPU is to draw it."""
    count, capture = math.prod(shape), capturing()
    kernel = kernel_of(name, dtype, count, options, held=capture is not None)
    if kernel is None:
        return None
    out = MEMORY.empty(shape, dtype, device)
    if capture is not None:
        kernel.draw(out.on, used(out).handle, out.address, count, capture.draw(stream, kernel.words(count)))
        return out
    key, first = stream.reserve(kernel.words(count))
    kernel.draw(out.on, used(out).handle, out.address, count, key, first & (1 << 64) - 1)
    again = kernel_of(name, dtype, count, options, held=True)
    assert again is not None
    again.ready(out.on)
    return out
