"""NumPy's warnings stay inside: IEEE arithmetic has answers for log(0) and overflow, and they are the results.

A filter of warnings would be everybody's, and is gone wherever somebody sets filters, as pytest does for every test.
`np.errstate` costs 1 us a call, more than an addition. Two ways cost less:

- `unnamed`: the function in a namespace without a name, where CPython drops warnings that C code gives (`warn_explicit`
  in its Python/_warnings.c); for the fast paths, which call a ufunc themselves. No cost for a call.
- `quietly`: a call in a context that NumPy was told to be silent in; for kernels that are Python functions. 0.1 us.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

_namespaces: dict[int, dict[str, Any]] = {}
_contexts: list[Context] = []  # those that no call is in


def unnamed(function: Any) -> Any:
    """A copy of the function whose module has no name, so that no warning of C code it calls is given."""
    space = function.__globals__
    namespace = _namespaces.setdefault(id(space), {})
    namespace |= space
    namespace["__name__"] = None
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return copy


def silent(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as an `unnamed` function may call it: a ufunc itself, `unnamed` too if it calls C only, else
    `quietly`.
    """
    if isinstance(kernel, np.ufunc):
        return kernel
    return unnamed(kernel) if _calls_c_only(kernel) else partial(quietly, kernel)


def _calls_c_only(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel uses no Python function, in whose frame a warning would be given."""
    if not isinstance(kernel, FunctionType) or kernel.__closure__:
        return False
    names = kernel.__code__.co_names
    used = [kernel.__globals__.get(name) for name in names] + [vars(np).get(name) for name in names]
    return not any(isinstance(value, FunctionType) or callable(getattr(value, "__wrapped__", None)) for value in used)


def quietly(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """``kernel(*arguments)`` without NumPy's warnings. Context variables have their defaults inside."""
    try:
        context = _contexts.pop()
    except IndexError:
        context = Context()
        context.run(np.seterr, all="ignore")
    try:
        return context.run(kernel, *arguments)
    finally:
        _contexts.append(context)
