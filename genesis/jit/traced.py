"""Traced arrays: variables of a graph that is being recorded.

Memory is a `Cell`: it holds the variable that is its value now. A traced array is a cell, or a view of one: the view
ops that lead to it. Reading a view reads the cell and records those ops; writing to one records the cell's new value,
"the old one with that part replaced". So the graph has no memory and no writes, and tensors that share memory still see
each other's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.protocol import NeedsValues, Virtual, asked_for_at
from genesis.arrays.spec import Spec, memory_order
from genesis.base.device import CPU
from genesis.base.errors import UnsupportedError, message
from genesis.jit.nodes import Var

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

    __slots__ = ("__weakref__", "_read", "cell", "spec", "steps", "tracer")
    device = CPU

    def __init__(self, tracer: Any, cell: Cell, spec: Spec, steps: tuple[Step, ...] = ()) -> None:
        self.tracer, self.cell, self.spec, self.steps = tracer, cell, spec, steps
        self._read: tuple[int, Var] | None = None
        tracer.note(self)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.spec.dtype

    @property
    def base(self) -> Any:
        return self.cell if self.steps or self.cell.outside else None

    @property
    def is_view(self) -> bool:
        return bool(self.steps)

    def var(self) -> Var:
        """The variable that this array is now."""
        if not self.steps:
            return self.cell.value
        if self._read is None or self._read[0] != self.cell.written:
            value = self.cell.value
            for name, args in self.steps:
                value = self.tracer.emit(name, (value, *args))
            self._read = self.cell.written, value
        return self._read[1]

    def view(self, name: str, args: tuple[Any, ...], spec: Spec) -> Traced:
        return Traced(self.tracer, self.cell, spec, (*self.steps, (name, args)))

    def assign(self, value: Var) -> None:
        """Write to the memory."""
        cell, values = self.cell, [self.cell.value]
        for name, args in self.steps[:-1]:
            values.append(self.tracer.emit(name, (values[-1], *args)))
        for (name, args), whole in zip(
            reversed(self.steps), values[len(self.steps) - 1 :: -1] if self.steps else [], strict=True
        ):
            value = _with_part(self.tracer, name, args, whole, value)
        cell.value = value if value.spec.strides == cell.strides else _laid_out(self.tracer, value, cell.strides)
        cell.written += 1

    def described(self) -> str:
        return "being traced"

    def copy(self) -> Traced:
        value = self.var() if self.spec.strides is None else self.tracer.emit("clone", (self.var(),))
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
    shape = whole.spec.shape
    if name in ("reshape", "view_shape"):
        return tracer.emit("reshape", (part, shape))  # type: ignore[no-any-return]
    if name == "slice_view":
        return tracer.emit("put", (whole, part, args[0]))  # type: ignore[no-any-return]
    if name == "narrow":
        dim, start, length = args
        key = (*[slice(None)] * dim, slice(start, start + length), Ellipsis)
        return tracer.emit("put", (whole, part, key))  # type: ignore[no-any-return]
    if name == "permute":
        (dims,) = args
        return tracer.emit("permute", (part, tuple(dims.index(i) for i in range(len(dims)))))  # type: ignore[no-any-return]
    if name == "transpose":
        return tracer.emit("transpose", (part, *args))  # type: ignore[no-any-return]
    if name == "diagonal":
        offset, dim1, dim2 = args
        places = np.arange(part.spec.shape[-1])
        key = [slice(None)] * len(shape)
        key[dim1], key[dim2] = places + max(-offset, 0), places + max(offset, 0)  # type: ignore[call-overload]
        # NumPy leaves the index where it was
        if abs(dim1 - dim2) == 1 and min(dim1, dim2) != len(shape) - 2 and len(shape) > 2:
            ndim = len(part.spec.shape)
            part = tracer.emit(
                "permute", (part, (*range(min(dim1, dim2)), ndim - 1, *range(min(dim1, dim2), ndim - 1)))
            )
        elif abs(dim1 - dim2) != 1:
            ndim = len(part.spec.shape)
            part = tracer.emit("permute", (part, (ndim - 1, *range(ndim - 1))))
        return tracer.emit("put", (whole, part, tuple(tracer.var(k) for k in key)))  # type: ignore[no-any-return]
    raise UnsupportedError(
        message("trace", f"a write through {name} cannot be traced", hint="write to a clone() and use that")
    )
