"""What a function can see besides its arguments: its closure, its globals, the attributes of its objects.

A tensor that requires grad and is read from there is none of a rule's inputs: it is found, named and refused (or,
where the rule asks for it, made one), see `core/functions/calling.py` and
`genesis.autograd.forms.captures`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from genesis.core.graph.lost import Reads
from genesis.core.graph.node import edge_key, next_number
from genesis.core.graph.tensor import Tensor

_DEPTH = 6  # attributes of attributes: `self.block.attention.query.weight` has five names
_PLAIN = (int, float, complex, str, bytes, type, ModuleType, BuiltinFunctionType, np.ufunc, np.dtype)


def may_reach_tensors(f: Any) -> bool:
    """Whether a function's closure or globals hold anything but modules, classes, numbers, and functions of the same
    kind.
    """
    ahead, seen = [f], set()
    while ahead:
        value = ahead.pop()
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen.add(id(value))
        if not isinstance(value, FunctionType) or len(seen) > 200:
            return True
        # functions of other packages are trusted to be functions of their arguments
        if value is f or _package(value) == _package(f):
            ahead.extend(child for _, child in _children(value, ""))
    return False


def _package(f: FunctionType) -> str:
    return (f.__module__ or "").partition(".")[0]


def watch_reads(edges: Any) -> Reads:
    """A context manager that notes the edges of tensors with history that are used in a forward, other than its
    arguments'.
    """
    return Reads({edge_key(e) for e in edges if e is not None}, next_number())


def contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


@functools.lru_cache(maxsize=1024)
def names_in(code: CodeType) -> tuple[str, ...]:
    """Names that the code, and the functions written inside it, look up outside of themselves."""
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in names_in(const)]
    return tuple(dict.fromkeys([*code.co_names, *inner]))


def captured(f: Any, args: Any = ()) -> Iterator[tuple[str, Tensor]]:
    """Tensors that require grad within a function's reach: closure, globals, and attributes of what is there.

    ``args`` is searched for objects, ``self`` above all.
    """
    seen: set[int] = set()
    yield from _reach(f, "", seen, _DEPTH)
    for index, arg in enumerate(args if isinstance(args, tuple) else ()):
        if not isinstance(arg, Tensor):
            yield from _reach(arg, _parameter(f, index), seen, _DEPTH)


def _parameter(f: Any, index: int) -> str:
    while isinstance(f, MethodType):
        f, index = f.__func__, index + 1
    names = f.__code__.co_varnames[: f.__code__.co_argcount] if isinstance(f, FunctionType) else ()
    return names[index] if index < len(names) else f"argument {index}"


def _reach(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Tensor]]:
    if id(value) in seen or depth < 0 or isinstance(value, ModuleType | type):
        return
    seen.add(id(value))
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield name, value
        return
    for inner, child in _children(value, name):
        yield from _reach(child, inner, seen, depth - 1)


def _children(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        yield from zip(value.__code__.co_freevars, map(contents, value.__closure__ or ()), strict=True)
        yield from ((g, value.__globals__[g]) for g in names_in(value.__code__) if g in value.__globals__)
        yield from _numbered(name, (value.__defaults__ or ()))
    elif isinstance(value, functools.partial):
        yield from [("", value.func), *_numbered("", value.args), *value.keywords.items()]
    elif isinstance(value, MethodType):
        yield from [("self", value.__self__), ("", value.__func__)]
    elif isinstance(value, list | tuple):
        yield from _numbered(name, value)
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", child) for key, child in value.items())
    else:
        for key, child in vars(value).items() if isinstance(getattr(value, "__dict__", None), dict) else ():
            if key.startswith("_") and isinstance(child, dict):  # where a module keeps what its attributes are
                yield from ((f"{name}.{inner}", c) for inner, c in child.items() if isinstance(inner, str))
            else:
                yield f"{name}.{key}", child


def _numbered(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    return ((f"{name}[{i}]", value) for i, value in enumerate(values))
