"""Machine code of products of few rows of float32 numbers with the rows of a matrix: a token through a layer, weights
that are read once.

for chunks: (matrix of a batch, block of columns)
    for columns of the result, as many as a vector has lanes:
        for a few of them:   rows of the second matrix, from their beginnings to their ends
            for terms:       vectors of each of them times vectors of each row of the first, which are read once for all
        lanes are added up, so that a vector of results is there, and the bias

The order of sums depends on the number of terms and of rows alone. The processor asks for memory by itself before it is
read; to ask for it here as well made it no faster, neither with one thread nor with two.
"""

from __future__ import annotations

import math

from genesis.jit.lowering.tiles import Product
from genesis.kernels.llvm import loops
from genesis.kernels.llvm.nests import Code, declarations

FEW = 4  # rows
TOGETHER, CHAINS = 4, 2  # rows of the second matrix, and sums of each, if there is one row of the first
WORK = 1 << 14  # multiplications of a chunk, at least


def suits(p: Product, lanes: int) -> bool:
    """Whether there is code for a product."""
    lie = p.a[2] == p.b[1] == p.c[2] == 1 and not p.adds and not p.panels
    return lie and 0 < p.m <= FEW and p.n >= 4 and p.k >= lanes


class Plan:
    """Chunks of a product; the names are those of `tiles.Plan`."""

    blocks = 1  # of rows

    def __init__(self, p: Product, lanes: int) -> None:
        self.high = p.m
        vectors, work = -(-p.n // lanes), p.m * p.n * p.k
        columns = max(1, min(vectors, work // WORK))
        self.wide = -(-vectors // columns) * lanes
        self.columns = -(-p.n // self.wide)
        self.units = math.prod([n for n, *_ in p.batch]) * self.columns
        self.each = max(1, min(self.units, WORK // max(p.m * min(self.wide, p.n) * p.k, 1)))
        self.chunks = max(1, -(-self.units // self.each))


def code(name: str, p: Product, plan: Plan, lanes: int) -> str:
    """The kernel of the operands a, b, c, and the bias if there is one."""
    out = Dots(lanes)
    bases = [out.put(f"load ptr, ptr {out.at('%addresses', str(i), 'ptr')}") for i in range(3 + (p.bias is not None))]
    out.lines.append(f"  %sums = alloca [{p.m * lanes} x {out.vector}], align 64")
    start = out.times("%chunk", str(plan.each))
    stop = out.least(out.add(start, str(plan.each)), str(plan.units))
    with out.loop(start, stop, "1") as unit:
        column, rest = out.divided(unit.index, plan.columns)
        offsets = [str(p.a[0]), str(p.b[0]), str(p.c[0])]
        for n, *strides in reversed(p.batch):
            index, rest = out.divided(rest, n)
            offsets = [out.add(o, out.times(index, str(s))) if s else o for o, s in zip(offsets, strides, strict=True)]
        a, b, c = (out.at(base, o) for base, o in zip(bases, offsets, strict=False))
        bias = out.at(bases[3], str(p.bias[0])) if p.bias else ""
        first = out.times(column, str(plan.wide))
        last = out.least(out.add(first, str(plan.wide)), str(p.n))
        with out.loop(first, last, str(lanes)) as vector:
            out.columns(p, (a, b, c, bias), vector.index, lanes)
        if p.n % lanes:
            is_last = out.put(f"icmp eq i64 {last}, {p.n}")
            begin = out.put(f"select i1 {is_last}, i64 {p.n - p.n % lanes}, i64 {p.n}")
            with out.loop(begin, str(p.n), str(p.n % lanes)) as vector:
                out.columns(p, (a, b, c, bias), vector.index, p.n % lanes)
    body = "\n".join(out.lines)
    head = f"define void @{name}(ptr %addresses, i64 %chunk) #0 {{"
    return "\n".join([declarations(lanes), head, f"entry:\n{body}\n  ret void\n}}", loops.attributes()])


class Dots(Code):
    """Dot products of few rows with rows of a matrix."""

    def divided(self, x: str, by: int) -> tuple[str, str]:
        """What is left, and how often it goes."""
        return ("0", x) if by == 1 else (self.put(f"urem i64 {x}, {by}"), self.put(f"udiv i64 {x}, {by}"))

    def columns(self, p: Product, bases: tuple[str, str, str, str], column: str, count: int) -> None:
        """So many columns of the result, at most a vector."""
        a, b, c, bias = bases
        rows = [self.at(a, str(i * p.a[1])) for i in range(p.m)]
        most = max(1, TOGETHER // p.m)
        done = count - count % most
        for first, last, together in ((0, done, most), (done, count, 1)):
            if first == last:
                continue
            with self.loop(str(first), str(last), str(together)) as each:
                numbers = [self.add(each.index, str(j)) for j in range(together)]
                lines = [self.at(b, self.times(self.add(column, j), str(p.b[2]))) for j in numbers]
                for i, totals in enumerate(self.sums(p, rows, lines)):
                    for j, total in zip(numbers, totals, strict=True):
                        self.lines.append(f"  store {self.vector} {total}, ptr {self.slot(i, j)}, align 64")
        bias = self.some(self.at(bias, column) if p.bias and p.bias[1] else bias, p, count) if bias else ""
        for i in range(p.m):
            numbers = [str(j) for j in range(self.lanes)]
            loaded = [self.put(f"load {self.vector}, ptr {self.slot(i, j)}, align 64") for j in numbers]
            total = self.across(loaded)
            target = self.at(c, self.add(column, str(i * p.c[1])))
            self.keep(self.plus(total, bias) if bias else total, target, count)

    def slot(self, row: int, column: str) -> str:
        return self.at("%sums", self.add(column, str(row * self.lanes)), self.vector)

    def sums(self, p: Product, rows: list[str], lines: list[str]) -> list[list[str]]:
        """For each row of the first matrix and each of these of the second, the vector whose lanes add up to their product."""
        lanes, chains = self.lanes, max(1, CHAINS // p.m)
        zero, pairs = self.constant(0.0), [(row, line) for row in rows for line in lines]
        with self.loop("0", str(p.k), str(chains * lanes), [zero] * (chains * len(pairs))) as terms:
            terms.next = []
            ats = [self.add(terms.index, str(v * lanes)) for v in range(chains)]
            numbers = {base: [self.load(base, at) for at in ats] for base in (*rows, *lines)}
            for i, (row, line) in enumerate(pairs):
                own = terms.values[i * chains : (i + 1) * chains]
                terms.next += [self.fma(*each) for each in zip(numbers[row], numbers[line], own, strict=True)]
        done = p.k - p.k % (chains * lanes)
        totals = [list(terms.values[i * chains : (i + 1) * chains]) for i in range(len(pairs))]
        for v, at in enumerate(range(done, p.k, lanes)):
            parts = {base: self.part(base, at, min(lanes, p.k - at)) for base in (*rows, *lines)}
            for (row, line), total in zip(pairs, totals, strict=True):
                total[v] = self.fma(parts[row], parts[line], total[v])
        sums = [self.pairs(total) for total in totals]
        return [sums[i : i + len(lines)] for i in range(0, len(sums), len(lines))]

    def pairs(self, values: list[str]) -> str:
        """The sum of vectors, neighbours first."""
        while len(values) > 1:
            values = [
                self.plus(*values[i : i + 2]) if i + 1 < len(values) else values[i] for i in range(0, len(values), 2)
            ]
        return values[0]

    def across(self, values: list[str]) -> str:
        """Lane j of the result is the sum of all lanes of vector number j: halves of pairs are added, until one is left."""
        lanes, apart = self.lanes, self.lanes // 2
        while apart:
            # lane p of a pair comes from the first if p & apart is not set, else from the second
            low = [p if not p & apart else lanes + p - apart for p in range(lanes)]
            high = [p + apart if not p & apart else lanes + p for p in range(lanes)]
            values = [
                self.plus(self.mixed(x, y, low), self.mixed(x, y, high))
                for x, y in zip(values[: len(values) // 2], values[len(values) // 2 :], strict=True)
            ]
            apart //= 2
        return values[0]

    def mixed(self, x: str, y: str, lanes: list[int]) -> str:
        numbers = ", ".join([f"i32 {n}" for n in lanes])
        return self.put(f"shufflevector {self.vector} {x}, {self.vector} {y}, <{self.lanes} x i32> <{numbers}>")

    def part(self, base: str, at: int, count: int) -> str:
        """So many numbers, and zeros behind them."""
        if count == self.lanes:
            return self.load(base, str(at))
        return self.put(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0(ptr {self.at(base, str(at))}, i32 4, "
            f"{self.mask(count)}, {self.vector} zeroinitializer)"
        )

    def some(self, base: str, p: Product, count: int) -> str:
        """The bias of so many columns."""
        assert p.bias is not None
        return self.part(base, 0, count) if p.bias[1] else self.spread(base, "0")

    def keep(self, value: str, target: str, count: int) -> None:
        if count == self.lanes:
            self.lines.append(f"  store {self.vector} {value}, ptr {target}, align 4")
            return
        name = f"@llvm.masked.store.v{self.lanes}f32.p0"
        mask = self.mask(count)
        self.lines.append(f"  call void {name}({self.vector} {value}, ptr {target}, i32 4, {mask})")
