"""What kernels of Triton are made of: lines, names for what is computed once, values, and elements of memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

import numpy as np

from genesis.core.call.scalars import Expression
from genesis.jit.lowering import triton_code
from genesis.jit.lowering.loops import (
    Affine,
    Axis,
    Count,
    DType,
    For,
    Load,
    Needs,
    Nest,
    Store,
    Total,
    Value,
    arguments,
    loads_of,
    values_of,
)
from genesis.jit.lowering.triton_code import applied, cast, chosen, type_of

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


class Values:
    """Lines of a kernel, and the names of what they compute.

    Attributes:
        scopes: names by what they stand for; those of a block are forgotten behind it
        counts: where a round of each axis is
    """

    def __init__(self, nest: Nest, numbers: frozenset[int], held: frozenset[int]) -> None:
        self.nest, self.numbers, self.held = nest, numbers, held
        self.needs = Needs()
        self.lines: list[str] = []
        self.depth = 1
        self.scopes: list[dict[object, str]] = [{}]
        self.counts: dict[Axis, str] = {}
        self.axes: list[Axis] = []  # that lanes go along
        self.mask = ""
        self.lanes = 0  # of the block; 0 outside of one
        self.tile: tuple[int, ...] = ()  # its rows and columns, if lanes are a matrix
        self.masks: list[tuple[str, list[Axis]]] = []  # then those of each dimension, and what it goes along
        arrays = [nest.operands[i] for i in _elements(nest) - numbers - held]
        self.wide = any([d.kind in "fiu" and d.itemsize == 8 for d in arrays])
        self.names = 0
        self.stored: set[int] = set()

    @property
    def shape(self) -> str:
        return str(list(self.tile or [self.lanes]))

    # ---- text

    def write(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, text: str) -> str:
        self.names += 1
        self.write(f"v{self.names} = {text}")
        return f"v{self.names}"

    def _known(self, key: object) -> str | None:
        return next((scope[key] for scope in reversed(self.scopes) if key in scope), None)

    def once(self, key: object, text: str) -> str:
        known = self._known(key)
        if known is None:
            known = self.scopes[-1][key] = self.name(text)
        return known

    @contextmanager
    def _block(self, axes: list[Axis], number: str, count: str, lanes: int):  # type: ignore[no-untyped-def]
        """Lanes that go through the rounds of axes, from block ``number`` on."""
        self.scopes.append({})
        at = self.name(f"{number} * {lanes} + tl.arange(0, {lanes})")
        before, self.mask, self.axes, self.lanes = (self.mask, self.axes, self.lanes), "", axes, lanes
        if count == "n" or int(count) % lanes:
            self.mask = self.name(f"{at} < {count}")
        self._count(axes, at)
        yield
        self.mask, self.axes, self.lanes = before
        self.scopes.pop()

    def _count(self, axes: Sequence[Axis], at: str) -> None:
        """The count of each axis, from the number of a round."""
        for i, axis in enumerate(reversed(axes)):
            last = i == len(axes) - 1
            self.counts[axis] = at if last else self.name(f"{at} % {axis.extent}")
            if not last:
                at = self.name(f"{at} // {axis.extent}")

    @contextmanager
    def _inside(self):  # type: ignore[no-untyped-def]
        self.depth += 1
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.depth -= 1

    # ---- values

    def dtype(self, dtype: DType) -> DType:
        """What is computed in: float64 only where an operand has as many bits."""
        return F32 if dtype == F64 and not self.wide else dtype

    def kind(self, value: Value) -> DType:
        """What a value is in the code: what is made of numbers of the program alone keeps its bits."""
        return value.dtype if self._of_numbers(value) else self.dtype(value.dtype)

    def _of_numbers(self, value: Value) -> bool:
        if isinstance(value, Load):
            return value.operand in self.numbers or value.operand in self.held
        if isinstance(value, Total | Count):
            return False
        return value.name == "number" or all([self._of_numbers(a) for a in arguments(value)])

    def value(self, value: Value) -> str:
        known = self._known(value)
        if known is None:
            assert not isinstance(value, Total), "a total is there behind its loop"
            if isinstance(value, Load):
                known = self._loaded(value)
            elif isinstance(value, Count):
                known = self.name(
                    f"({self._offset(value.at)} + tl.full((), 0, tl.int64)).to(tl.{type_of(value.dtype)})"
                )
            else:
                known = self.name(self._computed(value))
            self.scopes[-1][value] = known
        return known

    def _computed(self, value: Expression) -> str:
        if value.name == "number":
            return triton_code.constant(value.args[0], value.dtype)
        given, wanted = arguments(value), self.dtype if not self._of_numbers(value) else lambda dtype: dtype
        if value.name == "cast":
            return cast(self.value(given[0]), self.kind(given[0]), wanted(value.dtype))
        operands = [cast(self.value(a), self.kind(a), wanted(a.dtype)) for a in given]
        if value.name == "where":
            return chosen(*operands)
        return applied(value.name, wanted(given[0].dtype), operands)

    # ---- memory

    def _offset(self, at: Affine) -> str:
        """The number of elements."""
        terms = [str(at.constant)] if at.constant else []
        for axis, stride in at.steps:
            if stride:
                count = self.counts[axis]
                wide = abs(stride) * max(axis.extent, 1) >= 1 << 31
                count = self.once(("wide", count), f"{count}.to(tl.int64)") if wide else count
                terms.append(count if stride == 1 else f"{count} * {stride}")
        return " + ".join(terms) or "0"

    def _stay_narrow(self, axes: Sequence[Axis]) -> None:
        """Let elements of 16 bits along some axes be what is kept of them from here on: two in a register. What was computed
        of them is computed again where it is wanted.
        """
        scope, along = self.scopes[-1], set(axes)
        read = [v for v in scope if isinstance(v, Load) and v.dtype.itemsize == 2 and self._varies(v, axes)]
        for load in read:
            scope[load] = self.name(f"stays_narrow({scope[load]})")
        wide = [v for v in scope if isinstance(v, Expression) and along & self.needs(v)]
        for value in wide:
            if not {*read}.isdisjoint(loads_of(value)):
                del scope[value]

    def _address(self, each: Load | Store) -> str:
        text = f"p{each.operand} + ({self._offset(each.at)})"
        if each.index is not None:
            text += f" + {self.value(each.index)} * {each.step}"
        return text

    def _varies(self, each: Load | Store, axes: Sequence[Axis] | None = None) -> bool:
        """Whether lanes, or those along some axes, are at different elements."""
        axes = self.axes if axes is None else axes
        own = any([each.at.stride(axis) for axis in axes])
        return own or (each.index is not None and bool(self.needs(each.index) & set(axes)))

    def _mask(self, each: Load | Store) -> str:
        """The lanes that there are, of those that are at different elements."""
        parts = self.masks or [(self.mask, self.axes)]
        return " & ".join([mask for mask, axes in parts if mask and self._varies(each, axes)])

    def _loaded(self, load: Load) -> str:
        if load.operand in self.numbers:
            return self.name(f"p{load.operand}.to(tl.float64)")
        mask = self._mask(load)
        masked = f", mask={mask}, other=0" if mask else ""
        text = f"tl.load({self._address(load)}{masked})"
        if load.dtype.kind == "b":
            text = f"({text} != 0)"
        return self.name(text)

    def _store(self, store: Store) -> None:
        dtype = self.nest.operands[store.operand]
        value = cast(self.value(store.value), self.kind(store.value), self.dtype(store.value.dtype))
        if store.adds:
            raise triton_code.unsupported("sums in memory")
        if dtype.kind == "b":
            value = f"{value}.to(tl.int8)"
        if not self._varies(store):
            self.write(f"tl.store({self._address(store)}, {value})")
            return
        masked = f", mask={self.mask}" if self.mask else ""
        filled = f"tl.zeros({self.shape}, tl.int32).to({value}.dtype) + {value}"
        given = value if self._has_lanes(store.value) else self.name(filled) if dtype.kind != "b" else value
        self.write(f"tl.store({self._address(store)}, {given}{masked})")
        self.stored.add(store.operand)

    def _has_lanes(self, value: Value) -> bool:
        return any([axis in self.needs(value) for axis in self.axes]) or any(
            [isinstance(x, Total) for x in self.needs(value)]
        )


def _elements(nest: Nest) -> frozenset[int]:
    """The operands but those of which no more is read than which elements of others are."""
    stack = [v for each in nest.body for v in (values_of(each) if isinstance(each, For) else [each.value])]
    seen, out = set(stack), set(nest.writes)
    while stack:
        each = stack.pop()
        if isinstance(each, Load):
            out.add(each.operand)
            continue
        more = {v for v in arguments(each) if v not in seen}
        seen |= more
        stack += more
    return frozenset(out)
