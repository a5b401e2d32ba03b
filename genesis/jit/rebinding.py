"""The same program with other parameters: which thing of the new binding stands for which of the old one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import CellType, FunctionType, MethodType
from typing import Any

from genesis.base.errors import ArgumentError, GraphError, message
from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import Dependable
from genesis.jit.binding import Binding, check_tensors
from genesis.jit.guards import CapturedAsTheyWere, Unchanged
from genesis.jit.memory import check_overlaps
from genesis.jit.numbers import Decision, Entry, Formula, StillFloat
from genesis.jit.program import Program


class Exchange:
    """What is exchanged for what, by the identity of the old."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        self.new: dict[int, Any] = {}
        self.old: list[Any] = []  # ids are of objects that live
        for old, new in pairs:
            self.pair(type(old).__name__, old, new)

    def pair(self, name: str, old: Any, new: Any) -> None:
        if type(old) is not type(new):
            raise ArgumentError(
                message(
                    "bind", f"{name} is a {type(old).__name__}, and what is to take its place a {type(new).__name__}"
                )
            )
        if id(old) in self.new:
            if self.new[id(old)] is not new:
                raise GraphError(
                    message(
                        "bind",
                        f"two things are to take the place of {name}",
                        hint="share in the new what is shared in the old",
                    )
                )
            return
        self.new[id(old)] = new
        self.old.append(old)
        if isinstance(old, Dependable):
            self._contents(name, old, new)

    def _contents(self, name: str, old: Dependable, new: Dependable) -> None:
        """The tensors, dictionaries and modules in a module or an optimizer, by the names that they have there."""
        for prefix, a, b in _parts(name, old, new):
            if a is not old:
                self.pair(prefix, a, b)
                continue
            before, after = {**a._taken_for_granted(), **a._holders()}, {**b._taken_for_granted(), **b._holders()}
            for key, value in before.items():
                if key not in after:
                    raise GraphError(message("bind", f"{prefix}.{key} is gone"))
                for x, y in _things(prefix + "." + key, value, after[key]):
                    self.pair(prefix + "." + key, x, y)

    def __call__(self, thing: Any) -> Any:
        """What is in the place of a thing now."""
        if isinstance(thing, tuple):
            return tuple([self(item) for item in thing])
        return self.new.get(id(thing), thing)

    def knows(self, thing: Any) -> bool:
        return any([self.knows(item) for item in thing]) if isinstance(thing, tuple) else id(thing) in self.new


def _parts(name: str, old: Dependable, new: Dependable) -> Iterable[tuple[str, Dependable, Dependable]]:
    """A thing itself, and what is inside of it."""
    yield name, old, new
    parts = dict(new._parts())
    for path, part in old._parts():
        if part is not old:
            if path not in parts:
                raise GraphError(message("bind", f"{name}.{path} is gone"))
            yield f"{name}.{path}", part, parts[path]


def _things(name: str, old: Any, new: Any) -> Iterable[tuple[Any, Any]]:
    """The tensors and dictionaries in an entry of a state, with their counterparts."""
    if isinstance(old, Tensor | dict):
        yield old, new
    elif isinstance(old, tuple) and any([isinstance(x, Tensor) for x in old]):
        if not isinstance(new, tuple) or len(new) != len(old):
            raise GraphError(
                message(
                    "bind", f"{name} has {len(new)} entries, it had {len(old)}", hint="make a first step with it before"
                )
            )
        yield from [(x, y) for x, y in zip(old, new, strict=True) if isinstance(x, Tensor)]


def rebound(program: Program, binding: Binding, pairs: Iterable[tuple[Any, Any]]) -> Binding:
    """See `Graph.bind`."""
    exchange = Exchange(pairs)
    exchanged = replace(
        binding,
        captured=exchange(binding.captured),
        others=exchange(binding.others),
        numbers=tuple([_function(f, exchange) for f in binding.numbers]),
        counts=tuple([(exchange(counts), key) for counts, key in binding.counts]),
        streams=exchange(binding.streams),
        objects={i: exchange(x) for i, x in binding.objects.items()},
    )
    check_tensors(program, exchanged)
    written = {w.index for w in program.writes if w.kind == "captured"}
    check_overlaps([(x._array, i in written, x._spec()) for i, x in enumerate(exchanged.captured)])
    guards = [_guard(guard, exchange) for guard in binding.guards]
    for guard in guards:
        reason = guard.changed()
        if reason is not None:
            raise GraphError(message("bind", reason, hint="trace the function with the new one"))
    return replace(exchanged, guards=tuple(guards))


def _guard(guard: Any, exchange: Exchange) -> Any:
    """The same question about what is new."""
    if isinstance(guard, CapturedAsTheyWere | StillFloat):
        return guard.of(exchange)
    if isinstance(guard, Decision):
        return guard.of(lambda question: _function(question, exchange))
    if not isinstance(guard, Unchanged):
        return guard
    if exchange.knows(guard.thing):
        return guard.of(exchange(guard.thing), exchange)
    inside = [key for key, value in guard.state.items() if exchange.knows(value)]
    if (
        inside and guard.thing is not None and guard.thing._holders()
    ):  # an optimizer: its state is that of the old parameters
        raise GraphError(
            message(
                "bind",
                f"{guard.name}{inside[0]} holds what is exchanged, and is not exchanged itself",
                hint="give a pair for it, too",
            )
        )
    return (
        guard.without(set(inside)) if inside else guard
    )  # what the function finds there is no matter of the new binding


def _function(function: Callable[[], float], exchange: Exchange) -> Callable[[], float]:
    """A function of numbers that finds the new things where it found the old ones: in its closure and its defaults."""
    if isinstance(function, Entry):
        return function.of(exchange)
    if isinstance(function, Formula):
        return function.of(lambda question: _function(question, exchange))
    if isinstance(function, MethodType):
        return MethodType(function.__func__, exchange(function.__self__))
    if not isinstance(function, FunctionType):
        return exchange(function)  # type: ignore[no-any-return]
    cells = tuple(
        [
            CellType(exchange(contents(cell))) if exchange.knows(contents(cell)) else cell
            for cell in function.__closure__ or ()
        ]
    )
    defaults = None if function.__defaults__ is None else exchange(function.__defaults__)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, cells or None)
    copy.__kwdefaults__ = (
        None
        if function.__kwdefaults__ is None
        else {name: exchange(value) for name, value in function.__kwdefaults__.items()}
    )
    return copy
