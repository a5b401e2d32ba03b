"""From a group of parts to loops.

    for rows:                        in chunks
        for columns: totals          that need nothing but elements
        for columns: totals          that need the totals before; and elements that can be stored now
        ...
        store what a row gives

What a part reads of another part is that part's expression. The vectors are those of the axis along which most operands
lie beside each other: of columns, or, where sums go down the columns of a matrix, of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from genesis.core.call.scalars import Expression
from genesis.jit.arguments import Var
from genesis.jit.lowering.beside import programs_of
from genesis.jit.lowering.divided import Divided
from genesis.jit.lowering.groups import Group
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    ROW,
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
    arguments,
)
from genesis.jit.lowering.parts import COUNTED, Read
from genesis.jit.lowering.scalar_code import WIDE

WORK = 1 << 16  # operations of a chunk, where there are several
CHUNKS = 128  # at most
LANES = 16  # of a vector, about
VECTORS = 64  # chunks of vectors are multiples of so many elements
SERIAL = 1 << 15  # elements of one total from which chunks have totals of their own
COLUMNS = 128  # neighbouring rows that a program of a GPU sums down at once
PART = 1 << 14  # elements of a program that has totals of its own
WHOLE = 1 << 16  # elements that one program goes through sooner than another kernel begins; twice as many by columns
# programs of a processor: with few too little of memory is asked for at a time; those that need the totals of all others
# read as many numbers as there are programs, each
EACH, OF_TOTALS = 8, 2
BLOCK = 1 << 11  # elements that such a program reads at once


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A result: what it is, where it is stored, and whether a row has one number of it."""

    var: Var
    value: Value
    at: Affine
    of_row: bool
    stored: bool
    beside: bool


def assembled(group: Group, stored: set[Var], processors: int = 0) -> list[tuple[Nest, list[Var]]]:
    """The loops of a group, with their operands; ``stored`` are the values that somebody else reads. Where each row is a
    program of its own, and there are fewer than ``processors``, columns are divided among several.
    """
    return _Assembly(group, stored, processors=processors).nests()


def flat(group: Group, stored: set[Var]) -> tuple[Nest, list[Var], int] | None:
    """The loops of a group that goes through memory from one end to the other, as a loop that is told where to begin and to
    end, and how many elements there are; None for other groups.
    """
    if group.rows is not None or not all([g.whole for g in group.given.values()]):
        return None
    assembly = _Assembly(group, stored, told=True)
    if len(assembly.axes) != 1 or any([s not in (0, 1) for each in assembly.strides for s in each[-1:]]):
        return None
    return (*assembly.nests()[0], group.size)


class _Assembly:
    def __init__(self, group: Group, stored: set[Var], told: bool = False, processors: int = 0) -> None:
        self.group, self.stored, self.processors = group, stored, processors
        self.operands: list[Var] = []
        self.dtypes: list[DType] = []
        self.values: dict[object, Value] = {}  # by what they are: the same is computed once
        self.depths: dict[Value, int] = {}
        self.newer: dict[Value, Value] = {}  # totals that read what was stored before
        self._choose_axes(told)
        self.given = self._given()

    # ---- axes

    def _choose_axes(self, told: bool) -> None:
        group = self.group
        rows = group.rows if group.rows is not None else 0
        self.strides = strides = self._outside_strides()
        axes, members = _joined_axes(group.axes, rows, strides)
        self.members = members
        split = sum([m[-1] < rows for m in members])
        # operands that lie beside each other along an axis, times the lanes that can be filled
        counted = [s for s in strides if any(s[rows:])] if self.processors and rows else strides
        beside = [min(n, LANES) * sum([s[m[-1]] == 1 for s in counted]) for n, m in zip(axes, members, strict=True)]
        columns = list(range(split, len(axes)))
        best = max(range(len(axes)), key=lambda i: (beside[i], i >= split, i), default=0)
        self.down = group.rows is not None and best < split and axes[best] > 1  # vectors of rows
        order = list(range(len(axes)))
        if order:
            last = best if self.down else max(columns, key=lambda i: (beside[i], i), default=None)
            if last is not None:
                block = order[:split] if self.down else order[split:]
                block = [*[i for i in block if i != last], last]
                order = [*block, *order[split:]] if self.down else [*order[:split], *block]
        if self.down and self.processors:  # the longest first: it is divided
            order = [*order[:split], *sorted(order[split:], key=lambda i: -axes[i])]
        self.order, self.split = order, split
        extents = [axes[i] for i in order]
        self.chunks, size = self._chunks(extents)
        first = split if self.processors and not self.group.beside else 0
        self.axes = [Axis(n, size if i == first and self.chunks > 1 else None) for i, n in enumerate(extents)]
        if told:
            self.axes = [Axis(CALLED) for _ in extents]

    def _outside_strides(self) -> list[tuple[int, ...]]:
        strides: list[tuple[int, ...]] = []
        inside = self.group.given
        for part in self.group.parts:
            strides += [r.strides for r in part.reads if r.root not in inside]
            strides += [g.strides for g in part.gives if g.var in self.stored or not g.whole]
        return strides

    def _chunks(self, extents: Sequence[int]) -> tuple[int, int]:
        """How many chunks, and how many rounds of the first axis they have."""
        if not extents or math.prod(extents) == 0:
            return 1, 0
        if self.group.beside:
            return programs_of(extents[0], extents[1], self.processors)
        if self.processors:
            return self._parts_of_columns(extents[: self.split], extents[self.split :])
        n = extents[0]
        work = math.prod(extents) * self._cost()
        wanted = min(n, CHUNKS, work // WORK)
        of_vectors = len(extents) == 1 if not self.down else self.split == 1
        vectors = LANES if self.down else VECTORS  # columns that are summed are passed a vector at a time in any case
        if of_vectors:
            wanted = min(wanted, n // vectors)
        if self.group.rows is not None and self.split == 0:
            wanted = wanted if math.prod(extents) >= SERIAL and self._may_split() else 1
        if wanted <= 1:
            return 1, n
        size = -(-n // wanted)
        size = -(-size // vectors) * vectors if of_vectors else size
        return -(-n // size), size

    def _parts_of_columns(self, rows: Sequence[int], columns: Sequence[int]) -> tuple[int, int]:
        """How many programs divide the columns of a row, or of neighbouring rows, and how many rounds of the first axis of
        columns each has.
        """
        together = COLUMNS if self.down else 1
        programs = -(-math.prod(rows) // together)
        if self.group.rows is None or not columns or programs >= self.processors:
            return 1, 0
        each = math.prod(columns) * min(math.prod(rows), together)
        processors = self.processors * (OF_TOTALS if self._in_levels() else EACH)
        wanted = 1 if each < WHOLE << self.down else min(columns[0], -(-processors // programs), each // PART)
        size = -(-columns[0] // max(wanted, 1))
        # blocks begin at addresses from which many elements are read at once
        unit = 1 if self.down else BLOCK // math.gcd(BLOCK, math.prod(columns[1:]))
        size = min(-(-size // unit) * unit, columns[0]) if size >= unit else size
        return -(-columns[0] // size), size

    def _cost(self) -> int:
        names = [e.name for p in self.group.parts for g in p.gives for e in g.value.walk()]
        return 2 + sum([20 if name in WIDE or name == "uniform" else 1 for name in names])

    def _may_split(self) -> bool:
        """Whether totals need no others, and nothing but numbers are made of them."""
        totals: set[Var] = set()
        for part in self.group.parts:
            late = any([r.root in totals for r in part.reads])
            for give in part.gives:
                deep = [e for e in give.value.walk() if e.name.startswith("total ")]
                if deep and (late or any([x.name.startswith("total ") for e in deep for x in e.args[0].walk()])):
                    return False
                if late or deep:
                    totals.add(give.var)
                    if any(give.strides):
                        return False
        return True

    def _in_levels(self) -> bool:
        """Whether totals, or elements, need totals: then there are several loops over columns, one after the other."""
        rows, made_of_totals = self.group.rows or 0, set[Var]()
        for part in self.group.parts:
            late = any([r.root in made_of_totals for r in part.reads])
            for give in part.gives:
                own = [e for e in give.value.walk() if e.name.startswith("total ")]
                nested = any([x.name.startswith("total ") for e in own for x in e.args[0].walk()])
                if nested or (late and own) or ((late or own) and any(give.strides[rows:])):
                    return True
                if late or own:
                    made_of_totals.add(give.var)
        return False

    def affine(self, offset: int, strides: Sequence[int]) -> Affine:
        own = [strides[self.members[i][-1]] for i in self.order]
        return Affine(offset, tuple([(axis, s) for axis, s in zip(self.axes, own, strict=True) if s]))

    # ---- values

    def operand(self, var: Var, dtype: DType) -> int:
        if var not in self.operands:
            self.operands.append(var)
            self.dtypes.append(dtype)
        return self.operands.index(var)

    def once(self, key: object, value: Value) -> Value:
        return self.values.setdefault(key, value)

    def _given(self) -> list[_Given]:
        given: dict[Var, _Given] = {}
        results = []
        for part in self.group.parts:
            leaves = []
            for read in part.reads:
                if read.root in given:
                    leaves.append(given[read.root].value)
                else:
                    leaves.append(self._read(read, leaves))
            for give in part.gives:
                value = self._made(give.value, leaves, part.beside)
                rows = self.group.rows
                of_row = rows is not None and not any(give.strides[rows:]) and not self._of_column(value)
                stored = give.var in self.stored or not give.whole
                at = self.affine(give.offset, give.strides)
                if part.beside:
                    at = Affine(at.constant, ((CHUNK, self.axes[-1].extent), *at.steps))
                each = _Given(give.var, value, at, of_row, stored, part.beside)
                given[give.var] = each
                results.append(each)
        return results

    def _read(self, read: Read, leaves: list[Value]) -> Value:
        at = self.affine(read.offset, read.strides)
        if read.root is COUNTED:
            return self.once(at, Count(at))
        operand = self.operand(read.root, read.dtype)
        index = None if read.index is None else self._made(read.index, leaves)
        return self.once((operand, at, index, read.step), Load(operand, at, read.dtype, index, read.step))

    def _of_column(self, value: Value) -> bool:
        """Whether a value is another one for each column."""
        columns = self.axes[self.split :]
        if isinstance(value, Load | Count) and any([value.at.stride(axis) for axis in columns]):
            return True
        return not isinstance(value, Total) and any([self._of_column(a) for a in arguments(value)])

    def _made(self, expression: Expression, leaves: list[Value], beside: bool = False) -> Value:
        done: dict[int, Value] = {}
        columns = tuple(self.axes[: self.split] if beside else self.axes[self.split :]) or (_ONE,)
        for each in expression.walk():
            args = [done[id(a)] if isinstance(a, Expression) else a for a in each.args]
            key = (each.name, tuple([a if isinstance(a, Value) else repr(a) for a in args]), each.dtype)
            if each.name == "x":
                value = leaves[each.args[0]]
            elif each.name.startswith("total "):
                value = self.once((*key, columns), Total(each.name.removeprefix("total "), args[0], columns))
            else:
                value = self.once(key, Expression(each.name, tuple(args), each.dtype))
            done[id(each)] = value
        return done[id(expression)]

    def depth(self, value: Value) -> int:
        """How many loops over columns have to be behind before a value can be computed."""
        if value not in self.depths:
            below = max([self.depth(a) for a in arguments(value)], default=0)
            self.depths[value] = below + isinstance(value, Total)
        return self.depths[value]

    # ---- loops

    def nests(self) -> list[tuple[Nest, list[Var]]]:
        if self.group.rows is None:
            stores = tuple([self._store(g, g.value) for g in self.given if g.stored])
            return [
                (Nest(tuple(self.dtypes), (self._loop(self.axes, stores, vector=True),), self.chunks), self.operands)
            ]
        if self.group.beside:
            return [self._with_sums_beside()]
        if self.chunks > 1 and (self.split == 0 or self.processors):
            return self._in_parts()
        rows, body = self.axes[: self.split], self._of_rows()
        if rows:
            body = (self._loop(rows, body, vector=self.down),)
        return [(Nest(tuple(self.dtypes), body, self.chunks), self.operands)]

    def _loop(
        self, axes: Sequence[Axis], body: Sequence[Statement], totals: Sequence[Total] = (), vector: bool = False
    ) -> For:
        return For(tuple(axes) or (_ONE,), tuple(body), tuple(totals), vector)

    def _with_sums_beside(self) -> tuple[Nest, list[Var]]:
        """The rows of a program one after the other, and behind them its sums of columns."""
        (rows, columns), sums = self.axes, [g for g in self.given if g.beside and g.stored]
        totals = [t for t in self._all_totals(beside=True) if t.axes == (rows,)]
        loop = For((rows,), self._of_rows(), tuple(totals), beside=columns)
        behind = self._loop((columns,), [self._store(g, g.value) for g in sums], vector=True)
        return Nest(tuple(self.dtypes), (loop, behind), self.chunks), self.operands

    def _store(self, given: _Given, value: Value) -> Store:
        return Store(self.operand(given.var, given.var.spec.dtype), given.at, value)

    def _all_totals(self, beside: bool = False) -> list[Total]:
        totals: dict[Total, None] = {}
        seen: set[Value] = set()

        def visit(value: Value) -> None:
            if value not in seen:
                seen.add(value)
                for a in arguments(value):
                    visit(a)
                if isinstance(value, Total):
                    totals[value] = None

        for each in self.given:
            if each.stored:
                visit(each.value)
        return [t for t in totals if (t.axes == tuple(self.axes[: self.split])) == beside]

    def _of_rows(self) -> tuple[Statement, ...]:
        """The loops over columns, and behind them what a row gives."""
        totals, columns = self._all_totals(), self.axes[self.split :]
        elements = [g for g in self.given if g.stored and not g.of_row and not g.beside]
        last = max([self.depth(t) - 1 for t in totals] + [self.depth(g.value) for g in elements], default=-1)
        held = self.processors and not self.down and math.prod([a.extent for a in columns]) <= ROW
        body: list[Statement] = []
        earlier: list[_Given] = []  # stored in loops before, and read again where they are not held
        for level in range(last + 1):
            now = [g for g in elements if self.depth(g.value) == level]
            known: dict[Value, Value] = {g.value: self._again(g) for g in earlier if not isinstance(g.value, Load)}
            stores = [self._store(g, self._with(g.value, known)) for g in now]
            new = []
            for old in [t for t in totals if self.depth(t) == level + 1]:
                new.append(self._replaced(old, known))
            if stores or new:
                body.append(self._loop(columns, stores, new, vector=not self.down))
            earlier += () if held else now
        rows = [self._store(g, self._with(g.value, {})) for g in self.given if g.stored and g.of_row]
        return (*body, *rows)

    def _again(self, given: _Given) -> Load:
        return Load(self.operand(given.var, given.var.spec.dtype), given.at, given.var.spec.dtype)

    def _replaced(self, total: Total, known: dict[Value, Value]) -> Total:
        """A total of what was stored already; from now on it stands for the other."""
        value = self._with(total.value, known)
        new = total if value is total.value else Total(total.op, value, total.axes)
        self.newer[total] = new
        return new

    def _with(self, value: Value, known: dict[Value, Value]) -> Value:
        """A value that reads what was stored in loops before."""
        done: dict[Value, Value] = {}

        def changed(v: Value) -> Value:
            if v not in done:
                if v in known:
                    done[v] = known[v]
                elif isinstance(v, Total):
                    done[v] = self.newer.get(v, v)
                elif isinstance(v, Load) and v.index is not None:
                    index = changed(v.index)
                    done[v] = v if index is v.index else Load(v.operand, v.at, v.dtype, index, v.step)
                elif not isinstance(v, Expression) or not arguments(v):
                    done[v] = v
                else:
                    args = tuple([changed(a) if isinstance(a, Value) else a for a in v.args])
                    done[v] = (
                        v
                        if all([a is b for a, b in zip(args, v.args, strict=True)])
                        else Expression(v.name, args, v.dtype)
                    )
            return done[v]

        return changed(value)

    # ---- few numbers of many elements

    def _in_parts(self) -> list[tuple[Nest, list[Var]]]:
        """Chunks of columns have totals of their own. As chunks wait for each other only between kernels, each loop over
        columns is a kernel; what the chunks of those before it have totalled is joined first, in their order.
        """
        totals, elements = self._all_totals(), [g for g in self.given if g.stored and not g.of_row]
        last = max([self.depth(t) - 1 for t in totals] + [self.depth(g.value) for g in elements], default=-1)
        operands = list(zip(self.operands, self.dtypes, strict=True))
        divided = Divided(self.axes, self.split, self.chunks, self.down, operands, bool(self.processors))
        nests = []
        for level in range(last + 1):
            now = [(g.var, g.at, g.value) for g in elements if self.depth(g.value) == level]
            nests.append(divided.chunks(now, [t for t in totals if self.depth(t) == level + 1]))
        rows = [(g.var, g.at, g.value) for g in self.given if g.stored and g.of_row]
        return [*nests, divided.rows(rows)] if rows else nests


_ONE = Axis(1)


def _joined_axes(
    axes: Sequence[int], rows: int, strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Neighbours are one axis where all operands go through them as through one; which axes each one is made of."""
    out: list[int] = []
    members: list[list[int]] = []
    for i, n in enumerate(axes):
        if out and i != rows and all([s[i - 1] == s[i] * n for s in strides]):
            out[-1] *= n
            members[-1].append(i)
        else:
            out.append(n)
            members.append([i])
    return out, members
