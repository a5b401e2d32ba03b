"""The last resort for wrong arguments: an exception from inside becomes an error that names the call and what is wrong
with it.

Nothing of this runs while calls succeed. Ops that know better refuse before; what they let through fails somewhere in
NumPy or in the middle of a composition, and is explained here from the op's signature.
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

from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, GenesisError, IndexOutOfRange, message
from genesis.core.call.generated import generated, passed, spelled
from genesis.core.graph.site import LIBRARY
from genesis.core.graph.tensor import Tensor

C = TypeVar("C", bound=Callable[..., Any])

# what NumPy and Python raise of wrong arguments
_BARE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, AssertionError)
_NUMPY = np.__file__.rpartition("__init__")[0]
_PYTHON = operator.__file__.rpartition("operator")[0]


# asked first of a call that failed, (function, args, kwargs): an argument may say itself what the function does with it
ANSWERS: list[Callable[..., tuple[Any] | None]] = []


def refuse_op(name: str, args: tuple[Any, ...], error: Exception) -> tuple[Any] | None:
    """`refuse` for the op of that name; or ``(result,)`` where an argument knows one."""
    from genesis.core.call.op import REGISTRY

    op = REGISTRY.get(name)
    if op is None:
        return None
    arguments = dict(zip(op.signature.parameters, args, strict=False))
    answer = _answer(op.call, op.signature, arguments)
    if answer is None and not isinstance(error, GenesisError):
        refuse(name, op.signature, arguments, error)
    return answer


def _answer(
    function: Callable[..., Any], signature: inspect.Signature, arguments: Mapping[str, Any]
) -> tuple[Any] | None:
    """What an argument makes of a call, which gets what the user wrote, without defaults."""
    if not any([hasattr(type(x), "__torch_function__") for v in arguments.values() for x in _parts(v)]):
        return None
    given = {k: v for k, v in arguments.items() if v is not signature.parameters[k].default}
    bound = inspect.BoundArguments(signature, given)
    answers = [answer(function, bound.args, bound.kwargs) for answer in ANSWERS]
    return next((x for x in answers if x is not None), None)


def _parts(value: Any) -> Iterable[Any]:
    return value if value.__class__ is list or value.__class__ is tuple else (value,)


def refuse(name: str, signature: inspect.Signature, arguments: Mapping[str, Any], error: Exception) -> None:
    """Raise what a failed call should have said; returns where the error says it already, or is not ours."""
    if (
        isinstance(error, GenesisError | Warning)
        or not isinstance(error, _BARE)
        or not _from_inside(error.__traceback__)
    ):
        return
    try:
        check_types(name, signature.parameters.values(), arguments)
    except ArgumentError as better:
        raise better from None
    kind = (
        ArgumentValueError
        if isinstance(error, ValueError | ArithmeticError)
        else IndexOutOfRange
        if isinstance(error, IndexError)
        else ArgumentError
    )
    problem = str(error).partition("\n")[0] or type(error).__name__
    raise kind(
        message(name, f"these arguments do not fit ({problem})", [(k, described(v)) for k, v in arguments.items()])
    ) from None


def _from_inside(tb: TracebackType | None) -> bool:
    """Whether all frames are of this package, of NumPy or of Python: a user's function or object, called from inside,
    speaks for itself.
    """
    if tb is None:
        return False
    while tb is not None:
        filename = tb.tb_frame.f_code.co_filename
        if not (
            LIBRARY[filename]
            or filename.startswith((_NUMPY, "numpy/"))
            or (filename.startswith(_PYTHON) and "-packages" not in filename)
        ):
            return False
        tb = tb.tb_next
    return True


def refuse_call(function: Callable[..., Any], arguments: Mapping[str, Any], error: Exception) -> None:
    """`refuse` for a function that guards itself, where even a guard around it would be felt."""
    refuse(function.__name__, inspect.signature(function), arguments, error)


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
    """Refuse arguments that are certainly not what their annotations ask for; for constructors, before anything is
    made.

    Raises:
        TypeError: the first one that is wrong
    """
    for p in parameters:
        if (
            p.name in arguments
            and arguments[p.name] is not p.default
            and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ):
            wanted = unfit(str(p.annotation), arguments[p.name])
            if wanted:
                raise ArgumentError(message(name, f"{p.name} must be {wanted}, got {described(arguments[p.name])}"))


def switch(name: str, what: str, value: Any) -> bool:
    """True or False, of an argument that is one; for what is called too often for `check_types`."""
    if value is True or value is False:
        return value
    if not _is_switch(value):
        raise ArgumentError(message(name, f"{what} must be True or False, got {described(value)}"))
    return bool(value)


def expect_function(name: str, what: str, value: Any) -> Any:
    """Refuse what cannot be called."""
    if not callable(value):
        raise ArgumentError(message(name, f"{what} must be a function, got {described(value)}"))
    return value


def expect_tensor(name: str, what: str, value: Any) -> Tensor:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise ArgumentError(message(name, f"{what} must be a tensor, got {described(value)}"))
    return value


def _is_switch(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, numbers.Integral | np.bool_)
        or (isinstance(value, Tensor) and value.numel() == 1)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) or (isinstance(value, Tensor) and value.numel() == 1)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("a tensor", lambda x: isinstance(x, Tensor)),
    "Array": ("a tensor", lambda x: isinstance(x, Tensor)),
    "int": ("an integer", is_integer),
    "float": ("a number", _is_number),
    "bool": ("True or False", _is_switch),
    "str": ("a string", lambda x: isinstance(x, str)),
    "None": ("None", lambda x: x is None),
    "Sequence": ("a sequence", _is_sequence),
    "Iterable": ("an iterable", _is_sequence),
    "list": ("a list", _is_sequence),
    "tuple": ("a tuple", _is_sequence),
    "Callable": ("a function", callable),
    "Mapping": ("a mapping", lambda x: isinstance(x, Mapping)),
    "Module": ("a module", callable),  # some are iterable, as Sequential is
}


def explained(function: C, name: str | None = None, strict: bool = True) -> C:
    """A function, or a class by its ``__init__``, whose exceptions from inside are explained.

    ``strict``, of classes: the types of their arguments are looked at before.
    """
    if isinstance(function, type):
        if "__init__" in function.__dict__:
            function.__init__ = _explained_init(function.__init__, strict)  # type: ignore[misc]
        return function
    return _guarded(function, name or function.__name__)  # type: ignore[no-any-return]


def _explained_init(function: Any, strict: bool) -> Any:
    """An ``__init__`` that looks at the types of its arguments before, if it is strict, and explains its exceptions."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        if strict:
            check_types(name, signature.parameters.values(), bound(self, *args, **kwargs))
        try:
            function(self, *args, **kwargs)
        except Exception as error:
            if not isinstance(error, GenesisError):
                refuse(name, signature, bound(self, *args, **kwargs), error)
            raise

    def bound(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return {k: v for k, v in signature.bind(*args, **kwargs).arguments.items() if k != "self"}
        except TypeError:
            return {}  # Python says in its own words what is missing, or unknown

    return init


_GUARD = """def call({written}):
{first}    try:
        return _function({given})
    except Exception as error:
        _found = _answer(_function, _signature, {{{named}}})
        if _found is not None:
            return _found[0]
        _refuse(_name, _signature, {{{named}}}, error)
        raise
"""


def _guarded(function: Any, name: str) -> Any:
    """The function behind its own signature: 20 to 60 ns a call, where ``*args, **kwargs`` would cost 130."""
    scope: dict[str, Any] = {"_function": function, "_refuse": refuse, "_answer": _answer, "_name": name}

    def source() -> str:
        scope["_signature"] = signature = inspect.signature(function)
        parameters = signature.parameters.values()
        named = ", ".join(f"{n!r}: {n}" for n in signature.parameters)
        parts, first = spelled(parameters, scope, name)
        return _GUARD.format(written=", ".join(parts), first=first, given=passed(parameters), named=named)

    return functools.update_wrapper(generated(source, function.__name__, f"<genesis guard of {name}>", scope), function)


def explain_all(space: dict[str, Any], *names: str, strict: bool = True) -> None:
    """`explained` for these names of a module, or for all public functions and classes that are defined in it."""
    for name in names or [
        n
        for n, v in space.items()
        if not n.startswith("_") and getattr(v, "__module__", None) == space["__name__"] and callable(v)
    ]:
        if not (isinstance(space[name], type) and issubclass(space[name], BaseException)):
            space[name] = explained(space[name], strict=strict)
