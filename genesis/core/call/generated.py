"""Functions made of source text, where a general one would cost every call a loop over its parameters."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import CodeType
from typing import Any


def generated(source: str, name: str, filename: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function ``call`` that the source defines, under a name and a file of its own; tracebacks show its lines."""
    exec(_compiled(source), scope)
    function = scope.pop("call")
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name, co_filename=filename)
    function.__name__ = function.__qualname__ = name
    linecache.cache[filename] = (lambda: source,)  # read when somebody asks
    return function  # type: ignore[no-any-return]


def defined(parameters: Iterable[Parameter], scope: dict[str, Any]) -> list[str]:
    """Parameters as a definition has them; their defaults are values of the scope."""
    parts: list[str] = []
    star = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if p.default is p.empty:
            parts.append(_stars(p) + p.name)
        else:
            scope[f"_default_{p.name}"] = p.default
            parts.append(f"{p.name}=_default_{p.name}")
    return parts


def passed(parameters: Iterable[Parameter]) -> str:
    """Parameters as they are handed on to a function that has the same."""
    return ", ".join(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else _stars(p) + p.name for p in parameters)


def _stars(p: Parameter) -> str:
    return "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""


@functools.cache
def _compiled(source: str) -> CodeType:
    """Ops have few signatures between them: the same text is compiled once."""
    return compile(source, "<genesis>", "exec")
