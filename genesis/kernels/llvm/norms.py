"""LLVM code for layer and RMS norm of float32 rows: sums in float64, results rounded once.

Numbers that are no whole vector at the end of a row are computed with some before them again, and counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.kernels.llvm import products
from genesis.kernels.llvm.nests import Code

SIZES = ("first", "last", "size", "whole", "rest")
FORWARD = ("x", "weight", "bias", "eps", "out", "rows", "root")
BACKWARD = ("g", "weight", "rows", "root", "gx", "along", "total")

Body = Callable[[str, str | None, Sequence[str]], Sequence[str]]


def forward(lanes: int, centered: bool) -> str:
    """The function ``forward``: rows from ``first`` to ``last``, less their mean if ``centered``, over their spread."""
    code = _Row(lanes)
    eps = code.put("load double, ptr %eps, align 8")
    with code.loop("%first", "%last", "1") as row:
        x, out, rows = (code.of_row(name, row.index) for name in ("%x", "%out", "%rows"))
        mean = code.everywhere(code.mean(x)) if centered else None

        def away(at: str, mean: str | None = mean, x: str = x) -> str:
            number = code.wide(code.load(x, at))
            return number if mean is None else code.wide_two("fsub", number, mean)

        def squares(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            d = away(at)
            return [code.counted(code.wide_two("fmul", d, d), s[0], new)]

        square = code.share(code.total(code.through(squares, ["zeroinitializer"])[0]))
        root = code.put(f"call double @llvm.sqrt.f64(double {code.put(f'fadd double {square}, {eps}')})")
        code.put_number(root, "%root", row.index)
        scale = code.everywhere(code.put(f"fdiv double 1.0, {root}"))

        def write(at: str, new: str | None, s: Sequence[str], out: str = out, rows: str = rows) -> list[str]:
            standard = code.wide_two("fmul", away(at), scale)
            code.store(code.narrow(standard), rows, at)
            w, b = (code.wide(code.load(p, at)) for p in ("%weight", "%bias"))
            code.store(code.narrow(code.wide_two("fadd", code.wide_two("fmul", standard, w), b)), out, at)
            return []

        code.through(write, [])
    return code.function("forward", FORWARD, SIZES)


def backward(lanes: int, centered: bool) -> str:
    """The function ``backward``: the gradient of rows from ``first`` to ``last``, and for each column the sums of
    ``g rows`` and of ``g``, which are added to float64 numbers.
    """
    code = _Row(lanes)
    with code.loop("%first", "%last", "1") as row:
        g, rows, gx = (code.of_row(name, row.index) for name in ("%g", "%rows", "%gx"))

        def read(at: str, g: str = g, rows: str = rows) -> tuple[str, str, str]:
            number, standard = code.wide(code.load(g, at)), code.wide(code.load(rows, at))
            return number, standard, code.wide_two("fmul", number, code.wide(code.load("%weight", at)))

        def sums(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            number, standard, change = read(at)
            code.more(code.wide_two("fmul", number, standard), "%along", at, new)
            code.more(number, "%total", at, new)
            return [code.counted(code.wide_two("fmul", change, standard), s[0], new), code.counted(change, s[1], new)]

        along, total = code.through(sums, ["zeroinitializer"] * 2)
        part, mean = (code.everywhere(code.share(code.total(s))) for s in (along, total))
        scale = code.everywhere(code.put(f"fdiv double 1.0, {code.double('%root', row.index)}"))

        def write(at: str, new: str | None, s: Sequence[str], part: str = part, gx: str = gx) -> list[str]:
            _, standard, change = read(at)
            if centered:
                change = code.wide_two("fsub", change, mean)
            rest = code.wide_two("fsub", change, code.wide_two("fmul", standard, part))
            code.store(code.narrow(code.wide_two("fmul", rest, scale)), gx, at)
            return []

        code.through(write, [])
    return code.function("backward", BACKWARD, SIZES)


class _Row(Code):
    """Code that goes through the numbers of a row."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.end = self.put(f"sub i64 %size, {lanes}")
        behind = products.everywhere(self, self.put(f"sub i64 {lanes}, {self.put('sub i64 %size, %whole')}"))
        self.new = self.put(f"icmp sge <{lanes} x i64> {products.numbered(self)}, {behind}")

    def of_row(self, base: str, row: str) -> str:
        return self.at(base, self.times(row, "%size"))

    def through(self, body: Body, carried: Sequence[str]) -> Sequence[str]:
        """``body(at, new, values)`` for all vectors of a row; what it gives is carried to the next. ``new`` says which
        lanes were not in the vector before, None all.
        """
        with self.loop("0", "%whole", str(self.lanes), carried, self.doubles) as vector:
            vector.next = list(body(vector.index, None, vector.values))
        with self.loop("0", "%rest", "1", vector.values, self.doubles) as last:
            last.next = list(body(self.end, self.new, last.values))
        return last.values

    def _only(self, x: str, new: str | None) -> str:
        if new is None:
            return x
        return self.put(f"select <{self.lanes} x i1> {new}, {self.doubles} {x}, {self.doubles} zeroinitializer")

    def counted(self, x: str, total: str, new: str | None) -> str:
        return self.wide_two("fadd", total, self._only(x, new))

    def more(self, x: str, base: str, at: str, new: str | None) -> None:
        """Add to float64 numbers in memory."""
        at_base = self.at(base, at, "double")
        before = self.put(f"load {self.doubles}, ptr {at_base}, align 8")
        self.lines.append(f"  store {self.doubles} {self.counted(x, before, new)}, ptr {at_base}, align 8")

    def share(self, total: str) -> str:
        return self.put(f"fdiv double {total}, {self.put('sitofp i64 %size to double')}")

    def mean(self, x: str) -> str:
        def add(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            return [self.counted(self.wide(self.load(x, at)), s[0], new)]

        return self.share(self.total(self.through(add, ["zeroinitializer"])[0]))
