"""Machine code of products of bfloat16 matrices whose sums are float32 numbers, for processors with an instruction that
multiplies pairs of them: two terms at a time.

    c[i, j] += a[i, 2 t] b[2 t, j] + a[i, 2 t + 1] b[2 t + 1, j]

The loops are those of `tiles`: a pair of numbers that lie beside each other takes the memory of one float32 number, and is
moved as one. Where the terms of an operand do not lie beside each other, two rows of it are mixed as they are copied.

The instruction (``vdpbf16ps``) rounds both sums to the nearest, and takes denormal numbers for zeros. So a result is what
the products in float32 give, but for the order of the sums and numbers below 2^-126.
"""

from __future__ import annotations

from dataclasses import replace

from genesis.jit.lowering import tiles
from genesis.jit.lowering.tiles import Product
from genesis.kernels.llvm import rates
from genesis.kernels.llvm.pairs import added

LEAST = 16  # terms, rows, and columns, from where it pays


def unit(lanes: int) -> str:
    """By what products are computed in pairs here; empty where that does not pay."""
    return rates.unit_of_pairs(lanes)


def fits(m: int, n: int, k: int) -> bool:
    """Whether products of this size are computed in pairs."""
    return k % 2 == 0 and min(m, n, k) >= LEAST


def in_words(p: Product, unit: str) -> Product | None:
    """The product by a unit, with two terms as one; operands whose terms lie beside each other as matrices of pairs. None where
    memory is not so.
    """
    lying = p.a[2] == 1, p.b[1] == 1 or p.panels
    if not (lying[0] or p.a[1] == 1) or not (lying[1] or p.b[2] == 1) or p.c[2] != 1:
        return None
    batch = [list(axis) for axis in p.batch]
    given = [p.a, p.b]
    for i, (terms, is_paired) in enumerate(zip((2, 1), lying, strict=True)):
        if not is_paired or (i == 1 and p.panels):
            continue
        others = [s for j, s in enumerate(given[i]) if j != terms] + [axis[i + 1] for axis in batch]
        if any([s % 2 for s in others]):
            return None
        given[i] = tuple([1 if j == terms else s // 2 for j, s in enumerate(given[i])])  # type: ignore[assignment]
        if i == 1 and p.b[2] == 2:
            return None  # windows that overlap: columns of words would lie beside each other as rows do
        for axis in batch:
            axis[i + 1] //= 2
    return replace(p, k=p.k // 2, a=given[0], b=given[1], batch=tuple([tuple(axis) for axis in batch]), unit=unit)  # type: ignore[misc]


class Pairs(tiles.Tiles):
    """The code of a product `in_words`: operands whose terms do not lie beside each other are in numbers of 16 bits."""

    def __init__(self, lanes: int, p: Product) -> None:
        super().__init__(lanes, p)
        self.unit = p.unit
        self.kinds = "float" if p.a[2] == 1 else "i16", "float" if p.b[1] == 1 or p.panels else "i16"

    def declared(self) -> str:
        lanes = self.lanes
        vector, mask = f"<{lanes} x i16>", f"<{lanes} x i1>"
        more = f"declare {vector} @llvm.masked.load.v{lanes}i16.p0(ptr, i32, {mask}, {vector})"
        return f"{super().declared()}\n{more}"

    def line_of_a(self, p: Product, term: str) -> str:
        return self.at(self.a, self.times(term, str(2 * p.a[2])), "i16")

    def copy_some(self, p: Product, source: str, index: str, count: int, target: str, to: str) -> None:
        above = self.at(source, index, "i16")
        below = self.at(above, str(p.a[2]), "i16")
        mixed = self.mixed(*[self.put(f"load <{count} x i16>, ptr {x}, align 2") for x in (above, below)], count)
        self.lines.append(f"  store <{2 * count} x i16> {mixed}, ptr {self.at(target, to)}, align 4")

    def mixed(self, x: str, y: str, count: int) -> str:
        """The numbers of two vectors in turn."""
        order = ", ".join([f"i32 {i + side}" for i in range(count) for side in (0, count)])
        return self.put(f"shufflevector <{count} x i16> {x}, <{count} x i16> {y}, <{2 * count} x i32> <{order}>")

    def copy_panel(self, p: Product, columns: int, column: str) -> None:
        if self.plan.across:
            super().copy_panel(p, columns, column)
            return
        panel = self.at(self.b, column, "i16")
        with self.loop(*self.terms, "1") as term:
            above = self.at(panel, self.times(term.index, str(2 * p.b[1])), "i16")
            below = self.at(above, str(p.b[1]), "i16")
            number = self.put(f"sub i64 {term.index}, {self.terms[0]}")
            target = self.at(self.panel, self.times(number, str(self.plan.width)))
            for v in range(-(-columns // self.lanes)):
                count = min(self.lanes, columns - v * self.lanes)
                halves = [self.short(line, v * self.lanes, count) for line in (above, below)]
                mixed = self.mixed(halves[0], halves[1], self.lanes)
                at = self.at(target, str(v * self.lanes))
                self.lines.append(f"  store <{2 * self.lanes} x i16> {mixed}, ptr {at}, align 4")

    def short(self, line: str, at: int, count: int) -> str:
        """So many numbers, and zeros behind them."""
        lanes, address = self.lanes, self.at(line, str(at), "i16")
        if count == lanes:
            return self.put(f"load <{lanes} x i16>, ptr {address}, align 2")
        return self.put(
            f"call <{lanes} x i16> @llvm.masked.load.v{lanes}i16.p0(ptr {address}, i32 2, "
            f"{self.mask(count)}, <{lanes} x i16> zeroinitializer)"
        )

    def added(self, x: str, y: str, total: str) -> str:
        return added(self, x, y, total)
