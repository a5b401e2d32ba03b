"""Memory of the outside while a trace is made: which tensors are the inputs of the graph, and who owns what.

Every array that the function touches is a `Capture`: one `Cell`, found again by its address and layout. What the
function made is told from what was there before when the trace is over and everything that the function left behind is
gone: what nobody else holds then was made inside, and is made anew (as a constant) at each replay.
"""

from __future__ import annotations

import gc
import math
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from genesis.arrays.memory import DeviceArray, apart, memory_of, on_the_host
from genesis.arrays.protocol import device_of
from genesis.arrays.spec import Spec, contiguous_strides
from genesis.base.errors import GraphError, message
from genesis.core.graph.node import AccumulateGrad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.jit.arguments import Var
from genesis.jit.program import Write
from genesis.jit.traced import Cell


class Capture:
    """An array, an argument or captured: its memory in the trace, the variable that it is at first, and a tensor that
    holds it.
    """

    __slots__ = ("array", "cell", "made", "of_gradient", "tensor", "var")

    def __init__(self, array: Any) -> None:
        self.array = array
        self.var = Var(_spec_of(array))
        self.cell = Cell(self.var, outside=True)
        self.tensor: Callable[[], Tensor | None] = lambda: None  # a weak reference, once there is one
        self.of_gradient = False  # the memory of the .grad of a leaf: a replay looks it up, for it comes and goes
        self.made = False  # by the function

    def seen_as(self, tensor: Tensor) -> None:
        """Remember a tensor that holds it; leaves go first, for their memory may be exchanged and their gradients
        matter.
        """
        known = self.tensor()
        if known is None or (known._node is None and isinstance(tensor._node, AccumulateGrad)):
            self.tensor = weakref.ref(tensor)

    def references(self) -> tuple[int, int]:
        """How often the array and the one that owns its memory are counted."""
        return sys.getrefcount(self.array), sys.getrefcount(self.array.base)

    def is_ours(self) -> bool:
        """Whether nobody else can read or write this memory."""
        counts = self.references()
        writable = memory_of(self.array).writable
        if self.array.base is None:
            return counts[0] <= ALONE[0] or not writable(self.array)
        if not isinstance(self.array.base, np.ndarray | DeviceArray):
            return False
        return (counts[0] <= ALONE[0] and counts[1] <= ALONE[1]) or not writable(self.array.base)


def _spec_of(array: Any) -> Spec:
    """The spec of an array with its strides: they say which reshapes are views."""
    strides, shape = memory_of(array).strides(array), tuple(array.shape)
    packed = array.flags.c_contiguous if isinstance(array, np.ndarray) else strides == contiguous_strides(shape)
    return Spec(shape, array.dtype, device_of(array), None if packed else strides)


def _key(array: Any) -> Any:
    """The same memory, seen in the same way."""
    if isinstance(array, DeviceArray):
        return id(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype if array.size else id(array)


def _owner(array: Any) -> Any:
    return memory_of(array).owner(array)


ALONE = Capture(np.empty(2)[:1]).references()  # of an array that nobody else holds; Python versions count differently


class Memory:
    """All arrays that a trace has met."""

    def __init__(self) -> None:
        self.captures: dict[Any, Capture] = {}
        self._by_id: dict[int, Capture] = {}  # the same, by the array that they hold: asking where it lies takes longer
        self._made: dict[int, weakref.ref[Any]] = {}  # arrays that the function made, by id
        self._kept: list[Tensor] = []  # those of them that it is meant to keep
        # tensors of the outside that were met, by id, and how often they had been written to
        self._counts: dict[int, tuple[weakref.ref[Tensor], int]] = {}
        self._of_counters: dict[int, int] = {}  # the same of what counts, which views have together

    def find(self, array: Any) -> Capture | None:
        return self.captures.get(_key(array))

    def capture(self, array: Any) -> Capture:
        capture = self._by_id.get(id(array))  # it holds the array: nothing else has this id
        if capture is None:
            key = _key(array)
            capture = self.captures.get(key)
            if capture is None:
                capture = self.captures[key] = self._by_id[id(array)] = Capture(array)
                capture.made = self.was_made(array)
        return capture

    def meet(self, tensor: Tensor) -> None:
        """The function touches a tensor of the outside."""
        self.capture(tensor._array).seen_as(tensor)
        if id(tensor) not in self._counts:
            count = tensor._write_count
            if tensor._counter is not None:
                count = self._of_counters.setdefault(id(tensor._counter), count)
            self._counts[id(tensor)] = weakref.ref(tensor), count

    def makes(self, array: Any) -> None:
        """The function made an array."""
        owner = _owner(array)
        if isinstance(owner, np.ndarray | DeviceArray):
            self._made[id(owner)] = weakref.ref(owner)

    def was_made(self, array: Any) -> bool:
        ref = self._made.get(id(_owner(array)))
        return ref is not None and ref() is _owner(array)

    def is_made(self, cell: Cell) -> bool:
        """Whether memory is the function's own."""
        return not cell.outside or any([c.made and c.cell is cell for c in self.captures.values()])

    def keeps(self, tensor: Any) -> None:
        """A tensor that is made at the first call and stays: an input of the graph."""
        if isinstance(tensor, Tensor) and isinstance(tensor._array, np.ndarray | DeviceArray):
            self.meet(tensor)
            self._kept.append(tensor)

    # ---- at the end

    def uncount_writes(self) -> None:
        """A trace has not written to anything outside."""
        for ref, count in self._counts.values():
            tensor = ref()
            if tensor is not None and tensor._counter is not None:
                tensor._counter.count = count

    def sorted(self, name: str) -> tuple[list[tuple[Var, Tensor]], list[tuple[Var, Any]], list[Write]]:
        """Captured tensors, constants, and writes into the former, when all that the function left behind is gone."""
        kept = {id(t._array) for t in self._kept}
        captured: list[tuple[Var, Tensor]] = []
        constants: list[tuple[Var, Any]] = []
        writes: list[Write] = []
        for capture in self.captures.values():
            if capture.of_gradient:
                continue
            ours = id(capture.array) not in kept and capture.is_ours()
            if capture.made and capture.cell.written and not ours and id(capture.array) not in kept:
                gc.collect()  # is it held by garbage only?
                if not capture.is_ours():
                    raise _keeps(name, capture.var.spec)
                ours = True
            if ours:
                constants.append((capture.var, apart(on_the_host(capture.array))))
                continue
            tensor = capture.tensor()
            captured.append((capture.var, wrap(capture.array) if tensor is None else tensor))
            if capture.cell.value is not capture.var:
                writes.append(Write("captured", len(captured) - 1, capture.cell.value))
        return captured, constants, writes


def check_overlaps(arrays: Iterable[tuple[Any, bool, Spec]]) -> None:
    """Two arrays from outside that share memory are two variables: fine, unless one of them is written to."""
    spans = sorted(
        ((*_span(array), written, spec) for array, written, spec in arrays if array.size),
        key=lambda span: (span[0], -span[1]),
    )
    reach, known = -math.inf, (False, None)
    for begin, end, written, spec in spans:
        if begin < reach and (known[0] or written):
            raise GraphError(
                message("trace", "a tensor is written to, and another argument or captured tensor shares its memory",
                        operands=[("one", known[1]), ("the other", spec)],
                        hint="take the view inside the traced function, and pass a tensor once")
            )  # fmt: skip
        if end > reach:
            reach, known = end, (written, spec)


def _span(array: Any) -> tuple[int, int]:
    """Where the bytes of an array begin and end; of a device's, a span of their own for each piece of memory."""
    if isinstance(array, np.ndarray):
        return byte_bounds(array)
    owner = -id(_owner(array))  # no address of the host is negative
    return owner, owner + 1


def _keeps(name: str, spec: Spec, count: int = 1) -> GraphError:
    return GraphError(
        message(
            "trace",
            f"{name} keeps {count} tensor{'s' if count > 1 else ''} that it made while it was traced",
            operands=[("the first", spec)],
            hint="an optimizer's state or a cache that the first call sets up: call the function once before tracing "
            "it",
        )
    )


def refuse_leaks(name: str, alive: Iterable[Any]) -> None:
    """Refuse a function after whose trace there are tensors with traced arrays."""
    if not alive:
        return
    gc.collect()
    left = [a for a in alive if any(isinstance(r, Tensor) for r in gc.get_referrers(a))]
    if left:
        raise _keeps(name, left[0].spec, len(left))
