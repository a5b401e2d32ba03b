"""Layers of long short-term memory, of gated recurrent units, and without gates, as kernels: the loops of
`genesis.kernels.cpu.recurrent_code` with all sizes in the code.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from genesis.arrays.spec import Spec
from genesis.jit.arguments import Var
from genesis.jit.lowering.channels import sliced
from genesis.jit.lowering.convolutions import F32, ZERO, in_order, named
from genesis.jit.lowering.parts import Builder, Memory, Part, Unknown, rule, total
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.lowering.recurrent_cells import Sizes, backward_step, forward_step, products_of_inputs
from genesis.jit.program import Call
from genesis.jit.storage import Region
from genesis.kernels.cpu import recurrent_code as code
from genesis.kernels.cpu.recurrent import _target

KINDS = {"fused.lstm_layer": "lstm", "fused.gru_layer": "gru", "fused.rnn_layer": "tanh", "fused.rnn_layer.2": "relu"}
SHARES = 4  # of the hidden units of a step
SEQUENCES = 8  # of a chunk, where there are as many for several

Made = list[Part | Stage | Call]
Operand = tuple[Var, int]  # a root, and where in it the elements begin
_text = functools.cache(lambda which, kind, *options: getattr(code, which)(kind, _target(), *options))


class _Layer(Sizes):
    """A layer whose sequences have the same length, and what its kernels are made of. Chunks are ``parts`` of the sequences
    that need nothing of each other.
    """

    def __init__(self, memory: Memory, call: Call, kind: str, size: int, *steps: Any) -> None:
        super().__init__(kind, _target().lanes, size, *steps)
        self.memory, self.call, self.parts = memory, call, max(self.batch // SEQUENCES, 1)
        if size % self.lanes or not self.rows * size:
            raise Unknown("hidden units that do not fill vectors")
        self.made: Made = []

    def given(self, var: Var) -> Operand:
        return in_order(self.memory, self.call, var, self.made)  # type: ignore[arg-type]

    def copy(
        self, shape: Sequence[int], of: Operand, strides: Sequence[int], to: Var | None = None, begin: int = 0,
        own: Sequence[int] | None = None, dims: Sequence[int] | None = None,
    ) -> Operand:  # fmt: skip
        """Elements in another order, in memory of their own or in a part of a value; their sums over ``dims``."""
        made = Builder(self.memory, self.call, shape, dims)
        value = made.read(of[0], strides)
        made.reads[-1] = replace(made.reads[-1], offset=made.reads[-1].offset + of[1])
        var = to or Var(Spec(tuple(shape), F32))
        made.give(var, value if dims is None else total("add", value), own, begin, whole=to is None)
        self.made.append(made.made())
        return var, 0

    def call_of(self, op: str, *operands: Var, out: Var) -> None:
        self.made.append(Call(op, operands, (out,), self.call.site))

    def packed(self, weight: Operand, features: int) -> Operand:
        """As `genesis.kernels.cpu.recurrent.Layer.pack`."""
        shape = self.groups, features, self.gates, self.lanes
        return self.copy(shape, weight, (self.lanes * features, 1, self.size * features, features))

    def columns(self, gates: Var, first: int) -> Var:
        """A view of what was stored of each row, from the hidden units of one gate on."""
        view = Var(Spec((self.rows, self.gates * self.size), F32))
        self.memory.regions[view] = Region(gates, first * self.size * F32.itemsize, (self.stored * self.size, 1))
        return view

    def steps_of(
        self, which: str, count: int, operands: Sequence[Operand], writes: Sequence[int], columns: int, oracle: Any
    ) -> None:
        """The steps: one kernel, whose chunks are sequences that need nothing of each other; where these are few, a phase
        for each step, whose chunks are hidden units.
        """
        phases = [range(count)] if self.parts > 1 else [range(p, p + 1) for p in range(count)]
        shares = 1 if self.parts > 1 else min(SHARES, self.groups // columns)
        text = _text(which, self.kind, *([True] if which == "forward" else [columns, True]))
        offsets = self.offsets((which == "backward") != self.reverse)
        sizes = self.steps, self.size, self.size, self.batch, self.parts, shares
        own = f"{self.kind}_{which}_{named(text)}"
        for some in phases:
            wrapper = _wrapper(own, offsets, self.batch, [n for _, n in operands], sizes, some)
            name = named(text + wrapper)
            whole = f"{text.replace(f'@{which}(', f'@{own}(')}\n{wrapper}".replace("@NAME", f"@{name}")

            def python(arrays: list[Any], chunk: int, some: range = some) -> None:
                if not chunk:
                    given = [a[offset:] for a, (_, offset) in zip(arrays, operands, strict=True)]
                    for phase in some:
                        oracle(self, given, phase, offsets)

            kernel = Kernel(name, whole, self.parts * shares, frozenset(writes), python=python)
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


@rule(*KINDS)
def forward(memory: Memory, call: Call) -> Made:
    kind = KINDS[call.op]
    (input, *given), rest = call.args[: 2 + (kind == "lstm")], call.args[2 + (kind == "lstm") :]
    weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes, reverse = rest[:6]
    size, batch, steps = weight_hh.spec.shape[1], batch_sizes[0], len(batch_sizes)
    if set(batch_sizes) != {batch} or len(call.outs) != 5:
        raise Unknown("sequences of several lengths")
    layer = _Layer(memory, call, kind, size, steps, batch, bool(reverse))
    result, counts, offsets, records, before = call.outs
    memory.recurrent[counts] = steps, batch, layer.reverse
    layer.made.append(_sequences(layer, counts, offsets))
    features, state = input.spec.shape[1], (batch, size)
    of_input, of_state = (layer.packed(layer.given(w), w.spec.shape[1]) for w in (weight_ih, weight_hh))
    bias = _bias(layer, bias_ih, bias_hh)
    states = Var(Spec((2, *state), F32))
    layer.copy(state, layer.given(given[0]), (size, 1), states, 0, (size, 1))
    cells = [layer.copy(state, layer.given(s), (size, 1)) for s in given[1:]]
    operands = [layer.given(input), of_input, (records, 0)]
    oracle = functools.partial(products_of_inputs, layer, features)
    text = _text("inputs", kind, True)
    layer.made.append(sliced(text, "inputs", operands, layer.rows, (features, size), (2,), oracle))
    operands = [(records, 0), of_state, bias, (states, 0), (result, 0), (before, 0), *cells]
    layer.steps_of("forward", steps, operands, (0, *range(3, len(operands))), 1, forward_step)
    for i, last in enumerate([(states, steps % 2 * batch * size), *cells]):
        layer.copy(state, last, (size, 1), result, (layer.rows + i * batch) * size, (size, 1))
    return layer.made


def _sequences(layer: _Layer, counts: Var, offsets: Var) -> Part:
    """How many rows each step has, and where they begin: what a backward in another program asks for."""
    made = Builder(layer.memory, layer.call, (layer.steps,))
    step = made.count(0)
    made.give(counts, step * 0 + layer.batch)
    made.give(offsets, (step * -1 + (layer.steps - 1) if layer.reverse else step) * layer.batch)
    return made.made()


def _bias(layer: _Layer, ours: Var | None, theirs: Var | None) -> Operand:
    """What is added to each gate; for the last gate of a GRU that of the recurrent part comes after."""
    size = layer.size
    out = Var(Spec((layer.biases * size,), F32))

    def add(biases: Sequence[Var | None], first: int, gates: int, to: int) -> None:
        made = Builder(layer.memory, layer.call, (gates * size,))
        values = []
        for bias in biases:
            if bias is not None:
                values.append(made.read(bias, layer.memory.strides(bias)))
                step = made.reads[-1].strides[0]
                made.reads[-1] = replace(made.reads[-1], offset=made.reads[-1].offset + first * size * step)
        value = functools.reduce(lambda a, b: a + b, values) if values else ZERO
        made.give(out, value, (1,), to * size, whole=gates == layer.biases)
        layer.made.append(made.made())

    if layer.kind == "gru":
        add((ours, theirs), 0, 2, 0)
        add((ours,), 2, 1, 2)
        add((theirs,), 2, 1, 3)
    else:
        add((ours, theirs), 0, layer.gates, 0)
    return out, 0


@rule(*[f"{name}.backward" for name in KINDS])
def backward(memory: Memory, call: Call) -> Made:
    kind = KINDS[call.op.removesuffix(".backward")]
    g, (input, weight_ih, weight_hh, counts, _, records, before), needs = call.args
    if counts not in memory.recurrent:
        raise Unknown("sequences of several lengths")
    size = weight_hh.spec.shape[1]
    layer = _Layer(memory, call, kind, size, *memory.recurrent[counts])
    rows, batch, state = layer.rows, layer.batch, (layer.batch, size)
    columns = _target().columns_back(layer.groups, SEQUENCES)
    wide = columns * layer.lanes
    ours, begin = layer.given(g)
    back = layer.copy((size // wide, layer.gates * size, wide), layer.given(weight_hh), (wide, size, 1))
    of_states = [
        layer.copy(state, (ours, begin + (rows + i * batch) * size), (size, 1)) for i in range(1 + (kind == "lstm"))
    ]
    gates, sums = (Var(Spec((n, layer.stored * size), F32)) for n in (rows, layer.parts))
    operands = [(ours, begin), layer.given(records), back, of_states[0], (gates, 0), *of_states[1:]]
    writes = [*range(3, len(operands)), len(operands) + (kind == "gru")]
    operands += [layer.given(before)] if kind == "gru" else []
    operands.append((sums, 0))
    oracle = functools.partial(backward_step, columns=columns, parts=layer.parts)
    layer.steps_of("backward", layer.steps + 1, operands, writes, columns, oracle)
    outs = iter(call.outs)
    wanted = [None if need is None else next(outs) for need in needs[: 5 + len(of_states)]]
    _results(layer, wanted, gates, sums, (input, weight_ih, before), of_states)
    return layer.made


def _results(
    layer: _Layer,
    wanted: Sequence[Var | None],
    gates: Var,
    sums: Var,
    others: tuple[Var, Var, Var],
    states: Sequence[Operand],
) -> None:
    """The gradients of the arguments, from those of what went into the gates and their sums over the steps."""
    input, weight, before = others
    size, (of_input, *of_states) = layer.size, wanted[: 1 + len(states)]
    of_weight, of_recurrent, of_bias, of_recurrent_bias = wanted[1 + len(states) :]
    ours, theirs = layer.columns(gates, 0), layer.columns(gates, layer.stored - layer.gates)
    if of_input is not None:
        layer.call_of("matmul", ours, _as_stored(layer, weight), out=of_input)
    for out, of in zip(of_states, states, strict=True):
        if out is not None:
            layer.copy((layer.batch, size), of, (size, 1), out, 0, (size, 1))
    if of_weight is not None:
        product = of_weight if len(layer.pieces) == 1 else Var(of_weight.spec)
        layer.call_of("matmul_tn", ours, input, out=product)
        if product is not of_weight:
            features = weight.spec.shape[1]
            for stored, own, count in layer.pieces:
                shape, strides = (count * size, features), (features, 1)
                layer.copy(
                    shape, (product, stored * size * features), strides, of_weight, own * size * features, strides
                )
    if of_recurrent is not None:
        layer.call_of("matmul_tn", theirs, before, out=of_recurrent)
    for out, pieces in ((of_bias, layer.pieces), (of_recurrent_bias, [(layer.stored - layer.gates, 0, layer.gates)])):
        for stored, own, count in pieces if out is not None else ():
            shape, strides = (layer.parts, count * size), (layer.stored * size, 1)
            layer.copy(shape, (sums, stored * size), strides, out, own * size, (0, 1), (0,))


def _as_stored(layer: _Layer, weight: Var) -> Var:
    """The rows of a weight in the order in which gradients of gates are stored."""
    if len(layer.pieces) == 1:
        return weight
    (root, begin), features, size = layer.given(weight), weight.spec.shape[1], layer.size
    to = Var(Spec(weight.spec.shape, F32))
    for stored, own, count in layer.pieces:
        at, strides = (root, begin + own * size * features), (features, 1)
        layer.copy((count * size, features), at, strides, to, stored * size * features, strides)
    return to
