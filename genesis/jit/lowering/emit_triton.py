"""Loops printed as a kernel of Triton.

What one program of the grid does follows from the outermost loop:

    For(axes, vector=True)   a block of its rounds, a lane each; loops in it are loops of every lane
    For(rows)                one row; a loop of vectors in it is a block, or a loop over blocks where it is long
    no loop over rows        all of it, or a chunk

Where columns are divided among chunks, that is so of each chunk. Few rows of which each lane goes down many columns have
several lanes each, which go down columns of their own.

Blocks have as many lanes as a power of two; lanes beyond the end are masked. A total is joined lane by lane, then over the
lanes. Sums of float32 numbers are in float32, unless an operand has 64 bits: there they are in float64, as on the CPU.

    @triton.jit
    def kernel(p0, p1, n, BLOCK: tl.constexpr):
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genesis.core.call.scalars import Expression
from genesis.jit.lowering import triton_code
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    ROW,
    Axis,
    For,
    Nest,
    Statement,
    Store,
    Total,
    Value,
    arguments,
    loads_of,
    made_in,
    neutral,
    values_of,
)
from genesis.jit.lowering.triton_code import applied, cast, pointer_to, type_of
from genesis.jit.lowering.triton_functions import needed
from genesis.jit.lowering.triton_values import Values

NAME = "kernel"
LANES = 1024  # of a block of rounds
WIDTH, NARROW = 128, (8, 32)  # rows of a block, where rows are few and columns many; where columns are not divided
FEW, MANY = 132, 32  # blocks of all lanes, and columns, that are few and many: one for each processor of an H100
BLOCK = 1 << 11  # lanes that go down columns together, and those of a block of a chunk
WIDE = 1 << 12  # lanes of a row that are many for the registers of a program: 32 or more of each thread
EACH = 1 << 8  # lanes of a warp, where totals of columns take registers as well
FEWER = 3 * FEW  # programs that go through many rounds, if there are fewer: each has twice as many lanes and warps
STAGES, DEEPEST = 3, 8  # rounds that are under way at once, if what they read fits into
SHARED, HALF = 160 << 10, 96 << 10  # bytes of shared memory: of a processor, of each of two programs
AHEAD = 32 << 10  # bytes that a program of few has asked for before it needs them
_EXTREMES = {"maximum": "largest", "minimum": "smallest"}  # of floats: what is missing stays missing
_JOINS = {"add": "tl.sum", "maximum": "tl.max", "minimum": "tl.min", "bitwise_or": "tl.max", "bitwise_and": "tl.min"}


@dataclass(frozen=True, slots=True)
class Emitted:
    """A kernel of Triton.

    Attributes:
        source: the function `kernel`, and what it needs
        signature: Triton's type of each parameter: the operands, and ``n`` where the loop is told how long it is
        letters: the same for `genesis.cuda.runtime.parameters`
        programs: how many there are; of a loop that is told how long it is, `lanes` for each
        lanes: of a block
        warps: of 32 threads
    """

    source: str
    signature: tuple[str, ...]
    letters: str
    programs: int
    lanes: int
    warps: int

    def grid(self, count: int) -> int:
        return self.programs or -(-count // self.lanes)


NONE: frozenset[int] = frozenset()


def emitted(nest: Nest, numbers: frozenset[int] = NONE, held: frozenset[int] = NONE) -> Emitted:
    """The kernel; ``numbers`` are operands that are values, not addresses, and ``held`` those that are numbers of the
    program in memory.

    Raises:
        UnsupportedError: there is no code for something in it
    """
    return _Writer(nest, numbers, held).kernel()


def tail_of(
    nest: Nest, held: frozenset[int], operand: int, value: str, at: str, mask: str
) -> tuple[list[str], list[str], list[str]]:
    """The functions of a loop that is told how long it is, what it reads, and what it does, at the end of a kernel that has the
    elements of an operand in registers then.

    Args:
        value, at, mask: the names of these elements, of where each is, and of which are there

    Raises:
        UnsupportedError: there is no code for something in it
    """
    return _Writer(nest, NONE, held).tail(operand, value, at, mask)


class _Writer(Values):
    # ---- the whole

    def kernel(self) -> Emitted:
        first = self.nest.body[0]
        told = isinstance(first, For) and first.axes[0].extent == CALLED
        self.write("pid = tl.program_id(0)")
        programs = self._programs()
        parameters = [f"p{i}" for i in range(len(self.nest.operands))] + ["n"] * told
        head = [*self._functions(), "@triton.jit", f"def {NAME}({', '.join(parameters)}):"]
        kinds = [pointer_to(d) if i not in self.numbers else "fp64" for i, d in enumerate(self.nest.operands)]
        letters = "".join(["d" if i in self.numbers else "Q" for i in range(len(kinds))])
        lanes = self.most
        return Emitted(
            "\n".join([*head, *self.lines, ""]),
            (*kinds, *["i32"] * told),
            letters + "i" * told,
            0 if told else programs,
            lanes,
            self.warps or (8 if lanes > 4096 else 4),
        )

    def _functions(self) -> list[str]:
        """What the lines call, with what Triton is imported by."""
        exact = [f"EXACT = tl.constexpr({self._exact()})", "", ""] if any(["EXACT" in x for x in self.lines]) else []
        return [*_HEAD, *exact, *needed(self.lines)]

    def tail(self, operand: int, value: str, at: str, mask: str) -> tuple[list[str], list[str], list[str]]:
        (loop,) = self.nest.body
        assert isinstance(loop, For) and not loop.totals
        loads = dict.fromkeys([load for each in values_of(loop) for load in loads_of(each)])
        self.scopes[-1].update({load: value for load in loads if load.operand == operand})
        self.mask, self.axes = mask, list(loop.axes)
        self._count(loop.axes, at)
        if any([isinstance(each, For) or not self._has_lanes(each.value) for each in loop.body]):
            raise triton_code.unsupported("elements that are not those of one loop")
        for load in loads:
            if load.index is None:
                self.value(load)
        reads = len(self.lines)
        self.block(loop.body)
        return self._functions(), self.lines[:reads], self.lines[reads:]

    def _exact(self) -> bool:
        """Whether something is stored with more bits than 16; sums of what is stored with 16 need no more either."""
        stores = list(_stores(self.nest.body))
        elements = [s for s in stores if not isinstance(s.value.args[0] if _is_cast(s.value) else s.value, Total)]
        dtypes = [self.nest.operands[s.operand] for s in elements or stores]
        return any([dtype.itemsize > 2 for dtype in dtypes if dtype.kind == "f"])

    most = LANES
    together = False  # whether lanes share a row
    warps = 0  # if it matters
    rows: tuple[Axis, ...] = ()
    program = "pid"

    def _programs(self) -> int:
        body = self.nest.body
        first = body[0]
        if len(body) == 1 and isinstance(first, For) and not first.totals:
            program, chunks = "pid", 1
            if any([isinstance(each, For) and each.axes[0].chunk is not None for each in first.body]):
                chunks = self.nest.chunks
                self.counts[CHUNK], program = self.name(f"pid % {chunks}"), self.name(f"pid // {chunks}")
            if first.vector:
                return chunks * self._in_lanes(first, program)
            self._count(first.axes, program)
            self.block(first.body)
            return chunks * max(math.prod([a.extent for a in first.axes]), 1)
        self.counts[CHUNK] = "pid"
        self.block(body)
        return self.nest.chunks

    def _in_lanes(self, loop: For, program: str) -> int:
        """A block of the rounds of a loop."""
        count = math.prod([a.extent for a in loop.axes])
        told = loop.axes[0].extent == CALLED
        most = 2 * LANES if self._is_narrow(loop) and (told or count >= 2 * LANES * FEW) else LANES
        self.most = most if told else min(most, max(_power(count), 32))
        columns = max([_rounds(each) for each in loop.body if isinstance(each, For)], default=0)
        if columns >= MANY and count < FEW * LANES:
            undivided = NARROW[count >= FEW * NARROW[1]]
            self.most = min(WIDTH if CHUNK in self.counts else undivided, self.most)
            self.together = True
        self.rows, self.program = loop.axes, program
        few = CHUNK in self.counts and self.nest.chunks * -(-count // self.most) < FEWER
        if few and self.together and columns >= 16 * BLOCK // self.most:
            self.warps = 8
        with self._block(list(loop.axes), program, "n" if told else str(count), self.most):
            self.block(loop.body)
        return max(-(-count // self.most), 1)

    def _is_narrow(self, loop: For) -> bool:
        """Whether it is of elements of 16 bits alone: with as many lanes as others it has half of their bytes under way, too
        few for a function of many instructions.
        """
        elements = [d for i, d in enumerate(self.nest.operands) if i not in self.numbers | self.held]
        return not any([isinstance(each, For) for each in loop.body]) and all([d.itemsize <= 2 for d in elements])

    def _lanes_of(self, loop: For) -> int:
        """How many go down columns together: as many as memory can be asked for, of what has few values for each of them."""
        loads = {load for value in values_of(loop) for load in loads_of(value)}
        values = len([load for load in loads if self.needs(load) & {*loop.axes}]) + len(loop.totals)
        return (BLOCK if values <= 3 else LANES) * (2 if self.warps else 1)

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> None:
        """Values first, then what is stored: what a round reads are the values before it."""
        stores = []
        for each in body:
            if isinstance(each, For):
                self.loop(each)
            else:
                stores.append(each)
        for store in stores:
            self.value(store.value)
        for store in stores:
            self._store(store)

    def loop(self, loop: For) -> None:
        if loop.beside is not None:
            self._with_sums_beside(loop, loop.beside)
            return
        if any([axis.extent == CALLED for axis in loop.axes]) or any([isinstance(s, For) for s in loop.body]):
            raise triton_code.unsupported("loops in loops of this form")
        if self.stored & {load for load in self._reads(loop)}:
            self.write("tl.debug_barrier()")  # what other lanes have stored is read
        if self.lanes:
            self._of_each_lane(loop)
        else:
            self._of_vectors(loop)

    def _reads(self, loop: For) -> set[int]:
        return {load.operand for value in values_of(loop) for load in loads_of(value)}

    def _of_each_lane(self, loop: For) -> None:
        """Every lane goes through the rounds, one after the other."""
        if self.together and _rounds(loop) >= MANY:
            self._of_lanes_together(loop)
            return
        totals = {total: self.name(self._start(total)) for total in loop.totals}
        start, stop = self._range(loop)
        self._before(loop)
        self.write(f"for r in range({stop}):" if start == "0" else f"for r in range({start}, {stop}):")
        with self._inside():
            self._count(loop.axes, "r")
            self.block(loop.body)
            for total, so_far in totals.items():
                value = self._term(total)
                self.write(f"{so_far} = {applied(total.op, self.dtype(total.dtype), [so_far, value])}")
        for total, so_far in totals.items():
            self.scopes[-1][total] = so_far

    def _with_sums_beside(self, loop: For, columns: Axis) -> None:
        """One round after the other, each with the same lanes, of which each has totals of its own; what is the same in all
        rounds is read before, and what the next ones read while the one before is computed.
        """
        lanes, key = max(_power(columns.extent), 32), ("lanes", (columns,))
        self.most, self.warps = max(lanes, 256), min(max(lanes // EACH, 4), 16)
        at = self.once(key, f"tl.arange(0, {lanes})")
        mask = self.once(("mask", *key), f"{at} < {columns.extent}") if columns.extent % lanes else ""
        self._count([columns], at)
        start, stop = self._range(loop)
        before, (self.mask, self.axes, self.lanes) = (self.mask, self.axes, self.lanes), (mask, [columns], lanes)
        self._before(loop)
        totals = {total: self.name(self._start(total)) for total in loop.totals}
        self._in_turn(loop, start, stop)
        with self._inside():
            self._count(loop.axes, "r")
            self.mask, self.axes, self.lanes = before
            self.block(loop.body)
            self.mask, self.axes, self.lanes = mask, [columns], lanes
            for total, so_far in totals.items():
                self.write(f"{so_far} = {applied(total.op, self.dtype(total.dtype), [so_far, self._term(total)])}")
        self.mask, self.axes, self.lanes = before
        self.scopes[-1].update(totals)

    def _before(self, loop: For) -> None:
        """Read and compute what is the same in all rounds of a loop."""
        inside = {*loop.axes, *[each for each in made_in(loop) if each not in self.axes]}
        seen: set[Value] = set()
        stack = list(values_of(loop))[::-1]
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            written = any([load.operand in self.nest.writes for load in loads_of(value)])
            if written or self.needs(value) & inside:
                stack += arguments(value)[::-1]
            elif not (isinstance(value, Expression) and value.name == "number"):
                self.value(value)

    def _in_turn(self, loop: For, start: str, stop: str, step: int = 1, shared: int = SHARED, ahead: int = 0) -> None:
        """The head of a loop whose next rounds are read while one is computed, ``ahead`` bytes at least."""
        loads = dict.fromkeys([load for value in values_of(loop) for load in loads_of(value)])
        own = [x for x in loads if self._varies(x) and any([x.at.stride(axis) for axis in loop.axes])]
        size = self.lanes * sum([self.nest.operands[load.operand].itemsize for load in own])
        stages = min(max(-(-ahead // max(size, 1)) + 1, STAGES), DEEPEST)
        if any([load.index is not None for load in loads]) or (stages - 1) * size > shared:
            stages = 1
        self.write(f"for r in tl.range({start}, {stop}, {step}, num_stages={stages}):")

    def _range(self, loop: For) -> tuple[str, str]:
        """The first round of a loop, or of this chunk of it, and the one behind the last."""
        extent, first = math.prod([a.extent for a in loop.axes]), loop.axes[0]
        if first.chunk is None:
            return "0", str(extent)
        size = extent // first.extent * first.chunk
        start = self.name(f"{self.counts[CHUNK]} * {size}")
        return start, self.name(f"tl.minimum({start} + {size}, {extent})")

    def _of_lanes_together(self, loop: For) -> None:
        """Lanes that share a row take turns: they are a matrix, of which a row has what each of its columns has. Their totals
        are joined behind the loop.
        """
        wide, before = self.lanes, (self.mask, self.axes, self.lanes, self.counts)
        together = max(self._lanes_of(loop) // wide, 1)
        joined = {k: v for scope in self.scopes for k, v in scope.items() if isinstance(k, Total)}
        start, stop = self._range(loop)
        scopes, self.counts = self.scopes, dict(self.counts)
        self.scopes = [{k: self.name(f"{v}[None, :]") for k, v in joined.items()}]
        count = math.prod([a.extent for a in self.rows])
        row = self.name(f"{self.program} * {wide} + tl.arange(0, {wide})[None, :]")
        turn = self.name(f"tl.arange(0, {together})[:, None]")
        self.mask = mask = self.name(f"{row} < {count}") if count % wide else ""
        self._count(self.rows, row)
        self.axes = list(self.rows)
        self._before(loop)
        self.lanes, self.tile, self.axes = wide * together, (together, wide), [*self.rows, *loop.axes]
        totals = {total: self.name(self._start(total)) for total in loop.totals}
        few = {"shared": HALF, "ahead": AHEAD} if self.warps else {}
        self._in_turn(loop, start, stop, together, **few)
        with self._inside():
            now = self.name(f"r + {turn}")
            rounds = self.name(f"{now} < {stop}")
            self.mask = self.name(f"{rounds} & {mask}") if mask else rounds
            self.masks = [(rounds, list(loop.axes)), (mask, list(self.rows))]
            self._count(loop.axes, now)
            self.block(loop.body)
            for total, so_far in totals.items():
                value = self._masked(total, self._term(total))
                self.write(f"{so_far} = {applied(total.op, self.dtype(total.dtype), [so_far, value])}")
        self.scopes, (self.mask, self.axes, self.lanes, self.counts) = scopes, before
        self.tile, self.masks = (), []
        for total, so_far in totals.items():
            self.scopes[-1][total] = self._joined(total, so_far)

    def _start(self, total: Total) -> str:
        return f"tl.zeros({self.shape}, tl.{type_of(self.dtype(total.dtype))}) + {self._neutral(total)}"

    def _term(self, total: Total) -> str:
        return cast(self.value(total.value), self.kind(total.value), self.dtype(total.dtype))

    def _neutral(self, total: Total) -> str:
        return triton_code.constant(neutral(total), self.dtype(total.dtype))

    def _of_vectors(self, loop: For) -> None:
        """The rounds as lanes: at once, or in blocks."""
        axes, first = list(loop.axes), loop.axes[0]
        inner = math.prod([a.extent for a in axes[1:]])
        start = count = None
        extent = math.prod([a.extent for a in axes])
        if first.chunk is not None:
            start, count = self._range(loop)
            extent = first.chunk * inner
        lanes = min(max(_power(extent), 32), ROW if start is None else BLOCK)
        self.most = max(lanes, 256) if self.most == LANES else max(self.most, lanes)
        if start is None and extent <= lanes:
            self._at_once(loop, axes, extent, lanes)
        else:
            self._in_blocks(loop, axes, extent, lanes, start, count)

    def _at_once(self, loop: For, axes: list[Axis], extent: int, lanes: int) -> None:
        key = ("lanes", tuple(axes))
        if lanes >= WIDE and not loop.totals and self._known(key) is not None:
            self._stay_narrow(axes)
        at = self.once(key, f"tl.arange(0, {lanes})")
        before = self.mask, self.axes, self.lanes
        self.mask = self.once(("mask", *key), f"{at} < {extent}") if extent % lanes else ""
        self.axes, self.lanes = axes, lanes
        if axes[0] not in self.counts:
            self._count(axes, at)
        self.block(loop.body)
        values = [self._term(total) for total in loop.totals]
        joined = [self._joined(t, self._masked(t, v)) for t, v in zip(loop.totals, values, strict=True)]
        self.mask, self.axes, self.lanes = before
        self.scopes[-1].update(zip(loop.totals, joined, strict=True))

    def _in_blocks(
        self, loop: For, axes: list[Axis], extent: int, lanes: int, start: str | None, count: str | None
    ) -> None:
        self._before(loop)
        before, self.lanes = (self.mask, self.axes, self.lanes), lanes
        totals = {total: self.name(self._start(total)) for total in loop.totals}
        self.write(f"for b in range({-(-extent // lanes)}):")
        with self._inside():
            first = f"b * {lanes}" if start is None else f"{start} + b * {lanes}"
            at = self.name(f"{first} + tl.arange(0, {lanes})")
            whole = extent % lanes == 0  # then no block goes beyond its chunk, but the last ones beyond the end
            end = extent if count is None else math.prod([a.extent for a in axes]) if whole else count
            self.mask, self.axes = self.name(f"{at} < {end}"), axes
            self._count(axes, at)
            self.block(loop.body)
            for total, so_far in totals.items():
                value = self._masked(total, self._term(total))
                self.write(f"{so_far} = {applied(total.op, self.dtype(total.dtype), [so_far, value])}")
            for axis in axes:
                del self.counts[axis]
        self.mask, self.axes, self.lanes = before
        for total, so_far in totals.items():
            self.scopes[-1][total] = self._joined(total, so_far)

    def _masked(self, total: Total, value: str) -> str:
        """What changes nothing, in the lanes beyond the end."""
        lanes = f"tl.zeros({self.shape}, tl.{type_of(self.dtype(total.dtype))})"
        kept = self.mask or f"tl.full({self.shape}, 1, tl.int1)"
        return self.name(f"tl.where({kept}, {value}, {lanes} + {self._neutral(total)})")

    def _joined(self, total: Total, value: str) -> str:
        """All lanes in one."""
        dtype = self.dtype(total.dtype)
        if total.op == "multiply":
            return self.name(f"tl.reduce({value}, 0, _product)")
        if dtype.kind == "b":
            return self.name(f"{_JOINS[total.op]}({value}.to(tl.int32), 0) != 0")
        if total.op in ("maximum", "minimum") and dtype.kind == "f":
            return self.name(f"{_EXTREMES[total.op]}({value})")
        return self.name(f"{_JOINS[total.op]}({value}, 0)")


_HEAD = [
    *triton_code.HEAD,
    *"""
@triton.jit
def _product(x, y):
    return x * y


@triton.jit
def _maximum(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _minimum(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def largest(x):
    return tl.reduce(x, 0, _maximum)


@triton.jit
def smallest(x):
    return tl.reduce(x, 0, _minimum)

""".splitlines(),
]


def _stores(body: Sequence[Statement]) -> Iterator[Store]:
    for each in body:
        if isinstance(each, Store):
            yield each
        else:
            yield from _stores(each.body)


def _is_cast(value: Value) -> bool:
    return isinstance(value, Expression) and value.name == "cast"


def _rounds(loop: For) -> int:
    """How many there are, of a chunk if it is divided."""
    first = loop.axes[0]
    return math.prod([a.extent for a in loop.axes[1:]]) * (first.extent if first.chunk is None else first.chunk)


def _power(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
