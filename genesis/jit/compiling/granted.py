"""Guards of what a function read of the outside, which is neither a module nor an optimizer."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from genesis.core.graph.tensor import Tensor
from genesis.jit.binding import Graph
from genesis.jit.compiling.effects import Watch
from genesis.jit.compiling.joint import JointTracer
from genesis.jit.guards import ABSENT, CapturedAsTheyWere, Unchanged
from genesis.jit.numbers import Entry


def granted(watch: Watch, graph: Graph, still: Sequence[Tensor]) -> tuple[Unchanged | CapturedAsTheyWere, ...]:
    """The guards of what a watch saw.

    Args:
        still: tensors from outside that have to require grad, or not to, as they did
    """
    wholes = _whole_guards(watch, graph.binding.captured)
    reads = _read_guards([*watch.reads, *_attributes(watch, graph)])
    guards = *_looked_at(watch, graph, still), *reads, *wholes, *_part_guards(watch)
    return *guards, *_other_names(graph, (*graph.binding.guards, *guards))


def leave_changes(graph: Graph, tracer: JointTracer, watch: Watch) -> None:
    """What statements change that Python does is of no matter, where nothing else has read it before; nor are slots."""
    slots = [slot.entry() for slot in tracer.hosts.slots.every]
    for guard in graph.binding.guards if slots else ():
        if isinstance(guard, Unchanged):
            guard.leave(slots)
    changes = [(held, name) for held, name, _ in tracer.hosts.kept() if isinstance(held, dict) and name is not None]
    changes = [(held, name) for held, name in changes if (id(held), name) not in watch.of_modules]
    for guard in graph.binding.guards:
        if isinstance(guard, Unchanged):
            guard.leave([Entry(held, (name,)) for held, name in changes])


def _looked_at(watch: Watch, graph: Graph, still: Sequence[Tensor]) -> list[CapturedAsTheyWere]:
    """The tensors from outside that the graph does not read, but Python asked or said what they are."""
    read = {id(x) for x in (*graph.binding.captured, *graph.binding.others)}
    tensors = [x for x in (*watch.tensors.values(), *still) if id(x) not in read]
    return [CapturedAsTheyWere(tensors)] if tensors else []


def _attributes(watch: Watch, graph: Graph) -> Iterator[tuple[Any, str, Any, str]]:
    """What the program has given the tensors from outside as attributes, and those that it asks for and has not given."""
    asked = {
        name
        for code in watch.codes
        if not {"getattr", "hasattr"}.isdisjoint(code.co_names)
        for name in code.co_consts
        if isinstance(name, str) and name.isidentifier() and not hasattr(Tensor, name)
    }
    read, looked_at = (*graph.binding.captured, *graph.binding.others), (watch.tensors | watch.named).values()
    tensors = {id(x): x for x in (*read, *looked_at)}
    for k, x in enumerate(tensors.values()):
        given = [name for name in x.__dict__ if not hasattr(Tensor, name)]
        for name in sorted({*given, *(asked if id(x) in watch.named else ())}):
            yield x.__dict__, name, x.__dict__.get(name), f"attribute {name} of tensor {k}"


def _read_guards(reads: list[tuple[Any, Any, Any, str]]) -> list[Unchanged]:
    """What the function read of objects that are neither modules nor optimizers."""
    if not reads:
        return []

    def now() -> dict[str, Any]:
        return {text: _item(held, name) for held, name, _, text in reads}

    guard = Unchanged("", now)
    gone = {text for held, name, value, text in reads if value is None and _item(held, name) is ABSENT}
    guard.state = {text: ABSENT if text in gone else value for _, _, value, text in reads}
    guard.answers = lambda: [(held, (name,)) for held, name, _, _ in reads]
    guard.sources = lambda: {text: (held, name) for held, name, _, text in reads if isinstance(held, dict)}
    guard.settle()
    return [guard] if guard.state else []


def _whole_guards(watch: Watch, captured: Iterable[Tensor]) -> list[Unchanged]:
    """Containers hold what they held; so do arrays of NumPy, but for those that the graph reads as tensors."""
    kinds: list[list[tuple[Any, str]]] = [[], []]
    arrays = [x._array for x in captured if isinstance(x._array, np.ndarray)]
    for container, text in watch.wholes:
        if not (isinstance(container, np.ndarray) and any([np.may_share_memory(container, a) for a in arrays])):
            kinds[type(container) in (list, dict)].append((container, text))
    others, plain = [_holding(containers) for containers in kinds]
    plain.answers = lambda: [(container, None) for container, _ in kinds[True]]
    return [guard for guard in (plain, others) if guard.state]


def _other_names(graph: Graph, guards: Iterable[Any]) -> list[Unchanged]:
    """A ``.grad`` that the function reads, and finds somewhere else too, is one variable, and two where it is not: it
    stays that tensor, or none of those that were found.
    """
    states = [guard.state.values() for guard in guards if isinstance(guard, Unchanged)]
    values = [v for state in states for value in state for v in (value if isinstance(value, tuple) else (value,))]
    roots = {"captured": graph.binding.captured, "other": graph.binding.others}
    read = [
        roots[leaf.kind][leaf.index] for leaf in graph.program.leaves if leaf.var is not None and leaf.kind in roots
    ]
    shapes = {x._array.shape for x in read}
    named = {id(v): v for v in values if isinstance(v, Tensor) and v._node is None and v._array.shape in shapes}

    def now() -> dict[str, Any]:
        return {f"the .grad of tensor {k}": named.get(id(x.grad)) for k, x in enumerate(read)}

    return [Unchanged("", now)] if named else []


def _part_guards(watch: Watch) -> list[Unchanged]:
    """Containers hold what they held, but for their slots."""
    parts = [(held, text, tuple([k for k in _keys(held) if k not in slots])) for held, text, slots in watch.parts]
    if not parts:
        return []
    guard = Unchanged("", lambda: {text: tuple([_item(held, k) for k in keys]) for held, text, keys in parts})
    guard.answers = lambda: [(held, keys) for held, _, keys in parts]
    # that the same is found says nothing of how much there is
    return [guard, Unchanged("", lambda: {f"how many are in {text}": len(held) for held, text, _ in parts})]


def _keys(container: Any) -> Iterable[Any]:
    return container if isinstance(container, dict) else range(len(container))


def _holding(containers: list[tuple[Any, str]]) -> Unchanged:
    return Unchanged("", lambda: {text: _contents(container) for container, text in containers})


def _contents(container: Any) -> tuple[Any, ...] | bytes:
    if isinstance(container, np.ndarray):
        return repr((container.dtype, container.shape)).encode() + container.tobytes()
    if isinstance(container, bytearray | array):
        return bytes(container)
    return (*container, *container.values()) if isinstance(container, dict) else tuple(container)


def _item(held: Any, name: Any) -> Any:
    if isinstance(held, list):
        return held[name] if -len(held) <= name < len(held) else ABSENT
    return held.get(name, ABSENT) if isinstance(held, dict | MappingProxyType) else getattr(held, name, ABSENT)
