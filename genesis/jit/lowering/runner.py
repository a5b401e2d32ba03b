"""Running compiled steps: memory for a call, the addresses of its arrays, native code and the host in turn."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.base.errors import GraphError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.jit.lowering import code
from genesis.jit.lowering.compiled import Compiled, Host
from genesis.jit.lowering.plan import LINE, Where, is_dense
from genesis.jit.replay import Plan as Replay
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import native

Array = np.ndarray[Any, Any]
_NOWHERE = -(1 << 62)  # the end of an array without elements: it overlaps nothing


class Runner:
    """A compiled step in this process: its functions are in memory, and it can be called.

    What a call computes with is a `_Context`; as many calls as there are of these may run at the same time.
    """

    def __init__(self, step: Compiled, constants: Sequence[tuple[Spec, Array]]) -> None:
        self.step = step
        self.constants = [_laid_out(array, spec) for spec, array in constants]
        names = list(dict.fromkeys([row.function for row in step.rows]))
        self.functions = dict(zip(names, native.addresses_in(step.code, names), strict=True)) if names else {}
        self.hosts = [_Hosted(part) if isinstance(part, Host) else part for part in step.parts]
        self.extents = np.array([_extent(spec) for spec in step.takes], np.int64).reshape(-1, 2)
        self.written = np.array(step.written, np.int64)
        entries = [
            (where.index + (len(step.takes) if where.kind == "result" else 0), cell)
            for cell, where in enumerate(step.cells)
            if where.kind in ("outside", "result")
        ]
        self.entries = np.array(entries, np.int64).reshape(-1, 2)
        self.makers = [_maker(spec) for spec in step.returns]
        self.pack = struct.Struct(f"{step.numbers}d").pack_into
        self._free: list[_Context] = []

    def run(self, arrays: Sequence[Array], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]) -> list[Array]:
        """See `Step.run`."""
        takes = tuple(arrays)
        returns = tuple([make() for make in self.makers])
        try:
            context = self._free.pop()
        except IndexError:
            context = _Context(self)
        try:
            self.pack(context.numbers, 0, *numbers)
            if _gather()(context.words_at, id(takes), id(returns), 1):
                context.known.fill(0)
                takes = self._separated(takes)
                _gather()(context.words_at, id(takes), id(returns), 0)
                context.known.fill(0)
            for part in self.hosts:
                if part.__class__ is tuple:
                    _run(context.rows_at + 24 * part[0], part[1] - part[0])
                else:
                    part.run(_Call(context, self.constants, takes, returns, numbers, starts))
        finally:
            context.hosts[:] = [None] * len(context.hosts)
            self._free.append(context)
        return list(returns)

    def _separated(self, takes: tuple[Array, ...]) -> tuple[Array, ...]:
        """The arrays, with copies of those that are read and overlap one that is written to."""
        separate = list(takes)
        written = [i for i, flag in enumerate(self.step.written) if flag]
        for i, array in enumerate(takes):
            others = [takes[j] for j in written if j != i and np.may_share_memory(array, takes[j])]
            if i not in written:
                if others:
                    separate[i] = _copy_as(array, self.step.takes[i])
            elif any([_share(array, other) for other in others]):
                raise GraphError(
                    message("compile", "two tensors that are written to overlap", [("one of them", array.shape)])
                )
        return tuple(separate)


class _Context:
    """What one call needs: the arena, cells with addresses, a table."""

    def __init__(self, runner: Runner) -> None:
        step = runner.step
        self.arena = _aligned(step.size)
        self.numbers = np.zeros(step.numbers, np.float64)
        self.known = np.zeros(len(step.takes), np.int64)
        self.now = np.zeros(len(step.takes) + len(step.returns), np.int64)
        bases = {"arena": self.arena.ctypes.data}
        at = self.numbers.ctypes.data

        def address(where: Where) -> int:
            if where.kind == "constant":
                return int(runner.constants[where.index].ctypes.data)
            if where.kind == "number":
                return int(at + 8 * where.index)
            return bases[where.kind] + where.index if where.kind in bases else 0

        self.cells = np.array([address(where) for where in step.cells], np.int64)
        self.rows = np.array(
            [(runner.functions[row.function], self.cells.ctypes.data + 8 * row.cell, row.chunks) for row in step.rows],
            np.int64,
        ).reshape(-1, 3)
        self.rows_at = self.rows.ctypes.data
        parts = (self.known, self.now, runner.extents, runner.written, runner.entries, self.cells)
        self.words = np.array(
            [len(step.takes), len(step.returns), len(runner.entries), *[part.ctypes.data for part in parts]], np.int64
        )
        self.words_at = self.words.ctypes.data
        self.hosts: list[Any] = [None] * step.hosts  # the arrays of kind "host"
        self.views: dict[tuple[Where, int], Array] = {}

    def view(self, where: Where, spec: Spec) -> Array:
        """A value of the arena as an array."""
        key = where, id(spec)
        if key not in self.views:
            strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
            self.views[key] = np.ndarray(spec.shape, spec.dtype, self.arena, where.index, strides)
        return self.views[key]


class _Hosted:
    """Calls that the host computes, prepared for it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.replay = Replay(host.program)
        self.outs = [
            (index, self.replay.slots[var], var.spec)
            for index, var in zip(host.outputs, host.program.results, strict=True)
        ]

    def run(self, call: _Call) -> None:
        """Compute, and keep the arrays where native code and others find them."""
        hosts, cells = call.context.hosts, call.context.cells
        with no_grad():
            values = self.replay.run([call.value(where, spec) for where, spec in self.host.inputs], list(call.starts))
        for index, slot, spec in self.outs:
            value = values[slot]
            hosts[index] = _laid_out(np.asarray(getattr(value, "_array", value)), spec)
        for index, positions in self.host.cells:
            cells[list(positions)] = hosts[index].__array_interface__["data"][0]
        for index in self.host.over:
            hosts[index] = None


class _Call(NamedTuple):
    """What the host's part of a call reads."""

    context: _Context
    constants: list[Array]
    takes: tuple[Array, ...]
    returns: tuple[Array, ...]
    numbers: Sequence[float]
    starts: Sequence[tuple[Any, int]]

    def value(self, where: Where, spec: Spec) -> Any:
        """A tensor, or a number."""
        kind, index = where
        if kind == "number":
            return self.numbers[index]
        if kind == "arena":
            return wrap(self.context.view(where, spec))
        arrays: Any = {"outside": self.takes, "result": self.returns, "constant": self.constants}
        return wrap(arrays.get(kind, self.context.hosts)[index])


# ---- native functions


@functools.cache
def _gather() -> Callable[[int, int, int, int], int]:
    """See `code.gather`."""
    items, data = tuple.__basicsize__, object.__basicsize__
    probe = np.empty(3)
    if ctypes.c_void_p.from_address(id(probe) + data).value != probe.ctypes.data:
        raise AssertionError("this interpreter keeps arrays in another way")
    address = native.address("gather", code.gather(items, data))
    function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64)(address)
    return function  # type: ignore[no-any-return]


@functools.cache
def _serial() -> Callable[[int, int], None]:
    function: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(native.address("serial", code.serial()))
    return function  # type: ignore[no-any-return]


def _run(rows: int, count: int) -> None:
    _serial()(rows, count)


# ---- memory


def _aligned(size: int) -> Array:
    whole = memory.empty((size + LINE,), np.uint8)
    start = -whole.ctypes.data % LINE
    return whole[start : start + size]


def _maker(spec: Spec) -> Callable[[], Array]:
    """What makes an array laid out as a spec says, without gaps."""
    if spec.strides is None or not spec.shape:
        make = memory.empty if np.prod(spec.shape) * spec.dtype.itemsize >= memory.LARGE else np.empty
        return functools.partial(make, spec.shape, spec.dtype)
    order = memory_order(strides_of(spec))
    shape, back = [spec.shape[d] for d in order], np.argsort(order)
    return lambda: memory.empty(shape, spec.dtype).transpose(back)


def _laid_out(array: Array, spec: Spec) -> Array:
    """An array with the strides of a spec: itself, or a copy."""
    strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
    same = all([n == 1 or s == t for n, s, t in zip(array.shape, array.strides, strides, strict=True)])
    return array if same or not array.size else _copy_as(array, spec)


def _copy_as(array: Array, spec: Spec) -> Array:
    """A copy with the strides of a spec, which may have gaps."""
    if is_dense(spec):
        copy = _maker(spec)()
    else:
        low, high = _extent(spec)
        strides = [s * spec.dtype.itemsize for s in strides_of(spec)]
        copy = np.ndarray(spec.shape, spec.dtype, np.empty(high - low, np.uint8), -low, strides)
    copy[...] = array
    return copy


def _extent(spec: Spec) -> tuple[int, int]:
    """Where the elements of an array begin and end, in bytes from its address."""
    if 0 in spec.shape:
        return 0, _NOWHERE
    steps = [(n - 1) * s * spec.dtype.itemsize for n, s in zip(spec.shape, strides_of(spec), strict=True)]
    return sum([s for s in steps if s < 0]), sum([s for s in steps if s > 0]) + spec.dtype.itemsize


def _share(a: Array, b: Array) -> bool:
    """Whether two arrays have an element in common, or that is too hard to say."""
    try:
        return np.shares_memory(a, b, max_work=1 << 16)
    except np.exceptions.TooHardError:
        return True
