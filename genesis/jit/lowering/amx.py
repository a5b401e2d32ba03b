"""Machine code of products of bfloat16 matrices by the registers of AMX, see `genesis.kernels.llvm.amx`.

The loops are those of `tiles`, and panels are copied as `pairs` says. Registers are set for tiles of one size: in a panel
first whole tiles are multiplied, then the last one, then the words behind the last whole register. Where there is one size
only, they are set once.
"""

from __future__ import annotations

from genesis.jit.lowering import pairs
from genesis.jit.lowering.tiles import Product, pieces
from genesis.kernels.llvm import amx
from genesis.kernels.llvm.amx import SIDE, Matrix


class Registers(pairs.Pairs):
    """The code of a product in words."""

    def begin(self, p: Product) -> None:
        plan = self.plan
        self.apart = min(plan.terms, -(-p.k // SIDE) * SIDE) + SIDE  # from one copied row to the next
        if plan.copies_a:
            self.lines.append(f"  %tiles = alloca [{plan.high * self.apart} x float], align 64")
        if plan.copies_b:
            self.lines.append(f"  %panel = alloca [{plan.terms * plan.width} x float], align 64")
        self.lines.append(
            f"  %room = alloca [{SIDE} x float], align 64\n  %start = alloca [{plan.width} x float], align 64"
        )
        for v in range(plan.vectors):
            self.store(self.constant(0.0), "%start", str(v * SIDE))
        self.is_one_size = not (p.m % plan.rows or p.n % plan.width or p.k % SIDE)
        if self.is_one_size:
            self._configure(plan.rows, plan.width, SIDE)

    def finish(self) -> None:
        amx.release(self)

    def _configure(self, rows: int, columns: int, words: int) -> None:
        amx.configure(self, _shape(rows, columns), str(rows), str(columns), str(words), "%room")

    def rows_of_panel(self, p: Product, columns: int, column: str, rows: tuple[str, str]) -> None:
        rest, (begin, end) = p.k % SIDE, self.terms
        if p.k >= SIDE:
            whole = self.least(end, str(p.k - rest)) if rest else end
            self._rows(p, columns, column, rows, (begin, whole, str(SIDE)))
        if rest:
            with self.loop(str(p.k - rest), end, str(rest)):  # one round, in the last block of terms
                self._rows(p, columns, column, rows, (str(p.k - rest), str(p.k), str(rest)))

    def _rows(self, p: Product, columns: int, column: str, rows: tuple[str, str], terms: tuple[str, str, str]) -> None:
        for count, top in pieces(p.m, self.plan.rows):
            if not self.is_one_size:
                self._configure(count, columns, int(terms[2]))
            with self.loop(rows[0] if top < 0 else str(top), rows[1], str(count)) as tile:
                self._tile_of(p, (count, columns), (tile.index, column), terms)

    def _tile_of(self, p: Product, size: tuple[int, int], at: tuple[str, str], terms: tuple[str, str, str]) -> None:
        """A tile of so many rows and columns, at a row and a column."""
        a, b = self._first(p, at[0]), self._second(p, at[1])
        offset = self.add(self.times(at[0], str(p.c[1])), at[1])
        c = Matrix(self.at(self.c, offset), str(4 * p.c[1]))
        start = self._start(p, c, offset, at[1], terms[0])
        amx.tile(self, _shape(*size), a, b, c, start, terms)

    def _first(self, p: Product, row: str) -> Matrix:
        """The rows of the first matrix, counted from term 0."""
        if not self.plan.copies_a:
            return Matrix(self.at(self.a, self.times(row, str(p.a[1]))), str(4 * p.a[1]))
        line = self._line(row)
        return Matrix(self.at(line, self.put(f"sub i64 0, {self.terms[0]}")), str(4 * self.apart))

    def _second(self, p: Product, column: str) -> Matrix:
        width = self.plan.width
        if p.panels:
            return Matrix(self.at(self.b, self.times(column, str(p.k))), str(4 * width))
        before = self.times(self.terms[0], str(width))
        return Matrix(self.at(self.panel, self.put(f"sub i64 0, {before}")), str(4 * width))

    def _start(self, p: Product, c: Matrix, offset: str, column: str, term: str) -> Matrix:
        """What sums begin with: in the first terms the bias, or the matrix that is added to; then what there is of them."""
        first = Matrix("%start", "0")
        if p.bias is not None:
            first = Matrix(self.at(self.bias, column), "0") if p.bias[1] else Matrix(self._filled(), "0")
        elif p.adds:
            first = Matrix(self.at(self.before, offset), c.step)
        if not self.fresh and p.k % SIDE == 0:
            return first
        begins = self.put(f"icmp eq i64 {term}, 0")
        at = self.put(f"select i1 {begins}, ptr {first.at}, ptr {c.at}")
        return Matrix(at, self.put(f"select i1 {begins}, i64 {first.step}, i64 {c.step}"))

    def _filled(self) -> str:
        """One number that is the bias of all columns."""
        for v in range(self.plan.vectors):
            self.store(self.spread(self.bias, "0"), "%start", str(v * SIDE))
        return "%start"

    # ---- rows of the first matrix whose terms are lines of memory

    def _line(self, row: str) -> str:
        return self.at("%tiles", self.times(self.put(f"sub i64 {row}, {self.first}"), str(self.apart)))

    def copy_rows(self, p: Product, first: str, last: str) -> None:
        """The rows of the block, each with its words beside each other."""
        rest, (begin, end) = p.k % SIDE, self.terms
        with self.loop(begin, end, str(SIDE)) as square:
            self._copy_squares(p, (first, last), square.index, SIDE)
        if rest:
            with self.loop(str(p.k - rest), end, str(rest)) as square:
                self._copy_squares(p, (first, last), square.index, rest)

    def _copy_squares(self, p: Product, rows: tuple[str, str], term: str, words: int) -> None:
        for count, top in pieces(p.m, SIDE):
            with self.loop(rows[0] if top < 0 else str(top), rows[1], str(count)) as some:
                self._copy_square(p, some.index, count, term, words)

    def _copy_square(self, p: Product, row: str, count: int, term: str, words: int) -> None:
        """So many rows and words, turned around in registers of vectors."""
        lines = [self._words(p, self.add(term, str(t)), row, count) for t in range(words)]
        lines += [self.constant(0.0)] * (SIDE - words)
        column = self.put(f"sub i64 {term}, {self.terms[0]}")
        for r, line in enumerate(self.turned(lines)[:count]):
            self.store(line, self._line(self.add(row, str(r))), column)

    def _words(self, p: Product, term: str, row: str, count: int) -> str:
        """A word of each of so many rows, that begins in two lines of memory."""
        above = self.at(self.line_of_a(p, term), row, "i16")
        below = self.at(above, str(p.a[2]), "i16")
        mixed = self.mixed(self.short(above, 0, count), self.short(below, 0, count), SIDE)
        return self.put(f"bitcast <{2 * SIDE} x i16> {mixed} to {self.vector}")


def _shape(rows: int, columns: int) -> tuple[int, int]:
    """How many registers there are beneath and beside each other."""
    return -(-rows // SIDE), -(-columns // SIDE)
