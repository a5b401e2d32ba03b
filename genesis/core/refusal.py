"""The last resort for wrong arguments: an exception from inside becomes an error that names the call and what is wrong with it.

Nothing of this runs while calls succeed. Ops that know better refuse before; what they let through fails somewhere in NumPy or
in the middle of a composition, and is explained here from the op's signature.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, GenesisError, IndexOutOfRange, message
from genesis.core.site import LIBRARY
from genesis.core.tensor import Tensor

C = TypeVar("C", bound=Callable[..., Any])

_BARE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError)  # what NumPy and Python raise of wrong arguments
_NUMPY = np.__file__.rpartition("__init__")[0]


def refuse_op(name: str, args: tuple[Any, ...], error: Exception) -> None:
    """`refuse` for the op of that name."""
    if isinstance(error, GenesisError):
        return
    from genesis.core.op import REGISTRY

    op = REGISTRY.get(name)
    if op is not None:
        refuse(name, op.signature, dict(zip(op.signature.parameters, args, strict=False)), error)


def refuse(name: str, signature: inspect.Signature, arguments: Mapping[str, Any], error: Exception) -> None:
    """Raise what a failed call should have said; returns where the error says it already, or is not ours."""
    if isinstance(error, GenesisError | Warning) or not isinstance(error, _BARE) or not _from_inside(error.__traceback__):
        return
    try:
        check_types(name, signature.parameters.values(), arguments)
    except ArgumentError as better:
        raise better from None
    kind = ArgumentValueError if isinstance(error, ValueError | ArithmeticError) else IndexOutOfRange if isinstance(error, IndexError) else ArgumentError
    problem = str(error).partition("\n")[0] or type(error).__name__
    raise kind(message(name, f"these arguments do not fit ({problem})", [(k, described(v)) for k, v in arguments.items()])) from None


def _from_inside(tb: TracebackType | None) -> bool:
    """Whether the innermost frame is one of this package or of NumPy, not of a user's function or object."""
    if tb is None:
        return False
    while tb.tb_next is not None:
        tb = tb.tb_next
    filename = tb.tb_frame.f_code.co_filename
    return LIBRARY[filename] or filename.startswith(_NUMPY)


def described(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, Tensor):
        return str(value._spec())
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return f"{value!r}"[:60]
    if isinstance(value, list | tuple):
        return f"{'[' if isinstance(value, list) else '('}{', '.join(map(described, value[:6]))}{', ...' if len(value) > 6 else ''}{']' if isinstance(value, list) else ')'}"
    return type(value).__name__


def unfit(annotation: str, value: Any) -> str:
    """What the annotation asks for, where the value is certainly something else; else nothing."""
    wanted = []
    for part in annotation.split(" | "):
        kind = part.partition("[")[0].strip()
        words, fits = _KINDS.get(kind, ("", None))
        if fits is None or fits(value):
            return ""
        wanted.append(words)
    return " or ".join(dict.fromkeys(wanted))


def check_types(name: str, parameters: Iterable[inspect.Parameter], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that are certainly not what their annotations ask for; for constructors, before anything is made.

    Raises:
        TypeError: the first one that is wrong
    """
    for p in parameters:
        if p.name in arguments and arguments[p.name] is not p.default and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            wanted = unfit(str(p.annotation), arguments[p.name])
            if wanted:
                raise ArgumentError(message(name, f"{p.name} must be {wanted}, got {described(arguments[p.name])}"))


def _is_index(value: Any) -> bool:
    try:
        operator.index(value)
    except (TypeError, RuntimeError):
        return False
    return not isinstance(value, bool)


def _is_switch(value: Any) -> bool:
    return value is None or isinstance(value, numbers.Integral | np.bool_) or (isinstance(value, Tensor) and value.numel() == 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) or (isinstance(value, Tensor) and value.numel() == 1)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("a tensor", lambda x: isinstance(x, Tensor)), "Array": ("a tensor", lambda x: isinstance(x, Tensor)), "int": ("an integer", _is_index),
    "float": ("a number", _is_number), "bool": ("True or False", _is_switch),
    "str": ("a string", lambda x: isinstance(x, str)), "None": ("None", lambda x: x is None), "Sequence": ("a sequence", _is_sequence),
    "Iterable": ("an iterable", _is_sequence), "list": ("a list", _is_sequence), "tuple": ("a tuple", _is_sequence), "Callable": ("a function", callable),
    "Mapping": ("a mapping", lambda x: isinstance(x, Mapping)), "Module": ("a module", lambda x: not _is_sequence(x) and callable(x)),
}  # fmt: skip


def explained(function: C, name: str | None = None, strict: bool = False) -> C:
    """A function, or a class by its ``__init__``, whose exceptions from inside are explained; for what is not called in a loop.

    ``strict``, of classes: the types of their arguments are looked at before.
    """
    if isinstance(function, type):
        if "__init__" in function.__dict__:
            function.__init__ = explained(function.__init__, function.__name__, True)  # type: ignore[misc]
        return function
    written, signature = name or function.__name__, inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        title = type(args[0]).__name__ if strict and args else written
        if strict:
            check_types(title, signature.parameters.values(), bound(*args, **kwargs))
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not isinstance(error, GenesisError):
                refuse(title, signature, bound(*args, **kwargs), error)
            raise

    def bound(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return {k: v for k, v in signature.bind(*args, **kwargs).arguments.items() if k != "self"}
        except TypeError:
            return {}  # Python says in its own words what is missing, or unknown

    return call  # type: ignore[return-value]


def explain_all(space: dict[str, Any], *names: str) -> None:
    """`explained` for these names of a module, or for all public functions and classes that are defined in it."""
    for name in names or [n for n, v in space.items() if not n.startswith("_") and getattr(v, "__module__", None) == space["__name__"] and callable(v)]:
        if not (isinstance(space[name], type) and issubclass(space[name], BaseException)):
            space[name] = explained(space[name])
