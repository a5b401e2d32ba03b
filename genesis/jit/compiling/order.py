"""When Python does the statements of a function that it does at each call: before all that is computed, before the step
writes to tensors, or behind it; and which of them cannot be done apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from types import CellType
from typing import Any

import numpy as np

from genesis.arrays.protocol import Layer
from genesis.base.errors import message
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable, HostNumber
from genesis.jit.compiling.drawn import Drawn
from genesis.jit.compiling.leaves import UNKNOWN, HostCall, NotKept
from genesis.jit.compiling.questions import keys_of, looked_up
from genesis.jit.compiling.slots import Slots
from genesis.jit.compiling.young import MEMBERS
from genesis.jit.traced import Traced


class Order:
    """The part of `Hosts` that knows when its calls are done."""

    tracer: Any
    calls: list[HostCall]
    drawn: Drawn
    slots: Slots
    sources: list[Traced | None]
    containers: list[Any]
    puts_before: bool
    puts_last: bool
    _copied: list[tuple[Any, list[Any], str]]

    def _stamp(self) -> tuple[int, ...]:
        """Changes whenever the trace writes to tensors of the outside, or computes something."""
        raise NotImplementedError

    def settle(self) -> None:
        """The function has returned: which statements come before what is written to tensors?"""
        self.containers = []  # they hold tensors of the trace
        for x, items, title in self._copied:
            now = list(x.items()) if type(x) is dict else list(x)
            if len(now) != len(items) or any([not _same(a, b) for a, b in zip(now, items, strict=True)]):
                raise NotKept(
                    message("compile", f"the {type(x).__name__} that a statement gets at {title} changes behind it")
                )
        self._copied.clear()
        self.drawn.settle()
        end = self._stamp()
        needed = [self._when(i, call, end) for i, call in enumerate(self.calls)]
        last = max([i for i, early in enumerate(needed) if early], default=-1)
        firsts = self._firsts()
        for i, call in enumerate(self.calls):
            call.first, call.early = i < firsts, firsts <= i <= last
        self.puts_last = self._puts_last()
        for i, call in enumerate(self.calls):
            if call.draws and self.tracer.streams:
                raise self._refused(call, "it may draw random numbers, and so does the function")
            if any([cell.written != count for cell, count in call.handed]):
                raise self._refused(call, "a tensor that it gets is written to behind it")
            if call.writes and self._sees_writes(i, call, end):
                raise self._refused(call, "it writes to tensors")
            if any([self._holds(x) for x, _ in call.changes if isinstance(x, np.ndarray)]):
                raise self._refused(call, "it writes to an array whose memory a tensor has")
            if call.early and any(call.stamp[:2]):
                raise self._refused(call)
            if call.early and call.sees_gradients and call.assigned:
                raise self._refused(call, "a .grad that it may look at is set or removed before it")

    def refuse_to_decide(self, number: HostNumber) -> None:
        """Refuse that Python decides by a number that a statement before has changed: before a call it is another one."""
        for call in self.calls[: self.tracer.asked_behind[number.var][1]]:
            if not call.drawn and call.number is None and may_change(call, number.ask, by_name=True):
                raise self._refused(call, "Python decides by a number that it changes")

    def refuse_things(self, things: Iterable[Dependable]) -> None:
        """Refuse statements that change what optimizers hold, their groups and their state: these do not say that they read
        it, a graph is held for it.
        """
        answers = [(thing, thing._answers() or ()) for thing in things if thing._begins_later]
        for call in [call for call in self.calls if not call.trusted and call.changes]:
            for thing, held in answers:
                if any([_changes_one_of(call, container, keys) for container, keys in held]):
                    raise self._refused(call, f"it changes what {type(thing).__name__} holds")

    def refuse_walks(self, modules: Iterable[Dependable]) -> None:
        """Refuse statements that change members of modules which the function goes through: it would see others."""
        for module in modules:
            members = [inside for name in MEMBERS if (inside := vars(module).get(name)) is not None]
            known = {id(x) for x in (module, *members)}
            for call in self.calls:
                if any([id(held) in known or (held is vars(module) and key is None) for held, key in call.changes]):
                    text = f"it changes what is in a {type(module).__name__}, which the function goes through"
                    raise self._refused(call, text)

    def _puts_last(self) -> bool:
        """Whether slots have to be set behind what Python does when all has been computed: it looks at them as they were."""
        slots, behind = self.slots, set[bool]()
        for call in self.calls if slots.every else ():
            known = [slot for slot in slots.every if not isinstance(slot.holder, CellType)]
            may_set = any([_changes_one_of(call, slot.holder, {slot.key}) for slot in known])
            if may_set or any([(id(held), key) in slots for held, key in call.changes]):
                raise self._refused(call, "it sets what the function sets, too")
            if call.trusted or call.drawn:
                continue
            if any([i >= call.sets_before and key in call.may_set for i, (_, key) in enumerate(slots.log)]):
                raise self._refused(call, "it may set what the function sets behind it")
            seen = [(i, slot) for i, slot in enumerate(slots.log) if not call.blind or slot in call.looks_into]
            late = not (call.first or call.early)
            if not late and any([i < call.sets_before for i, _ in seen]):
                raise self._refused(call, "it may look at what the function has set")
            if any([i >= call.sets_before and slot in slots.ahead for i, slot in seen]) and late:
                raise self._refused(call, "it may look at what the function sets behind it")
            behind |= {i < call.sets_before for i, slot in seen if late and slot not in slots.ahead}
            if len(behind) > 1:
                raise self._refused(call, "it may look at what the function sets before and behind it")
        self.puts_before = behind == {True}
        return behind == {False}

    def _firsts(self) -> int:
        """How many statements come before all that is computed; where Python decides by that, and may begin again, only
        those that it needs.
        """
        drawn = self.drawn.count()
        if self.tracer.values.questions:
            return drawn
        for i, call in enumerate(self.calls[drawn:], drawn):
            behind = any(call.stamp) or call.told or (call.assigned and not call.blind)
            if behind or call.writes or call.draws or any([may_change(call, ask) for _, ask in self.tracer.numbers]):
                return i
        return len(self.calls)

    def _sees_writes(self, index: int, call: HostCall, end: tuple[int, ...]) -> bool:
        """Whether something is computed, told or returned that a statement writes to, as it was before."""
        if call.early and not any(call.stamp):
            return False
        handed = {id(cell) for cell, _ in call.handed}
        sources = [self.sources[k] for k in call.told]
        apart = any([source is not None and id(source.cell) not in handed for source in sources])
        return apart or call.stamp != end or any([other.told for other in self.calls[index + 1 :]])

    def _holds(self, array: Any) -> bool:
        """Whether tensors from outside have the memory of an array."""
        known = [c.array for c in (*self.tracer.arguments, *self.tracer.memory.captures.values())]
        return any([isinstance(x, np.ndarray) and np.may_share_memory(array, x) for x in known])

    def shared(self, results: list[Any]) -> dict[int, tuple[str, int]]:
        """Which of the tensors that statements are told, and may keep, have the memory of a result or of another one: what
        is written there later is seen by both.
        """
        known: dict[int, list[tuple[str, int, Traced]]] = {}  # by memory
        for i, argument in enumerate(self.tracer.arguments):
            known.setdefault(id(argument.cell), []).append(
                ("argument", i, Traced(self.tracer, argument.cell, argument.var.spec))
            )
        for i, y in enumerate(results):
            if isinstance(y, Tensor) and not isinstance(y._array, Layer):
                array = self.tracer.array(y._array)
                known.setdefault(id(array.cell), []).append(("result", i, array))
        captured = {id(c.cell) for c in self.tracer.memory.captures.values() if not c.made}
        shared = {}
        for call in self.calls:
            handed, call.handed = {id(cell) for cell, _ in call.handed}, []
            for k in call.told:
                source = self.sources[k]
                if source is None or id(source.cell) not in handed:
                    continue
                if id(source.cell) in captured:
                    raise self._refused(call, "a tensor that it gets shares its memory with a captured one")
                others = known.setdefault(id(source.cell), [])
                alike = [(kind, i) for kind, i, array in others if array.steps == source.steps]
                if others and not alike:
                    raise self._refused(call, "a tensor that it gets shares its memory with another one")
                if alike:
                    shared[k] = alike[0]
                else:
                    others.append(("told", k, source))
        self.sources = []
        return shared

    def _when(self, index: int, call: HostCall, end: tuple[int, ...]) -> bool:
        """Whether a statement has to come early; or else it must not."""
        asked = {var: self.tracer.asked_behind[var] for var, ask in self.tracer.numbers if may_change(call, ask)}
        if any([first <= index < last for first, last in asked.values()]):
            raise self._refused(call, "what is computed of numbers that it changes is asked for before and behind it")
        call.feeds = frozenset([var for var, (first, _) in asked.items() if first > index])
        before, behind = len(asked) > len(call.feeds), bool(call.feeds)
        last = call.stamp == end if not call.blind else call.stamp[:2] == end[:2]
        written = any([cell.written != count for cell, count in call.arguments])
        if written and before:
            raise self._refused(call, "an argument and numbers that it changes are asked for before it")
        if call.writes and call.stamp != end and not before and not any(call.stamp):
            return True
        if behind or written or (call.raises and not last and not before and not any(call.stamp[:2])):
            return True
        if last or call.blind:
            return False
        if before:
            raise self._refused(call)
        return True

    def _refused(self, call: HostCall, why: str = "") -> NotKept:
        text = why or "tensors are written to before and behind it, and it may look at them"
        return NotKept(message("compile", f"what Python does at {call.title} cannot be done apart: {text}"))


def may_change(call: HostCall, ask: Callable[[], float], by_name: bool = False) -> bool:
    """Whether a statement may change the answer to a question.

    Args:
        by_name: where it only writes entries that have names, the question has to ask for one of these
    """
    seen, keys = looked_up(ask), keys_of(ask)
    held = {id(x): x for x, _ in call.changes if id(x) in seen}.values()
    changed = any([_changes_one_of(call, x, keys if by_name else None) for x in held])
    return changed or any([key in keys for key in call.unknown])


def _changes_one_of(call: HostCall, container: Any, keys: Collection[Any] | None) -> bool:
    """Whether a statement may change one of these entries of a container (None: any)."""
    changed = [key for held, key in call.changes if held is container]
    named = [names for held, names in call.named if held is container or held is UNKNOWN]
    if keys is None or len(named) < changed.count(None):
        return bool(changed)
    return any([key in keys for key in (*changed, *[name for names in named for name in names])])


def _same(a: Any, b: Any) -> bool:
    """Whether entries of a container are the same: of a dictionary they are pairs."""
    pairs = type(a) is tuple and type(b) is tuple and len(a) == len(b)
    return a is b or (pairs and all([x is y for x, y in zip(a, b, strict=True)]))
