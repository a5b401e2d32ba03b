"""What questions of numbers of the host look at, by what they are made of."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from genesis.core.functions.captures import contents
from genesis.jit.compiling.leaves import UNKNOWN


def looked_up(ask: Any) -> set[int]:
    """What a question looks at: dictionaries and objects, by id."""
    holder = getattr(ask, "holder", None)
    if holder is not None:
        return {id(holder)}
    parts = getattr(ask, "parts", None)
    if parts is None:
        parts = [contents(cell) for cell in getattr(ask, "__closure__", None) or ()]
        return {id(x) for x in parts}.union(*[looked_up(x) for x in parts if isinstance(x, FunctionType)])
    return set().union(*[looked_up(x) for x in parts if callable(x)])


def keys_of(ask: Any) -> set[Any]:
    """By what a question looks items up; `UNKNOWN` stands for any."""
    if isinstance(ask, dict):
        return {*ask, UNKNOWN}
    keys, parts = getattr(ask, "keys", None), getattr(ask, "parts", None)
    if keys is not None:
        return {*keys, UNKNOWN}
    if parts is None:
        parts = [contents(cell) for cell in getattr(ask, "__closure__", None) or ()]
    return set().union(*[keys_of(x) for x in parts if callable(x) or isinstance(x, dict)])
