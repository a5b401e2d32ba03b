"""Batch norm: mean and variance of each channel (dim 1), and what is made of them. Kernels are those of the rules below, for
eager calls and in compiled steps, where what is done with the result joins them.

    forward    the mean; the variance about it; (x - mean) / root                x is read three times
    backward   sums of g and of g (x - mean); what is left of g without these    g and x are read twice
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.scalars import Expression, Symbol
from genesis.cuda.arrays import CudaArray, empty, laid_so
from genesis.cuda.kernels import moves
from genesis.cuda.kernels.host import arrays_in
from genesis.cuda.kernels.lowering import MOST
from genesis.cuda.kernels.norms import ready_by_rule
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.runtime.streams import current
from genesis.jit.arguments import Var
from genesis.jit.lowering.layouts import dense
from genesis.jit.lowering.parts import Builder, Memory, Part, row_strides, rule, total, wide
from genesis.jit.program import Call
from genesis.ops.learning.norm import of_call

NORM, MOMENTS = "fused.standardized_channels.CudaArray", "fused.channel_moments.CudaArray"
RULED = [f"{name}{part}" for name in (NORM, MOMENTS) for part in ("", ".backward")]


def _over(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *range(2, len(shape)))


def _fits(input: Any, dim: Any, weight: Any, bias: Any, eps: float) -> bool:
    given = [p for p in (weight, bias) if p is not None]
    kind = input.dtype if weight is None else weight.dtype
    return (
        kernels_wanted() and 0 < input.size < MOST and len(input.shape) > 1 and tuple(dim) == _over(input.shape)
        and (input.dtype == F32 or input.dtype in HALVES) and min(strides_of(input)) >= 0
        and kind in (input.dtype, F32) and all([p.shape == input.shape[1:2] and p.dtype == kind for p in given])
    )  # fmt: skip


def _infer(input: Spec, dim: Any, weight: Any, bias: Any, eps: float) -> tuple[Spec, tuple[Any, ...]]:
    each = Spec(input.shape[1:2], F32)
    return input, ("input", each, each, None if weight is None else "weight", "eps")


def _like(x: CudaArray) -> Spec:
    """In the order of an array, without gaps."""
    return dense(Spec(x.shape, x.dtype, strides=x.strides))


@attach("standardized_channels", CudaArray, when=_fits, infer=_infer)
def standardized_channels(input: CudaArray, dim: Any, weight: Any, bias: Any, eps: float) -> Any:
    """The kernel of batch norm in training."""
    args = (input, dim, weight, bias, eps)
    ready = ready_by_rule(NORM, args, lambda: [_like(input), *[Spec(input.shape[1:2], F32)] * 2])
    each, count = empty(input.on, (2, input.shape[1]), F32), input.shape[1]
    mean, variance = (each.seen(row * count * F32.itemsize, (count,), (1,)) for row in (0, 1))
    out = laid_so(ready.outs[0], current(input.on))
    ready.into(args, [*arrays_in(args), out, mean, variance])
    here = of_call.moments
    if here is not None:
        here[id(input)] = input, each
    return out, (input, mean, variance, weight, eps)


@standardized_channels.backward(reads=("input", "weight"))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    input, weight = kept[0], kept[3]
    each = Spec(input.shape[1:2], input.dtype if weight is None else weight.dtype)
    outs = [s for s, need in zip((_like(input), each, each), needs, strict=True) if need]
    args = (moves.forward(g), kept, tuple([True if need else None for need in needs]))
    made = iter(ready_by_rule(f"{NORM}.backward", args, lambda: outs).run(args))
    return [next(made) if need else None for need in needs]


def _results(input: Spec, *_: Any) -> list[Spec]:
    """In programs results lie as the input does: NHWC stays so."""
    return [dense(input), *[Spec(input.shape[1:2], F32, input.device)] * 2]


def _gradients(g: Spec, kept: Any, wanted: Any) -> list[Spec]:
    (input, *_), (of_input, *others) = kept, wanted
    return [
        *([] if of_input is None else [dense(input)]),
        *[Spec(*each, g.device) for each in others if each is not None],
    ]


assert standardized_channels.forward_op is not None and standardized_channels.backward_op is not None
standardized_channels.forward_op.infer, standardized_channels.backward_op.infer = _results, _gradients


@attach(
    "channel_moments",
    CudaArray,
    when=lambda input: _fits(input, _over(input.shape), None, None, 0.0),
    infer=lambda input: (Spec((2, input.shape[1]), F32), ("input", Spec((2, input.shape[1]), F32))),
)
def channel_moments(input: CudaArray) -> Any:
    """The kernel of the statistics of channels, which the batch norm that asks for them may have found already."""
    here = of_call.moments
    if here is not None and id(input) in here:
        each = here[id(input)][1]
        return each, (input, each)
    args = (input,)
    out, kept = ready_by_rule(MOMENTS, args, lambda: [Spec((2, input.shape[1]), F32)] * 2).run(args)
    return out, (input, kept)


@channel_moments.backward(reads=("input",))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    args = (moves.forward(g), kept, (True,))
    return ready_by_rule(f"{MOMENTS}.backward", args, lambda: [_like(kept[0])]).run(args)


# ---- rules


class _Channels(Builder):
    """A part over all elements of ``x``, of which those of a channel are a row."""

    def __init__(self, memory: Memory, call: Call, x: Var) -> None:
        super().__init__(memory, call, x.spec.shape, _over(x.spec.shape))
        self.n = math.prod(self.shape) / self.shape[1]

    def element(self, var: Var) -> Any:
        x = self.read(var)
        return x.astype(wide(x.dtype))

    def each(self, var: Var, row: int = 0) -> Any:
        """A number of each channel; of a matrix, from one of its rows."""
        *rest, step = self.memory.strides(var)
        read = self.memory.read(var, [step if d == 1 else 0 for d in range(len(self.shape))])
        self.reads.append(replace(read, offset=read.offset + (rest[0] * row if rest else 0)))
        return Symbol(Expression("x", (len(self.reads) - 1,), read.dtype)).astype(wide(read.dtype))

    def give_each(self, var: Var, value: Any) -> None:
        self.give(var, value, row_strides(var, self.shape, _over(self.shape)))


def _moments(memory: Memory, made: _Channels, x: Var, mean: Var, variance: Var) -> tuple[Any, Any]:
    """Give mean and variance; an element less the mean, and the variance."""
    value = made.element(x)
    middle = total("add", value) / made.n
    away = value - middle
    spread = total("add", away * away) / made.n
    made.give_each(mean, middle)
    made.give_each(variance, spread)
    memory.moments[x] = mean, variance
    return away, spread


@rule(NORM)
def forward(memory: Memory, call: Call) -> list[Part]:
    x, _, weight, bias, eps = call.args
    out, mean, variance = call.outs
    made = _Channels(memory, call, x)
    away, spread = _moments(memory, made, x, mean, variance)
    y = away * (1.0 / np.sqrt(spread + eps))
    y = y if weight is None else y * made.each(weight)
    made.give(out, y if bias is None else y + made.each(bias))
    return [made.made()]


@rule(f"{NORM}.backward")
def backward(memory: Memory, call: Call) -> list[Part]:
    g, (x, mean, variance, weight, eps), wanted = call.args
    outs, made = iter(call.outs), _Channels(memory, call, x)
    change, away = made.element(g), made.element(x) - made.each(mean)
    square = made.each(variance) + eps
    whole, along = total("add", change), total("add", change * away)
    if wanted[0] is not None:
        rest = change - whole / made.n - away * (along / made.n / square)
        scale = 1.0 / np.sqrt(square)
        made.give(next(outs), rest * (scale if weight is None else made.each(weight) * scale))
    if wanted[1] is not None:
        made.give_each(next(outs), along / np.sqrt(square))
    if wanted[2] is not None:
        made.give_each(next(outs), whole)
    return [made.made()]


@rule(MOMENTS)
def moments(memory: Memory, call: Call) -> list[Part]:
    """Mean and variance, which the norm of the same array may have computed already."""
    (x,), parts = call.args, []
    if x not in memory.moments:
        made = _Channels(memory, call, x)
        _moments(memory, made, x, *[Var(Spec(x.spec.shape[1:2], F32)) for _ in range(2)])
        parts.append(made.made())
    both = Builder(memory, call, call.outs[0].spec.shape)
    mean, variance = [both.read(v) for v in memory.moments[x]]
    for out in call.outs:
        both.give(out, np.where(both.count(0) == 0, mean, variance))
    return [*parts, both.made()]


@rule(f"{MOMENTS}.backward")
def moments_backward(memory: Memory, call: Call) -> list[Part]:
    g, (x, kept), _ = call.args
    made = _Channels(memory, call, x)
    away = made.element(x) - made.each(kept)
    made.give(call.outs[0], away * made.each(g, 1) * (2.0 / made.n) + made.each(g) / made.n)
    return [replace(made.made(), rows=None)]
