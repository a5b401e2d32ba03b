"""Functions made of source text, where a general one would cost every call a loop over its parameters."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
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


@functools.cache
def _compiled(source: str) -> CodeType:
    """Ops have few signatures between them: the same text is compiled once."""
    return compile(source, "<genesis>", "exec")
