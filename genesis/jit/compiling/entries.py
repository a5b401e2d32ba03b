"""One traced graph of a compiled function, ready to be called; and for which calls it is meant."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.device import default_device
from genesis.base.errors import ArgumentError, GraphError
from genesis.base.pytree import tree_flatten, tree_map
from genesis.core.call.subclasses import MODES
from genesis.core.graph import autocast
from genesis.core.graph.modes import _kernels_only, grad_mode, inference, interception, repair, watchers
from genesis.core.graph.switches import ESCAPES, LEVELS, OVERRIDES, PACKING, PHASES
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, tracer
from genesis.core.graph.version import INFERENCE
from genesis.jit.binding import Graph
from genesis.jit.compiling.calling import caller
from genesis.jit.compiling.checks import Given, Looks, firsts
from genesis.jit.compiling.deciding import LARGEST
from genesis.jit.compiling.flow import Flow, closed
from genesis.jit.compiling.joint import Decided, Joint
from genesis.jit.compiling.segments import Segments
from genesis.jit.compiling.text import ELSEWHERE, MISS
from genesis.jit.guards import Unchanged
from genesis.jit.lowering.cache import lowered
from genesis.jit.lowering.step import step_of
from genesis.jit.numbers import Entry as NumberEntry
from genesis.jit.replay import checked, replay

RENEWALS = 16  # how often an entry is written anew before calls are left to replays


def key_of(leaves: list[Any], structure: Any, read: set[Any] = frozenset()) -> Any:  # type: ignore[assignment]
    """What decides for which graph a call is meant; all of it can be seen in the arguments and modes.

    Args:
        read: the arguments whose numbers are of no matter, for graphs ask for them: (structure, index)
    """
    mode = autocast.state()
    keys = [_leaf_key(x) for x in leaves]
    for i in range(len(keys)) if read else ():
        kind = type(leaves[i])
        if (structure, i) in read and (kind is float or (kind is int and abs(leaves[i]) < LARGEST)):
            keys[i] = (kind, "any")
    return (
        structure,
        tuple(keys),
        (grad_mode.get(), inference.get(), None if mode is None else (mode.dtype, mode.device)),
        (dtypes.get_default_dtype(), default_device()),
        firsts(leaves),
    )


def only_numbers(before: Any, now: Any) -> list[int]:
    """The indices of the arguments in which two keys differ, if these are floats and whole numbers only."""
    if before[0] != now[0] or before[2:] != now[2:]:
        return []
    apart = [i for i, (a, b) in enumerate(zip(before[1], now[1], strict=True)) if a != b]
    kinds = [(_number(before[1][i]), _number(now[1][i])) for i in apart]
    return apart if all([a is b and a is not None for a, b in kinds]) else []


def _number(key: Any) -> type | None:
    return key[0] if isinstance(key, tuple) and key[0] in (float, int) else None


def _leaf_key(x: Any) -> Any:
    if isinstance(x, Tensor):
        array = x._array
        strides = array.strides if isinstance(array, np.ndarray) else (type(array), x.device)
        return type(x), tuple(array.shape), array.dtype, strides, x._node is not None, x.is_leaf
    if type(x) in PLAIN:
        return type(x), repr(x)
    return id(x)


def aside() -> bool:
    """Whether something is open in this thread, or anywhere, that wants to see the function's own calls."""
    if LEVELS or OVERRIDES or PACKING or ESCAPES or MODES:
        return True
    profiles = len(PHASES)  # they see compiled calls, too
    return (
        tracer.get() is not None
        or len(interception.get()) > profiles
        or len(watchers.get()) > profiles
        or repair.get() is not None
        or _kernels_only.get()
    )


class Entry:
    """A graph of a compiled function.

    Attributes:
        call: the written function, see `calling.py`
        graph: what was traced (of a function that gradients flow through: its forward)
        joint: that and the backward, or None
    """

    def __init__(
        self, traced: Graph | Joint, original: Any, example: list[Any], decided: Decided, given: dict[int, Given]
    ) -> None:
        self.joint = traced if isinstance(traced, Joint) else None
        self.decided, self.given = decided, given
        self.example = [given.get(i) or Looks.of(x, decided.leaves) for i, x in enumerate(example)]
        self.first = firsts(example)
        self.step: Any
        if isinstance(traced, Joint) or decided.in_parts:
            self.graph = traced.forward if isinstance(traced, Joint) else traced
            program, results = self.graph.program, self.graph.binding.structure_out.num_leaves
            self.step = Segments(program, decided, results) if decided.in_parts else step_of(program)
        else:
            self.graph, self.step = lowered(traced)
        self.flow = None if self.joint is None else Flow(self.joint, original)
        self.renewals = 0
        self.call = self._written()

    def _written(self) -> Any:
        return caller(self.graph, self.step, self.example, self.first, self.flow, self.decided)

    def why_not(self) -> list[str]:
        """What has changed since the trace."""
        return self.graph.changed()

    def moved(self) -> list[NumberEntry]:
        """The floats that the graph took for granted, and that are other ones now."""
        guards = [guard for guard in self.graph.binding.guards if isinstance(guard, Unchanged)]
        return [entry for guard in guards for entry in guard.moved()]

    def careful(self, args: Any, kwargs: Any) -> Any:
        """The call where the written function was not sure at once; `MISS` if it is another one."""
        result = self.call(True, args, kwargs)
        if result is ELSEWHERE:
            return MISS
        if result is MISS and not self.why_not():
            if self.renewals < RENEWALS:  # equal things in the place of the same ones, other memory
                self.renewals += 1
                self.call = self._written()
                result = self.call(True, args, kwargs)
            if result is ELSEWHERE:
                return MISS
            decided = self.decided
            if result is MISS and not (
                self.joint
                or decided.answers
                or decided.returned
                or decided.calls
                or decided.turned
                or decided.modes
                or decided.gradients
                or decided.slots
                or decided.inference
                or self.given
            ):
                result = self._replayed(args, kwargs)
        if result is not MISS and inference.get():
            tree_map(_mark, (result, [slot.now() for slot in self.decided.slots]))
        return result

    def _replayed(self, args: Any, kwargs: Any) -> Any:
        try:
            checked(self.graph, args, kwargs)
        except (GraphError, ArgumentError):
            return MISS
        result = replay(self.graph, args, kwargs)
        results, program = tree_flatten(result)[0], self.graph.program
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        aliases = dict(program.aliases)
        for i, ends in self.decided.closed:
            if i not in aliases or not aliases[i].same:
                spec: Any = program.results[i]
                results[i]._node = closed(spec.spec, *[given[end] if isinstance(end, int) else end for end in ends])
        return result


def _mark(x: Any) -> None:
    if isinstance(x, Tensor) and x._counter is None:
        x._counter = INFERENCE
