"""Loops as a text of Python that runs: what a kernel does, to be read, changed and tried out.

    def k1(x0, x1, chunk):
        for i in range(3 * chunk, min(3 * chunk + 3, 6)):
            t0 = float32(0)
            for j in range(4):  # in vectors
                t0 = add(t0, x0[4 * i + j])
            x1[i] = t0

Operands are flat arrays. Functions are those of NumPy, and what else `functions` has; there is no other meaning of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.jit.lowering.emit_python import _CURVES, uniform
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    Affine,
    Axis,
    Count,
    For,
    Load,
    Nest,
    Statement,
    Store,
    Total,
    Value,
    arguments,
    neutral,
)

_LETTERS = "ijklmnopqrs"
_PLAIN = {"bool": "bool_"}  # names of NumPy's that differ from those of dtypes


def listing(nest: Nest, name: str = "kernel") -> str:
    """The text of a kernel.

    >>> rows, columns = Axis(3, chunk=1), Axis(4)
    >>> total = Total("add", Load(0, Affine(0, ((rows, 4), (columns, 1))), np.dtype("f8")), (columns,))
    >>> inner = For((columns,), (), (total,), vector=True)
    >>> nest = Nest((np.dtype("f8"),) * 2, (For((rows,), (inner, Store(1, Affine(0, ((rows, 1),)), total))),), chunks=3)
    >>> print(listing(nest))
    def kernel(x0, x1, chunk):
        for i in range(chunk, min(chunk + 1, 3)):
            t0 = float64(0)
            for j in range(4):  # in vectors
                t0 = add(t0, x0[4 * i + j])
            x1[i] = t0
    """
    operands = ", ".join([f"x{i}" for i in range(len(nest.operands))])
    told = any([axis.extent == CALLED for axis in axes_of(nest.body)])
    head = f"def {name}({operands}, {'start, stop' if told else 'chunk'}):"
    return "\n".join([head, *["    " + line for line in _Listing(nest).block(nest.body)]])


def functions() -> dict[str, Callable[..., Any]]:
    """What the names in listings are."""
    known: dict[str, Any] = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    ops = {name: getattr(op.meaning, "__wrapped__", op.meaning) for name, op in REGISTRY.items() if name not in known}
    return ops | known | _CURVES | {"uniform": uniform, "range": range, "min": min, "int": int}


def axes_of(body: tuple[Statement, ...]) -> Iterator[Axis]:
    """The axes of loops, outer ones first."""
    for each in body:
        if isinstance(each, For):
            yield from each.axes
            yield from axes_of(each.body)


class _Listing:
    """Names for axes, totals and values that are used twice."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.axes: dict[Axis, str] = {CHUNK: "chunk"}
        self.totals: dict[Total, str] = {}
        self.count = 0

    def block(self, body: tuple[Statement, ...]) -> list[str]:
        """Statements; what they store is stored when all of it has been computed."""
        lines, stores = list[str](), list[str]()
        known: dict[Value, str] = {}
        together = sum([isinstance(each, Store) for each in body]) > 1
        for each in body:
            if isinstance(each, For):
                lines += self.loop(each)
                known = {}
                continue
            more, value = self.computed(each.value, known, together)
            lines += more
            where = self.subscript(each.at, each.index, each.step, known)
            stores.append(f"x{each.operand}[{where}] {'+' if each.adds else ''}= {value}")
        return lines + stores

    def loop(self, loop: For) -> list[str]:
        lines = []
        for total in loop.totals:
            self.totals[total] = f"t{len(self.totals)}"
            lines.append(f"{self.totals[total]} = {_number(neutral(total), total.dtype)}")
        for depth, axis in enumerate(loop.axes):
            turn, letter = divmod(len(self.axes) - 1, len(_LETTERS))
            name = self.axes.setdefault(axis, f"{_LETTERS[letter]}{turn or ''}")
            note = "  # in vectors" if loop.vector and depth == len(loop.axes) - 1 else ""
            lines.append("    " * depth + f"for {name} in {_range(axis)}:{note}")
        inside = self.block(loop.body)
        for total in loop.totals:
            more, value = self.computed(total.value, {}, False)
            name = self.totals[total]
            inside += [*more, f"{name} = {total.op}({name}, {value})"]
        return lines + ["    " * len(loop.axes) + line for line in inside]

    def computed(self, value: Value, known: dict[Value, str], named: bool) -> tuple[list[str], str]:
        """The lines that compute a value, where parts of it are used several times, and the expression that is left."""
        uses, lines = Counter(_uses(value, known)), list[str]()

        def text(each: Value) -> str:
            if each in known:
                return known[each]
            written = self.expression(each, text)
            if (uses[each] > 1 or (named and each is value)) and not isinstance(each, Total):
                self.count += 1
                known[each] = f"v{self.count}"
                lines.append(f"{known[each]} = {written}")
                return known[each]
            return written

        left = text(value)
        return lines, left

    def expression(self, each: Value, text: Callable[[Value], str]) -> str:
        if isinstance(each, Total):
            return self.totals[each]
        if isinstance(each, Count):
            return f"{_kind(each.dtype)}({self.affine(each.at)})"
        if isinstance(each, Load):
            where = self.affine(each.at) if each.index is None else self.sum(each.at, text(each.index), each.step)
            read = f"x{each.operand}[{where}]"
            return read if self.nest.operands[each.operand] == each.dtype else f"{_kind(each.dtype)}({read})"
        if each.name == "number":
            return _number(each.args[0], each.dtype)
        inside = ", ".join([text(a) if isinstance(a, Value) else repr(a) for a in each.args])
        return f"{_kind(each.dtype) if each.name == 'cast' else each.name}({inside})"

    def subscript(self, at: Affine, index: Value | None, step: int, known: dict[Value, str]) -> str:
        if index is None:
            return self.affine(at)
        return self.sum(at, self.computed(index, dict(known), False)[1], step)

    def sum(self, at: Affine, index: str, step: int) -> str:
        return f"{self.affine(at)} + {step} * {index}"

    def affine(self, at: Affine) -> str:
        parts = [self.axes[axis] if n == 1 else f"{n} * {self.axes[axis]}" for axis, n in at.steps if n]
        return " + ".join([*parts, *([str(at.constant)] if at.constant or not parts else [])])


def _uses(value: Value, known: dict[Value, str]) -> Iterator[Value]:
    """Every value that another needs, as often as it does."""
    seen, ahead = set[Value](), [value]
    while ahead:
        each = ahead.pop()
        if each in known or isinstance(each, Total):
            continue
        for inner in arguments(each):
            yield inner
            if inner not in seen:
                seen.add(inner)
                ahead.append(inner)


def _range(axis: Axis) -> str:
    if axis.extent == CALLED:
        return "range(start, stop)"
    if axis.chunk is None:
        return f"range({axis.extent})"
    start = "chunk" if axis.chunk == 1 else f"{axis.chunk} * chunk"
    return f"range({start}, min({start} + {axis.chunk}, {axis.extent}))"


def _kind(dtype: Any) -> str:
    return _PLAIN.get(dtype.name, dtype.name)


def _number(number: Any, dtype: Any) -> str:
    special = isinstance(number, float | np.floating) and not np.isfinite(number)
    return f"{_kind(dtype)}('{float(number)}')" if special else f"{_kind(dtype)}({number!r})"
