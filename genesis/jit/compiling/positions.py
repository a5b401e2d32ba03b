"""Where the random numbers of Python and NumPy are, so that they can be set back."""

from __future__ import annotations

import ctypes
import functools
import random
from _random import Random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_SIZE = Random.__basicsize__ - object.__basicsize__  # of the numbers that Python's source of them is made of


class Position:
    """Where they are now.

    Args:
        python, numpy: whether those of each are wanted: it takes 1 and 50 us
    """

    __slots__ = ("numpy", "python")

    def __init__(self, python: bool = True, numpy: bool = True) -> None:
        self.python: Any = None
        if python:
            self.python = (_numbers(random._inst), random._inst.gauss_next) if is_known() else random.getstate()  # type: ignore[attr-defined]
        self.numpy: Any = np.random.get_state(legacy=False) if numpy else None

    def restore(self) -> None:
        if self.python is not None and is_known():
            _put(random._inst, self.python[0])  # type: ignore[attr-defined]
            random._inst.gauss_next = self.python[1]  # type: ignore[attr-defined]
        elif self.python is not None:
            random.setstate(self.python)
        if self.numpy is not None:
            np.random.set_state(self.numpy)


def _numbers(source: Any) -> bytes:
    """The memory of a source: `getstate` makes 625 numbers of it, which takes 20 times as long."""
    return ctypes.string_at(id(source) + object.__basicsize__, _SIZE)


def _put(source: Any, numbers: bytes) -> None:
    ctypes.memmove(id(source) + object.__basicsize__, numbers, _SIZE)


@functools.cache
def is_known() -> bool:
    """Whether the memory of a source is all that it knows, and lies where it does in CPython."""
    source, other = random.Random(1), random.Random(2)
    if type(random._inst) is not random.Random or _SIZE < 2500:  # type: ignore[attr-defined]
        return False
    before, state = _numbers(source), source.getstate()
    source.random()
    if _numbers(source) == before:
        return False
    _put(source, before)
    same = source.getstate() == state
    _put(other, before)
    return same and other.random() == source.random()


@contextmanager
def back_at(position: Position | None) -> Iterator[None]:
    """Random numbers are where they were, for a block."""
    now = Position() if position is not None else None
    try:
        if position is not None:
            position.restore()
        yield
    finally:
        if now is not None:
            now.restore()
