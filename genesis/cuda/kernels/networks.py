"""Rows of 64-bit integers put in order, of which no two are equal but those that fill a row up.

Tiles are sorted by one program each. Few integers are then merged, up to 16 runs at once: how many of each run are smaller,
which a search in each says, is where an integer belongs. That is two or three launches, but each search waits for memory again
and again: many integers go through the steps of a bitonic network, in memory while what is compared is further apart than a
tile, then in tiles again.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.cuda.arrays import CudaArray, empty, used
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span

I64 = np.dtype(np.int64)
FEW = 1 << 17  # integers, at most, that are merged: searches in more of them take longer than the launches of a network
RUN, TILE = 1024, 2048  # that one program sorts, of runs to merge and of a network
PAIRS = 1024  # that one program of a network compares
SEVERAL = 16  # runs that are merged at once
SEARCHES = 2048  # of one program
Grid = tuple[int, int, int]


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


class Merge(Launched):
    """Merges several runs at once, those of one row. Of equals those of the first run come first."""

    letters, free = "QQqq", frozenset({2})
    signature = "*i64", "*i64", "i64", "i64"

    def __init__(self, several: int) -> None:
        self.several, self.block = several, SEARCHES // several
        self.source = _MERGE.format(several=several, block=self.block)

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], 8 * values[2], False), (values[1], 8 * values[2], True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        data, out = [memory.array(values[i], I64, values[2]) for i in range(2)]
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [data, out, *values[2:]])[1]
        else:
            out[...] = np.sort(data.reshape(-1, self.several * values[3])).reshape(-1)


_MERGE = """
import triton
import triton.language as tl


@triton.jit
def kernel(data, out, n, run):
    at = tl.program_id(0).to(tl.int64) * {block} + tl.arange(0, {block})
    inside = at < n
    x = tl.load(data + at, mask=inside, other=0)
    first = at // (run * {several}) * (run * {several})
    begin = first[:, None] + tl.arange(0, {several})[None, :] * run
    own = (at // run * run)[:, None]
    least = x[:, None] + (begin < own)
    smaller = begin * 0
    size = run // 2
    while size > 0:
        y = tl.load(data + begin + smaller + (size - 1), mask=inside[:, None], other=0)
        smaller += tl.where(y < least, size, 0)
        size = size // 2
    y = tl.load(data + begin + smaller, mask=inside[:, None], other=0)
    smaller += (y < least).to(tl.int64)
    smaller = tl.where(begin == own, at[:, None] - own, smaller)
    tl.store(out + first + tl.sum(smaller, 1), x, mask=inside)
""".lstrip()


@functools.cache
def tiles(size: int, merged: bool = False) -> Tiles:
    return Tiles(size, merged)


@functools.cache
def merge(several: int) -> Merge:
    return Merge(several)


STEP = Step()


def sort_rows(data: CudaArray) -> CudaArray:
    """Each row of contiguous integers in order, in the same memory or in other; rows are as long as a power of two."""
    return _merged(data) if data.size <= FEW or data.shape[-1] <= RUN else _through_a_network(data)


def _merged(data: CudaArray) -> CudaArray:
    n, row, stream = data.size, data.shape[-1], used(data).handle
    run = min(row, RUN)
    kernel = tiles(run)
    kernel.start(data.on, stream, (-(-n // (run * kernel.rows)), 1, 1), (data.address, n, 0))
    other = empty(data.on, data.shape, I64) if run < row else data
    while run < row:
        merging = merge(min(SEVERAL, row // run))
        grid = -(-n // merging.block), 1, 1
        merging.start(data.on, used(data, other).handle, grid, (data.address, other.address, n, run))
        data, other, run = other, data, run * merging.several
    return data


def _through_a_network(data: CudaArray) -> CudaArray:
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
    return data
