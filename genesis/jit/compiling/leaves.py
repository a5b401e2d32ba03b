"""What statements that Python does at each call read, give and change, as data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import CellType
from typing import Any, NamedTuple

from genesis.base.errors import GraphError
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.jit.arguments import Var


class NotKept(GraphError):
    """A statement that Python cannot do at each call. A trace in which that was raised has ended, also where the function
    catches it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if isinstance(refusals := getattr(tracer.get(), "refusals", None), list):
            refusals.append(self)


UNKNOWN: Any = object()  # nobody knows
Now = Callable[[Any], Any]  # what a leaf is in this call


class Leaf:
    """Something that a statement reads and that is another thing at each call."""

    __slots__ = ()

    def now(self, values: Any, given: Any, done: Any) -> Any:
        raise NotImplementedError


class Told(Leaf):
    """A tensor that was computed, or its element: ``index`` is that of the results of the step."""

    __slots__ = ("index", "number")

    def __init__(self, index: int, number: bool) -> None:
        self.index, self.number = index, number

    def now(self, values: Any, given: Any, done: Any) -> Any:
        value = values[self.index]
        if self.number:
            return value.item()
        return value if isinstance(value, Tensor) else wrap(value)


class Argument(Leaf):
    """An argument of the function."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return given[self.index]


class Result(Leaf):
    """What another statement has given (0), or has set."""

    __slots__ = ("call", "index")

    def __init__(self, call: int, index: int) -> None:
        self.call, self.index = call, index

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return done[self.call][self.index]


class Asked(Leaf):
    """A number of the host; of one that is ``whole`` the trace computes with a float of the same value."""

    __slots__ = ("ask", "whole")

    def __init__(self, ask: Callable[[], float], whole: bool = False) -> None:
        self.ask, self.whole = ask, whole

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return int(self.ask()) if self.whole else self.ask()


class Before(Leaf):
    """A number of the host that was read before another statement changes it."""

    __slots__ = ("call", "index")

    def __init__(self, call: int, index: int) -> None:
        self.call, self.index = call, index

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return done[self.call][-1][self.index]


class Unread(Leaf):
    """What a statement has changed, and something reads behind it: what is there then."""

    __slots__ = ("held", "name")

    def __init__(self, held: Any, name: Any) -> None:
        self.held, self.name = held, name

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return contents(self.held) if isinstance(self.held, CellType) else self.held[self.name]


class Container(Leaf):
    """A container that the function made: it is made anew."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: type, items: list[Any]) -> None:
        self.kind, self.items = kind, items

    def now(self, values: Any, given: Any, done: Any) -> Any:
        return self.kind([x.now(values, given, done) if isinstance(x, Leaf) else x for x in self.items])


class Setting(NamedTuple):
    """That a statement sets an attribute of an object, to a constant; `UNKNOWN` where nobody knows."""

    held: Any
    name: str
    value: Any

    def changes(self, thing: Any) -> bool:
        """Whether it may be of this object, and be something else there than it was."""
        if self.held is not thing and (self.held is not UNKNOWN or self.name not in vars(thing)):
            return False
        before = vars(thing).get(self.name, UNKNOWN)  # a parameter is elsewhere
        return self.value is UNKNOWN or type(before) is not type(self.value) or before != self.value


class HostCall:
    """Something that Python does at each call.

    Attributes:
        title: where it is
        build: gives the function, and the cells of what it sets, for what its leaves are now
        told: which of what was computed it reads
        plain: the numbers and strings that it reads
        first: whether it comes before all that is computed
        early: whether it comes before the step writes to tensors
        changes: dictionaries, lists and cells that it writes to; with the name of an entry where only that is written
        named: the containers among these (`UNKNOWN` for any) of which entries are written that have names, and these
        sets: attributes of objects of this package, or of what nobody knows
        unknown: by what it looks up an item that it writes to in a container that nobody knows; `UNKNOWN` for any
        blind: whether it can look at no tensors but those that it is given
        raises: whether it is there to stop the function
        may_raise: whether an error may come of what it calls, looks up or divides
        feeds: the numbers that it changes and that are asked for behind it
        asks: numbers that it changes, and others read as they were before
        trusted: whether it is of this package: who reads what it changes says so
        modes: what opens the modes that it stands in, where they are not those of the call
        may_set: names of attributes and entries that functions of the program that it calls may set
        looks: the containers that what it gives may be a part of
        changes_given: whether it writes to what others before it give
        drawn: whether it does no more than draw random numbers that can be set back
        gives: which of what it returns (0) and sets are arguments of the graph, and their `Looks`
        number: where the graph finds the number that it draws, see `Given`
        of_python: whether that is one of Python's `random`
    """

    def __init__(self, title: str, build: Callable[[Now], tuple[Callable[[], Any], tuple[CellType, ...]]]) -> None:
        self.title, self.build = title, build
        self.told: list[int] = []
        self.plain: list[Any] = []
        self.changes: list[tuple[Any, Any]] = []
        self.blind, self.raises, self.first, self.early = True, False, False, False
        self.feeds, self.asks = frozenset[Var](), list[Callable[[], float]]()
        self.may_raise, self.unknown, self.sets = False, list[Any](), list[Setting]()
        self.named = list[tuple[Any, tuple[Any, ...]]]()
        self.trusted = self.drawn = self.changes_given = False
        self.may_set = set[Any]()
        self.looks: list[Any] = []
        self.gives: list[tuple[int, Any]] = []
        self.number: Any = None
        self.of_python = False
        self.modes: Callable[[], AbstractContextManager[Any]] | None = None
        self.writes = False  # whether it writes to tensors
        self.draws = False  # whether it may draw random numbers
        self.sees_gradients = False  # whether it, or what it calls, asks for a .grad
        self.assigned = False  # whether some .grad was set, or removed, before it
        self.handed: list[tuple[Any, int]] = []  # the memory of tensors that it gets, and how often that was written to
        self.arguments: list[tuple[Any, int]] = []  # the same of arguments, which it looks at when it is done
        self.stamp: tuple[int, ...] = ()
        self.sets_before = 0  # how many slots had been set
        self.looks_into: list[Any] = []  # the entries that it names, see `Slot.identity`

    @property
    def is_asked(self) -> bool:
        """Whether the graph takes something that it draws, so that it comes before all that is computed."""
        return bool(self.gives) or self.number is not None

    def __call__(self, values: Any, given: Any, done: list[Any]) -> None:
        """Do it; ``done`` is what the calls before have given, and gets what this one gives."""
        function, cells = self.build(lambda leaf: leaf.now(values, given, done) if isinstance(leaf, Leaf) else leaf)
        asked = [ask() for ask in self.asks]
        with nullcontext() if self.modes is None else self.modes():
            result = function()
        done.append((result, *[contents(cell) for cell in cells], asked))


def without_history(x: Tensor) -> Tensor:
    return x if x._node is None else x.detach()


def is_set(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
