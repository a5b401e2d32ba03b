"""Loops: what a kernel does, in a language small enough for one page. Emitters print it, they decide nothing.

    For(axes)  goes through all combinations of the counts of some axes, the last axis fastest. With ``vector`` the last
               axis is taken in vectors: its rounds must not depend on each other.
    Store      writes a value to an operand, at a `Affine`: a number of elements that is a sum of counts times strides, so
               that views, broadcasting and transposes are nothing but strides.
    Load       reads one element; with an index, from where a number that was read says.
    Count      is the number of the round.
    Total      joins what a value is in all rounds of a loop, and is a value behind the loop.
    Expression computes with values, element by element: what `core/call/scalars.py` makes of the meaning of an op.

The sum of each row of a matrix of 3 rows and 4 columns, in chunks of one row:

>>> import numpy as np
>>> rows, columns = Axis(3, chunk=1), Axis(4)
>>> total = Total("add", Load(0, Affine(0, ((rows, 4), (columns, 1))), np.dtype("f8")), (columns,))
>>> inner = For((columns,), (), (total,), vector=True)
>>> nest = Nest((np.dtype("f8"),) * 2, (For((rows,), (inner, Store(1, Affine(0, ((rows, 1),)), total))),), chunks=3)

Values are assigned once, and everything is of static size. A loop whose first axis has a ``chunk`` does only the rounds
of its chunk: chunk number c those from ``c * chunk`` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.core.call.scalars import Expression

DType = np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """How many rounds a loop has, and how many of them one chunk does (None: all). Without an extent (-1) the loop goes
    from ``%start`` to ``%stop``, which the caller gives.
    """

    extent: int
    chunk: int | None = None


CALLED = -1  # the extent of a loop that is told where to begin and to end
ROW = 1 << 14  # elements of a row that a program of a GPU holds in registers
CHUNK = Axis(1 << 24)  # counts the chunks: never looped over, but addresses may depend on it


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant + sum(count of axis * stride)``, in elements."""

    constant: int = 0
    steps: tuple[tuple[Axis, int], ...] = ()

    def stride(self, axis: Axis | None) -> int:
        return sum([stride for each, stride in self.steps if each is axis])


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    operand: int
    at: Affine
    dtype: DType
    index: Value | None = None  # a number that is read, times `step`, is added to where it is
    step: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """The number that ``at`` says, as a value."""

    at: Affine
    dtype: DType = np.dtype(np.int64)  # noqa: RUF009


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """``op`` is one of `TOTALS`; ``axes`` are those of the loop that has it."""

    op: str
    value: Value
    axes: tuple[Axis, ...]

    @property
    def dtype(self) -> DType:
        return self.value.dtype


Value = Expression | Load | Total | Count

TOTALS = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf, "bitwise_or": 0, "bitwise_and": -1}


def neutral(total: Total) -> Any:
    """What changes nothing when it is joined."""
    start = TOTALS[total.op]
    if total.dtype.kind == "b":
        return total.op in ("minimum", "multiply", "bitwise_and")
    if total.dtype.kind in "iu" and total.op in ("maximum", "minimum"):
        limits = np.iinfo(total.dtype)
        start = limits.min if total.op == "maximum" else limits.max
    return start


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    operand: int
    at: Affine
    value: Value
    index: Value | None = None  # as in `Load`
    step: int = 0
    adds: bool = False  # to what is there


@dataclass(frozen=True, slots=True, eq=False)
class For:
    axes: tuple[Axis, ...]
    body: tuple[Statement, ...]
    totals: tuple[Total, ...] = ()
    vector: bool = False
    beside: Axis | None = None  # of the loops inside: a total is one for each of its rounds


Statement = For | Store


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A kernel: what is done, and the dtypes of its operands in memory."""

    operands: tuple[DType, ...]
    body: tuple[Statement, ...]
    chunks: int = 1

    @property
    def writes(self) -> frozenset[int]:
        return frozenset(_written(self.body))

    @property
    def over(self) -> tuple[tuple[int, int], ...]:
        """``(read, written)``: operands that may lie in the same memory, as an element of one is read only before that of the
        other is stored, in the same round of the loop over rows.
        """
        first = self.body[0]
        one = len(self.body) == 1 and isinstance(first, For) and any([isinstance(s, For) for s in first.body])
        steps = first.body if one and isinstance(first, For) else self.body
        loads: dict[int, set[tuple[Affine | None, int]]] = {}
        stores: list[tuple[Store, int]] = []
        for i, step in enumerate(steps):
            values = [step.value] if isinstance(step, Store) else list(values_of(step))
            inside = [step] if isinstance(step, Store) else [s for s in step.body if isinstance(s, Store)]
            stores += [(store, i) for store in inside if store.index is None]
            for load in {load for value in values for load in loads_of(value)}:
                loads.setdefault(load.operand, set()).add((load.at if load.index is None else None, i))
        return tuple(
            [
                (operand, store.operand)
                for store, i in stores
                for operand, reads in loads.items()
                if all([at == store.at and when <= i for at, when in reads])
                and self.operands[operand] == self.operands[store.operand]
                and operand != store.operand
            ]
        )


def _written(body: tuple[Statement, ...]) -> Iterator[int]:
    for each in body:
        if isinstance(each, Store):
            yield each.operand
        else:
            yield from _written(each.body)


# ---- asking


def arguments(value: Value) -> tuple[Value, ...]:
    """The values that a value is computed from."""
    if isinstance(value, Total):
        return (value.value,)
    if isinstance(value, Load | Count):
        return () if isinstance(value, Count) or value.index is None else (value.index,)
    return tuple([a for a in value.args if isinstance(a, Value)])


def values_of(loop: For) -> Iterator[Value]:
    """All values that a loop, and those in it, store or total."""
    for each in loop.body:
        if isinstance(each, Store):
            yield each.value
            if each.index is not None:
                yield each.index
        else:
            yield from values_of(each)
    yield from [total.value for total in loop.totals]


def loads_of(value: Value) -> Iterator[Load]:
    """All loads that a value is computed from; each once."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        each = stack.pop()
        if each not in seen:
            seen.add(each)
            stack += arguments(each)
            if isinstance(each, Load):
                yield each


def made_in(loop: For) -> Iterator[Axis | Total]:
    """What has a value only inside a loop, besides its own axes."""
    for each in loop.body:
        if isinstance(each, For):
            yield from each.axes
            yield from each.totals
            yield from made_in(each)


class Needs:
    """Which axes and totals a value depends on; kept for each value once it was asked for."""

    def __init__(self) -> None:
        self._known: dict[Value, frozenset[Axis | Total]] = {}

    def __call__(self, value: Value) -> frozenset[Axis | Total]:
        known = self._known.get(value)
        if known is None:
            known = frozenset().union(*[self(a) for a in arguments(value)])
            if isinstance(value, Load | Count):
                known |= {axis for axis, stride in value.at.steps if stride}
            if isinstance(value, Total):
                known = (known - set(value.axes)) | {value}
            self._known[value] = known
        return known
