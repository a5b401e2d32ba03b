"""Products of float32 matrices as kernels.

    for chunks: (matrix of a batch, block of rows, block of columns)
        for blocks of terms:
            for panels of columns:
                for tiles of rows:   rows x vectors of the result stay in registers
                    for terms:       a number of the first matrix times vectors of a row of the second

The rows of the second matrix lie beside each other; where they do not it is copied before, by a part (`packed`). Sums begin
with the bias. Sizes and strides are in the code.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering import transposes
from genesis.jit.lowering.parts import F64, Builder, Memory, Part, Read, Unknown, total
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.llvm import loops
from genesis.kernels.llvm.nests import Code, declarations

F32 = np.dtype(np.float32)
TERMS = 256  # of a block
HIGH = 96  # rows of a block, about
UNITS = 6  # of blocks, at least, where there is enough to do
COPIED = 96  # terms from which operands are copied
FEW = 1 << 17  # multiplications of a chunk, at least


@dataclass(frozen=True, slots=True)
class Product:
    """``c[i, j] = bias[j] + sum_t a[i, t] b[t, j]``: where the operands begin, and their strides."""

    m: int
    n: int
    k: int
    a: tuple[int, int, int]  # offset, rows, terms
    b: tuple[int, int, int]  # offset, terms, columns
    c: tuple[int, int, int]  # offset, rows, columns
    bias: tuple[int, int] | None  # offset, columns
    batch: tuple[tuple[int, int, int, int], ...] = ()  # how many, and their strides in a, b and c

    def transposed(self) -> Product:
        a, b, c = ((o, s, r) for o, r, s in (self.a, self.b, self.c))
        return Product(self.n, self.m, self.k, b, a, c, None, tuple([(n, y, x, z) for n, x, y, z in self.batch]))


@dataclass(frozen=True, slots=True)
class Operands:
    """A product, and whose memory it is of."""

    product: Product
    a: Read
    b: Read
    out: Var
    bias: Read | None


def operands(memory: Memory, call: Call) -> Operands:
    """What a call of ``linear``, ``matmul`` or ``matmul_tn`` multiplies."""
    x, y, *rest = call.args
    bias = rest[0] if rest else None
    out = call.outs[0]
    if not memory.is_root(out):
        raise Unknown("a result that is a view")
    a, b, c = list(memory.strides(x)), list(memory.strides(y)), list(strides_of(out.spec))
    shape_a, shape_b = list(x.spec.shape), list(y.spec.shape)
    if call.op == "matmul_tn":
        a, shape_a = a[::-1], shape_a[::-1]
    if call.op == "linear":
        if len(shape_b) == 1:
            raise Unknown("a weight of one dimension")
        b, shape_b = b[::-1], shape_b[::-1]
    if len(shape_a) == 1:
        a, shape_a, c = [0, *a], [1, *shape_a], [*c[:-1], 0, *c[-1:]] if len(shape_b) > 1 else [0, *c]
    if len(shape_b) == 1:
        b, shape_b, c = [*b, 0], [*shape_b, 1], [*c, 0]
    (m, k), n = shape_a[-2:], shape_b[-1]
    batch = _batch(shape_a[:-2], a[:-2], shape_b[:-2], b[:-2], c[:-2])
    first, second = memory.read(x, ()), memory.read(y, ())
    third = (
        None
        if bias is None
        else memory.read(bias, [0 if n == 1 else s for n, s in zip(bias.spec.shape, memory.strides(bias), strict=True)])
    )
    row = (first.offset, a[-2], a[-1])
    if batch and not b[:-2] and len(batch) == 1 and batch[0][1] == m * a[-2] and batch[0][3] == m * c[-2]:
        m, batch = m * batch[0][0], []  # many rows
    product = Product(
        m, n, k, row, (second.offset, b[-2], b[-1]), (0, c[-2], c[-1]),
        None if third is None else (third.offset, third.strides[0] if third.strides else 0), tuple(batch),
    )  # fmt: skip
    return Operands(product, first, second, out, third)


def _batch(
    shape_a: Sequence[int], a: Sequence[int], shape_b: Sequence[int], b: Sequence[int], c: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """Axes of matrices that are multiplied one by one, neighbours joined where that can be."""
    ndim = max(len(shape_a), len(shape_b))
    out: list[tuple[int, int, int, int]] = []
    for i in range(-ndim, 0):
        n_a, s_a = (shape_a[i], a[i]) if -i <= len(a) else (1, 0)
        n_b, s_b = (shape_b[i], b[i]) if -i <= len(b) else (1, 0)
        n = max(n_a, n_b) if min(n_a, n_b) else 0
        new = (n, s_a if n_a != 1 else 0, s_b if n_b != 1 else 0, c[i])
        if n == 1:
            continue
        if out and all([old == s * n for old, s in zip(out[-1][1:], new[1:], strict=True)]):
            new = (out.pop()[0] * n, *new[1:])
        out.append(new)
    return out


# ---- as sums, element by element


def as_part(memory: Memory, call: Call) -> Part:
    """A product as a total: of other dtypes, of vectors."""
    given = operands(memory, call)
    p = given.product
    shape = [*[n for n, *_ in p.batch], p.m, p.n, p.k]
    zeros = [0] * len(p.batch)
    made = Builder(memory, call, shape, (len(shape) - 1,))

    def read(old: Read, strides: Sequence[int]) -> Any:
        made.reads.append(Read(old.root, old.dtype, old.offset, tuple(strides)))
        return _last_read(made, old)

    wide = (
        F64 if call.outs[0].spec.dtype.kind == "f" or call.outs[0].spec.dtype.itemsize == 2 else call.outs[0].spec.dtype
    )
    x = read(given.a, [*[s for _, s, _, _ in p.batch], p.a[1], 0, p.a[2]]).astype(wide)
    y = read(given.b, [*[s for _, _, s, _ in p.batch], 0, p.b[2], p.b[1]]).astype(wide)
    value = total("add", x * y)
    if given.bias is not None:
        value = value + read(given.bias, [*zeros, 0, p.bias[1] if p.bias else 0, 0]).astype(wide)
    made.give(given.out, value, [*[s for *_, s in p.batch], p.c[1], p.c[2], 0])
    return made.made()


def _last_read(made: Builder, read: Read) -> Any:
    return Symbol(Expression("x", (len(made.reads) - 1,), read.dtype))


# ---- as kernels


def packed(memory: Memory, call: Call, given: Operands) -> tuple[Part, Operands]:
    """The copy of the second matrix whose rows lie beside each other, and the product with that."""
    p = given.product
    batch = [(n, s_b) for n, _, s_b, _ in p.batch if s_b]
    shape = (*[n for n, _ in batch], p.k, p.n)
    var = Var(Spec(shape, given.b.dtype))
    made = Builder(memory, call, shape)
    made.reads.append(Read(given.b.root, given.b.dtype, given.b.offset, (*[s for _, s in batch], p.b[1], p.b[2])))
    made.give(var, _last_read(made, given.b))
    own = iter(contiguous_strides(shape))
    new = tuple([(n, s_a, next(own) if s_b else 0, s_c) for n, s_a, s_b, s_c in p.batch])
    product = Product(p.m, p.n, p.k, p.a, (0, p.n, 1), p.c, p.bias, new)
    return made.made(), Operands(product, given.a, Read(var, given.b.dtype, 0, ()), given.out, given.bias)


def is_turned_inside(given: Operands) -> bool:
    """Whether panels of the second matrix are turned around as they are copied: where they are copied once."""
    p = given.product
    return p.b[1] == 1 != p.b[2] and p.m <= HIGH and min(p.n, p.k) >= 8 and given.b.dtype == F32


def suits(given: Operands) -> bool:
    p = given.product
    kinds = {given.a.dtype, given.b.dtype, given.out.spec.dtype}
    fits = p.c[2] == 1 and (p.bias is None or p.bias[1] in (0, 1))
    fits &= p.m > 2 or not (p.b[1] == 1 != p.b[2])  # few rows times rows: totals, the matrix is read as it lies
    return kinds == {F32} and fits and p.n >= 4 and p.k >= 2 and p.m > 0


def turned(given: Operands, out: Var, name: Callable[[str], str]) -> Stage | None:
    """The kernel of that copy where the columns of the second matrix lie beside each other; None where they do not."""
    p = given.product
    if p.b[1] != 1 or min(p.n, p.k) < 8 or given.b.dtype != F32:
        return None
    batch = [(n, s_b) for n, _, s_b, _ in p.batch if s_b]
    own = contiguous_strides(out.spec.shape)
    sizes = tuple([(n, s, b) for (n, s), b in zip(batch, own, strict=False)])
    own_name = name(f"transposed {p.n} {p.k} {p.b} {sizes}")
    return Stage(transposes.kernel(own_name, p.n, p.k, p.b[0], p.b[2], sizes), (given.b.root, out))


class Plan:
    """Tiles and chunks of a product, for vectors of so many lanes."""

    def __init__(self, p: Product, lanes: int) -> None:
        many = lanes != 8  # registers: AVX-512 and NEON have 32, AVX2 16
        vectors = min(3 if many else 2, -(-p.n // lanes))
        self.rows = min(p.m, {1: 16, 2: 12, 3: 8}[vectors] if many else {1: 8, 2: 6}[vectors])
        self.width = vectors * lanes
        self.vectors = vectors
        least = max(-(-FEW // max(p.n * p.k, 1)), HIGH)  # rows of a block
        self.blocks = max(p.m // least, 1)
        self.high = _multiple(-(-p.m // self.blocks), self.rows, p.m)
        self.blocks = -(-p.m // self.high)
        self.count = math.prod([n for n, *_ in p.batch])
        panels = -(-p.n // self.width)
        work = self.high * self.width * p.k  # of a panel
        self.columns = min(-(-UNITS // (self.blocks * max(self.count, 1))), max(panels * work // FEW, 1), panels)
        self.wide = _multiple(-(-p.n // self.columns), self.width, p.n)
        self.columns = -(-p.n // self.wide)
        self.units = self.blocks * self.count * self.columns
        # rows of the first matrix that lie in columns, and panels of the second, are copied when several tiles read them
        self.copies_a = p.a[1] == 1 and p.a[2] > 1 and p.k >= COPIED and self.rows < self.high <= 2 * HIGH
        self.across = p.b[2] != 1  # columns of the second lie beside each other: its panels are turned around
        self.copies_b = self.across or (p.k >= COPIED and self.high >= 4 * self.rows and p.n > self.width)
        self.apart = self.rows * TERMS + 16  # copied tiles begin in different sets of the cache
        self.each = max(1, min(self.units, FEW // max(self.high * self.wide * p.k, 1)))
        self.chunks = max(1, -(-self.units // self.each))


def _multiple(size: int, step: int, most: int) -> int:
    return min(-(-size // step) * step, most)


@functools.cache
def kernel(name: str, p: Product, lanes: int) -> Kernel:
    """Of the operands a, b, c, and the bias if there is one."""
    plan = Plan(p, lanes)
    return Kernel(name, code(name, p, plan, lanes), plan.chunks, frozenset([2]), python=oracle(p, plan))


def code(name: str, p: Product, plan: Plan, lanes: int) -> str:
    out = _Code(lanes)
    bases = [out.put(f"load ptr, ptr {out.at('%addresses', str(i), 'ptr')}") for i in range(3 + (p.bias is not None))]
    out.plan = plan
    if plan.copies_a:
        tiles = -(-plan.high // plan.rows)
        out.lines.append(f"  %tiles = alloca [{tiles * plan.apart} x float], align 64")
    if plan.copies_b:
        out.lines.append(f"  %panel = alloca [{TERMS * plan.width} x float], align 64")
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
        out.a, out.b, out.c = (out.at(base, o) for base, o in zip(bases, offsets, strict=False))
        out.bias = out.at(bases[3], str(p.bias[0])) if p.bias else ""
        first = out.times(block, str(plan.high)), out.times(column, str(plan.wide))
        last = (
            out.least(out.add(first[0], str(plan.high)), str(p.m)),
            out.least(out.add(first[1], str(plan.wide)), str(p.n)),
        )
        blocks = -(-p.k // TERMS)
        with out.loop("0", str(blocks), "1") as terms:
            begin = out.times(terms.index, str(TERMS))
            out.terms = begin, out.least(out.add(begin, str(TERMS)), str(p.k))
            out.fresh = out.put(f"icmp eq i64 {terms.index}, 0") if blocks > 1 else ""
            out.first = first[0]
            if plan.copies_a:
                out.copy_rows(p, first[0], last[0])
            for columns, at in _pieces(p.n, plan.width):
                with out.loop(first[1] if at < 0 else str(at), last[1], str(columns)) as panel:
                    if plan.copies_b:
                        out.copy_panel(p, columns, panel.index)
                    for rows, top in _pieces(p.m, plan.rows):
                        with out.loop(first[0] if top < 0 else str(top), last[0], str(rows)) as tile:
                            out.tile(p, rows, columns, tile.index, panel.index)
    body = "\n".join(out.lines)
    head = f"define void @{name}(ptr %addresses, i64 %chunk) #0 {{"
    squares = transposes.square_of(lanes) if plan.across else ""
    return f"{squares}\n{declarations(lanes)}\n{head}\nentry:\n{body}\n  ret void\n}}\n{loops.attributes()}"


def _pieces(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Whole steps, from -1, which is the beginning of the block; and what is left, at the end."""
    if size >= step:
        yield step, -1
    if size % step:
        yield size % step, size - size % step


class _Code(Code):
    a = b = c = bias = fresh = ""
    terms = "", ""
    first = "0"
    plan: Plan

    def copy_rows(self, p: Product, first: str, last: str) -> None:
        """The rows of the block, term by term: those of a tile beside each other."""
        with self.loop(*self.terms, "1") as term:
            line = self.at(self.a, self.times(term.index, str(p.a[2])))
            below = self.put(f"sub i64 {term.index}, {self.terms[0]}")
            for rows, top in _pieces(p.m, self.plan.rows):
                with self.loop(first if top < 0 else str(top), last, str(rows)) as tile:
                    values = self.put(f"load <{rows} x float>, ptr {self.at(line, tile.index)}, align 4")
                    target = self.at(self._tile(tile.index), self.times(below, str(rows)))
                    self.lines.append(f"  store <{rows} x float> {values}, ptr {target}, align 4")

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
            below = self.put(f"sub i64 {term.index}, {self.terms[0]}")
            target = self.at("%panel", self.times(below, str(self.plan.width)))
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
                end = self.at("%panel", self.add(self.times(below, str(width)), str(v * lanes)))
                high = str(min(lanes, columns - v * lanes))
                self.invoke(f"transpose{lanes}", [begin, end], [step, high, wide, str(width)])

    def tile(self, p: Product, rows: int, columns: int, row: str, column: str) -> None:
        """The terms of one block, for so many rows and columns."""
        lanes = self.lanes
        vectors = -(-columns // lanes)
        lines = [self.at(self.a, self.times(self.add(row, str(r)), str(p.a[1]))) for r in range(rows)]
        if self.plan.copies_a:
            tile = self._tile(row)
            lines = [self.at(tile, str(r)) for r in range(rows)]
        panel = self.at(self.b, column)
        zeros = [self.constant(0.0)] * (rows * vectors)
        with self.loop(*self.terms, "1", zeros) as term:
            below = self.put(f"sub i64 {term.index}, {self.terms[0]}")
            at = self.times(below, str(rows)) if self.plan.copies_a else self.times(term.index, str(p.a[2]))
            if self.plan.copies_b:
                line = self.at("%panel", self.times(below, str(self.plan.width)))
                others = [self.load(line, str(v * lanes)) for v in range(vectors)]
            else:
                line = self.at(panel, self.times(term.index, str(p.b[1])))
                others = [self.some(line, v, columns) for v in range(vectors)]
            term.next = []
            for r in range(rows):
                x = self.spread(lines[r], at)
                sums = term.values[r * vectors : (r + 1) * vectors]
                term.next += [self.fma(x, y, s) for y, s in zip(others, sums, strict=True)]
        bias = [self._bias(p, column, v, columns) for v in range(vectors)]
        for r in range(rows):
            target = self.at(self.at(self.c, self.times(self.add(row, str(r)), str(p.c[1]))), column)
            for v in range(vectors):
                self._put(term.values[r * vectors + v], bias[v], target, v, columns)

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
        at = self.at(target, str(v * self.lanes))
        left = columns - v * self.lanes
        if left >= self.lanes:
            self.lines.append(f"  store {self.vector} {first}, ptr {at}, align 4")
        else:
            mask = self._mask(left)
            self.lines.append(
                f"  call void @llvm.masked.store.v{self.lanes}f32.p0({self.vector} {first}, ptr {at}, i32 4, {mask})"
            )

    def some(self, base: str, v: int, columns: int) -> str:
        """Vector number v of so many columns; zeros behind them."""
        left = columns - v * self.lanes
        at = str(v * self.lanes)
        if left >= self.lanes:
            return self.load(base, at)
        return self.put(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0(ptr {self.at(base, at)}, i32 4, {self._mask(left)}, "
            f"{self.vector} zeroinitializer)"
        )

    def _mask(self, left: int) -> str:
        bits = ", ".join(["i1 true" if i < left else "i1 false" for i in range(self.lanes)])
        return f"<{self.lanes} x i1> <{bits}>"


def oracle(p: Product, plan: Plan) -> Callable[[list[Any], int], None]:
    """The same on flat arrays, a chunk at a time."""

    def run(arrays: list[Any], chunk: int) -> None:
        def seen(i: int, spec: tuple[int, int, int], shape: tuple[int, int], strides: Sequence[int]) -> Any:
            counts = [n for n, *_ in p.batch]
            size = arrays[i].itemsize
            return np.lib.stride_tricks.as_strided(
                arrays[i][spec[0] :], (*counts, *shape), [s * size for s in (*strides, *spec[1:])]
            )

        a = seen(0, p.a, (p.m, p.k), [s for _, s, _, _ in p.batch])
        b = seen(1, p.b, (p.k, p.n), [s for _, _, s, _ in p.batch])
        c = seen(2, p.c, (p.m, p.n), [s for *_, s in p.batch])
        bias: Any = 0.0
        if p.bias is not None:
            bias = np.lib.stride_tricks.as_strided(arrays[3][p.bias[0] :], (p.n,), (p.bias[1] * arrays[3].itemsize,))
        for unit in range(chunk * plan.each, min((chunk + 1) * plan.each, plan.units)):
            rest, column = divmod(unit, plan.columns)
            matrix, block = divmod(rest, plan.blocks)
            where = np.unravel_index(matrix, [n for n, *_ in p.batch]) if p.batch else ()
            rows = slice(block * plan.high, (block + 1) * plan.high)
            columns = slice(column * plan.wide, (column + 1) * plan.wide)
            right = np.broadcast_to(bias, (p.n,))[columns]
            c[where][rows, columns] = a[where][rows] @ b[where][:, columns] + right

    return run
