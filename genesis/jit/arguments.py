"""What a call of a program may be called with: one grammar, and the functions that go through it.

    argument = Var                                  a value of the program
             | Stream                               a stream of random numbers, and an offset in it
             | bool | int | float | complex | str | None | ...
             | slice of integers and None
             | numpy.dtype | genesis.dtype | genesis.device
             | (argument, ...) | [argument, ...]

The classes are meant exactly: a subclass may carry more than its value. `refused` is what `verify` asks. `to_plain` and
`from_plain`
are the same grammar in JSON; there a variable is its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import device


class Var:
    """A value of a program."""

    __slots__ = ("spec",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return f"<variable {self.spec}>"


@dataclass(frozen=True, slots=True)
class Stream:
    """Where a random op finds its numbers: one of the program's streams, and how many blocks after the beginning of the
    call.
    """

    index: int
    offset: int


_PLAIN = (bool, int, float, complex, str, type(None), EllipsisType, dtypes.dtype, device)
SIMPLE = frozenset({Stream, *_PLAIN})  # classes of arguments that hold no variables: most are of these


def refused(value: Any) -> Any:
    """The first part of an argument that is not of the grammar, in a tuple; None if there is none."""
    kind = type(value)
    if kind is Var or kind is Stream or kind in _PLAIN or isinstance(value, np.dtype):
        return None
    if kind is tuple or kind is list:
        for item in value:
            if type(item) not in SIMPLE and (inner := refused(item)) is not None:
                return inner
        return None
    if kind is slice and all([type(bound) in (int, type(None)) for bound in (value.start, value.stop, value.step)]):
        return None
    return (value,)


def variables(value: Any) -> list[Var]:
    """The variables in an argument."""
    out: list[Var] = []
    _collect((value,), out)
    return out


def _collect(values: Any, out: list[Var]) -> None:
    for value in values:
        kind = value.__class__
        if kind is tuple or kind is list:
            _collect(value, out)
        elif kind not in SIMPLE and isinstance(value, Var):
            out.append(value)


def renamed(value: Any, f: Callable[[Var], Any]) -> Any:
    """An argument with other things in place of its variables."""
    kind = value.__class__
    if kind is tuple:
        return tuple([v if v.__class__ in SIMPLE else renamed(v, f) for v in value])
    if kind is list:
        return [v if v.__class__ in SIMPLE else renamed(v, f) for v in value]
    return f(value) if isinstance(value, Var) else value


def shown(value: Any, name_of: Callable[[Var], str]) -> str:
    """An argument as it is printed."""
    if isinstance(value, Var):
        return name_of(value)
    if isinstance(value, tuple | list):
        inside = ", ".join(shown(v, name_of) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    if isinstance(value, slice):
        return ":".join("" if b is None else str(b) for b in (value.start, value.stop)) + (
            "" if value.step in (None, 1) else f":{value.step}"
        )
    if isinstance(value, np.dtype):
        return dtypes.from_numpy(value).short
    if isinstance(value, Stream):
        return f"stream {value.index} + {value.offset}"
    return "..." if value is Ellipsis else repr(value)


# ---- in JSON


def to_plain(value: Any, number: Callable[[Var], int]) -> Any:
    """An argument in lists, dictionaries, strings and numbers; different arguments give different ones."""
    if isinstance(value, bool | str | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [to_plain(v, number) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(v, number) for v in value]}
    if isinstance(value, Var):
        return {"var": number(value)}
    if isinstance(value, Stream):
        return {"stream": [value.index, value.offset]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, complex):
        return {"complex": [to_plain(value.real, number), to_plain(value.imag, number)]}
    if isinstance(value, np.dtype):
        return {"array": dtypes.from_numpy(value).name}
    if isinstance(value, dtypes.dtype):
        return {"dtype": value.name}
    return {"device": str(value)} if isinstance(value, device) else {"ellipsis": True}


_READ: dict[str, Callable[[Any, Callable[[int], Var]], Any]] = {
    "float": lambda x, _: float(x),
    "tuple": lambda x, var: tuple([from_plain(v, var) for v in x]),
    "var": lambda x, var: var(x),
    "stream": lambda x, _: Stream(*x),
    "slice": lambda x, _: slice(*x),
    "complex": lambda x, var: complex(*[from_plain(part, var) for part in x]),
    "array": lambda x, _: dtypes.as_np(dtypes.as_dtype(x)),
    "dtype": lambda x, _: dtypes.as_dtype(x),
    "device": lambda x, _: device(x),
    "ellipsis": lambda x, _: Ellipsis,
}


def from_plain(value: Any, var: Callable[[int], Var]) -> Any:
    """What `to_plain` was given."""
    if isinstance(value, list):
        return [from_plain(v, var) for v in value]
    if isinstance(value, dict):
        ((kind, inside),) = value.items()
        return _READ[kind](inside, var)
    return value
