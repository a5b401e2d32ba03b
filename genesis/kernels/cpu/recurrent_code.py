"""LLVM code for the steps of a recurrent layer: products with the recurrent weights and what follows element by element
(`recurrent_cells`), of a few rows at a time, whose sums are still near.

A step is a phase of native code, and a chunk of it some sequences and some hidden units (`genesis.kernels.native`): no
unit of a step needs another one's result, all need those of the step before.

A row of a step is one sequence. Hidden units are in groups of as many as a vector has lanes; rows of arrays are padded
with zeros to whole groups. ``offsets[s]`` is the first row of step s in the arrays of all steps, ``counts[s]`` how many
sequences take part in it: the first ones.

What is kept for the gradients is a *record* for each row and group, its vectors next to each other: the gates, which
are the products of the inputs before, and what `KEPT` says. Of arrays of their own, one vector here and one there, each
had to be waited for: they are more than the caches hold, and the processor sees no order in which to fetch them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from genesis.kernels.cpu import recurrent_cells as cells
from genesis.kernels.cpu.recurrent_cells import GATES, KEPT
from genesis.kernels.llvm.nests import Code, declarations

# rows that are computed at a time, with 32 registers and with 16: as many sums as there are registers for, and at least as
# many as a product takes cycles to be there, of which one or two begin in each
ROWS = {"lstm": (4, 3), "gru": (4, 4), "tanh": (8, 8), "relu": (8, 8)}
SUMS = 16, 12  # vectors of them, on the way back


@dataclass(frozen=True)
class Target:
    """What registers a processor has: lanes of float32 in a vector, and whether there are 32 of them."""

    lanes: int
    many: bool

    def rows(self, kind: str) -> int:
        return ROWS[kind][not self.many]

    def rows_back(self, columns: int) -> int:
        """Where so many groups of hidden units are computed at a time."""
        return SUMS[not self.many] // columns

    def columns_back(self, groups: int, batch: int) -> int:
        """How many groups of hidden units are computed at a time on the way back: many where rows are few, and with few
        registers, where tiles of two would have rows left.
        """
        wanted = 2 if self.many and batch >= 8 else 4
        return next(n for n in (wanted, 2, 1) if groups % n == 0)


def blocks_of_rows(code: Code, first: str, last: str, rows: int, body: Callable[[str, int], None]) -> None:
    """``body(row, count)`` for ``rows`` rows at a time, then for half as many, down to one."""
    while True:
        with code.loop(first, last, str(rows)) as loop:
            body(loop.index, rows)
        if rows == 1:
            return
        first, rows = loop.index, (rows + 1) // 2


def products(
    code: Code, sums: Sequence[Sequence[str]], left: Sequence[tuple[str, str]], right: str, depth: str
) -> list[list[str]]:
    """Add rows times columns to ``sums``: of each row the array and the index of its first number; ``right`` has a
    vector for each column group, for each k. Of rows and columns the fewer are in registers, the others one by one.
    """
    rows, columns = len(sums), len(sums[0])
    with code.loop("0", depth, "1", [each for row in sums for each in row]) as loop:
        start = code.times(loop.index, str(columns * code.lanes))

        def number(i: int) -> str:
            base, at = left[i]
            return code.spread(base, code.add(at, loop.index))

        def vector(j: int) -> str:
            return code.load(right, code.add(start, str(j * code.lanes)))

        def add(i: int, j: int, x: str, y: str) -> None:
            totals[i * columns + j] = code.fma(x, y, totals[i * columns + j])

        totals = loop.next = list(loop.values)
        if columns <= rows:
            vectors = [vector(j) for j in range(columns)]
            for i in range(rows):
                x = number(i)
                for j, y in enumerate(vectors):
                    add(i, j, x, y)
        else:
            numbers = [number(i) for i in range(rows)]
            for j in range(columns):
                y = vector(j)
                for i, x in enumerate(numbers):
                    add(i, j, x, y)
    return [loop.values[i * columns : (i + 1) * columns] for i in range(rows)]


PACK = ("weight", "packed"), ("first", "last", "features", "width", "gates")


def pack(target: Target) -> str:
    """The function ``pack``: of some groups of hidden units, for each feature, the weights of all gates. Squares of as
    many numbers as there are lanes are turned in registers.
    """
    code = Code(target.lanes)
    step = code.times("%gates", str(code.lanes))
    with code.loop("%first", "%last", "1") as group, code.loop("0", "%gates", "1") as gate:
        first = code.add(code.times(gate.index, "%width"), code.times(group.index, str(code.lanes)))
        lines = [code.at("%weight", code.times(code.add(first, str(j)), "%features")) for j in range(code.lanes)]
        begin = code.add(
            code.times(code.times(group.index, "%features"), step), code.times(gate.index, str(code.lanes))
        )
        with code.loop("0", "%features", str(code.lanes)) as k:
            for i, numbers in enumerate(code.turned([code.load(line, k.index) for line in lines])):
                code.store(numbers, "%packed", code.add(begin, code.times(code.add(k.index, str(i)), step)))
        done = code.put(f"sub i64 %features, {code.put(f'srem i64 %features, {code.lanes}')}")
        with code.loop(done, "%features", "1") as k:
            numbers = "poison"
            for j, line in enumerate(lines):
                one = code.put(f"load float, ptr {code.at(line, k.index)}, align 4")
                numbers = code.put(f"insertelement {code.vector} {numbers}, float {one}, i32 {j}")
            code.store(numbers, "%packed", code.add(begin, code.times(k.index, step)))
    return code.function("pack", *PACK)


INPUTS = ("input", "packed", "kept"), ("first", "last", "features", "width")


def inputs(kind: str, target: Target, kept: bool) -> str:
    """The function ``inputs``: products of all rows of the input, which no step waits for."""
    code, gates = Code(target.lanes), GATES[kind]
    with code.loop("0", "%width", str(code.lanes)) as units:
        panel = code.at("%packed", code.times(code.times(units.index, "%features"), str(gates)))

        def block(first: str, count: int) -> None:
            rows = [code.add(first, str(i)) for i in range(count)]
            zeros = [[code.constant(0.0)] * gates for _ in rows]
            left = [("%input", code.times(r, "%features")) for r in rows]
            for r, sums in zip(rows, products(code, zeros, left, panel, "%features"), strict=True):
                for value, at in zip(sums, cells.record(code, cells.vectors(kind, kept), r, units.index), strict=False):
                    code.store(value, "%kept", at)

        blocks_of_rows(code, "%first", "%last", target.rows(kind), block)
    return code.function("inputs", *INPUTS)


def every_step(name: str) -> str:
    """The function ``all(ptr args, i64 chunk)``: one of a phase for one phase after the other, as many as the second word
    of the arguments says. Only where a chunk needs nothing of the others, which is where it has all hidden units.
    """
    return f"""
define void @all(ptr %args, i64 %chunk) {{
entry:
  %own = alloca [2 x i64], align 16
  %words = load i64, ptr %args
  store i64 %words, ptr %own
  %last = getelementptr i64, ptr %args, i64 1
  %count = load i64, ptr %last
  %number = getelementptr i64, ptr %own, i64 1
  br label %step
step:
  %phase = phi i64 [0, %entry], [%next, %step]
  store i64 %phase, ptr %number
  call void @{name}(ptr %own, i64 %chunk)
  %next = add i64 %phase, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %step, label %end
end:
  ret void
}}"""


POINTERS = {
    "lstm": ("kept", "packed", "bias", "states", "out", "before", "cell"),
    "gru": ("kept", "packed", "bias", "states", "out", "before"),
}
POINTERS["tanh"] = POINTERS["relu"] = POINTERS["gru"]
ORDER = ("offsets", "counts")
# width: the size, padded; in how many parts the sequences of a batch and the hidden units are, one of all for a chunk
SIZES = ("steps", "size", "width", "batch", "parts", "shares")


class _Step(Code):
    """The function ``name(ptr args, i64 chunk)`` of a phase. The arguments are the address of the words ``pointers`` and
    `SIZES`, and the number of the phase. A chunk has rows from ``%first`` to ``%last``, and units from ``%begin`` to
    ``%end``, so many as ``unit`` or a multiple of it.
    """

    def __init__(self, lanes: int, pointers: Sequence[str], unit: int) -> None:
        super().__init__(lanes)
        self.lines.append("  %words = load ptr, ptr %args")
        self.phase = self.number("%args", "1")
        for i, name in enumerate((*pointers, *ORDER, *SIZES)):
            kind = "i64" if name in SIZES else "ptr"
            self.lines.append(f"  %{name} = load {kind}, ptr {self.at('%words', str(i), 'i64')}")
        self.part = self.put("sdiv i64 %chunk, %shares")
        share = self.put(f"sub i64 %chunk, {self.times(self.part, '%shares')}")
        self.divide("%first", "%last", "%batch", self.part, "%parts", 1)
        self.divide("%begin", "%end", self.put(f"sdiv i64 %width, {unit}"), share, "%shares", unit)

    def divide(self, first: str, last: str, count: str, which: str, parts: str, unit: int) -> None:
        for name, number in ((first, which), (last, self.add(which, "1"))):
            share = self.put(f"sdiv i64 {self.times(count, number)}, {parts}")
            self.lines.append(f"  {name} = mul i64 {share}, {unit}")

    def rows(self, step: str) -> tuple[str, str]:
        """The first row of a step in the arrays of all, and how many of ours it has (the number of the last)."""
        return self.number("%offsets", step), self.least(self.number("%counts", step), "%last")

    def text(self, name: str) -> str:
        head = f"define void @{name}(ptr %args, i64 %chunk) {{\nentry:"
        return "\n".join([declarations(self.lanes), head, *self.lines, "  ret void\n}"])


def forward(kind: str, target: Target, kept: bool) -> str:
    """The function ``forward``: the array ``kept`` has the products of the inputs where the gates will be, if these are
    ``kept``; else nothing is written to it, nor to ``before``. Of the two ``states`` one is from before a step and one
    is for after it, in turn.
    """
    code, gates = _Step(target.lanes, POINTERS[kind], target.lanes), GATES[kind]
    code.lines.append(f"  %sums = alloca [{target.rows(kind) * gates * target.lanes} x float], align 64")
    offset, last = code.rows(code.phase)
    here, there = code.put(f"and i64 {code.phase}, 1"), code.put(f"and i64 {code.add(code.phase, '1')}, 1")
    for name, which in (("%hidden", here), ("%next", there)):
        start = code.times(code.times(which, "%batch"), "%width")
        code.lines.append(f"  {name} = getelementptr float, ptr %states, i64 {start}")
    with code.loop("%begin", "%end", str(code.lanes)) as units:
        panel = code.at("%packed", code.times(code.times(units.index, "%size"), str(gates)))

        def block(row: str, count: int) -> None:
            _forward_block(code, kind, kept, offset, units.index, panel, row, count)

        blocks_of_rows(code, "%first", last, target.rows(kind), block)
        rest = code.put(f"select i1 {code.put(f'icmp sgt i64 {last}, %first')}, i64 {last}, i64 %first")
        with code.loop(rest, "%last", "1") as row:  # these take no part in it
            at = code.add(code.times(row.index, "%width"), units.index)
            code.store(code.load("%hidden", at), "%next", at)
    return code.text("forward")


def _forward_block(code: Code, kind: str, kept: bool, offset: str, unit: str, panel: str, row: str, count: int) -> None:
    """Some rows of one step, for one group of hidden units: the products of all of them, then element by element in
    `cells.PARTS`, one row after the other. A part is short, so that the processor is at several rows at a time.
    """
    gates, rows = GATES[kind], [code.add(row, str(i)) for i in range(count)]
    bias = [cells.bias(code, unit, j + (kind == "gru" and j == 2)) for j in range(gates)]
    sums = products(code, [bias] * count, [("%hidden", code.times(r, "%width")) for r in rows], panel, "%size")
    for i, value in enumerate([value for line in sums for value in line]):
        code.store(value, "%sums", str(i * code.lanes))
    for part in cells.PARTS[kind]:
        with code.loop("0", str(count), "1") as one:
            part(cells.Row(code, kind, kept, offset, unit, row, one.index))


BACK = {
    "lstm": ("g", "kept", "packed", "gh", "ggates", "gc"),
    "gru": ("g", "kept", "packed", "gh", "ggates", "before"),
    "tanh": ("g", "kept", "packed", "gh", "ggates"),
}
BACK["relu"] = BACK["tanh"]


def backward(kind: str, target: Target, columns: int, summed: bool = False) -> str:
    """The function ``backward``: gradients of what went into the gates, from the last step to the first. The phase p has
    the products of the step before and what follows element by element of step p; there is one more than steps.

    ``gh`` and ``gc`` are the gradients of the states after the steps, and then before them. ``columns`` groups of hidden
    units are computed at a time. Where it is ``summed`` there is an array ``sums`` as well, for those of the biases: of
    each part of the sequences, and right where all of them have all steps.
    """
    pointers = *BACK[kind], *(["sums"] if summed else [])
    code, gates = _Step(target.lanes, pointers, target.lanes * columns), GATES[kind]
    parts = 4 if kind == "gru" else gates  # what is stored of each row: a GRU's last gate has two gradients
    line, depth = code.times("%width", str(parts)), code.times("%width", str(gates))
    with code.loop("0", code.least(code.phase, "1"), "1"):
        _backward_products(code, kind, columns, target.rows_back(columns), line, depth)
    left = code.put(f"sub i64 %steps, {code.phase}")
    with code.loop("0", code.least(left, "1"), "1"):
        offset, last = code.rows(code.phase)
        with code.loop("%first", last, "1") as row, code.loop("%begin", "%end", str(code.lanes)) as units:
            here = code.add(code.times(row.index, "%width"), units.index)
            _backward_unit(code, kind, here, code.add(row.index, offset), units.index, line)
        if summed:
            _add_to_sums(code, parts, offset, last, line)
    return code.text("backward")


def _add_to_sums(code: _Step, parts: int, offset: str, last: str, line: str) -> None:
    """The gradients of a step: while they are in a cache."""
    fresh, sums = code.put(f"icmp eq i64 {code.phase}, 0"), code.at("%sums", code.times(code.part, line))
    with code.loop("0", str(parts), "1") as gate, code.loop("%begin", "%end", str(code.lanes)) as units:
        at = code.add(code.times(gate.index, "%width"), units.index)
        before = code.put(f"select i1 {fresh}, {code.vector} {code.constant(0.0)}, {code.vector} {code.load(sums, at)}")
        with code.loop("%first", last, "1", [before]) as row:
            here = code.add(code.times(code.add(row.index, offset), line), at)
            row.next = [code.plus(row.values[0], code.load("%ggates", here))]
        code.store(row.values[0], sums, at)


def _backward_products(code: _Step, kind: str, columns: int, rows: int, line: str, depth: str) -> None:
    """The gradients of the hidden units before the step before."""
    offset, last = code.rows(code.put(f"sub i64 {code.phase}, 1"))
    skipped = "%width" if kind == "gru" else "0"
    with code.loop("%begin", "%end", str(code.lanes * columns)) as units:
        panel = code.at("%packed", code.times(units.index, depth))

        def block(first: str, count: int) -> None:
            each = [code.add(first, str(i)) for i in range(count)]
            units_of = [code.add(units.index, str(j * code.lanes)) for j in range(columns)]
            elements = [[code.add(code.times(r, "%width"), u) for u in units_of] for r in each]
            zero = code.constant(0.0)
            sums = [[code.load("%gh", p) if kind == "gru" else zero for p in group] for group in elements]
            left = [("%ggates", code.add(code.times(code.add(r, offset), line), skipped)) for r in each]
            for group, values in zip(elements, products(code, sums, left, panel, depth), strict=True):
                for element, value in zip(group, values, strict=True):
                    code.store(value, "%gh", element)

        blocks_of_rows(code, "%first", last, rows, block)


def _backward_unit(code: Code, kind: str, here: str, row: str, unit: str, line: str) -> None:
    """Gradients of one group of units in one row of a step."""
    there = code.add(code.times(row, "%width"), unit)
    gh = code.plus(code.load("%gh", here), code.load("%g", there))
    kept = [code.load("%kept", at) for at in cells.record(code, KEPT[kind], row, unit)]
    gradients = cells.gradients(code, kind, gh, kept, here, there)
    to = code.add(code.times(row, line), unit)
    for j, value in enumerate(gradients):
        code.store(value, "%ggates", code.add(to, code.times("%width", str(j))))
