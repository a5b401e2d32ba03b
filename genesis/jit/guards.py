"""What a trace takes for granted, as objects that can be asked: does it still hold, and if not, what has changed?

Python is run once. What it decided on then (a module's mode, an optimizer's options, which tensors are parameters,
whether there are hooks) is part of the graph, so a replay asks first whether it would decide in the same way. What
nobody can see from outside is not asked for: a number in an object that is neither a module nor an optimizer, a file,
the time of day.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from genesis.arrays.memory import strides_of
from genesis.arrays.protocol import Virtual, device_of
from genesis.base import dtypes
from genesis.base.device import default_device
from genesis.base.errors import GraphError, message
from genesis.core.functions.captures import contents
from genesis.core.graph import autocast
from genesis.core.graph.modes import grad_mode, inference
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.site import LIBRARY
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable
from genesis.jit.numbers import Entry

State = dict[str, Any]
ABSENT: Any = object()  # nothing is there, not even None
HOOKS_OF_LEAVES = "tensor", "pre", "post", "post_accumulate"  # attributes of `NodeHooks`
Answers = list[tuple[Any, tuple[Any, ...] | None]]  # see `Dependable._answers`


def hooks_on(node: Any) -> tuple[Any, ...]:
    """The hooks of a leaf; those of other tensors are no part of a traced function."""
    hooks = node._hooks if isinstance(node, AccumulateGrad) else None
    return () if hooks is None else tuple([hook for kind in HOOKS_OF_LEAVES for hook in getattr(hooks, kind).values()])


def _same(a: Any, b: Any) -> bool:
    """The same object, or an equal number; NaN is NaN, and 1 is neither 1.0 nor True."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all([_same(x, y) for x, y in zip(a, b, strict=True)])
    return isinstance(a, PLAIN) and bool(a == b or (a != a and b != b))


def _difference(name: str, then: State, now: State) -> str | None:
    for key, before in then.items():
        if key not in now:
            return f"{name}{key} is gone"
        if not _same(before, now[key]):
            return _changed(f"{name}{key}", before, now[key])
    new = next((key for key in now if key not in then), None)
    return None if new is None else f"{name}{new} is new"


def _changed(what: str, before: Any, now: Any) -> str:
    if now is ABSENT:
        return f"{what} is gone"
    if before is ABSENT:
        return f"{what} is {repr(now) if isinstance(now, PLAIN) else f'a {type(now).__name__}'} now, it was not there"
    if isinstance(before, bytes) and isinstance(now, bytes):
        return f"{what} holds other bytes"
    if isinstance(before, PLAIN) and isinstance(now, PLAIN):
        return f"{what} is {now!r}, it was {before!r}"
    if isinstance(before, tuple) and isinstance(now, tuple):
        if len(before) != len(now):
            return f"{what} has {len(now)} entries, it had {len(before)}"
        i = next(i for i, (x, y) in enumerate(zip(before, now, strict=True)) if not _same(x, y))
        return _changed(f"{what}[{i}]", before[i], now[i])
    if now is None:
        return f"{what} is None now"
    return (
        f"{what} is another {type(now).__name__.lower()}"
        if type(before) is type(now)
        else f"{what} is a {type(now).__name__}"
    )


class Unchanged:
    """The state of something, as far as the function did not change it itself."""

    __slots__ = ("answers", "ask", "left_out", "name", "sources", "state", "thing", "witnessed", "witnesses")

    def __init__(self, name: str, ask: Callable[[], State], thing: Dependable | None = None) -> None:
        self.name, self.ask, self.state, self.thing = name, ask, ask(), thing
        self.answers: Callable[[], Answers | None] = (lambda: None) if thing is None else thing._answers
        self.witnesses = None if thing is None else thing._witnesses
        self.witnessed: tuple[Any, ...] = ()
        self.left_out: set[str] = set()  # what the function changed itself
        self.sources: Callable[[], dict[str, tuple[Any, Any]]] = dict  # where entries are found: a holder and a key

    def changed(self) -> str | None:
        if self.witnesses is not None:  # a tenth of the time
            seen = self.witnesses()
            if len(seen) == len(self.witnessed) and all(map(is_, seen, self.witnessed)):
                return None
        now = self.ask()
        if now.keys() == self.state.keys() and all([_same(v, now[k]) for k, v in self.state.items()]):
            return None
        return _difference(self.name, self.state, now)

    def moved(self) -> Iterator[Entry]:
        """The floats that are other ones now, where they are found."""
        now, sources = self.ask(), self.sources()
        for key, then in self.state.items():
            if type(then) is float and type(now.get(key)) is float and not _same(then, now[key]) and key in sources:
                holder, name = sources[key]
                yield Entry(holder, () if isinstance(holder, CellType) else (name,), f"{self.name}{key}")

    def held(self) -> Iterator[tuple[Any, Any]]:
        """Where the entries are that must be the same: a holder and a key."""
        return (source for name, source in self.sources().items() if name in self.state)

    def leave(self, entries: Iterable[Entry]) -> None:
        """Some entries of dictionaries and cells are read at each call: they may be other ones."""
        sources = self.sources()
        read = {(id(e.holder), *e.keys) for e in entries}
        own = {k for k, (holder, *name) in sources.items() if (id(holder), *[n for n in name if n is not None]) in read}
        if own:
            self._leave_out(own)
            if self.thing is None:
                self.answers = self._but_left_out
            else:
                self.answers = partial(_without, self.thing, self.left_out)

    def leave_named(self, keys: Iterable[str]) -> None:
        """Some entries are of no matter."""
        own = {key for key in keys if key in self.state}
        if own:
            self._leave_out(own)
            self.answers = self._but_left_out

    def _but_left_out(self) -> Answers:
        known = [source for key, source in self.sources().items() if key not in self.left_out]
        return [(holder, None if name is None else (name,)) for holder, name in known]

    def settle(self) -> None:
        """The trace is over: what is otherwise by now, the function changed itself; nothing can be said about it."""
        self.witnessed = () if self.witnesses is None else self.witnesses()
        now = self.ask()
        if now.keys() == self.state.keys() and all([_same(v, now[k]) for k, v in self.state.items()]):
            return
        self._leave_out(
            {k for k in {*now, *self.state} if k not in now or k not in self.state or not _same(now[k], self.state[k])}
        )

    def _leave_out(self, own: set[str]) -> None:
        ask, self.state = self.ask, {k: v for k, v in self.state.items() if k not in own}
        self.left_out = self.left_out | own
        self.ask = lambda: {k: v for k, v in ask().items() if k not in own}
        self.answers = lambda: None

    def without(self, keys: set[str]) -> Unchanged:
        """The same guard where these entries are of no matter."""
        guard = Unchanged(self.name, self.ask)
        guard.thing, guard.state = self.thing, self.state
        guard._leave_out(keys | self.left_out)
        return guard

    def of(self, thing: Dependable, new: Callable[[Any], Any]) -> Unchanged:
        """The same guard of another thing, in which ``new(x)`` stands for ``x``."""
        guard = Unchanged(self.name, thing._taken_for_granted, thing)
        guard.state = {k: new(v) for k, v in self.state.items()}
        guard._leave_out(self.left_out)
        return guard


def _without(thing: Dependable, names: set[str]) -> Answers | None:
    """`Dependable._answers` where some attributes are of no matter."""
    own, answers = thing.__dict__, thing._answers()
    left, buffers = [own.get(name) for name in names], own.get("_buffers")
    return answers and [
        (held, tuple([k for k in held if k not in names]) if held is own or held is buffers else keys)
        for held, keys in answers
        if not any([held is x for x in left])
    ]


def _sources(thing: Dependable) -> dict[str, tuple[Any, Any]]:
    """Where the attributes and buffers of a module are found."""
    stores = thing.__dict__, thing.__dict__.get("_buffers") or {}
    return {name: (store, name) for store in stores for name in store}


class CapturedAsTheyWere:
    """Captured tensors and leaves have the shapes, dtypes, layouts and hooks of the trace, and require grad or not."""

    __slots__ = ("tensors",)

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.tensors = [(x, _looks(x)) for x in {id(x): x for x in tensors}.values()]

    def of(self, new: Callable[[Tensor], Tensor]) -> CapturedAsTheyWere:
        """The same guard of other tensors."""
        guard = CapturedAsTheyWere(())
        guard.tensors = [(new(x), looks) for x, looks in self.tensors]
        return guard

    def changed(self) -> str | None:
        for x, (shape, dtype, layout, leaf, requires_grad, hooks) in self.tensors:
            array, node = x._array, x._node
            same = (
                array.shape == shape
                and array.dtype is dtype
                and (array.strides if array.__class__ is np.ndarray else _layout(array)) == layout
            )
            if node is None or not same:
                same = same and not requires_grad
            else:
                same = (
                    requires_grad
                    and node.is_leaf is leaf
                    and (hooks == () if node._hooks is None else hooks_on(node) == hooks)
                )
            if not same:
                return _what_changed(x, shape, dtype, layout, requires_grad, leaf)
        return None


def _layout(array: Any) -> Any:
    """Strides in bytes of a NumPy array; of another its device, too."""
    return strides_of(array) if isinstance(array, np.ndarray) else (str(device_of(array)), strides_of(array))


def _looks(x: Tensor) -> tuple[Any, ...]:
    array, node = x._array, x._node
    return (
        array.shape,
        array.dtype,
        _layout(array),
        node is not None and node.is_leaf,
        node is not None,
        () if node is None else hooks_on(node),
    )


def _what_changed(x: Tensor, shape: Any, dtype: Any, layout: Any, requires_grad: bool, leaf: bool) -> str:
    name = f"a captured tensor, {x._spec()},"
    if x._array.shape != shape or x._array.dtype is not dtype:
        return f"{name} was {dtypes.from_numpy(dtype).short}{list(shape)}"
    if _layout(x._array) != layout:
        return f"{name} is laid out otherwise, its strides are {_layout(x._array)}, they were {layout}"
    if x.requires_grad is not requires_grad:
        return f"{name} {'requires grad, it did not' if x.requires_grad else 'does not require grad, it did'}"
    if x._node is not None and x._node.is_leaf is not leaf:
        return f"{name} {'is a leaf' if x.is_leaf else 'is no leaf'} now"
    return f"{name} has other hooks"


class Modes:
    """Autocast, the default dtype and device; and whether gradients are recorded, where it matters."""

    __slots__ = ("asks", "state")

    def __init__(self) -> None:
        self.asks, self.state = False, _modes()

    def changed(self) -> str | None:
        for (name, then, always), (_, now, _) in zip(self.state, _modes(), strict=True):
            if then != now and (always or self.asks):
                return f"{name} is {now}, it was {then}"
        return None


def _modes() -> list[tuple[str, Any, bool]]:
    mode = autocast.state()
    return [
        ("autocast", "off" if mode is None else f"on with {dtypes.from_numpy(mode.dtype)}", True),
        ("the default dtype", dtypes.get_default_dtype(), True),
        ("the default device", default_device(), True),
        ("is_grad_enabled()", grad_mode.get(), False),
        ("is_inference_mode_enabled()", inference.get(), False),
    ]


def names_of(function: Any) -> Unchanged:
    """What a function, and the functions that it calls by name, find in their closures, and the tensors, modules and
    numbers among the globals. (What else it reads there is seen while it runs: `Watch`.)
    """
    lookups: dict[str, tuple[Any, str | None]] = {}  # a cell, or a dictionary and a name in it
    for f in functions_in(function, set()):
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            lookups[f"{name}, which {f.__name__} captures,"] = cell, None
        for name in _globals_in(f.__code__):
            lookups[f"the global {name}"] = f.__globals__, name
    known = {
        what: source
        for what, source in lookups.items()
        if isinstance(source[0], CellType)
        or isinstance(value := _look_up(*source), Dependable | Tensor)
        or type(value) in PLAIN
        or value is ABSENT
    }
    guard = Unchanged("", lambda: {what: _look_up(*source) for what, source in known.items()})
    guard.sources = lambda: known
    guard.answers = lambda: [(source, None if name is None else (name,)) for source, name in known.values()]
    return guard


def _look_up(source: Any, name: str | None) -> Any:
    return contents(source) if name is None else source.get(name, ABSENT)


def functions_in(value: Any, seen: set[int]) -> Iterator[FunctionType]:
    """A function of the program, and those that it calls by name."""
    while isinstance(value, MethodType):
        value = value.__func__
    if not isinstance(value, FunctionType) or id(value) in seen or LIBRARY[value.__code__.co_filename]:
        return
    seen.add(id(value))
    yield value
    for cell in value.__closure__ or ():
        yield from functions_in(contents(cell), seen)
    for name in _globals_in(value.__code__):
        yield from functions_in(value.__globals__.get(name), seen)


def _globals_in(code: CodeType) -> list[str]:
    names = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return [*names, *[name for const in code.co_consts if isinstance(const, CodeType) for name in _globals_in(const)]]


class Guards:
    """What a trace takes for granted, collected while it is made."""

    def __init__(self, function: Any) -> None:
        self.modes = Modes()
        self.unchanged: dict[int, Unchanged] = {}
        self.things: list[Dependable] = []
        self.reads: dict[int, Dependable] = {}  # those that it reads something of which begins later
        self.own: dict[int, Tensor] = {}  # tensors that require no gradient, whose .grad is looked at
        self.names = names_of(function)

    def depends(self, thing: Dependable, read: str = "") -> None:
        """The function asks a module or an optimizer, maybe for an attribute."""
        if read in thing._begins_later:
            self.reads[id(thing)] = thing
        if id(thing) not in self.unchanged:
            guard = Unchanged(f"{type(thing).__name__}.", thing._taken_for_granted, thing)
            guard.sources = lambda: _sources(thing)
            self.unchanged[id(thing)] = guard
            self.things.append(thing)
        elif thing._begins_later:  # some of it may have begun since
            now = thing._taken_for_granted()
            self.unchanged[id(thing)].state |= {name: now[name] for name in thing._begins_later}

    def without_history(self, tensor: Tensor) -> None:
        """The function looks at the .grad of a tensor that is no leaf, or requires none."""
        if not isinstance(tensor._array, Virtual):
            self.own[id(tensor)] = tensor

    def _name(self) -> None:
        """Modules in modules get the names that they have there."""
        named: set[int] = set()
        for thing in self.things:
            for path, part in thing._parts():
                if id(part) in self.unchanged and id(part) not in named:
                    named.add(id(part))
                    self.unchanged[id(part)].name = f"{type(thing).__name__}.{path}{'.' if path else ''}"

    def settle(self) -> None:
        """The function has been run."""
        self._name()
        for one in (self.names, *self.unchanged.values()):
            one.settle()

    def refuse_begun(self, begun: Sequence[Any]) -> None:
        """The function looks at what this very call sets up: at the next one it finds something else."""
        for thing in self.reads.values():
            if any([held is state for held in thing._holders().values() for state in begun]):
                text = f"the function reads what {type(thing).__name__} only begins in this call"
                raise GraphError(message("trace", text, hint="call the function once before tracing it"))

    def collected(self, captured: Iterable[Tensor], leaves: list[Tensor]) -> tuple[Any, ...]:
        """The guards of a graph."""
        self.modes.asks = self.modes.asks or bool(leaves)
        begun = [Unchanged(f"{type(thing).__name__}.", thing._begun) for thing in self.reads.values()]
        return (
            self.modes,
            CapturedAsTheyWere((*captured, *leaves)),
            *begun,
            *[one for one in (self.names, *self.unchanged.values(), _own_gradients([*self.own.values()])) if one.state],
        )


def _own_gradients(tensors: list[Tensor]) -> Unchanged:
    """What is assigned to the ``.grad`` of tensors that require none is what it was."""
    guard = Unchanged(
        "", lambda: {f"the .grad of a tensor that requires none, {i}": x._own_grad for i, x in enumerate(tensors)}
    )
    guard.answers = lambda: [(x, ("_own_grad",)) for x in tensors]
    return guard
