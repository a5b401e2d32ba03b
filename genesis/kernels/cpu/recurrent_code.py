"""LLVM code for all steps of a recurrent layer, for a slice of its batch: products with the recurrent weights and what
follows element by element, while the sums are still in registers.

A row of a step is one sequence. Hidden units are in groups of as many as a vector has lanes; rows of arrays are padded
with zeros to whole groups. ``offsets[s]`` is the first row of step s in the arrays of all steps, ``counts[s]`` how many
sequences take part in it: the first ones, of those from ``first`` to ``last``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from genesis.kernels.llvm.nests import Code

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
ROWS = {"lstm": 4, "gru": 4, "tanh": 8, "relu": 8}  # computed at a time: accumulators for 32 registers


@dataclass(frozen=True)
class Target:
    """What registers a processor has: lanes of float32 in a vector, and whether there are 32 of them."""

    lanes: int
    many: bool

    def rows(self, kind: str) -> int:
        return ROWS[kind] if self.many else ROWS[kind] // 2


def blocks_of_rows(code: Code, first: str, last: str, rows: int, body: Callable[[str, int], None]) -> None:
    """``body(row, count)`` for ``rows`` rows at a time, then for one at a time."""
    with code.loop(first, last, str(rows)) as loop:
        body(loop.index, rows)
    if rows > 1:
        with code.loop(loop.index, last, "1") as rest:
            body(rest.index, 1)


def products(
    code: Code, sums: Sequence[Sequence[str]], left: Sequence[tuple[str, str]], right: str, depth: str
) -> list[list[str]]:
    """Add rows times columns to ``sums``: of each row the array and the index of its first number; ``right`` has a
    vector for each column group, for each k.
    """
    rows, columns = len(sums), len(sums[0])
    with code.loop("0", depth, "1", [each for row in sums for each in row]) as loop:
        start = code.times(loop.index, str(columns * code.lanes))
        vectors = [code.load(right, code.add(start, str(j * code.lanes))) for j in range(columns)]
        loop.next = []
        for i, (base, at) in enumerate(left):
            x = code.spread(base, code.add(at, loop.index))
            loop.next += [code.fma(x, vectors[j], loop.values[i * columns + j]) for j in range(columns)]
    return [loop.values[i * columns : (i + 1) * columns] for i in range(rows)]


INPUTS = ("input", "packed", "gates"), ("first", "last", "features", "width")


def inputs(kind: str, target: Target) -> str:
    """The function ``inputs``: products of all rows of the input, which no step waits for."""
    code, gates = Code(target.lanes), GATES[kind]
    with code.loop("0", "%width", str(code.lanes)) as units:
        panel = code.at("%packed", code.times(code.times(units.index, "%features"), str(gates)))

        def block(first: str, count: int) -> None:
            rows = [code.add(first, str(i)) for i in range(count)]
            zeros = [[code.constant(0.0)] * gates for _ in rows]
            left = [("%input", code.times(r, "%features")) for r in rows]
            for r, sums in zip(rows, products(code, zeros, left, panel, "%features"), strict=True):
                for j, value in enumerate(sums):
                    at = code.add(code.times(r, str(gates)), str(j))
                    code.store(value, "%gates", code.add(code.times(at, "%width"), units.index))

        blocks_of_rows(code, "%first", "%last", target.rows(kind), block)
    return code.function("inputs", *INPUTS)


POINTERS = {
    "lstm": ("gates", "packed", "bias", "hidden", "out", "before", "cell", "cell_before", "tanh_cell"),
    "gru": ("gates", "packed", "bias", "hidden", "out", "before", "inner"),
    "tanh": ("gates", "packed", "bias", "hidden", "out", "before"),
}
POINTERS["relu"] = POINTERS["tanh"]
ORDER = ("offsets", "counts")
SIZES = ("steps", "first", "last", "size", "width")  # width: the size, padded


def forward(kind: str, target: Target) -> str:
    """The function ``forward``: ``gates`` holds the products of the inputs, and then the gates."""
    code, gates = Code(target.lanes), GATES[kind]
    line = code.times("%width", str(gates))
    with code.loop("0", "%steps", "1") as step:
        offset, last = code.number("%offsets", step.index), code.least(code.number("%counts", step.index), "%last")
        with code.loop("0", "%width", str(code.lanes)) as units:
            panel = code.at("%packed", code.times(code.times(units.index, "%size"), str(gates)))

            def block(row: str, count: int) -> None:
                _forward_block(code, kind, line, offset, units.index, panel, row, count)

            blocks_of_rows(code, "%first", last, target.rows(kind), block)
        with code.loop("%first", last, "1") as row, code.loop("0", "%width", str(code.lanes)) as units:
            here = code.add(code.times(row.index, "%width"), units.index)
            there = code.add(code.times(code.add(row.index, offset), "%width"), units.index)
            code.store(code.load("%hidden", here), "%before", there)
            code.store(code.load("%out", there), "%hidden", here)
    return code.function("forward", [*POINTERS[kind], *ORDER], SIZES)


def _forward_block(code: Code, kind: str, line: str, offset: str, unit: str, panel: str, row: str, count: int) -> None:
    """Some rows of one step, for one group of hidden units."""
    gates, rows = GATES[kind], [code.add(row, str(i)) for i in range(count)]
    parts = [code.add(unit, code.times("%width", str(j))) for j in range(gates + (kind == "gru"))]
    bias = [code.load("%bias", part) for part in parts]
    at = [code.add(code.times(code.add(r, offset), line), unit) for r in rows]
    offsets = [[code.add(a, code.times("%width", str(j))) for j in range(gates)] for a in at]
    given = [[code.load("%gates", a) for a in line] for line in offsets]
    sums = [[code.plus(x, b) for x, b in zip(line, bias, strict=False)] for line in given]
    of_input = [line[-1] for line in sums]
    if kind == "gru":  # the last gate's recurrent part is scaled before it is added
        sums = [[*line[:-1], bias[-1]] for line in sums]
    starts = [code.times(r, "%width") for r in rows]
    sums = products(code, sums, [("%hidden", start) for start in starts], panel, "%size")
    for r, start, line, gate_offsets, x in zip(rows, starts, sums, offsets, of_input, strict=True):
        here = code.add(start, unit)
        there = code.add(code.times(code.add(r, offset), "%width"), unit)
        if kind == "lstm":
            _lstm(code, line, gate_offsets, here, there)
        elif kind == "gru":
            _gru(code, line, x, gate_offsets, here, there)
        else:
            zero = code.constant(0.0)
            y = code.tanh(line[0]) if kind == "tanh" else code.where("olt", line[0], zero, zero, line[0])
            code.store(y, "%out", there)


def _lstm(code: Code, line: Sequence[str], offsets: Sequence[str], here: str, there: str) -> None:
    i, f, o = (code.sigmoid(line[j]) for j in (0, 1, 3))
    g, before = code.tanh(line[2]), code.load("%cell", here)
    cell = code.fma(f, before, code.mul(i, g))
    tanh = code.tanh(cell)
    for value, offset in zip((i, f, g, o), offsets, strict=True):
        code.store(value, "%gates", offset)
    code.store(before, "%cell_before", there)
    code.store(cell, "%cell", here)
    code.store(tanh, "%tanh_cell", there)
    code.store(code.mul(o, tanh), "%out", there)


def _gru(code: Code, line: Sequence[str], x: str, offsets: Sequence[str], here: str, there: str) -> None:
    r, z = code.sigmoid(line[0]), code.sigmoid(line[1])
    n = code.tanh(code.fma(r, line[2], x))
    for value, offset in zip((r, z, n), offsets, strict=True):
        code.store(value, "%gates", offset)
    code.store(line[2], "%inner", there)
    code.store(code.fma(z, code.minus(code.load("%hidden", here), n), n), "%out", there)


BACK = {
    "lstm": ("g", "gates", "packed", "gh", "ggates", "gc", "cell_before", "tanh_cell"),
    "gru": ("g", "gates", "packed", "gh", "ggates", "inner", "before"),
    "tanh": ("g", "gates", "packed", "gh", "ggates"),
}
BACK["relu"] = BACK["tanh"]


def backward(kind: str, target: Target, columns: int) -> str:
    """The function ``backward``: gradients of what went into the gates, from the last step to the first.

    ``gh`` and ``gc`` are the gradients of the states after the steps, and then before them; ``gates`` of a layer without
    gates its results. ``columns`` groups of hidden units are computed at a time.
    """
    code, gates = Code(target.lanes), GATES[kind]
    parts = 4 if kind == "gru" else gates  # what is stored of each row: a GRU's last gate has two gradients
    line, depth = code.times("%width", str(parts)), code.times("%width", str(gates))
    skipped = "%width" if kind == "gru" else "0"
    rows = target.rows("lstm") * 4 // columns
    with code.loop("0", "%steps", "1") as step:
        offset, last = code.number("%offsets", step.index), code.least(code.number("%counts", step.index), "%last")
        with code.loop("%first", last, "1") as row, code.loop("0", "%width", str(code.lanes)) as units:
            here = code.add(code.times(row.index, "%width"), units.index)
            there = code.add(row.index, offset)
            _backward_unit(code, kind, here, there, units.index, line)
        with code.loop("0", "%width", str(code.lanes * columns)) as units:
            panel = code.at("%packed", code.times(units.index, depth))

            def block(first: str, count: int) -> None:
                each = [code.add(first, str(i)) for i in range(count)]
                elements = [
                    [
                        code.add(code.times(r, "%width"), code.add(units.index, str(j * code.lanes)))
                        for j in range(columns)
                    ]
                    for r in each
                ]
                sums = [
                    [code.load("%gh", p) if kind == "gru" else code.constant(0.0) for p in group] for group in elements
                ]
                left = [("%ggates", code.add(code.times(code.add(r, offset), line), skipped)) for r in each]
                for group, values in zip(elements, products(code, sums, left, panel, depth), strict=True):
                    for element, value in zip(group, values, strict=True):
                        code.store(value, "%gh", element)

            blocks_of_rows(code, "%first", last, rows, block)
    return code.function("backward", [*BACK[kind], *ORDER], SIZES)


def _backward_unit(code: Code, kind: str, here: str, row: str, unit: str, line: str) -> None:
    """Gradients of one group of units in one row of a step."""
    there = code.add(code.times(row, "%width"), unit)
    gh = code.plus(code.load("%gh", here), code.load("%g", there))
    to = code.add(code.times(row, line), unit)
    if kind == "lstm":
        gradients = _lstm_gradients(code, gh, here, there, to)
    elif kind == "gru":
        gradients = _gru_gradients(code, gh, here, there, code.add(code.times(there, "3"), code.times(unit, "-2")))
    elif kind == "tanh":
        y = code.load("%gates", there)
        gradients = [code.mul(gh, code.complement(code.mul(y, y)))]
    else:
        zero = code.constant(0.0)
        gradients = [code.where("ogt", code.load("%gates", there), zero, gh, zero)]
    for j, value in enumerate(gradients):
        code.store(value, "%ggates", code.add(to, code.times("%width", str(j))))


def _slope(code: Code, y: str) -> str:
    """Of a sigmoid, by its value."""
    return code.mul(y, code.complement(y))


def _lstm_gradients(code: Code, gh: str, here: str, there: str, at: str) -> list[str]:
    i, f, g, o = (code.load("%gates", code.add(at, code.times("%width", str(j)))) for j in range(4))
    tanh, before = code.load("%tanh_cell", there), code.load("%cell_before", there)
    gc = code.fma(code.mul(gh, o), code.complement(code.mul(tanh, tanh)), code.load("%gc", here))
    code.store(code.mul(gc, f), "%gc", here)
    return [
        code.mul(code.mul(gc, g), _slope(code, i)),
        code.mul(code.mul(gc, before), _slope(code, f)),
        code.mul(code.mul(gc, i), code.complement(code.mul(g, g))),
        code.mul(code.mul(gh, tanh), _slope(code, o)),
    ]


def _gru_gradients(code: Code, gh: str, here: str, there: str, at: str) -> list[str]:
    """Of the last gate, of the first two, and of the last one's recurrent part."""
    r, z, n = (code.load("%gates", code.add(at, code.times("%width", str(j)))) for j in range(3))
    inner, before = code.load("%inner", there), code.load("%before", there)
    code.store(code.mul(gh, z), "%gh", here)
    gn = code.mul(code.mul(gh, code.complement(z)), code.complement(code.mul(n, n)))
    gr = code.mul(code.mul(gn, inner), _slope(code, r))
    gz = code.mul(code.mul(gh, code.minus(before, n)), _slope(code, z))
    return [gn, gr, gz, code.mul(gn, r)]
