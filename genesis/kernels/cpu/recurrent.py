"""Recurrent layers of float32 arrays: the products of all inputs are one, all steps one call of machine code, and so are
the gradients of the gates; the gradients of the weights are one product each.

Threads divide the sequences of a batch; where these are few, the hidden units of every step.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.blas import product
from genesis.base.late import Late
from genesis.base.threads import get_num_threads
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import native
from genesis.kernels.native import runtime
from genesis.kernels.native.pace import Pace

if TYPE_CHECKING:
    from genesis.kernels.cpu import recurrent_cells as cells
    from genesis.kernels.cpu import recurrent_code as code
else:
    cells = Late("genesis.kernels.cpu.recurrent_cells")
    code = Late("genesis.kernels.cpu.recurrent_code")  # needed where there is llvmlite, and recurrent layers

STEPS = 4  # from how many steps it pays to bring the weights in order
PART = 1 << 21  # multiplications of all inputs for a thread, at least
SHARE = 1 << 14  # of a step
SEQUENCES = 4  # of a thread, at least


@functools.cache
def _target() -> code.Target:
    host = native.target()
    if host.has("avx512f"):
        return code.Target(16, True)
    return code.Target(8, False) if host.has("avx") else code.Target(4, host.has("neon"))


@functools.cache
def _forward(kind: str, kept: bool) -> Any:
    """Where the functions of a phase and of all phases are."""
    text = code.forward(kind, _target(), kept) + code.every_step("forward")
    return tuple(native.addresses_in(text, ["forward", "all"]))


@functools.cache
def _inputs(kind: str, kept: bool) -> Any:
    return native.nest("inputs", code.inputs(kind, _target(), kept), *map(len, code.INPUTS))


@functools.cache
def _pack() -> Any:
    return native.nest("pack", code.pack(_target()), *map(len, code.PACK))


@functools.cache
def _backward(kind: str, columns: int) -> Any:
    text = code.backward(kind, _target(), columns) + code.every_step("backward")
    return tuple(native.addresses_in(text, ["backward", "all"]))


def _fits(kind: str, states: int, arguments: Any) -> bool:
    arrays = [a for a in arguments[: 5 + states] if a is not None]
    shapes = tuple([a.shape for a in arrays])
    return all([a.dtype == F32 for a in arrays]) and _sizes_fit(kind, states, shapes, tuple(arguments[5 + states]))


@functools.lru_cache(maxsize=256)
def _sizes_fit(kind: str, states: int, shapes: Sequence[tuple[int, ...]], batch_sizes: tuple[int, ...]) -> bool:
    """Of the input, the states, two weights, and biases."""
    (input, *others), size = shapes, shapes[2 + states][-1] if shapes[2 + states] else 0
    if native.host() is None or len(batch_sizes) < STEPS or batch_sizes[0] < 1:
        return False
    return (
        input == (_rows(batch_sizes), shapes[1 + states][-1])
        and all([shape == (batch_sizes[0], size) for shape in others[:states]])
        and size > 0 < math.prod(input)
        and all([shape[0] == cells.GATES[kind] * size for shape in others[states:]])
    )


def _rows(batch_sizes: tuple[int, ...]) -> int | None:
    """How many rows all steps have; None if one has more than the step before."""
    return sum(batch_sizes) if all([b <= a for a, b in pairwise(batch_sizes)]) else None


def _padded(size: int) -> int:
    lanes = _target().lanes
    return -(-size // lanes) * lanes


@functools.lru_cache(maxsize=256)
def _steps(batch_sizes: tuple[int, ...], reverse: bool) -> tuple[Any, Any]:
    """How many rows each step has, and which is the first, in the order of the steps. Nobody writes to them."""
    counts = np.array(batch_sizes, np.int64)
    offsets = np.cumsum(counts) - counts
    return (counts[::-1].copy(), offsets[::-1].copy()) if reverse else (counts, offsets)


class Layer:
    """One call: sizes, the steps in their order, and arrays padded to whole groups of hidden units."""

    def __init__(self, kind: str, size: int, counts: Any, offsets: Any) -> None:
        self.kind, self.size, self.gates = kind, size, cells.GATES[kind]
        self.lanes, self.width = _target().lanes, _padded(size)
        self.counts, self.offsets = counts, offsets
        ends = [(int(counts[i]), int(offsets[i])) for i in (0, -1)]  # the first step in memory has most rows
        self.batch, self.rows = max(count for count, _ in ends), max(count + offset for count, offset in ends)

    def padded(self, x: Any, dims: int = 1) -> Any:
        """``x`` with zeros after the last ``dims`` dimensions of hidden units."""
        missing = self.width - self.size
        if not missing:
            return np.ascontiguousarray(x)
        return np.pad(x, [(0, 0)] * (x.ndim - dims) + [(0, missing)] * dims)

    def by_gate(self, x: Any) -> Any:
        """The rows of weights, padded: (gates, width, ...)."""
        x = x.reshape(self.gates, self.size, *x.shape[1:])
        if self.width == self.size:
            return x
        return np.pad(x, [(0, 0), (0, self.width - self.size)] + [(0, 0)] * (x.ndim - 2))

    def cut(self, x: Any) -> Any:
        """Without the zeros after each gate: (rows, gates * size) of (rows, gates * width)."""
        if self.width == self.size:
            return x
        return np.ascontiguousarray(x.reshape(len(x), -1, self.width)[:, :, : self.size]).reshape(len(x), -1)

    def empty(self, rows: int, groups: int = 1) -> Any:
        return memory.empty((rows, groups * self.width), F32)

    def pack(self, weight: Any, out: Any) -> None:
        """Of each group of hidden units, for each number of the other side, the weights of all gates."""
        weight = np.ascontiguousarray(self.by_gate(weight))
        groups = self.width // self.lanes
        _pack()(memory.address(weight), memory.address(out), 0, groups, weight.shape[-1], self.width, self.gates)

    def pack_back(self, weight: Any, columns: int, out: Any) -> None:
        """Of so many groups of hidden units, for each row of the weights, their numbers."""
        shape = self.gates * self.width, -1, columns * self.lanes
        whole = self.padded(self.by_gate(weight)).reshape(shape).transpose(1, 0, 2)
        np.copyto(out.reshape(whole.shape), whole)

    def products(self, input: Any, packed: Any, kept: bool) -> Any:
        """Of all rows of the input with the weights of all gates, where these will be in the records."""
        out, rows = self.empty(self.rows, cells.vectors(self.kind, kept)), np.ascontiguousarray(input)
        addresses = [memory.address(a) for a in (rows, packed, out)]
        parts = min(get_num_threads(), rows.size * self.gates * self.size // PART)
        slices = 2 * parts if parts > 1 else 1
        runtime.in_slices(_inputs(self.kind, kept), addresses, len(rows), (rows.shape[1], self.width), slices)
        return out

    def run(self, functions: tuple[int, int], reverse: bool, arrays: Any, columns: int = 1) -> None:
        """All steps, by machine code: a phase for each, or one phase where chunks are sequences that need nothing of each
        other. ``columns`` groups of hidden units cannot be divided.
        """
        parts, shares = self._parts(columns)
        steps = self.counts.tobytes(), self.offsets.tobytes(), reverse
        free, pace = _tables(functions, len(arrays), *steps, self.size, self.width, self.batch, parts, shares)
        try:
            phases = free.pop()  # no other run has it now
        except IndexError:
            sizes = self.size, self.width, self.batch, parts, shares
            phases = _Phases(functions, self.counts, self.offsets, reverse, len(arrays), sizes)
        phases.words[: len(arrays)] = [memory.address(a) for a in arrays]
        threads = pace.of(parts * shares)
        pace.left -= 1
        if pace.left >= 0:
            runtime.run(phases.table, threads)
        else:
            begun = time.perf_counter()
            runtime.run(phases.table, threads)
            pace.took(time.perf_counter() - begun)
        free.append(phases)

    def _parts(self, columns: int) -> tuple[int, int]:
        """In how many parts the sequences of a batch and the hidden units are."""
        threads = min(get_num_threads(), max(1, self.batch * self.gates * self.size * self.size // SHARE))
        if self.batch >= SEQUENCES * threads:
            return threads, 1
        shares = min(threads, self.width // (columns * self.lanes))
        return max(1, min(threads // shares, self.batch // SEQUENCES)), shares


class _Phases:
    """The table of all steps, for arrays of such sizes; where these are is in the first words."""

    def __init__(
        self, functions: tuple[int, int], counts: Any, offsets: Any, reverse: bool, arrays: int, sizes: tuple[int, ...]
    ) -> None:
        order = tuple([np.ascontiguousarray(a[::-1] if reverse else a) for a in (offsets, counts)])
        steps = len(counts)
        given = [*[0] * arrays, *map(memory.address, order), steps, *sizes]
        of_phase, of_all = functions
        parts, shares = sizes[-2:]
        numbers = np.arange(steps + reverse) if shares > 1 else [steps + reverse]  # which, or how many
        self.words, each = np.array(given, np.int64), np.empty((len(numbers), 2), np.int64)
        each[:, 0], each[:, 1] = memory.address(self.words), numbers
        rows = np.empty((len(each), 3), np.int64)
        rows[:, 0], rows[:, 2] = of_phase if shares > 1 else of_all, parts * shares
        rows[:, 1] = memory.address(each) + each.strides[0] * np.arange(len(each))
        self.table, self.kept = runtime.Table(rows), (order, each)


@functools.lru_cache(maxsize=128)
def _tables(*key: Any) -> tuple[list[_Phases], Pace]:
    """Those that no run has, to take one from and to give it back; and how many threads pay: where all wait for each
    other after every step that is never certain.
    """
    shares = key[-1]
    return [], Pace(math.inf) if shares > 1 else Pace()


def _run(kind: str, states: int, arguments: Any, keep: bool) -> Any:
    """The result, and what is kept if it is to be."""
    input, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes, reverse = (
        arguments[0],
        *arguments[1 + states : 7 + states],
    )
    layer = Layer(kind, weight_hh.shape[1], *_steps(tuple(batch_sizes), bool(reverse)))
    state, width = (layer.batch, layer.width), layer.gates * layer.width
    of_input, of_state, hidden, *cells = _pieces(
        (input.shape[1], width), (layer.size, width), (2, *state), *[state] * (states - 1)
    )
    layer.pack(weight_ih, of_input)
    layer.pack(weight_hh, of_state)
    hidden[0] = layer.padded(arguments[1])
    for cell, given in zip(cells, arguments[2 : 1 + states], strict=True):
        cell[...] = layer.padded(given)
    kept = layer.products(input, of_input, keep)
    result = layer.empty(layer.rows + states * layer.batch)
    before, bias = layer.empty(layer.rows if keep else 0), _bias(layer, bias_ih, bias_hh)
    arrays = [kept, of_state, bias, hidden, result, before, *cells]  # the first rows of the result
    layer.run(_forward(kind, keep), False, arrays)
    for i, last in enumerate((hidden[len(layer.counts) % 2], *cells)):
        result[layer.rows + i * layer.batch :][: layer.batch] = last
    result = result if layer.width == layer.size else np.ascontiguousarray(result[:, : layer.size])
    return (result, (input, weight_ih, weight_hh, layer.counts, layer.offsets, kept, before)) if keep else result


def _infer(kind: str, states: int, arguments: Any) -> tuple[Spec, tuple[Any, ...]]:
    size, batch_sizes = arguments[2 + states].shape[1], arguments[5 + states]
    rows, width, numbers = sum(batch_sizes), _padded(size), Spec((len(batch_sizes),), np.dtype(np.int64))
    kept = (numbers, numbers, Spec((rows, cells.KEPT[kind] * width), F32), Spec((rows, width), F32))
    return Spec((rows + states * batch_sizes[0], size), F32), ("input", "weight_ih", "weight_hh", *kept)


def _bias(layer: Layer, bias_ih: Any, bias_hh: Any) -> Any:
    """What is added to each gate; for the last gate of a GRU that of the recurrent part comes after."""
    if layer.kind != "gru" and layer.width == layer.size and bias_ih is not None and bias_hh is not None:
        return bias_ih + bias_hh
    zero = np.zeros(layer.gates * layer.size, F32)
    ours, theirs = (layer.by_gate(zero if b is None else b) for b in (bias_ih, bias_hh))
    if layer.kind != "gru":
        return (ours + theirs).reshape(-1)
    return np.concatenate([ours[0] + theirs[0], ours[1] + theirs[1], ours[2], theirs[2]])


def _pull(kind: str, states: int, g: Any, kept: Any, needs: Any) -> Any:
    """The gradients of the arguments."""
    input, weight_ih, weight_hh, counts, offsets, records, before = kept
    layer = Layer(kind, weight_hh.shape[1], counts, offsets)
    g = layer.padded(g)
    back, *of_states = _pieces((layer.gates * layer.width, layer.width), *[(layer.batch, layer.width)] * states)
    for i, of_state in enumerate(of_states):
        of_state[...] = g[layer.rows + i * layer.batch :][: layer.batch]
    columns = _target().columns_back(layer.width // layer.lanes, layer.batch)
    layer.pack_back(weight_hh, columns, back)
    of_gates = layer.empty(layer.rows, 4 if kind == "gru" else layer.gates)
    arrays = [g, records, back, of_states[0], of_gates]
    arrays += [of_states[1]] if kind == "lstm" else [before] if kind == "gru" else []
    layer.run(_backward(kind, columns), True, arrays, columns)
    of_gates = layer.cut(of_gates)
    ours = theirs = of_gates
    if kind == "gru":  # the last gate first, and its recurrent part behind the others
        ours, theirs = of_gates[:, : 3 * layer.size], of_gates[:, layer.size :]
        ours = np.concatenate([ours[:, layer.size :], ours[:, : layer.size]], 1)
    of_bias = _over_rows(ours) if needs[3 + states] or needs[4 + states] else None
    return (
        product(ours, weight_ih) if needs[0] else None,
        *[np.ascontiguousarray(s[:, : layer.size]) for s in of_states],
        product(ours.T, np.ascontiguousarray(input)) if needs[1 + states] else None,
        product(theirs.T, before[:, : layer.size]) if needs[2 + states] else None,
        of_bias,
        of_bias if of_bias is None else of_bias.copy() if theirs is ours else _over_rows(theirs),
    )


def _pieces(*shapes: tuple[int, ...]) -> list[Any]:
    """Arrays in one piece of memory, each beginning where a vector may."""
    numbers = memory.LINE // F32.itemsize
    ends = list(accumulate([-(-math.prod(shape) // numbers) * numbers for shape in shapes]))
    whole = memory.aligned((ends[-1],), F32)
    return [
        whole[begin : begin + math.prod(shape)].reshape(shape) for begin, shape in zip((0, *ends), shapes, strict=False)
    ]


def _over_rows(x: Any) -> Any:
    return product(np.ones(len(x), F32), x)


def _attach(name: str, kind: str) -> None:
    states = 2 if kind == "lstm" else 1
    others = 7 + states  # the nonlinearity of a layer without gates

    def when(*arguments: Any) -> bool:
        return (kind,) == (*arguments[others:], kind)[:1] and _fits(kind, states, arguments)

    attached = attach(
        name,
        np.ndarray,
        lambda *arguments: _run(kind, states, arguments, True),
        when=when,
        infer=lambda *arguments: _infer(kind, states, arguments),
    )
    attached.alone = lambda *arguments: _run(kind, states, arguments, False)
    attached.backward(
        lambda g, kept, needs: _pull(kind, states, g, kept, needs), reads=("input", "weight_ih", "weight_hh")
    )


for _name, _kind in (("lstm_layer", "lstm"), ("gru_layer", "gru"), ("rnn_layer", "tanh"), ("rnn_layer", "relu")):
    _attach(_name, _kind)
