"""Sorting. What is sorted are 64-bit integers, the key above and the position below, so that no two are equal: any network
of comparisons then gives one order, in which equals stay as they were.

Tiles are sorted by one program each; longer rows by steps of a bitonic network, in memory while what is compared is further
apart than a tile, then in tiles again. Keys of 64 bits are sorted twice, by their lower half and by their upper one.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.moves import part
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.streams import current

I64, I32 = np.dtype(np.int64), np.dtype(np.int32)
TILE = 2048
LOW = (1 << 32) - 1
LAST = (1 << 31) - 1  # the upper half of what fills a row up
PAIRS = 1024
Grid = tuple[int, int, int]


def to_sort(rows: tuple[int, ...], n: int, like: CudaArray) -> CudaArray:
    """Memory for rows of ``n`` integers, which are as long as a power of two: behind them are integers that come last."""
    row = 1 << max(n - 1, 0).bit_length()
    out = empty(like.on, (*rows, row), I64)
    if row > n:
        out.on.enter().fill(out.address, LAST, 4, 2 * out.size, current(out.on).handle)
    return out


# ---- kernels


class InPlace(Launched):
    """Something that is done to one array of integers."""

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], 8 * values[1], False), (values[0], 8 * values[1], True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        data = memory.array(values[0], I64, values[1])
        if interpreted():
            data[...] = interpreter.run(self.source, grid, [data, *values[1:]])[0]
        else:
            self.meaning(data, *values[2:])

    def meaning(self, data: Any, *numbers: int) -> None:
        """The same with NumPy."""
        raise NotImplementedError


class Tiles(InPlace):
    """Sorts every tile, upwards where the bit ``k`` of its place is 0. What is ``merged`` goes up and then down, or down and
    then up: of 2048 integers that takes 11 rounds of comparisons, where sorting any takes 66.
    """

    def __init__(self, tile: int, merged: bool) -> None:
        self.tile = tile
        self.rows = max(PAIRS // tile, 1)
        self.source = _TILES.format(tile=tile, rows=self.rows, sort="bitonic_merge" if merged else "sort")
        self.signature, self.letters, self.warps = ("*i64", "i64", "i64"), "Qqq", 8 if tile > 512 else 4
        self.free = frozenset({2})

    def meaning(self, data: Any, k: int) -> None:
        tiles = data.reshape(-1, self.tile)
        tiles.sort(axis=1)
        down = np.arange(len(tiles)) * self.tile & k != 0
        tiles[down] = tiles[down, ::-1]


_TILES = """
import triton
import triton.language as tl


@triton.jit
def kernel(data, n, k):
    first = (tl.program_id(0).to(tl.int64) * {rows} + tl.arange(0, {rows})[:, None]) * {tile}
    lane = tl.arange(0, {tile})[None, :]
    inside = (first < n) & (lane >= 0)
    x = tl.{sort}(tl.load(data + first + lane, mask=inside, other=0), dim=1)
    tl.debug_barrier()
    to = tl.where((first & k) == 0, lane, {tile} - 1 - lane)
    tl.store(data + first + to, x, mask=inside)
""".lstrip()


class Step(InPlace):
    """Compares integers that are ``j`` apart, upwards where the bit ``k`` of their place is 0."""

    source = f"""
import triton
import triton.language as tl


@triton.jit
def kernel(data, n, j, k):
    pair = tl.program_id(0).to(tl.int64) * {PAIRS} + tl.arange(0, {PAIRS})
    inside = pair < n // 2
    at = pair // j * 2 * j + pair % j
    x = tl.load(data + at, mask=inside, other=0)
    y = tl.load(data + at + j, mask=inside, other=0)
    low, high = tl.minimum(x, y), tl.maximum(x, y)
    up = (at & k) == 0
    tl.store(data + at, tl.where(up, low, high), mask=inside)
    tl.store(data + at + j, tl.where(up, high, low), mask=inside)
""".lstrip()
    signature, letters, free = ("*i64", "i64", "i64", "i64"), "Qqqq", frozenset({2, 3})

    def meaning(self, data: Any, j: int, k: int) -> None:
        pairs = data.reshape(-1, 2, j)
        low, high = pairs.min(1), pairs.max(1)
        down = (np.arange(len(pairs)) * 2 * j & k != 0)[:, None]
        pairs[:, 0], pairs[:, 1] = np.where(down, high, low), np.where(down, low, high)


@functools.cache
def tiles(size: int, merged: bool = False) -> Tiles:
    return Tiles(size, merged)


STEP = Step()


def sort_rows(data: CudaArray) -> None:
    """Sort each row of contiguous integers, of which no two are equal, in place; rows are as long as a power of two."""
    n, row, stream = data.size, data.shape[-1], used(data).handle
    tile = min(row, TILE)
    kernel = tiles(tile)
    grid = -(-n // (tile * kernel.rows)), 1, 1
    kernel.start(data.on, stream, grid, (data.address, n, tile if row > tile else 0))
    k = 2 * tile
    while k <= row:
        bit, j = (k if k < row else 0), k // 2
        while j >= tile:
            STEP.start(data.on, stream, (-(-n // (2 * PAIRS)), 1, 1), (data.address, n, j, bit))
            j //= 2
        tiles(tile, merged=True).start(data.on, stream, grid, (data.address, n, bit))
        k *= 2


# ---- keys of rows: dimension 0 are the rows, 1 what is sorted

_FLOAT = """
v = tl.load(x + x_at + p * x_step0, mask=inside, other=0.0).to(tl.{float})
v = tl.where(v == 0, 0.0, v)
key = v.to(tl.{int}, bitcast=True)
key = tl.where(key < 0, key ^ {top}, key)
key = tl.where(v != v, {top}, key)
"""
_INTEGER = """
key = tl.load(x + x_at + p * x_step0, mask=inside, other=0).to(tl.{int})
"""
_HALF = {"": "", "low": "key = (key & 0xFFFFFFFF) - 0x80000000", "high": "key = key >> 32"}


@functools.cache
def keys(kind: str, wide: bool, down: bool, half: str) -> Code:
    """What is sorted, for numbers of a kind; their upper halves are taken in the order of the ``lower`` ones."""
    names = {"float": "float64" if wide else "float32", "int": "int64" if wide else "int32"}
    top = (1 << 63) - 1 if wide else LAST
    position = f"tl.load(lower + lower_at, mask=inside, other=0) & {LOW}" if half == "high" else "c1.to(tl.int64)"
    text = (_FLOAT if kind == "f" else _INTEGER).format(**names, top=top)
    turned = "key = ~key" if down else ""
    store = "tl.store(out + out_at, (key.to(tl.int64) << 32) | c1.to(tl.int64), mask=inside)"
    lines = [f"p = {position}", *text.split("\n"), turned, _HALF[half], store]

    def meaning(x: Any, *others: Any) -> None:
        out, columns = others[-1], np.arange(others[-1].shape[1])
        p = others[0] & LOW if half == "high" else np.broadcast_to(columns, out.shape)
        v = np.take_along_axis(x[:, 0, :], p, 1)
        key = _ordered(v.astype(names["float"]), names["int"]) if kind == "f" else v.astype(names["int"])
        key = (~key if down else key).astype(np.int64)
        key = (key & LOW) - (1 << 31) if half == "low" else key >> 32 if half == "high" else key
        out[...] = (key << 32) | columns

    lower = (Operand("lower"),) if half == "high" else ()
    operands = (Operand("x", 1), *lower, Operand("out", writes=True))
    return Code("keys", operands, "\n".join([line for line in lines if line]), meaning, whole=2)


def _ordered(v: Any, kind: str) -> Any:
    bits = np.where(v == 0, np.zeros((), v.dtype), v).view(kind)
    top = np.iinfo(kind).max
    return np.where(np.isnan(v), top, np.where(bits < 0, bits ^ top, bits))


def _first(sorted: Any, out: Any) -> None:
    out[...] = sorted & LOW


def _second(lower: Any, sorted: Any, out: Any) -> None:
    out[...] = np.take_along_axis(lower[:, 0, :], sorted & LOW, 1) & LOW


FIRST = Code(
    "positions",
    (Operand("sorted"), Operand("out", writes=True)),
    f"tl.store(out + out_at, tl.load(sorted + sorted_at, mask=inside) & {LOW}, mask=inside)",
    _first,
)
SECOND = Code(
    "positions of positions",
    (Operand("lower", 1), Operand("sorted"), Operand("out", writes=True)),
    f"r = tl.load(sorted + sorted_at, mask=inside, other=0) & {LOW}\n"
    f"tl.store(out + out_at, tl.load(lower + lower_at + r * lower_step0, mask=inside) & {LOW}, mask=inside)",
    _second,
    whole=2,
)


def order(x: CudaArray, down: bool, count: int) -> CudaArray:
    """Of each row of a contiguous matrix, the positions of its first ``count`` numbers in order; equals keep theirs."""
    rows, n = x.shape
    kind, wide = "f" if x.dtype.kind == "f" or x.dtype in HALVES else "i", x.dtype.itemsize == 8
    lower, out = to_sort((rows,), n, x), empty(x.on, (rows, count), I64)
    row = lower.shape[1]
    given, steps = Placed(x, (n, 0), ((n, 1),)), (row, 1)
    start(keys(kind, wide, down, "low" if wide else ""), (rows, n), [given, Placed(lower, steps)])
    sort_rows(lower)
    to = Placed(out, (count, 1))
    if not wide:
        start(FIRST, (rows, count), [Placed(lower, steps), to])
        return out
    upper = to_sort((rows,), n, x)
    start(keys(kind, wide, down, "high"), (rows, n), [given, Placed(lower, steps), Placed(upper, steps)])
    sort_rows(upper)
    start(SECOND, (rows, count), [Placed(lower, (row, 0), ((row, 1),)), Placed(upper, steps), to])
    return out


# ---- ops


def ordered_along(input: CudaArray, dim: int, down: bool, count: int) -> Any:
    """The positions of the first ``count`` along a dimension."""
    if input.dtype.kind == "c" or (input.dtype.kind == "u" and input.dtype.itemsize > 2) or not input.ndim:
        return NotImplemented
    dim %= input.ndim
    if dim == input.ndim - 1 and input.size and count and input.is_contiguous:
        n = input.shape[dim]
        return order(input.seen(0, (input.size // n, n), (n, 1)), down, count).seen(
            0, *_laid((*input.shape[:-1], count))
        )
    dims = [d for d in range(input.ndim) if d != dim]
    moved = input.seen(0, *[tuple([of[d] for d in (*dims, dim)]) for of in (input.shape, input.strides)])
    n, others = input.shape[dim], moved.shape[:-1]
    shape = tuple([count if d == dim else m for d, m in enumerate(input.shape)])
    if not input.size or not count:
        return MEMORY.empty(shape, I64, input.device)
    x = moved if moved.is_contiguous else MEMORY.copy(moved)
    positions = order(x.seen(0, (x.size // n, n), (n, 1)), down, count).seen(0, *_laid((*others, count)))
    back = [dims.index(d) if d != dim else len(dims) for d in range(input.ndim)]
    out = positions.seen(0, *[tuple([of[d] for d in back]) for of in (positions.shape, positions.strides)])
    return out if out.is_contiguous else MEMORY.copy(out)


def _laid(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape, contiguous_strides(shape)


def argsort(input: CudaArray, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return ordered_along(input, dim, descending, input.shape[dim] if input.ndim else 0)


def top_positions(input: CudaArray, k: int, dim: int, largest: bool) -> Any:
    return ordered_along(input, dim, largest, k)


def kth_position(input: CudaArray, k: int, dim: int) -> Any:
    positions = ordered_along(input, dim, False, k)
    if positions is NotImplemented:
        return positions
    return MEMORY.copy(part(positions, (*[slice(None)] * (dim % input.ndim), slice(k - 1, k))))


KERNELS = {"argsort": argsort, "top_positions": top_positions, "kth_position": kth_position}
