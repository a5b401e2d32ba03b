"""What a compiled function tells: text, with the phases of its graphs, and pictures in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.base.errors import ArgumentError, GraphError
from genesis.base.late import Late
from genesis.jit.compiling.segments import Segments
from genesis.jit.guards import CapturedAsTheyWere, Modes, Unchanged
from genesis.jit.lowering.step import Step
from genesis.jit.numbers import Decision
from genesis.jit.replay import _incoming, _numbers, checked

if TYPE_CHECKING:
    import html

    from genesis.jit.lowering.explain import Explanation
else:
    html = Late("html")

MOST = 6  # names of what a guard looks at


class Told(str):
    """A text; in a notebook tables and pictures.

    Attributes:
        steps: for each graph what its steps do, as `Explanation`: the forward, and the backwards that were compiled
    """

    steps: tuple[tuple[Explanation, ...], ...]

    __slots__ = ("steps",)

    def __new__(cls, head: str, entries: Any, call: tuple[Any, Any] | None) -> Told:
        steps = tuple([tuple(_steps(entry, call)) for entry in reversed(entries)])
        lines = [head]
        for i, (entry, told) in enumerate(zip(reversed(entries), steps, strict=True)):
            lines += [f"graph {i}", *[f"  guard: {text}" for text in _guards(entry)]]
            lines += [f"  Python does at each call: {call.title}" for call in entry.decided.calls]
            lines += [f"  {line}" for each in told for line in str(each).splitlines()]
        made = super().__new__(cls, "\n".join(lines))
        made.steps = steps
        return made

    def save(self, path: Any) -> None:
        """Write tables and pictures to an HTML file."""
        name = html.escape(self.partition(":")[0])
        head = f"<!doctype html><meta charset=utf-8><title>{name}, compiled</title>"
        with open(path, "w", encoding="utf-8") as file:
            file.write(head + self._repr_html_())

    def _repr_html_(self) -> str:
        pictures = "".join([each._repr_html_() for steps in self.steps for each in steps])
        return f"<pre>{html.escape(self.partition('graph 0')[0].rstrip())}</pre>{pictures}"


def _steps(entry: Any, call: tuple[Any, Any] | None) -> Iterator[Explanation]:
    if isinstance(entry.step, Segments):
        yield from [step.explain() for step, _ in entry.step.parts]
        yield entry.step.last.explain()
    else:
        yield entry.step.explain() if call is None else _measured(entry, *call)
    for step, _ in [] if entry.flow is None else entry.flow.steps.values():
        yield step.explain() if call is None else step.explain(*_nothing(step))


def _measured(entry: Any, args: Any, kwargs: Any) -> Explanation:
    """With the times of a call with these arguments, on copies; without them, if that would be another graph."""
    graph, step = entry.graph, entry.step
    args = (*args, *[slot.loaded() for slot in entry.decided.slots])
    try:
        given, tensors = checked(graph, args, kwargs)
    except (ArgumentError, GraphError):
        return step.explain()  # type: ignore[no-any-return]
    leaves = zip(graph.program.leaves, tensors, strict=True)
    arrays = [x._array for x in (*given, *graph.binding.captured)]
    arrays += [_incoming(leaf, x) for leaf, x in leaves if leaf.var is not None]
    starts = [(stream, stream._block) for stream in graph.binding.streams]
    numbers = _numbers(graph)
    for counts, key in graph.binding.counts:
        counts[key] -= 1
    try:
        return step.explain(arrays, numbers, starts)  # type: ignore[no-any-return]
    finally:
        for stream, block in starts:
            stream._position(block)


def _nothing(step: Step) -> tuple[Any, ...]:
    """Zeros for what a backward takes: it is as fast."""
    return [np.zeros(v.spec.shape, v.spec.dtype) for v in step.takes], [1.0] * len(step.program.numbers), ()


def _guards(entry: Any) -> Iterator[str]:
    """What must be as it was at the trace."""
    for guard in entry.graph.binding.guards:
        if isinstance(guard, Unchanged) and guard.state:
            names = [f"{guard.name}{key}" for key in guard.state]
            yield ", ".join(names[:MOST]) + (f", {len(names) - MOST} more" if len(names) > MOST else "")
        elif isinstance(guard, CapturedAsTheyWere) and guard.tensors:
            yield f"shapes, dtypes, layouts and hooks of {len(guard.tensors)} captured tensors"
        elif isinstance(guard, Modes):
            yield "autocast, the default dtype and device"
        elif isinstance(guard, Decision):
            yield f"{guard.ask} is {guard.answer}"
