"""What Python does in a compiled call besides computing with tensors: kept while the function is traced, done at each call.

A statement that is kept (see `statements.py`) is called with what it reads: what was computed stands for the tensors of the
trace, everything else is as it was. It is done when all has been computed; or before, if it may look at tensors that
the function writes to behind it, or if numbers that it changes are asked for behind it. What stands before all that is
computed is done first: a clock that is read there tells how long the rest takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base.errors import message
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import PLAIN, HostNumber
from genesis.jit.compiling.drawn import Drawn, shape_of
from genesis.jit.compiling.leaves import (
    UNKNOWN,
    Argument,
    Asked,
    Before,
    Container,
    HostCall,
    Leaf,
    NotKept,
    Now,
    Result,
    Told,
    Unread,
    is_set,
)
from genesis.jit.compiling.modes import Modes
from genesis.jit.compiling.order import Order, may_change
from genesis.jit.compiling.results import more_than_numbers
from genesis.jit.compiling.slots import Slot, Slots, named_slots, run, slots_set
from genesis.jit.compiling.statements import KNOWN
from genesis.jit.compiling.stops import Anew, Set
from genesis.jit.compiling.stores import caught, may_set
from genesis.jit.compiling.values import HostValue, Number
from genesis.jit.compiling.words import Reading
from genesis.jit.compiling.writers import CONTAINERS
from genesis.jit.compiling.young import is_young
from genesis.jit.traced import Cell, Traced


class Hosts(Order):
    """What Python does in one trace."""

    def __init__(self, tracer: Any) -> None:
        self.tracer, self.calls, self._modes = tracer, list[HostCall](), Modes()
        self.drawn = Drawn(tracer, self.calls)
        self.tensors: list[Tensor] = []  # what they are told
        self.sources: list[Traced | None] = []  # where that was, but for numbers
        self.closed: list[tuple[int, Tensor]] = []  # those whose history is used up, by their index
        self.containers: list[Any] = []  # lists and dictionaries among the arguments
        self._changed: list[tuple[Any, Any, Any]] = []
        self._copied: list[tuple[Any, list[Any], str]] = []  # containers that are made anew, and what was in them
        self._arguments: list[tuple[Any, int]] = []  # see `HostCall.arguments`, of the statement that is being kept
        self.slots, self.run = Slots(), set[Any]()  # and the statements that were run, which set them
        self.keeps: set[Any] | None = None  # statements that are kept though they set slots only; None: all
        self.puts_before = self.puts_last = False  # whether slots have to be set before what Python does, or behind
        self.failed: Any = None  # the statement in which the trace has ended

    # ---- keeping

    def statement(self, statement: FunctionType, own: tuple[str, ...], sets: tuple[str, ...]) -> Any:
        """Keep a statement; what it gives and sets are `HostValue`s from now on, but for tensors that it draws."""
        code, index = statement.__code__, len(self.calls)
        title = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        if self.tracer.watch.runs_once(sys._getframe(1)):
            raise NotKept(message("compile", f"what is done at {title} is not done again: the result is kept"))
        if may_set(code, "grad"):
            raise NotKept(
                message("compile", f"a .grad is set at {title}, what is added to it behind that would be lost")
            )
        if may_set(code, "requires_grad"):
            raise NotKept(
                message(
                    "compile", f"whether a tensor requires grad is set at {title}, by what changes from call to call"
                )
            )
        if may_set(code, "data"):
            raise NotKept(
                message("compile", f"the memory of a tensor is exchanged at {title}: x.data.copy_(value) keeps it")
            )
        cells = dict(zip(code.co_freevars, statement.__closure__ or (), strict=True))
        own = tuple([name for name in own if name in cells])  # others are of comprehensions in it
        told, known = list[int](), KNOWN[code.co_filename, code.co_firstlineno, code.co_name]
        at = code.co_filename, code.co_firstlineno, code.co_name
        keeps = self.keeps is None or at in self.keeps
        slots = None if keeps else slots_set(known, cells, own, statement.__globals__, self._is_given)
        if slots is not None:
            return self._run(statement, slots, at)
        values = {name: contents(cells[name]) for name in own if is_set(cells[name])}
        leaves = {name: self._leaf(shape_of(x, name, known), told, title) for name, x in values.items()}
        others = {name: cell for name, cell in cells.items() if name not in own}
        scope = statement.__globals__

        def build(now: Now) -> tuple[Callable[[], Any], tuple[CellType, ...]]:
            filled = {name: CellType(now(leaves[name])) if name in leaves else CellType() for name in own}
            inside = tuple([(filled | others)[name] for name in code.co_freevars])
            return FunctionType(code, scope, code.co_name, None, inside), tuple([filled[n] for n in sets])

        call = HostCall(title, build)
        call.modes = Modes().within(self._modes, title)
        call.plain = [leaf for leaf in leaves.values() if type(leaf) in PLAIN]
        reading = Reading(statement, cells, call, self._cell, self.tracer._is_open)
        try:
            reading.read(known)
        except Anew as made:
            raise self._anew(code, *made.args) from None
        given = [x.leaf.call for x in values.values() if isinstance(x, HostValue) and isinstance(x.leaf, Result)]
        call.looks += [x for i in given for x in self.calls[i].looks]
        call.changes += [(x, None) for i in given for x in self.calls[i].looks if call.changes_given]
        own_cells = [cells[name] for name in sets]
        call.changes = [(held, key) for held, key in call.changes if not any([held is cell for cell in own_cells])]
        for line in range(known.lineno, (known.end_lineno or known.lineno) + 1):
            seen, at = self.tracer.watch.seen, (code.co_filename, line)
            held = [x if isinstance(x, CONTAINERS) else vars(x) for x in seen.objects.get(at, {}).values()]
            call.changes += [(x, None) for x in held if not any([x is y and k is None for y, k in call.changes])]
            call.writes = call.writes or at in seen.writing
        if call.may_raise and caught(sys._getframe(1), self.tracer.watch.saw):
            raise NotKept(message("compile", f"an error that is raised at {title} may be caught in the function"))
        call.looks_into = named_slots(known, cells, own, scope) if self.keeps is not None else []
        self._keep(call, told)
        read = {leaf: values[name] for name, leaf in leaves.items() if isinstance(leaf, Leaf)}
        drawn = self.drawn.given(call, known, reading, read)
        results = [
            self.drawn.result(call, Result(index, i), x) for i, x in enumerate(drawn or [None] * (1 + len(sets)))
        ]
        for name, result in zip(sets, results[1:], strict=True):
            cells[name].cell_contents = result
        return results[0]

    def _run(self, statement: FunctionType, slots: list[Slot], at: Any) -> Any:
        """Run a statement in the trace, which sets slots."""
        self.tracer.watch.setting.add(statement.__code__)
        self.slots.sets_them(slots)
        self.run.add(at)
        before = [slot.now() for slot in slots]
        try:
            result = run(statement, slots)
        except BaseException:
            self.failed = at
            raise
        for slot, x in zip(slots, before, strict=True):
            if isinstance(x, Tensor) and slot.now() is x:  # ``self.x += y`` writes to the tensor
                self.slots.is_left(slot)
        return result

    def _is_given(self, held: Any) -> bool:
        return id(held) in self.tracer.watch.given

    def action(self, function: Callable[..., Any], args: tuple[Any, ...], changes: Iterable[Any]) -> None:
        """Keep a call of a function of this package, which looks at no tensors but those that it is given."""
        told = list[int]()
        title = getattr(function, "__qualname__", "a function")
        leaves = [self._leaf(x, told, title) for x in args]
        call = HostCall(title, lambda now: ((lambda: function(*[now(leaf) for leaf in leaves])), ()))
        call.changes, call.trusted = list(changes), True
        self._keep(call, told)

    def _keep(self, call: HostCall, told: list[int]) -> None:
        call.told, call.stamp, call.sets_before = told, self._stamp(), len(self.slots.log)
        call.arguments, self._arguments = self._arguments, []
        call.assigned = any([leaf.assigned for leaf in self.tracer.gradients.leaves.values()])
        self.calls.append(call)
        for held, name in call.changes:
            self._change(held, name, len(self.calls), call.title)

    def _anew(self, code: CodeType, name: str) -> BaseException:
        """A statement changes what the function made: Python has to make it, too."""
        frame = sys._getframe(1)
        while frame.f_back is not None and code not in frame.f_code.co_consts:
            frame = frame.f_back
        return Anew(frame.f_code, Set(name))

    def _leaf(self, x: Any, told: list[int], title: str) -> Any:
        """What stands for something that is read."""
        if isinstance(x, HostValue):
            self.drawn.refuse_shared(x, title)
            return x.leaf
        if isinstance(x, HostNumber):
            return self._asked(x, title)
        if isinstance(x, Number):
            return self._told(x.tensor, True, told)
        if isinstance(x, Tensor):
            if self._cell(x) is None:
                return x
            if not isinstance(x._array, Traced) and (x._node is not None or type(x) is not Tensor):
                raise _made_anew(x, title)
            for i, capture in enumerate(self.tracer.arguments):
                if capture.tensor() is x and not capture.cell.written:
                    self._arguments.append((capture.cell, capture.cell.written))
                    return Argument(i)
            what = "requires_grad" if x._node is not None and x._node.is_leaf else more_than_numbers(x)
            if what:
                raise NotKept(message("compile", f"a tensor that is read at {title} has {what}, which is set inside"))
            return self._told(x, False, told)
        if any([x is held for held in self.containers]):
            raise NotKept(message("compile", f"a {type(x).__name__} among the arguments is read or changed at {title}"))
        if type(x) is tuple or (type(x) in (list, set, dict) and is_young(x)):
            items = list(x.items()) if type(x) is dict else list(x)
            self._copied.append((x, items, title))
            return Container(type(x), [self._leaf(item, told, title) for item in items])
        if type(x) in PLAIN or isinstance(x, type | ModuleType) or not is_young(x):
            return x
        if isinstance(x, FunctionType) and not x.__closure__:
            return x
        raise _made_anew(x, title)

    def _asked(self, number: HostNumber, title: str) -> Asked | Before:
        """A number as it was where it was read, which a statement may have changed since."""
        first, last = self.tracer.asked_behind[number.var]
        for i, call in enumerate(self.calls[first:], first):
            if may_change(call, number.ask):
                if i < last:
                    text = f"numbers that {call.title} changes are read before and behind it, and {title} reads both"
                    raise NotKept(message("compile", text))
                call.asks.append(number.ask)
                return Before(i, len(call.asks) - 1)
        return Asked(number.ask, number.whole)

    def _cell(self, x: Tensor) -> Cell | None:
        """The memory of a tensor that is another one at each call: it is computed, or the function makes it."""
        if isinstance(x._array, Traced):
            return x._array.cell
        plain = isinstance(x._array, np.ndarray | DeviceArray)
        return self.tracer.array(x._array).cell if plain and self.tracer.memory.was_made(x._array) else None

    def _told(self, tensor: Tensor, number: bool, told: list[int]) -> Told:
        self.tensors.append(wrap(self.tracer.value(tensor.detach())))  # type: ignore[attr-defined]
        self.sources.append(None if number else self.tracer.array(tensor._array))
        told.append(len(self.tensors) - 1)
        if not number and tensor._node is not None and not tensor._node.is_leaf and not self.tracer._is_open(tensor):
            self.closed.append((told[-1], tensor))
        return Told(told[-1], number)

    def _stamp(self) -> tuple[int, ...]:
        """Changes whenever the trace writes to tensors of the outside, or computes something."""
        tracer = self.tracer
        captures = [c for c in tracer.memory.captures.values() if not c.made]
        cells = [*[c.cell for c in captures], *[a.cell for a in tracer.arguments]]
        leaves = tracer.gradients.leaves.values()
        own = [x.tensor._node._grad for x in leaves if x.tensor._node is not None]
        new = sum([g is not None for g in own]) + sum([x.cell.written for x in leaves if x.cell is not None])
        return sum([c.written for c in cells]) + new, len(tracer.counts), len(tracer.calls)

    def outside(self) -> tuple[int, ...]:
        """Changes whenever the trace writes to tensors of the outside, or draws random numbers."""
        return *self._stamp()[:2], *[stream._block - start for stream, start in self.tracer.streams]

    # ---- what they change

    def kept(self) -> list[tuple[Any, Any, Any]]:
        """What statements change: a container, an entry of it (None: any), and what was there in the trace."""
        return self._changed

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Afterwards is again there what was there before statements were kept that change it."""
        try:
            yield
        finally:
            self.drawn.restore()
            for held, name, before in reversed(self._changed):
                if isinstance(held, CellType):
                    held.cell_contents = before
                elif name is not None and before is UNKNOWN:
                    held.pop(name, None)
                elif name is not None:
                    held[name] = before

    def _change(self, held: Any, name: Any, call: int, title: str) -> None:
        """A statement changes something: who reads it in the trace from now on, gets a `HostValue`."""
        if isinstance(held, CellType):
            before = contents(held)
            held.cell_contents = HostValue(Unread(held, None), title)
        elif isinstance(held, dict) and name is not None:
            before = held.get(name, UNKNOWN)
            held[name] = HostValue(Unread(held, name), title)
        else:
            before = None
        self._changed.append((held, name, before))


def _made_anew(x: Any, title: str) -> NotKept:
    text = f"the {type(x).__name__} that a statement reads at {title} is made anew at each call"
    return NotKept(message("compile", text))
