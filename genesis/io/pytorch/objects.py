"""Objects of a program's own classes: what they are written as, and how they are made again."""

from __future__ import annotations

import copyreg
import enum
import sys
from collections import OrderedDict
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, SimpleNamespace
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Tensor
from genesis.io.pytorch.names import resolve
from genesis.io.pytorch.opcodes import Unpickler
from genesis.io.pytorch.safe import SAFE
from genesis.io.source import Damaged

NAMED = (type, FunctionType, BuiltinFunctionType)  # written as the name that they are found under


class Parts:
    """What Python's protocol says that an object is made of.

    Attributes:
        made_by, args: a class or a function, and what it is called with; ``new``: by ``__new__``
        state, items, pairs: what it is given then
    """

    __slots__ = ("args", "items", "made_by", "new", "pairs", "state")

    def __init__(self, value: Any) -> None:
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = value.__reduce_ex__(2) if reduce is None else reduce(value)
        except Exception as error:
            raise _cannot(value, str(error)) from error
        if not isinstance(parts, tuple):
            raise _cannot(value, "it stands for a name")
        self.made_by, self.args, self.state, items, pairs = (*parts, None, None, None)[:5]
        self.new = getattr(self.made_by, "__name__", "") == "__newobj__"
        if self.new:
            self.made_by, self.args = self.args[0], self.args[1:]
        if self.made_by is getattr and isinstance(value, enum.Enum):  # some versions of Python say it so
            self.made_by, self.args = type(value), (value.value,)
        self.items, self.pairs = list(items or ()), dict(pairs or ())

    def values(self) -> tuple[Any, ...]:
        return (*self.args, self.state, *self.items, *self.pairs.values())


def name_of(value: Any) -> str:
    """Module and name of a class or a function.

    Raises:
        TypeError: it is not found there: a lambda, or what a function defines
    """
    module, name = getattr(value, "__module__", None) or "__main__", value.__qualname__
    if _looked_up(module, name) is not value:
        raise _cannot(value, f"it is not found as {module}.{name}")
    return f"{module} {name}"


def _looked_up(module: str, name: str) -> Any:
    """What a module that is imported has under a name; None where it has nothing."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, "__dict__", {}).get(part)
    return value


def _cannot(value: Any, why: str) -> ArgumentError:
    name = getattr(value, "__qualname__", None) or type(value).__name__
    hint = "of a module or an optimizer save its state_dict()"
    return ArgumentError(message("save", f"cannot save {name} in PyTorch's format: {why}", hint=hint))


class UnpicklerOfObjects(Unpickler):
    """Reads objects of classes of the program, too: of modules that it has imported, or of those in `SAFE`. Functions are
    found, none is called but a ``__setstate__`` of such a class, and what is in `SAFE`: an object is made empty and gets
    its state.
    """

    def __init__(self, data: Any, storage: Any, encoding: str, safe_only: bool) -> None:
        super().__init__(data, _resolve_safe if safe_only else _resolve, storage, encoding)
        self._made: dict[int, Any] = {}

    def reduce(self) -> None:
        kind, args = self._stack[-2:] if len(self._stack) > 1 else (None, None)
        if _may_be_called(kind, args):
            self._stack[-2:] = [kind(*args)]  # type: ignore[misc]
        elif isinstance(kind, type) and type(args) is tuple:
            self._stack[-2:] = [self._new(kind, args)]
        elif kind is getattr and _names_a_member(args):
            self._stack[-2:] = [args[0].__members__[args[1]]]
        else:
            super().reduce()

    def new(self) -> None:
        kind, args = self._stack[-2:] if len(self._stack) > 1 else (None, None)
        if _may_be_called(kind, args):
            self._stack[-2:] = [kind.__new__(kind, *args)]  # type: ignore[misc, call-overload]
        else:
            self.reduce()

    def _new(self, kind: type, args: Any) -> Any:
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return tuple.__new__(kind, args)
        if issubclass(kind, enum.Enum) and len(args) == 1 and args[0] in kind._value2member_map_:
            return kind._value2member_map_[args[0]]
        if issubclass(kind, PurePath) and all(isinstance(part, str) for part in args):
            return kind(*args)
        if args != () or kind.__new__ not in _EMPTY:
            raise Damaged(f"is refused: an object of {kind.__qualname__} is not made without a call", "save its state")
        made = kind.__new__(kind)
        self._made[id(made)] = made
        return made

    def _append(self, items: list[Any]) -> None:
        target = self._top()
        if isinstance(target, list) and id(target) in self._made:
            list.extend(target, items)
        else:
            super()._append(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict) or id(target) not in self._made:
            super()._set_items(items)
            return
        put = OrderedDict.__setitem__ if isinstance(target, OrderedDict) else dict.__setitem__
        for key, value in zip(items[::2], items[1::2], strict=True):
            put(target, self.key(key), value)

    def build(self) -> None:
        target, state = self._stack[-2:] if len(self._stack) > 1 else (None, None)
        if id(target) not in self._made:
            super().build()
            return
        self._stack.pop()
        set_state = getattr(type(target), "__setstate__", None)
        if set_state is not None:
            set_state(target, state)
        elif type(state) is dict:
            target.__dict__.update(state)
        else:
            raise Damaged(f"is refused: the state of {type(target).__qualname__} is no dict", "save its state")

    def key(self, value: Any) -> Any:
        return value if isinstance(value, Tensor) else super().key(value)

    def checked(self, root: Any) -> Any:
        return root


def _may_be_called(kind: Any, args: Any) -> bool:
    """Whether the program says that it is safe to call this, and the file has arguments for it."""
    return type(args) is tuple and args != () and any(kind is value for value in SAFE.values())


def _names_a_member(args: Any) -> bool:
    """Whether the arguments of ``getattr`` are an enumeration and the name of one of its members, as some versions of Python
    write that; nothing else is looked up so.
    """
    if type(args) is not tuple or len(args) != 2:
        return False
    kind, name = args
    return isinstance(kind, enum.EnumMeta) and type(name) is str and name in kind.__members__


# how objects begin that a class makes as these do, without code of its own
_EMPTY = tuple(base.__new__ for base in (object, dict, OrderedDict, list, SimpleNamespace))


_GETATTR = ("builtins", "getattr"), ("__builtin__", "getattr")


def _resolve_safe(module: str, name: str) -> Any:
    try:
        return resolve(module, name)
    except Damaged:
        if f"{module}.{name}" not in SAFE:
            raise
        return SAFE[f"{module}.{name}"]


def _resolve(module: str, name: str) -> Any:
    try:
        return resolve(module, name)
    except Damaged:
        value = getattr if (module, name) in _GETATTR else _looked_up(module, name)
        if value is getattr or isinstance(value, type | FunctionType) or value is ...:
            return value
        raise
