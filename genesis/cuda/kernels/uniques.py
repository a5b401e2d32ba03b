"""Distinct elements: `unique` and `unique_consecutive`. Elements, sorted for the former, begin a run where they differ from the
one before; the running sum of these beginnings numbers the runs, and each of them writes its first element where its
number says. How many there are is a number that the host asks for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.gathers import gather_at
from genesis.cuda.kernels.host import host_kernel
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.lowering import now
from genesis.cuda.kernels.moves import contiguous
from genesis.cuda.kernels.scans import scanned
from genesis.cuda.kernels.sorts import ordered_along

I64 = np.dtype(np.int64)
MOST = 1 << 30  # elements
COLUMNS = 16  # of slices that are sorted by one after the other


def _begin(before: Any, here: Any, out: Any) -> None:
    first = here != before
    out[0, here[first]] = np.arange(len(here))[first]


BEGIN = Code(
    "beginnings",
    (Operand("before"), Operand("here"), Operand("out", 1, writes=True)),
    "number = tl.load(here + here_at, mask=inside, other=0)\n"
    "first = inside & (number != tl.load(before + before_at, mask=inside, other=0))\n"
    "tl.store(out + out_at + number * out_step0, at.to(tl.int64), mask=first)",
    _begin,
)


def _put_back(position: Any, number: Any, out: Any) -> None:
    out[0, position] = number


PUT_BACK = Code(
    "put back",
    (Operand("position"), Operand("number"), Operand("out", 1, writes=True)),
    "to = tl.load(position + position_at, mask=inside, other=0)\n"
    "tl.store(out + out_at + to * out_step0, tl.load(number + number_at, mask=inside, other=0), mask=inside)",
    _put_back,
)


def _line(x: CudaArray, begin: int, size: int) -> CudaArray:
    """Some elements of a contiguous array."""
    return x.seen(begin * x.dtype.itemsize, (size,), (1,))


class Runs:
    """The runs of equals among the rows of a contiguous matrix.

    Attributes:
        numbers: of each row, that of its run
        starts: where each run begins; behind the last one, how many rows there are
    """

    def __init__(self, x: CudaArray) -> None:
        rows, columns = x.shape
        numbers = MEMORY.full((rows + 1,), I64, -1, x.device)
        self.numbers, before = _line(numbers, 1, rows), _line(numbers, 0, rows)
        MEMORY.assign(_line(numbers, 1, 1), MEMORY.zeros((1,), I64, x.device))
        if rows > 1:
            shape = (rows - 1, columns)
            here, there = (x.seen(k * columns * x.dtype.itemsize, shape, x.strides) for k in (1, 0))
            other = MEMORY.kernel(REGISTRY["ne"])(here, there)
            other = MEMORY.kernel(REGISTRY["any"])(other, (1,), False) if columns > 1 else other
            MEMORY.assign(_line(numbers, 2, rows - 1), scanned("cumsum", other.seen(0, (rows - 1,), (1,)), 0, I64))
        self.count = int(MEMORY.to_host(_line(numbers, rows, 1))[0]) + 1
        self.starts = MEMORY.full((self.count + 1,), I64, rows, x.device)
        placed = [Placed(a, (1,)) for a in (before, self.numbers)]
        start(BEGIN, (rows,), [*placed, Placed(self.starts, (0,), ((self.count + 1, 1),))])

    def first(self, x: CudaArray) -> CudaArray:
        """The first row of each run."""
        return rows_at(x, _line(self.starts, 0, self.count))

    def sizes(self) -> Any:
        ends, starts = (_line(self.starts, k, self.count) for k in (1, 0))
        return MEMORY.kernel(REGISTRY["sub"])(ends, starts)


def rows_at(x: CudaArray, positions: CudaArray) -> CudaArray:
    """Rows of a matrix."""
    rows = positions.seen(0, (positions.size, x.shape[1]), (1, 0))
    return now(gather_at(x, 0, rows), x, 0, rows)  # type: ignore[no-any-return]


def _as_rows(input: CudaArray, dim: int | None) -> CudaArray:
    """A contiguous matrix, of whose rows are asked which are equal."""
    if dim is None or not input.ndim:
        return contiguous(input).seen(0, (input.size, 1), (1, 1))
    order = [dim, *[d for d in range(input.ndim) if d != dim]]
    moved = contiguous(input.seen(0, *[tuple([of[d] for d in order]) for of in (input.shape, input.strides)]))
    columns = math.prod(moved.shape[1:])
    return moved.seen(0, (input.shape[dim], columns), (columns, 1))


def _laid_as(rows: CudaArray, input: CudaArray, dim: int | None) -> CudaArray:
    """Rows in the form of the input."""
    if dim is None or not input.ndim:
        return rows.seen(0, (rows.shape[0],), (1,))
    others = [n for d, n in enumerate(input.shape) if d != dim]
    moved = rows.seen(0, (rows.shape[0], *others), contiguous_strides((rows.shape[0], *others)))
    back = [*range(1, dim + 1), 0, *range(dim + 1, input.ndim)]
    return contiguous(moved.seen(0, *[tuple([of[d] for d in back]) for of in (moved.shape, moved.strides)]))


def _sorted_positions(x: CudaArray) -> Any:
    """Where the rows of a matrix are in order: sorted by their last column, then by the one before, as equals keep theirs."""
    positions = None
    for column in reversed(range(x.shape[1])):
        key = x.seen(column * x.dtype.itemsize, (x.shape[0],), (x.shape[1],))
        key = key if positions is None else now(gather_at(key, 0, positions), key, 0, positions)
        order = now(ordered_along(key, 0, False, x.shape[0]), key)
        if order is NotImplemented:
            return NotImplemented
        positions = order if positions is None else now(gather_at(positions, 0, order), positions, 0, order)
    return positions


def unique(input: CudaArray, sorted: bool, inverse: bool, counts: bool, dim: int | None) -> Any:
    x = _as_rows(input, dim) if 0 < input.size < MOST else None
    positions = NotImplemented if x is None or x.shape[1] > COLUMNS else _sorted_positions(x)
    if x is None or positions is NotImplemented:
        return host_kernel(REGISTRY["unique"])(input, sorted, inverse, counts, dim)
    x = rows_at(x, positions)
    runs = Runs(x)
    where = MEMORY.empty(input.shape if dim is None else (input.shape[dim],), I64, input.device)
    if inverse:
        placed = [Placed(a, (1,)) for a in (positions, runs.numbers)]
        start(PUT_BACK, (where.size,), [*placed, Placed(where, (0,), ((where.size, 1),))])
    results = [_laid_as(runs.first(x), input, dim), *[where] * inverse, *([runs.sizes()] if counts else [])]
    return tuple(results) if len(results) > 1 else results[0]


def unique_consecutive(input: CudaArray, inverse: bool, counts: bool, dim: int | None) -> Any:
    if not 0 < input.size < MOST or input.dtype.kind == "c":
        return host_kernel(REGISTRY["unique_consecutive"])(input, inverse, counts, dim)
    x = _as_rows(input, dim)
    runs = Runs(x)
    shape = input.shape if dim is None else (x.shape[0],)
    where = MEMORY.copy(runs.numbers.seen(0, shape, contiguous_strides(shape)))
    results = [_laid_as(runs.first(x), input, dim), *[where] * inverse, *([runs.sizes()] if counts else [])]
    return tuple(results) if len(results) > 1 else results[0]


KERNELS = {"unique": unique, "unique_consecutive": unique_consecutive}
