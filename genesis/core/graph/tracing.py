"""What a trace is told by the rest of the system: values of the host that change from step to step.

`genesis.jit.trace` records what is done with tensors. What is done with Python numbers it does not see: a learning rate
would be a constant of the graph. Code that is to be traced says where such a number comes from:

    rate = host(lambda: group["lr"])          # asked for again at every replay
    advance(state, "step")                    # a count that goes up by one at every replay

Outside of a trace both do just what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from genesis.arrays.memory import snapshot
from genesis.base.dtypes import dtype
from genesis.base.errors import GraphError, message

tracer: ContextVar[Any] = ContextVar("genesis_tracer", default=None)


PLAIN = (bool, int, float, complex, str, bytes, type(None), dtype)


class Dependable:
    """Something that Python asks while a function runs, a module or an optimizer: a traced graph holds for the answers
    that it gave.
    """

    __slots__ = ()
    _begins_later: tuple[str, ...] = ()  # attributes whose dictionaries begin at a first call, and then stay

    def _taken_for_granted(self) -> dict[str, Any]:
        """What the answers depend on, by name: numbers, strings, other objects, and tuples of them."""
        raise NotImplementedError

    def _begun(self) -> dict[str, Any]:
        """What there is by now of what begins later: for a function that reads it."""
        return {}

    def _witnesses(self) -> tuple[Any, ...]:
        """Objects: as long as they are the same ones, `_taken_for_granted` would say the same. Quick to collect."""
        return (object(),)

    def _answers(self) -> list[tuple[Any, tuple[Any, ...] | None]] | None:
        """Dictionaries and lists, and which of their entries count (None: all): as long as they hold the same objects,
        `_taken_for_granted` would say the same. None if that cannot be said; then it is asked itself.
        """
        return None

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """Other things of the kind inside of it, by name."""
        return iter(())

    def _asks_itself(self) -> bool:
        """Whether code of this package tells a trace of the numbers in its dictionaries."""
        return True

    def _holders(self) -> dict[str, Any]:
        """The dictionaries that its numbers and counts are in, by name."""
        return {}


def plain_only(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are numbers, strings and the like, or sequences of them."""
    state: dict[str, Any] = {}
    for name, value in values.items():
        if type(value) in PLAIN:
            state[name] = value
        elif type(value) in (tuple, list) and all([type(v) in PLAIN for v in value]):
            state[name] = tuple(value)
    return state


def depends(thing: Dependable, read: str = "") -> None:
    """Say that what the function does depends on what a module or an optimizer is set to, and which attribute it reads."""
    active = tracer.get()
    if active is not None:
        active.depends(thing, read)


def goes_through(thing: Dependable) -> None:
    """Say that the function goes through what is in a module, whatever that is."""
    active = tracer.get()
    if active is not None:
        active.goes_through(thing)


def changes(thing: Any, what: str) -> None:
    """Say that something of an object is about to change, which a graph would not do again: what that is."""
    active = tracer.get()
    if active is not None:
        active.changes(thing, what)


def sets(thing: Any, name: str, store: dict[str, Any] | None = None) -> None:
    """Say that an attribute of an object is about to be set: a trace is to set it at each call.

    Args:
        store: a dictionary of the object that it is in, of which the function may have read what was there before; None
            for an attribute that is set whatever that was
    """
    active = tracer.get()
    if active is not None:
        active.sets(thing, name, store)


def at_end(check: Callable[[], None]) -> None:
    """Have something looked at when the function that is traced has returned: what is wrong then is raised."""
    active = tracer.get()
    if active is not None:
        active.checks.append(check)


class HostNumber(float):
    """The value of a host number while a trace is being made; ``var`` stands for it in the graph.

    Tensors can be combined with it, and numbers: that gives another one. What Python decides by it (``if x:``,
    ``x < 1``) the graph is held for. Outside of the trace it is what ``ask`` says now. What reads it in C, past its methods,
    reads another number where the trace is to show that nothing does, see `genesis.jit.asked`.
    """

    __slots__ = ("after", "ask", "free", "value", "var", "whole")
    var: Any
    value: float  # what it is in the trace
    ask: Callable[[], float]
    after: int  # how many counts had gone up when it was asked for
    free: bool  # whether it does not depend on these
    whole: bool  # whether it stands for a whole number


def now(x: Any) -> Any:
    """A number that may be one of the host, as it is at the moment."""
    return x.ask() if x.__class__ is HostNumber else x


def _combined(name: str) -> Callable[..., Any]:
    def combined(self: HostNumber, *others: Any) -> Any:
        if any([hasattr(x, "_array") for x in others]) or not all([isinstance(x, int | float | None) for x in others]):
            return NotImplemented
        active = tracer.get()
        if active is None:
            return getattr(float, name)(float(self.ask()), *[_as_float(now(x)) for x in others])
        return active.combined(name, self, others)

    return combined


def _decided(name: str) -> Callable[..., Any]:
    def decided(self: HostNumber, *others: Any) -> Any:
        if not all([isinstance(x, int | float) for x in others]):
            return NotImplemented
        active = tracer.get()
        if active is None:
            return getattr(float, name)(float(self.ask()), *[_as_float(now(x)) for x in others])
        return active.decided(name, self, others)

    return decided


def _as_float(x: Any) -> Any:
    return x if x is None else float(x)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: HostNumber, *others: Any) -> Any:
        if tracer.get() is None:
            return getattr(float(self.ask()), name)(*others)
        raise GraphError(
            message("trace", "Python computes with a number of the host, the result would be a constant of the graph",
                    hint="compute inside: host(lambda: group['lr'] * 0.5)")
        )  # fmt: skip

    return refuse


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "neg",
    "pos",
    "abs",
):
    setattr(HostNumber, f"__{_name}__", _combined(f"__{_name}__"))
for _name in ("bool", "lt", "le", "gt", "ge", "eq", "ne"):
    setattr(HostNumber, f"__{_name}__", _decided(f"__{_name}__"))
for _name in (
    "float",
    "int",
    "round",
    "trunc",
    "floor",
    "ceil",
    "divmod",
    "rdivmod",
    "str",
    "repr",
    "format",
    "hash",
    "getnewargs",
):
    setattr(HostNumber, f"__{_name}__", _refused(f"__{_name}__"))
for _name in ("as_integer_ratio", "is_integer", "hex", "conjugate"):
    setattr(HostNumber, _name, _refused(_name))
HostNumber.__copy__ = lambda self: self  # type: ignore[attr-defined]
HostNumber.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]
HostNumber.real = property(lambda self: self)  # type: ignore[assignment]
HostNumber.__array__ = _refused("__float__")  # type: ignore[attr-defined]
HostNumber.__array_ufunc__ = None  # type: ignore[attr-defined]  # NumPy's functions refuse it


def host(value: Callable[[], float]) -> float:
    """A number that Python computes, an input of the graph where one is being traced.

    >>> from genesis.jit import host
    >>> host(lambda: 0.5)
    0.5
    """
    active = tracer.get()
    return value() if active is None else active.host(value)


def does(function: Callable[..., Any], *args: Any, changes: tuple[Any, ...] = ()) -> bool:
    """In a trace that can keep it: call ``function(*args)`` at each call of what is traced, and not now. False outside
    of one, and where it cannot be kept.

    Args:
        changes: the dictionaries and objects that it changes
    """
    active = tracer.get()
    return active is not None and active.acts(function, args, changes)


def unwatched(work: Callable[[], Any]) -> Any:
    """``work()``, in which no code of the program runs: what looks for that in a trace need not look on."""
    active = tracer.get()
    return work() if active is None else active.unwatched(work)


def keep(tensor: Any) -> None:
    """Say that a tensor which the function makes is made once, at the first call, and kept: a traced graph goes on from
    what it holds.

    >>> import genesis
    >>> state = {}
    >>> def count(x):
    ...     if not state:
    ...         state["n"] = genesis.zeros(())
    ...         genesis.jit.keep(state["n"])
    ...     return state["n"].add_(x.sum()).clone()
    >>> graph = genesis.jit.trace(count, genesis.ones(2))
    >>> graph.replay(genesis.ones(2)), graph.replay(genesis.ones(2))
    (tensor(2.), tensor(4.))
    """
    active = tracer.get()
    if active is not None:
        active.keeps(tensor)


def forget_begun(state: MutableMapping[str, Any], states: MutableMapping[Any, Any]) -> None:
    """What `begins` says of a trace that fails."""
    state.clear()
    for key in [key for key, value in states.items() if value is state]:
        del states[key]


@contextmanager
def begins(state: MutableMapping[str, Any], states: MutableMapping[Any, Any]) -> Iterator[None]:
    """Set up what is set up once and kept, in a dictionary that is empty, and one of the values of ``states``: as outside
    of a trace, also in one. Where the trace fails it is empty again, and no value of ``states``.
    """
    active = tracer.get()
    if active is not None:
        active.begun.append((state, states))
    token, copies = tracer.set(None), snapshot.set(None)
    try:
        yield
    finally:
        tracer.reset(token)
        snapshot.reset(copies)


def advance(counts: MutableMapping[str, Any], key: str) -> int:
    """Add one to an entry of a dictionary, now or (in a trace) at every replay; returns the new value.

    >>> from genesis.jit import advance
    >>> state = {"step": 1}
    >>> advance(state, "step"), state
    (2, {'step': 2})
    """
    counts[key] = now = counts[key] + 1
    active = tracer.get()
    if active is None:
        return now  # type: ignore[no-any-return]
    active.advanced(counts, key)
    return counts[key]  # type: ignore[no-any-return]
