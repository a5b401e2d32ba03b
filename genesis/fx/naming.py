"""Names of values, functions and types in graphs and in the Python that is written for them.

Functions of Genesis have PyTorch's names there: ``torch`` is the module `genesis`.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import keyword
import math
import re
import types
from collections.abc import Callable
from typing import Any

import genesis
from genesis.base.device import device
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor

# modules whose names functions have, in this order
_MODULES = ("", "nn.functional", "linalg", "fft", "special", "nn.init", "overrides")
_OTHERWISE = {"divide": "div", "true_divide": "div"}  # what PyTorch calls a function whose name here is another

# what the code of a graph can say without an import
GLOBALS: dict[str, Any] = {
    "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": genesis, "device": device,
}  # fmt: skip
IMPORTS = "from math import inf, nan\n\nimport genesis as torch\nfrom genesis import device\n\nNoneType = type(None)\n"
_TAKEN = {**dict.fromkeys(keyword.kwlist), **vars(builtins), **GLOBALS}
_SUFFIX = re.compile(r"(.+?)_(\d+)")


class Namespace:
    """Names that are used already, and the objects that have one."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name for an object that nothing else has; for None, one that is not kept with it."""
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        split = _SUFFIX.fullmatch(candidate)
        base = split[1] if split else candidate
        if split and candidate not in self._used:
            count = int(split[2])
        else:
            count = self._counts.get(base, 0)
            if _TAKEN.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        while candidate in self._used:
            count += 1
            candidate = f"{base}_{count}"
        self._used.add(candidate)
        self._counts[base] = count
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Keep a name with an object."""
        self._names.setdefault(obj, name)

    def rename_object(self, obj: Any, name: str) -> None:
        """Give an object another name."""
        self._names[obj] = name
        self._used.add(name)


def snake_case(name: str) -> str:
    """A name in small letters: ``batchNorm`` is ``batch_norm``."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


def is_ours(obj: Any) -> bool:
    return str(getattr(obj, "__module__", None)).partition(".")[0] == "genesis"


@functools.cache
def _methods() -> dict[Any, str]:
    """The methods of tensors, and what they are called; one under several names by that which it has itself."""
    methods: dict[Any, str] = {}
    for name, method in vars(Tensor).items():
        if isinstance(method, types.FunctionType) and (method not in methods or method.__name__ == name):
            methods[method] = name
    return methods


def method_name(function: Callable[..., Any]) -> str:
    """What a method of tensors is called."""
    name = function.__name__
    if not hasattr(Tensor, name) or (name.startswith("_") and not name.startswith("__")):
        name = _methods()[function]
    return _OTHERWISE.get(name, name)


def is_method(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function in _methods()


def function_name(function: Callable[..., Any]) -> str:
    """What a function is called, alone."""
    name = method_name(function) if is_method(function) else getattr(function, "__name__", type(function).__name__)
    return _OTHERWISE.get(name, name) if is_ours(function) else name


def public_path(obj: Any) -> str | None:
    """The dotted name under ``torch`` of an object of Genesis: what a program calls it, where it has such a name."""
    word = getattr(obj, "__name__", None)
    if not is_ours(obj) or not isinstance(word, str):
        return None
    if isinstance(obj, type):
        return _of_class(obj)
    for room in _MODULES:
        module = importlib.import_module(f"genesis.{room}" if room else "genesis")
        short = word.removeprefix(f"{room}_")
        for name in (_OTHERWISE.get(word, word), word, short):
            if getattr(module, name, None) is obj:
                return f"torch.{room}.{name}" if room else f"torch.{name}"
    return f"torch.Tensor.{method_name(obj)}" if is_method(obj) else None


def _of_class(cls: type) -> str | None:
    rooms = [("torch", genesis), ("torch.nn", genesis.nn)]
    for prefix, module in rooms:
        if getattr(module, cls.__name__, None) is cls:
            return f"{prefix}.{cls.__name__}"
    return None


def qualified_name(function: Any) -> str:
    """The dotted name of a function, by which graphs are printed and their code calls it.

    Raises:
        ValueError: it has none, as a lambda inside of an expression
    """
    name = getattr(function, "__name__", None)
    if name is None:
        return str(getattr(function, "_qualified_op_name", None) or function)
    if getattr(builtins, name, None) is function:
        return str(name)
    ours = public_path(function)
    if ours is not None:
        return ours
    if name == "<lambda>":
        try:
            name = inspect.getsource(function).split("=")[0].strip()
        except (OSError, TypeError) as error:
            raise ArgumentValueError(message("torch.fx", "Unable to represent lambda")) from error
    return f"{function.__module__}.{name}"


def target_name(target: Any) -> str:
    """How a target is printed in a graph."""
    if isinstance(target, str):
        return target
    name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
    if name is not None and module in ("builtins", "_operator"):
        return f"{module.strip('_')}.{name}"
    return qualified_name(target)


def type_name(kind: Any) -> str:
    """How a type is printed in an annotation."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        ours = public_path(kind)
        if ours is not None:
            return ours
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return re.sub(r"\bgenesis\.core\.graph\.tensor\.Tensor\b", "torch.Tensor", repr(kind))


def value_name(value: Any) -> str:
    """How a value that is no node is written: dtypes, layouts and devices as programs write them."""
    text = repr(value)
    return f"torch.{text[8:]}" if is_ours(type(value)) and text.startswith("genesis.") else text
