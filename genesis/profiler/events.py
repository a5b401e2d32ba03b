"""What is recorded: events, open ones and ended ones, and blocks that the program names."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol


class Event:
    """Something that took time: an op, a node of backward, a block, a step. Times are in microseconds."""

    __slots__ = (
        "category", "inside", "memory", "name", "sequence_nr", "shapes", "stack", "start", "stop", "thread", "threads",
    )  # fmt: skip

    def __init__(self, name: str, category: str, start: float) -> None:
        self.name, self.category, self.start = name, category, start
        self.stop = start
        self.inside = 0.0  # of that time, what events inside of it took
        self.thread = threading.get_native_id()
        self.sequence_nr = -1
        self.memory = 0  # bytes of the result
        self.threads = 0  # of a phase of a compiled step: how many may work at it
        self.shapes: list[list[int]] = []
        self.stack: list[str] = []

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.stop - self.start

    @property
    def self_cpu_time_total(self) -> float:
        return max(self.cpu_time_total - self.inside, 0.0)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.cpu_time_total:.0f} us>"


def _now() -> float:
    return time.perf_counter_ns() / 1e3


class Recorder(Protocol):
    """Who gets the events that ended."""

    recorded: list[Event]


OPEN: list[Recorder] = []  # those that record at the moment, in any thread


class _Stacks(threading.local):
    """The events that are open in a thread, from the outermost on."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.recorders: list[Recorder] = []  # of this thread


STACKS = _Stacks()


def begin(name: str, category: str) -> Event:
    event = Event(name, category, _now())
    STACKS.events.append(event)
    return event


def end(event: Event) -> None:
    event.stop = _now()
    stack = STACKS.events
    while stack and stack.pop() is not event:
        pass
    if stack:
        stack[-1].inside += event.cpu_time_total
    for each in list(OPEN if event.category == "user_annotation" else STACKS.recorders):
        each.recorded.append(event)


class record_function:  # noqa: N801  # named as PyTorch names it
    """A named block, which open profiles record; also a decorator.

    >>> from genesis.profiler import profile, record_function
    >>> with profile() as p, record_function("work"):
    ...     total = sum(range(10))
    >>> [event.key for event in p.key_averages()]
    ['work']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._events: list[Event | None] = []

    def __enter__(self) -> record_function:
        self._events.append(begin(self.name, "user_annotation") if OPEN else None)
        return self

    def __exit__(self, *_: object) -> None:
        event = self._events.pop()
        if event is not None:
            end(event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped
