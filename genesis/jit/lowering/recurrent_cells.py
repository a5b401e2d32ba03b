"""What one step of a recurrent layer computes, on arrays: sizes, and for each kind of cell the values that follow from
the sums of its gates, and their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.kernels.cpu.recurrent_cells import GATES, KEPT


class Sizes:
    """Of a layer whose sequences have the same length.

    Attributes:
        groups: of hidden units, as many in each as a vector has lanes
        biases: how many numbers are added for each unit; stored: how many gradients of gates there are
        pieces: gates one after the other: the first in what is stored, the first in the weights, and how many
    """

    def __init__(self, kind: str, lanes: int, size: int, steps: int, batch: int, reverse: bool) -> None:
        self.kind, self.lanes, self.size, self.gates, self.kept = kind, lanes, size, GATES[kind], KEPT[kind]
        self.steps, self.batch, self.reverse = steps, batch, reverse
        self.rows, self.groups = steps * batch, size // lanes
        self.biases = self.stored = 4 if kind == "gru" else self.gates
        self.pieces = [(0, 2, 1), (1, 0, 2)] if kind == "gru" else [(0, 0, self.gates)]

    def offsets(self, back: bool) -> list[int]:
        """The first row of each step, in the order of the steps."""
        return [self.batch * (self.steps - 1 - i if back else i) for i in range(self.steps)]

    def records(self, array: Any) -> Any:
        """(rows, vectors of a record, groups, lanes)."""
        shape = self.rows, self.groups, self.kept, self.lanes
        return array[: self.rows * self.size * self.kept].reshape(shape).swapaxes(1, 2)

    def states(self, array: Any, *shape: int) -> Any:
        """(..., batch, groups, lanes)."""
        shape = *shape, self.batch, self.groups, self.lanes
        return array[: np.prod(shape)].reshape(shape)

    def weights(self, array: Any, features: int) -> Any:
        """(groups, features, gates, lanes), as they are packed."""
        return array[: self.gates * self.size * features].reshape(self.groups, features, self.gates, self.lanes)


def products_of_inputs(sizes: Sizes, features: int, arrays: list[Any]) -> None:
    x = arrays[0][: sizes.rows * features].reshape(sizes.rows, features)
    weights = sizes.weights(arrays[1], features)
    sizes.records(arrays[2])[:, : sizes.gates] = np.einsum("rk,gkjl->rjgl", x, weights)


def forward_step(sizes: Sizes, arrays: list[Any], phase: int, offsets: Sequence[int]) -> None:
    n, size, gates = sizes.batch, sizes.size, sizes.gates
    first, last = offsets[phase] * size, (offsets[phase] + n) * size
    records, states = sizes.records(arrays[0])[offsets[phase] : offsets[phase] + n], sizes.states(arrays[3], 2)
    bias = arrays[2][: sizes.biases * size].reshape(sizes.biases, sizes.groups, sizes.lanes)
    hidden, cells = states[phase % 2], [sizes.states(array) for array in arrays[6:]]
    x = records[:, :gates] + bias[:gates]
    h = np.einsum("rk,gkjl->rjgl", hidden.reshape(n, size), sizes.weights(arrays[1], size))
    h[:, gates - len(bias[gates:]) :] += bias[gates:]
    out, *kept = CELLS[sizes.kind][0](x.swapaxes(0, 1), h.swapaxes(0, 1), hidden, *cells)
    records[...] = np.stack(kept, 1)
    arrays[5][first:last], arrays[4][first:last] = hidden.ravel(), out.ravel()
    states[1 - phase % 2] = out


def backward_step(
    sizes: Sizes, arrays: list[Any], phase: int, offsets: Sequence[int], columns: int, parts: int
) -> None:
    n, size, skipped = sizes.batch, sizes.size, sizes.stored - sizes.gates
    gates = arrays[4][: sizes.rows * sizes.stored * size].reshape(sizes.rows, sizes.stored, sizes.groups, sizes.lanes)
    gh = sizes.states(arrays[3])
    if phase:
        shape = sizes.groups // columns, sizes.gates * size, columns * sizes.lanes
        weights = arrays[2][: sizes.gates * size * size].reshape(shape).swapaxes(0, 1).reshape(-1, size)
        of_gates = gates[offsets[phase - 1] : offsets[phase - 1] + n, skipped:].reshape(n, -1)
        gh[...] = (of_gates @ weights).reshape(gh.shape) + (gh if sizes.kind == "gru" else 0)
    if phase == sizes.steps:
        return
    here, first, last = offsets[phase], offsets[phase] * size, (offsets[phase] + n) * size
    kept = sizes.records(arrays[1])[here : here + n].swapaxes(0, 1)
    other = {"lstm": sizes.states, "gru": lambda before: before[first:last].reshape(gh.shape)}.get(sizes.kind)
    g = gh + arrays[0][first:last].reshape(gh.shape)
    gates[here : here + n] = np.stack(CELLS[sizes.kind][1](g, kept, gh, *[other(a) for a in arrays[5:-1] if other]), 1)
    sums = arrays[-1][: parts * sizes.stored * size].reshape(parts, -1)
    for part, total in enumerate(sums):
        rows = gates[here + n * part // parts : here + n * (part + 1) // parts].reshape(-1, total.size)
        total[...] = rows.sum(0) + (total if phase else 0)


# ---- kinds of cells: the result and what is kept, of the sums of inputs and of states; the gradients of the gates


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _lstm(x: Any, h: Any, hidden: Any, cell: Any) -> tuple[Any, ...]:
    (i, f, o), g, before = _sigmoid(x + h)[[0, 1, 3]], np.tanh(x + h)[2], cell.copy()
    cell[...] = f * before + i * g
    return o * np.tanh(cell), i, f, g, o, before, np.tanh(cell)


def _lstm_gradients(g: Any, kept: Any, gh: Any, gc: Any) -> tuple[Any, ...]:
    i, f, n, o, before, tanh = kept
    c = g * o * (1 - tanh * tanh) + gc
    gc[...] = c * f
    return c * n * i * (1 - i), c * before * f * (1 - f), c * i * (1 - n * n), g * tanh * o * (1 - o)


def _gru(x: Any, h: Any, hidden: Any) -> tuple[Any, ...]:
    r, z = _sigmoid(x[:2] + h[:2])
    n = np.tanh(x[2] + r * h[2])
    return n + z * (hidden - n), r, z, n, h[2]


def _gru_gradients(g: Any, kept: Any, gh: Any, before: Any) -> tuple[Any, ...]:
    r, z, n, inner = kept
    gh[...] = g * z
    gn = g * (1 - z) * (1 - n * n)
    return gn, gn * inner * r * (1 - r), g * (before - n) * z * (1 - z), gn * r


def _tanh(x: Any, h: Any, hidden: Any) -> tuple[Any, ...]:
    y = np.tanh(x[0] + h[0])
    return y, y


def _relu(x: Any, h: Any, hidden: Any) -> tuple[Any, ...]:
    y = np.maximum(x[0] + h[0], 0)
    return y, y


CELLS: dict[str, tuple[Any, Any]] = {
    "lstm": (_lstm, _lstm_gradients),
    "gru": (_gru, _gru_gradients),
    "tanh": (_tanh, lambda g, kept, gh: (g * (1 - kept[0] ** 2),)),
    "relu": (_relu, lambda g, kept, gh: (np.where(kept[0] > 0, g, 0),)),
}
