"""What a statement changes that Python does at each call, while one looks whether a trace knows it anyway.

Code says by names what it reads of objects: not so `getattr(x, name)`, `copy(x)`, `vars(x).values()`, or a method of a class
in C. Whoever reads in such a way what a statement changes further down has a constant from then on. So a function with such
statements is traced once more, and what they change is a `HostValue` from the beginning, with which nobody computes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import message
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN
from genesis.jit.binding import Binding
from genesis.jit.compiling.leaves import UNKNOWN, HostCall, NotKept, Unread
from genesis.jit.compiling.questions import looked_up
from genesis.jit.compiling.values import HostValue
from genesis.jit.guards import Unchanged

Slot = tuple[Any, Any, str]  # a dictionary or a list, a key in it, and the title of the statement that sets it


def slots_of(calls: Iterable[HostCall], binding: Binding, read: Collection[Any]) -> list[Slot]:
    """The entries of dictionaries and lists that statements change, and that are numbers, text or tensors, and constants of
    the trace: a graph neither asks for them nor holds only as long as they are the same, and no optimizer looks at them.

    Args:
        read: what it asks for, whether it computes with it or not
    """
    guards = [guard for guard in binding.guards if isinstance(guard, Unchanged)]
    asked = set[int]().union(*[looked_up(ask) for ask in binding.numbers])
    asked |= {id(held) for guard in guards if guard.thing is not None for held in guard.thing._holders().values()}
    known = {(id(held), key) for guard in guards for held, key in guard.held()}
    known |= {(holder, keys[0] if keys else None) for holder, keys in read}
    slots = [(held, key, call.title) for call in calls if not call.trusted for held, key in _changed(call)]
    slots = [s for s in slots if id(s[0]) not in asked and (id(s[0]), s[1]) not in known]
    return [(held, key, title) for held, key, title in slots if isinstance(held[key], (*PLAIN, Tensor))]


def _changed(call: HostCall) -> Iterator[tuple[Any, Any]]:
    of_things = [vars(setting.held) for setting in call.sets if setting.held is not UNKNOWN]  # a trace is told of those
    for held, key in call.changes:
        if isinstance(held, dict) and not any([held is x for x in of_things]):
            yield from [(held, k) for k in held if key is None or k == key]
        elif isinstance(held, list | deque):
            yield from [(held, i) for i in range(len(held))]


def refuse_unnamed(calls: Iterable[HostCall], watch: Any) -> None:
    """Refuse statements that write to something that no name leads to, as ``table.get("a").count += 1``, where the function
    reads an attribute or an item of that name: it may be the same one, and a trace has what was there before.
    """
    for call in [call for call in calls if not call.trusted]:
        names = {setting.name for setting in call.sets if setting.held is UNKNOWN} | set(call.unknown)
        for name, text in _known_items(watch) if names else ():
            if name in names or (UNKNOWN in call.unknown and type(name) in (int, str)):
                why = f"what nobody knows is given another {name} at {call.title}, and {text} is read"
                raise NotKept(message("compile", why, hint="give what is written to a name"))


def _known_items(watch: Any) -> Iterator[tuple[Any, str]]:
    """The names of attributes and items that a trace has read, and where that was."""
    items = [(held, name, text) for held, name, _, text in watch.reads]
    for container, text in watch.wholes:
        if isinstance(container, dict | list | deque):
            keys = container if isinstance(container, dict) else range(len(container))
            items += [(container, key, f"{text}[{key!r}]") for key in keys]
    for held, name, text in items:
        yield name, text
        if isinstance(held, list | deque) and type(name) is int:  # it has two
            yield (name - len(held) if name >= 0 else name + len(held)), text


@contextmanager
def unknown(slots: Iterable[Slot]) -> Iterator[None]:
    """Nothing is known of these entries, for a block."""
    before = {(id(held), key): (held, key, held[key]) for held, key, _ in slots}
    try:
        for held, key, title in slots:
            held[key] = HostValue(Unread(held, key), title)
        yield
    finally:
        for held, key, value in before.values():
            held[key] = value
