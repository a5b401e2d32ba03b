"""What a trace is told by the rest of the system: values of the host that change from step to step.

`genesis.jit.trace` records what is done with tensors. What is done with Python numbers it does not see: a learning rate
would be a constant of the graph. Code that is to be traced says where such a number comes from:

    rate = host(lambda: group["lr"])          # asked for again at every replay
    advance(state, "step")                    # a count that goes up by one at every replay

Outside of a trace both do just what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from genesis.base.dtypes import dtype
from genesis.base.errors import GraphError, message

tracer: ContextVar[Any] = ContextVar("genesis_tracer", default=None)


PLAIN = (bool, int, float, complex, str, bytes, type(None), dtype)


class Dependable:
    """Something that Python asks while a function runs, a module or an optimizer: a traced graph holds for the answers
    that it gave.
    """

    __slots__ = ()

    def _taken_for_granted(self) -> dict[str, Any]:
        """What the answers depend on, by name: numbers, strings, other objects, and tuples of them."""
        raise NotImplementedError

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


def depends(thing: Dependable) -> None:
    """Say that what the function does depends on what a module or an optimizer is set to."""
    active = tracer.get()
    if active is not None:
        active.depends(thing)


class HostNumber(float):
    """The value of a host number while a trace is being made; ``var`` stands for it in the graph. Tensors can be
    combined with it, nothing else.
    """

    __slots__ = ("var",)
    var: Any


def _refuse(self: HostNumber, *others: Any) -> Any:
    if any(hasattr(x, "_array") for x in others):
        return NotImplemented
    raise GraphError(
        message("trace", "Python computes with a number of the host, the result would be a constant of the graph",
                hint="compute inside: host(lambda: group['lr'] * 0.5)")
    )  # fmt: skip


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "pow",
    "rpow",
    "neg",
    "abs",
    "float",
    "int",
    "bool",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "round",
    "trunc",
):
    setattr(HostNumber, f"__{_name}__", _refuse)
HostNumber.__hash__ = float.__hash__  # type: ignore[method-assign]


def host(value: Callable[[], float]) -> float:
    """A number that Python computes, an input of the graph where one is being traced.

    >>> from genesis.jit import host
    >>> host(lambda: 0.5)
    0.5
    """
    active = tracer.get()
    return value() if active is None else active.host(value)


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


def advance(counts: MutableMapping[str, Any], key: str) -> int:
    """Add one to an entry of a dictionary, now or (in a trace) at every replay; returns the new value.

    >>> from genesis.jit import advance
    >>> state = {"step": 1}
    >>> advance(state, "step"), state
    (2, {'step': 2})
    """
    counts[key] += 1
    active = tracer.get()
    if active is not None:
        active.advanced(counts, key)
    return counts[key]  # type: ignore[no-any-return]
