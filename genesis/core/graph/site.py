"""Where in the user's program something was called: recorded for every node, shown in errors, graphs and reports.

A site is a code object and the position of an instruction in it. Keeping the two costs about 0.1 us; the line
number is worked out when somebody asks.
"""

from __future__ import annotations

import sys
import warnings
from types import CodeType, FrameType
from typing import NamedTuple

from genesis.base.text import name_of, visible
from genesis.base.tracebacks import LIBRARY as LIBRARY


class Site(NamedTuple):
    """A line of the user's program."""

    filename: str
    line: int
    function: str

    @property
    def location(self) -> str:
        """File and line, by the names that people see: a cell of a notebook has its number."""
        cell = _cell(self.filename)
        return name_of(f"{self.filename}:{self.line}" if cell is None else f"{cell}, line {self.line}")

    @property
    def short(self) -> str:
        """The same without the folder."""
        return self.location.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{self.location} in {name_of(self.function)}"


def _cell(filename: str) -> str | None:
    """``Cell In[4]`` for the file in which a notebook keeps its fourth cell, None for any other file."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    compiler = getattr(shell, "compile", None)
    named = getattr(compiler, "format_code_name", lambda name: None)(filename)
    return None if named is None else " ".join(named)


def user_site(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """The first frame outwards that is not in this package."""
    library = LIBRARY
    while frame is not None:
        code = frame.f_code
        if not library[code.co_filename]:
            return code, frame.f_lasti
        frame = frame.f_back
    return None, -1


def site_here() -> tuple[CodeType | None, int]:
    """Where the user called what is running now."""
    return user_site(sys._getframe(1))


def line_here() -> Site | None:
    """The line in which the user called what is running now."""
    return site_of(*user_site(sys._getframe(1)))


def user_level() -> int:
    """The ``stacklevel`` with which a warning of the caller names the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and LIBRARY[frame.f_code.co_filename]:
        level, frame = level + 1, frame.f_back
    return level


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that names the line in which the user called what is running now."""
    warnings.warn(visible(text), category, stacklevel=user_level())


def site_of(code: CodeType | None, at: int) -> Site | None:
    """The line of a position in a code object."""
    if code is None:
        return None
    line = code.co_firstlineno
    for begin, end, number in code.co_lines():
        if begin <= at < end and number is not None:
            line = number
    return Site(code.co_filename, line, code.co_name)
