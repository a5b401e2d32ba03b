"""Where the function of a random program finds what it reads: among the globals, in a closure, in an object that it is a
method of.

Each of `HOMES` makes the function of its statements, and one that is called when names have got other values in the
program's scope: it hands them on to where the function looks.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from textwrap import indent
from types import FunctionType
from typing import Any

Made = tuple[Any, Callable[[], None]]
DATA = [
    "w1", "w2", "w3", "buf", "turned", "parameters", "log", "box", "net", "limit", "opt", "block", "counted", "fails",
    "kept", "named", "mean", "sched", "scaler", "gen", "tally", "pair", "settings", "table", "ladder",
    "ticks", "level", "mask", "ints", "small", "half", "wide", "none", "waves", "inner", "averaged", "spied",
]  # fmt: skip


def in_globals(statements: Sequence[str], scope: dict[str, Any], parameters: str) -> Made:
    _run(f"def step({parameters}):\n" + indent("\n".join(statements), " " * 4), scope)
    return scope["step"], lambda: None


def in_a_closure(statements: Sequence[str], scope: dict[str, Any], parameters: str) -> Made:
    names = [name for name in DATA if name in scope]
    body = indent("\n".join(statements), " " * 8)
    _run(f"def home({', '.join(names)}):\n    def step({parameters}):\n{body}\n    return step", scope)
    step: FunctionType = scope["home"](*[scope[name] for name in names])
    cells = dict(zip(step.__code__.co_freevars, step.__closure__ or (), strict=True))

    def moved() -> None:
        for name, cell in cells.items():
            cell.cell_contents = scope[name]

    return step, moved


def in_an_object(statements: Sequence[str], scope: dict[str, Any], parameters: str) -> Made:
    names = [name for name in DATA if name in scope]
    read = re.compile(rf"(?<![\w.'])({'|'.join(names)})\b(?!=)")  # neither an attribute nor a keyword
    body = indent(read.sub(r"self.\1", "\n".join(statements)), " " * 8)
    _run(f"class Home:\n    def step(self, {parameters}):\n{body}", scope)
    home = scope["Home"]()

    def moved() -> None:
        for name in names:
            setattr(home, name, scope[name])

    moved()
    return home.step, moved


def statement_at(statements: Sequence[str], home: str, line: int) -> int:
    """The index of the statement that a line of the function is of."""
    behind = accumulate([s.count("\n") + 1 for s in statements])
    return next((i for i, n in enumerate(behind) if line < FIRST[home] + n), len(statements) - 1)


def _run(source: str, scope: dict[str, Any]) -> None:
    name = f"<step {len(linecache.cache)}>"  # a name of its own: statements are taken out of the source
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), scope)


HOMES: dict[str, Callable[[Sequence[str], dict[str, Any], str], Made]] = {
    "globals": in_globals,
    "a closure": in_a_closure,
    "an object": in_an_object,
}
FIRST = {"globals": 2, "a closure": 3, "an object": 3}  # the line of the first statement
