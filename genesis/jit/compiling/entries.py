"""One traced graph of a compiled function, ready to be called; and for which calls it is meant."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.device import default_device
from genesis.base.errors import ArgumentError, GraphError
from genesis.base.pytree import tree_map
from genesis.core.graph import autocast
from genesis.core.graph.modes import _kernels_only, grad_mode, inference, interception, repair, watchers
from genesis.core.graph.switches import ESCAPES, LEVELS, OVERRIDES, PACKING, PHASES
from genesis.core.graph.tensor import Tensor
from genesis.core.graph.tracing import PLAIN, tracer
from genesis.core.graph.version import INFERENCE
from genesis.jit.binding import Graph
from genesis.jit.compiling.calling import caller
from genesis.jit.compiling.checks import Looks
from genesis.jit.compiling.flow import Flow
from genesis.jit.compiling.joint import Decided, Joint
from genesis.jit.compiling.segments import Segments
from genesis.jit.compiling.text import ELSEWHERE, MISS
from genesis.jit.lowering.cache import lowered
from genesis.jit.lowering.step import Step
from genesis.jit.replay import checked, replay

RENEWALS = 16  # how often an entry is written anew before calls are left to replays


def key_of(leaves: list[Any], structure: Any) -> Any:
    """What decides for which graph a call is meant; all of it can be seen in the arguments and modes."""
    mode = autocast.state()
    return (
        structure,
        tuple([_leaf_key(x) for x in leaves]),
        (grad_mode.get(), inference.get(), None if mode is None else (mode.dtype, mode.device)),
        (dtypes.get_default_dtype(), default_device()),
    )


def _leaf_key(x: Any) -> Any:
    if isinstance(x, Tensor):
        array = x._array
        strides = array.strides if isinstance(array, np.ndarray) else type(array)
        return type(x), tuple(array.shape), array.dtype, strides, x._node is not None, x.is_leaf
    if type(x) in PLAIN:
        return type(x), repr(x)
    return id(x)


def aside() -> bool:
    """Whether something is open in this thread, or anywhere, that wants to see the function's own calls."""
    if LEVELS or OVERRIDES or PACKING or ESCAPES:
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

    def __init__(self, traced: Graph | Joint, original: Any, example: list[Any], decided: Decided) -> None:
        self.joint = traced if isinstance(traced, Joint) else None
        self.decided, self.example = decided, [Looks.of(x) for x in example]
        self.step: Any
        if isinstance(traced, Joint) or decided.asked:
            self.graph = traced.forward if isinstance(traced, Joint) else traced
            program = self.graph.program
            self.step = Segments(program, decided.asked, decided.answers) if decided.asked else Step(program)
        else:
            self.graph, self.step = lowered(traced)
        self.flow = None if self.joint is None else Flow(self.joint, Step(self.joint.backward), original)
        self.renewals = 0
        self.call = self._written()

    def _written(self) -> Any:
        return caller(self.graph, self.step, self.example, self.flow, self.decided.returned)

    def why_not(self) -> list[str]:
        """What has changed since the trace."""
        return self.graph.changed()

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
            if result is MISS and self.joint is None and not self.decided.answers and not self.decided.returned:
                result = self._replayed(args, kwargs)
        if result is not MISS and inference.get():
            tree_map(_mark, result)
        return result

    def _replayed(self, args: Any, kwargs: Any) -> Any:
        try:
            checked(self.graph, args, kwargs)
        except (GraphError, ArgumentError):
            return MISS
        return replay(self.graph, args, kwargs)


def _mark(x: Any) -> None:
    if isinstance(x, Tensor) and x._counter is None:
        x._counter = INFERENCE
