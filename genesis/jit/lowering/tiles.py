"""Machine code of products of float32 matrices, in tiles.

for chunks: (matrix of a batch, block of rows, block of columns)
    for blocks of terms:
        for panels of columns:
            for tiles of rows:   rows x vectors of the result stay in registers
                for terms:       a number of the first matrix times vectors of a row of the second

Sums begin with the bias. Sizes and strides are in the code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genesis.jit.lowering import transposes
from genesis.kernels.llvm import loops, units
from genesis.kernels.llvm.nests import Code
from genesis.kernels.llvm.units import FLOAT32

TERMS, FEWER = 256, 128  # of a block; where those of the first matrix are lines of memory apart
HIGH = 96  # rows of a block, about
LOW = 64  # at least, where there would be few blocks
UNITS = 6  # of blocks, at least, where there is enough to do
AHEAD = 16  # terms by which memory is asked for before it is read
COPIED_AHEAD = 8  # before it is copied
LINE = 16  # numbers of a line of the cache
COPIED = 96  # terms from which operands are copied
WIDE = 768  # columns from which rows are, else
FEW = 1 << 17  # multiplications of a chunk, at least


@dataclass(frozen=True, slots=True)
class Product:
    """``c[i, j] = bias[j] + sum_t a[i, t] b[t, j]``: where the operands begin, and their strides.

    It ``adds`` to a matrix that lies as the result does. The second matrix may lie in ``panels``, see `in_panels`. By a
    ``unit`` for pairs of bfloat16 numbers, see `pairs`, terms are counted in pairs.
    """

    m: int
    n: int
    k: int
    a: tuple[int, int, int]  # offset, rows, terms
    b: tuple[int, int, int]  # offset, terms, columns
    c: tuple[int, int, int]  # offset, rows, columns
    bias: tuple[int, int] | None  # offset, columns
    batch: tuple[tuple[int, int, int, int], ...] = ()  # how many, and their strides in a, b and c
    adds: bool = False
    panels: bool = False
    unit: str = FLOAT32

    def transposed(self) -> Product:
        a, b, c = ((o, s, r) for o, r, s in (self.a, self.b, self.c))
        batch = tuple([(n, y, x, z) for n, x, y, z in self.batch])
        return Product(self.n, self.m, self.k, b, a, c, None, batch, self.adds, False, self.unit)


class Plan:
    """Tiles and chunks of a product, for vectors of so many lanes."""

    def __init__(self, p: Product, lanes: int) -> None:
        rows, vectors = _tile(p, lanes)
        self.rows = min(p.m, rows)
        self.width = vectors * lanes
        self.vectors = vectors
        times = units.UNITS[p.unit].times
        least = max(-(-FEW // max(p.n * p.k, 1)), HIGH * times)  # rows of a block
        self.blocks = max(p.m // least, 1)
        self.count = math.prod([n for n, *_ in p.batch])
        if self.blocks * self.count < UNITS <= p.m // (least * LOW // HIGH):  # alike, which those of columns are not
            self.blocks = UNITS
        self.high = _multiple(-(-p.m // self.blocks), self.rows, p.m)
        self.blocks = -(-p.m // self.high)
        panels = -(-p.n // self.width)
        work = self.high * self.width * p.k  # of a panel
        worth = max(panels * work // (FEW * times), 1)
        self.columns = min(-(-UNITS // (self.blocks * max(self.count, 1))), worth, panels)
        self.wide = _multiple(-(-p.n // self.columns), self.width, p.n)
        self.columns = -(-p.n // self.wide)
        self.units = self.blocks * self.count * self.columns
        # rows of the first matrix that lie in columns, and panels of the second, are copied when several tiles read them;
        # vectors that are lines of the cache are read as fast where they are, if the lines of a matrix are not long
        whole_lines = lanes == 16 and p.b[1] % lanes == 0
        several = p.k >= COPIED and self.rows < self.high <= 2 * HIGH
        self.copies_a = p.a[1] == 1 and p.a[2] > 1 and several and (self.wide >= WIDE or not whole_lines)
        # columns of the second lie beside each other: its panels are turned around
        self.across = p.b[2] != 1 and not p.panels
        several = p.k >= COPIED and self.high >= 4 * self.rows and p.n > self.width
        self.copies_b = self.across or (several and not whole_lines and not p.panels)
        if p.unit != FLOAT32:
            self.copies_a, self.copies_b = p.a[2] != 1, not p.panels
        self.terms = FEWER if p.a[1] == 1 != p.a[2] else TERMS
        self.apart = self.rows * self.terms + 16  # copied tiles begin in different sets of the cache
        self.each = max(1, min(self.units, FEW * times // max(self.high * self.wide * p.k, 1)))
        self.chunks = max(1, -(-self.units // self.each))


def _tile(p: Product, lanes: int) -> tuple[int, int]:
    """The rows and vectors of a tile: whose sums are in registers, of which AVX-512 and NEON have 32, AVX2 16."""
    if p.unit == "tdpbf16ps":
        rows, most = units.UNITS[p.unit].tiles[lanes]
        return rows, min(most, -(-p.n // lanes))
    many = lanes != 8
    most = 4 if p.n == 4 * lanes else 3  # no panel of a single vector behind three
    vectors = min(most if many else 2, -(-p.n // lanes))
    return {1: 16, 2: 12, 3: 8, 4: 6}[vectors] if many else {1: 8, 2: 6}[vectors], vectors


def _multiple(size: int, step: int, most: int) -> int:
    return min(-(-size // step) * step, most)


def code(name: str, p: Product, plan: Plan, out: Tiles) -> str:
    count = 3 + (p.bias is not None or p.adds) + out.more
    bases = [out.put(f"load ptr, ptr {out.at('%addresses', str(i), 'ptr')}") for i in range(count)]
    out.plan = plan
    out.begin(p)
    start = out.times("%chunk", str(plan.each))
    stop = out.least(out.add(start, str(plan.each)), str(plan.units))
    with out.loop(start, stop, "1") as unit:
        column = out.put(f"urem i64 {unit.index}, {plan.columns}")
        rest = out.put(f"udiv i64 {unit.index}, {plan.columns}")
        block, rest = out.put(f"urem i64 {rest}, {plan.blocks}"), out.put(f"udiv i64 {rest}, {plan.blocks}")
        offsets = [str(p.a[0]), str(p.b[0]), str(p.c[0])]
        for n, *strides in reversed(p.batch):
            index, rest = out.put(f"urem i64 {rest}, {n}"), out.put(f"udiv i64 {rest}, {n}")
            offsets = [out.add(o, out.times(index, str(s))) if s else o for o, s in zip(offsets, strides, strict=True)]
        kinds = *out.kinds, "float"
        out.a, out.b, out.c = (out.at(*given) for given in zip(bases, offsets, kinds, strict=False))
        out.bias = out.at(bases[3], str(p.bias[0])) if p.bias else ""
        out.before = out.at(bases[3], offsets[2]) if p.adds else ""
        out.bases = bases
        first = out.times(block, str(plan.high)), out.times(column, str(plan.wide))
        last = (
            out.least(out.add(first[0], str(plan.high)), str(p.m)),
            out.least(out.add(first[1], str(plan.wide)), str(p.n)),
        )
        out.compute(p, first, last)
    out.finish()
    return _definition(name, out, plan.across)


def _definition(name: str, out: Tiles, across: bool) -> str:
    body = "\n".join(out.lines)
    head = f"define void @{name}(ptr %addresses, i64 %chunk) #0 {{"
    parts = [transposes.square_of(out.lanes)] if across else []
    return "\n".join([*parts, out.declared(), head, f"entry:\n{body}\n  ret void\n}}", loops.attributes()])


def pieces(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Whole steps, from -1, which is the beginning of the block; and what is left, at the end."""
    if size >= step:
        yield step, -1
    if size % step:
        yield size % step, size - size % step


class Tiles(Code):
    unit = FLOAT32
    kinds = "float", "float"  # in which memory of the operands is counted
    a = b = c = bias = before = fresh = ""
    terms = "", ""
    first = "0"
    more = 0  # operands behind those
    bases: Sequence[str] = ()
    panel = "%panel"  # where one of the second is copied to
    plan: Plan

    def __init__(self, lanes: int, p: Product) -> None:
        super().__init__(lanes)
        # of what is copied the next panel is asked for, and rows some terms ahead: their lines of memory are far apart, and
        # the processor foresees none of them. It was measured with AVX2 only.
        self.asks = lanes == 8 and p.unit == FLOAT32

    def declared(self) -> str:
        """What a module has to say of the functions that are called."""
        return units.UNITS[self.unit].declared(self.lanes)

    def begin(self, p: Product) -> None:
        """What comes first in the function: memory for copies."""
        if self.plan.copies_a:
            tiles = -(-self.plan.high // self.plan.rows)
            self.lines.append(f"  %tiles = alloca [{tiles * self.plan.apart} x float], align 64")
        if self.plan.copies_b:
            self.lines.append(f"  %panel = alloca [{self.plan.terms * self.plan.width} x float], align 64")

    def finish(self) -> None:
        """What comes last."""

    def compute(self, p: Product, first: Sequence[str], last: Sequence[str]) -> None:
        """A block of rows and columns of the result, from the first to the last."""
        plan = self.plan
        blocks = -(-p.k // plan.terms)
        with self.loop("0", str(blocks), "1") as terms:
            begin = self.times(terms.index, str(plan.terms))
            self.terms = begin, self.least(self.add(begin, str(plan.terms)), str(p.k))
            self.fresh = self.put(f"icmp eq i64 {terms.index}, 0") if blocks > 1 else ""
            self.first = first[0]
            if plan.copies_a:
                self.copy_rows(p, first[0], last[0])
            for columns, at in pieces(p.n, plan.width):
                with self.loop(first[1] if at < 0 else str(at), last[1], str(columns)) as panel:
                    if plan.copies_b:
                        self.copy_panel(p, columns, panel.index)
                    self.rows_of_panel(p, columns, panel.index, (first[0], last[0]))

    def below(self, term: str) -> str:
        """Where a term is among those that are copied."""
        return self.put(f"sub i64 {term}, {self.terms[0]}")

    def rows_of_panel(self, p: Product, columns: int, column: str, rows: tuple[str, str]) -> None:
        """The tiles of a panel, from a row to another."""
        for count, top in pieces(p.m, self.plan.rows):
            with self.loop(rows[0] if top < 0 else str(top), rows[1], str(count)) as tile:
                self.tile(p, count, columns, tile.index, column)

    def copy_rows(self, p: Product, first: str, last: str) -> None:
        """The rows of the block, term by term: those of a tile beside each other."""
        with self.loop(*self.terms, "1") as term:
            line = self.line_of_a(p, term.index)
            if self.asks:
                self._ask(self.at(line, first), COPIED_AHEAD * p.a[2], self.plan.high)
            below = self.below(term.index)
            if p.m % self.plan.high == self.plan.high % self.plan.rows == 0:  # all blocks are whole
                line, target = (
                    self.at(line, first, self.kinds[0]),
                    self.at("%tiles", self.times(below, str(self.plan.rows))),
                )
                for i in range(self.plan.high // self.plan.rows):
                    self.copy_some(p, line, str(i * self.plan.rows), self.plan.rows, target, str(i * self.plan.apart))
                return
            for rows, top in pieces(p.m, self.plan.rows):
                with self.loop(first if top < 0 else str(top), last, str(rows)) as tile:
                    self.copy_some(p, line, tile.index, rows, self._tile(tile.index), self.times(below, str(rows)))

    def line_of_a(self, p: Product, term: str) -> str:
        return self.at(self.a, self.times(term, str(p.a[2])))

    def copy_some(self, p: Product, source: str, index: str, count: int, target: str, to: str) -> None:
        values = self.put(f"load <{count} x float>, ptr {self.at(source, index)}, align 4")
        self.lines.append(f"  store <{count} x float> {values}, ptr {self.at(target, to)}, align 4")

    def _tile(self, row: str) -> str:
        number = self.put(f"udiv i64 {self.put(f'sub i64 {row}, {self.first}')}, {self.plan.rows}")
        return self.at("%tiles", self.times(number, str(self.plan.apart)))

    def copy_panel(self, p: Product, columns: int, column: str) -> None:
        """The rows of a panel, one after the other."""
        if self.plan.across:
            self._turn_panel(p, columns, column)
            return
        panel = self.at(self.b, column)
        with self.loop(*self.terms, "1") as term:
            line = self.at(panel, self.times(term.index, str(p.b[1])))
            if self.asks:
                self._ask(line, self.plan.width, self.plan.width)
            below = self.below(term.index)
            target = self.at(self.panel, self.times(below, str(self.plan.width)))
            for v in range(-(-columns // self.lanes)):
                self.store(self.some(line, v, columns), target, str(v * self.lanes))

    def _turn_panel(self, p: Product, columns: int, column: str) -> None:
        """The rows of a panel where its columns lie beside each other."""
        lanes, width, step = self.lanes, self.plan.width, str(p.b[2])
        count = self.put(f"sub i64 {self.terms[1]}, {self.terms[0]}")
        squares = self.put(f"sdiv i64 {self.add(count, str(lanes - 1))}, {lanes}")
        with self.loop("0", squares, "1") as square:
            below = self.times(square.index, str(lanes))
            wide = self.least(self.put(f"sub i64 {count}, {below}"), str(lanes))
            line = self.at(self.b, self.add(self.terms[0], below))
            for v in range(-(-columns // lanes)):
                begin = self.at(line, self.times(self.add(column, str(v * lanes)), step))
                end = self.at(self.panel, self.add(self.times(below, str(width)), str(v * lanes)))
                high = str(min(lanes, columns - v * lanes))
                self.invoke(f"transpose{lanes}", [begin, end], [step, high, wide, str(width)])

    def tile(self, p: Product, rows: int, columns: int, row: str, column: str) -> None:
        """The terms of one block, for so many rows and columns."""
        vectors = -(-columns // self.lanes)
        if self.before:
            self.fetch(p, rows, vectors, row, column)
        values = self.sums(p, rows, columns, row, column)
        bias = [self._bias(p, column, v, columns) for v in range(vectors)]
        before = self.before
        if before and self.fresh:  # then the sum so far
            before = self.put(f"select i1 {self.fresh}, ptr {before}, ptr {self.c}")
        for r in range(rows):
            at = self.begin_of(p, row, r, column)
            target = self.at(self.c, at)
            if before:
                old = self.at(before, at)
                for v in range(vectors):
                    sums = self.plus(values[r * vectors + v], self.some(old, v, columns))
                    self.store_some(sums, target, v, columns)
                continue
            for v in range(vectors):
                self._put(values[r * vectors + v], bias[v], target, v, columns)

    def begin_of(self, p: Product, row: str, r: int, column: str) -> str:
        """Where a row of a tile begins in the result."""
        return self.add(self.times(self.add(row, str(r)), str(p.c[1])), column)

    def sums(self, p: Product, rows: int, columns: int, row: str, column: str) -> list[str]:
        """The sums over these terms, vectors of rows one after the other."""
        lanes = self.lanes
        vectors = -(-columns // lanes)
        lines = [self.at(self.a, self.times(self.add(row, str(r)), str(p.a[1]))) for r in range(rows)]
        if self.plan.copies_a:
            tile = self._tile(row)
            lines = [self.at(tile, str(r)) for r in range(rows)]
        if self.plan.copies_b:
            panel = self.panel
        else:
            panel = self.at(self.b, self.times(column, str(p.k)) if p.panels else column)
        zeros = [self.constant(0.0)] * (rows * vectors)
        with self.loop(*self.terms, "1", zeros) as term:
            below = self.below(term.index)
            at = self.times(below, str(rows)) if self.plan.copies_a else self.times(term.index, str(p.a[2]))
            if self.plan.copies_b or p.panels:
                line = self.at(panel, self.times(below if self.plan.copies_b else term.index, str(self.plan.width)))
                others = [self.load(line, str(v * lanes)) for v in range(vectors)]
            else:
                line = self.at(panel, self.times(term.index, str(p.b[1])))
                others = [self.some(line, v, columns) for v in range(vectors)]
            self._fetch_ahead(p, line, vectors)
            term.next = []
            for r in range(rows):
                x = self.spread(lines[r], at)
                sums = term.values[r * vectors : (r + 1) * vectors]
                term.next += [self.added(x, y, s) for y, s in zip(others, sums, strict=True)]
        return term.values

    def _ask(self, line: str, ahead: int, count: int) -> None:
        """For so many numbers, which are so far behind a place."""
        for first in range(0, count, LINE):
            self.prefetch(line, str(ahead + first))

    def fetch(self, p: Product, rows: int, vectors: int, row: str, column: str) -> None:
        """Ask for the tile of the result, that it is there when the sums are."""
        for r in range(rows):
            line = self.at(self.c, self.begin_of(p, row, r, column))
            for v in range(vectors):
                self.prefetch(line, str(v * self.lanes), writes=True)

    def _fetch_ahead(self, p: Product, line: str, vectors: int) -> None:
        """Ask for rows of the second matrix that are read some terms later, where they are not copied: the processor does
        not foresee long steps. Of the first that costs more than it saves: rows far apart share few sets of the cache.
        """
        if self.plan.copies_b or p.panels:
            return
        for v in range(vectors):
            self.prefetch(line, str(AHEAD * p.b[1] + v * self.lanes))

    def _bias(self, p: Product, column: str, v: int, columns: int) -> str:
        if p.bias is None:
            return ""
        if p.bias[1] == 0:
            return self.spread(self.bias, "0")
        return self.some(self.at(self.bias, column), v, columns)

    def _put(self, value: str, bias: str, target: str, v: int, columns: int) -> None:
        """With the bias in the first block of terms, and with the sum so far in the others."""
        first = self.plus(value, bias) if bias else value
        if self.fresh:
            more = self.plus(value, self.some(target, v, columns))
            first = self.put(f"select i1 {self.fresh}, {self.vector} {first}, {self.vector} {more}")
        self.store_some(first, target, v, columns)

    def store_some(self, value: str, target: str, v: int, columns: int) -> None:
        """Vector number v of so many columns."""
        at = self.at(target, str(v * self.lanes))
        left = columns - v * self.lanes
        if left >= self.lanes:
            self.lines.append(f"  store {self.vector} {value}, ptr {at}, align 4")
        else:
            mask = self.mask(left)
            self.lines.append(
                f"  call void @llvm.masked.store.v{self.lanes}f32.p0({self.vector} {value}, ptr {at}, i32 4, {mask})"
            )

    def some(self, base: str, v: int, columns: int) -> str:
        """Vector number v of so many columns; zeros behind them."""
        left = columns - v * self.lanes
        at = str(v * self.lanes)
        if left >= self.lanes:
            return self.load(base, at)
        return self.put(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0(ptr {self.at(base, at)}, i32 4, {self.mask(left)}, "
            f"{self.vector} zeroinitializer)"
        )


def panels_code(name: str, p: Product, plan: Plan, out: Tiles) -> str:
    out.plan, out.terms = plan, ("0", str(p.k))
    b, target = (out.put(f"load ptr, ptr {out.at('%addresses', str(i), 'ptr')}") for i in range(2))
    out.b = out.at(b, str(p.b[0]), out.kinds[1])
    first = out.times("%chunk", str(plan.width))
    last = out.least(out.add(first, str(plan.width)), str(p.n))
    out.panel = out.at(target, out.times(first, str(p.k)))
    for columns, at in pieces(p.n, plan.width):
        with out.loop(first if at < 0 else str(at), last, str(columns)) as panel:
            out.copy_panel(p, columns, panel.index)
    return _definition(name, out, plan.across)
