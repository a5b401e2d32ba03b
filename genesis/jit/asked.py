"""Numbers of the host in a trace: inputs of the graph, which a replay asks for again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.device import META
from genesis.base.errors import GraphError, message
from genesis.core.graph.tracing import HostNumber, tracer
from genesis.jit.arguments import Var
from genesis.jit.numbers import Decision, Entry, Formula, identity

SCALAR = Spec((), np.dtype(np.float64), META)  # of numbers of the host: they have no dtype of their own


class AskedNumbers:
    """The part of a trace that knows its numbers.

    Attributes:
        numbers: those that the graph computes with, in the order in which they are asked for
        counts: what goes up by one at each replay: a dictionary and a key
        after: how many counts had gone up when a number was asked for
        asked_behind: how many calls of the host were kept before a number was asked for: before the first of the numbers
            that it is made of, and before the last
        derived: numbers that are read, or made of others
        decisions: what Python decided by them
        raw: what all of them are for functions in C, which look past their methods: two traces with different ones are the
            same if none does; None: what they are
    """

    def __init__(self) -> None:
        self.numbers: list[tuple[Var, Callable[[], float]]] = []
        self.counts: list[tuple[Any, str]] = []
        self.after: dict[Var, int] = {}
        self.asked_behind: dict[Var, tuple[int, int]] = {}
        self.derived: dict[Any, HostNumber] = {}
        self.decisions: dict[Any, Decision] = {}
        self.raw: float | None = None

    def kept(self) -> int:
        """How many calls of the host are kept so far; a subclass may keep some."""
        return 0

    def sets(self, thing: Any, name: str, store: dict[str, Any] | None = None) -> None:
        """An attribute of an object is about to be set; a subclass may do that at each call."""

    def host(self, value: Callable[[], float]) -> float:
        return self._number(value, len(self.counts), False)

    def option(self, holder: Any, keys: tuple[Any, ...], title: str) -> HostNumber:
        """An option in a dictionary, an input of the graph."""
        return self.reads(Entry(holder, keys, title))

    def reads(self, entry: Entry, whole: bool = False) -> HostNumber:
        """A number of the outside, an input of the graph."""
        return self._once(entry.identity(), lambda: self._number(entry, 0, True, whole))

    def combined(self, name: str, number: HostNumber, others: tuple[Any, ...]) -> HostNumber:
        """What Python computes with a number of the host, another one."""
        formula, parts = _formula(name, number, others)
        return self._made_of(formula, parts, formula.kind is int)

    def _made_of(self, formula: Formula, parts: list[HostNumber], whole: bool) -> HostNumber:
        after, free = max([x.after for x in parts]), all([x.free for x in parts])
        behind = [self.asked_behind[x.var] for x in parts]
        first, last = min([b for b, _ in behind]), max([b for _, b in behind])

        def make() -> HostNumber:
            made = self._number(formula, after, free, whole)
            self.asked_behind[made.var] = first, last
            return made

        return self._once((formula.identity(), after, first, last), make)

    def computed(self, name: str, args: tuple[Any, ...]) -> HostNumber:
        """What a function of `math` gives of numbers of which some are of the host, another one."""
        numbers = [x for x in args if x.__class__ is HostNumber]
        if not all([isinstance(x, int | float) for x in args]):
            raise GraphError(message("trace", f"math.{name} of a number of the host and a {type(args[-1]).__name__}"))
        formula = Formula(name, tuple([x.ask if x.__class__ is HostNumber else x for x in args]))
        return self._made_of(formula, numbers, name in ("floor", "ceil"))

    def decided(self, name: str, number: HostNumber, others: tuple[Any, ...]) -> bool:
        """What Python decides by a number of the host: the graph holds as long as it would decide in the same way."""
        formula, parts = _formula(name, number, others)
        if not all([x.free for x in parts]):
            raise GraphError(
                message("trace", "Python decides by a number of the host that is computed at each call, "
                        "the decision would be a constant of the graph", hint="use genesis.where")
            )  # fmt: skip
        known = self.decisions.get(formula.identity())
        if known is None:
            known = self.decisions[formula.identity()] = Decision(formula)
        return known.answer

    def _number(self, ask: Callable[[], float], after: int, free: bool, whole: bool = False) -> HostNumber:
        token = tracer.set(None)
        try:
            value = ask()
        finally:
            tracer.reset(token)
        number = HostNumber(value if self.raw is None else self.raw)
        number.value = value
        number.var, number.ask, number.after, number.free, number.whole = Var(SCALAR), ask, after, free, whole
        self.asked_behind[number.var] = self.kept(), self.kept()
        return number

    def taken(self, number: HostNumber) -> Var:
        """The variable of a number that the graph computes with."""
        if number.whole:
            raise GraphError(
                message("trace", "a whole number of the host is computed with, which may decide about a dtype")
            )
        if number.var not in self.after:
            self.after[number.var] = number.after
            at = len(self.numbers)  # they are asked for in the order of the counts
            while at and self.after[self.numbers[at - 1][0]] > number.after:
                at -= 1
            self.numbers.insert(at, (number.var, number.ask))
        return number.var

    def floating(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an op; beside tensors of floats a whole number is as good as a float of its value."""
        if not any([x.__class__ is HostNumber and x.whole for x in args]):
            return args
        kinds = {x.dtype.kind for x in args if hasattr(x, "dtype") and hasattr(x, "shape")}
        return tuple([self._as_float(x) if x.__class__ is HostNumber and kinds == {"f"} else x for x in args])

    def _as_float(self, number: HostNumber) -> HostNumber:
        if not number.whole:
            return number
        make = lambda: self._number(number.ask, number.after, number.free)
        return self._once(("as a float", identity(number.ask), number.after), make)

    def advanced(self, counts: Any, key: str) -> None:
        self.counts.append((counts, key))

    def _once(self, key: Any, make: Callable[[], HostNumber]) -> HostNumber:
        key = key, self.kept()
        known = self.derived.get(key)
        if known is None:
            known = self.derived[key] = make()
        return known


def _formula(name: str, number: HostNumber, others: tuple[Any, ...]) -> tuple[Formula, list[HostNumber]]:
    """A formula, and the numbers of the host in it."""
    operands = (number, *others)
    kind = int if _is_whole(name, operands) else float
    formula = Formula(name, tuple([x.ask if x.__class__ is HostNumber else x for x in operands]), kind)
    return formula, [x for x in operands if x.__class__ is HostNumber]


def _is_whole(name: str, operands: tuple[Any, ...]) -> bool:
    """Whether Python computes with whole numbers here, and gives one."""
    if not all([x.whole if x.__class__ is HostNumber else x is None or isinstance(x, int) for x in operands]):
        return False
    if name == "__pow__" and type(operands[1]) is int:
        return operands[1] >= 0
    if name in ("__pow__", "__rpow__"):
        raise GraphError(message("trace", "a power whose exponent is a whole number of the host: it is whole or not"))
    return name.startswith("__") and "truediv" not in name
