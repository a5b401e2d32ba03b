"""Loops over columns that are divided among chunks, each of which has totals of its own, in memory.

for rows: for columns of this chunk: totals     store them                       a kernel
for rows: join the totals of all chunks         for columns of this chunk: ...   the next one
for rows: join the totals of all chunks         store what a row gives           the last one
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.scalars import Expression
from genesis.jit.arguments import Var
from genesis.jit.lowering.loops import (
    CHUNK,
    Affine,
    Axis,
    Count,
    DType,
    For,
    Load,
    Nest,
    Statement,
    Store,
    Total,
    Value,
    loads_of,
)

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
Stored = tuple[Var, Affine, Value]  # a result, where it is stored, and what it is
Made = tuple[Nest, list[Var]]


class Divided:
    """Makes kernels one after the other.

    Args:
        axes: the first ``split`` are rows, the others columns, of which the first one says how long a chunk is
        down: whether vectors are those of rows
        operands: what the values of the undivided loops read, by number, and as which dtype
        short: whether sums of numbers of less than 64 bits are in float32
    """

    def __init__(
        self, axes: Sequence[Axis], split: int, count: int, down: bool, operands: list[tuple[Var, DType]], short: bool
    ) -> None:
        self.all_rows, self.columns = tuple(axes[:split]), tuple(axes[split:])
        self.count, self.down, self.operands, self.short = count, down, operands, short
        self.parts: dict[Total, Var] = {}  # memory with the totals of each chunk, for each row

    def chunks(self, stored: Sequence[Stored], totals: Sequence[Total]) -> Made:
        """What a chunk stores, and its part of these totals."""
        kernel = _Kernel(self)
        stores = [kernel.store(*each) for each in stored]
        own = [Total(t.op, kernel.value(t.value), t.axes) for t in totals]
        body: list[Statement] = [For(self.columns, tuple(stores), tuple(own), vector=not self.down)]
        for old, total in zip(totals, own, strict=True):
            self.parts[old] = part = Var(Spec((self.count, math.prod([a.extent for a in self.all_rows])), self._dtype(total)))  # fmt: skip
            body.append(Store(kernel.operand(part, part.spec.dtype), self.slot(CHUNK), _cast(total, part.spec.dtype)))
        return kernel.made(body, self.count)

    def rows(self, stored: Sequence[Stored]) -> Made:
        """What rows give, of totals that are all there."""
        kernel = _Kernel(self)
        return kernel.made([kernel.store(*each) for each in stored], 1)

    def _dtype(self, total: Total) -> DType:
        short = self.short and total.dtype == F64 and all([load.dtype.itemsize < 8 for load in loads_of(total)])
        return F32 if short else total.dtype

    def slot(self, chunk: Axis) -> Affine:
        """Where the part of a chunk is."""
        steps, step = [], 1
        for axis in reversed(self.all_rows):
            steps.append((axis, step))
            step *= axis.extent
        return Affine(0, ((chunk, step), *steps))


class _Kernel:
    """A kernel with operands of its own, which reads what the chunks of those before it have totalled."""

    def __init__(self, of: Divided) -> None:
        self.of, self.count = of, Axis(of.count)
        self.operands: list[Var] = []
        self.dtypes: list[DType] = []
        self.joined: list[Total] = []
        self.known: dict[Value, Value] = {}

    def made(self, body: list[Statement], chunks: int) -> Made:
        if self.joined:
            body = [For((self.count,), (), tuple(self.joined)), *body]
        if self.of.all_rows:
            body = [For(self.of.all_rows, tuple(body), vector=self.of.down)]
        return Nest(tuple(self.dtypes), tuple(body), chunks), self.operands

    def operand(self, var: Var, dtype: DType) -> int:
        if var not in self.operands:
            self.operands.append(var)
            self.dtypes.append(dtype)
        return self.operands.index(var)

    def store(self, var: Var, at: Affine, value: Value) -> Store:
        return Store(self.operand(var, var.spec.dtype), at, self.value(value))

    def value(self, value: Value) -> Value:
        """The same value in this kernel."""
        if value not in self.known:
            self.known[value] = self._value(value)
        return self.known[value]

    def _value(self, value: Value) -> Value:
        if isinstance(value, Total):
            part = self.of.parts[value]
            load = Load(self.operand(part, part.spec.dtype), self.of.slot(self.count), part.spec.dtype)
            self.joined.append(total := Total(value.op, _cast(load, value.dtype), (self.count,)))
            return total
        if isinstance(value, Load):
            index = None if value.index is None else self.value(value.index)
            return Load(self.operand(*self.of.operands[value.operand]), value.at, value.dtype, index, value.step)
        if isinstance(value, Count):
            return value
        args = tuple([self.value(a) if isinstance(a, Value) else a for a in value.args])
        return Expression(value.name, args, value.dtype)


def _cast(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else Expression("cast", (value,), dtype)
