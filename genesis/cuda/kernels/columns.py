"""Sums of columns, of a matrix or of the product of two: what gradients of biases and of norms' weights are.

Rows are divided among programs, whose sums are summed by another launch: the same numbers each time, and one kernel for all
sizes.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, HALVES
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to, type_of

WIDTH, HEIGHT = 64, 64  # of the tile that a program reads at once
PROGRAMS = 528  # four for each processor of an H100
STAGES = 3  # tiles that are under way at once
FEWEST = 128  # rows of a program
Grid = tuple[int, int, int]

_SOURCE = """
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, M, N, step, other, part):
    n = tl.program_id(0) * {width} + tl.arange(0, {width})
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, M)
    total = tl.zeros([{height}, {width}], tl.{wide})
    for m in tl.range(first, last, {height}, num_stages={stages}):
        row = m + tl.arange(0, {height})
        inside = (row[:, None] < last) & (n[None, :] < N)
        value = tl.load(x + row[:, None].to(tl.int64) * step + n[None, :], mask=inside, other=0).to(tl.{wide})
        {times}
        total += value
    at = tl.program_id(1).to(tl.int64) * N + n
    tl.store(out + at, tl.sum(total, 0).to(out.dtype.element_ty), mask=n < N)
"""
_TIMES = "value *= tl.load(y + row[:, None].to(tl.int64) * other + n[None, :], mask=inside, other=0).to(tl.{wide})"


class Columns(Launched):
    """The kernel for a matrix, or two, and the dtype of the sums."""

    def __init__(self, dtype: Any, other: Any, out: Any) -> None:
        self.dtype, self.other, self.out = dtype, other, out
        self.wide = np.dtype(np.float64) if dtype.itemsize == 8 else F32
        wide = type_of(self.wide)
        times = "" if other is None else _TIMES.format(wide=wide)
        self.source = _SOURCE.format(width=WIDTH, height=HEIGHT, stages=STAGES, wide=wide, times=times).lstrip()
        self.signature = (pointer_to(dtype), pointer_to(other or dtype), pointer_to(out), *["i32"] * 5)
        self.letters = "QQQ" + "i" * 5

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        x, y, out, m, n, step, other, _ = values
        second = [] if self.other is None else [(y, ((m - 1) * other + n) * self.other.itemsize, False)]
        return [
            (x, ((m - 1) * step + n) * self.dtype.itemsize, False),
            *second,
            (out, grid[1] * n * self.out.itemsize, True),
        ]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        *_, m, n, step, other, part = values
        arrays = [
            memory.array(start, dtype, count // dtype.itemsize)
            for (start, count, _), dtype in zip(
                self.spans(grid, values), [d for d in (self.dtype, self.other, self.out) if d is not None], strict=True
            )
        ]
        x, out = arrays[0], arrays[-1]
        y = x if self.other is None else arrays[1]
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [x, y, out, *values[3:]])[2]
            return
        strided = np.lib.stride_tricks.as_strided
        value = strided(x, (m, n), (step * x.itemsize, x.itemsize)).astype(self.wide)
        if self.other is not None:
            value = value * strided(y, (m, n), (other * y.itemsize, y.itemsize)).astype(self.wide)
        sums = [value[first : first + part].sum(0) for first in range(0, m, part)]
        out[...] = np.stack(sums).reshape(-1).astype(self.out)


@functools.cache
def columns(dtype: Any, other: Any, out: Any) -> Columns:
    return Columns(dtype, other, out)


def takes(dtype: Any) -> bool:
    return dtype in HALVES or dtype.char in "fd"


def column_sums(x: CudaArray, y: CudaArray | None, dtype: Any, shape: tuple[int, ...]) -> CudaArray:
    """The sum of each column of ``x``, or of ``x * y``, matrices whose rows are contiguous; the result has this shape."""
    (m, n), wide = x.shape, np.dtype(np.float64) if x.dtype.itemsize == 8 else F32
    across = -(-n // WIDTH)
    parts = max(min(-(-m // FEWEST), PROGRAMS // across), 1)
    part = -(-m // (parts * HEIGHT)) * HEIGHT
    parts = -(-m // part)
    out = MEMORY.empty(shape, dtype, x.device)
    first = out if parts == 1 else MEMORY.empty((parts, n), wide, x.device)
    stream = used(x, out, first, *([] if y is None else [y])).handle
    other = (0, 0) if y is None else (y.address, y.strides[0])
    kernel = columns(x.dtype, None if y is None else y.dtype, first.dtype)
    values = (x.address, other[0], first.address, m, n, x.strides[0], other[1], part)
    kernel.start(x.on, stream, (across, parts, 1), values)
    if parts > 1:
        rest = (first.address, 0, out.address, parts, n, n, 0, -(-parts // HEIGHT) * HEIGHT)
        columns(wide, None, out.dtype).start(x.on, stream, (across, 1, 1), rest)
    return out


def as_rows(x: CudaArray) -> CudaArray | None:
    """All dimensions but the last as one, where that is a matrix of contiguous rows."""
    if x.ndim < 2 or not x.size or x.size >= 1 << 31:
        return None
    steps = list(zip(x.shape[:-1], x.strides[:-1], strict=True))
    joined = all([a[1] == b[1] * b[0] for a, b in itertools.pairwise(steps)])
    if not joined or x.strides[-1] != 1 or steps[-1][1] < x.shape[-1]:
        return None
    return x.seen(0, (math.prod(x.shape[:-1]), x.shape[-1]), (steps[-1][1], 1))


def sums_of_columns(input: CudaArray, dims: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """The kernel of `sum` over all dimensions but the last, where there are many rows."""
    given = (dims,) if isinstance(dims, int) else () if dims is None else tuple(dims)
    if {d % max(input.ndim, 1) for d in given} != set(range(input.ndim - 1)):
        return NotImplemented
    out = input.dtype if dtype is None else np.dtype(dtype)
    rows = as_rows(input) if takes(input.dtype) and takes(out) else None
    if rows is None or rows.shape[0] < FEWEST or (out.itemsize == 8) != (input.dtype.itemsize == 8):
        return NotImplemented
    return column_sums(rows, None, out, (*([1] * (input.ndim - 1) if keepdim else ()), input.shape[-1]))


KERNELS = {"sum": sums_of_columns}
