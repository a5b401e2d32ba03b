"""The transforms that are open: each `vmap` or forward mode has a level, and the arrays it makes are layers of that
level.

A level is a number; one that was opened later is larger, so the layers of an array are sorted, the innermost
transform's outside. While a level is open `LEVELS` is not empty.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, ClassVar

from genesis.arrays.protocol import Layer
from genesis.base.errors import GraphError, message
from genesis.core.graph.engine import current
from genesis.core.graph.node import next_number
from genesis.core.graph.site import Site, site_of, user_site
from genesis.core.graph.switches import LEVELS

_numbers = itertools.count(1).__next__
# where the numbers of new levels come from, if not from the count: what is run again needs those of its first run
numbering: ContextVar[Callable[[], int] | None] = ContextVar("genesis_level_numbers", default=None)


def remembered(numbers: list[int]) -> Callable[[], int]:
    """A source of numbers that notes which it gave."""
    before = numbering.get()

    def noted() -> int:
        numbers.append(_numbers() if before is None else before())
        return numbers[-1]

    return noted


def again(numbers: list[int]) -> Callable[[], int]:
    """A source that gives the noted numbers once more."""
    rest = iter(numbers)
    return lambda: next(rest, None) or _numbers()


@contextmanager
def numbered(source: Callable[[], int]) -> Iterator[None]:
    token = numbering.set(source)
    try:
        yield
    finally:
        numbering.reset(token)


class Level:
    """One transform while it runs."""

    __slots__ = ("__weakref__", "_site", "created", "name", "number", "randomness", "size", "start")
    kernels: ClassVar[bool] = False  # whether kernels of composites run inside, see `core/call/fused.py`
    draw: ClassVar[Callable[..., Any] | None] = None  # who draws random numbers inside, if not their op
    # what gives a context in which this goes on as it is now, with the random numbers that come next; None: nothing does
    moment: ClassVar[Callable[..., Any] | None] = None

    def __init__(self, name: str, size: int = 0, randomness: str = "error") -> None:
        self.name, self.size, self.randomness = name, size, randomness
        given = numbering.get()
        self.number = _numbers() if given is None else given()
        self._site = user_site(sys._getframe(1))
        self.start = next_number()
        self.created: set[int] = set()  # ids of the plain tensors made inside, see `has_created`

    @property
    def site(self) -> Site | None:
        return site_of(*self._site)

    def has_created(self, tensor: Any) -> bool:
        """Whether a plain tensor was made inside: its node is younger, or its id was noted. (One from outside has lived
        all the time: nothing made inside had its id.)
        """
        node = getattr(tensor._node, "node", tensor._node)
        if node is not None and not node.is_leaf:
            return bool(node._number > self.start)
        return id(tensor) in self.created


_open: ContextVar[tuple[Level, ...]] = ContextVar("genesis_levels", default=())
_names: dict[int, Level] = {}  # the last levels, open or not, for errors
_KEPT = 64


def levels() -> tuple[Level, ...]:
    """The open levels of this thread, the outermost first."""
    return _open.get()


def is_open(number: int) -> bool:
    """Whether the transform of this number is running, in this thread."""
    return any([level.number == number for level in _open.get()])


def level_numbered(number: int) -> Level | None:
    return _names.get(number)


def mark_created(tensor: Any) -> None:
    """A plain tensor was made inside the open transforms: it may be written to."""
    key = id(tensor)
    for level in _open.get():
        level.created.add(key)


@contextmanager
def opened(level: Level) -> Iterator[Level]:
    """Inside, arrays of this level are at home."""
    _names[level.number] = level
    if len(_names) > _KEPT:
        with suppress(KeyError, RuntimeError):  # another thread was at it
            del _names[next(iter(_names))]
    outer = _open.get()
    LEVELS.append(level)
    try:
        _open.set((*outer, level))
        yield level
    finally:
        _open.set(outer)
        LEVELS.pop()


def check_at_home(array: Layer, what: str) -> None:
    """Refuse an array that got out of its transform; a backward may meet arrays of transforms that have ended."""
    number = array.level
    for level in _open.get():
        if level.number == number:
            return
    if current() is not None:
        return
    known = _names.get(number)
    name = "a transform" if known is None else known.name
    raise GraphError(
        message(what, f"a tensor from inside {name} is used after {name} has ended",
                operands=[] if known is None else [("called at", known.site), ("tensor", f"shape {list(array.shape)}")],
                hint=f"return it from the function that {name} was given, do not keep it in a variable of the outside")
    )  # fmt: skip
