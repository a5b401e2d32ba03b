"""LLVM code for rows of float32 numbers, a vector at a time, of which the last is filled up; and functions of float64 numbers
among other code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.kernels.llvm import values
from genesis.kernels.llvm.nests import Code
from genesis.kernels.llvm.products import everywhere, numbered

Pass = Callable[[str, list[str]], list[str]]


class Row(NamedTuple):
    """The numbers of a row: how many are in whole vectors, whether (0 or 1) there are more, and the lanes of those."""

    whole: str
    rest: str
    lanes: str


class Filled(Code):
    """Code that goes through rows of numbers."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self._formulas = _Formulas(self)
        self.some, self.ones = f"<{lanes} x i1>", f"<{', '.join(['double 1.0'] * lanes)}>"
        self.inside: str | None = None  # which lanes are numbers of the row; None if all are

    def row(self, size: str) -> Row:
        """A row of so many numbers."""
        whole = self.put(f"and i64 {size}, -{self.lanes}")
        left = self.put(f"sub i64 {size}, {whole}")
        rest = self.put(f"zext i1 {self.put(f'icmp sgt i64 {left}, 0')} to i64")
        return Row(whole, rest, self.put(f"icmp slt <{self.lanes} x i64> {numbered(self)}, {everywhere(self, left)}"))

    @property
    def declared(self) -> list[str]:
        """What a module has to say of the functions that `of` calls."""
        return list(self._formulas.declared.values())

    def of(self, function: Callable[[values.Value], values.Value], x: str) -> str:
        """A function of `genesis.kernels.llvm.functions`, of float64 numbers."""
        return self._formulas.of(function, x)

    def along(self, row: Row, begin: Sequence[str], kind: str, each: Pass) -> list[str]:
        """What ``each(index, values)`` hands on from vector to vector of a row."""
        with self.loop("0", row.whole, str(self.lanes), begin, kind) as step:
            step.next = each(step.index, step.values)
        self.inside = row.lanes
        with self.loop("0", row.rest, "1", step.values, kind) as last:
            last.next = each(row.whole, last.values)
        self.inside = None
        return last.values

    def read(self, base: str, index: str, behind: float = 0.0) -> str:
        """Numbers of a row, and others behind its end."""
        if self.inside is None:
            return self.load(base, index)
        at = f"ptr {self.at(base, index)}, i32 4, {self.some} {self.inside}, {self.vector} {self.constant(behind)}"
        return self.put(f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0({at})")

    def write(self, value: str, base: str, index: str) -> None:
        if self.inside is None:
            return self.store(value, base, index)
        at = f"{self.vector} {value}, ptr {self.at(base, index)}, i32 4, {self.some} {self.inside}"
        self.lines.append(f"  call void @llvm.masked.store.v{self.lanes}f32.p0({at})")

    # ---- float64 numbers

    def of_two(self, what: str, a: str, b: str) -> str:
        return self.put(f"{what} double {a}, {b}")

    def choose(self, condition: str, a: str, b: str, kind: str = "double") -> str:
        return self.put(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def first(self, x: str) -> str:
        return self.put(f"extractelement {self.doubles} {x}, i32 0")

    def take(self, base: str, index: str) -> str:
        return self.put(f"load double, ptr {self.at(base, index, 'double')}, align 8")

    def keep(self, x: str, base: str, index: str) -> None:
        self.lines.append(f"  store double {x}, ptr {self.at(base, index, 'double')}, align 8")

    def load_doubles(self, base: str, index: str) -> str:
        return self.put(f"load {self.doubles}, ptr {self.at(base, index, 'double')}, align 8")

    def store_doubles(self, x: str, base: str, index: str) -> None:
        self.lines.append(f"  store {self.doubles} {x}, ptr {self.at(base, index, 'double')}, align 8")


class _Formulas(values.Code):
    """Functions of `genesis.kernels.llvm.functions`, written among the lines of other code."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.lanes, short=True)
        self.lines, self._outer = code.lines, code

    def name(self) -> str:
        return self._outer.name()

    def of(self, function: Callable[[values.Value], values.Value], x: str) -> str:
        return str(function(values.Value(self, x, "double")))
