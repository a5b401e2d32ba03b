"""Convolutions as kernels: the loops of `genesis.kernels.llvm.sliding` with all that is known of them in the code.

A convolution is a part that brings the weights in their order, and a kernel whose chunks are examples. The gradient for
the weight is a kernel that adds the products of some examples for each chunk, and a part that adds the chunks.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides, strides_of
from genesis.core.call.halves import HALVES
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import Builder, Memory, Part, Unknown, rule
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.cpu import convolution, sliding
from genesis.kernels.cpu.convolution import Shape
from genesis.kernels.llvm import loops, objects
from genesis.kernels.native.chunked import Calls, kernel, moved
from genesis.ops.spatial import convolution as ops
from genesis.ops.spatial.convolution import spread_sizes

F32 = np.dtype(np.float32)
ZERO = Symbol(Expression("number", (0,), F32))
CHUNKS = 8  # of a convolution, at most

_forward = functools.lru_cache(maxsize=128)(sliding._Forward)


def named(text: str) -> str:
    """The name of a kernel whose code this is."""
    return "k" + objects.name_of(text, suffix="")[:16]


def array_of(memory: Memory, var: Var) -> tuple[Var, int]:
    """The root of a value whose elements lie in order without gaps, and where they begin, in numbers."""
    read = memory.read(var, memory.strides(var))
    if read.dtype != F32:
        raise Unknown(f"{read.dtype.name} arrays")
    order = contiguous_strides(var.spec.shape)
    if any([n > 1 and s != t for n, s, t in zip(var.spec.shape, read.strides, order, strict=True)]):
        raise Unknown("elements that do not lie in order")
    return read.root, read.offset


def in_order(memory: Memory, call: Call, var: Var, parts: list[Part | Stage]) -> tuple[Var, int]:
    """`array_of` a value, or of a copy that one more part makes.

    Raises:
        Unknown: the copy would have fewer digits
    """
    if var.spec.dtype != F32 and var.spec.dtype not in HALVES:
        raise Unknown(f"{var.spec.dtype.name} arrays")
    try:
        return array_of(memory, var)
    except Unknown:
        copy = Var(Spec(var.spec.shape, F32))
        made = Builder(memory, call, var.spec.shape)
        made.give(copy, made.read(var))
        parts.append(made.made())
        return copy, 0


@rule("convolution")
def forward(memory: Memory, call: Call) -> list[Part | Stage]:
    x, w, bias, stride, padding, dilation, transposed, _extra, groups = call.args
    out = call.outs[0]
    array_of(memory, out)
    if 0 in (*out.spec.shape, *x.spec.shape, *w.spec.shape):
        raise Unknown("nothing to compute")
    count = x.spec.shape[2:] if transposed else out.spec.shape[2:]
    shape = Shape(tuple(w.spec.shape[2:]), stride, padding, dilation, groups, tuple(count))
    return (_transposed if transposed else _plain)(memory, call, x, w, bias, shape)


def _plain(memory: Memory, call: Call, x: Var, w: Var, bias: Var | None, shape: Shape) -> list[Part | Stage]:
    return _one(memory, call, x, _Weights(memory, w, shape.groups, False), bias, shape)


def _transposed(memory: Memory, call: Call, x: Var, w: Var, bias: Var | None, shape: Shape) -> list[Part | Stage]:
    """As `genesis.kernels.cpu.convolution` does it: a convolution with turned weights, or one for each phase."""
    out, weights = tuple(call.outs[0].spec.shape[2:]), _Weights(memory, w, shape.groups, True)
    padding = tuple([d * (k - 1) - p for k, d, p in zip(shape.kernel, shape.dilation, shape.padding, strict=True)])
    least = spread_sizes(shape.count, shape.kernel, shape.stride, shape.padding, shape.dilation, (0,) * len(out))
    if set(shape.stride) == {1} and min(padding) >= 0 and least == out:
        turned = shape._replace(padding=padding, count=out)
        return _one(memory, call, x, weights, bias, turned)
    if max(shape.stride) == 1:
        raise Unknown("a border that is no border of a convolution")
    made: list[Part | Stage] = []
    for phase in itertools.product(*map(range, shape.stride)):
        dims = [
            convolution._phase(*each)
            for each in zip(phase, shape.kernel, shape.stride, shape.padding, shape.dilation, out, strict=True)
        ]
        taps, padding, dilation, slices, count = zip(*dims, strict=True)
        some = weights.some(taps)
        if not min(count):
            continue
        if 0 in some.kernel:
            raise Unknown("results that no element of the kernel reaches")
        one = Shape(some.kernel, (1,) * len(out), padding, dilation, shape.groups, count)
        made += _one(memory, call, x, some, bias, one, slices)
    return made


class _Weights:
    """Weights as they are read: (groups, channels out, channels in, *kernel) of a group."""

    def __init__(self, memory: Memory, w: Var, groups: int, turned: bool) -> None:
        self.read = memory.read(w, memory.strides(w))
        if self.read.dtype != F32:
            raise Unknown(f"{self.read.dtype.name} weights")
        a, b, *self.kernel = w.spec.shape
        of_a, of_b, *self.steps = self.read.strides
        each = a // groups
        self.groups, self.offset, self.of_group = groups, self.read.offset, each * of_a
        (self.out, self.of_out), (self.inner, self.of_inner) = (
            ((b, of_b), (each, of_a)) if turned else ((each, of_a), (b, of_b))
        )
        if turned:
            self._flip()
        self.kernel = tuple(self.kernel)

    def _flip(self) -> None:
        self.offset += sum([(k - 1) * s for k, s in zip(self.kernel, self.steps, strict=True)])
        self.steps = [-s for s in self.steps]

    def some(self, taps: Sequence[slice]) -> _Weights:
        """Of turned weights those of some elements of the kernel, as these are before they are turned."""
        new = object.__new__(_Weights)
        new.__dict__.update(self.__dict__)
        new._flip()
        ranges = [range(k)[tap] for k, tap in zip(self.kernel, taps, strict=True)]
        new.kernel = tuple(map(len, ranges))
        new.offset += sum([(r.start if r else 0) * s for r, s in zip(ranges, new.steps, strict=True)])
        new.steps = [r.step * s for r, s in zip(ranges, new.steps, strict=True)]
        new._flip()
        return new

    def packed(self, memory: Memory, call: Call, rows: int, starts: Sequence[int]) -> tuple[list[Part], Var]:
        """The parts that write them as `sliding._packed` does, and where to."""
        shape = (self.groups, len(starts), self.inner, *self.kernel, rows)
        var = Var(Spec((math.prod(shape),), F32))
        order, parts = contiguous_strides(shape), []
        for first, many in _regular(starts, rows):
            made = Builder(memory, call, (self.groups, many, *shape[2:]))
            strides = (self.of_group, rows * self.of_out, self.of_inner, *self.steps, self.of_out)
            value = made.read(self.read.root, strides)
            made.reads[-1] = replace(made.reads[-1], offset=self.offset + starts[first] * self.of_out)
            made.give(var, value, order, first * order[1], whole=many == len(starts))
            parts.append(made.made())
        return parts, var


def _regular(starts: Sequence[int], rows: int) -> list[tuple[int, int]]:
    """Blocks of channels that follow on each other: the first, and how many; the last may have channels of another."""
    whole = sum([start == i * rows for i, start in enumerate(starts)])
    return [(0, whole), *([(whole, 1)] if whole < len(starts) else [])]


def _one(
    memory: Memory, call: Call, x: Var, weights: _Weights, bias: Var | None, shape: Shape, slices: Any = None
) -> list[Part | Stage]:
    """A convolution; ``slices``: of which places of the result."""
    out = call.outs[0]
    before: list[Part | Stage] = []
    root, offset = in_order(memory, call, x, before)
    input, channels = tuple(x.spec.shape), weights.groups * weights.out
    steps, begin = None, 0
    if slices is not None:
        own = strides_of(out.spec)
        steps = (*own[:2], *[s * each.step for s, each in zip(own[2:], slices, strict=True)])
        begin = sum([s * each.start for s, each in zip(own[2:], slices, strict=True)])
    share = max(1, min(CHUNKS, (sliding._work(input, channels, shape) - 1) // sliding.SHARE))
    made = _forward(shape, input, channels, steps, share, sliding.BLOCK, CHUNKS)
    parts, packed = weights.packed(memory, call, made.rows, made.starts)
    added = _bias(memory, call, bias, channels, parts)
    oracle = _forward_in_python(made, weights, shape, input, out, (offset, added[1]), slices)
    offsets = [4 * n for n in (offset, 0, added[1], begin)]
    stage = _stage(made.calls, offsets, [root, packed, added[0], out], 3, oracle)
    return [*before, *parts, stage]


def _bias(memory: Memory, call: Call, bias: Var | None, channels: int, parts: list[Part]) -> tuple[Var, int]:
    """What is added to each channel: zeros where there is nothing."""
    if bias is not None:
        return array_of(memory, bias)
    zeros = Var(Spec((channels,), F32))
    made = Builder(memory, call, (channels,))
    made.give(zeros, ZERO)
    parts.append(made.made())
    return zeros, 0


def _stage(
    calls: Calls,
    offsets: Sequence[int],
    operands: list[Var],
    written: int,
    oracle: Callable[[list[Any], int], None],
    cleared: int = 0,
) -> Stage:
    """The kernel of some calls. ``cleared``: bytes of what is written that are a chunk's, and begin with zeros."""
    words = moved(calls.signature, calls.words, offsets)
    text = kernel("NAME", calls.signature, words, calls.bytes, (written, cleared) if cleared else None)
    name = named(calls.code + text)
    code = f"{calls.code}\n{text}".replace("@NAME", f"@{name}")
    scratch = Var(Spec((max(1, calls.chunks * calls.bytes // 4),), F32))
    writes = frozenset({written, len(operands)})
    return Stage(Kernel(name, code, calls.chunks, writes, python=oracle), (*operands, scratch))


# ---- the gradient of weights


@rule("convolution_weight")
def weight(memory: Memory, call: Call) -> list[Part | Stage]:
    x, g, kernel_sizes, stride, padding, dilation, groups = call.args
    before: list[Part | Stage] = []
    (of_x, x_offset), (of_g, g_offset) = (in_order(memory, call, v, before) for v in (x, g))
    if 0 in (*x.spec.shape, *g.spec.shape):
        raise Unknown("nothing to compute")
    shape = Shape(tuple(kernel_sizes), stride, padding, dilation, groups, tuple(g.spec.shape[2:]))
    input, out = tuple(x.spec.shape), g.spec.shape[1]
    by_channels = groups == 1 and input[1] >= loops.width() // 4
    made: Any = (sliding._by_channels if by_channels else sliding._weight)(shape, input, out, sliding.BLOCK)
    if not by_channels and not made.whole:
        raise Unknown("zeros of a border that may be multiplied by inf or nan")
    inner, depth = input[1] // groups, made.depth if by_channels else 0
    width = made.width if by_channels else made.many * made.columns
    lines = groups * len(made.starts) * made.rows
    sums = Var(Spec((made.parts, lines, width), F32))
    # of an element of the result, in one line of the sums: channels are beside each other, or elements of the kernel
    of_kernel = contiguous_strides(shape.kernel)
    strides = (1, *[depth * s for s in of_kernel]) if by_channels else (shape.taps, *of_kernel)
    oracle = _weight_in_python(made, shape, (input, x_offset), (tuple(g.spec.shape), g_offset), strides, sums)
    offsets = [4 * x_offset, 4 * g_offset, 0]
    stage = _stage(made.calls, offsets, [of_x, of_g, sums], 2, oracle, 4 * lines * width)
    return [*before, stage, *_added(memory, call, sums, made, groups, inner, strides)]


def _added(
    memory: Memory, call: Call, sums: Var, made: Any, groups: int, inner: int, strides: Sequence[int]
) -> list[Part]:
    """The sums of all chunks, one after the other."""
    out, (parts, lines, width) = call.outs[0], sums.spec.shape
    own, each, result = strides_of(out.spec), out.spec.shape[0] // groups, []
    for first, many, line in _lines(made.starts, made.rows, each):
        shape = (groups, many, inner, *out.spec.shape[2:])
        part = Builder(memory, call, shape)
        steps = (lines // groups * width, width, *strides)
        values = [part.read(sums, steps) for _ in range(parts)]
        part.reads = [replace(r, offset=(i * lines + line) * width) for i, r in enumerate(part.reads)]
        total = functools.reduce(lambda a, b: a + b, values)
        part.give(out, total, (each * own[0], *own), first * own[0], whole=many == each)
        result.append(part.made())
    return result


def _lines(starts: Sequence[int], rows: int, each: int) -> list[tuple[int, int, int]]:
    """Of channels of a group that follow on each other: the first, how many, and the line of the first."""
    whole = _regular(starts, rows)[0][1] * rows
    return [(0, whole, 0), *([(whole, each - whole, len(starts) * rows - each + whole)] if whole < each else [])]


# ---- the same on arrays


def _forward_in_python(
    made: Any, weights: _Weights, shape: Shape, input: Any, out: Var, offsets: tuple[int, int], slices: Any
) -> Callable[[list[Any], int], None]:
    groups, kernel, inner, channels = weights.groups, weights.kernel, weights.inner, weights.groups * weights.out
    order, own = made.channels.ravel(), out.spec

    def run(arrays: list[Any], chunk: int) -> None:
        if chunk:
            return
        x = arrays[0][offsets[0] :][: math.prod(input)].reshape(input)
        packed = arrays[1].reshape(groups, len(made.starts), -1, made.rows).swapaxes(2, 3)
        w = np.empty((channels, inner, *kernel), F32)
        w[order] = packed.reshape(-1, inner, *kernel)
        none = (0,) * len(kernel)
        y = ops._forward(_padded(x, shape), w, shape.count, shape.stride, none, shape.dilation, groups)
        y = y + arrays[2][offsets[1] :][:channels].reshape(-1, *[1] * len(kernel))
        target = arrays[3][: math.prod(own.shape)].reshape(own.shape)
        target[(slice(None), slice(None), *(slices or ()))] = y

    return run


def _padded(x: Any, shape: Shape) -> Any:
    """An input with its border, and with more zeros behind it than windows reach."""
    reach = [d * k + s * n for d, k, s, n in zip(shape.dilation, shape.kernel, shape.stride, shape.count, strict=True)]
    border = [(max(p, 0), max(p, 0) + r) for p, r in zip(shape.padding, reach, strict=True)]
    cut = tuple([slice(max(-p, 0), None) for p in shape.padding])
    return np.pad(x, [(0, 0), (0, 0), *border])[(slice(None), slice(None), *cut)]


def _weight_in_python(
    made: Any, shape: Shape, x: tuple[Any, int], g: tuple[Any, int], strides: Sequence[int], sums: Var
) -> Callable[[list[Any], int], None]:
    groups = shape.groups

    def run(arrays: list[Any], chunk: int) -> None:
        target = arrays[2].reshape(sums.spec.shape)[chunk]
        target[...] = 0
        if chunk:
            return
        a, b = (array[offset:][: math.prod(n)].reshape(n) for array, (n, offset) in zip(arrays, (x, g), strict=False))
        seen = ops.windows(
            _padded(a, shape).astype(np.float64), shape.kernel, shape.stride, shape.dilation, shape.count
        )
        examples, count = len(a), math.prod(shape.count)
        columns = seen.reshape(examples, groups, -1, count).swapaxes(2, 3)
        gradient = np.matmul(b.reshape(examples, groups, -1, count).astype(np.float64), columns).sum(0)
        gradient = gradient.reshape(-1, a.shape[1] // groups, *shape.kernel)
        rows = np.asarray(made.channels).ravel()
        at = np.zeros((), np.int64)
        for n, s in zip(gradient.shape[1:], strides, strict=True):
            at = np.add.outer(at, np.arange(n) * s)
        lines = np.zeros((len(rows), target.shape[1]))
        lines[:, at.ravel()] = gradient[rows].reshape(len(rows), -1)
        target[...] = lines

    return run
