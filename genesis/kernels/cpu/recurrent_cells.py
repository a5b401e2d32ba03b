"""LLVM code for what follows the products of a step of a recurrent layer, element by element: the cells of each kind, and
the gradients of their gates.
"""

from __future__ import annotations

from collections.abc import Sequence

from genesis.kernels.llvm.nests import Code

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
# vectors of a record: behind the gates the cell before and the tanh of the cell, or the last gate's recurrent part; of a
# layer without gates the result
KEPT = {"lstm": 6, "gru": 4, "tanh": 1, "relu": 1}


def vectors(kind: str, kept: bool) -> int:
    """How many a record has; without gradients the gates are all."""
    return KEPT[kind] if kept else GATES[kind]


def record(code: Code, count: int, row: str, unit: str) -> list[str]:
    """Where the vectors of a record are."""
    first = code.times(code.add(code.times(row, "%width"), unit), str(count))
    return [code.add(first, str(j * code.lanes)) for j in range(count)]


def bias(code: Code, unit: str, gate: int) -> str:
    return code.load("%bias", code.add(unit, code.times("%width", str(gate))))


class Row:
    """One row of a step, for one group of hidden units.

    Attributes:
        here: its elements in arrays of states; there: in those of all steps
    """

    def __init__(self, code: Code, kind: str, kept: bool, offset: str, unit: str, first: str, index: str) -> None:
        row = code.add(first, index)
        self.code, self.unit, self.kept = code, unit, kept
        self.sums = code.at("%sums", code.times(index, str(GATES[kind] * code.lanes)))
        self.here = code.add(code.times(row, "%width"), unit)
        self.there = code.add(code.times(code.add(row, offset), "%width"), unit)
        self.record = record(code, vectors(kind, kept), code.add(row, offset), unit)

    def of_states(self, gate: int) -> str:
        """The recurrent part of a gate, with the bias."""
        return self.code.load(self.sums, str(gate * self.code.lanes))

    def of_input(self, gate: int) -> str:
        return self.code.load("%kept", self.record[gate])

    def sum(self, gate: int) -> str:
        return self.code.plus(self.of_states(gate), self.of_input(gate))

    handed = of_states

    def hand_on(self, gate: int, value: str) -> None:
        """To the next part, which finds it `handed`."""
        self.code.store(value, self.sums, str(gate * self.code.lanes))

    def keep(self, values: dict[int, str]) -> None:
        for i, value in values.items() if self.kept else ():
            self.code.store(value, "%kept", self.record[i])

    def give(self, out: str) -> None:
        """The state after the step."""
        if self.kept:
            self.code.store(self.code.load("%hidden", self.here), "%before", self.there)
        self.code.store(out, "%out", self.there)
        self.code.store(out, "%next", self.here)


def _lstm_cell(row: Row) -> None:
    code = row.code
    i, f, o = (code.sigmoid(row.sum(j)) for j in (0, 1, 3))
    g, before = code.tanh(row.sum(2)), code.load("%cell", row.here)
    cell = code.fma(f, before, code.mul(i, g))
    code.store(cell, "%cell", row.here)
    row.keep({0: i, 1: f, 2: g, 3: o, 4: before})
    row.hand_on(0, cell)
    row.hand_on(3, o)


def _lstm_out(row: Row) -> None:
    tanh = row.code.tanh(row.handed(0))
    row.keep({5: tanh})
    row.give(row.code.mul(row.handed(3), tanh))


def _gru_gates(row: Row) -> None:
    code, inner = row.code, row.of_states(2)
    r, z = code.sigmoid(row.sum(0)), code.sigmoid(row.sum(1))
    of_input = code.plus(row.of_input(2), bias(code, row.unit, 2))
    row.keep({0: r, 1: z, 3: inner})
    row.hand_on(1, z)
    row.hand_on(2, code.fma(r, inner, of_input))


def _gru_out(row: Row) -> None:
    code, n = row.code, row.code.tanh(row.handed(2))
    row.keep({2: n})
    row.give(code.fma(row.handed(1), code.minus(code.load("%hidden", row.here), n), n))


def _tanh_out(row: Row) -> None:
    out = row.code.tanh(row.sum(0))
    row.keep({0: out})
    row.give(out)


def _relu_out(row: Row) -> None:
    x, zero = row.sum(0), row.code.constant(0.0)
    out = row.code.where("olt", x, zero, zero, x)
    row.keep({0: out})
    row.give(out)


PARTS = {"lstm": (_lstm_cell, _lstm_out), "gru": (_gru_gates, _gru_out), "tanh": (_tanh_out,), "relu": (_relu_out,)}


def gradients(code: Code, kind: str, gh: str, kept: Sequence[str], here: str, there: str) -> list[str]:
    """Of the gates of a row and a group of hidden units, from that of its result and the record."""
    if kind == "lstm":
        return _lstm_gradients(code, gh, kept, here)
    if kind == "gru":
        return _gru_gradients(code, gh, kept, here, there)
    if kind == "tanh":
        return [code.mul(gh, code.complement(code.mul(kept[0], kept[0])))]
    zero = code.constant(0.0)
    return [code.where("ogt", kept[0], zero, gh, zero)]


def _slope(code: Code, y: str) -> str:
    """Of a sigmoid, by its value."""
    return code.mul(y, code.complement(y))


def _lstm_gradients(code: Code, gh: str, kept: Sequence[str], here: str) -> list[str]:
    i, f, g, o, before, tanh = kept
    gc = code.fma(code.mul(gh, o), code.complement(code.mul(tanh, tanh)), code.load("%gc", here))
    code.store(code.mul(gc, f), "%gc", here)
    return [
        code.mul(code.mul(gc, g), _slope(code, i)),
        code.mul(code.mul(gc, before), _slope(code, f)),
        code.mul(code.mul(gc, i), code.complement(code.mul(g, g))),
        code.mul(code.mul(gh, tanh), _slope(code, o)),
    ]


def _gru_gradients(code: Code, gh: str, kept: Sequence[str], here: str, there: str) -> list[str]:
    """Of the last gate, of the first two, and of the last one's recurrent part."""
    r, z, n, inner = kept
    before = code.load("%before", there)
    code.store(code.mul(gh, z), "%gh", here)
    gn = code.mul(code.mul(gh, code.complement(z)), code.complement(code.mul(n, n)))
    gr = code.mul(code.mul(gn, inner), _slope(code, r))
    gz = code.mul(code.mul(gh, code.minus(before, n)), _slope(code, z))
    return [gn, gr, gz, code.mul(gn, r)]
