"""Functions made of source text, where a general one would cost every call a loop over its parameters."""

from __future__ import annotations

import functools
import inspect
import linecache
from collections.abc import Callable, Iterable
from inspect import Parameter
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

from genesis.core.graph.tracing import unwatched


def rename_parameters(function: Any, *names: str) -> None:
    """Let callers know the first parameters of a function, which are no cells, under these names."""
    code = function.__code__
    renamed = dict(zip(code.co_varnames, names, strict=False))
    function.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    function.__annotations__ = {renamed.get(name, name): kind for name, kind in function.__annotations__.items()}


def generated(source: Callable[[], str], name: str, filename: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function ``call`` that a source text defines, under a name and a file of its own; tracebacks show its lines.

    The text is asked for and compiled at the first call, or when somebody looks at the signature: most programs use
    few of the ops, and compiling all of them takes a third of the time of the import.
    """
    function = FunctionType(_first_call.__code__, scope, name)
    function.__qualname__ = name
    scope["_compile"] = compile_now = _Compile(function, source, filename)
    scope["_quietly"] = unwatched
    function.__signature__ = LateSignature(compile_now)  # type: ignore[attr-defined]
    return function


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, compiled now if it is a `generated` one that was not called yet. Of one whose text another function
    was given, that one is, and this one has its defaults.
    """
    text = function.__globals__.get("_compile")
    if isinstance(text, _Compile):
        holder = text() if is_late(text.function) else text.function
        function.__defaults__, function.__kwdefaults__ = holder.__defaults__, holder.__kwdefaults__
    return function


def is_late(function: Callable[..., Any]) -> bool:
    """Whether this is a `generated` function that was not called yet."""
    return function.__code__ is _first_call.__code__


def give_text(function: Callable[..., Any]) -> None:
    """Let this function, which shares the scope of a `generated` one that was not called yet, get the code of its text."""
    function.__globals__["_compile"].function = function


def renew(function: Callable[..., Any]) -> None:
    """Let a `generated` function ask for its text again at the next call."""
    function.__code__ = _first_call.__code__
    function.__defaults__ = None


def _first_call(*args: Any, **kwargs: Any) -> Any:
    return _quietly(_compile)(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821  the globals are the function's scope


_first_call.__code__ = _first_call.__code__.replace(co_filename="<genesis first call>")


class _Compile:
    """Gives a function the code of its text. Of two threads that do it at once both give it the same."""

    __slots__ = ("filename", "function", "source")

    def __init__(self, function: FunctionType, source: Callable[[], str], filename: str) -> None:
        self.function, self.source, self.filename = function, source, filename

    def __call__(self) -> FunctionType:
        function, name, source = self.function, self.function.__name__, self.source()
        defined: dict[str, Any] = {}
        exec(_compiled(source), function.__globals__, defined)
        made = defined["call"]
        function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        if function.__dict__.get("__signature__").__class__ is LateSignature:
            del function.__signature__  # type: ignore[attr-defined]
        function.__code__ = made.__code__.replace(co_name=name, co_qualname=name, co_filename=self.filename)
        linecache.cache[self.filename] = len(source), None, source.splitlines(True), self.filename
        return function


class LateSignature(inspect.Signature):
    """The signature of the function that ``function()`` gives, worked out when somebody asks: most ops are never called,
    and theirs would take a tenth of the time of the import.
    """

    __slots__ = ("_function", "_known")

    def __init__(self, function: Callable[[], Callable[..., Any]]) -> None:
        self._function = function
        self._known: inspect.Signature | None = None

    def known(self) -> inspect.Signature:
        if self._known is None:
            self._known = inspect.signature(self._function())
        return self._known

    @property
    def parameters(self) -> MappingProxyType[str, inspect.Parameter]:
        return self.known().parameters

    @property
    def return_annotation(self) -> Any:
        return self.known().return_annotation

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names; they and the annotations are all that is asked for while an op is declared."""
        function = self._function()
        code = function.__code__
        if hasattr(function, "__wrapped__") or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return tuple(self.parameters)
        return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @property
    def annotations(self) -> list[str]:
        given = self._function().__annotations__
        return [str(given.get(name, "")) for name in self.names]

    def replace(self, **changes: Any) -> Any:
        return self.known().replace(**changes)


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


# what NumPy calls parameters, which PyTorch's functions take, too
SPELLINGS = {"dim": "axis", "keepdim": "keepdims"}


class _Required:
    """The default of a parameter that has to be given: by its name here, or NumPy's."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = _Required()


def spelled(
    parameters: Iterable[Parameter], scope: dict[str, Any], name: str, extra: str = ""
) -> tuple[list[str], str]:
    """`defined`, with ``extra`` keywords and those of `SPELLINGS`; and the first lines of the function, which know them."""
    given = list(parameters)
    names = [p.name for p in given]
    others = {
        ours: other
        for ours, other in SPELLINGS.items()
        if ours in names and other not in names and f"{other}=" not in extra
    }
    parts, lines = (
        defined(given, scope),
        [f"    if {other} is not None: {ours} = {other}\n" for ours, other in others.items()],
    )
    open_ = [p.name for p in given if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if others and "dim" in open_:
        needed = open_[open_.index("dim") :]
        scope |= {"_REQUIRED": REQUIRED, "_missing": _missing}
        for part in needed:
            parts[names.index(part)] = f"{part}=_REQUIRED"
        pairs = ", ".join(f"{part!r}: {part}" for part in needed)
        lines += [f"    if {' or '.join(f'{part} is _REQUIRED' for part in needed)}: _missing({name!r}, {{{pairs}}})\n"]
    more = ", ".join(filter(None, [extra, *[f"{other}=None" for other in others.values()]]))
    if more:
        parts.append(more if any([part.startswith("*") for part in parts]) else "*, " + more)
    return parts, "".join(lines)


def _missing(name: str, arguments: dict[str, Any]) -> None:
    absent = [repr(word) for word, value in arguments.items() if value is REQUIRED]
    plural = "s" if len(absent) > 1 else ""
    raise TypeError(f"{name}() missing {len(absent)} required positional argument{plural}: {' and '.join(absent)}")


def passed(parameters: Iterable[Parameter]) -> str:
    """Parameters as they are handed on to a function that has the same."""
    return ", ".join(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else _stars(p) + p.name for p in parameters)


def _stars(p: Parameter) -> str:
    return "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""


@functools.cache
def _compiled(source: str) -> CodeType:
    """Ops have few signatures between them: the same text is compiled once."""
    return compile(source, "<genesis>", "exec")
