"""What code may change without an instruction that says so: by a function that writes to what it is given, by a method that
somebody else calls, or by an operator in place.

    operator.setitem(d, k, v)     d.__setitem__(k, v)     object.__setattr__(x, "n", 1)     np.add(a, 1, out=a)
    map(losses.append, values)    kept = self.list; kept += [1]

The profile function is told of none of these, or not of what is given. So the instructions are looked through for the names,
and what the names stand for is looked at where the code runs.
"""

from __future__ import annotations

import functools
import operator
from collections import deque
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from genesis.base.tracebacks import LIBRARY
from genesis.jit.compiling.stores import _LOADS, Chain, _Step, _still_holds, begin_of, chain_of, steps_of, stores_of

CONTAINERS = (list, dict, set, deque, bytearray, np.ndarray)
_UPDATES = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
OPERATORS = frozenset(
    ["__setitem__", "__delitem__", "__setattr__", "__delattr__", *[f"__i{name}__" for name in _UPDATES]]
)
_LOADING = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")
OF_NUMPY = frozenset(["copyto", "putmask", "place", "put", "put_along_axis", "fill_diagonal", "at"])
OF_OPERATOR = frozenset(
    [getattr(operator, name) for name in dir(operator) if name in ("setitem", "delitem") or name[:1] == "i"]
) - {
    operator.index,
    operator.indexOf,
    operator.inv,
    operator.invert,
    operator.is_,
    operator.is_not,
    operator.itemgetter,
}
WRITING = frozenset(
    [
        *(
            "append",
            "appendleft",
            "extend",
            "extendleft",
            "insert",
            "remove",
            "pop",
            "popleft",
            "popitem",
            "clear",
            "sort",
        ),
        *("reverse", "rotate", "add", "discard", "update", "setdefault", "move_to_end", "subtract"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    ]
)  # methods of containers that change them
ARRAY_WRITES = frozenset({"fill", "sort", "put", "itemset", "partition", "resize", "setflags", "setfield", "byteswap"})
CHANGING_FIRST = frozenset(
    ["heappush", "heappop", "heapify", "heapreplace", "heappushpop", "insort", "insort_left", "insort_right", "shuffle"]
)  # functions that change their first argument


class Writer(NamedTuple):
    """A place in code that may change what is there.

    Attributes:
        kind: ``"+="``, ``"call"``, ``"method"`` (one that is handed on) or ``"out"``
        by: what is called, a chain of names
        target: what it is given: of a method that is handed on whose it is; None where nobody knows
        sure: whether the variable still holds it when the code has run
    """

    kind: str
    by: Chain
    target: Chain | None
    sure: bool
    at: int


@functools.lru_cache(maxsize=4096)
def writers_of(code: CodeType) -> tuple[Writer, ...]:
    """What in the code may change something, besides `stores_of`."""
    steps, writers = steps_of(code), []
    for i, step in enumerate(steps):
        if step.name == "BINARY_OP" and str(step.value).endswith("=") and (target := _left(steps, i)):
            writers.append(Writer("+=", (), target, _still_holds(steps, i + 2, target[0]), step.at))
        elif step.name in _LOADING and (name := str(step.value)) in OPERATORS | OF_NUMPY | WRITING:
            owner = None if step.name.startswith("LOAD_SUPER") else _before(steps, i)
            handed_on = step.name == "LOAD_ATTR" and i + 1 < len(steps) and not steps[i + 1].name.startswith("STORE")
            if name in WRITING and handed_on and owner is not None:
                writers.append(Writer("method", (*owner, name), owner, True, step.at))
            elif name not in WRITING:
                writers.append(Writer("call", (*(owner or ("?",)), name), _first(steps, i + 1), True, step.at))
        elif step.name in ("KW_NAMES", "CALL_KW") and (target := _out(steps, i)) is not None:
            writers.append(Writer("out", (), target, True, step.at))
    return tuple(writers)


@functools.lru_cache(maxsize=4096)
def changes_items(code: CodeType) -> bool:
    """Whether code may change the items of something, which may be one of its arguments."""
    inner = [x for x in code.co_consts if isinstance(x, CodeType)]
    names = (WRITING | CHANGING_FIRST | OF_NUMPY | ARRAY_WRITES).intersection(code.co_names)
    stores = [store for store in stores_of(code) if not store.name]
    return bool(names or stores or writers_of(code)) or any([changes_items(x) for x in inner])


def _left(steps: tuple[_Step, ...], at: int) -> Chain | None:
    """The variable on the left of an operator in place."""
    right = begin_of(steps, at)
    left = chain_of(steps[begin_of(steps, right) : right]) if right > 0 and begin_of(steps, right) >= 0 else None
    return left if left is not None and len(left) == 1 else None


def _before(steps: tuple[_Step, ...], at: int) -> Chain | None:
    """The chain that ends before an instruction."""
    begin = at - 1
    while begin >= 0 and steps[begin].name == "LOAD_ATTR":
        begin -= 1
    return _first(steps[:at], begin) if begin >= 0 else None


def _first(steps: tuple[_Step, ...], at: int) -> Chain | None:
    """The chain that begins with an instruction."""
    if at < len(steps) and steps[at].name == "PUSH_NULL":
        at += 1
    if at >= len(steps) or steps[at].name not in _LOADS:
        return None
    chain = [str(steps[at].value)]
    for step in steps[at + 1 :]:
        if step.name != "LOAD_ATTR":
            break
        chain.append(str(step.value))
    return tuple(chain)


def _out(steps: tuple[_Step, ...], at: int) -> Chain | None:
    """The argument ``out=`` of a call, or what it is a part of."""
    names, end = None, at
    if steps[at].name == "KW_NAMES":
        names = steps[at].value
    elif steps[at].name == "CALL_KW" and steps[at - 1].name == "LOAD_CONST":  # from Python 3.13 on
        names, end = steps[at - 1].value, at - 1
    if not isinstance(names, tuple) or "out" not in names:
        return None
    for _ in range(len(names) - names.index("out")):
        end = begin_of(steps, end)
    return _first(steps, end) if end >= 0 else None


def receiver(name: str, function: Any, owner: Any, first: Any) -> Any:
    """What a call changes, or None: that whose method it is, or the first argument."""
    if name in OF_NUMPY:
        of_numpy = str(getattr(function, "__module__", None) or "").startswith("numpy") or isinstance(owner, np.ufunc)
        return first if of_numpy else None
    inside = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(inside, FunctionType) and not LIBRARY[inside.__code__.co_filename]:
        return None  # its code is seen
    return first if isinstance(owner, type | ModuleType) else owner
