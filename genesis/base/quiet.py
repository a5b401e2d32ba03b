"""NumPy's warnings stay inside: IEEE arithmetic has answers for log(0) and overflow, and they are the results.

A filter of warnings would be everybody's, and is gone wherever somebody sets filters, as pytest does for every test.
`np.errstate` costs 1 us a call, more than an addition. Two ways cost less:

- `unnamed`: the function in a namespace without a name, where CPython drops warnings that C code gives (`warn_explicit`
  in its Python/_warnings.c); for functions that call ufuncs themselves. No cost for a call. Python functions that it
  calls, if they compute, are to be unnamed, too, or called `quietly`.
- `quietly`: a call in a context that NumPy was told to be silent in; for kernels that are Python functions. 0.4 us, half
  of it because NumPy and the modes look their variables up anew in another context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_namespaces: dict[int, dict[str, Any]] = {}
_contexts: list[Context] = []  # those that no call is in


def unnamed(function: Any) -> Any:
    """A copy of the function whose module has no name, so that no warning of C code it calls is given. It sees what its
    module has when the last of its functions is made unnamed.
    """
    space = function.__globals__
    namespace = _namespaces.setdefault(id(space), {})
    namespace |= space
    namespace["__name__"] = None
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    if function.__qualname__ == function.__name__ and space.get(function.__name__, function) is function:
        namespace[function.__name__] = copy  # as a decorator: others of the module, and itself, call the copy
    return copy


def silent(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as it gives no warnings: a ufunc called by an `unnamed` function, an `unnamed` kernel, `unnamed` now if
    it calls C and such functions only, else `quietly`. One that chooses between others says how (``silenced``).
    """
    if isinstance(kernel, FunctionType) and "silenced" in kernel.__dict__:
        form: Callable[[], Callable[..., Any]] = kernel.__dict__["silenced"]
        return form()
    if isinstance(kernel, np.ufunc) or _is_unnamed(kernel):
        return kernel
    return unnamed(kernel) if _calls_c_only(kernel) else partial(quietly, kernel)


def _is_unnamed(value: Any) -> bool:
    return isinstance(value, FunctionType) and value.__globals__.get("__name__", "") is None


def _calls_c_only(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel uses no Python function, in whose frame a warning would be given."""
    if not isinstance(kernel, FunctionType) or kernel.__closure__:
        return False
    names = set(_names(kernel.__code__))
    used = [kernel.__globals__.get(name) for name in names]
    modules = [np, *[value for value in used if isinstance(value, ModuleType)]]
    used += [vars(module).get(name) for module in modules for name in names]
    return not any(_computes_in_python(value) for value in used)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _computes_in_python(value: Any) -> bool:
    value = getattr(value, "__wrapped__", value)  # of NumPy's functions
    return isinstance(value, FunctionType) and not _is_unnamed(value)


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


def directly(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """``kernel(*arguments)`` of a kernel that gives no warnings: `quietly` only where NumPy is told to raise errors."""
    try:
        return kernel(*arguments)
    except FloatingPointError:
        return quietly(kernel, *arguments)
