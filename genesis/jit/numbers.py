"""Numbers of the host as questions that can be asked again: what is in a dictionary, and formulas of that.

They are equal where they ask the same of the same things, so that a compiled call asks once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

from genesis.core.functions.captures import contents
from genesis.core.graph.tracing import HostNumber

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class Entry:
    """What is in a dictionary or a sequence, or in what is in there: ``holder[a]``, ``holder[a][b]``; or in a cell."""

    __slots__ = ("holder", "keys", "title")

    def __init__(self, holder: Any, keys: tuple[Any, ...], title: str = "") -> None:
        self.holder, self.keys, self.title = holder, keys, title

    def value(self) -> Any:
        """What is there now."""
        value = contents(self.holder) if isinstance(self.holder, CellType) else self.holder
        for key in self.keys:
            value = value[key]
        return value

    def __call__(self) -> float:
        value = self.value()
        return value.value if value.__class__ is HostNumber else float(value)  # while one is put there

    def put(self, value: Any) -> None:
        """Exchange it."""
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.keys[0]] = value

    def of(self, new: Callable[[Any], Any]) -> Entry:
        """The same of another thing: ``new(x)`` stands for ``x``."""
        return Entry(new(self.holder), self.keys, self.title)

    def identity(self) -> Any:
        return id(self.holder), self.keys

    def source(self, name: Callable[[Any], str]) -> str:
        """The same as Python, where ``name(x)`` stands for a thing."""
        cell = ".cell_contents" if isinstance(self.holder, CellType) else ""
        return "".join([name(self.holder), cell, *[f"[{name(key)}]" for key in self.keys]])

    def __str__(self) -> str:
        return self.title or "".join([f"[{key!r}]" for key in self.keys])


class Formula:
    """What Python computes with numbers of the host: a method of floats (of whole numbers, where all of them are), or a
    function of `math`, and what it is called with.
    """

    __slots__ = ("kind", "name", "parts")

    def __init__(self, name: str, parts: tuple[Any, ...], kind: type = float) -> None:
        self.name, self.parts, self.kind = name, parts, kind

    @property
    def function(self) -> Callable[..., Any]:
        return getattr(self.kind if self.name.startswith("__") else math, self.name)  # type: ignore[no-any-return]

    def __call__(self) -> Any:
        kind = self.kind
        return self.function(*[None if x is None else kind(x() if callable(x) else x) for x in self.parts])

    def of(self, new: Callable[[Any], Any]) -> Formula:
        """The same of other things: ``new(x)`` stands for a question ``x``."""
        return Formula(self.name, tuple([new(x) if callable(x) else x for x in self.parts]), self.kind)

    def identity(self) -> Any:
        parts = tuple([identity(x) if callable(x) else (type(x), repr(x)) for x in self.parts])
        return self.name, self.kind, parts

    def __str__(self) -> str:
        name, (first, *others) = self.name.strip("_"), self.parts
        if name == "bool":
            return f"bool({first})"
        return " ".join([str(first), _SIGNS.get(name, name), *map(str, others)])


def identity(question: Callable[[], float]) -> Any:
    """Equal for questions that are the same."""
    return question.identity() if isinstance(question, Entry | Formula) else id(question)


class StillFloat:
    """What the graph reads as a number is one: a guard."""

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def changed(self) -> str | None:
        try:
            kind = type(self.entry.value())
        except (KeyError, ValueError):
            return f"{self.entry} is gone"
        return None if kind is float else f"{self.entry} is {kind.__name__} now, it was a float"

    def of(self, new: Callable[[Any], Any]) -> StillFloat:
        """The same guard of another thing."""
        return StillFloat(self.entry.of(new))


@contextmanager
def read_by(active: Any, entries: Iterable[Entry]) -> Iterator[None]:
    """Numbers of the host stand for what is in dictionaries and cells, while a trace reads them."""
    before = [(entry, entry.value()) for entry in entries]
    try:
        for entry, _ in before:
            entry.put(active.reads(entry))
        yield
    finally:
        for entry, value in before:
            entry.put(value)


class Decision:
    """Python decided by a number of the host: a guard."""

    __slots__ = ("answer", "ask")

    def __init__(self, ask: Formula) -> None:
        self.ask, self.answer = ask, bool(ask())

    def changed(self) -> str | None:
        try:
            return None if self.ask() == self.answer else f"{self.ask} is {not self.answer} now, it was {self.answer}"
        except (
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # nobody would ask: it was decided otherwise, or it is no number any more
            return f"{self.ask} is nothing now: {error}"

    def of(self, new: Callable[[Any], Any]) -> Decision:
        """The same guard of other things."""
        guard = Decision.__new__(Decision)
        guard.ask, guard.answer = self.ask.of(new), self.answer
        return guard
