"""Small products of a step as launches of their own, and loops over their elements at the end of them.

y = linear(x, w, b)    h = relu(y)         is     one kernel, that stores h, and y where something else reads it
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides, strides_of
from genesis.core.call.halves import F32
from genesis.core.call.strides import reshaped
from genesis.cuda.kernels.products import OPS, Product, product
from genesis.cuda.kernels.tiles import Tail, Tile, small_tile, source_of
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.steps.held import Held
from genesis.jit.arguments import Var
from genesis.jit.lowering.emit_python import run_some
from genesis.jit.lowering.emit_triton import tail_of
from genesis.jit.lowering.triton_code import pointer_to
from genesis.jit.program import Call
from genesis.jit.storage import Region

Grid = tuple[int, int, int]
ELSEWHERE = -(1 << 62)  # the address of what is in registers


@dataclass(frozen=True, slots=True)
class Small:
    """A product of two matrices, with or without a bias, of which one program makes a tile.

    Attributes:
        operands: the roots of what is multiplied, and of a bias; offsets: where each begins, in bytes
        sizes: rows, columns, and how many are summed; strides: of the rows and columns of both
    """

    out: Var
    operands: tuple[Var, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, int, int]
    strides: tuple[int, int, int, int]
    tile: Tile

    @property
    def base(self) -> Product:
        """The kernel without loops at its end."""
        unit: Any = tuple([s == 1 for s in self.strides])
        return product(np.dtype(F32), self.tile, unit, len(self.operands) == 3)

    @property
    def grid(self) -> Grid:
        return -(-self.sizes[0] // self.tile.m) * -(-self.sizes[1] // self.tile.n), 1, 1

    @property
    def count(self) -> int:
        return self.sizes[0] * self.sizes[1]


def small_product(call: Call, regions: dict[Var, Region]) -> Small | None:
    """A call as such a product; None of another one."""
    if call.op not in OPS or not kernels_wanted() or any([v.spec.dtype != F32 for v in (*call.inputs, *call.outs)]):
        return None
    x, y, *others = call.args
    (out,), bias = call.outs, [v for v in others if v is not None]
    if len(x.spec.shape) < 2 or len(y.spec.shape) != 2 or strides_of(out.spec) != contiguous_strides(out.spec.shape):
        return None
    at = [regions.get(v) or Region(v, 0, strides_of(v.spec)) for v in (x, y, *bias)]
    left = _matrix(x.spec.shape, at[0].strides, call.op == "matmul_tn")
    if left is None or any([region.strides != (1,) for region in at[2:]]) or 0 in (*out.spec.shape, *x.spec.shape):
        return None
    (m, k), (am, ak) = left
    bk, bn = at[1].strides if call.op != "linear" else at[1].strides[::-1]
    n, strides = out.spec.shape[-1], (am, ak, bk, bn)
    tile = small_tile(m, n, k, (am == 1, ak == 1, bk == 1, bn == 1)) if min(strides) >= 0 else None
    roots, offsets = tuple([region.root for region in at]), tuple([region.offset for region in at])
    return None if tile is None else Small(out, roots, offsets, (m, n, k), strides, tile)


def _matrix(shape: tuple[int, ...], strides: tuple[int, ...], turned: bool) -> Any:
    """The shape and the strides of the left operand: all dimensions but the last as one."""
    if turned:
        return (shape[::-1], strides[::-1]) if len(shape) == 2 else None
    rows = math.prod(shape[:-1]), shape[-1]
    laid = strides if len(shape) == 2 else reshaped(shape, strides, rows)
    return None if laid is None else (rows, laid)


class Tiled(Launched):
    """The kernel of such a product.

    Args:
        loop: over its elements, told how many there are; of its operands ``given`` is the product, and ``held`` are numbers
            in memory
        stored: whether the product is stored, too
    """

    def __init__(self, small: Small, loop: Held | None = None, given: int = 0, stored: bool = True) -> None:
        self.small, self.loop, self.given, self.stored, self.base = small, loop, given, stored, small.base
        self.others = [i for i in range(len(loop.nest.operands) if loop else 0) if i != given]
        self.source, self.warps = self._printed(), small.tile.warps
        kinds = [pointer_to(loop.nest.operands[i]) for i in self.others] if loop else []
        self.signature = (*self.base.signature, *kinds)
        self.letters = self.base.letters + "Q" * len(kinds)

    def _printed(self) -> str:
        unit: Any = tuple([s == 1 for s in self.small.strides])
        tail = Tail()
        if self.loop is not None:
            functions, reads, lines = tail_of(self.loop.nest, self.loop.held, self.given, "total", "at", "inside")
            tail = Tail(
                tuple(functions), tuple(reads), tuple(lines), tuple([f"p{i}" for i in self.others]), self.stored
            )
        return source_of(np.dtype(F32), self.small.tile, unit, self.base.biased, tail)

    def grid(self, count: int) -> Grid:
        return self.small.grid

    def launch(self, on: Device, stream: int, operands: list[int], count: int = 0) -> None:
        """Start it with these addresses: of what is multiplied, of the product if it is stored, of the loop's other operands."""
        self.start(on, stream, *self.called(operands, count))

    def called(self, operands: list[int], count: int) -> tuple[Grid, tuple[Any, ...]]:
        """The programs that `launch` starts, and the values of their parameters."""
        small = self.small
        many = len(small.operands)
        factors = [address + offset for address, offset in zip(operands, small.offsets, strict=False)]
        bias, out = factors[2] if many == 3 else 0, operands[many] if self.stored else 0
        values = (*factors[:2], bias, out, *small.sizes, *small.strides, 0, 0, *operands[many + self.stored :])
        return small.grid, values

    # ---- on the emulated device

    def _of_loop(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of the loop, and how long it is."""
        others = dict(zip(self.others, values[len(self.base.letters) :], strict=True))
        return (*[others.get(i, ELSEWHERE) for i in range(len(others) + 1)], self.small.count)

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        *spans, out = self.base.spans(grid, values[: len(self.base.letters)])
        spans += [out] * self.stored
        if self.loop is not None:
            spans += [span for span in self.loop.spans(grid, self._of_loop(values)) if span[0] >= 0]
        return spans

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        mine = values[: len(self.base.letters)]
        if self.loop is None:
            self.base.run(memory, grid, mine)
            return
        if interpreted():
            interpreter.run_into(self.source, grid, *self.interpreted(memory, grid, values))
            return
        arrays = self._arrays(memory, values)
        arrays[self.given][...] = self.base.computed(self.base.given(memory, grid, mine), grid, mine)
        run_some(self.loop.nest, arrays, range(self.small.count))

    def _arrays(self, memory: Spaces, values: tuple[Any, ...]) -> list[Any]:
        """The operands of the loop; of a product without one it alone."""
        made = memory.array(values[3], F32, self.small.count) if self.stored else np.empty(self.small.count, F32)
        if self.loop is None:
            return [made]
        *addresses, count = self._of_loop(values)
        return [made if i == self.given else memory.array(address, self.loop.nest.operands[i], self.loop.extent(i, count))
                for i, address in enumerate(addresses)]  # fmt: skip

    def interpreted(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> tuple[list[Any], dict[int, Any]]:
        """What the interpreter is given, and the arrays that it writes, by parameter."""
        mine, arrays = values[: len(self.base.letters)], self._arrays(memory, values)
        given = [*self.base.given(memory, grid, mine), arrays[self.given], *mine[4:], *[arrays[i] for i in self.others]]
        return given, {3: arrays[self.given]} | {len(mine) + at: arrays[i] for at, i in enumerate(self.others)}
