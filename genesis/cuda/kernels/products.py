"""Products of matrices: by cuBLASLt where it is installed, else by a kernel of tiles (`genesis.cuda.kernels.tiles`), as small
ones of float32 are in any case.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import Op
from genesis.core.call.strides import reshaped
from genesis.cuda.arrays import MEMORY, CudaArray, laid_so, used
from genesis.cuda.kernels import padded
from genesis.cuda.kernels.signatures import remember
from genesis.cuda.kernels.tiles import TILES, Tile, small_tile, source_of, tile_of, wide_of
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch import interpreter, tuning
from genesis.cuda.launch.kernel import Launched, Prepared, interpreted
from genesis.cuda.layouts import Layout, layout
from genesis.cuda.libraries import cublaslt
from genesis.cuda.libraries.loading import library
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

OPS = ("matmul", "matmul_tn", "linear")
Grid = tuple[int, int, int]


class Product(Launched):
    """The kernel for operands of a dtype, with unit strides along some dimensions, with or without a bias."""

    def __init__(self, dtype: Any, tile: Tile, unit: tuple[bool, bool, bool, bool], biased: bool) -> None:
        self.dtype, self.tile, self.biased = dtype, tile, biased
        kind = pointer_to(dtype)
        self.source = source_of(dtype, tile, unit, biased)
        self.signature = (kind, kind, kind, kind, *["i32"] * 7, "i64", "i64")
        self.letters, self.warps = "QQQQ" + "i" * 7 + "qq", tile.warps

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        a, b, bias, c, m, n, k, am, ak, bk, bn, az, bz = values
        size, last = self.dtype.itemsize, grid[1] - 1
        left = (last * az + (m - 1) * am + (k - 1) * ak + 1) * size
        right = (last * bz + (k - 1) * bk + (n - 1) * bn + 1) * size
        added = [(bias, n * size, False)] if self.biased else []
        return [(a, left, False), (b, right, False), *added, (c, grid[1] * m * n * size, True)]

    def given(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> list[Any]:
        """The operands, with something in the place of a bias that is none."""
        size, spans = self.dtype.itemsize, self.spans(grid, values)[:-1]
        arrays = [memory.array(start, self.dtype, count // size) for start, count, _ in spans]
        return arrays if self.biased else [*arrays, np.zeros(1, self.dtype)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        given, (start, count, _) = self.given(memory, grid, values), self.spans(grid, values)[-1]
        out = memory.array(start, self.dtype, count // self.dtype.itemsize)
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [*given, out, *values[4:]])[3]
        else:
            out[...] = self.computed(given, grid, values)

    def computed(self, given: list[Any], grid: Grid, values: tuple[Any, ...]) -> Any:
        """The same with NumPy: all elements, one after the other."""
        *_, m, n, k, am, ak, bk, bn, az, bz = values
        left, right, added = given
        strided, wide, size = np.lib.stride_tricks.as_strided, wide_of(self.dtype), self.dtype.itemsize
        x = strided(left, (grid[1], m, k), [s * size for s in (az, am, ak)]).astype(wide)
        y = strided(right, (grid[1], k, n), [s * size for s in (bz, bk, bn)]).astype(wide)
        return (x @ y + (added.astype(wide) if self.biased else 0)).reshape(-1).astype(self.dtype)


@functools.cache
def product(dtype: Any, tile: Tile, unit: tuple[bool, bool, bool, bool], biased: bool) -> Product:
    return Product(dtype, tile, unit, biased)


def product_of(op: Op, otherwise: Any) -> Any:
    """The kernel of `matmul`, `matmul_tn` or `linear`; what it does not take computes ``otherwise``."""

    known: dict[Any, Tiled | padded.Direct] = {}

    def kernel(input: CudaArray, other: CudaArray, bias: CudaArray | None = None) -> Any:
        key = (
            input._layout or input.layout,
            other._layout or other.layout,
            bias if bias is None else bias._layout or bias.layout,
        )
        plan = known.get(key)
        if plan is not None and (done := plan.run(input, other, bias)) is not None:
            return done
        if not kernels_wanted():
            return otherwise(input, other) if bias is None else otherwise(input, other, bias)

        def note(made: Any, x: CudaArray, y: CudaArray, added: CudaArray | None) -> None:
            if x.storage is input.storage and y.storage is other.storage and added is bias and made.shape == out.shape:
                remember(known, key, made)

        arrays = [x for x in (input, other, bias) if x is not None]
        out = op.kind.infer(op, (input, other, bias) if op.name == "linear" else (input, other))
        result = NotImplemented
        if takes(arrays, out):
            if op.name == "matmul":
                result = _product(input, other, tuple(out.shape), note)
            elif op.name == "matmul_tn":
                result = multiplied(_turned(input), other, None, out.shape, note)
            else:
                result = multiplied(_rows(input), _turned(other), bias, out.shape, note)
        if result is NotImplemented:
            return otherwise(input, other) if bias is None else otherwise(input, other, bias)
        return result

    return kernel


@dataclass(slots=True, eq=False)
class Tiled:
    """A product by tiles, of operands that are read where they are: their addresses are all that differs between calls."""

    shape: tuple[int, ...]
    kernel: Product
    grid: Grid
    numbers: tuple[int, ...]
    always: bool  # also where there is a library
    out: Layout | None = None  # by the first call, as what is started
    prepared: Prepared | None = None

    def run(self, x: CudaArray, y: CudaArray, bias: CudaArray | None) -> CudaArray | None:
        """None where a library may do it now."""
        return self.made(x, y, bias) if self.always or library(cublaslt.NAME) is None else None

    def made(self, x: CudaArray, y: CudaArray, bias: CudaArray | None) -> CudaArray:
        on = x.storage.on
        if self.out is None:
            self.out = layout(on, self.shape, x.dtype)
        stream = used(x, y) if bias is None else used(x, y, bias)
        out = laid_so(self.out, stream)
        values = x.address, y.address, 0 if bias is None else bias.address, out.address, *self.numbers
        prepared = self.prepared
        if prepared is None:
            prepared = self.kernel.prepared(on, self.grid, values)
            self.prepared = prepared if prepared.lasting else None
        prepared.start(stream.handle, values)
        return out


def _product(x: CudaArray, y: CudaArray, shape: tuple[int, ...], note: Any) -> CudaArray:
    """``x @ y``, where a vector is a row on the left and a column on the right."""
    left, right = x.ndim == 1, y.ndim == 1
    rows = (1,) if left else x.shape[-2:-1]
    columns = (1,) if right else y.shape[-1:]
    batch = shape[: len(shape) - (not left) - (not right)]
    x, y = _as_row(x) if left else x, _turned(_as_row(y)) if right else y
    out = multiplied(x, y, None, (*batch, *rows, *columns), note)
    return out.seen(0, shape, contiguous_strides(shape)) if left or right else out


def _as_row(x: CudaArray) -> CudaArray:
    return x.seen(0, (1, x.size), (x.size, *x.strides))


def takes(arrays: list[CudaArray], out: Any) -> bool:
    """Whether there is something to compute in a dtype that tiles, or a library, are there for."""
    known = out.dtype in HALVES or out.dtype.char in "fd" or out.dtype.kind == "i"
    return (
        known and 0 not in out.shape and out.size < 1 << 31 and all([x.dtype == out.dtype and x.size for x in arrays])
    )


def _turned(x: CudaArray) -> CudaArray:
    return x.seen(0, x.shape[::-1], x.strides[::-1])


def _rows(x: CudaArray) -> CudaArray:
    """All dimensions but the last as one."""
    if x.ndim == 1:
        return _as_row(x)
    if x.ndim == 2:
        return x
    shape = x.size // x.shape[-1], x.shape[-1]
    strides = reshaped(x.shape, x.strides, shape)
    if strides is None or 0 in strides:
        return MEMORY.copy(x).seen(0, shape, (shape[1], 1))
    return x.seen(0, shape, strides)


def multiplied(
    x: CudaArray, y: CudaArray, bias: CudaArray | None, shape: tuple[int, ...], note: Callable[..., None] | None = None
) -> CudaArray:
    """``x @ y + bias``, of matrices, or of as many of them as the leading dimensions of the shape say.

    Args:
        note: called with what does it, and with its operands
    """
    if x.ndim > 2 and y.ndim == 2:  # one product of all rows
        x = _rows(x)
    batch = shape[:-2] if max(x.ndim, y.ndim) > 2 else ()
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    x, az = _batched(x, batch)
    y, bz = _batched(y, batch)
    bias = bias if bias is None or bias.is_contiguous else MEMORY.copy(bias)
    count, strides = math.prod(batch), (*x.strides[-2:], *y.strides[-2:])
    unit: Any = tuple([s == 1 for s in strides])
    small = small_tile(m, n, k, unit) if x.dtype == F32 and count == 1 else None
    if small is None and library(cublaslt.NAME) is not None:
        out, again = padded.multiplied(x, y, bias, tuple(shape), count, (az, bz))
        if out is not None:
            if note is not None and again is not None:
                note(again, x, y, bias)
            return out

    def by(tile: Tile) -> Tiled:
        kernel = product(x.dtype, tile, unit, bias is not None)
        grid = -(-m // tile.m) * -(-n // tile.n), count, 1
        return Tiled(tuple(shape), kernel, grid, (m, n, k, *strides, az, bz), small is not None)

    tile = small or tile_of(m, n, x.dtype)
    if small is None and m * n * k * count >= tuning.LARGE and wide_of(x.dtype) == F32 and tuning.wanted():
        tiles = TILES[x.dtype.itemsize]
        key = "product", x.dtype.name, m, n, k, count, unit, bias is not None, tiles
        number = tuning.choice(x.on, key, [lambda t=t: by(t).made(x, y, bias) for t in tiles])  # type: ignore[misc]
        tile = tile if number is None else tiles[number]
    tiled = by(tile)
    if note is not None:
        note(tiled, x, y, bias)
    return tiled.made(x, y, bias)


def _batched(x: CudaArray, batch: tuple[int, ...]) -> tuple[CudaArray, int]:
    """An operand whose batch dimensions are one, and its stride: 0 where all have the same."""
    if x.ndim == 2:
        return x, 0
    own, strides = x.shape[:-2], x.strides[:-2]
    if int(np.prod(own, dtype=int)) == 1:
        return x, 0
    joined = all([strides[i] == strides[i + 1] * own[i + 1] for i in range(len(own) - 1)])
    if own != batch:
        missing = len(batch) - len(own)
        steps = (*[0] * missing, *[0 if n == 1 else s for n, s in zip(own, strides, strict=True)])
        x, joined = x.seen(0, (*batch, *x.shape[-2:]), (*steps, *x.strides[-2:])), False
    x = x if joined else MEMORY.copy(x)
    return x, x.strides[-3]
