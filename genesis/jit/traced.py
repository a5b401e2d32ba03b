"""Traced arrays: variables of a graph that is being recorded.

Memory is a `Cell`: it holds the variable that is its value now. A traced array is a cell, or a view of another traced
array. Reading a view records its view op, of what the array that it is a view of is then; writing to one records the
cell's new value, "the old one with that part replaced". So the graph has no memory and no writes, and tensors that
share memory still see each other's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.protocol import NeedsValues, Virtual, asked_for_at
from genesis.arrays.spec import Spec, memory_order
from genesis.base.device import CPU, META, device
from genesis.base.errors import UnsupportedError, message
from genesis.core.call.op import REGISTRY
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.jit.arguments import Var

Step = tuple[str, tuple[Any, ...]]


class Cell:
    """A piece of memory; ``outside`` if somebody else has it, too."""

    __slots__ = ("outside", "strides", "value", "written")

    def __init__(self, value: Var, outside: bool = False) -> None:
        self.value, self.outside = value, outside
        self.strides = value.spec.strides  # writes keep the layout
        self.written = 0


class Traced(Virtual):
    """A variable, as an array."""

    __slots__ = ("__weakref__", "_read", "cell", "source", "spec", "step", "tracer")

    def __init__(
        self, tracer: Any, cell: Cell, spec: Spec, source: Traced | None = None, step: Step | None = None
    ) -> None:
        self.tracer, self.cell, self.spec, self.source, self.step = tracer, cell, spec, source, step
        self._read: tuple[int, Var] | None = None
        tracer.note(self)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.spec.dtype

    @property
    def device(self) -> device:  # type: ignore[override]
        return CPU if self.spec.device == META else self.spec.device  # a number of the host

    @property
    def base(self) -> Any:
        return self.cell if self.is_view or self.cell.outside else None

    @property
    def is_view(self) -> bool:  # type: ignore[override]
        return self.source is not None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The view ops that lead from the memory to this array."""
        return tuple([view.step for view in self.views()])  # type: ignore[misc]

    def views(self) -> list[Traced]:
        """The views that lead from the memory to this array, which is the last."""
        views: list[Traced] = []
        array: Traced | None = self
        while array is not None and array.source is not None:
            views.append(array)
            array = array.source
        return views[::-1]

    def var(self) -> Var:
        """The variable that this array is now."""
        if self.source is None:
            return self.cell.value
        return self._seen()[-1]

    def _seen(self) -> list[Var]:
        """The variables that the memory and the views on the way to this array are now. Each is recorded once between
        two writes.
        """
        vars_, written = [self.cell.value], self.cell.written
        for view in self.views():
            if view._read is None or view._read[0] != written:
                name, args = view.step  # type: ignore[misc]
                view._read = written, self.tracer.emit(name, (vars_[-1], *args))
            vars_.append(view._read[1])
        return vars_

    def view(self, name: str, args: tuple[Any, ...], spec: Spec) -> Traced:
        return Traced(self.tracer, self.cell, spec, self, (name, args))

    def assign(self, value: Var) -> None:
        """Write to the memory."""
        cell = self.cell
        wholes = [cell.value] if self.source is None else self.source._seen()
        for (name, args), whole in zip(reversed(self.steps), reversed(wholes), strict=self.source is not None):
            value = _with_part(self.tracer, name, args, whole, value)
        cell.value = value if value.spec.strides == cell.strides else _laid_out(self.tracer, value, cell.strides)
        cell.written += 1

    def described(self) -> str:
        return "being traced"

    def copy(self) -> Traced:
        value = self.var()
        if self.source is None and value.spec.strides == self.spec.strides:
            return Traced(self.tracer, Cell(value), self.spec)  # in the same order: a variable is what it is
        value = value if self.spec.strides is None else self.tracer.emit("clone", (value,))
        return Traced(self.tracer, Cell(value), replace(self.spec, strides=None))

    def refuse(self, what: str, site: Any = None) -> Exception:
        return NeedsValues(
            message(
                what,
                "this tensor is being traced: it stands for any value, it has none",
                operands=[*asked_for_at(site), ("tensor", self.spec)],
                hint="use genesis.where(x > 0, a, b) instead of `if x > 0`; print and .item() after the trace, on "
                "what replay returns; "
                "pass numbers that may differ from call to call as tensors",
            )
        )


def _laid_out(tracer: Any, value: Var, strides: tuple[int, ...] | None) -> Var:
    """A copy of a variable with these strides (None: contiguous)."""
    if strides is None:
        return tracer.emit("clone", (value,))  # type: ignore[no-any-return]
    order = memory_order(strides)
    copy = tracer.emit("clone", (tracer.emit("permute", (value, tuple(order))),))
    return tracer.emit("permute", (copy, tuple(order.index(d) for d in range(len(order)))))  # type: ignore[no-any-return]


def _with_part(tracer: Any, name: str, args: tuple[Any, ...], whole: Var, part: Var) -> Var:
    """The variable ``whole`` where the part that a view op takes out of it is replaced."""
    put = REGISTRY[name].put
    if put is None:
        raise UnsupportedError(
            message("trace", f"a write through {name} cannot be traced", hint="write to a clone() and use that")
        )
    with no_grad():
        array = put(*[wrap(Traced(tracer, Cell(var), var.spec)) for var in (whole, part)], *args)._array
    return array.var()  # type: ignore[no-any-return]
