"""Entries that a function sets and goes on from at the next call: counts, running means, hidden states.

    self.t += 1        state["step"] += 1        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)

A trace runs such a statement. What was in the entry at the beginning is one more argument of the graph, what is there in
the end one more result: a compiled call takes it from the entry, and puts it there when all has been computed. Where a
statement cannot be run in a trace it is kept for Python, see `hosts.py`.
"""

from __future__ import annotations

import ast
import builtins
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.base.errors import message
from genesis.base.pytree import tree_flatten
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable
from genesis.jit.binding import Graph
from genesis.jit.compiling.containers import containers_in
from genesis.jit.compiling.deciding import LARGEST
from genesis.jit.compiling.leaves import UNKNOWN, NotKept, Unread, is_set
from genesis.jit.compiling.stops import Late
from genesis.jit.compiling.values import HostValue
from genesis.jit.compiling.young import MEMBERS, is_young
from genesis.jit.numbers import Entry

_NOTHING: Any = object()


class Nothing:
    """What stands for an entry that is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


class Slot:
    """An entry of a dictionary or a list, or a cell of a closure."""

    __slots__ = ("holder", "key", "owner", "title", "unread")

    def __init__(self, holder: Any, key: Any, title: str, owner: Any = None) -> None:
        self.holder, self.key, self.title = holder, key, title
        self.owner = owner  # the module whose attribute it is
        self.unread = False  # whether the function is to read nothing of what was in it

    def identity(self) -> Any:
        return id(self.holder), self.key

    def entry(self) -> Entry:
        return Entry(self.holder, () if isinstance(self.holder, CellType) else (self.key,), self.title)

    def now(self) -> Any:
        """What is there."""
        if isinstance(self.holder, CellType):
            return contents(self.holder) if is_set(self.holder) else NOTHING
        if isinstance(self.holder, list):
            return self.holder[self.key] if self.key < len(self.holder) else NOTHING
        return self.holder.get(self.key, NOTHING)

    def put(self, value: Any) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        elif value is not NOTHING:
            self.holder[self.key] = value
        else:
            self.holder.pop(self.key, None)

    def loaded(self) -> Any:
        """What a call takes from it: what a graph has no argument for stays `UNREAD`."""
        value = self.now()
        return value if not self.unread and _is_argument(value) else UNREAD

    def source(self, name: Callable[[Any], str]) -> str:
        """`now` as Python."""
        if isinstance(self.holder, dict):
            return f"{name(self.holder)}.get({name(self.key)}, {name(NOTHING)})"
        return f"{name(self.now)}()"

    def target(self, name: Callable[[Any], str]) -> str:
        """What Python assigns to."""
        held = name(self.holder)
        return f"{held}.cell_contents" if isinstance(self.holder, CellType) else f"{held}[{name(self.key)}]"


UNREAD: Any = Nothing()  # in the place of what no argument of a graph can be: whoever reads it is not traced


def _is_argument(x: Any) -> bool:
    """Whether a graph may take something as an argument: a tensor, a number or text, or a tuple of these."""
    if type(x) is tuple:
        return all([_is_argument(y) for y in x])
    if type(x) is int:
        return abs(x) < LARGEST
    return type(x) in PLAIN or x is NOTHING or (type(x) is Tensor and isinstance(x._array, np.ndarray | DeviceArray))


class Slots:
    """Those that are set in one trace.

    Args:
        known: those that traces before have set: they are arguments
    """

    def __init__(self, known: Iterable[Slot] = ()) -> None:
        self.known = {slot.identity(): slot for slot in known}
        self.late: dict[Any, Slot] = {}  # those that were read as they are before they were set
        self.before: dict[Any, Any] = {}
        self.log: list[Any] = []  # those that were set, one after the other, by identity
        self.ahead = set[Any]()  # those that are put before what Python does when all has been computed
        self.is_over = False  # whether the function has returned: what is set in its backward is lost

    def __contains__(self, identity: Any) -> bool:
        return identity in self.known or identity in self.late

    @property
    def every(self) -> list[Slot]:
        return [*self.known.values(), *self.late.values()]

    @property
    def has_run(self) -> bool:
        """Whether statements of the program have set some."""
        return any([at not in self.ahead for at in self.log])

    @contextmanager
    def holding(self, loaded: Iterable[Any]) -> Iterator[None]:
        """Arguments of the trace stand in the slots, for a block; then what was there before is there again."""
        try:
            for slot, value in zip(self.known.values(), loaded, strict=True):
                self._remember(slot)
                if value is UNREAD:
                    slot.put(HostValue(Unread(slot.holder, slot.key), slot.title))
                elif value is not NOTHING:
                    slot.put(value)
            yield
        finally:
            for slot in self.every:
                if slot.identity() in self.before:
                    slot.put(self.before[slot.identity()])
            self.before.clear()
            self.is_over = True

    def sets_ahead(self, slot: Slot) -> None:
        """This package is about to set one of which the function reads nothing that was in it before."""
        slot.unread = True
        self.ahead.add(slot.identity())
        self.sets_them([slot])

    def sets_them(self, slots: Iterable[Slot]) -> None:
        """A statement is about to set some."""
        if self.is_over:
            raise NotKept(message("compile", "what a backward sets is not set again"))
        for slot in slots:
            self.log.append(slot.identity())
            if slot.identity() not in self:
                self.late[slot.identity()] = slot
                self._remember(slot)

    def is_left(self, slot: Slot) -> None:
        """A statement has put into one what was there."""
        identity = slot.identity()
        if identity in self.late and self.log.count(identity) == 1:
            self.log.remove(identity)
            del self.late[identity], self.before[identity]

    def end(self, result: Any, given: Iterable[Any]) -> tuple[Any, ...]:
        """What is in the slots: results of the graph.

        Args:
            result: what the function returns
            given: the lists and dictionaries among its arguments
        """
        if self.late:
            raise Late(self.every)
        contents = tuple([slot.now() for slot in self.known.values()])
        kept = [id(x) for part in contents for x in containers_in(part)]
        if len({*kept}) < len(kept) or not {*kept}.isdisjoint([id(x) for x in (*given, *containers_in(result))]):
            raise NotKept(message("compile", "a list or a dictionary is kept in two places"))
        return contents

    def _remember(self, slot: Slot) -> None:
        self.before[slot.identity()] = slot.now()


# ---- statements that set slots


def slots_set(
    statement: ast.stmt,
    cells: Mapping[str, CellType],
    own: Iterable[str],
    scope: dict[str, Any],
    given: Callable[[Any], bool],
) -> list[Slot] | None:
    """The slots that a statement sets, apart from variables of the function and what that has made; None if it is no
    statement of this kind.

    Args:
        own: the variables of the function
        given: whether a container is among the arguments, and so another one at each call
    """
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return None
    slots = list[Slot]()
    for target in _flat(targets):
        slot = _slot(target, cells, set(own), scope)
        if slot is None or (slot is not _NOTHING and (given(slot.holder) or type(slot.now()) is HostValue)):
            return None
        if slot is not _NOTHING:
            slots.append(slot)
    adds = isinstance(statement, ast.AugAssign)
    return None if not slots or (adds and not _is_argument_of_a_trace(slots[0].now())) else slots


def named_slots(
    statement: ast.stmt, cells: Mapping[str, CellType], own: Iterable[str], scope: dict[str, Any]
) -> list[Any]:
    """The entries that a statement names, by identity."""
    nodes = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute | ast.Subscript | ast.Name)]
    slots = [_slot(n, cells, set(own), scope) for n in nodes]
    return [slot.identity() for slot in slots if isinstance(slot, Slot)]


def _is_argument_of_a_trace(x: Any) -> bool:
    """Whether ``x += y`` makes another one, or writes to a tensor, which a trace sees: not to a list."""
    return isinstance(x, Tensor | float) or (type(x) in PLAIN)


def _flat(targets: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target


def _slot(target: ast.expr, cells: Mapping[str, CellType], own: set[str], scope: dict[str, Any]) -> Any:
    """The slot of a target; `_NOTHING` for what is the function's own; None where it cannot be said."""
    title = ast.unparse(target)
    if isinstance(target, ast.Name):
        if target.id in own:
            return _NOTHING
        return (
            Slot(cells[target.id], None, title) if target.id in cells else Slot(scope, target.id, f"the global {title}")
        )
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return None
    held = _value(target.value, cells, scope)
    if isinstance(target, ast.Attribute):
        return _attribute(held, target.attr, title)
    key = _value(target.slice, cells, scope)
    if held is UNKNOWN or key is UNKNOWN or type(held) not in (dict, list):
        return None
    if "params" in held and not (key == "lr" and _is_read_by_the_program(held)):
        return None  # options of an optimizer it asks for itself, when it has a step
    if is_young(held):
        return _NOTHING
    fits = type(key) is int and 0 <= key < len(held) if type(held) is list else type(key) in (int, str)
    return Slot(held, key, title) if fits else None


def _is_read_by_the_program(group: dict[str, Any]) -> bool:
    """Whether the options are those of optimizers of the program's own."""
    lists = [x for x in gc.get_referrers(group) if type(x) is list]
    holders = gc.get_referrers(*lists) if lists else []
    stores = [x for x in holders if type(x) is dict]
    holders += gc.get_referrers(*stores) if stores else []
    owners = [x for x in holders if isinstance(x, Dependable) and any([group is g for g in x._holders().values()])]
    return bool(owners) and not any([owner._asks_itself() for owner in owners])


def _attribute(held: Any, name: str, title: str) -> Any:
    """Where an attribute is that is set, if no code of a class sees to that."""
    inside, kind = _dictionary_of(held), type(held)
    if type(inside) is not dict or isinstance(held, Tensor | type):
        return None
    if is_young(held):
        return _NOTHING
    ours = getattr(kind.__setattr__, "__module__", "") == "genesis.nn.module"
    if not ours and kind.__setattr__ is not object.__setattr__:
        return None
    in_class = next((vars(c)[name] for c in kind.__mro__ if name in vars(c)), None)
    if hasattr(type(in_class), "__set__") or isinstance(in_class, MemberDescriptorType) or name == "training":
        return None
    for members in MEMBERS if ours else ():
        if name in inside.get(members, ()):
            return Slot(inside[members], name, title, held) if members == "_buffers" else None
    return Slot(inside, name, title, held if ours else None)


def _dictionary_of(held: Any) -> Any:
    """The attributes of an object; None of what nothing is known of."""
    return None if held is UNKNOWN or type(held) is HostValue else getattr(held, "__dict__", None)


def _value(node: ast.expr, cells: Mapping[str, CellType], scope: dict[str, Any]) -> Any:
    """What an expression is, where no code has to run for that."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id in cells:
            return contents(cells[node.id]) if is_set(cells[node.id]) else UNKNOWN
        return scope.get(node.id, getattr(builtins, node.id, UNKNOWN))
    if isinstance(node, ast.Attribute):
        return _own(_value(node.value, cells, scope), node.attr)
    if isinstance(node, ast.Subscript):
        held, key = _value(node.value, cells, scope), _value(node.slice, cells, scope)
        if isinstance(held, dict) and isinstance(key, Tensor | int | str) and key in held:
            return held[key]
        if type(held) in (list, tuple) and type(key) is int and -len(held) <= key < len(held):
            return held[key]
    return UNKNOWN


def _own(held: Any, name: str) -> Any:
    """An attribute of an object that has it itself."""
    inside = _dictionary_of(held)
    if type(inside) is not dict or type(held).__getattribute__ is not object.__getattribute__:
        return UNKNOWN
    if name in inside:
        return inside[name]
    for members in ("_modules", "_buffers", "_parameters") if isinstance(held, Dependable) else ():
        if name in inside.get(members, ()):
            return inside[members][name]
    return UNKNOWN


def overlapping(slots: Iterable[Slot], loaded: Iterable[Any], graph: Graph, given: Iterable[Any]) -> list[Slot]:
    """The slots with memory that lies in others', where the graph writes: it takes its tensors for different memory.

    Args:
        given: the arguments of the function
    """
    kinds = {w.kind for w in graph.program.writes}
    known = _memory(graph.binding.captured) if kinds & {"argument", "captured"} else []
    known += _memory(given) if "argument" in kinds else []
    out = list[Slot]()
    for slot, value in zip(slots, loaded, strict=True):
        own = _memory(tree_flatten(value)[0])
        if any([np.may_share_memory(x, y) for x in own for y in known]):
            out.append(slot)
        known += own if "argument" in kinds else []
    return out


def _memory(tensors: Iterable[Any]) -> list[Any]:
    return [x._array for x in tensors if isinstance(x, Tensor) and isinstance(x._array, np.ndarray)]


def run(statement: FunctionType, slots: Iterable[Slot]) -> Any:
    """Run a statement in the trace. What a module would register is no value of a slot."""
    result = statement()
    for slot in slots:
        members = () if slot.owner is None else (slot.owner._parameters, slot.owner._modules, slot.owner._buffers)
        if new := [held for held in members if held is not slot.holder and slot.key in held]:
            new[0].pop(slot.key)
            raise NotKept(message("compile", f"{slot.title} becomes a part of a module"))
    return result
