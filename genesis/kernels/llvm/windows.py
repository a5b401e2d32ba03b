"""LLVM code for the largest elements of windows and their gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from genesis.kernels.llvm.nests import Code

MOST = 32  # elements of a window
POINTERS, SIZES = ("x", "g", "gx", "positions"), ("first", "last", "size", "windows")


def largest_gradient(taps: int) -> str:
    """The function ``largest_gradient``: each ``g`` is added where the largest of its window is, of equals the first, of
    several nan the last, as in PyTorch.

    ``positions`` has for each window of an image the positions of its elements, as many as ``taps``.
    """
    code = Code(1)
    with code.loop("%first", "%last", "1") as image:
        start = code.times(image.index, "%size")
        x, gx = code.at("%x", start), code.at("%gx", start)
        g = code.at("%g", code.times(image.index, "%windows"))
        with code.loop("0", "%windows", "1") as window:
            table = code.times(window.index, str(taps))
            index = code.number("%positions", table)
            largest = code.put(f"load float, ptr {code.at(x, index)}, align 4")
            for t in range(1, taps):
                other = code.number("%positions", code.add(table, str(t)))
                value = code.put(f"load float, ptr {code.at(x, other)}, align 4")
                above = code.put(f"fcmp ogt float {value}, {largest}")
                nan = code.put(f"fcmp uno float {value}, {value}")
                above = code.put(f"or i1 {above}, {nan}")
                largest = code.put(f"select i1 {above}, float {value}, float {largest}")
                index = code.put(f"select i1 {above}, i64 {other}, i64 {index}")
            code.store(code.plus(code.load(gx, index), code.load(g, window.index)), gx, index)
    return code.function("largest_gradient", POINTERS, SIZES)


# ---- windows of two rows and two columns, beside each other

PAIRS, PAIRS_GRADIENT = ("x", "out"), ("x", "g", "gx")
PAIRS_SIZES = ("first", "last", "columns")


def pairs(lanes: int) -> str:
    """The function ``pairs``: the largest of each window in pairs of rows from ``first`` to ``last``; nan if one is."""
    code = _Pairs(lanes)
    with code.loop("%first", "%last", "1") as row:
        start = code.times(row.index, "%columns")
        with code.loop("0", "%columns", str(lanes)) as column:
            four, _ = code.four(start, column.index)
            code.store(code.largest(four)[0], "%out", code.add(start, column.index))
    return code.function("pairs", PAIRS, PAIRS_SIZES)


def pairs_gradient(lanes: int) -> str:
    """The function ``pairs_gradient``: of each window ``g`` where its largest is, of equals the first, and zeros. (Of
    several nan the last, as in PyTorch.)
    """
    code = _Pairs(lanes)
    with code.loop("%first", "%last", "1") as row:
        start = code.times(row.index, "%columns")
        with code.loop("0", "%columns", str(lanes)) as column:
            four, offsets = code.four(start, column.index)
            g = code.load("%g", code.add(start, column.index))
            parts = [
                code.put(f"select {code.bits} {here}, {code.vector} {g}, {code.vector} zeroinitializer")
                for here in code.largest(four)[1]
            ]
            for k, offset in enumerate(offsets):
                code.store_two(parts[2 * k], parts[2 * k + 1], "%gx", offset)
    return code.function("pairs_gradient", PAIRS_GRADIENT, PAIRS_SIZES)


class _Pairs(Code):
    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.bits = f"<{lanes} x i1>"

    def four(self, start: str, column: str) -> tuple[list[str], list[str]]:
        """The elements of windows: even and odd columns of the upper row, then of the lower; where the rows are."""
        upper = self.times(self.add(self.times(start, "2"), column), "2")
        lower = self.add(upper, self.times("%columns", "2"))
        columns = []
        for row in (upper, lower):
            low, high = self.load("%x", row), self.load("%x", self.add(row, str(self.lanes)))
            columns += [self.mixed(low, high, range(odd, 2 * self.lanes, 2)) for odd in (0, 1)]
        return columns, [upper, lower]

    def mixed(self, x: str, y: str, lanes: Iterable[int]) -> str:
        """Of the lanes of two vectors, one after the other, those at these places."""
        mask = f"<{', '.join([f'i32 {i}' for i in lanes])}>"
        return self.put(f"shufflevector {self.vector} {x}, {self.vector} {y}, <{self.lanes} x i32> {mask}")

    def largest(self, elements: Sequence[str]) -> tuple[str, list[str]]:
        """The value, and for each element in which lanes it is the one."""
        out, yes = elements[0], f"<{', '.join(['i1 true'] * self.lanes)}>"
        chosen = [yes]
        for x in elements[1:]:
            above = self.put(f"fcmp ogt {self.vector} {x}, {out}")
            nan = self.put(f"fcmp uno {self.vector} {x}, {x}")
            now = self.put(f"or {self.bits} {above}, {nan}")
            before = self.put(f"xor {self.bits} {now}, {yes}")
            out = self.put(f"select {self.bits} {now}, {self.vector} {x}, {self.vector} {out}")
            chosen = [*[self.put(f"and {self.bits} {one}, {before}") for one in chosen], now]
        return out, chosen

    def store_two(self, even: str, odd: str, base: str, offset: str) -> None:
        """Vectors of even and odd columns to where they belong."""
        for k in range(2):
            lanes = [j // 2 + j % 2 * self.lanes for j in range(k * self.lanes, (k + 1) * self.lanes)]
            self.store(self.mixed(even, odd, lanes), base, self.add(offset, str(k * self.lanes)))
