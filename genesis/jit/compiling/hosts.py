"""What Python does in a compiled call besides computing with tensors: kept while the function is traced, done at each call.

A statement that is kept (see `statements.py`) is called with what it reads: what was computed stands for the tensors of the
trace, everything else is as it was. It is done when all has been computed; or before, if it may look at tensors that
the function writes to behind it, or if numbers that it changes are asked for behind it.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from genesis.base.errors import GraphError, message
from genesis.base.tracebacks import LIBRARY
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import PLAIN, Dependable, HostNumber
from genesis.jit.compiling.effects import _is_young, _stores
from genesis.jit.compiling.statements import KNOWN
from genesis.jit.compiling.values import HostValue, Number
from genesis.jit.traced import Traced

_CONTAINERS = (list, dict, set, deque)
_ENDS = ("item", "tolist", "detach", "numpy", "shape", "size", "dim", "ndim", "numel", "dtype", "device", "data")
_COMPUTED, _UNKNOWN = object(), object()  # what an expression gives: something of the trace, or nobody knows


class NotKept(GraphError):
    """A statement that Python cannot do at each call."""


Now = Callable[[Any], Any]  # what a leaf is in this call


class Leaf:
    """Something that a statement reads and that is another thing at each call."""

    __slots__ = ()

    def now(self, values: Any, given: Any, done: Any) -> Any:
        raise NotImplementedError


class Told(Leaf):
    """A tensor that was computed, or its element: ``index`` is that of the results of the step."""

    __slots__ = ("index", "number")

    def __init__(self, index: int, number: bool) -> None:
        self.index, self.number = index, number

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return values[self.index].item() if self.number else wrap(values[self.index])


class Argument(Leaf):
    """An argument of the function."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return given[self.index]


class Result(Leaf):
    """What another statement has given (0), or has set."""

    __slots__ = ("call", "index")

    def __init__(self, call: int, index: int) -> None:
        self.call, self.index = call, index

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return done[self.call][self.index]


class Asked(Leaf):
    """A number of the host."""

    __slots__ = ("ask",)

    def __init__(self, ask: Callable[[], float]) -> None:
        self.ask = ask

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return self.ask()


class Unread(Leaf):
    """What a statement has changed, and something reads behind it: what is there then."""

    __slots__ = ("held", "name")

    def __init__(self, held: Any, name: Any) -> None:
        self.held, self.name = held, name

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return contents(self.held) if isinstance(self.held, CellType) else self.held[self.name]


class Container(Leaf):
    """A container that the function made: it is made anew."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: type, items: list[Any]) -> None:
        self.kind, self.items = kind, items

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return self.kind([x.now(values, given, done) if isinstance(x, Leaf) else x for x in self.items])


class HostCall:
    """Something that Python does at each call.

    Attributes:
        title: where it is
        build: gives the function, and the cells of what it sets, for what its leaves are now
        told: which of what was computed it reads
        early: whether it comes before the step writes to tensors
        changes: dictionaries, lists and cells that it writes to; with the name of an entry where only that is written
        blind: whether it can look at no tensors but those that it is given
        raises: whether it is there to stop the function
    """

    def __init__(self, title: str, build: Callable[[Now], tuple[Callable[[], Any], tuple[CellType, ...]]]) -> None:
        self.title, self.build = title, build
        self.told: list[int] = []
        self.changes: list[tuple[Any, Any]] = []
        self.blind, self.raises, self.early = True, False, False
        self.draws = False  # whether it may draw random numbers
        self.handed: list[tuple[Any, int]] = []  # the memory of tensors that it gets, and how often that was written to
        self.stamp: tuple[int, ...] = ()

    def __call__(self, values: Any, given: Any, done: list[Any]) -> None:
        """Do it; ``done`` is what the calls before have given, and gets what this one gives."""
        function, cells = self.build(lambda leaf: leaf.now(values, given, done) if isinstance(leaf, Leaf) else leaf)
        result = function()
        done.append((result, *[contents(cell) for cell in cells]))


class Hosts:
    """What Python does in one trace."""

    def __init__(self, tracer: Any) -> None:
        self.tracer, self.calls = tracer, list[HostCall]()
        self.tensors: list[Tensor] = []  # what they are told
        self.containers: list[Any] = []  # lists and dictionaries among the arguments
        self._changed: list[tuple[Any, Any, Any]] = []

    # ---- keeping

    def statement(self, statement: FunctionType, own: tuple[str, ...], sets: tuple[str, ...]) -> HostValue:
        """Keep a statement; what it sets are `HostValue`s from now on."""
        code, index = statement.__code__, len(self.calls)
        title = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        cells = dict(zip(code.co_freevars, statement.__closure__ or (), strict=True))
        told = list[int]()
        leaves = {name: self._leaf(contents(cells[name]), told, title) for name in own if _is_set(cells[name])}
        others = {name: cell for name, cell in cells.items() if name not in own}
        scope = statement.__globals__

        def build(now: Now) -> tuple[Callable[[], Any], tuple[CellType, ...]]:
            filled = {name: CellType(now(leaves[name])) if name in leaves else CellType() for name in own}
            inside = tuple([(filled | others)[name] for name in code.co_freevars])
            return FunctionType(code, scope, code.co_name, None, inside), tuple([filled[n] for n in sets])

        call = HostCall(title, build)
        _Reading(statement, cells, call, self.tracer._is_open).read(KNOWN[code.co_filename, code.co_firstlineno])
        self._keep(call, told)
        for i, name in enumerate(sets):
            cells[name].cell_contents = HostValue(Result(index, i + 1), title)
        return HostValue(Result(index, 0), title)

    def action(self, function: Callable[..., Any], args: tuple[Any, ...], changes: Iterable[Any]) -> None:
        """Keep a call of a function of this package, which looks at no tensors but those that it is given."""
        told = list[int]()
        title = getattr(function, "__qualname__", "a function")
        leaves = [self._leaf(x, told, title) for x in args]
        call = HostCall(title, lambda now: ((lambda: function(*[now(leaf) for leaf in leaves])), ()))
        call.changes = list(changes)
        self._keep(call, told)

    def _keep(self, call: HostCall, told: list[int]) -> None:
        call.told, call.stamp = told, self._stamp()
        self.calls.append(call)
        for held, name in call.changes:
            self._change(held, name, len(self.calls), call.title)

    def _leaf(self, x: Any, told: list[int], title: str) -> Any:
        """What stands for something that is read."""
        if isinstance(x, HostValue):
            return x.leaf
        if isinstance(x, HostNumber):
            return Asked(x.ask)
        if isinstance(x, Number):
            return self._told(x.tensor, True, told)
        if isinstance(x, Tensor):
            if not isinstance(x._array, Traced):
                return x
            for i, capture in enumerate(self.tracer.arguments):
                if capture.tensor() is x and not capture.cell.written:
                    return Argument(i)
            return self._told(x, False, told)
        if any([x is held for held in self.containers]):
            raise NotKept(message("compile", f"a {type(x).__name__} among the arguments is read or changed at {title}"))
        if type(x) is tuple or (type(x) in (list, set, dict) and _is_young(x)):
            items = list(x.items()) if type(x) is dict else list(x)
            return Container(type(x), [self._leaf(item, told, title) for item in items])
        if type(x) in PLAIN or isinstance(x, type | ModuleType) or not _is_young(x):
            return x
        if isinstance(x, FunctionType) and not x.__closure__:
            return x
        raise NotKept(
            message("compile", f"the {type(x).__name__} that a statement reads at {title} is made anew at each call")
        )

    def _told(self, tensor: Tensor, number: bool, told: list[int]) -> Told:
        self.tensors.append(wrap(self.tracer.value(tensor.detach())))  # type: ignore[attr-defined]
        told.append(len(self.tensors) - 1)
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
            for held, name, before in reversed(self._changed):
                if isinstance(held, CellType):
                    held.cell_contents = before
                elif name is not None and before is _UNKNOWN:
                    held.pop(name, None)
                elif name is not None:
                    held[name] = before

    def _change(self, held: Any, name: Any, call: int, title: str) -> None:
        """A statement changes something: who reads it in the trace from now on, gets a `HostValue`."""
        if isinstance(held, CellType):
            before = contents(held)
            held.cell_contents = HostValue(Unread(held, None), title)
        elif isinstance(held, dict) and name is not None:
            before = held.get(name, _UNKNOWN)
            held[name] = HostValue(Unread(held, name), title)
        else:
            before = None
        self._changed.append((held, name, before))

    # ---- when they are done

    def settle(self) -> None:
        """The function has returned: which statements come before what is written to tensors?"""
        self.containers = []  # they hold tensors of the trace
        end = self._stamp()
        needed = [self._when(i, call, end) for i, call in enumerate(self.calls)]
        last = max([i for i, early in enumerate(needed) if early], default=-1)
        for i, call in enumerate(self.calls):
            call.early = i <= last
            if call.draws and self.tracer.streams:
                raise self._refused(call, "it may draw random numbers, and so does the function")
            if any([cell.written != count for cell, count in call.handed]):
                raise self._refused(call, "a tensor that it gets is written to behind it")
            call.handed = []
            if call.early and any(call.stamp[:2]):
                raise self._refused(call)

    def _when(self, index: int, call: HostCall, end: tuple[int, ...]) -> bool:
        """Whether a statement has to come early; or else it must not."""
        before, behind = self._numbers(index, call)
        last = call.stamp == end if not call.blind else call.stamp[:2] == end[:2]
        if behind and before:
            raise self._refused(call, "numbers that it changes are asked for before and behind it")
        if behind or (call.raises and not last and not before and not any(call.stamp[:2])):
            return True
        if last or call.blind:
            return False
        if before:
            raise self._refused(call)
        return True

    def _refused(self, call: HostCall, why: str = "") -> NotKept:
        text = why or "tensors are written to before and behind it, and it may look at them"
        return NotKept(message("compile", f"what Python does at {call.title} cannot be done apart: {text}"))

    def _numbers(self, index: int, call: HostCall) -> tuple[bool, bool]:
        """Whether numbers that a statement changes are asked for before it, and behind it."""
        changed = {id(held) for held, _ in call.changes}
        asked_behind = [self.tracer.asked_behind[var] for var, ask in self.tracer.numbers if changed & _looked_up(ask)]
        return any([b <= index for b in asked_behind]), any([b > index for b in asked_behind])


def containers_in(x: Any) -> list[Any]:
    """The lists and dictionaries in arguments."""
    if not isinstance(x, list | dict | tuple):
        return []
    inside = [y for item in (x.values() if isinstance(x, dict) else x) for y in containers_in(item)]
    return inside if isinstance(x, tuple) else [x, *inside]


def _is_set(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _looked_up(ask: Any) -> set[int]:
    """What a question looks at: dictionaries and objects, by id."""
    holder = getattr(ask, "holder", None)
    if holder is not None:
        return {id(holder)}
    parts = getattr(ask, "parts", None)
    if parts is None:
        parts = [contents(cell) for cell in getattr(ask, "__closure__", None) or ()]
        return {id(x) for x in parts}.union(*[_looked_up(x) for x in parts if isinstance(x, FunctionType)])
    return set().union(*[_looked_up(x) for x in parts if callable(x)])


# ---- what a statement may do, by its words


class _Reading:
    """Looks up what the names in a statement are, and notes what it changes and whether it is blind."""

    def __init__(
        self, statement: FunctionType, cells: dict[str, CellType], call: HostCall, is_open: Callable[[Tensor], bool]
    ) -> None:
        self.globals, self.cells, self.call, self.is_open = statement.__globals__, cells, call, is_open

    def _with_history(self, statement: ast.stmt) -> None:
        """Refuse to hand out tensors that gradients would flow through: what is computed of them has no history there."""
        above = {id(child): node for node in ast.walk(statement) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in self.cells and _is_set(self.cells[node.id]):
                x = contents(self.cells[node.id])
                traced = isinstance(x, Tensor) and isinstance(x._array, Traced)
                if not traced or self._ends(node, above):
                    continue
                self.call.handed.append((x._array.cell, x._array.cell.written))
                if x._node is not None and not x._node.is_leaf and self.is_open(x):
                    text = f"{node.id} leaves the compiled function at {self.call.title}, with a history"
                    raise NotKept(message("compile", text, hint=f"{node.id}.detach(), or {node.id}.item()"))

    def _ends(self, node: ast.expr, above: dict[int, Any]) -> bool:
        """Whether an expression is a number, or text, when it comes to what it is used for."""
        inside, outer = node, above.get(id(node))
        while isinstance(outer, ast.expr):
            if isinstance(outer, ast.Attribute) and outer.attr in _ENDS:
                return True
            if isinstance(outer, ast.FormattedValue) or (isinstance(outer, ast.Call) and outer.func is not inside):
                function = self._value(outer.func) if isinstance(outer, ast.Call) else print
                known = (float, int, bool, str, repr, len, print, format, type, isinstance)
                kind = function if isinstance(function, type) else type(function)
                return function in known or (
                    not isinstance(function, BuiltinFunctionType) and _is_foreign(_file_of(kind))
                )
            inside, outer = outer, above.get(id(outer))
        return False

    def read(self, statement: ast.stmt) -> None:
        self._with_history(statement)
        inner = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
        inner |= {id(n.func) for n in ast.walk(statement) if isinstance(n, ast.Call)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Raise | ast.Assert):
                self.call.raises = True
            elif isinstance(node, ast.Call):
                self._called(node)
            elif isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
                if isinstance(node.ctx, ast.Store | ast.Del):
                    self._stored(node)
                elif id(node) not in inner:
                    self._looked_at(self._value(node), 3)

    def _value(self, node: ast.expr) -> Any:
        """What an expression is, without computing anything."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return ""
        if isinstance(node, ast.Name):
            if node.id in self.cells:
                return _seen(contents(self.cells[node.id]))
            return _seen(self.globals.get(node.id, getattr(builtins, node.id, _UNKNOWN)))
        if isinstance(node, ast.Attribute):
            return _attribute(self._value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return _COMPUTED if self._value(node.func) is _COMPUTED else _UNKNOWN
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            held = self._value(node.value)
            if isinstance(held, dict | list | tuple):
                try:
                    return _seen(held[node.slice.value])  # type: ignore[call-overload]
                except (KeyError, IndexError, TypeError):
                    return _UNKNOWN
        return _UNKNOWN

    def _stored(self, node: ast.Attribute | ast.Subscript | ast.Name) -> None:
        if isinstance(node, ast.Name):
            if node.id not in self.cells:
                self.call.changes.append((self.globals, node.id))
            elif not isinstance(contents(self.cells[node.id]), HostValue | Number):
                self.call.changes.append((self.cells[node.id], None))
            return
        held = self._value(node.value)
        if isinstance(node, ast.Subscript):
            self._changed(held, node.value)
        elif isinstance(getattr(held, "__dict__", None), dict) and not isinstance(held, Tensor):
            if LIBRARY[_file_of(type(held))]:
                self.call.blind = False
                self.call.changes.append((held.__dict__, None))
            else:
                self.call.changes.append((held.__dict__, node.attr))
        else:
            self.call.blind = False

    def _changed(self, held: Any, node: ast.expr) -> None:
        """A container changes; so does what the attribute is that holds it."""
        if held is _UNKNOWN or held is _COMPUTED:
            self.call.blind = self.call.blind and held is _COMPUTED
            return
        self.call.changes.append((held, None))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(getattr(owner, "__dict__", None), dict):
                self.call.changes.append((owner.__dict__, node.attr))

    def _called(self, node: ast.Call) -> None:
        function = self._value(node.func)
        if function is _COMPUTED:
            return
        if isinstance(function, BuiltinFunctionType):
            if isinstance(function.__self__, _CONTAINERS) and isinstance(node.func, ast.Attribute):
                self._changed(function.__self__, node.func.value)
            if node.func == "exit":
                self.call.raises = True
            return
        inside = function.__func__ if isinstance(function, MethodType) else function
        if isinstance(inside, FunctionType):
            known = not LIBRARY[inside.__code__.co_filename] and _is_foreign(inside.__code__.co_filename)
            self.call.draws = self.call.draws or not known
            self.call.raises = self.call.raises or inside.__name__ in ("exit", "quit")
        elif function is _UNKNOWN:
            known, self.call.draws = False, True
        else:
            known = _is_foreign(_file_of(function if isinstance(function, type) else type(function)))
        self.call.blind = self.call.blind and known

    def _looked_at(self, value: Any, depth: int) -> None:
        """A statement gets something: may it lead to tensors of the outside?"""
        if value is _COMPUTED or isinstance(value, (*PLAIN, ModuleType, type)):
            return
        if value is _UNKNOWN:
            return  # a call, or an item: those are looked at by themselves
        if isinstance(value, list | tuple | set | dict | deque):
            items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            for item in [x for x, _ in zip(items, range(64), strict=False)] if depth else ():
                self._looked_at(_seen(item), depth - 1)
        elif isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
            self.call.blind = self.call.blind and isinstance(value, BuiltinFunctionType)
        elif isinstance(value, Tensor | Dependable) or not _is_foreign(_file_of(type(value))):
            self.call.blind = False


def _seen(value: Any) -> Any:
    traced = isinstance(value, Number | HostValue | HostNumber)
    return _COMPUTED if traced or (isinstance(value, Tensor) and isinstance(value._array, Traced)) else value


def _attribute(value: Any, name: str) -> Any:
    if value is _COMPUTED or value is _UNKNOWN:
        return value
    if isinstance(value, ModuleType | str) or type(value) in _CONTAINERS:
        return getattr(value, name, _UNKNOWN)
    stores = list(_stores(value, name))
    inside = stores[-1][2] if stores else None
    if isinstance(inside, property | staticmethod | classmethod) or inside is None:
        return _UNKNOWN
    of_class = not (isinstance(getattr(value, "__dict__", None), dict) and name in value.__dict__)
    return MethodType(inside, value) if isinstance(inside, FunctionType) and of_class else _seen(inside)


def _file_of(kind: type) -> str:
    """The file of a class; "" where it is one of Python in C."""
    module = sys.modules.get(kind.__module__)
    builtin = kind.__module__ in sys.builtin_module_names
    return "" if builtin else getattr(module, "__file__", None) or "<unknown>"


def _is_foreign(name: str) -> bool:
    """Whether a file is of Python, or of a package that is installed; those in C have none."""
    return not name or (
        not LIBRARY[name] and ("site-packages" in name or name.startswith(sysconfig.get_path("stdlib")))
    )
