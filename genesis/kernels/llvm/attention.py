"""LLVM code for attention of float32 matrices, and for its gradients, a block of rows at a time.

The weights of a block stay in the cache; what is kept of them for the gradients are two numbers of each row, its maximum
and the inverse of its sum, of which they are computed again (Dao and others, FlashAttention, 2022). Of a causal block
the columns beyond its last row are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.kernels.llvm import products
from genesis.kernels.llvm.nests import Code, declarations

ROWS = 32  # of a block
_SIZES = ("first", "last", "rows", "columns", "depth", "width", "line", "tall", "causal")
_STRIDES = tuple(f"{x}_{s}" for x in "qkv" for s in ("row", "step"))
FORWARD = (
    ("q", "k", "v", "factor", "offsets", "scratch", "out", "stats"),
    (*_SIZES, *_STRIDES, "out_row", "out_step"),  # the last is 1
)
BACKWARD = (
    ("q", "k", "v", "factor", "offsets", "scratch", "stats", "g", "gq", "gk", "gv"),
    (*_SIZES, *_STRIDES, "g_row", "g_step"),
)


def module(lanes: int, rows: int, columns: int) -> str:
    """The functions ``forward`` and ``backward``, with tiles of products of so many rows and vectors."""
    parts = [products.pack(lanes, columns, private=True), products.multiply(lanes, rows, columns, private=True)]
    panel = lanes * columns
    return "\n".join([declarations(lanes), *parts, forward(lanes, rows, panel), backward(lanes, rows, panel)])


class _Heads(Code):
    """The matrices of one head after the other, and the calls of products with them."""

    def __init__(self, lanes: int, rows: int, panel: int) -> None:
        super().__init__(lanes)
        self.tile, self.panel = rows, panel
        self.spare = "%scratch"
        self.free = self.at("%scratch", str(rows * panel))

    def take(self, size: str) -> str:
        """Memory of so many numbers."""
        taken, self.free = self.free, self.at(self.free, size)
        return taken

    def packed(self, high: str, wide: str) -> str:
        """Memory for a packed matrix of such a size."""
        panels = self.put(f"sdiv i64 {self.add(wide, str(self.panel - 1))}, {self.panel}")
        return self.take(self.times(high, self.times(panels, str(self.panel))))

    def of_head(self, name: str, head: str, table: int, index: int) -> str:
        offset = self.number("%offsets", self.add(self.times(head, str(table)), str(index)))
        return self.at(f"%{name}", offset)

    def pack(self, b: str, out: str, k: str, n: str, step: str, step_n: str) -> None:
        self.invoke("pack", [b, out], [n, k, step, step_n])

    def multiply(
        self, a: str, b: str, c: str, sizes: tuple[str, str, str], high: str, strides: tuple[str, str, str], more: str
    ) -> None:
        """``c = a b``, or more of it, of m, n and k numbers; strides of rows and columns of a, of rows of c."""
        tiles = self.put(f"sdiv i64 {self.add(sizes[0], str(self.tile - 1))}, {self.tile}")
        self.invoke(
            "multiply", [a, b, c, self.spare, "null"], ["0", tiles, *sizes, high, str(self.panel), *strides, more]
        )

    def seen(self, begin: str, count: str) -> str:
        """How many columns the rows of a block see together."""
        causal = self.put("icmp ne i64 %causal, 0")
        return self.put(f"select i1 {causal}, i64 {self.least(self.add(begin, count), '%columns')}, i64 %columns")

    def scaled(self, base: str, column: str, bound: str, factor: str) -> str:
        """A vector of scores times the factor; those from ``bound`` on are -inf."""
        x = self.mul(self.load(base, column), factor)
        left = self.put(f"trunc i64 {self.put(f'sub i64 {bound}, {column}')} to i32")
        first = self.put(f"insertelement {self.numbers} poison, i32 {left}, i32 0")
        left = self.put(f"shufflevector {self.numbers} {first}, {self.numbers} poison, {self.numbers} zeroinitializer")
        each = f"<{', '.join([f'i32 {i}' for i in range(self.lanes)])}>"
        inside = self.put(f"icmp slt {self.numbers} {each}, {left}")
        return self.put(
            f"select <{self.lanes} x i1> {inside}, {self.vector} {x}, {self.vector} {self.constant(-float('inf'))}"
        )

    def clear(self, lines: Sequence[str], first: str, end: str) -> None:
        """Zeros behind the columns that a row sees, as far as others of the block see some."""
        with self.loop(first, end, str(self.lanes)) as at:
            for line in lines:
                self.store(self.constant(0.0), line, at.index)

    def power(self, x: str) -> str:
        """$e^x$, and 0 where it is next to nothing."""
        limit, zero = self.constant(-87.0), self.constant(0.0)
        return self.where("olt", x, limit, zero, self.exp(x))

    def reduced(self, what: str, x: str) -> str:
        start = "float -0.0, " if what == "fadd" else ""
        fast = "reassoc " if what == "fadd" else ""
        return self.put(f"call {fast}float @llvm.vector.reduce.{what}.v{self.lanes}f32({start}{self.vector} {x})")

    def all_of(self, x: str) -> str:
        """One number in all lanes."""
        first = self.put(f"insertelement {self.vector} poison, float {x}, i32 0")
        return self.put(
            f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def keep(self, x: str, base: str, index: str) -> None:
        self.lines.append(f"  store float {x}, ptr {self.at(base, index)}, align 4")


def forward(lanes: int, rows: int, panel: int) -> str:
    """The function ``forward``: results and statistics of the heads from ``first`` to ``last``."""
    code = _Heads(lanes, rows, panel)
    keys, values = code.packed("%depth", "%columns"), code.packed("%columns", "%width")
    scores = code.take(code.times("%line", str(ROWS)))
    factor = code.spread("%factor", "0")
    with code.loop("%first", "%last", "1") as head:
        q, k, v = (code.of_head(name, head.index, 4, i) for i, name in enumerate("qkv"))
        out = code.of_head("out", head.index, 4, 3)
        before = code.times(head.index, "%rows")
        code.pack(k, keys, "%depth", "%columns", "%k_step", "%k_row")
        code.pack(v, values, "%columns", "%width", "%v_row", "%v_step")
        with code.loop("0", "%tall", str(ROWS)) as block:
            count = code.least(code.put(f"sub i64 %rows, {block.index}"), str(ROWS))
            seen = code.seen(block.index, count)
            a = code.at(q, code.times(block.index, "%q_row"))
            code.multiply(a, keys, scores, (count, seen, "%depth"), "%depth", ("%q_row", "%q_step", "%line"), "0")
            with code.loop("0", count, "1") as row:
                line = code.at(scores, code.times(row.index, "%line"))
                bound = code.seen(code.add(block.index, row.index), "1")
                end, own = (code.add(count, str(lanes - 1)) for count in (seen, bound))
                with code.loop("0", own, str(lanes), [code.constant(-float("inf"))]) as at:
                    x = code.scaled(line, at.index, bound, factor)
                    code.store(x, line, at.index)
                    at.next = [code.call("maxnum", at.values[0], x)]
                most = code.reduced("fmax", at.values[0])
                every = code.all_of(most)
                with code.loop("0", own, str(lanes), [code.constant(0.0)]) as at:
                    x = code.power(code.minus(code.load(line, at.index), every))
                    code.store(x, line, at.index)
                    at.next = [code.plus(at.values[0], x)]
                inverse = code.put(f"fdiv float 1.0, {code.reduced('fadd', at.values[0])}")
                share = code.all_of(inverse)
                with code.loop("0", own, str(lanes)) as at:
                    code.store(code.mul(code.load(line, at.index), share), line, at.index)
                code.clear([line], at.index, end)
                index = code.times(code.add(code.add(before, block.index), row.index), "2")
                code.keep(most, "%stats", index)
                code.keep(inverse, "%stats", code.add(index, "1"))
            c = code.at(out, code.times(block.index, "%out_row"))
            code.multiply(scores, values, c, (count, "%width", seen), "%columns", ("%line", "1", "%out_row"), "0")
    return code.definition("forward", *FORWARD)


def backward(lanes: int, rows: int, panel: int) -> str:
    """The function ``backward``: gradients of the heads from ``first`` to ``last``; those of k and v are added."""
    code = _Heads(lanes, rows, panel)
    keys, lines = code.packed("%depth", "%columns"), code.packed("%columns", "%depth")
    values = code.packed("%width", "%columns")
    some_q, some_g = code.packed(str(ROWS), "%depth"), code.packed(str(ROWS), "%width")
    weights, slopes = (code.take(code.times("%line", str(ROWS))) for _ in range(2))
    factor = code.spread("%factor", "0")
    with code.loop("%first", "%last", "1") as head:
        q, k, v, g = (code.of_head(name, head.index, 4, i) for i, name in enumerate("qkvg"))
        before = code.times(head.index, "%rows")
        from_key = code.times(head.index, "%columns")
        gk, gv = (code.at(f"%{x}", code.times(from_key, size)) for x, size in (("gk", "%depth"), ("gv", "%width")))
        code.pack(k, keys, "%depth", "%columns", "%k_step", "%k_row")
        code.pack(k, lines, "%columns", "%depth", "%k_row", "%k_step")
        code.pack(v, values, "%width", "%columns", "%v_step", "%v_row")
        with code.loop("0", "%tall", str(ROWS)) as block:
            count = code.least(code.put(f"sub i64 %rows, {block.index}"), str(ROWS))
            seen = code.seen(block.index, count)
            of_q = code.at(q, code.times(block.index, "%q_row"))
            of_g = code.at(g, code.times(block.index, "%g_row"))
            code.multiply(of_q, keys, weights, (count, seen, "%depth"), "%depth", ("%q_row", "%q_step", "%line"), "0")
            code.multiply(of_g, values, slopes, (count, seen, "%width"), "%width", ("%g_row", "%g_step", "%line"), "0")
            with code.loop("0", count, "1") as row:
                at_row = code.times(row.index, "%line")
                weight, slope = code.at(weights, at_row), code.at(slopes, at_row)
                index = code.times(code.add(code.add(before, block.index), row.index), "2")
                most, share = code.spread("%stats", index), code.spread("%stats", code.add(index, "1"))
                bound = code.seen(code.add(block.index, row.index), "1")
                end, own = (code.add(count, str(lanes - 1)) for count in (seen, bound))
                with code.loop("0", own, str(lanes), [code.constant(0.0)]) as at:
                    x = code.minus(code.scaled(weight, at.index, bound, factor), most)
                    p = code.mul(code.power(x), share)
                    code.store(p, weight, at.index)
                    inside = code.where("une", p, code.constant(0.0), code.load(slope, at.index), code.constant(0.0))
                    code.store(inside, slope, at.index)
                    at.next = [code.fma(p, inside, at.values[0])]
                mean = code.all_of(code.reduced("fadd", at.values[0]))
                with code.loop("0", own, str(lanes)) as at:
                    p, change = code.load(weight, at.index), code.minus(code.load(slope, at.index), mean)
                    code.store(code.mul(code.mul(p, change), factor), slope, at.index)
                code.clear([weight, slope], at.index, end)
            c = code.at("%gq", code.times(code.add(before, block.index), "%depth"))
            code.multiply(slopes, lines, c, (count, "%depth", seen), "%columns", ("%line", "1", "%depth"), "0")
            code.pack(of_g, some_g, count, "%width", "%g_row", "%g_step")
            code.multiply(weights, some_g, gv, (seen, "%width", count), count, ("1", "%line", "%width"), "1")
            code.pack(of_q, some_q, count, "%depth", "%q_row", "%q_step")
            code.multiply(slopes, some_q, gk, (seen, "%depth", count), count, ("1", "%line", "%depth"), "1")
    return code.definition("backward", *BACKWARD)


def scratch(columns: int, depth: int, width: int, rows: int, panel: int) -> int:
    """How many numbers of memory both functions need at most."""
    wide = lambda n: -(-n // panel) * panel  # noqa: E731
    packed = depth * wide(columns) + columns * wide(depth) + max(width * wide(columns), columns * wide(width))
    return rows * panel + packed + ROWS * (wide(depth) + wide(width) + 2 * wide(columns))
