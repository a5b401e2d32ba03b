"""What code reads of objects without their names standing in it: `attrgetter`, `match`, copies, comparisons, text.

Where code does such things, the objects that it has in hand are asked for more than what `reads_of` says.
"""

from __future__ import annotations

import functools
import os
from collections import ChainMap, UserDict, UserList
from collections.abc import Iterator
from io import IOBase
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

from genesis.base.tracebacks import LIBRARY
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable
from genesis.jit.compiling import statements
from genesis.jit.compiling.stores import Chain, begin_of, chain_of, steps_of
from genesis.jit.compiling.young import stores_in

_BY_TEXT = {"attrgetter", "__getattribute__"}
_READING_ALL = {"copy", "deepcopy", "replace", "asdict", "astuple", "repr", "str", "format", "ascii", "hash"}
_OF_STATEMENTS = {statements.host.__name__, "__import__"}  # which stand in code from which some were taken out
_ITERATING = {
    *("parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"),
    *("named_modules", "iter", "reversed", "zip", "map", "filter", "enumerate", "keys", "values", "items"),
}  # what makes iterators: over what it is given, which the code has in hand
_OF_GENERATORS = {"GET_ITER", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE"}  # what stands before the call of an expression
_CLASSES = {"type", "__class__", "__mro__"}
_OTHERS = (Tensor, Dependable, ModuleType, FunctionType, type)  # which are asked elsewhere, or have no state


class Ways(NamedTuple):
    """In which ways code may read what it does not name.

    Attributes:
        names: attributes that it may ask any object for
        matches: whether it asks objects for what their classes say, too
        wholes: the chains of objects that it copies, compares, or makes text of: all attributes may be read
        classes: attributes that it may ask for of the class of an object
    """

    names: frozenset[str] = frozenset()
    matches: bool = False
    wholes: frozenset[Chain] = frozenset()
    classes: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=4096)
def ways_of(code: CodeType) -> Ways:
    used, matches = set(code.co_names) - _OF_STATEMENTS, any([step.name == "MATCH_CLASS" for step in steps_of(code)])
    by_text = [text for text in code.co_consts if isinstance(text, str)] if used & _BY_TEXT else []
    by_text = [text for text in by_text if text != statements.__name__]
    if matches:
        by_text += [
            text for names in code.co_consts if isinstance(names, tuple) for text in names if isinstance(text, str)
        ]
    names = [part for text in by_text for part in text.split(".") if part.isidentifier()]
    return Ways(
        frozenset(names), matches, frozenset(_wholes(code)), frozenset(used) if used & _CLASSES else frozenset()
    )


def _wholes(code: CodeType) -> Iterator[Chain]:
    steps = steps_of(code)
    for i, step in enumerate(steps):
        count, end = 0, i
        if step.name == "COMPARE_OP":
            count = 2
        elif step.name.startswith("FORMAT_"):
            count = 1 + (step.name == "FORMAT_WITH_SPEC" or (isinstance(step.value, tuple) and step.value[1]))
        elif step.name in ("CALL", "CALL_KW"):
            count, end = step.value + (step.name == "CALL_KW"), i - (steps[i - 1].name == "PRECALL")
        operands = []
        for _ in range(count):
            begin = begin_of(steps, end) if end > 0 else -1
            loads = tuple([s for s in steps[begin:end] if s.name != "CONVERT_VALUE"]) if begin >= 0 else ()
            operands.append(chain_of(loads))
            end = begin
        if not step.name.startswith("CALL") or _called(steps, end) in _READING_ALL:
            yield from [chain for chain in operands if chain is not None]


def _called(steps: Any, end: int) -> Any:
    """The last name of what is called, which stands before its arguments."""
    end -= end > 0 and steps[end - 1].name == "PUSH_NULL"
    return steps[end - 1].value if end > 0 else None


def draws_unseen(value: Any) -> bool:
    """Whether it is a generator of NumPy's random numbers, a method of one, or a function or class that makes or sets them:
    the calls of these are not seen.
    """
    while isinstance(value, functools.partial):
        value = value.func
    kind = type(value)
    compiled = kind.__name__ == "cython_function_or_method"
    if (compiled or isinstance(value, type)) and str(value.__module__).startswith("numpy.random"):
        return True
    bound = compiled or kind in (BuiltinFunctionType, MethodType)
    source = getattr(value, "__self__", value) if bound else value  # an object may answer for any name
    return type(source).__module__ in ("numpy.random._generator", "numpy.random.mtrand")


def goes_on_unseen(value: Any) -> bool:
    """Whether it is an iterator which `zip`, a loop or a list take from without a call that could be seen: one in C, or a
    generator of this package.
    """
    if isinstance(value, GeneratorType):
        return LIBRARY[value.gi_code.co_filename]
    seen = isinstance(value, IOBase) or isinstance(getattr(type(value), "__next__", None), FunctionType)
    return isinstance(value, Iterator) and not seen


@functools.lru_cache(maxsize=4096)
def next_of(code: CodeType, at: int) -> Chain | bool:
    """What the call of `next` at an instruction takes from: a chain, or whether it is an iterator that is made there."""
    steps = steps_of(code)
    call = next((i for i, step in enumerate(steps) if step.at == at and step.name == "CALL"), None)
    if call is None:
        return False
    begin, end = _last_argument(steps, call)
    for _ in range(steps[call].value - 1):
        begin, end = begin_of(steps, begin), begin
    chain = chain_of(steps[begin:end]) if begin > 0 else None
    if chain is not None or begin < 0 or steps[end - 1].name != "CALL":
        return chain or False
    inside = end - 1 - (steps[end - 2].name == "PRECALL")
    for _ in range(steps[end - 1].value):
        inside = begin_of(steps, inside) if inside > 0 else -1
    return inside > 0 and (steps[inside - 1].name in _OF_GENERATORS or _called(steps, inside) in _ITERATING)


def _last_argument(steps: Any, call: int) -> tuple[int, int]:
    """The instructions that compute the last argument of a call."""
    end = call - (steps[call - 1].name == "PRECALL")
    return begin_of(steps, end), end


def asked_by(value: Any) -> frozenset[str]:
    """The names of what an `attrgetter` asks for."""
    texts = value.__reduce__()[1] if type(value) is attrgetter else ()
    return frozenset([part for text in texts for part in text.split(".")])


def backing(value: Any) -> Any:
    """The container that an object of Python's library keeps its items in, or the object itself."""
    if isinstance(value, ChainMap):
        return value.maps
    return value.data if isinstance(value, UserDict | UserList) else value._data if value is os.environ else value


def read_unnamed(
    code: CodeType, chain: Chain, value: Any, names: frozenset[str]
) -> Iterator[tuple[Any, Any, Any, str]]:
    """Of an object that code has in hand: a dictionary, a key in it, what is there, and its name.

    Args:
        names: attributes that it is asked for besides, see `asked_by`
    """
    if type(value) is ref:
        value, names = value(), names.union(code.co_names)
    if value is None or isinstance(value, _OTHERS):
        return
    ways = ways_of(code)
    names = names.union(ways.names)
    if ways.matches:
        names = names.union(getattr(type(value), "__match_args__", ()))
    if chain in ways.wholes:
        names = names.union(getattr(value, "__dict__", None) or ())
    yield from [(*stored, name) for name in names for stored in stores_in(value, name)]
    yield from [(*stored, name) for name in ways.classes for stored in stores_in(type(value), name)]
