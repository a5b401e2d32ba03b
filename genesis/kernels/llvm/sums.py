"""LLVM code for sums and maxima of float32 images by tables: along its columns, along its rows, or one after the other.

A table of a dimension says for each element of the result which elements it is made of, its *taps*, and by how much of
each: positions (taps, m) as int32, -1 where there is none, and weights (taps, m) as float32, 1 or -1 where there is none.
(A sum begins with -0, which changes no number, so elements that are only moved keep the sign of a zero; -1 times it is
the sum of nothing.) Rows have as many taps as ``row_counts`` says. Of columns a vector is a block: ``column_counts`` has for
each block how many of its first taps are elements beside each other, and how many taps it has.

What an image needs besides its memory is a list of integers, `PLAN`.
"""

from __future__ import annotations

from collections.abc import Callable

from genesis.kernels.llvm.nests import Code

POINTERS, SIZES = ("x", "between", "out", "plan"), ("first", "last")
PLAN = ("high", "wide", "rows", "columns", "blocks", "count", "row_table", "column_table", "row_weights", "column_weights",
        "row_counts", "column_counts")  # fmt: skip


def images(lanes: int, rows: bool, columns: bool, sums: bool, divided: bool) -> str:
    """The function ``images``: of images from ``first`` to ``last`` what tables make of their columns and then of their
    rows, or of one of them.

    Args:
        lanes: at most as many as a row of the result has elements
        sums: by weights, or else the largest; nan if one is
        divided: by ``count``, in the end
    """
    code = _Taps(lanes, sums)
    for name in PLAN:
        code.lines.append(f"  %{name} = load i64, ptr {code.at('%plan', str(PLAN.index(name)), 'i64')}")
    for name in PLAN[6:]:
        code.lines.append(f"  %{name}.at = inttoptr i64 %{name} to ptr")
    before, after = code.times("%high", "%wide"), code.times("%rows", "%columns")
    with code.loop("%first", "%last", "1") as image:
        x, out = code.at("%x", code.times(image.index, before)), code.at("%out", code.times(image.index, after))
        if columns:
            with code.loop("0", "%high", "1") as row:
                base = code.at(x, code.times(row.index, "%wide"))
                to = code.times(row.index, "%columns")
                code.along_columns(base, "%between" if rows else out, to, divided and not rows)
        if rows:
            with code.loop("0", "%rows", "1") as row:
                code.along_rows("%between" if columns else x, out, row.index, divided)
    return code.function("images", POINTERS, SIZES)


class _Taps(Code):
    def __init__(self, lanes: int, sums: bool) -> None:
        super().__init__(lanes)
        self.sums, self.none = sums, self.constant(-0.0 if sums else -float("inf"))

    def along_columns(self, row: str, out: str, to: str, divided: bool) -> None:
        """A row of the result, of elements of this row."""
        with self.loop("0", "%blocks", "1") as block:
            j, counts = self.start(block.index), self.times(block.index, "2")
            beside, many = (self.integer("%column_counts.at", self.add(counts, str(i))) for i in (0, 1))
            with self.loop("0", beside, "1", [self.none]) as tap:
                at = self.add(self.times(tap.index, "%columns"), j)
                value = self.load(row, self.integer("%column_table.at", at))
                tap.next = [self.joined(tap.values[0], value, lambda: self.load("%column_weights.at", at))]
            with self.loop(beside, many, "1", tap.values) as tap:
                at = self.add(self.times(tap.index, "%columns"), j)
                value = self.elements(row, at)
                tap.next = [self.joined(tap.values[0], value, lambda: self.load("%column_weights.at", at))]
            self.store(self.result(tap.values[0], divided), out, self.add(to, j))

    def elements(self, row: str, at: str) -> str:
        """Those that the table names from here on."""
        bits = f"<{self.lanes} x i1>"
        index = self.put(f"load {self.numbers}, ptr {self.at('%column_table.at', at, 'i32')}, align 4")
        there = self.put(f"icmp sge {self.numbers} {index}, zeroinitializer")
        index = self.put(f"select {bits} {there}, {self.numbers} {index}, {self.numbers} zeroinitializer")
        addresses = self.put(f"getelementptr float, ptr {row}, {self.numbers} {index}")
        given = f"<{self.lanes} x ptr> {addresses}, i32 4, {self.mask(self.lanes)}"
        value = self.put(
            f"call {self.vector} @llvm.masked.gather.v{self.lanes}f32.v{self.lanes}p0({given}, {self.vector} poison)"
        )
        return self.put(f"select {bits} {there}, {self.vector} {value}, {self.vector} {self.none}")

    def along_rows(self, image: str, out: str, row: str, divided: bool) -> None:
        """A row of the result, of rows of an image."""
        count = self.integer("%row_counts.at", row)
        with self.loop("0", "%blocks", "1") as block:
            j = self.start(block.index)
            with self.loop("0", count, "1", [self.none]) as tap:
                at = self.add(self.times(tap.index, "%rows"), row)
                index = self.integer("%row_table.at", at)
                there = self.put(f"icmp sge i64 {index}, 0")
                index = self.put(f"select i1 {there}, i64 {index}, i64 0")
                value = self.load(image, self.add(self.times(index, "%columns"), j))
                value = self.put(f"select i1 {there}, {self.vector} {value}, {self.vector} {self.none}")
                tap.next = [self.joined(tap.values[0], value, lambda: self.spread("%row_weights.at", at))]
            self.store(self.result(tap.values[0], divided), out, self.add(self.times(row, "%columns"), j))

    def start(self, block: str) -> str:
        """The first column of a block; the last one begins so that it ends with the row."""
        return self.least(self.times(block, str(self.lanes)), self.put(f"sub i64 %columns, {self.lanes}"))

    def integer(self, base: str, index: str) -> str:
        at = self.at(base, index, "i32")
        return self.put(f"sext i32 {self.put(f'load i32, ptr {at}, align 4')} to i64")

    def joined(self, before: str, value: str, weight: Callable[[], str]) -> str:
        if self.sums:
            return self.plus(before, self.mul(value, weight()))
        larger = self.put(f"fcmp ogt {self.vector} {value}, {before}")
        nan = self.put(f"fcmp uno {self.vector} {value}, {value}")
        now = self.put(f"or <{self.lanes} x i1> {larger}, {nan}")
        return self.put(f"select <{self.lanes} x i1> {now}, {self.vector} {value}, {self.vector} {before}")

    def result(self, total: str, divided: bool) -> str:
        if not divided:
            return total
        count = self.put("sitofp i64 %count to float")
        first = self.put(f"insertelement {self.vector} poison, float {count}, i32 0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.two("fdiv", total, self.put(f"shufflevector {self.vector} {first}, {self.vector} poison, {lanes}"))
