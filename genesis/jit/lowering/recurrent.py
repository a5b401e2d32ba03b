"""Layers of long short-term memory as kernels: the loops of `genesis.kernels.cpu.recurrent_code` with all sizes in the
code.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.jit.arguments import Var
from genesis.jit.lowering.channels import sliced
from genesis.jit.lowering.convolutions import F32, ZERO, in_order, named
from genesis.jit.lowering.parts import Builder, Memory, Part, Unknown, row_strides, rule, total
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.cpu import recurrent_code as code
from genesis.kernels.cpu.recurrent import _target

SHARES = 4  # of the hidden units of a step
SEQUENCES = 8  # of a chunk, where there are as many for several

Made = list[Part | Stage | Call]
Operand = tuple[Var, int]  # a root, and where in it the elements begin
_text = functools.cache(lambda which, *options: getattr(code, which)("lstm", _target(), *options))


class _Layer:
    """Sizes of a layer whose sequences have the same length."""

    def __init__(self, memory: Memory, call: Call, size: int, steps: int, batch: int, reverse: bool) -> None:
        self.memory, self.call, self.lanes = memory, call, _target().lanes
        self.size, self.steps, self.batch, self.reverse = size, steps, batch, reverse
        self.rows, self.groups = steps * batch, size // self.lanes
        if size % self.lanes or not batch * steps * size:
            raise Unknown("hidden units that do not fill vectors")
        self.made: Made = []

    def given(self, var: Var) -> Operand:
        return in_order(self.memory, self.call, var, self.made)  # type: ignore[arg-type]

    def copy(
        self, shape: Sequence[int], of: Operand, strides: Sequence[int], to: Var | None = None, begin: int = 0,
        own: Sequence[int] | None = None,
    ) -> Operand:  # fmt: skip
        """Elements in another order, in memory of their own or in a part of a value."""
        made = Builder(self.memory, self.call, shape)
        value = made.read(of[0], strides)
        made.reads[-1] = replace(made.reads[-1], offset=made.reads[-1].offset + of[1])
        var = to or Var(Spec(tuple(shape), F32))
        made.give(var, value, own, begin, whole=to is None)
        self.made.append(made.made())
        return var, 0

    def packed(self, weight: Operand, features: int) -> Operand:
        """As `genesis.kernels.cpu.recurrent.Layer.packed`."""
        shape = self.groups, features, 4, self.lanes
        return self.copy(shape, weight, (self.lanes * features, 1, self.size * features, features))

    def steps_of(
        self, which: str, count: int, operands: Sequence[Operand], writes: Sequence[int], columns: int, oracle: Any
    ) -> None:
        """The steps: one kernel, whose chunks are sequences that need nothing of each other; where these are few, a phase
        for each step, whose chunks are hidden units.
        """
        parts = self.batch // SEQUENCES
        phases = [range(count)] if parts > 1 else [range(p, p + 1) for p in range(count)]
        shares = 1 if parts > 1 else min(SHARES, self.groups // columns)
        text = _text(which, True if which == "forward" else columns)
        back = (which == "backward") != self.reverse
        offsets = [self.batch * (self.steps - 1 - i if back else i) for i in range(self.steps)]
        sizes = self.steps, self.size, self.size, self.batch, max(parts, 1), shares
        own = f"lstm_{which}_{named(text)}"
        for some in phases:
            wrapper = _wrapper(own, offsets, self.batch, [n for _, n in operands], sizes, some)
            name = named(text + wrapper)
            whole = f"{text.replace(f'@{which}(', f'@{own}(')}\n{wrapper}".replace("@NAME", f"@{name}")

            def python(arrays: list[Any], chunk: int, some: range = some) -> None:
                if not chunk:
                    given = [a[offset:] for a, (_, offset) in zip(arrays, operands, strict=True)]
                    for phase in some:
                        oracle(given, phase, offsets)

            kernel = Kernel(name, whole, max(parts, 1) * shares, frozenset(writes), python=python)
            self.made.append(Stage(kernel, tuple([root for root, _ in operands])))


def _wrapper(
    function: str, offsets: Sequence[int], batch: int, begins: Sequence[int], sizes: Sequence[int], phases: range
) -> str:
    """The kernel that puts together what the function of a phase is given, and calls it for some."""
    numbers = {"offsets": offsets, "counts": [batch] * len(offsets)}
    lines = [
        f"@NAME_{name} = internal constant [{len(table)} x i64] [{', '.join([f'i64 {n}' for n in table])}]"
        for name, table in numbers.items()
    ]
    count = len(begins) + 2 + len(sizes)
    lines += [
        "define void @NAME(ptr %addresses, i64 %chunk) {\nentry:",
        f"  %words = alloca [{count} x i64], align 16\n  %args = alloca [2 x i64], align 16",
    ]
    for i, begin in enumerate(begins):
        lines += [
            f"  %at{i} = getelementptr ptr, ptr %addresses, i64 {i}\n  %a{i} = load ptr, ptr %at{i}",
            f"  %p{i} = getelementptr float, ptr %a{i}, i64 {begin}",
        ]
    values = [
        *[f"ptr %p{i}" for i in range(len(begins))],
        "ptr @NAME_offsets",
        "ptr @NAME_counts",
        *[f"i64 {n}" for n in sizes],
    ]
    for i, value in enumerate(values):
        lines.append(f"  %w{i} = getelementptr i64, ptr %words, i64 {i}\n  store {value}, ptr %w{i}")
    lines += [
        "  store ptr %words, ptr %args\n  %number = getelementptr i64, ptr %args, i64 1\n  br label %step\nstep:",
        f"  %phase = phi i64 [{phases.start}, %entry], [%after, %step]\n  store i64 %phase, ptr %number",
        f"  call void @{function}(ptr %args, i64 %chunk)\n  %after = add i64 %phase, 1",
        f"  %more = icmp slt i64 %after, {phases.stop}\n  br i1 %more, label %step, label %end\nend:\n  ret void\n}}",
    ]
    return "\n".join(lines)


@rule("fused.lstm_layer")
def forward(memory: Memory, call: Call) -> Made:
    input, hidden, cell, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes, reverse = call.args
    size, batch, steps = weight_hh.spec.shape[1], batch_sizes[0], len(batch_sizes)
    if set(batch_sizes) != {batch} or len(call.outs) != 5:
        raise Unknown("sequences of several lengths")
    layer = _Layer(memory, call, size, steps, batch, bool(reverse))
    result, counts, offsets, records, before = call.outs
    memory.recurrent[counts] = steps, batch, layer.reverse
    layer.made.append(_sequences(layer, counts, offsets))
    features = input.spec.shape[1]
    of_input, of_state = (layer.packed(layer.given(w), w.spec.shape[1]) for w in (weight_ih, weight_hh))
    bias = _bias(layer, bias_ih, bias_hh)
    rest = batch * size
    states = Var(Spec((2, batch, size), F32))
    layer.copy((batch, size), layer.given(hidden), (size, 1), states, 0, (size, 1))
    cells = layer.copy((batch, size), layer.given(cell), (size, 1))
    operands = [layer.given(input), of_input, (records, 0)]
    sizes = features, size
    oracle = functools.partial(_inputs_in_python, layer, features)
    layer.made.append(sliced(_inputs(), "inputs", operands, layer.rows, sizes, (2,), oracle))
    operands = [(records, 0), of_state, bias, (states, 0), (result, 0), (before, 0), cells]
    oracle = functools.partial(_forward_in_python, layer)
    layer.steps_of("forward", steps, operands, (0, 3, 4, 5, 6), 1, oracle)
    last = steps % 2 * rest
    layer.copy((batch, size), (states, last), (size, 1), result, layer.rows * size, (size, 1))
    layer.copy((batch, size), cells, (size, 1), result, layer.rows * size + rest, (size, 1))
    return layer.made


def _sequences(layer: _Layer, counts: Var, offsets: Var) -> Part:
    """How many rows each step has, and where they begin: what a backward in another program asks for."""
    made = Builder(layer.memory, layer.call, (layer.steps,))
    step = made.count(0)
    made.give(counts, step * 0 + layer.batch)
    made.give(offsets, (step * -1 + (layer.steps - 1) if layer.reverse else step) * layer.batch)
    return made.made()


@functools.cache
def _inputs() -> str:
    return code.inputs("lstm", _target(), True)


def _bias(layer: _Layer, *biases: Var | None) -> Operand:
    """What is added to each gate."""
    out = Var(Spec((4 * layer.size,), F32))
    made = Builder(layer.memory, layer.call, (4 * layer.size,))
    values = [made.read(b) for b in biases if b is not None]
    made.give(out, functools.reduce(lambda a, b: a + b, values) if values else ZERO)
    layer.made.append(made.made())
    return out, 0


@rule("fused.lstm_layer.backward")
def backward(memory: Memory, call: Call) -> Made:
    g, (input, weight_ih, weight_hh, counts, _, records, before), needs = call.args
    if counts not in memory.recurrent:
        raise Unknown("sequences of several lengths")
    size = weight_hh.spec.shape[1]
    layer = _Layer(memory, call, size, *memory.recurrent[counts])
    rows, batch, state = layer.rows, layer.batch, (layer.batch, size)
    columns = 2 if layer.groups % 2 == 0 else 1
    wide = columns * layer.lanes
    ours, begin = layer.given(g)
    back = layer.copy((size // wide, 4 * size, wide), layer.given(weight_hh), (wide, size, 1))
    of_hidden = layer.copy(state, (ours, begin + rows * size), (size, 1))
    of_cell = layer.copy(state, (ours, begin + (rows + batch) * size), (size, 1))
    gates = Var(Spec((rows, 4 * size), F32))
    operands = [(ours, begin), layer.given(records), back, of_hidden, (gates, 0), of_cell]
    oracle = functools.partial(_backward_in_python, layer, columns)
    layer.steps_of("backward", layer.steps + 1, operands, (3, 4, 5), columns, oracle)
    outs = iter(call.outs)
    wanted = [None if need is None else next(outs) for need in needs[:7]]
    _results(layer, wanted, gates, (input, weight_ih, before), (of_hidden, of_cell))
    return layer.made


def _results(
    layer: _Layer, wanted: Sequence[Var | None], gates: Var, others: tuple[Var, Var, Var], states: Sequence[Operand]
) -> None:
    """The gradients of the arguments, from those of what went into the gates."""
    input, weight, before = others
    products = {0: ("matmul", gates, weight), 3: ("matmul_tn", gates, input), 4: ("matmul_tn", gates, before)}
    for i, out in enumerate(wanted):
        if out is None:
            continue
        if i in products:
            op, a, b = products[i]
            layer.made.append(Call(op, (a, b), (out,), layer.call.site))
        elif i in (1, 2):
            layer.copy((layer.batch, layer.size), states[i - 1], (layer.size, 1), out, 0, (layer.size, 1))
        else:
            made = Builder(layer.memory, layer.call, gates.spec.shape, (0,))
            made.give(out, total("add", made.read(gates)), row_strides(out, gates.spec.shape, (0,)))
            layer.made.append(made.made())


# ---- the same on arrays


def _records(layer: _Layer, array: Any) -> Any:
    """(rows, groups, vectors of a record, lanes)."""
    return array[: layer.rows * layer.size * 6].reshape(layer.rows, layer.groups, 6, layer.lanes)


def _inputs_in_python(layer: _Layer, features: int, arrays: list[Any]) -> None:
    x = arrays[0][: layer.rows * features].reshape(layer.rows, features)
    weights = arrays[1][: 4 * layer.size * features].reshape(layer.groups, features, 4, layer.lanes)
    _records(layer, arrays[2])[:, :, :4] = np.einsum("rk,gkjl->rgjl", x, weights)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _forward_in_python(layer: _Layer, arrays: list[Any], phase: int, offsets: Sequence[int]) -> None:
    n, size, start = layer.batch, layer.size, offsets[phase]
    records, here = _records(layer, arrays[0]), slice(start, start + n)
    weights = arrays[1][: 4 * size * size].reshape(layer.groups, size, 4, layer.lanes)
    bias = arrays[2][: 4 * size].reshape(4, layer.groups, layer.lanes).swapaxes(0, 1)
    states = arrays[3][: 2 * n * size].reshape(2, n, size)
    hidden, cell = states[phase % 2], arrays[6][: n * size].reshape(n, layer.groups, layer.lanes)
    sums = records[here, :, :4] + bias + np.einsum("rk,gkjl->rgjl", hidden, weights)
    i, f, o = (_sigmoid(sums[:, :, j]) for j in (0, 1, 3))
    g, old = np.tanh(sums[:, :, 2]), cell.copy()
    cell[...] = f * old + i * g
    records[here] = np.stack([i, f, g, o, old, np.tanh(cell)], 2)
    for array, value in ((arrays[5], hidden), (arrays[4], (o * np.tanh(cell)).reshape(n, size))):
        array[start * size : (start + n) * size] = value.ravel()
    states[1 - phase % 2] = (o * np.tanh(cell)).reshape(n, size)


def _backward_in_python(layer: _Layer, columns: int, arrays: list[Any], phase: int, offsets: Sequence[int]) -> None:
    n, size = layer.batch, layer.size
    gates = arrays[4][: layer.rows * 4 * size].reshape(layer.rows, 4 * size)
    gh, gc = (arrays[k][: n * size].reshape(n, size) for k in (3, 5))
    if phase:
        wide = columns * layer.lanes
        weights = (
            arrays[2][: 4 * size * size].reshape(size // wide, 4 * size, wide).swapaxes(0, 1).reshape(4 * size, size)
        )
        gh[...] = gates[offsets[phase - 1] : offsets[phase - 1] + n] @ weights
    if phase == layer.steps:
        return
    here = slice(offsets[phase], offsets[phase] + n)
    kept = _records(layer, arrays[1])[here].swapaxes(1, 2).reshape(n, 6, size)
    i, f, g, o, old, tanh = kept.swapaxes(0, 1)
    h = gh + arrays[0][: layer.rows * size].reshape(layer.rows, size)[here]
    c = h * o * (1 - tanh * tanh) + gc
    gc[...] = c * f
    parts = c * g * i * (1 - i), c * old * f * (1 - f), c * i * (1 - g * g), h * tanh * o * (1 - o)
    gates[here] = np.concatenate(parts, 1)
