"""Functions of your own in the place of ops, and new names: `register_function`, `register_operation`."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call import overrides
from genesis.core.call.op import REGISTRY, Op
from genesis.core.functions.function import Function
from genesis.core.graph.switches import OVERRIDES


class Registration:
    """What registering returns: ``remove()`` undoes it, and so does the end of a ``with``."""

    def __init__(self, name: str, function: Callable[..., Any], undo: Callable[[Registration], None]) -> None:
        self.name, self.function, self._undo = name, function, undo
        self.active = True

    def remove(self) -> None:
        """Undo the registration; calling it again does nothing."""
        if self.active:
            self.active = False
            self._undo(self)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<registration of {self.name!r}: {_title(self.function)}{'' if self.active else ', removed'}>"


def _title(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))


_FUNCTIONS: list[Registration] = []
_OPERATIONS: dict[str, Registration] = {}


def register_function(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Put ``function`` in the place of the op ``name``, everywhere, until it is removed. A `Function` class stands for
    its ``apply``.

    Operators, methods and functions of that name call it with what the user wrote; arguments left at their defaults are
    left out. Inside it and in every backward the op is what it was, and so is ``genesis.ops.<name>`` in the forward of
    any `Function`: an override can be written with the op it replaces. In-place forms (``add_``) are ops of their own
    and stay as they are.

    Returns:
        a `Registration`: call ``remove()`` or use it in a ``with``; without ``function``, a decorator

    Raises:
        ValueError: there is no op of that name, or it cannot be replaced
        TypeError: ``function`` is not callable

    >>> import genesis
    >>> from genesis.autograd.forms.functions import MulFunction
    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.ops.register_function("mul", MulFunction):
    ...     (x * x).grad_fn
    <MulFunctionBackward>
    >>> (x * x).grad_fn
    <MulBackward>
    """
    if function is None:
        return lambda f: (register_function(name, f), f)[1]
    op = _op(name)
    function = _called("register_function", name, function)
    made = Registration(op.name, function, _forget_function)
    with overrides.changing:
        overrides.add(op, function)
        setattr(sys.modules["genesis.ops"], op.name, overrides.guarded_form(op.call))
        _FUNCTIONS.append(made)
    return made


def unregister_function(name: str) -> None:
    """Undo the newest registration for the op ``name``; what was registered before it, or the op, counts again.

    Raises:
        ValueError: nothing is registered for it

    >>> import genesis
    >>> _ = genesis.ops.register_function("relu", lambda x: x.clamp(min=0))
    >>> genesis.ops.unregister_function("relu")
    """
    registrations = [r for r in _FUNCTIONS if r.name == _op(name).name]
    if not registrations:
        raise ArgumentValueError(
            message(
                "unregister_function",
                f"no function is registered for {name!r}",
                hint=f"registered: {_listed(registered_functions())}",
            )
        )
    registrations[-1].remove()


def registered_functions() -> dict[str, Callable[..., Any]]:
    """The functions that stand in the place of ops now, by the op's name.

    >>> import genesis
    >>> genesis.ops.registered_functions()
    {}
    """
    return {r.name: r.function for r in _FUNCTIONS}


def register_operation(name: str, function: Callable[..., Any] | None = None) -> Any:
    """Make ``function`` (of a `Function` class its ``apply``) an operation: ``genesis.<name>``, ``genesis.ops.<name>``.

    Returns:
        a `Registration`: call ``remove()`` or use it in a ``with``; without ``function``, a decorator

    Raises:
        ValueError: not a name, or one that Genesis has already
        TypeError: ``function`` is not callable

    >>> import genesis
    >>> with genesis.ops.register_operation("triple", lambda x: x * 3):
    ...     genesis.triple(genesis.ones(2))
    tensor([3., 3.])
    """
    if function is None:
        return lambda f: (register_operation(name, f), f)[1]
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ArgumentValueError(
            message("register_operation", f"{name!r} cannot be a name", hint="use letters, digits and underscores")
        )
    function = _called("register_operation", name, function)
    for module in _spaces():
        if name in dir(module):
            what = "it was registered before; remove that first" if name in _OPERATIONS else "it is a name of Genesis"
            raise ArgumentValueError(
                message(
                    "register_operation",
                    f"{module.__name__}.{name} exists already: {what}",
                    hint="to change what an op does, use register_function",
                )
            )
    made = Registration(name, function, _forget_operation)
    _OPERATIONS[name] = made
    for module in _spaces():
        setattr(module, name, function)
    return made


def unregister_operation(name: str) -> None:
    """Take a name away that `register_operation` made.

    Raises:
        ValueError: there is none
    """
    if name not in _OPERATIONS:
        raise ArgumentValueError(
            message(
                "unregister_operation",
                f"no operation {name!r} is registered",
                hint=f"registered: {_listed(_OPERATIONS)}",
            )
        )
    _OPERATIONS[name].remove()


def _spaces() -> list[ModuleType]:
    return [sys.modules["genesis"], sys.modules["genesis.ops"]]


def _forget_function(made: Registration) -> None:
    op = REGISTRY[made.name]
    with overrides.changing:
        _FUNCTIONS.remove(made)
        overrides.take_away(op, made.function)
        if op.name not in OVERRIDES:
            setattr(sys.modules["genesis.ops"], op.name, op.call)


def _forget_operation(made: Registration) -> None:
    del _OPERATIONS[made.name]
    for module in _spaces():
        delattr(module, made.name)


def _called(what: str, name: str, function: Any) -> Callable[..., Any]:
    """What is called for something that was registered: itself, or ``apply`` of a `Function` class."""
    if isinstance(function, type) and Function in function.__mro__:  # nodes of ops count as subclasses, too
        return function.apply  # type: ignore[attr-defined, no-any-return]
    if not callable(function):
        hint = "pass a Function class, or any function of tensors"
        raise ArgumentError(
            message(what, f"what is registered as {name!r} must be callable, got {type(function).__name__}", hint=hint)
        )
    if isinstance(function, type) and hasattr(function, "apply"):
        raise ArgumentError(message(what, f"{function.__name__} is a class", hint=f"pass {function.__name__}.apply"))
    return function  # type: ignore[no-any-return]


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"


def _op(name: str) -> Op:
    """The op of a name, or of another name for it (``multiply`` for ``mul``)."""
    public = getattr(sys.modules["genesis.ops"], "PUBLIC", {})
    op = REGISTRY.get(name) or getattr(public.get(name), "op", None)
    if op is None:
        import difflib

        near = difflib.get_close_matches(str(name), {**REGISTRY, **public}, 3)
        problem = (
            f"{name!r} is made of other operations or creates tensors; only ops can be replaced"
            if name in public
            else f"there is no op {name!r}"
        )
        hint = (
            f"did you mean {', '.join(near)}?"
            if near and name not in public
            else "`python -m genesis.ops` lists the ops"
        )
        raise ArgumentValueError(message("register_function", problem, hint=hint))
    return op
