"""Sums of rows that indices name, each with all that come to it: gradients of embeddings. Which elements come to which row is
sorted; where in that order each row begins, a search says, and each row is written by one program, zeros where none comes to it.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.cuda.arrays import CudaArray, empty, used
from genesis.cuda.kernels.gathers import Named
from genesis.cuda.kernels.sorts import LOW
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

I32, I64 = np.dtype(np.int32), np.dtype(np.int64)
NARROWEST = 1 << 7  # elements of a row from which it is a program's
WIDEST = 1 << 10  # of those that a program takes at once
SEVERAL = 4  # rows of a program
SEARCHES = 256
Grid = tuple[int, int, int]


class Begins(Launched):
    """Where each row's elements begin in the order, and behind the last row where all end."""

    source = f"""
import triton
import triton.language as tl


@triton.jit
def kernel(order, begins, n, rows, row):
    each = tl.program_id(0) * {SEARCHES} + tl.arange(0, {SEARCHES})
    to = each.to(tl.int64) * row
    smaller = each * 0
    size = n // 2
    while size > 0:
        smaller += tl.where(tl.load(order + smaller + (size - 1)) >> 32 < to, size, 0)
        size = size // 2
    smaller += (tl.load(order + smaller) >> 32 < to).to(tl.int32)
    tl.store(begins + each, smaller, mask=each <= rows)
""".lstrip()
    signature, letters, free = ("*i64", "*i32", "i32", "i32", "i32"), "QQiii", frozenset({2, 3, 4})

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], 8 * values[2], False), (values[1], 4 * (values[3] + 1), True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        n, rows, row = values[2:]
        order, begins = memory.array(values[0], I64, n), memory.array(values[1], I32, rows + 1)
        if interpreted():
            begins[...] = interpreter.run(self.source, grid, [order, begins, n, rows, row])[1]
        else:
            begins[...] = np.searchsorted(order >> 32, np.arange(rows + 1) * row)


_SUMS = """
import triton
import triton.language as tl


@triton.jit
def kernel(order, begins, x, out, n, count, rows, row):
    first = tl.program_id(0) * {several}
    column = tl.program_id(1) * {block} + tl.arange(0, {block})
    inside = column < row
    to = out + first.to(tl.int64) * row + column
    end = tl.load(begins + first)
    for each in range(first, tl.minimum(first + {several}, rows)):
        begin = end
        end = tl.load(begins + each + 1)
        total = tl.zeros([{block}], tl.{kind})
        for j in range(begin, end):
            at = (tl.load(order + j) & {low}) * row
            total += tl.load(x + at + column, mask=inside, other=0).to(tl.{kind})
        tl.store(to, total.to(out.dtype.element_ty), mask=inside)
        to += row
""".lstrip()


class Sums(Launched):
    letters, free = "QQQQiiii", frozenset({4, 5, 6})

    def __init__(self, dtype: Any, result: Any, kind: str, block: int) -> None:
        self.dtypes, self.kind, self.block = (I64, I32, dtype, result), kind, block
        self.source = _SUMS.format(several=SEVERAL, block=block, kind=kind, low=LOW)
        self.signature = (*[pointer_to(d) for d in self.dtypes], *["i32"] * 4)

    def counts(self, values: tuple[Any, ...]) -> list[int]:
        n, count, rows, row = values[4:]
        return [n, rows + 1, count * row, rows * row]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        sizes = enumerate(zip(self.dtypes, self.counts(values), strict=True))
        return [(values[i], d.itemsize * n, i == 3) for i, (d, n) in sizes]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        sizes = zip(self.dtypes, self.counts(values), strict=True)
        order, begins, x, out = [memory.array(values[i], d, n) for i, (d, n) in enumerate(sizes)]
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [order, begins, x, out, *values[4:]])[3]
            return
        row = values[7]
        values_of, to = x.reshape(-1, row).astype(self.kind), out.reshape(-1, row)
        for each, (begin, end) in enumerate(itertools.pairwise(begins)):
            to[each] = values_of[order[begin:end] & LOW].sum(0)


BEGINS = Begins()


@functools.cache
def of_rows(dtype: Any, result: Any, kind: str, block: int) -> Sums:
    return Sums(dtype, result, kind, block)


def are_whole_rows(goal: Named, own: tuple[tuple[int, ...], tuple[int, ...]], out: CudaArray) -> bool:
    """Whether what is named are rows of all of ``out``, wide enough for a program each."""
    row = int(np.prod(own[0], dtype=np.int64))
    rows = [(out.size // max(row, 1), row)]
    return row >= NARROWEST and [*goal.reached] == rows and not (goal.offset or any(goal.strides)) and own[1] == contiguous_strides(own[0])  # fmt: skip


def summed(order: CudaArray, x: CudaArray, count: int, row: int, kind: str, out: CudaArray) -> None:
    """Write all rows of ``out``: the sums of the ``count`` rows of ``x``, in the order in which these come to them."""
    rows, on = out.size // row, out.on
    begins = empty(on, (rows + 1,), I32)
    stream = used(order, begins, x, out).handle
    sizes = order.address, begins.address, order.size, rows, row
    BEGINS.start(on, stream, (-(-(rows + 1) // SEARCHES), 1, 1), sizes)
    block = min(1 << (row - 1).bit_length(), WIDEST)
    values = order.address, begins.address, x.address, out.address, order.size, count, rows, row
    of_rows(x.dtype, out.dtype, kind, block).start(on, stream, (-(-rows // SEVERAL), -(-row // block), 1), values)
