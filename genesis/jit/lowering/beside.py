"""Sums of columns beside what is done with the same elements row by row, as gradients of biases and of norms' weights are.

    for some rows of each program: what is done with them, and a total of each column      a kernel, with the row's loops
    for columns: join the totals of all programs                                           another one

A sum over the rows alone would read all elements again. (On GPUs: the CPU's compiler sums columns in chunks of rows as well.)
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.core.call.scalars import Expression
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import Give, Part, Read

F32 = np.dtype(np.float32)
FEWEST = 1 << 9  # rows from which that pays
NARROWEST, WIDEST = 1 << 8, 1 << 13  # columns of a row that a program takes at once
SEVERAL = 8  # rows of a program, if there are as many for each processor: its totals are little beside them
TOTALS = 1 << 14  # that a program has registers for, beside its rows
LANES = 1 << 12  # that a processor goes through rows with


class Sums(Var):
    """Totals of the rows of each program. Parts that join such ones run together, though they share nothing else."""

    __slots__ = ()


def programs_of(rows: int, columns: int, processors: int) -> tuple[int, int]:
    """How many programs there are, and how many rows each has."""
    programs = processors * max(LANES >> (columns - 1).bit_length(), 1)
    size = max(-(-rows // programs), min(SEVERAL, -(-rows // processors)))
    return -(-rows // size), size


def halved(part: Part, processors: int) -> tuple[Part, Part] | None:
    """A part that sums columns as two: the totals of each program's rows, and the sums of these; None for other parts."""
    if part.rows is None:
        return None
    columns, rows = part.axes[: part.rows], part.axes[part.rows :]
    n, m = math.prod(columns), math.prod(rows)
    if (
        m < FEWEST
        or not NARROWEST <= n <= WIDEST
        or any([r.index is not None or r.dtype.itemsize > 4 for r in part.reads])
    ):
        return None
    halves = _Halves(part, n, programs_of(m, n, processors)[0])
    gives = [halves.joined(give) for give in part.gives]
    if not halves.sums or None in gives:
        return None
    axes = (*rows, *columns)

    def turned(strides: tuple[int, ...]) -> tuple[int, ...]:
        return (*strides[len(columns) :], *strides[: len(columns)])

    reads = tuple([replace(r, strides=turned(r.strides)) for r in part.reads])
    steps = (*[0] * len(rows), *contiguous_strides(columns))
    sums = tuple([Give(var, 0, steps, value) for var, value in halves.sums])
    first = Part(part.call, axes, len(rows), reads, sums, beside=True)
    return first, Part(part.call, (*columns, halves.count), part.rows, tuple(halves.reads), tuple(gives))  # type: ignore[arg-type]


class _Halves:
    def __init__(self, part: Part, columns: int, count: int) -> None:
        self.part, self.count = part, count
        self.steps = (*contiguous_strides(part.axes[: part.rows]), columns)
        self.size = columns * count
        self.sums: list[tuple[Var, Expression]] = []
        self.reads: list[Read] = []

    def joined(self, give: Give) -> Give | None:
        """The same result of the totals of all programs."""
        value = None if any(give.strides[self.part.rows :]) else self._of_totals(give.value)
        return None if value is None else replace(give, strides=(*give.strides[: self.part.rows], 0), value=value)

    def _of_totals(self, value: Expression) -> Expression | None:
        """A value that is made of sums and numbers alone, of the totals; None for another."""
        if value.name == "total add":
            return self._total(value)
        if value.name == "x" or value.name.startswith("total "):
            return None
        args = [self._of_totals(a) if isinstance(a, Expression) else a for a in value.args]
        return None if None in args else Expression(value.name, tuple(args), value.dtype)

    def _total(self, total: Expression) -> Expression | None:
        if total.dtype.kind != "f" or any([each.name.startswith("total ") for each in total.args[0].walk()]):
            return None
        var = Sums(Spec((self.size,), F32))
        self.sums.append((var, _cast(total, F32)))
        self.reads.append(Read(var, F32, 0, self.steps))
        leaf = Expression("x", (len(self.reads) - 1,), F32)
        return Expression("total add", (_cast(leaf, total.dtype),), total.dtype)


def _cast(value: Expression, dtype: Any) -> Expression:
    return value if value.dtype == dtype else Expression("cast", (value,), dtype)


def are_rows(axes: list[int], rows: int, strides: list[tuple[int, ...]]) -> bool:
    """Whether all that is read and given goes through the rows as through one axis, and through the columns, which lie
    beside each other or are all the same.
    """
    for first, last in ((0, rows), (rows, len(axes))):
        for i, j in itertools.pairwise(range(first, last)):
            if any([s[i] != s[j] * axes[j] for s in strides]):
                return False
    return rows < len(axes) and all([s[-1] in (0, 1) for s in strides])
