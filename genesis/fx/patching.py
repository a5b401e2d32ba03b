"""What is exchanged while a program is traced: functions that were wrapped, and the calls of modules."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, TypeVar

from genesis.base.errors import ArgumentError, message
from genesis.fx.node import map_aggregate
from genesis.fx.proxy import Proxy

F = TypeVar("F", bound=Callable[..., Any] | str)
WRAPPED: dict[tuple[int, str], dict[str, Any]] = {}  # by the namespace and name of a function, where it stands
OWN_WRAPPED = "_wrapped_functions"  # in the namespace of a graph's code: the names there
_ABSENT = object()


def wrap(fn_or_name: F) -> F:
    """Record calls of a function as one node, instead of looking into it: at the top of a module, by name or as a decorator.

    >>> import genesis
    >>> genesis.fx.wrap("len")
    'len'
    >>> genesis.fx.symbolic_trace(lambda x: len(x)).graph.find_nodes(op="call_function")
    [len_1]

    Raises:
        TypeError: neither a function nor a name, or not at the top of a module
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise ArgumentError(message("torch.fx.wrap", f"expected a function or the name of one, got {fn_or_name!r}"))
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise ArgumentError(message("torch.fx.wrap", "wrap must be called at the top level of a module"))
    WRAPPED[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def first_proxy(*values: Any) -> Proxy | None:
    """A proxy in nested arguments."""
    every: list[Proxy] = []
    map_aggregate(values, lambda x: every.append(x) if isinstance(x, Proxy) else None)
    return every[0] if every else None


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls with proxies are nodes."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    wrapped.__fx_already_patched = True  # type: ignore[attr-defined]
    return wrapped


class ProxyableClassMeta(type):
    """The class of classes whose objects may be made of proxies: making one is a node then.

    >>> import genesis
    >>> from genesis.fx.patching import ProxyableClassMeta
    >>> class Pair(metaclass=ProxyableClassMeta):
    ...     def __init__(self, left, right): self.left, self.right = left, right
    >>> [node.name for node in genesis.fx.symbolic_trace(lambda x: Pair(x, x).left).graph.nodes]
    ['x', 'pair', 'getattr_1', 'output']
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = first_proxy(args, kwargs)
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


class Patcher(AbstractContextManager["Patcher"]):
    """Exchanges functions in namespaces; at the end of the ``with`` they are what they were."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []
        self._visited: set[int] = set()

    def patch(self, owner: Any, name: str, value: Any) -> None:
        """Exchange a name in a dictionary, or an attribute of a class."""
        held = owner if isinstance(owner, dict) else vars(owner)
        self._undo.append((owner, name, held.get(name, _ABSENT)))
        _put(owner, name, value)

    def __exit__(self, *_: object) -> None:
        while self._undo:
            _put(*self._undo.pop())
        self._visited.clear()

    def wrapped_functions(self) -> None:
        """Exchange what `wrap` was called for."""
        for (_, name), namespace in WRAPPED.items():
            function = namespace.get(name, getattr(builtins, name, None))
            if function is not None and not _is_patched(function):
                self.patch(namespace, name, recorded(function))

    def autowrap(self, namespace: dict[str, Any], functions: set[int]) -> None:
        """Exchange those of some functions that a namespace has, and those that the code of a graph names."""
        if id(namespace) in self._visited:
            return
        self._visited.add(id(namespace))
        own = namespace.get(OWN_WRAPPED, ())
        for name, value in list(namespace.items()):
            known = not name.startswith("_") and callable(value) and id(value) in functions
            if (known or name in own) and not _is_patched(value):
                self.patch(namespace, name, recorded(value))


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        if value is _ABSENT:
            del owner[name]
        else:
            owner[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _is_patched(function: Any) -> bool:
    return "__fx_already_patched" in getattr(function, "__dict__", {})


def functions_in(modules: tuple[ModuleType, ...]) -> set[int]:
    """The functions that modules have, by their identity."""
    public = [value for module in modules for name, value in vars(module).items() if not name.startswith("_")]
    return {id(value) for value in public if callable(value) and not inspect.isclass(value)}
