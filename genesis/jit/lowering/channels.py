"""Batch norm, group norm and the largest of windows as kernels: the loops of `genesis.kernels.llvm.channels`, `columns`,
`groups` and `windows`, with all sizes in the code. A chunk is some channels, or rows of images.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.convolutions import F32, array_of, in_order, named
from genesis.jit.lowering.parts import Builder, Memory, Part, Unknown, rule, total
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.cpu import group_norm as group_norms
from genesis.kernels.cpu.channel_norm import code_of, sizes_of
from genesis.kernels.cpu.pooling import _name_pairs
from genesis.kernels.llvm import groups, loops, windows

CHUNKS = 16

Oracle = Callable[[list[Any]], None]


def sliced(
    code: str, name: str, operands: Sequence[tuple[Var, int]], count: int, sizes: Sequence[int], writes: Sequence[int],
    oracle: Oracle, constant: float | None = None,
) -> Stage:  # fmt: skip
    """The kernel that calls a function for slices of ``range(count)``.

    Args:
        operands: the roots of its arrays, and where these begin in them
        sizes: its integers, behind the first and the last of a slice
        oracle: the same on flat arrays, all at once
        constant: a number whose address comes behind the arrays
    """
    per = -(-count // min(count, CHUNKS))
    lines = [
        f"  %at{i} = getelementptr ptr, ptr %addresses, i64 {i}\n  %a{i} = load ptr, ptr %at{i}\n"
        f"  %p{i} = getelementptr float, ptr %a{i}, i64 {offset}"
        for i, (_, offset) in enumerate(operands)
    ]
    given = [f"ptr %p{i}" for i in range(len(operands))]
    head = ""
    if constant is not None:
        head = f"@NAME_number = internal constant double 0x{struct.pack('>d', constant).hex().upper()}\n"
        given.append("ptr @NAME_number")
    given += ["i64 %first", "i64 %last", *[f"i64 {n}" for n in sizes]]
    own = f"{name}_{named(code)}"
    lines += [
        f"  %first = mul i64 %chunk, {per}\n  %end = add i64 %first, {per}",
        f"  %past = icmp slt i64 %end, {count}\n  %last = select i1 %past, i64 %end, i64 {count}",
        f"  call void @{own}({', '.join(given)})\n  ret void\n}}",
    ]
    text = "\n".join([f"{head}define void @NAME(ptr %addresses, i64 %chunk) {{\nentry:", *lines])
    kernel = named(code + text)
    code = f"{code.replace(f'@{name}(', f'@{own}(')}\n{text}".replace("@NAME", f"@{kernel}")

    def python(arrays: list[Any], chunk: int) -> None:
        if not chunk:
            oracle([array[offset:] for array, (_, offset) in zip(arrays, operands, strict=True)])

    made = Kernel(kernel, code, -(-count // per), frozenset(writes), python=python)
    return Stage(made, tuple([root for root, _ in operands]))


# ---- batch norm


def _code(shape: Sequence[int]) -> tuple[ModuleType, tuple[int, ...]]:
    """The module that has the functions, and their integers, behind the first and the last."""
    code = code_of(shape)
    if code is None or not math.prod(shape):
        raise Unknown("images smaller than a vector")
    return code, sizes_of(shape)


def _each(
    memory: Memory, call: Call, var: Var | None, many: int, number: int, parts: list[Part | Stage]
) -> tuple[Var, int]:
    """A number for each channel, or the same for all."""
    if var is not None:
        return array_of(memory, var)
    same = Var(Spec((many,), F32))
    made = Builder(memory, call, (many,))
    made.give(same, Symbol(Expression("number", (number,), F32)))
    parts.append(made.made())
    return same, 0


@rule("fused.standardized_channels")
def forward(memory: Memory, call: Call) -> list[Part | Stage]:
    x, dim, weight, bias, eps = call.args
    shape = x.spec.shape
    if tuple(dim) != (0, *range(2, len(shape))):
        raise Unknown("a norm of each example")
    parts: list[Part | Stage] = []
    (code, sizes), many = _code(shape), shape[1]
    out, rows, root = [(v, 0) for v in call.outs[:3]]
    w, b = _each(memory, call, weight, many, 1, parts), _each(memory, call, bias, many, 0, parts)
    moments = Var(Spec((2, many), F32))
    memory.moments[x] = moments

    def oracle(arrays: list[Any]) -> None:
        a, scale, add, ours, result, deviation, stats = arrays
        a = a[: math.prod(shape)].reshape(shape[0], many, -1).astype(np.float64)
        mean, variance = a.mean((0, 2)), a.var((0, 2))
        spread = np.sqrt(variance + eps)
        values = (a - mean[:, None]) / spread[:, None]
        ours[: a.size] = values.ravel()
        result[: a.size] = (values * scale[:many, None] + add[:many, None]).ravel()
        deviation[:many], stats[: 2 * many] = spread, np.concatenate([mean, variance])

    operands = [in_order(memory, call, x, parts), w, b, rows, out, root, (moments, 0)]
    text = code.forward(loops.width() // 4)
    return [*parts, sliced(text, "forward", operands, many, sizes, (3, 4, 5, 6), oracle, eps)]


@rule("fused.channel_moments")
def moments(memory: Memory, call: Call) -> list[Part | Stage]:
    """Mean and variance, which the norm of the same array has computed already, or not."""
    made: list[Part | Stage] = []
    (x,), out = call.args, call.outs[0]
    shape, source = x.spec.shape, memory.moments.get(x)
    if source is None:

        def oracle(arrays: list[Any]) -> None:
            a = arrays[0][: math.prod(shape)].reshape(shape[0], shape[1], -1).astype(np.float64)
            arrays[1][: 2 * shape[1]] = np.concatenate([a.mean((0, 2)), a.var((0, 2))])

        source = out
        code, sizes = _code(shape)
        operands = [in_order(memory, call, x, made), (out, 0)]
        made.append(sliced(code.moments(loops.width() // 4), "moments", operands, shape[1], sizes, (1,), oracle))
    for var in call.outs:
        if var is not source:
            copy = Builder(memory, call, var.spec.shape)
            copy.give(var, copy.read(source))
            made.append(copy.made())
    return made


@rule("fused.standardized_channels.backward")
def backward(memory: Memory, call: Call) -> list[Part | Stage]:
    g, (rows, root, weight), needs = call.args
    parts: list[Part | Stage] = []
    shape, many = rows.spec.shape, rows.spec.shape[1]
    if root.spec.shape != (1, many, *[1] * (len(shape) - 2)):
        raise Unknown("a norm of each example")
    (code, sizes), outs = _code(shape), iter(call.outs)
    specs = rows.spec, Spec((many,), F32), Spec((many,), F32)
    results = [
        (Var(Spec(spec.shape, F32)) if need is None else next(outs), 0) for need, spec in zip(needs, specs, strict=True)
    ]

    def oracle(arrays: list[Any]) -> None:
        a, b = (x[: math.prod(shape)].reshape(shape[0], many, -1).astype(np.float64) for x in arrays[:2])
        scale = arrays[2][:many].astype(np.float64) / arrays[3][:many]
        along, total = (a * b).sum((0, 2)), a.sum((0, 2))
        rest = a - (b * along[:, None] + total[:, None]) / (a.size // many)
        arrays[4][: a.size] = (rest * scale[:, None]).ravel()
        arrays[5][:many], arrays[6][:many] = along, total

    given = [
        in_order(memory, call, g, parts),
        array_of(memory, rows),
        _each(memory, call, weight, many, 1, parts),
        array_of(memory, root),
    ]
    text = code.backward(loops.width() // 4)
    return [*parts, sliced(text, "backward", [*given, *results], many, sizes, (4, 5, 6), oracle)]


# ---- group norm


def _group_sizes(shape: Sequence[int], num_groups: int) -> tuple[int, tuple[int, ...]]:
    """How many places the functions of `groups` compute at once, and their integers behind the first and the last."""
    lanes = group_norms.lanes_of(shape)
    if not lanes or not math.prod(shape):
        raise Unknown("many images smaller than a vector")
    return lanes, group_norms.sizes_of(shape, num_groups)


@rule("fused.group_norm")
def group_norm(memory: Memory, call: Call) -> list[Part | Stage]:
    x, num_groups, weight, bias, eps = call.args
    shape, parts = x.spec.shape, []
    w, b = (_each(memory, call, v, shape[1], i, parts) for v, i in ((weight, 1), (bias, 0)))

    def oracle(arrays: list[Any]) -> None:
        a, scale, add, ours, result, deviation = arrays
        a = a[: math.prod(shape)].reshape(shape[0] * num_groups, -1).astype(np.float64)
        spread = np.sqrt(a.var(1) + eps)
        values = ((a - a.mean(1, keepdims=True)) / spread[:, None]).reshape(shape[0], shape[1], -1)
        ours[: a.size] = values.ravel()
        result[: a.size] = (values * scale[: shape[1], None] + add[: shape[1], None]).ravel()
        deviation[: len(a)] = spread

    out, rows, root = [(v, 0) for v in call.outs]
    operands = [in_order(memory, call, x, parts), w, b, rows, out, root]
    lanes, sizes = _group_sizes(shape, num_groups)
    return [
        *parts,
        sliced(groups.forward(lanes), "forward", operands, shape[0] * num_groups, sizes, (3, 4, 5), oracle, eps),
    ]


@rule("fused.group_norm.backward")
def group_norm_backward(memory: Memory, call: Call) -> list[Part | Stage]:
    """The gradient, and for each channel of each example the sums that are added over the examples then."""
    g, (rows, root, weight), needs = call.args
    shape, (many, num_groups), parts = rows.spec.shape, root.spec.shape, []
    outs, channels = iter(call.outs), shape[:2]
    gx = next(outs) if needs[0] is not None else Var(Spec(shape, F32))
    sums = [Var(Spec(channels, F32)) for _ in range(2)]

    def oracle(arrays: list[Any]) -> None:
        a, b = (x[: math.prod(shape)].reshape(*channels, -1).astype(np.float64) for x in arrays[:2])
        change = (a * arrays[2][: shape[1], None]).reshape(many * num_groups, -1)
        ours = b.reshape(change.shape)
        rest = change - change.mean(1, keepdims=True) - ours * (change * ours).mean(1, keepdims=True)
        arrays[4][: a.size] = (rest / arrays[3][: len(rest), None]).ravel()
        arrays[5][: many * shape[1]], arrays[6][: many * shape[1]] = (a * b).sum(2).ravel(), a.sum(2).ravel()

    given = [
        in_order(memory, call, g, parts),
        array_of(memory, rows),
        _each(memory, call, weight, shape[1], 1, parts),
        array_of(memory, root),
    ]
    operands = [*given, *[(v, 0) for v in (gx, *sums)]]
    lanes, sizes = _group_sizes(shape, num_groups)
    parts.append(sliced(groups.backward(lanes), "backward", operands, many * num_groups, sizes, (4, 5, 6), oracle))
    for each, need in zip(sums, needs[1:], strict=True):
        if need is not None:
            made = Builder(memory, call, channels, (0,))
            made.give(next(outs), total("add", made.read(each)), [0, 1])
            parts.append(made.made())
    return parts


# ---- the largest of windows of two rows and columns


def _pairs(shape: Sequence[int], rules: Any) -> tuple[int, int]:
    """How many rows windows have in all images, and how many there are in a row."""
    if not _name_pairs(rules) or not math.prod(shape):
        raise Unknown("windows of other sizes than 2 x 2")
    return math.prod(shape[:-1]) // 2, shape[-1] // 2


def _four(x: Any, shape: Sequence[int]) -> Any:
    """The elements of each window along the last dimension, in their order."""
    cut = x[: math.prod(shape)].reshape(-1, shape[-2] // 2, 2, shape[-1] // 2, 2)
    return cut.swapaxes(2, 3).reshape(*cut.shape[:2], shape[-1] // 2, 4)


@rule("fused.largest")
def largest(memory: Memory, call: Call) -> list[Part | Stage]:
    x, rules = call.args
    shape, (out, has_nan) = x.spec.shape, call.outs
    count, columns = _pairs(shape, rules)

    def oracle(arrays: list[Any]) -> None:
        arrays[1][: count * columns] = _four(arrays[0], shape).max(-1).ravel()

    code = windows.pairs(math.gcd(loops.width() // 4, columns))
    flag = Builder(memory, call, ())
    flag.give(has_nan, Symbol(Expression("number", (0,), has_nan.spec.dtype)))
    parts: list[Part | Stage] = [flag.made()]
    operands = [in_order(memory, call, x, parts), (out, 0)]
    return [*parts, sliced(code, "pairs", operands, count, (columns,), (1,), oracle)]


@rule("fused.largest.backward")
def largest_gradient(memory: Memory, call: Call) -> list[Part | Stage]:
    g, (x, _, rules), _needs = call.args
    shape = x.spec.shape
    count, columns = _pairs(shape, rules)

    def oracle(arrays: list[Any]) -> None:
        four = _four(arrays[0], shape)
        nan = np.isnan(four)
        which = np.where(nan.any(-1), 3 - nan[..., ::-1].argmax(-1), four.argmax(-1))
        part = arrays[1][: which.size].reshape(which.shape)
        gradients = np.where(np.arange(4) == which[..., None], part[..., None], 0)
        apart = gradients.reshape(*which.shape, 2, 2).swapaxes(2, 3)
        arrays[2][: gradients.size] = apart.ravel()

    code = windows.pairs_gradient(math.gcd(loops.width() // 4, columns))
    parts: list[Part | Stage] = []
    operands = [*[in_order(memory, call, v, parts) for v in (x, g)], (call.outs[0], 0)]
    return [*parts, sliced(code, "pairs_gradient", operands, count, (columns,), (2,), oracle)]
