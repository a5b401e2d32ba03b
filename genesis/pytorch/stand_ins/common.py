"""What stand-ins are made of: answers, refusals, values that do nothing; and where they are kept."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from genesis.base.errors import MissingName, UnsupportedError, message

Values = dict[str, Any]
STAND_INS: dict[str, Callable[[], Values]] = {}


def values(*modules: str) -> Callable[[Callable[[], Values]], Callable[[], Values]]:
    """Decorate the function that makes the stand-ins of modules; it runs when the first of them is asked for."""

    def add(make: Callable[[], Values]) -> Callable[[], Values]:
        made = functools.cache(make)
        for module in modules:
            before = STAND_INS.get(module)
            STAND_INS[module] = made if before is None else _joined(before, made)
        return make

    return add


def _joined(first: Callable[[], Values], second: Callable[[], Values]) -> Callable[[], Values]:
    return functools.cache(lambda: {**first(), **second()})


def nothing(*args: Any, **kwargs: Any) -> None:
    """Accepted, without an effect."""


def answer(value: Any) -> Callable[..., Any]:
    """A function that always gives one answer."""

    def always(*args: Any, **kwargs: Any) -> Any:
        return value

    return always


def refusal(name: str, problem: str, hint: str = "") -> Callable[..., Any]:
    """A function that says why it does not work."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(name, problem, hint=hint or None))

    return refused


class Absent(type):
    """A name that can be imported, and says when it is used why it is not there."""

    reason = ""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(message(cls.__qualname__, cls.reason))

    def __getitem__(cls, kind: Any) -> Absent:
        return cls  # in annotations

    def __getattr__(cls, name: str) -> Any:
        raise MissingName(f"{cls.__qualname__}.{name} is not in Genesis: {cls.reason}")


@functools.cache
def absent(dotted: str, reason: str) -> Absent:
    """A class for ``isinstance`` and annotations of which nothing can be made."""
    return Absent(dotted.rpartition(".")[2], (), {"__qualname__": dotted, "reason": reason})


def as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function or model as it is; without one, a decorator that leaves it so."""
    return function if function is not None else lambda target: target


def from_module(path: str, *listed: str) -> Callable[[], Values]:
    """The names of a module here, imported when the first of them is asked for."""
    return lambda: {name: getattr(importlib.import_module(path), name) for name in listed}


STORAGES = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8", "Char": "int8",
             "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool", "ComplexFloat": "complex64",
             "ComplexDouble": "complex128"}  # fmt: skip


@functools.cache
def error_of_a_gpu() -> type[RuntimeError]:
    return type("CudaError", (RuntimeError,), {"__doc__": "A GPU does not go on: never raised here."})


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call, made now; `wait` gives its result."""
    future = importlib.import_module("genesis.pytorch.futures").Future()
    future.set_result(function(*args, **kwargs))
    return future


class NoEffect:
    """A ``with`` that chooses a GPU or a stream of one: it has no effect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __enter__(self) -> NoEffect:
        return self

    def __exit__(self, *_: object) -> None: ...
