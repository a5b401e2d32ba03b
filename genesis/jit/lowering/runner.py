"""Running compiled steps: memory for a call, the addresses of its arrays, native code and the host in turn."""

from __future__ import annotations

import ctypes
import functools
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import GraphError, UnsupportedError, message
from genesis.core.graph.modes import grad_mode, no_grad
from genesis.core.graph.switches import PHASES
from genesis.core.graph.tensor import wrap
from genesis.jit.lowering import code
from genesis.jit.lowering.compiled import Begin, Compiled, End, Host, Where, title_of
from genesis.jit.lowering.layouts import Array, aligned, copy_as, extent, laid_out, maker, share
from genesis.jit.program import op_of
from genesis.jit.replay import Plan as Replay
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import native
from genesis.kernels.native import runtime
from genesis.kernels.native.pace import Pace


class Runner:
    """A compiled step in this process: its functions are in memory, and it can be called.

    What a call computes with is a `_Context`; as many calls as there are of these may run at the same time.
    """

    def __init__(
        self,
        step: Compiled,
        constants: Sequence[tuple[Spec, Array]],
        functions: dict[str, int] | None = None,
        left: int = 0,
    ) -> None:
        self.step, self.left = step, left
        if step.size > memory.LARGE:  # what eager calls keep for the next ones gives way to memory that is planned
            memory.release()
        self.constants = [laid_out(array, spec) for spec, array in constants]
        self.functions = _functions(step) if functions is None else functions
        self.parallel = any([row.chunks > 1 for row in step.rows])
        self.parts = [_PREPARED[type(part)](part) for part in step.parts]
        self.extents = np.array([extent(spec) for spec in step.takes], np.int64).reshape(-1, 2)
        self.written = np.array(step.written, np.int64)
        entries = [
            (where.index + (len(step.takes) if where.kind == "result" else 0), cell, where.offset)
            for cell, where in enumerate(step.cells)
            if where.kind in ("outside", "result")
        ]
        self.entries = np.array(entries, np.int64).reshape(-1, 3)
        self.free: list[_Context] = []
        self.numbers_as: list[Callable[[Sequence[Any]], tuple[Any, ...]]] = [tuple]  # or `_floats`, if one was none
        self.pace = Pace()
        self.run = self._function()

    def _function(self) -> Callable[..., tuple[Array, ...]]:
        """What runs a call, see `Step.run`: straight lines, for it is to cost little."""
        makers = [maker(spec) for spec in self.step.returns]
        small = [isinstance(make, functools.partial) and make.func is np.empty for make in makers]
        first = len(makers) - self.left
        self.small = all(small[first:]) and not self._mixed()  # see `Step`
        makes = [f"empty(shape{i}, dtype{i})" if plain else f"make{i}()" for i, plain in enumerate(small)]
        mixed, entry, enter = self._mixed(), "", "enter(context.at)"
        streams = range(self.step.streams)
        placed = "".join([f", g{i}._seed & {_WORD}, s{i} & {_WORD}, s{i} >> 64" for i in streams])
        if self.parallel:
            entry = "context.threads(entry())\n        "
        if self.parallel and not mixed:
            entry = "context.threads(pace.entry(entry()))\n        pace.left -= 1\n        "
            enter = "(enter(context.at) if pace.left >= 0 else pace.timed(enter, context.at))"
        source = f"""
def run(arrays, numbers=(), starts=(), kept=()):
    if watching:
        return watched(arrays, numbers, starts)
    takes, given = tuple(arrays), numbers_as[0](numbers)
    if kept:
        returns = ({"".join([f"{make}, " for make in makes[:first]])}*kept,)
    else:
        returns = ({"".join([f"{make}, " for make in makes])})
    try:
        context = free.pop()
    except IndexError:
        context = new(runner)
    {"mode = grad_mode.get()" if mixed else ""}
    try:
        context.begun = False
        {f"{''.join([f'(g{i}, s{i}), ' for i in streams])} = starts" if streams else ""}
        pack(context.block, {8 * code.FIXED}, id(takes), id(returns), id(given){placed})
        {entry}context.begun = {not mixed}
        if {enter}:
            takes = again(context, takes, returns, given)
        {"more(context, takes, returns, numbers, starts)" if mixed else ""}
    except BaseException as stop:
        {"grad_mode.set(mode)  # Ctrl-C may come while the host leaves no_grad" if mixed else ""}
        if context.begun:
            stop.finished = returns
        raise
    finally:
        {"if not context.open: " if mixed else ""}free.append(context)  # what goes on may still write to its memory
    return returns
"""
        scope: dict[str, Any] = {f"make{i}": make for i, make in enumerate(makers)}
        for i, spec in enumerate(self.step.returns):
            scope |= {f"shape{i}": spec.shape, f"dtype{i}": spec.dtype}
        scope |= {
            "empty": np.empty,
            "free": self.free, "new": _Context, "runner": self, "enter": _enter(), "entry": _entry,
            "pack": self._packed().pack_into, "again": self._again, "more": self._more, "watching": PHASES, "watched": self._watched,
            "grad_mode": grad_mode, "pace": self.pace, "numbers_as": self.numbers_as,
        }  # fmt: skip
        exec(compile(source, "<genesis step>", "exec"), scope)
        return scope["run"]  # type: ignore[no-any-return]

    def _packed(self) -> struct.Struct:
        """What a call writes: the addresses of three tuples, and where streams are."""
        return struct.Struct(f"{3 + 3 * self.step.streams}Q")

    def _mixed(self) -> bool:
        """Whether the host computes a part."""
        return any([not isinstance(part, tuple) for part in self.parts])

    def _more(
        self,
        context: _Context,
        takes: tuple[Array, ...],
        returns: tuple[Array, ...],
        numbers: Sequence[float],
        starts: Sequence[tuple[Any, int]],
    ) -> None:
        """The parts in turn, where the host computes some."""
        call = _Call(context, self.constants, takes, returns, numbers, starts)
        try:
            for part in self.parts:
                if not isinstance(part, tuple):
                    part.run(call)
                elif context.open:
                    context.run_beside(*part)
                else:
                    context.run(*part)
        finally:
            context.hosts[:] = [None] * len(context.hosts)

    def _watched(
        self, arrays: Sequence[Array], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]
    ) -> tuple[Array, ...]:
        """`run`, phase by phase, with somebody looking on."""
        takes, returns = tuple(arrays), tuple([maker(spec)() for spec in self.step.returns])
        context, given = _Context(self), tuple(numbers)
        context.words[_TASK] &= ~code.RUN
        positions = [w for g, s in starts[: self.step.streams] for w in (g._seed & _WORD, s & _WORD, s >> 64)]
        self._packed().pack_into(context.block, 8 * code.FIXED, id(takes), id(returns), id(given), *positions)
        if _enter()(context.at):
            takes = self._again(context, takes, returns, given)
        call = _Call(context, self.constants, takes, returns, numbers, starts)
        for part in self._all_parts():
            if not isinstance(part, tuple):
                _told(part.title, 1, partial(part.run, call))
            else:
                for i in range(*part):
                    _told(self.step.rows[i].title, self.step.rows[i].chunks, partial(context.run, i, i + 1))
        return returns

    def _all_parts(self) -> list[Any]:
        """With what is checked before."""
        return [(0, self.step.checks), *self.parts]

    def timed(
        self, arrays: Sequence[Array], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]
    ) -> list[float]:
        """Seconds of each phase in a call, of each round; neighbouring ones of the host count as the first of them."""
        context, times = _Context(self), list[float]()
        nothing = min([_seconds(partial(context.run, 0, 0)) for _ in range(9)])

        def look(title: str, chunks: int, run: Callable[[], Any]) -> None:
            times.append(max(0.0, _seconds(run) - nothing))

        PHASES.append(look)
        try:
            self._watched(arrays, numbers, starts)
        finally:
            PHASES.remove(look)
        counts = [
            count
            for part in self._all_parts()
            for count in ([1] * (part[1] - part[0]) if isinstance(part, tuple) else [part.count])
        ]
        return [seconds for count, each in zip(counts, times, strict=True) for seconds in (each, *[0.0] * (count - 1))]

    def _again(
        self, context: _Context, takes: tuple[Array, ...], returns: tuple[Array, ...], numbers: tuple[Any, ...]
    ) -> tuple[Array, ...]:
        """A call that was not run: begin again if its arrays overlap, or a number is no ``float``; refuse indices that are
        out of range.
        """
        context.begun = False
        context.known.fill(0)  # the next one is checked anew
        separate, floats = self._separated(takes), _floats(numbers)
        if any([x.__class__ is not float for x in numbers]):
            self.numbers_as[0] = _floats
        task, context.words[_TASK] = int(context.words[_TASK]), code.GATHER | (context.words[_TASK] & code.RUN)
        context.words[code.FIXED], context.words[code.FIXED + 2] = id(separate), id(floats)
        try:
            if context.enter(not self._mixed()) and self.step.refusal is not None:
                _Hosted(self.step.refusal).run(_Call(context, self.constants, separate, returns, (), ()))
                raise AssertionError("an index was refused that is none")
        finally:
            context.words[_TASK] = task
            context.known.fill(0)
        return separate

    def _separated(self, takes: tuple[Array, ...]) -> tuple[Array, ...]:
        """The arrays, with copies of those that are read and overlap one that is written to."""
        separate = list(takes)
        written = [i for i, flag in enumerate(self.step.written) if flag]
        for i, array in enumerate(takes):
            others = [takes[j] for j in written if j != i and np.may_share_memory(array, takes[j])]
            if i not in written:
                if others:
                    separate[i] = copy_as(array, self.step.takes[i])
            elif any([share(array, other) for other in others]):
                raise GraphError(
                    message("compile", "two tensors that are written to overlap", [("one of them", array.shape)])
                )
        return tuple(separate)


def _floats(numbers: Sequence[Any]) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def finished(stop: BaseException) -> Any:
    """What a call had computed when something came from outside that is raised behind it, or None; it is told once."""
    values = getattr(stop, "finished", None)
    if values is not None:
        del stop.finished  # type: ignore[attr-defined]
    return values


def _told(title: str, chunks: int, run: Callable[[], Any]) -> None:
    """Run a phase through the last of those who look on."""
    if PHASES:
        PHASES[-1](title, chunks, run)
    else:
        run()


def _seconds(run: Callable[[], None]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


class _Context:
    """What one call needs: the arena, the addresses of operands, a table, and what `code.enter` goes by.

    Attributes:
        begun: whether the last native code was entered. What comes from outside while it runs (Ctrl-C) is raised when it
            is back, never before it: between the two Python looks at no signals.
    """

    def __init__(self, runner: Runner) -> None:
        step = runner.step
        self.arena = aligned(step.size)
        self.words = np.zeros(code.FIXED + len(code.GIVEN) + 3 * step.streams + step.numbers + step.flags, np.int64)
        self.numbers = memoryview(self.words)  # the same, faster for single ones
        self.block = self.numbers.cast("B")
        self.at = self.words.ctypes.data
        self.known = np.zeros(len(step.takes), np.int64)
        self.now = np.zeros(len(step.takes) + len(step.returns), np.int64)
        self.streams = self.at + 8 * (code.FIXED + len(code.GIVEN))
        self.given = self.streams + 24 * step.streams  # the numbers of the host
        self.flags = self.given + 8 * step.numbers
        self.cells = self._cells(runner)
        at = self.cells.ctypes.data
        rows = [(runner.functions[r.function], at + 8 * r.cell, r.chunks) for r in step.rows]
        self.rows = np.array(rows, np.int64).reshape(-1, 3)
        self.rows_at = self.rows.ctypes.data
        self.begun = False
        self.entry = _entry() if runner.parallel else _serial()
        mixed = runner._mixed()
        task = code.GATHER | (code.CHECK if any(step.written) else 0) | (0 if mixed else code.RUN)
        parts = (self.known, self.now, runner.extents, runner.written, runner.entries, self.cells)
        self.words[: len(code.FIELDS)] = [
            len(step.takes), len(step.returns), len(runner.entries), *[part.ctypes.data for part in parts],
            task, *self.entry[:2], self.rows_at + 24 * step.checks, len(rows) - step.checks, self.entry[2],
            self.rows_at, step.checks, self.flags, step.flags, self.given, step.numbers, id(float),
        ]  # fmt: skip
        self.hosts: list[Any] = [None] * step.hosts  # the arrays of kind "host"
        self.views: dict[tuple[Where, int], Array] = {}
        self.open: dict[int, Any] = {}  # what was begun and is not waited for, by number

    def _cells(self, runner: Runner) -> Array:
        """The addresses of all operands; those of arrays come with a call."""
        begin = {"arena": self.arena.ctypes.data, "number": self.given, "flag": self.flags}
        begin["stream"] = self.streams
        sizes = {"arena": 1, "stream": 24}
        constants = [array.ctypes.data for array in runner.constants]

        def address(where: Where) -> int:
            if where.kind == "constant":
                return int(constants[where.index]) + where.offset
            return int(begin[where.kind] + where.index * sizes.get(where.kind, 8))

        fixed = ("arena", "number", "constant", "flag", "stream")
        return np.array([address(w) if w.kind in fixed else 0 for w in runner.step.cells], np.int64)

    def threads(self, entry: tuple[int, int, int]) -> None:
        """Go by another number of threads, or other workers."""
        if entry != self.entry:
            self.entry = entry
            self.words[_RUN : _RUN + 2], self.words[_THREADS] = entry[:2], entry[2]

    def enter(self, last: bool) -> int:
        """Go into native code; ``last``: all is computed and written when it comes back, unless it refuses what is given."""
        function = _enter()
        self.begun = last
        refused = function(self.at)
        self.begun = last and not refused
        return refused

    def run(self, begin: int, end: int) -> None:
        """Run some rows of the table."""
        words = self.numbers
        task, first, count = words[_TASK], words[_ROWS], words[_COUNT]
        words[_TASK], words[_ROWS], words[_COUNT] = code.RUN, self.rows_at + 24 * begin, end - begin
        try:
            self.enter(end == len(self.rows))
        finally:
            words[_TASK], words[_ROWS], words[_COUNT] = task, first, count

    def run_beside(self, begin: int, end: int) -> None:
        """Run some rows, and bring forward what goes on beside them before each."""
        for row in range(begin, end):
            for each in self.open.values():
                each.advance()
            self.run(row, row + 1)

    def view(self, where: Where, spec: Spec) -> Array:
        """A value of the arena as an array."""
        key = where, id(spec)
        if key not in self.views:
            strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
            self.views[key] = np.ndarray(spec.shape, spec.dtype, self.arena, where.index, strides)
        return self.views[key]


class _Hosted:
    """Calls that the host computes, prepared for it."""

    def __init__(self, host: Host) -> None:
        self.host, self.count, self.title = host, host.count, f"host: {title_of(host.program.calls)}"
        self.replay = Replay(host.program)
        self.outs = [
            (index, self.replay.slots[var], var.spec)
            for index, var in zip(host.outputs, host.program.results, strict=True)
        ]

    def run(self, call: _Call) -> None:
        """Compute, and keep the arrays where native code and others find them."""
        hosts, cells = call.context.hosts, call.context.cells
        with no_grad():
            values = self.replay.run([call.value(where, spec) for where, spec in self.host.inputs], list(call.starts))
        for index, slot, spec in self.outs:
            value = values[slot]
            hosts[index] = laid_out(np.asarray(getattr(value, "_array", value)), spec)
        for index, positions, offsets in self.host.cells:
            cells[list(positions)] = hosts[index].__array_interface__["data"][0] + np.array(offsets)
        for index in self.host.over:
            hosts[index] = None


class _Begun:
    """What begins a call that goes on beside others, prepared for it."""

    count = 1

    def __init__(self, begin: Begin) -> None:
        (call,) = begin.program.calls
        self.begin, self.args, self.given = begin, call.args, call.args.index(begin.program.arguments[0])
        begins = op_of(call).begins
        assert begins is not None, "an op that goes on beside others"
        self.start, self.title = begins, f"begin: {call.op}"

    def run(self, call: _Call) -> None:
        """Begin it in the memory that is planned for its result."""
        begin, args = self.begin, list(self.args)
        args[self.given] = x = call.value(*begin.given)._array
        out = x if begin.made[0] == begin.given[0] else call.value(*begin.made)._array
        call.context.open[begin.number] = self.start(out, *args)


class _Ended:
    """What waits for a call that was begun."""

    count = 1

    def __init__(self, end: End) -> None:
        self.number, self.title = end.number, f"end: {end.op}"

    def run(self, call: _Call) -> None:
        """Until it is done."""
        call.context.open[self.number].wait()
        del call.context.open[self.number]


_PREPARED: dict[type, Callable[[Any], Any]] = {Host: _Hosted, Begin: _Begun, End: _Ended, tuple: lambda rows: rows}


class _Call(NamedTuple):
    """What the host's part of a call reads."""

    context: _Context
    constants: list[Array]
    takes: tuple[Array, ...]
    returns: tuple[Array, ...]
    numbers: Sequence[float]
    starts: Sequence[tuple[Any, int]]

    def value(self, where: Where, spec: Spec) -> Any:
        """A tensor, or a number."""
        kind, index, _ = where
        if kind == "number":
            return self.numbers[index]
        if kind == "arena":
            return wrap(self.context.view(where, spec))
        arrays: Any = {"outside": self.takes, "result": self.returns, "constant": self.constants}
        return wrap(arrays.get(kind, self.context.hosts)[index])


# ---- native functions

_WORD = (1 << 64) - 1


def _functions(step: Compiled) -> dict[str, int]:
    names = list(dict.fromkeys([row.function for row in step.rows]))
    return dict(zip(names, native.addresses_in(step.code, names), strict=True)) if names else {}


_TASK, _RUN, _ROWS, _COUNT, _THREADS = [code.FIELDS.index(name) for name in ("task", "run", "rows", "count", "threads")]


@functools.cache
def _enter() -> Callable[[int], int]:
    """See `code.enter`."""
    items, data = tuple.__basicsize__, object.__basicsize__
    probe, number = np.empty(3), 1.5
    class_at = ctypes.c_void_p.from_address(id(number) + data - ctypes.sizeof(ctypes.c_void_p))
    is_float = class_at.value == id(float) and ctypes.c_double.from_address(id(number) + data).value == number
    if not is_float or ctypes.c_void_p.from_address(id(probe) + data).value != probe.ctypes.data:
        raise UnsupportedError(message("compile", "this interpreter keeps arrays in another way than CPython"))
    address = native.address("enter", code.enter(items, data))
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)
    return function  # type: ignore[no-any-return]


def _entry() -> tuple[int, int, int]:
    """What runs a table: its address, what it is called with first, and the number of threads."""
    pool = runtime.begin()
    return pool.made.run_address, pool.control, pool.threads


@functools.cache
def _serial() -> tuple[int, int, int]:
    """`_entry` where all is done by this thread."""
    return native.address("serial", code.serial()), 0, 1
