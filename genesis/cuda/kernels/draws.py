"""Uniform random numbers made on a GPU, bit for bit those that the CPU draws: Philox4x64-10, see `core/graph/generator.py`.

A program makes the words of some blocks; which they are depends on the position in the stream alone. Numbers of other
distributions are made by the CPU, whose logarithms and cosines round in their own way, and copied.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.graph.generator import Generator
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
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


class Uniform(Launched):
    """The kernel of a dtype."""

    fused = False
    free = frozenset({2, 3})  # the key and the position are multiples of anything

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.source = source_of(dtype, "key, first")
        self.signature, self.letters = (pointer_to(dtype), "i32", "u64", "u64"), "QiQQ"

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], values[1] * self.dtype.itemsize, True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        address, n, key, first = values
        out = memory.array(address, self.dtype, n)
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [out, n, np.uint64(key), np.uint64(first)])[0]
        else:
            out[...] = Generator().move_to(key, first).uniform((n,), self.dtype).astype(self.dtype)


@functools.cache
def uniform(dtype: Any) -> Uniform:
    return Uniform(dtype)


def drawn(stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, device: Any) -> CudaArray | None:
    """The array of a draw; None if the CPU is to draw it."""
    count = int(np.prod(shape, dtype=np.int64))
    if name != "uniform" or dtype.name not in BITS or not 0 < count < 1 << 31:
        return None
    key, first = stream.reserve(count)
    out = MEMORY.empty(shape, dtype, device)
    programs = -(-count // (4 * BLOCKS))
    uniform(dtype).start(out.on, used(out).handle, (programs, 1, 1), (out.address, count, key, first & (1 << 64) - 1))
    return out
