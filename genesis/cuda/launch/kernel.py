"""A kernel: loops, their code, and how it is launched.

    Kernel(nest)           what it does, printed for Triton when it is first launched
    .launch(...)           on a device's current stream: machine code, or on the emulated device the loops themselves

One kernel is loaded once on each device for each way in which its pointers are aligned. ``GENESIS_CUDA_KERNELS=triton``
has the emulated device run the code by Triton's interpreter instead of the loops.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from genesis.cuda.launch import interpreter
from genesis.cuda.launch.cubins import Code, cubin
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
NOTED = 0  # what stands for a function that is not loaded; the driver has none of this number
_lock = threading.RLock()


class Launched(ABC):
    """Something that is loaded on a device, once for each way in which its pointers are aligned, and launched.

    Attributes:
        source: in Triton's language, the function `kernel`
        signature: Triton's type of each parameter; letters: the same for `Parameters`
        warps: of 32 threads
        fused: whether a product and a sum may be rounded once
    """

    source: str
    signature: tuple[str, ...]
    letters: str
    warps: int = 4
    fused = True
    free: frozenset[int] = frozenset()  # parameters of which it does not matter whether they are multiples of 16

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters(self.letters)

    @cached_property
    def _loaded(self) -> dict[tuple[Device, tuple[int, ...]], tuple[int, int]]:
        """The driver's handle and the bytes of shared memory, by device and parameters that are multiples of 16."""
        return {}

    def start(self, on: Device, stream: int, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        """Start so many programs of it, with these values for its parameters."""
        aligned = self.aligned(values)
        function, shared = self._loaded.get((on, aligned)) or self._load(on, aligned)
        on.enter().launch(function, grid, 32 * self.warps, shared, stream, self.parameters, values)

    def prepared(self, on: Device, grid: tuple[int, int, int], values: tuple[Any, ...]) -> Prepared:
        """So many programs of it, to be started again and again with values whose pointers are aligned like these."""
        aligned = self.aligned(values)
        function, shared = self._loaded.get((on, aligned)) or self._load(on, aligned)
        return Prepared(self, on, function, grid, 32 * self.warps, shared, self.parameters)

    def aligned(self, values: tuple[Any, ...]) -> tuple[int, ...]:
        """The parameters that the compiler may take for multiples of 16."""
        bits = 0
        for i in self._checked:
            bits |= values[i]
        return tuple([i for i in self._checked if values[i] % ALIGNED == 0]) if bits % ALIGNED else self._checked

    @cached_property
    def _checked(self) -> tuple[int, ...]:
        """The parameters that are pointers and whole numbers of which it matters."""
        return tuple([i for i, letter in enumerate(self.letters) if letter not in "fd" and i not in self.free])

    def _load(self, on: Device, aligned: tuple[int, ...]) -> tuple[int, int]:
        notes = on.enter().notes
        if notes is not None:  # what it gives is launched by nobody
            notes.codes[self._made_of(on, aligned)] = None
            return NOTED, 0
        with _lock:  # one thread compiles what several want
            return self._loaded.get((on, aligned)) or self._load_now(on, aligned)

    def _load_now(self, on: Device, aligned: tuple[int, ...]) -> tuple[int, int]:
        driver, shared = on.enter(), 0
        if driver.emulated:
            function = driver.function(driver.load(Image(self.run, self.spans)), NAME)
        else:
            code, loaded = self._made_of(on, aligned), on.keep("functions", lambda _: {})
            if code not in loaded:  # loops alike, of a step, say
                made = cubin(*code.parts)
                function, shared = driver.function(driver.load(made.image), made.name), made.shared
                if shared > SHARED:
                    driver.allow_shared(function, shared)
                loaded[code] = function, shared
            function, shared = loaded[code]
        self._loaded[on, aligned] = function, shared
        return function, shared

    def _made_of(self, on: Device, aligned: tuple[int, ...]) -> Code:
        major, minor = (on.driver.attribute(on.index, f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        return Code(self.source, self.signature, aligned, self.warps, 10 * major + minor, self.fused)

    # ---- on the emulated device

    @abstractmethod
    def spans(self, grid: tuple[int, int, int], values: tuple[Any, ...]) -> list[Span]:
        """What it reads and writes."""

    @abstractmethod
    def run(self, memory: Spaces, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        """Do it, in the emulated device's memory."""


class Prepared(NamedTuple):
    """A kernel that is loaded on a device, and how many programs of it are started."""

    kernel: Launched
    on: Device
    function: int
    grid: tuple[int, int, int]
    block: int
    shared: int
    parameters: Parameters

    @property
    def lasting(self) -> bool:
        """Whether it may be kept: not that of work which is only noted, for which nothing is loaded."""
        return self.function != NOTED

    def start(self, stream: int, values: tuple[Any, ...]) -> None:
        _, on, function, grid, block, shared, parameters = self
        on.enter().launch(function, grid, block, shared, stream, parameters, values)


def interpreted() -> bool:
    """Whether Triton's interpreter runs kernels on the emulated device."""
    return os.environ.get("GENESIS_CUDA_KERNELS") == "triton"


class Kernel(Launched):
    """Loops over the elements of some operands.

    Args:
        nest: the loops; the stride of every operand is in them
        numbers: operands that are numbers of the program, not memory
        tables: how many elements those operands have of which an index says what is read
    """

    def __init__(
        self, nest: Nest, numbers: frozenset[int] = frozenset(), tables: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        self.nest, self.numbers, self.tables = nest, numbers, tables
        first = nest.body[0]
        self.told = isinstance(first, For) and first.axes[0].extent == CALLED

    @cached_property
    def code(self) -> Emitted:
        return emitted(self.nest, self.numbers)

    source = cached_property(lambda self: self.code.source)
    signature = cached_property(lambda self: self.code.signature)
    letters = cached_property(lambda self: self.code.letters)
    warps = cached_property(lambda self: self.code.warps)

    def launch(self, on: Device, stream: int, operands: list[Any], count: int = 0) -> None:
        """Start it with these addresses and numbers; ``count`` is how long a loop is that is told so."""
        values = (*operands, count) if self.told else tuple(operands)
        grid = self.code.grid(count)
        if grid:  # of no elements nothing is computed
            self.start(on, stream, (grid, 1, 1), values)

    def called(self, operands: list[Any], count: int) -> tuple[tuple[int, int, int], tuple[Any, ...]]:
        """The programs that `launch` starts, and the values of their parameters."""
        return self.grid(count), (*operands, count) if self.told else tuple(operands)

    def grid(self, count: int) -> tuple[int, int, int]:
        return self.code.grid(count), 1, 1

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
        """The first element that an `Affine` says, and the one behind the last; of a loop without a round none."""
        low = high = at.constant
        for axis, stride in at.steps:
            rounds = count if axis.extent == CALLED else self.nest.chunks if axis is CHUNK else axis.extent
            if not rounds:
                return NOTED, 0
            low, high = min(low, low + (rounds - 1) * stride), max(high, high + (rounds - 1) * stride)
        return low, high + 1

    def spans(self, grid: tuple[int, int, int], values: tuple[Any, ...]) -> list[Span]:
        count = values[-1] if self.told else 0
        spans = {}
        for operand, uses in self._uses.items():
            size = self.nest.operands[operand].itemsize
            for at, writes in () if operand in self.numbers else uses:
                low, high = (0, self.tables[operand]) if operand in self.tables else self._extent(at, count)
                if high > low:
                    spans[values[operand] + low * size, (high - low) * size, writes] = None
        return list(spans)

    def extent(self, operand: int, count: int) -> int:
        """How many elements of an operand are read or written, from its address on."""
        if operand in self.tables:
            return self.tables[operand]
        extents = [self._extent(at, count) for at, _ in self._uses.get(operand, ())]
        assert all([low >= 0 for low, _ in extents])
        return max([high for _, high in extents], default=0)

    def _operands(self, memory: Spaces, values: tuple[Any, ...]) -> list[Any]:
        """Arrays of memory, from each address on as far as is read or written, and numbers."""
        count, out = values[-1] if self.told else 0, []
        for i, dtype in enumerate(self.nest.operands):
            if i in self.numbers:
                out.append(np.array([float(values[i])]))
            else:
                out.append(memory.array(values[i], dtype, self.extent(i, count)))
        return out

    def run(self, memory: Spaces, grid: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        if interpreted():
            interpreter.run_into(self.source, grid, *self.interpreted(memory, grid, values))
            return
        arrays = self._operands(memory, values)
        if self.told:
            run_some(self.nest, arrays, range(values[-1]))
        else:
            for chunk in range(self.nest.chunks):
                run_some(self.nest, arrays, chunk)

    def interpreted(
        self, memory: Spaces, grid: tuple[int, int, int], values: tuple[Any, ...]
    ) -> tuple[list[Any], dict[int, Any]]:
        """What the interpreter is given, and the arrays that it writes, by parameter."""
        arrays = self._operands(memory, values)
        given = [float(values[i]) if i in self.numbers else a for i, a in enumerate(arrays)]
        return [*given, *values[len(arrays) :]], {i: arrays[i] for i in self.nest.writes}
