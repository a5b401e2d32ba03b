"""A kernel: loops, their code, and how it is launched.

    Kernel(nest)           what it does, printed for Triton when it is first launched
    .launch(...)           on a device's current stream: machine code, or on the emulated device the loops themselves

One kernel is loaded once on each device for each way in which its pointers are aligned. ``GENESIS_CUDA_KERNELS=triton``
has the emulated device run the code by Triton's interpreter instead of the loops.
"""

from __future__ import annotations

import math
import os
from functools import cached_property
from typing import Any

import numpy as np

from genesis.cuda.launch import interpreter
from genesis.cuda.launch.cubins import cubin
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.emulated import Image
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.parameters import Parameters
from genesis.jit.lowering.emit_python import run_some
from genesis.jit.lowering.emit_triton import NAME, Emitted, emitted
from genesis.jit.lowering.loops import CALLED, CHUNK, Affine, For, Nest, Store, loads_of, values_of

ALIGNED = 16  # bytes
SHARED = 48 << 10  # bytes of shared memory that a kernel has without asking


class Kernel:
    """Loops over the elements of some operands.

    Args:
        nest: the loops; the stride of every operand is in them
        numbers: operands that are numbers of the program, not memory
    """

    def __init__(self, nest: Nest, numbers: frozenset[int] = frozenset()) -> None:
        self.nest, self.numbers = nest, numbers
        first = nest.body[0]
        self.told = isinstance(first, For) and first.axes[0].extent == CALLED
        self._loaded: dict[tuple[Device, tuple[int, ...]], int] = {}

    @cached_property
    def code(self) -> Emitted:
        return emitted(self.nest, self.numbers)

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters(self.code.letters)

    def launch(self, on: Device, stream: int, operands: list[Any], count: int = 0) -> None:
        """Start it with these addresses and numbers; ``count`` is how long a loop is that is told so."""
        values = (*operands, count) if self.told else tuple(operands)
        aligned = tuple([i for i, x in enumerate(values) if self.code.letters[i] != "d" and x % ALIGNED == 0])
        function = self._loaded.get((on, aligned)) or self._load(on, aligned)
        driver = on.enter()
        grid = self.code.grid(count), 1, 1
        driver.launch(function, grid, 32 * self.code.warps, self.shared, stream, self.parameters, values)

    shared = 0

    def _load(self, on: Device, aligned: tuple[int, ...]) -> int:
        driver = on.enter()
        if driver.emulated:
            function = driver.function(driver.load(Image(self._run, self._spans)), NAME)
        else:
            major, minor = (driver.attribute(on.index, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
            code = self.code
            made = cubin(code.source, code.signature, aligned, code.warps, 10 * major + minor)
            function, self.shared = driver.function(driver.load(made.image), made.name), made.shared
            if made.shared > SHARED:
                driver.allow_shared(function, made.shared)
        self._loaded[on, aligned] = function
        return function

    # ---- on the emulated device

    @cached_property
    def _uses(self) -> dict[int, list[tuple[Affine, bool]]]:
        """Where it reads (False) and writes (True), by operand."""
        uses: dict[int, list[tuple[Affine, bool]]] = {}

        def visit(body: Any) -> None:
            for each in body:
                if isinstance(each, Store):
                    uses.setdefault(each.operand, []).append((each.at, True))
                    roots = [each.value]
                else:
                    roots = list(values_of(each))
                    visit(each.body)
                for load in {load for value in roots for load in loads_of(value)}:
                    uses.setdefault(load.operand, []).append((load.at, False))

        visit(self.nest.body)
        return uses

    def _extent(self, at: Affine, count: int) -> tuple[int, int]:
        """The first element that an `Affine` says, and the one behind the last."""
        low = high = at.constant
        for axis, stride in at.steps:
            rounds = count if axis.extent == CALLED else self.nest.chunks if axis is CHUNK else axis.extent
            low, high = min(low, low + (rounds - 1) * stride), max(high, high + (rounds - 1) * stride)
        return low, high + 1

    def _spans(self, grid: tuple[int, int, int], values: tuple[Any, ...]) -> list[Span]:
        count = values[-1] if self.told else 0
        spans = {}
        for operand, uses in self._uses.items():
            size = self.nest.operands[operand].itemsize
            for at, writes in () if operand in self.numbers else uses:
                low, high = self._extent(at, count)
                spans[values[operand] + low * size, (high - low) * size, writes] = None
        return list(spans)

    def _operands(self, memory: Spaces, values: tuple[Any, ...]) -> list[Any]:
        """Arrays of memory, from each address on as far as is read or written, and numbers."""
        count, out = values[-1] if self.told else 0, []
        for i, dtype in enumerate(self.nest.operands):
            if i in self.numbers:
                out.append(np.array([values[i]]))
            else:
                extents = [self._extent(at, count) for at, _ in self._uses.get(i, ())]
                assert all([low >= 0 for low, _ in extents])
                high = max([high for _, high in extents], default=0)
                out.append(memory.array(values[i], dtype, high))
        return out

    def _run(self, memory: Spaces, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        arrays = self._operands(memory, values)
        if os.environ.get("GENESIS_CUDA_KERNELS") == "triton":
            self._interpret(arrays, grid, values)
        elif self.told:
            run_some(self.nest, arrays, range(values[-1]))
        else:
            for chunk in range(self.nest.chunks):
                run_some(self.nest, arrays, chunk)

    def _interpret(self, arrays: list[Any], grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        given = [float(values[i]) if i in self.numbers else a for i, a in enumerate(arrays)]
        results = interpreter.run(self.code.source, math.prod(grid), [*given, *values[len(arrays) :]])
        for i in self.nest.writes:
            arrays[i][...] = results[i]
