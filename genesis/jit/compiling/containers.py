"""The containers in arguments and results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def containers_in(x: Any) -> list[Any]:
    """The lists and dictionaries in arguments."""
    if not isinstance(x, list | dict | tuple):
        return []
    inside = [y for item in (x.values() if isinstance(x, dict) else x) for y in containers_in(item)]
    return inside if isinstance(x, tuple) else [x, *inside]


def within(x: Any) -> Iterator[Any]:
    """All containers in arguments: lists, dictionaries, tuples, and those of the fields of dataclasses."""
    if is_dataclass(x) and not isinstance(x, type):
        yield x
        yield from within(getattr(x, "__dict__", None) or {f.name: getattr(x, f.name) for f in fields(x)})
    elif isinstance(x, list | dict | tuple):
        yield x
        for item in x.values() if isinstance(x, dict) else x:
            yield from within(item)
