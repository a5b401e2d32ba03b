"""What a statement that Python does at each call may do, by its words: what it changes, and what it may look at."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from genesis.base.errors import message
from genesis.base.tracebacks import LIBRARY
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable, HostNumber
from genesis.jit.compiling.leaves import (
    UNKNOWN,
    HostCall,
    NotKept,
    Setting,
    is_set,
)
from genesis.jit.compiling.library import original_of
from genesis.jit.compiling.pure import only_reads
from genesis.jit.compiling.stops import Anew
from genesis.jit.compiling.stores import sets_names
from genesis.jit.compiling.values import HostValue, Number
from genesis.jit.compiling.writers import (
    ARRAY_WRITES,
    CHANGING_FIRST,
    CONTAINERS,
    OF_NUMPY,
    OF_OPERATOR,
    OPERATORS,
    changes_items,
)
from genesis.jit.compiling.young import MADE_AT_RUN_TIME, MEMBERS, is_young, stores_in
from genesis.jit.guards import functions_in
from genesis.jit.traced import Cell, Traced

_CONTAINERS = (list, dict, set, deque)
_DESCRIPTORS = (MethodDescriptorType, WrapperDescriptorType)
_IN_C = (BuiltinFunctionType, MethodWrapperType, *_DESCRIPTORS)
_OF_ALL_TENSORS = ("grad", "data", "requires_grad")
_NUMBERS = ("item", "tolist", "shape", "size", "dim", "ndim", "numel", "dtype", "device")
_WITHOUT_HISTORY = (*_NUMBERS, "detach", "numpy", "data")
_OTHER_MEMORY = (*_NUMBERS, "clone", "sum", "mean")
_EXITS = ("exit", "quit")
_SETTING = ("__setattr__", "__delattr__")
_TELLING = ("get_last_lr", "get_scale", "state_dict")  # of this package: they say how things stand, and draw nothing
_DIVIDING = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
COMPUTED = object()  # what an expression gives: something of the trace


class Reading:
    """Looks up what the names in a statement are, and notes what it changes and whether it is blind."""

    def __init__(
        self,
        statement: FunctionType,
        cells: dict[str, CellType],
        call: HostCall,
        cell_of: Callable[[Tensor], Cell | None],
        is_open: Callable[[Tensor], bool],
    ) -> None:
        self.statement, self.globals, self.cells, self.call = statement, statement.__globals__, cells, call
        self.cell_of, self.is_open = cell_of, is_open
        self.constants: dict[int, Any] = {}  # what is assigned to nodes
        self.computed: set[str] = set()  # the variables of comprehensions that stand for what the trace computes

    def _with_history(self, statement: ast.stmt) -> None:
        """Refuse to hand out tensors that gradients would flow through: what is computed of them has no history there. Note
        those whose memory is handed out.
        """
        above = {id(child): node for node in ast.walk(statement) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in self.cells and is_set(self.cells[node.id]):
                x = contents(self.cells[node.id])
                cell = self.cell_of(x) if isinstance(x, Tensor) else None
                if cell is not None and not self._ends(node, above, _OTHER_MEMORY):
                    self.call.handed.append((cell, cell.written))
                if cell is not None and not self._ends(node, above, _WITHOUT_HISTORY):
                    self._refuse_history(node.id, x, statement)
            elif (
                isinstance(node, ast.Name)
                and node.id not in self.cells
                and not self._ends(node, above, _WITHOUT_HISTORY)
            ):
                self._refuse_history(node.id, self.globals.get(node.id), statement)

    def _refuse_history(self, name: str, x: Any, statement: ast.stmt) -> None:
        if not (isinstance(x, Tensor) and x._node is not None and not x._node.is_leaf and self.is_open(x)):
            return
        text, hint = (
            f"{name} leaves the compiled function at {self.call.title}, with a history",
            f"{name}.detach(), or {name}.item()",
        )
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return):
            text += ": Python does that statement at each call, for what it decides, draws or counts there"
            hint = "let Python do so outside, and pass it as an argument"
        raise NotKept(message("compile", text, hint=hint))

    def _ends(self, node: ast.expr, above: dict[int, Any], names: tuple[str, ...]) -> bool:
        """Whether an expression is a number, or text, when it comes to what it is used for, or one of these methods is
        called on the way.
        """
        inside, outer = node, above.get(id(node))
        while isinstance(outer, ast.expr):
            if isinstance(outer, ast.Attribute) and outer.attr in names:
                return True
            if isinstance(outer, ast.FormattedValue) or (isinstance(outer, ast.Call) and outer.func is not inside):
                return self._only_reads(outer)
            inside, outer = outer, above.get(id(outer))
        return False

    def _only_reads(self, node: ast.expr) -> bool:
        """Whether what is called gives no tensor that gradients would flow through, and keeps none."""
        function = self.value(node.func) if isinstance(node, ast.Call) else print
        known = (float, int, bool, str, repr, len, print, format, type, isinstance)
        if function is UNKNOWN or function is COMPUTED or isinstance(function, BuiltinFunctionType):
            return function in known or isinstance(getattr(function, "__self__", None), str)  # "{:.3f}".format
        inside = function.__func__ if isinstance(function, MethodType) else function
        if isinstance(inside, FunctionType):
            return _is_foreign(inside.__code__.co_filename)
        return function in known or _is_foreign(_file_of(function if isinstance(function, type) else type(function)))

    def read(self, statement: ast.stmt) -> None:
        self._with_history(statement)
        assigned = [n for n in ast.walk(statement) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)]
        parts = [n for n in ast.walk(statement) if isinstance(n, ast.comprehension)]
        names = [name for part in parts for name in self._computed_items(part)]
        self.computed = {name for name in names if self._stands_alone(name, statement)}
        self.constants = {id(target): n.value.value for n in assigned for target in n.targets}  # type: ignore[attr-defined]
        inner = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
        inner |= {id(n.func) for n in ast.walk(statement) if isinstance(n, ast.Call)}
        stores = [n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        inner |= {id(n.value) for n in stores if type(self.value(n.value)) in (dict, list)}
        own = {id(n) for part in parts for n in ast.walk(part.target)}  # of comprehensions
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        alone, unknown = not calls, [n for n in calls if self.value(n.func) is UNKNOWN]
        if len(unknown) == 1:  # what it changes the trace has seen
            self._named(UNKNOWN, *unknown)
        for node in ast.walk(statement):
            if isinstance(node, ast.AugAssign):
                self._added_to(node.target)
            if isinstance(node, ast.Attribute) and node.attr == "_version":
                raise NotKept(
                    message("compile", f"how often a tensor was written to is asked for at {self.call.title}")
                )
            if isinstance(node, ast.Attribute) and node.attr == "grad":
                self.call.blind, self.call.sees_gradients = False, True
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                self.call.may_raise = True
            if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, _DIVIDING):
                self.call.may_raise = True
            if isinstance(node, ast.Raise | ast.Assert):
                self.call.raises = self.call.may_raise = True
            elif isinstance(node, ast.Call):
                self._called(node)
            elif isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
                if isinstance(node.ctx, ast.Store | ast.Del) and id(node) not in own:
                    self._stored(node)
                elif isinstance(node.ctx, ast.Load) and id(node) not in inner:
                    self._looked_at(self.value(node), 3)
                if isinstance(held := self.value(node), CONTAINERS if alone else np.ndarray):
                    self.call.looks.append(held)

    def _computed_items(self, part: ast.comprehension) -> Iterator[str]:
        """The variable of a comprehension that stands for each item of a container, where all of them are computed."""
        held, target = part.iter, part.target
        method = held.func.attr if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else ""
        if method == "items" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
            target = target.elts[1]
        elif method not in ("", "values"):
            return
        items = self.value(held.func.value if method else held)  # type: ignore[attr-defined]
        if type(items) is dict and method:
            items = list(items.values())
        if isinstance(target, ast.Name) and type(items) in (list, tuple) and all([_seen(x) is COMPUTED for x in items]):
            yield target.id

    def _stands_alone(self, name: str, statement: ast.stmt) -> bool:
        """Whether the variable of a comprehension has its name for itself."""
        stores = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        inner = any([isinstance(n, ast.arg) and n.arg == name for n in ast.walk(statement)])
        outer = (name in self.cells and is_set(self.cells[name])) or name in self.globals or hasattr(builtins, name)
        return [n.id for n in stores].count(name) == 1 and not inner and not outer

    def value(self, node: ast.expr) -> Any:
        """What an expression is, without computing anything."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return ""
        if isinstance(node, ast.Name):
            if node.id in self.computed:
                return COMPUTED
            if node.id in self.cells:
                return _seen(contents(self.cells[node.id]))
            return _seen(self.globals.get(node.id, getattr(builtins, node.id, UNKNOWN)))
        if isinstance(node, ast.Attribute):
            return _attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Call):
            function = self.value(node.func)
            if function is vars and len(node.args) == 1:
                return getattr(self.value(node.args[0]), "__dict__", UNKNOWN)
            return COMPUTED if function is COMPUTED else UNKNOWN
        if isinstance(node, ast.Subscript):
            held, key = self.value(node.value), self._key(node.slice)
            if isinstance(held, dict | list | tuple) and key is not UNKNOWN:
                try:
                    return _seen(held[key])
                except (KeyError, IndexError, TypeError):
                    return UNKNOWN
        return UNKNOWN

    def _key(self, node: ast.expr) -> Any:
        """What an item is looked up by: a number or text."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            key = self._key(node.operand)
            return -key if type(key) is int else UNKNOWN
        key = self.value(node)
        return key if type(key) in (int, str) else UNKNOWN

    def _stored(self, node: ast.Attribute | ast.Subscript | ast.Name) -> None:
        if isinstance(node, ast.Name):
            if node.id not in self.cells:
                self.call.changes.append((self.globals, node.id))
            elif not isinstance(contents(self.cells[node.id]), HostValue | Number):
                self.call.changes.append((self.cells[node.id], None))
            return
        held = self.value(node.value)
        if isinstance(node, ast.Attribute) and node.attr not in _OF_ALL_TENSORS and self._is_tensor(node.value, held):
            text = f"a tensor gets an attribute {node.attr} at {self.call.title}, by what Python does"
            raise NotKept(message("compile", text))
        if isinstance(node, ast.Subscript):
            self._refuse_write(node.value)
            if held is UNKNOWN:
                self.call.unknown.append(self._key(node.slice))
            elif (key := self._key(node.slice)) is not UNKNOWN:
                self.call.named.append((held, (key,)))
            self._changed(held, node.value)
        elif isinstance(getattr(held, "__dict__", None), dict) and not isinstance(held, Tensor):
            if LIBRARY[_file_of(type(held))]:
                self.call.blind = False
                setting = Setting(held, node.attr, self.constants.get(id(node), UNKNOWN))
                if setting.changes(held):
                    self.call.sets.append(setting)
                    self.call.changes.append((held.__dict__, None))
            else:
                self.call.changes.append((held.__dict__, node.attr))
                members = [held.__dict__.get(name, {}) for name in MEMBERS if isinstance(held, Dependable)]
                self.call.changes += [(inside, node.attr) for inside in members if node.attr in inside]
        else:
            self.call.blind = False
            if isinstance(getattr(type(held), node.attr, None), MemberDescriptorType):
                self.call.changes.append((held, node.attr))  # what is in a slot is in the object itself
            if held is UNKNOWN or isinstance(held, type):  # which has no dictionary that nobody else knows
                self.call.sets.append(Setting(UNKNOWN, node.attr, self.constants.get(id(node), UNKNOWN)))

    def _is_tensor(self, node: ast.expr, held: Any) -> bool:
        own = isinstance(node, ast.Name) and node.id in self.cells and is_set(self.cells[node.id])
        return isinstance(contents(self.cells[node.id]) if own else held, Tensor)  # type: ignore[attr-defined]

    def _added_to(self, target: ast.expr) -> None:
        """``target += value`` writes to a list or an array that is there, besides storing it."""
        if isinstance(target, ast.Name):
            self._refuse_write(target)
        if isinstance(held := self.value(target), CONTAINERS) or held is COMPUTED:
            self._changed(held, target)

    def _refuse_write(self, target: ast.expr) -> None:
        """Refuse a write to a tensor of the trace, or through a view of one from outside: it would come behind what is
        computed of it.
        """
        above = {id(child): node for node in ast.walk(target) for child in ast.iter_child_nodes(node)}
        for node in [n for n in ast.walk(target) if isinstance(n, ast.Name | ast.Attribute)]:
            own = isinstance(node, ast.Name) and node.id in self.cells and is_set(self.cells[node.id])
            x = contents(self.cells[node.id]) if own else self.value(node)  # type: ignore[union-attr]
            if node is target:  # one from outside changes, see `_changed`
                written = isinstance(x, Tensor) and self._holds_own(x)
            else:
                written = isinstance(x, Tensor) or self._holds_own(x)
            if written and not self._ends(node, above, _NUMBERS):
                text = f"{ast.unparse(node)} is written to at {self.call.title}, by what Python computes"
                raise NotKept(message("compile", text))

    def _holds_own(self, x: Any) -> bool:
        """Whether something is a tensor of the trace, or a container with one."""
        if isinstance(x, dict | list | tuple):
            return any([self._holds_own(y) for y in (x.values() if isinstance(x, dict) else x)])
        return isinstance(x, Tensor) and self.cell_of(x) is not None

    def _changed(self, held: Any, node: ast.expr) -> None:
        """A container changes; so does what the attribute is that holds it."""
        if held is UNKNOWN or held is COMPUTED:
            self.call.blind = self.call.blind and held is COMPUTED
            self.call.changes_given |= held is COMPUTED
            return
        if isinstance(node, ast.Name) and node.id in self.cells and isinstance(held, CONTAINERS) and is_young(held):
            raise Anew(node.id)
        self.call.changes.append((held, None))
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            if isinstance(getattr(owner, "__dict__", None), dict):
                self.call.changes.append((owner.__dict__, node.attr))

    def _called(self, node: ast.Call) -> None:
        function = self.value(node.func)
        for array in _written_by(function, node):
            if isinstance(held := self.value(array), np.ndarray) or held is COMPUTED:
                self._changed(held, array)
        self.call.may_raise = self.call.may_raise or not (
            isinstance(function, BuiltinFunctionType) or self._takes_out(function, node)
        )
        if function is COMPUTED:
            return
        if isinstance(function, _IN_C):
            self._called_in_c(function, node)
            self.call.raises = self.call.raises or function is sys.exit
            return
        if isinstance(function, FunctionType | MethodType) and function.__name__ in CHANGING_FIRST and node.args:
            self._changed(self.value(node.args[0]), node.args[0])
        inside = function.__func__ if isinstance(function, MethodType) else function
        if isinstance(inside, FunctionType):
            if inside.__name__ in _SETTING and isinstance(node.func, ast.Attribute):
                self._first_changed([*([node.func.value] if inside is not function else []), *node.args])
            ours = LIBRARY[inside.__code__.co_filename]
            known = not ours and _is_foreign(inside.__code__.co_filename)
            self.call.draws = self.call.draws or not (known or (ours and inside.__name__ in _TELLING))
            self.call.raises = self.call.raises or inside.__name__ in _EXITS
            functions = [] if known else [*functions_in(inside, set())]
            self.call.sees_gradients |= any(["grad" in f.__code__.co_names for f in functions])
            self.call.may_set |= {name for f in (*functions, *_methods_of(function)) for name in sets_names(f.__code__)}
            if any([changes_items(f.__code__) for f in functions]):
                self._handed_to_a_writer(node)
        elif function is UNKNOWN:
            known, self.call.draws = False, True
        else:
            kind = function if isinstance(function, type) else type(function)
            known = not isinstance(function, Dependable) and _is_foreign(_file_of(kind))
            self.call.draws = self.call.draws or not known
            self.call.raises |= any([function is vars(builtins).get(name, sys) for name in _EXITS])
        self.call.blind = self.call.blind and known

    def _takes_out(self, function: Any, node: ast.Call) -> bool:
        """Whether a call only takes the number out of a tensor of the trace: ``x.item()``, ``float(x)``."""
        (x,) = node.args if len(node.args) == 1 and not node.keywords else (None,)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            x = node.func.value
        elif function is not float:
            return False
        own = isinstance(x, ast.Name) and x.id in self.cells and is_set(self.cells[x.id])
        held = contents(self.cells[x.id]) if own else None  # type: ignore[union-attr]
        return isinstance(held, Number) or (isinstance(held, Tensor) and held.numel() == 1 and not held.is_complex())

    def _handed_to_a_writer(self, node: ast.Call) -> None:
        """A function of the program gets containers, and may change their items."""
        for x in [x for part in (*node.args, *node.keywords) for x in ast.walk(part)]:
            if isinstance(x, ast.Name | ast.Attribute):
                held = self.value(x)
                if isinstance(held, CONTAINERS) or held is COMPUTED:
                    self._changed(held, x)

    def _called_in_c(self, function: Any, node: ast.Call) -> None:
        """What a function in C changes: that whose method it is, or its first argument."""
        owner, arguments = getattr(function, "__self__", None), node.args
        if owner is None or isinstance(owner, ModuleType):
            owner = self.value(arguments[0]) if arguments else None
            if function not in OF_OPERATOR and not isinstance(function, _DESCRIPTORS):
                if function in (setattr, delattr):
                    self._first_changed(arguments)
                elif function.__name__ in CHANGING_FIRST:
                    self._changed(owner, arguments[0])
                return
        elif isinstance(node.func, ast.Attribute):
            arguments = [node.func.value, *arguments]
        if function.__name__ in _SETTING:
            self._first_changed(arguments)
        elif isinstance(owner, CONTAINERS) and not only_reads(owner, function.__name__):
            self._changed(owner, arguments[0] if arguments else node.func)
            self._named(owner, node)

    def _named(self, held: Any, node: ast.Call) -> None:
        """``held.update(name=value)``"""
        names = [keyword.arg for keyword in node.keywords]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "update" and not node.args and all(names):
            self.call.named.append((held, tuple(names)))

    def _first_changed(self, arguments: list[ast.expr]) -> None:
        """What ``setattr(x, name, value)`` changes."""
        held = self.value(arguments[0])
        inside = getattr(held, "__dict__", None)
        key = self._key(arguments[1]) if len(arguments) > 1 else UNKNOWN
        if isinstance(held, type) and type(key) is str:
            self.call.sets.append(Setting(UNKNOWN, key, UNKNOWN))
        elif isinstance(held, type):
            self.call.unknown.append(UNKNOWN)
        if isinstance(inside, dict):
            self.call.changes.append((inside, key if type(key) is str else None))

    def _looked_at(self, value: Any, depth: int) -> None:
        """A statement gets something: may it lead to tensors of the outside?"""
        if value is COMPUTED or isinstance(value, (*PLAIN, ModuleType, type)):
            return
        if value is UNKNOWN:
            return  # a call, or an item: those are looked at by themselves
        if isinstance(value, list | tuple | set | dict | deque):
            items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            for item in [x for x, _ in zip(items, range(64), strict=False)] if depth else ():
                self._looked_at(_seen(item), depth - 1)
        elif isinstance(value, FunctionType | MethodType | BuiltinFunctionType):
            self.call.blind = self.call.blind and isinstance(value, BuiltinFunctionType)
        elif isinstance(value, Tensor | Dependable) or not _is_foreign(_file_of(type(value))):
            self.call.blind = False


def _methods_of(function: Any) -> Iterator[FunctionType]:
    """The other methods that a method calls by name, and what these call."""
    seen, pending = set[FunctionType](), [function.__func__] if isinstance(function, MethodType) else []
    while pending:
        names = pending.pop().__code__.co_names
        methods = [getattr(type(function.__self__), name, None) for name in names]
        new = [f for f in methods if isinstance(f, FunctionType) and f not in seen]
        seen.update(new)
        pending += new
        yield from new


def _written_by(function: Any, node: ast.Call) -> list[ast.expr]:
    """What a call writes to, where that is an array."""
    written = [keyword.value for keyword in node.keywords if keyword.arg == "out"]
    written += node.args[function.nin :] if isinstance(function, np.ufunc) else []
    if isinstance(node.func, ast.Attribute) and node.func.attr in ARRAY_WRITES | OPERATORS:
        written.append(node.func.value)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(function, "__name__", "")
    return written + (node.args[:1] if name in OF_NUMPY | CHANGING_FIRST else [])


def _seen(value: Any) -> Any:
    value = original_of(value)
    traced = isinstance(value, Number | HostValue | HostNumber)
    return COMPUTED if traced or (isinstance(value, Tensor) and isinstance(value._array, Traced)) else value


def _attribute(value: Any, name: str) -> Any:
    if value is COMPUTED or value is UNKNOWN:
        return value
    if isinstance(value, ModuleType | str) or type(value) in _CONTAINERS or name == "__dict__":
        return original_of(getattr(value, name, UNKNOWN))
    stores = list(stores_in(value, name))
    inside = stores[-1][2] if stores else None
    if isinstance(inside, property | staticmethod | classmethod) or inside is None:
        return UNKNOWN
    of_class = not (isinstance(getattr(value, "__dict__", None), dict) and name in value.__dict__)
    if isinstance(inside, MethodDescriptorType) and of_class and isinstance(value, _CONTAINERS):
        return inside.__get__(value)  # of a class made of one of these: a defaultdict, a Counter
    return MethodType(inside, value) if isinstance(inside, FunctionType) and of_class else _seen(inside)


def _file_of(kind: type) -> str:
    """The file of a class; "" where it is one of Python in C: which code that runs without a file only seems to be."""
    module = sys.modules.get(kind.__module__)
    if kind.__module__ in sys.builtin_module_names and not (kind.__flags__ & MADE_AT_RUN_TIME):
        return ""
    if kind.__module__ in sys.builtin_module_names and vars(module).get(kind.__qualname__) is kind:
        return ""
    return getattr(module, "__file__", None) or "<unknown>"


def _is_foreign(name: str) -> bool:
    """Whether a file is of Python, or of a package that is installed; those in C have none."""
    return not name or (
        not LIBRARY[name] and ("site-packages" in name or name.startswith(os.path.dirname(os.__file__)))
    )
