"""Python functions that are written for one use: lines, and the objects that they name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.graph.tensor import Tensor, wrap


class _Miss:
    """What a written function returns where it cannot tell at once that all is as it was."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<miss>"


MISS: Any = _Miss()
ELSEWHERE: Any = _Miss()  # all is as it was, but Python would decide otherwise


class Text:
    """A function while it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"MISS": MISS, "Tensor": Tensor, "ndarray": np.ndarray, "wrap": wrap}
        self.given: list[Any] = []  # arguments that numbers of the host are asked from, and their names
        self._names: dict[int, str] = {}
        self._asked: set[str] = set()

    def name(self, thing: Any) -> str:
        """A name for an object; a word of Python where there is one."""
        if thing is None or thing is True or thing is False:
            return repr(thing)
        name = self._names.get(id(thing))
        if name is None:
            name = self._names[id(thing)] = f"k{len(self.scope)}"
            self.scope[name] = thing  # so it lives, and nothing else gets its id
        return name

    def array_class(self, kind: type) -> str:
        """The name of a class of arrays."""
        return "ndarray" if kind is np.ndarray else self.name(kind)

    def new(self, letter: str) -> str:
        """A name for a variable of the function."""
        return f"{letter}{len(self.lines)}"

    def add(self, *lines: str) -> None:
        self.lines += lines

    def miss_if(self, condition: str) -> None:
        line = f"if {condition}: return MISS"
        if line not in self._asked:
            self._asked.add(line)
            self.lines.append(line)

    def unless(self, condition: str) -> None:
        self.miss_if(f"not ({condition})")

    def later(self, lines: Callable[[], list[str]]) -> Callable[[], Any]:
        """A function of these lines, which are asked for when it is called first."""

        @functools.cache
        def written() -> Any:
            text = Text()
            text.lines, text.scope = [*lines(), "return None"], self.scope
            return text.compiled("later", "")

        return lambda: written()()

    def compiled(self, name: str, parameters: str) -> Any:
        """The function."""
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(compile(f"def {name}({parameters}):\n{body}", f"<genesis {name}>", "exec"), self.scope)
        function = self.scope.pop(name)
        function.text = body
        return function
