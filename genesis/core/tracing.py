"""What a trace is told by the rest of the system: values of the host that change from step to step.

`genesis.jit.trace` records what is done with tensors. What is done with Python numbers it does not see: a learning rate would
be a constant of the graph. Code that is to be traced says where such a number comes from:

    rate = host(lambda: group["lr"])          # asked for again at every replay
    advance(state, "step")                    # a count that goes up by one at every replay

Outside of a trace both do just what they say.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

tracer: ContextVar[Any] = ContextVar("genesis_tracer", default=None)


class HostNumber(float):
    """The value of a host number while a trace is being made; ``var`` stands for it in the graph."""

    __slots__ = ("var",)
    var: Any


def host(value: Callable[[], float]) -> float:
    """A number that Python computes, an input of the graph where one is being traced.

    >>> from genesis.jit import host
    >>> host(lambda: 0.5)
    0.5
    """
    active = tracer.get()
    return value() if active is None else active.host(value)


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
    return counts[key]
