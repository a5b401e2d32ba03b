"""Parts of composites that have kernels of their own: activations with their gradients, and cross entropy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import (
    F64,
    I64,
    Builder,
    Check,
    Memory,
    Part,
    Unknown,
    in_order_of_memory,
    row_strides,
    rule,
    total,
)
from genesis.jit.program import Call

# op: the function for its options, and where the number that it takes is among them
ACTIVATIONS: dict[str, tuple[Callable[..., str | None], int | None]] = {
    "gelu": ({"none": "gelu", "tanh": "gelu_tanh"}.get, None),
    "hardsigmoid": (lambda *_: "hardsigmoid", None),
    "hardswish": (lambda *_: "hardswish", None),
    "leaky_relu": (lambda *_: "leaky_relu", 0),
    "elu": (lambda *_: "elu", 0),
    "celu": (lambda *_: "celu", 0),
}


def _function(name: str, options: tuple[Any, ...]) -> tuple[str, list[Any]]:
    choose, number = ACTIVATIONS[name]
    function = choose(*options)
    if function is None:
        raise Unknown(f"{name} of these options")
    return function, [] if number is None else [options[number]]


def _called(function: str, operands: list[Any], numbers: list[Any], dtype: Any) -> Any:
    args = [x.astype(dtype).expression for x in operands]
    args += [Expression("number", (float(x),), np.dtype(dtype)) for x in numbers]
    return Symbol(Expression(function, tuple(args), np.dtype(dtype)))


@rule(*[f"fused.{name}" for name in ACTIVATIONS])
def activation(memory: Memory, call: Call) -> list[Part]:
    function, numbers = _function(call.op.split(".")[1], call.args[1:])
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.along(in_order_of_memory(out))
    made.give(out, _called(function, [made.read(call.args[0])], numbers, out.spec.dtype))
    return [made.made()]


@rule(*[f"fused.{name}.backward" for name in ACTIVATIONS])
def activation_gradient(memory: Memory, call: Call) -> list[Part]:
    g, (x, *options), _ = call.args
    function, numbers = _function(call.op.split(".")[1], tuple(options))
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.give(out, _called(f"{function}_gradient", [made.read(g), made.read(x)], numbers, out.spec.dtype))
    return [made.made()]


@rule("fused.prelu")
def prelu(memory: Memory, call: Call) -> list[Part]:
    (x, weight), out = call.args, call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    slope = made.read(weight, _of_channels(memory, weight, x))
    made.give(out, _called("leaky_relu", [made.read(x), slope], [], out.spec.dtype))
    return [made.made()]


@rule("fused.prelu.backward")
def prelu_gradient(memory: Memory, call: Call) -> list[Part]:
    """Of the input, and of the slopes: sums over the rest of the dimensions."""
    g, (x, weight), wanted = call.args
    parts, outs = [], iter(call.outs)
    if wanted[0]:
        out = next(outs)
        made = Builder(memory, call, x.spec.shape)
        slope = made.read(weight, _of_channels(memory, weight, x))
        made.give(out, _called("leaky_relu_gradient", [made.read(g), made.read(x), slope], [], out.spec.dtype))
        parts.append(made.made())
    if wanted[1]:
        out = next(outs)
        strides = _of_channels(memory, out, x)
        made = Builder(memory, call, x.spec.shape, [i for i, step in enumerate(strides) if not step])
        value = made.read(x)
        made.give(out, total("add", np.where(value > 0, 0, value) * made.read(g)), strides)
        parts.append(made.made())
    return parts


def _of_channels(memory: Memory, weight: Var, x: Var) -> list[int]:
    """The strides of numbers of channels, or of one number, along the dimensions of ``x``."""
    many = math.prod(weight.spec.shape) > 1
    return [memory.strides(weight)[0] if many and i == 1 else 0 for i in range(len(x.spec.shape))]


# ---- batch norm in evaluation


def _scale(
    memory: Memory, call: Call, root: Var, weight: Var | None, of_root: Callable[[Builder], Any]
) -> tuple[Var, Part]:
    """A weight for each channel over the root of its variance; the part gives the root, too, if it is new."""
    made, scale = Builder(memory, call, root.spec.shape), Var(root.spec)
    spread = of_root(made)
    made.give(scale, (1.0 if weight is None else made.read(weight)) / spread)
    return scale, made.made()


@rule("fused.normalized_channels")
def normalized_channels(memory: Memory, call: Call) -> list[Part]:
    x, mean, variance, weight, bias, eps = call.args
    out, root = call.outs

    def deviation(made: Builder) -> Any:
        made.give(root, np.sqrt(made.read(variance) + eps))
        return np.sqrt(made.read(variance) + eps)

    scale, first = _scale(memory, call, root, weight, deviation)
    made = Builder(memory, call, x.spec.shape)
    made.along(in_order_of_memory(out))
    value = (made.read(x) - _channel(made, mean, x)) * _channel(made, scale, x)
    made.give(out, value if bias is None else value + _channel(made, bias, x))
    return [first, made.made()]


def _channel(made: Builder, numbers: Var, x: Var) -> Any:
    """The number of each element's channel."""
    step = made.memory.strides(numbers)[0]
    return made.read(numbers, [step if i == 1 else 0 for i in range(len(x.spec.shape))])


@rule("fused.normalized_channels.backward")
def normalized_channels_gradient(memory: Memory, call: Call) -> list[Part]:
    """Of the input, and of numbers of channels: sums over the rest of the dimensions."""
    g, (x, mean, root, weight), wanted = call.args
    outs, shape, channels = iter(call.outs), x.spec.shape, root.spec.shape
    rest = [i for i in range(len(shape)) if i != 1]
    scale, first = _scale(memory, call, root, weight, lambda made: made.read(root))
    parts = [first]
    if wanted[0] is not None:
        made = Builder(memory, call, shape)
        made.give(next(outs), made.read(g) * _channel(made, scale, x))
        parts.append(made.made())
    total_of_g, along = Var(root.spec), Var(root.spec)
    for var, with_x in ((total_of_g, False), (along, True)):
        made = Builder(memory, call, shape, rest)
        value = made.read(g)
        if with_x:
            value = value * (made.read(x) - _channel(made, mean, x))
        made.give(var, total("add", value), [int(i == 1) for i in range(len(shape))])
        parts.append(made.made())
    for i in (1, 2, 3, 4):
        if wanted[i] is not None:
            made = Builder(memory, call, channels)
            sums, a, s, r = (made.read(v) for v in (total_of_g, along, scale, root))
            made.give(next(outs), {1: -s * sums, 2: a * s / (-2 * r * r), 3: a / r, 4: sums}[i])
            parts.append(made.made())
    return parts


@rule("fused.silu", "fused.silu.2")
def silu(memory: Memory, call: Call) -> list[Part]:
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.along(in_order_of_memory(out))
    x = made.read(call.args[0])
    made.give(out, _called("silu", [x], [], out.spec.dtype))
    if len(call.outs) == 2:
        made.give(call.outs[1], _called("sigmoid", [x], [], out.spec.dtype))
    return [made.made()]


@rule("fused.silu.backward", "fused.silu.2.backward")
def silu_gradient(memory: Memory, call: Call) -> list[Part]:
    g, kept, _ = call.args
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    g = made.read(g)
    if isinstance(kept[1], Var):  # the gate, and the input
        s, x = (made.read(v) for v in kept)
        value = ((1 - s) * x + 1) * s * g
    else:
        value = _called("silu_gradient", [g, made.read(kept[0])], [], out.spec.dtype)
    made.give(out, value)
    return [made.made()]


@rule("fused.cross_entropy")
def cross_entropy(memory: Memory, call: Call) -> list[Part | Call]:
    """The mean loss, the softmax, the classes, and the share of each row in the mean."""
    x, target, _, _, ignored, *_ = call.args
    out, shares, classes, share = call.outs
    (n, c), count, losses = x.spec.shape, Var(Spec((), F64)), Var(Spec(x.spec.shape[:1], F64))
    checked = Var(Spec((n,), I64))
    before = _rows_that_count(memory, call, (target, ignored, c), (count, checked), classes)
    rows = _losses(memory, call, (x, target, checked, count, ignored), (shares, share, losses))
    return [*before, rows, _mean_loss(memory, call, losses, count, out)]


@rule("cross_entropy.before")
def rows_that_count(memory: Memory, call: Call) -> list[Part | Call]:
    """How many rows of a cross entropy there are, and their classes."""
    return _rows_that_count(memory, call, call.args, call.outs, Var(call.outs[1].spec))


@rule("cross_entropy.rows")
def losses_of_rows(memory: Memory, call: Call) -> list[Part]:
    """The softmax, the share in the mean and the loss of each row."""
    return [_losses(memory, call, call.args, call.outs)]


@rule("cross_entropy.after")
def mean_loss(memory: Memory, call: Call) -> list[Part]:
    """The mean of all losses."""
    return [_mean_loss(memory, call, *call.args, *call.outs)]


def _rows_that_count(
    memory: Memory, call: Call, args: Sequence[Any], outs: Sequence[Var], classes: Var
) -> list[Part | Call]:
    """That classes are indices is checked before, or on the host."""
    (target, ignored, c), (count, checked), rows = args, outs, args[0].spec.shape
    first = Builder(memory, call, rows, (0,))
    counts = first.read(target) != ignored
    first.give(count, total("add", counts.astype(F64)), (0,))
    each = Builder(memory, call, rows)
    label = each.read(target)
    each.give(classes, np.where(label != ignored, label, 0).astype(I64))
    if Check(target, c, ignored=ignored) in memory.checked:
        each.give(checked, np.where(label != ignored, label, 0).astype(I64))
        return [first.made(), each.made()]
    check = Call("check_range", (classes, "cross_entropy", c, f"{c} classes"), (checked,), call.site)
    return [first.made(), each.made(), check]


def _losses(memory: Memory, call: Call, args: Sequence[Any], outs: Sequence[Var]) -> Part:
    (x, target, checked, count, ignored), (shares, share, losses) = args, outs
    made = Builder(memory, call, x.spec.shape, (1,))
    value, label, own = made.read(x).astype(F64), made.read(target, _column(memory, target)), made.read(checked, (1, 0))
    all_rows = made.read(count, (0, 0))
    counts = label != ignored
    d = value - total("maximum", value)
    power = np.exp(d)
    sums = total("add", power)
    picked = total("add", np.where(made.count(1) == own, d, 0.0))
    made.give(shares, power / sums)
    made.give(share, counts.astype(F64) / np.maximum(all_rows, 1.0), (1, 0))
    made.give(losses, np.where(counts, np.log(sums) - picked, 0.0), (1, 0))
    return made.made()


def _mean_loss(memory: Memory, call: Call, losses: Var, count: Var, out: Var) -> Part:
    rows = losses.spec.shape
    last = Builder(memory, call, rows, (0,))
    last.give(out, total("add", last.read(losses)) / last.read(count, (0,)), row_strides(out, rows, (0,)))
    return last.made()


def _column(memory: Memory, target: Var) -> tuple[int, int]:
    return memory.strides(target)[0], 0


@rule("fused.cross_entropy.backward")
def cross_entropy_gradient(memory: Memory, call: Call) -> list[Part]:
    g, (shares, classes, share), _ = call.args
    made = Builder(memory, call, shares.spec.shape)
    p, own, part, scale = made.read(shares), made.read(classes, (1, 0)), made.read(share, (1, 0)), made.read(g)
    scale = part * scale
    value = p * scale - np.where(made.count(1) == own, scale, 0)
    made.give(call.outs[0], np.where(part == 0, 0, value))
    return [made.made()]


@rule("zeros_of_sum")
def zeros(memory: Memory, call: Call) -> list[Part]:
    """What a sum begins with."""
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.along(in_order_of_memory(out))
    made.give(out, Symbol(Expression("number", (0,), out.spec.dtype)))
    return [made.made()]
