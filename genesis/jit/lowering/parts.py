"""What a call is, one element at a time: a `Part` says over which axes it goes, what it reads and gives at each of their
places, and with which expressions.

Axes that are summed over are columns, behind the others, the rows. A ``total`` in an expression goes over all columns:
what a row gives is one number, or one for each column.

    softmax(x, 1)   rows (4,)  columns (5,)   exp(x0 - total maximum(x0)) / total add(exp(x0 - total maximum(x0)))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.core.call.scalar_lowering import lowered
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering import scalar_code
from genesis.jit.lowering.loops import DType
from genesis.jit.lowering.phases import Stage
from genesis.jit.program import Call
from genesis.jit.storage import Region

F64, I64, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """Elements of a value: of the memory of its root, from an offset on, with a stride for each axis."""

    root: Var
    dtype: DType
    offset: int
    strides: tuple[int, ...]
    index: Expression | None = None  # of the reads before: a number that, times `step`, is added to where it is
    step: int = 0


class Position(Var):
    """Says where something is: parts that read nothing else in common share nothing."""

    __slots__ = ()


class StreamState(Position):
    """Where a stream of random numbers is at the beginning of a call, in three words: its key, and its position, the
    lower word first.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        super().__init__(Spec((3,), I64))
        self.index = index


COUNTED = Position(Spec((), np.dtype(np.int64)))  # as the root of a read: its value is the number where it would be


@dataclass(frozen=True, slots=True, eq=False)
class Give:
    """Elements of a result, of which operand ``x{i}`` of the expression is the part's read number i."""

    var: Var
    offset: int
    strides: tuple[int, ...]
    value: Expression
    whole: bool = True  # all of the result, not some of it


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    call: Call
    axes: tuple[int, ...]
    rows: int | None  # how many of the axes are rows; None where nothing is totalled
    reads: tuple[Read, ...]
    gives: tuple[Give, ...]
    beside: bool = False  # totals go over the rows that a program has, see `genesis.jit.lowering.beside`


# whether there is code for a function of numbers of a dtype: that of the CPU, unless a call is lowered for something else
supports: ContextVar[Callable[[str, DType], bool]] = ContextVar("supports", default=scalar_code.supports)


class Unknown(Exception):
    """There is no such form of a call."""


class Check(NamedTuple):
    """Each of these numbers, but those that are ``ignored``, is to be one of low, ..., size - 1."""

    index: Var
    size: int
    low: int = 0
    ignored: int | None = None


class Memory:
    """Where values lie."""

    def __init__(
        self, regions: dict[Var, Region], numbers: set[Var], constants: dict[Var, np.ndarray[Any, Any]] | None = None
    ) -> None:
        self.regions, self.numbers, self.constants = regions, numbers, constants or {}
        self.moments: dict[Var, Any] = {}  # mean and variance of the channels of values, where they are computed
        self.recurrent: dict[Var, tuple[int, int, bool]] = {}  # layers by what they keep: steps, batch, and backwards
        self.checked: set[Check] = set()  # what was looked at before everything else
        self.states: dict[int, StreamState] = {}  # of streams of random numbers
        self.limits: dict[Var, int] = {}  # values whose elements are checked to be below these, and not below 0

    def is_checked(self, index: Var, size: int) -> bool:
        """Whether numbers are known to be indices."""
        root = self.regions[index].root if index in self.regions else index
        return Check(index, size) in self.checked or self.limits.get(root, size + 1) <= size

    def check(self, index: Var, size: int) -> None:
        """Refuse an index that may be another number than 0, ..., size - 1."""
        root = index if index not in self.regions else self.regions[index].root
        array = self.constants.get(root)
        if array is not None and (not array.size or (array.min() >= 0 and array.max() < size)):
            return
        if index.spec.dtype.kind not in "iu" or self.limits.get(root, size + 1) > size:
            raise Unknown("an index that is not checked")

    def wraps(self, index: Var, size: int) -> bool:
        """Whether a number may be below 0, and counts from the end then; refuses one that is not checked."""
        if Check(index, size, -size) in self.checked:
            return True
        self.check(index, size)
        return False

    def read(self, var: Var, strides: Sequence[int]) -> Read:
        """A read with other strides over other axes than the value has dimensions."""
        region, dtype = self.regions.get(var), var.spec.dtype
        if region is None:
            return Read(var, dtype, 0, tuple(strides))
        if region.offset % dtype.itemsize or region.root.spec.dtype != dtype:
            raise Unknown("a view of another dtype")
        return Read(region.root, dtype, region.offset // dtype.itemsize, tuple(strides))

    def strides(self, var: Var) -> tuple[int, ...]:
        region = self.regions.get(var)
        return strides_of(var.spec) if region is None else region.strides

    def broadcast(self, var: Var, shape: Sequence[int]) -> Read:
        """A read over the dimensions of a shape that the value broadcasts to."""
        if var in self.numbers:
            return Read(var, F64, 0, (0,) * len(shape))
        own = var.spec.shape
        strides = [0 if n == 1 else s for n, s in zip(own, self.strides(var), strict=True)]
        return self.read(var, (*[0] * (len(shape) - len(own)), *strides))

    def state(self, stream: int) -> StreamState:
        """Where a stream is."""
        return self.states.setdefault(stream, StreamState(stream))

    def is_root(self, var: Var) -> bool:
        return var not in self.regions


def total(op: str, value: Any) -> Any:
    """Over all columns; of elements, which `Symbol`s stand for, and another one."""
    return Symbol(Expression(f"total {op}", (value.expression,), value.dtype))


def wide(dtype: DType) -> DType:
    """What numbers of a dtype are added in."""
    return F64 if dtype.kind == "f" or dtype.kind == "V" else I64 if dtype.kind in "bi" else dtype


class Builder:
    """Makes a part: reads are asked for one after the other, then values are given."""

    def __init__(self, memory: Memory, call: Call, shape: Sequence[int], dims: Sequence[int] | None = None) -> None:
        """The axes are the dimensions of ``shape`` with ``dims`` behind the others."""
        self.memory, self.call, self.shape = memory, call, tuple(shape)
        kept = [d for d in range(len(shape)) if d not in (dims or ())]
        self.order, self.rows = [*kept, *(dims or ())], None if dims is None else len(kept)
        self.reads: list[Read] = []
        self.gives: list[Give] = []

    def along(self, dims: Sequence[int]) -> None:
        """Take the axes in another order."""
        self.order = list(dims)

    def read(self, var: Var, strides: Sequence[int] | None = None, offset: int = 0) -> Any:
        """A value that broadcasts to the shape, or one with these strides over its dimensions, from one of its elements on."""
        read = self.memory.broadcast(var, self.shape) if strides is None else self.memory.read(var, strides)
        self.reads.append(replace(read, offset=read.offset + offset) if offset else read)
        return Symbol(Expression("x", (len(self.reads) - 1,), read.dtype))

    def taken(self, var: Var, strides: Sequence[int], index: Any, step: int) -> Any:
        """A value, of which an index says in which row."""
        read = self.memory.read(var, strides)
        own = _checked(lowered(index.astype(I64).expression))
        self.reads.append(replace(read, index=own, step=step))
        return Symbol(Expression("x", (len(self.reads) - 1,), read.dtype))

    def count(self, dim: int) -> Any:
        """The number of the round of a dimension."""
        return self.count_along(0, tuple([int(d == dim) for d in range(len(self.shape))]))

    def count_along(self, offset: int, strides: Sequence[int]) -> Any:
        """The number of an element, if they were in memory with these strides."""
        self.reads.append(Read(COUNTED, I64, offset, tuple(strides)))
        return Symbol(Expression("x", (len(self.reads) - 1,), I64))

    def give(
        self, var: Var, value: Any, strides: Sequence[int] | None = None, offset: int = 0, whole: bool = True
    ) -> None:
        """A result, with these strides over the dimensions of the shape."""
        own = tuple(strides_of(var.spec) if strides is None else strides)
        self.give_formula(var, formula(value, var.spec.dtype), own, offset, whole)

    def give_formula(
        self, var: Var, value: Expression, strides: Sequence[int] | None = None, offset: int = 0, whole: bool = True
    ) -> None:
        """A result that is said by `formula`."""
        if not self.memory.is_root(var):
            raise Unknown("a result that is a view")
        own = tuple(strides_of(var.spec) if strides is None else strides)
        self.gives.append(Give(var, offset, own, value, whole))

    def made(self) -> Part:
        def ordered(strides: tuple[int, ...]) -> tuple[int, ...]:
            return tuple([strides[d] for d in self.order])

        reads = [replace(r, strides=ordered(r.strides)) for r in self.reads]
        gives = [replace(g, strides=ordered(g.strides)) for g in self.gives]
        return Part(self.call, tuple([self.shape[d] for d in self.order]), self.rows, tuple(reads), tuple(gives))


def formula(value: Any, dtype: DType) -> Expression:
    """What a symbol stands for, of a dtype, in functions that there is code for."""
    return _checked(lowered(value.astype(dtype).expression))


def _checked(expression: Expression) -> Expression:
    known = supports.get()
    for each in expression.walk():
        if each.name != "x":
            name = each.name.removeprefix("total ")
            kinds = [a.dtype for a in each.args if isinstance(a, Expression)] or [each.dtype]
            if not all(
                [known(name, kind) for kind in (kinds[-1], each.dtype if name in ("cast", "where") else kinds[0])]
            ):
                raise Unknown(f"{name} of {kinds[-1].name}")
    return expression


def row_strides(var: Var, shape: Sequence[int], dims: Sequence[int]) -> list[int]:
    """The strides of a reduced result over the dimensions of what was reduced: 0 for those that are gone, or are 1."""
    own, kept = strides_of(var.spec), len(var.spec.shape) == len(shape)
    left = iter(own)
    return [(next(left), 0)[1] if kept and d in dims else 0 if d in dims else next(left) for d in range(len(shape))]


def normal_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    if dims is None or (isinstance(dims, tuple | list) and not dims):
        return tuple(range(ndim))
    return tuple(sorted({d % ndim for d in ((dims,) if isinstance(dims, int) else dims)})) if ndim else ()


def in_order_of_memory(var: Var) -> list[int]:
    return memory_order(strides_of(var.spec))


# parts in their order, and kernels of their own and calls that the host makes between
Rule = Callable[[Memory, Call], Sequence[Part | Call | Stage]]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Declare the parts of the calls of these ops."""

    def declare(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return declare


def size_of(shape: Sequence[int]) -> int:
    return math.prod(shape)
