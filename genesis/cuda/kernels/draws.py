"""Uniform random numbers made on a GPU, bit for bit those that the CPU draws: Philox4x64-10, see `core/graph/generator.py`.

A program makes the words of some blocks; which they are depends on the position in the stream alone. Numbers of other
distributions are made by the CPU, whose logarithms and cosines round in their own way, and copied.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.core.graph.generator import Generator
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

BLOCKS = 256  # of four words, of a program
BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
Grid = tuple[int, int, int]

_SOURCE = """
import triton
import triton.language as tl


@triton.jit
def kernel(out, n, {parameters}):
    {loads}
    block = tl.program_id(0) * {blocks} + tl.arange(0, {blocks})
    zero = (block * 0).to(tl.uint64)
    a, b, c, d = first + 1 + block.to(tl.uint64), zero, zero, zero
    k, l = key + zero, zero
    x, y = tl.full((), 0xD2E7470EE14C6C93, tl.uint64), tl.full((), 0xCA5A826395121157, tl.uint64)
    for _ in tl.static_range(10):
        high, low = tl.umulhi(x + zero, a), x * a
        a, b, c, d = tl.umulhi(y + zero, c) ^ b ^ k, y * c, high ^ d ^ l, low
        k, l = k + tl.full((), 0x9E3779B97F4A7C15, tl.uint64), l + tl.full((), 0xBB67AE8584CAA73B, tl.uint64)
    words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    at = tl.program_id(0) * {words} + tl.arange(0, {words})
    value = (words >> {shift}).to(tl.int64).to(tl.{wide}) * {scale}
    value = {value}
    tl.store(out + at, value.to(out.dtype.element_ty), mask=at < n)
"""


def source_of(dtype: Any, parameters: str, loads: str = "", value: str = "value") -> str:
    """The kernel of a dtype: the parameters that say where in which stream it begins, how they are read, and what is
    stored of a ``value``.
    """
    bits, wide = BITS[dtype.name], "float64" if dtype == np.float64 else "float32"
    numbers = {"shift": 64 - bits, "scale": repr(2.0**-bits), "blocks": BLOCKS, "words": 4 * BLOCKS}
    return _SOURCE.format(wide=wide, parameters=parameters, loads=loads or "pass", value=value, **numbers).lstrip()


class Draw(Launched):
    """Uniform numbers, or the factors of a dropout.

    Args:
        dtype: of the result
        options: none, or the probability of a dropout
        held: whether the key and the first block lie in memory (what is repeated reads them anew), or are parameters
    """

    fused = False
    free = frozenset({1, 2, 3})  # the count, the key and the position are multiples of anything

    def __init__(self, dtype: Any, options: tuple[float, ...], held: bool) -> None:
        self.dtype, self.options, self.held = dtype, options, held
        kind = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        self.numbers = kind if options else dtype  # a dropout compares numbers of 32 or 64 bits
        value = "value"
        if options:
            p, factor = float(kind.type(options[0])), float(kind.type(1 / (1 - options[0])))
            value = f"tl.where(value >= {p!r}, {factor!r}, 0.0)"
        loads = "key, first = tl.load(position), tl.load(position + 1)" if held else "pass"
        self.source = source_of(self.numbers, "position" if held else "key, first", loads, value)
        self.signature = (pointer_to(dtype), "i32", *(["*u64"] if held else ["u64", "u64"]))
        self.letters = "QiQ" if held else "QiQQ"

    def draw(self, out: CudaArray, *position: int) -> None:
        """Fill an array: with the numbers from a key and a block on, or from those at an address."""
        self.start(out.on, used(out).handle, self.grid(out.size), (out.address, out.size, *position))

    def ready(self, on: Any) -> None:
        """Load it, for nothing can be loaded while a graph is recorded."""
        if (on, (0,)) not in self._loaded:
            self._load(on, (0,))

    def grid(self, count: int) -> Grid:
        return -(-count // (4 * BLOCKS)), 1, 1

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        out = values[0], values[1] * self.dtype.itemsize, True
        return [out, (values[2], 16, False)] if self.held else [out]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        address, n, *position = values
        out = memory.array(address, self.dtype, n)
        at = memory.array(position[0], np.dtype(np.uint64), 2) if self.held else [np.uint64(x) for x in position]
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [out, n, at] if self.held else [out, n, *at])[0]
            return
        value = Generator().move_to(int(at[0]), int(at[1])).uniform((n,), self.numbers)
        if self.options:
            p = self.options[0]
            value = (value >= p) * value.dtype.type(1 / (1 - p))
        out[...] = value.astype(self.dtype)


NAMES = ("uniform", "dropout")


def kernel_of(name: str, dtype: Any, count: int, options: tuple[Any, ...], held: bool) -> Draw | None:
    """The kernel of a draw; None if the CPU is to draw it."""
    return _made(dtype, options, held) if name in NAMES and dtype.name in BITS and 0 < count < 1 << 31 else None


@functools.cache
def _made(dtype: Any, options: tuple[Any, ...], held: bool) -> Draw:
    return Draw(dtype, options, held)


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
        kernel.draw(out, capture.draw(stream, count))
        return out
    key, first = stream.reserve(count)
    kernel.draw(out, key, first & (1 << 64) - 1)
    _made(dtype, options, True).ready(out.on)
    return out
