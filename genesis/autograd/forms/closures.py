"""What a function holds besides its arguments.

`take_apart` makes a container of a function: what it captured and its defaults are leaves, so that tensors among
them can be saved by a node like any others (checked for writes, freed, handed to hooks).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import islice
from types import CellType, FunctionType, MethodType
from typing import Any

from genesis.base.pytree import tree_flatten, tree_unflatten
from genesis.core.functions.captures import contents, names_in
from genesis.core.graph.tensor import Tensor

Rebuild = Callable[[list[Any]], Any]


def take_apart(value: Any, within: tuple[int, ...] = ()) -> tuple[list[Any], Rebuild]:
    """The leaves of a value, those inside its functions included, and what puts other leaves in their places.

    >>> def scaled(by):
    ...     return lambda x: x * by[0]
    >>> leaves, rebuild = take_apart(scaled([3]))
    >>> leaves
    [3]
    """
    if isinstance(value, Tensor):
        return [value], _first
    flat, structure = tree_flatten(value)
    inner = [_parts(leaf, within) for leaf in flat]
    leaves: list[Any] = []
    for leaf, part in zip(flat, inner, strict=True):
        leaves += [leaf] if part is None else part[0]

    def rebuild(new: list[Any]) -> Any:
        rest = iter(new)
        return tree_unflatten(
            [next(rest) if part is None else part[1](list(islice(rest, len(part[0])))) for part in inner], structure
        )

    return leaves, rebuild


def _first(new: list[Any]) -> Any:
    return new[0]


def _parts(f: Any, within: tuple[int, ...]) -> tuple[list[Any], Rebuild] | None:
    """A function, partial or bound method as leaves; None for anything else, and for a function inside itself."""
    if id(f) in within:
        return None
    within = (*within, id(f))
    if isinstance(f, FunctionType):
        leaves, make = _function_parts(f, within)
    elif isinstance(f, functools.partial):
        leaves, rebuild = take_apart((f.func, f.args, f.keywords), within)

        def make(new: list[Any]) -> Any:
            func, args, keywords = rebuild(new)
            return functools.partial(func, *args, **keywords)
    elif isinstance(f, MethodType):
        leaves, rebuild_method = take_apart((f.__func__, f.__self__), within)
        make = lambda new: MethodType(*rebuild_method(new))
    else:
        return None
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        return leaves, lambda _: f
    return leaves, make


def _function_parts(f: FunctionType, within: tuple[int, ...]) -> tuple[list[Any], Rebuild]:
    """Captured variables, one after the other, then the defaults. A cell without tensors stays the cell it is."""
    cells = [(cell, *take_apart(contents(cell), within)) for cell in f.__closure__ or ()]
    defaults, rebuild_defaults = [], None
    if f.__defaults__ or f.__kwdefaults__:
        defaults, rebuild_defaults = take_apart((f.__defaults__, f.__kwdefaults__), within)
    leaves = [leaf for _, inside, _ in cells for leaf in inside] + defaults

    def rebuild(new: list[Any]) -> Any:
        rest = iter(new)
        closure = []
        for cell, inside, put_together in cells:
            parts = list(islice(rest, len(inside)))
            holds = any(isinstance(leaf, Tensor) for leaf in inside)
            closure.append(CellType(put_together(parts)) if holds else cell)
        made = FunctionType(f.__code__, f.__globals__, f.__name__, None, tuple(closure))
        if rebuild_defaults is not None:
            made.__defaults__, made.__kwdefaults__ = rebuild_defaults(list(rest))
        return made

    return leaves, rebuild


def global_tensors(f: Any) -> list[Tensor]:
    """Tensors that a function reads as global variables."""
    if not isinstance(f, FunctionType):
        return []
    values = [f.__globals__.get(name) for name in names_in(f.__code__)]
    return [x for x in values if isinstance(x, Tensor)]
