"""What a function can reach besides tensors, as it was: a trace leaves it so, whatever runs in it.

`effects` stops a trace before it writes to objects, as far as calls and code say so. They do not say that `operator.iadd`,
`map(log.append, ...)`, `object.__setattr__` or `numpy.add(..., out=...)` write. So lists, dictionaries, sets, arrays and the
attributes of objects are kept before a trace, compared behind it, and set back.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from genesis.base.tracebacks import LIBRARY
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, Dependable
from genesis.jit.compiling.young import MEMBERS

MOST = 20_000  # objects, and bytes of an array
LOOKED_INTO = 2_000  # items of a container
_STDLIB = os.path.dirname(os.__file__)
_ATOMS = (*PLAIN, Tensor, range, slice, CodeType, np.generic)


class Kept(NamedTuple):
    """Something that can be written to: what it held, and how to ask for that and set it."""

    title: str
    before: Any
    now: Callable[[], Any]
    put: Callable[[Any], None]


def surroundings(roots: Iterable[tuple[str, Any]]) -> list[Kept]:
    """What can be reached from the roots, which have titles; nothing where another thread may write to it, too."""
    pending, seen, kept = list(roots) if _is_alone() else [], set[int](), list[Kept]()
    while pending and len(seen) < MOST:
        title, x = pending.pop()
        if isinstance(x, _ATOMS) or id(x) in seen:
            continue
        seen.add(id(x))
        kept += _kept(title, x)
        pending += [(t, y) for t, y in _inside(title, x) if not isinstance(y, _ATOMS)]
    return kept


def changed(kept: Iterable[Kept]) -> list[str]:
    """Set back what is not as it was, and say what that is."""
    titles = []
    for one in kept:
        if not _equal(one.before, one.now()):
            one.put(one.before)
            titles.append(one.title)
    return titles


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, bytes):
        return bool(a == b)
    if isinstance(a, dict):
        return list(a) == list(b) and all([_same(x, b[key]) for key, x in a.items()])
    if isinstance(a, set):
        return bool(a == b)
    return len(a) == len(b) and all([_same(x, y) for x, y in zip(a, b, strict=True)])


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, PLAIN) and (a == b or a != a))


def _kept(title: str, x: Any) -> Iterator[Kept]:
    """What is written to in the thing itself."""
    if isinstance(x, np.ndarray | bytearray | array):
        if memoryview(x).nbytes <= MOST and not (isinstance(x, np.ndarray) and x.dtype.hasobject):
            yield Kept(title, bytes(x), lambda: bytes(x), functools.partial(_refill, x))
    elif isinstance(x, dict):
        yield Kept(title, dict(x), lambda: x, functools.partial(_replace, x))
    elif isinstance(x, list | deque):
        yield Kept(title, list(x), lambda: x, functools.partial(_extend, x))
    elif isinstance(x, set):
        yield Kept(title, set(x), lambda: x, functools.partial(_replace, x))
    elif isinstance(x, type):
        yield Kept(title, _own(x), lambda: _own(x), functools.partial(_set, x))
    elif is_of_program(type(x)):
        yield Kept(title, _attributes(x), lambda: _attributes(x), functools.partial(_set, x))
    if isinstance(x, Dependable):
        yield from [part for name in MEMBERS if name in vars(x) for part in _kept(title, vars(x)[name])]


def _inside(title: str, x: Any) -> Iterator[tuple[str, Any]]:
    """What is reached from there in one step."""
    if isinstance(x, dict):
        yield from [(f"{title}[{key!r}]", y) for key, y in islice(x.items(), LOOKED_INTO)]
    elif isinstance(x, list | tuple | set | frozenset | deque):
        yield from [(f"{title}[...]", y) for y in islice(x, LOOKED_INTO)]
    elif isinstance(x, FunctionType):
        yield from _of_function(x)
    elif isinstance(x, MethodType):
        yield from ((title, x.__func__), (title, x.__self__))
    elif isinstance(x, functools.partial):
        yield from ((title, x.func), (title, x.args), (title, x.keywords))
    elif isinstance(x, property):
        yield from ((title, x.fget), (title, x.fset))
    elif isinstance(x, classmethod | staticmethod):
        yield title, x.__func__
    elif isinstance(x, type):
        yield from [(f"{x.__name__}.{name}", y) for c in x.__mro__ if is_of_program(c) for name, y in vars(c).items()]
    elif is_of_program(type(x)):
        yield from [(f"{title}.{name}", y) for name, y in _attributes(x).items()]
        yield type(x).__name__, type(x)
    if isinstance(x, Dependable):
        yield from [(f"{title}.{path}", y) for path, y in x._parts()]


def _of_function(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function of the program finds by name."""
    if not _is_own(f.__code__.co_filename):
        return
    yield from zip(f.__code__.co_freevars, [contents(cell) for cell in f.__closure__ or ()], strict=True)
    yield from [(f.__name__, y) for y in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())]
    for code in _codes(f.__code__):
        for name in code.co_names:
            x = f.__globals__.get(name)
            if isinstance(x, ModuleType) and _is_own(getattr(x, "__file__", None) or _STDLIB):
                yield from [(f"{name}.{n}", vars(x)[n]) for n in code.co_names if n in vars(x)]
            elif not isinstance(x, ModuleType):
                yield name, x


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _attributes(x: Any) -> dict[str, Any]:
    """The attributes of an object of the program; of modules those that are not this package's."""
    own = dict(getattr(x, "__dict__", None) or {})
    for kind in type(x).__mro__:
        slots = vars(kind).get("__slots__", ()) if is_of_program(kind) else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(x, name):
                own[name] = getattr(x, name)
        for name in [n for n, y in vars(kind).items() if isinstance(y, functools.cached_property)]:
            own.pop(name, None)
    if isinstance(x, Dependable):
        return {n: y for n, y in own.items() if not n.startswith("_") and n != "training"} if not x._holders() else {}
    return own


def _own(kind: type) -> dict[str, Any]:
    """What a class of the program says itself."""
    if not is_of_program(kind):
        return {}
    return {n: y for n, y in vars(kind).items() if not n.startswith("__") and isinstance(y, _ATOMS)}


def is_of_program(kind: type) -> bool:
    """Whether a class is one of the program, or has its methods from there."""
    known = _ASKED.get(kind)
    if known is None:
        known = _ASKED[kind] = _has_methods_of_program(kind)
    return known


_ASKED: WeakKeyDictionary[type, bool] = WeakKeyDictionary()  # a class holds what its methods see, a model, say


def _has_methods_of_program(kind: type) -> bool:
    files = [y.__code__.co_filename for y in vars(kind).values() if isinstance(y, FunctionType)]
    if not files:
        return (
            kind.__module__ not in ("builtins", "typing")
            and "__dict__" in vars(kind)
            and not kind.__module__.startswith("genesis")
        )
    return any([_is_own(name) for name in files])


@functools.lru_cache(maxsize=4096)
def _is_own(name: str) -> bool:
    return not (LIBRARY[name] or name.startswith((_STDLIB, "<frozen")) or "site-packages" in name)


def _is_alone() -> bool:
    """Whether no other thread is in code of the program."""
    mine = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        outer: FrameType | None = frame if thread != mine else None
        while outer is not None:
            if _is_own(outer.f_code.co_filename):
                return False
            outer = outer.f_back
    return True


# ---- setting back


def _refill(x: Any, before: bytes) -> None:
    if isinstance(x, np.ndarray):
        x[...] = np.frombuffer(before, x.dtype).reshape(x.shape)
    else:
        x[:] = type(x)(before) if isinstance(x, bytearray) else array(x.typecode, before)


def _replace(x: Any, before: Any) -> None:
    x.clear()
    x.update(before)


def _extend(x: Any, before: list[Any]) -> None:
    x.clear()
    x.extend(before)


def _set(x: Any, before: dict[str, Any]) -> None:
    store, remove = (
        (type.__setattr__, type.__delattr__) if isinstance(x, type) else (object.__setattr__, object.__delattr__)
    )
    now = _own(x) if isinstance(x, type) else _attributes(x)
    for name in [name for name in now if name not in before]:
        remove(x, name)
    for name, y in before.items():
        if name not in now or now[name] is not y:
            store(x, name, y)
