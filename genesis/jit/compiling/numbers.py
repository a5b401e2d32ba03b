"""The numbers of the host in a compiled call: counts go up, and each distinct number is asked for once.

An optimizer asks for the same formula of the same learning rate and of the count of each parameter, and the counts
are usually equal: then one answer is that of all.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from genesis.core.functions.captures import contents
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN
from genesis.jit.binding import Graph
from genesis.jit.compiling.text import Text
from genesis.jit.numbers import Entry, Formula


def numbers_of(text: Text, graph: Graph) -> tuple[list[str], list[str]]:
    """Lines that set ``numbers`` and let the counts go up, and those that undo the latter.

    The first lines read the counts (into ``c0``, ``c1``, ...), and belong before the ``try`` whose failure is undone.
    """
    counts = [(text.name(holder), text.name(key)) for holder, key in graph.binding.counts]
    undo = [f"{holder}[{key}] = c{i}" for i, (holder, key) in enumerate(counts)]
    if not counts and not graph.binding.numbers:
        return ["numbers = ()"], undo
    ordered = [f"numbers = {text.name(in_order(graph))}()"]
    keys = _shared_keys(graph)
    if keys is None:
        return ordered, undo
    lines = ["    next = c0 + 1"] if counts else []
    lines += [f"    {holder}[{key}] = next" for holder, key in counts]
    firsts = {key: i for i, key in reversed(list(enumerate(keys)))}
    lines += [f"    n{i} = {_asked(text, graph.binding.numbers[i])}" for i in sorted(firsts.values())]
    lines.append(f"    numbers = ({''.join(f'n{firsts[key]}, ' for key in keys)})")
    equal = " == ".join(f"c{i}" for i in range(len(counts))) if len(counts) > 1 else "True"
    return [f"if {equal}:", *lines, "else:", "    " + ordered[0]], undo


def _asked(text: Text, number: Any) -> str:
    """A number, as Python."""
    source = getattr(number, "source", None)  # an `Entry`, or a function that says what it does
    return f"{text.name(number)}()" if source is None else str(source(text.name))


def reads(text: Text, graph: Graph) -> list[str]:
    """Lines that read the counts."""
    return [f"c{i} = {text.name(h)}[{text.name(key)}]" for i, (h, key) in enumerate(graph.binding.counts)]


def in_order(graph: Graph, again: bool = False) -> Callable[[], tuple[float, ...]]:
    """Counts go up and numbers are asked for, in the order of the trace; ``again``: as they have been in this call."""
    counts = graph.binding.counts
    numbers = [(n, after) for n, (_, after) in zip(graph.binding.numbers, graph.program.numbers, strict=True)]

    def ask() -> tuple[float, ...]:
        answers, done = [], 0
        for holder, key in counts if again else ():
            holder[key] -= 1
        for number, after in numbers:
            for holder, key in counts[done:after]:
                holder[key] += 1
            done = max(done, after)
            answers.append(float(number()))
        for holder, key in counts[done:]:
            holder[key] += 1
        return tuple(answers)

    return ask


def _shared_keys(graph: Graph) -> list[Any] | None:
    """For each number what is equal for those that are equal as long as the counts are; None if that cannot be said, or
    if a number is asked for before a count goes up that it may look at.
    """
    position = {id(holder): i for i, (holder, _) in enumerate(graph.binding.counts)}
    if len(position) != len(graph.binding.counts) or len({key for _, key in graph.binding.counts}) > 1:
        return None
    keys = []
    for number, (_, after) in zip(graph.binding.numbers, graph.program.numbers, strict=True):
        key = _key(number, {at: i for at, i in position.items() if i < after}, graph)
        if key is None:
            return None
        keys.append(key)
    return keys


def _is_free(question: Any) -> bool:
    """Whether an answer has nothing to do with counts."""
    if isinstance(question, Formula):
        return all([_is_free(x) for x in question.parts if callable(x)])
    return isinstance(question, Entry)


def _key(value: Any, counted: dict[int, int], graph: Graph) -> Any:
    """What decides about a function's answer, apart from the value of the counts; None if that is not known."""
    if isinstance(value, Entry | Formula):
        return ("question", value.identity()) if _is_free(value) else None
    if isinstance(value, tuple):
        keys = [_key(v, counted, graph) for v in value]
        return None if None in keys else ("tuple", *keys)
    if isinstance(value, FunctionType):
        inside = [*(value.__defaults__ or ()), *[contents(cell) for cell in value.__closure__ or ()]]
        keys = [_key(v, counted, graph) for v in inside]
        return None if None in keys or value.__kwdefaults__ else (value.__code__, *keys)
    if isinstance(value, dict):
        if id(value) in counted:
            others = [v for v in value.values() if not isinstance(v, Tensor)]
            return "state" if len(others) == 1 else None  # its count, and nothing that may differ
        return None if any(holder is value for holder, _ in graph.binding.counts) else ("dict", id(value))
    return (type(value), repr(value)) if type(value) in PLAIN else None
