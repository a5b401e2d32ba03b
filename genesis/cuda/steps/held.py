"""Kernels of steps that are repeated: what the host decides at each call (numbers, places in streams of random numbers)
they read from memory, see `control`.
"""

from __future__ import annotations

import functools
from functools import cached_property
from typing import Any

import numpy as np

from genesis.core.graph.generator import Generator
from genesis.cuda.kernels.draws import BITS, BLOCKS, source_of
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Kernel, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.emit_triton import Emitted, emitted
from genesis.jit.lowering.loops import Nest
from genesis.jit.lowering.triton_code import pointer_to

U64 = np.dtype(np.uint64)
DRAWS = ("random.uniform", "random.dropout")
Grid = tuple[int, int, int]


class Held(Kernel):
    """Loops of which some operands are numbers in memory."""

    def __init__(self, nest: Nest, held: frozenset[int]) -> None:
        super().__init__(nest)
        self.held = held

    @cached_property
    def code(self) -> Emitted:
        return emitted(self.nest, held=self.held)


class Draw(Launched):
    """Uniform numbers, or the factors of a dropout, from the key and the block that lie in memory."""

    fused = False

    def __init__(self, name: str, dtype: Any, options: tuple[float, ...]) -> None:
        self.name, self.dtype, self.options = name, dtype, options
        kind = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        self.drawn = kind if options else dtype  # a dropout compares numbers of 32 or 64 bits
        value = "value"
        if options:
            factor = float(kind.type(1 / (1 - options[0])))
            value = f"tl.where(value >= {float(kind.type(options[0]))!r}, {factor!r}, 0.0)"
        loads = "key, first = tl.load(position), tl.load(position + 1)"
        self.source = source_of(self.drawn, "position", loads, value)
        self.signature, self.letters = (pointer_to(dtype), "i32", "*u64"), "QiQ"

    def grid(self, count: int) -> Grid:
        return -(-count // (4 * BLOCKS)), 1, 1

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], values[1] * self.dtype.itemsize, True), (values[2], 16, False)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        address, n, at = values
        out, position = memory.array(address, self.dtype, n), memory.array(at, U64, 2)
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [out, n, position])[0]
            return
        value = Generator().move_to(int(position[0]), int(position[1])).uniform((n,), self.drawn)
        if self.options:
            p = self.options[0]
            value = (value >= p) * value.dtype.type(1 / (1 - p))
        out[...] = value.astype(self.dtype)


@functools.cache
def draw(name: str, dtype: Any, options: tuple[float, ...]) -> Draw | None:
    """The kernel of a draw; None if the CPU is to draw it."""
    return Draw(name, dtype, options) if name in DRAWS and dtype.name in BITS else None
