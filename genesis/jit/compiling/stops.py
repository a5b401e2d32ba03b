"""Why a function that is being traced is stopped: it has an effect, or reads what it must not."""

from __future__ import annotations

import itertools
import os
from types import CodeType
from typing import NamedTuple

Position = tuple[int, int | None]


class Effect(NamedTuple):
    """Something that a replay would not do again, and where."""

    what: str
    filename: str
    line: int

    def __str__(self) -> str:
        return f"{self.what} at {os.path.basename(self.filename)}:{self.line}"


class Leaked(BaseException):
    """Raised where a function in C may take a number of the host for a constant; with the numbers that the code reads."""


class Conflict(BaseException):
    """Raised where the function reads what a statement changes that Python does at each call: its code, and the name."""


class Anew(BaseException):
    """Raised where a statement that Python does changes what the function made: the code that made it, and the variable."""


class Set(NamedTuple):
    """The statement that sets a variable."""

    name: str


class Moving(BaseException):
    """Raised where the function reads a float, before a statement changes it that Python does: where it is found."""


class Late(BaseException):
    """Raised behind a function that has read entries before it set them, which are to be arguments: all that it sets."""


class Stopped(BaseException):
    """Raised into a function that is being traced, before it has an effect."""


def position(code: CodeType, instruction: int) -> Position:
    """The line and column of an instruction; the latter may not be known."""
    line, _, column, _ = next(itertools.islice(code.co_positions(), max(instruction, 0) // 2, None))
    return line or code.co_firstlineno, column
