"""Classes that say what functions do with their objects: ``__torch_function__``; `genesis.core.call.subclasses` asks them.

    class Length:
        def __init__(self, meters): self.meters = meters

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[x.meters if isinstance(x, cls) else x for x in args], **(kwargs or {})))

    genesis.add(Length(genesis.ones(2)), Length(genesis.ones(2))).meters  # tensor([2., 2.])

A subclass of `Tensor` without one gets results of its own class. A program that defines none pays nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import genesis
from genesis.core.call.refusal import explain_all
from genesis.core.call.subclasses import asked, close_mode, disabled, handled, is_disabled, open_mode, overridable
from genesis.core.graph.tensor import Tensor


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of one of these says what functions do with it; parameters and plain tensors do not.

    >>> import genesis
    >>> genesis.overrides.has_torch_function([genesis.ones(1)])
    False
    """
    return any([asked(x) for x in relevant_args])


def has_torch_function_unary(arg: Any) -> bool:
    """`has_torch_function` of one argument.

    >>> import genesis
    >>> genesis.overrides.has_torch_function_unary(genesis.ones(1))
    False
    """
    return asked(arg)


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several arguments.

    >>> import genesis
    >>> genesis.overrides.has_torch_function_variadic(genesis.ones(1), 2)
    False
    """
    return any([asked(x) for x in args])


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of ``relevant_args`` make of a call of ``public_api``: subclasses are asked first, else in order.

    Raises:
        TypeError: all of them returned NotImplemented

    >>> import genesis
    >>> class Silent:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None): return func.__name__
    >>> genesis.overrides.handle_torch_function(genesis.exp, [Silent()], Silent())
    'exp'
    """
    return handled(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Give a function of one's own the protocol: ``dispatcher`` says which of its arguments are asked.

    >>> import genesis
    >>> @genesis.overrides.wrap_torch_function(lambda x: (x,))
    ... def double(x): return 2 * x
    >>> double(3)
    6
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = list(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handled(wrapped, relevant, args, kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


class TorchFunctionMode:
    """While it is open, every call of a public function comes to its ``__torch_function__``, with or without tensors.

    Inside of that, the modes around it are asked, or nobody.

    >>> import genesis
    >>> class Counting(genesis.overrides.TorchFunctionMode):
    ...     names = []
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.names.append(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Counting() as mode:
    ...     y = genesis.ones(2).exp()
    >>> mode.names
    ['ones', 'exp']
    """

    inner: Any = None

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> Any:
        open_mode(self)
        return self

    def __exit__(self, *_: object) -> None:
        close_mode(self)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a tensor, or of a class with ``__torch_function__``.

    >>> import genesis
    >>> genesis.overrides.is_tensor_like(genesis.ones(1)), genesis.overrides.is_tensor_like(1)
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that ask the classes of their arguments, by the module or class that has them.

    >>> import genesis
    >>> genesis.add in genesis.overrides.get_overridable_functions()[genesis]
    True
    """
    return {owner: list(functions.values()) for owner, functions in overridable().items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions of ``genesis`` that ask nobody: they make tensors, or have none among their arguments.

    >>> import genesis
    >>> genesis.manual_seed in genesis.overrides.get_ignored_functions()
    True
    """
    asking = overridable()[genesis]
    return {f for name in dir(genesis) if inspect.isfunction(f := getattr(genesis, name)) and name not in asking}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden one with its signature that returns -1.

    >>> import genesis
    >>> genesis.overrides.get_testing_overrides()[genesis.exp](genesis.ones(1))
    -1
    """

    def answer(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def override(*args: Any, **kwargs: Any) -> int:
            signature.bind(*args, **kwargs)
            return -1

        override.__signature__ = signature  # type: ignore[attr-defined]
        return override

    return {f: answer(f) for functions in overridable().values() for f in functions.values()}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that a class is asked about is a method of `Tensor`.

    >>> import genesis
    >>> genesis.overrides.is_tensor_method_or_property(genesis.Tensor.add)
    True
    """
    return func in overridable()[Tensor].values()


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The name of a function that can be overridden.

    >>> import genesis
    >>> genesis.overrides.resolve_name(genesis.add)
    'genesis.add'
    """
    for owner, functions in overridable().items():
        for name, function in functions.items():
            if function is f:
                return f"{'genesis.Tensor' if owner is Tensor else owner.__name__}.{name}"
    return None


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any = None) -> Any:
    """The function as it is, without asking anybody.

    >>> import genesis
    >>> genesis.overrides.redispatch_function(genesis.add, (), (genesis.ones(1), 1))
    tensor([2.])
    """
    with disabled():
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """No effect: an override may always call functions that ask others.

    >>> import genesis
    >>> with genesis.overrides.enable_reentrant_dispatch(): pass
    """
    return nullcontext()


explain_all(globals(), "is_tensor_like", "resolve_name")

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "disabled",
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_disabled",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]
