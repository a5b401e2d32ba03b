"""Convolutions of float32 without copies of their windows, where there is llvmlite.

The input is copied once, with its border, one block of examples at a time: for each channel and each phase of the
stride an image. In it all windows of one element of the kernel are the same places moved by an offset, so that the
vectors of neighbouring places are read where they are. (`genesis.kernels.llvm.sliding` has the loops.)

Rows of the output that are whole vectors are written where they belong. Others are computed as one line through all
rows of a block, with the border between them, and their places copied out of it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from genesis.base.blas import one_thread
from genesis.base.threads import in_parallel
from genesis.core.call.halves import F32
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import loops, native, sliding
from genesis.ops.spatial.arguments import Sizes

BLOCK = 1 << 19  # bytes of the images of a block: they stay in the cache while all channels of the output pass
LEAST = 1 << 20  # multiplications from where it is worth to have llvmlite
PARTS = 4  # of a sum over examples


@functools.cache
def _registers(channels: int) -> tuple[int, int, tuple[int, int]]:
    """How many channels and how many vectors have their sums in registers: of places, and of terms of a weight."""
    lanes = loops.width() // 4
    many = lanes != 8  # 32 registers, not 16
    rows = next(r for r in ((8, 4, 2, 1) if many else (4, 2, 1)) if r <= channels)
    columns = {8: 3, 4: 6, 2: 8, 1: 8} if many else {4: 3, 2: 4, 1: 6}
    return rows, columns[rows], (min(4, rows), 6) if many else (min(2, rows), 5)


@functools.cache
def _forward_loop(rows: int, columns: int) -> Any:
    code = sliding.forward(loops.width() // 4, rows, columns)
    return native.nest("forward", code, *map(len, sliding.FORWARD))


@functools.cache
def _weight_loop(rows: int, columns: int) -> Any:
    code = sliding.weight(loops.width() // 4, rows, columns)
    return native.nest("weight", code, *map(len, sliding.WEIGHT))


def _places(axes: Any, sizes: Sizes) -> Any:
    """The numbers of places in an array of these sizes, for all combinations of the places along its dimensions."""
    total = np.zeros((), np.int64)
    for at, size in zip(axes, sizes, strict=True):
        total = np.add.outer(total * size, at)
    return total.ravel()


class Geometry:
    """Where things are in a block of so many examples of such a size, with so many channels of input and output."""

    def __init__(self, shape: Any, sizes: Sizes, channels: int, out: int, many: int) -> None:
        self.shape, self.sizes, self.channels, self.many = shape, sizes, channels, many
        reach = [d * (k - 1) for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        self.image = tuple([o + r // s for o, r, s in zip(shape.count, reach, shape.stride, strict=True)])
        self.each = math.prod(self.image)
        self.plane = many * self.each
        self.channel = math.prod(shape.stride) * self.plane  # from one of the input to the next
        taps = [np.arange(k) * d for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        phases = _places([at % s for at, s in zip(taps, shape.stride, strict=True)], shape.stride)
        quotients = [at // s for at, s in zip(taps, shape.stride, strict=True)]
        one = phases * self.plane + _places(quotients, self.image)
        self.offsets = np.add.outer(np.arange(channels // shape.groups) * self.channel, one).ravel()
        lanes = loops.width() // 4
        self.whole = shape.count[-1] % lanes == 0
        if self.whole:
            axes = [*map(np.arange, shape.count[:-1]), np.arange(0, shape.count[-1], lanes)]
            self.line = math.prod(shape.count)
            begin = np.add.outer(np.arange(many) * self.each, _places(axes, self.image)).ravel()
            to = np.add.outer(np.arange(many) * out * self.line, _places(axes, shape.count)).ravel()
            self.vectors = len(to)
            self.begin, self.to = (np.pad(table, (0, _SPARE), mode="edge") for table in (begin, to))
        else:
            end = self.plane - self.each + _places([[o - 1] for o in shape.count], self.image)[0] + 1
            self.vectors = -(-int(end) // lanes)
            self.begin = self.to = np.arange(self.vectors + _SPARE) * lanes
            self.line = max(len(self.to) * lanes, self.plane)
        self.kept: deque[Any] = deque(maxlen=8)
        self.size = channels * self.channel + (_SPARE + 1) * lanes  # a vector may begin at the last place

    @contextmanager
    def inputs(self) -> Iterator[Any]:
        """Memory for the images, used again; what `fill` does not write is the border, and zero."""
        try:
            images = self.kept.pop()
        except IndexError:
            images = np.zeros(self.size, F32)
        yield images
        if images.nbytes <= 2 * BLOCK:
            self.kept.append(images)

    def fill(self, images: Any, x: Any) -> None:
        """Copy a block of the input to where it is read."""
        shape = self.shape
        view = images[: self.channels * self.channel].reshape(self.channels, *shape.stride, self.many, *self.image)
        for phase in itertools.product(*map(range, shape.stride)):
            here, there = [], []
            for f, s, p, n, size in zip(phase, shape.stride, shape.padding, self.sizes, self.image, strict=True):
                low, high = max(0, -((f - p) // s)), min(size, (n - 1 + p - f) // s + 1)
                here.append(slice(low, max(low, high)))
                there.append(slice(f - p + s * low, max(f - p + s * low, f - p + s * (high - 1) + 1), s))
            view[(slice(None), *phase, slice(None), *here)] = x.swapaxes(0, 1)[(slice(None), slice(None), *there)]

    def lines(self, array: Any) -> Any:
        """Of an array (channels, line) the places of the output: (channels, examples, *places)."""
        view = array[:, : self.plane].reshape(-1, self.many, *self.image)
        return view[(slice(None), slice(None), *map(slice, self.shape.count))]


_SPARE = 8  # vectors after the last: so many are computed together


def takes(x: Any, out: int, shape: Any) -> bool:
    """Whether these loops are for a convolution: float32, and worth it."""
    work = x.shape[0] * math.prod(shape.count) * out * (x.shape[1] // shape.groups) * shape.taps
    return x.dtype is F32 and work >= LEAST and loops.available()


_geometry = functools.lru_cache(maxsize=128)(Geometry)


def _blocks(x: Any, shape: Any, out: int) -> list[tuple[slice, Geometry]]:
    n, channels, *sizes = x.shape
    of = functools.partial(_geometry, shape, tuple(sizes), channels, out)
    many = max(1, min(n, BLOCK // (4 * channels * of(1).channel)))
    found = [(slice(i, i + many), of(many)) for i in range(0, n - many + 1, many)]
    if n % many:
        found.append((slice(n - n % many, n), of(n % many)))
    return found


def _by_rows(channels: int, groups: int, rows: int) -> tuple[list[int], Any]:
    """Where blocks of so many channels begin in a group, the last where it ends with it; and the channels of all."""
    each = channels // groups
    starts = [*range(0, each - rows + 1, rows), *([each - rows] if each % rows else [])]
    inside = np.add.outer(np.array(starts), np.arange(rows)).ravel()
    return starts, np.add.outer(np.arange(groups) * each, inside)


def _at(array: Any) -> int:
    return int(array.ctypes.data)


def forward(x: Any, w: Any, bias: Any, shape: Any) -> Any:
    """The convolution; `takes` said yes."""
    n, inner, out, groups = x.shape[0], x.shape[1], w.shape[0], shape.groups
    rows, columns, _ = _registers(out // groups)
    run, lanes = _forward_loop(rows, columns), loops.width() // 4
    y = memory.empty((n, out, *shape.count), F32)
    starts, channels = _by_rows(out, groups, rows)
    terms = w[0].size
    packed = w.reshape(groups, out // groups, terms).swapaxes(1, 2)
    packed = np.ascontiguousarray(np.stack([packed[..., s : s + rows] for s in starts], 1))
    added = np.zeros(out, F32) if bias is None else np.ascontiguousarray(bias, F32)
    blocks = _blocks(x, shape, out)
    part = max(1, BLOCK // 2 // (4 * lanes * columns * inner // groups * math.prod(shape.stride))) * columns

    def block(examples: slice, place: Geometry) -> None:
        target = y[examples] if place.whole else np.empty((out, place.line), F32)
        last = -(-place.vectors // columns) * columns
        with place.inputs() as images:
            place.fill(images, x[examples])
            given = [_at(a) for a in (images, packed, added, target, place.offsets, place.begin, place.to, channels)]
            for first in range(0, last, part):
                run(*given, terms, -(-terms // sliding.CHUNK), first, min(first + part, last), place.line,
                    len(starts), groups, inner // groups * place.channel)  # fmt: skip
        if not place.whole:
            y[examples].swapaxes(0, 1)[...] = place.lines(target)

    def work(some: slice) -> None:
        for each in blocks[some]:
            block(*each)

    with one_thread():
        in_parallel(work, len(blocks))
    return y


def weight(x: Any, g: Any, shape: Any) -> Any:
    """The gradient for the weight; None where inf or nan may have been multiplied by the zeros of the border."""
    inner, out, groups = x.shape[1], g.shape[1], shape.groups
    rows, columns = _registers(out // groups)[2]
    run = _weight_loop(rows, columns)
    starts, channels = _by_rows(out, groups, rows)
    terms = inner // groups * shape.taps
    many = -(-terms // columns)
    blocks = _blocks(x, shape, out)
    parts = min(PARTS, len(blocks))
    sums = np.zeros((parts, groups, len(starts) * rows, many * columns), F32)
    g = np.ascontiguousarray(g)

    def block(examples: slice, place: Geometry, total: Any) -> None:
        offsets = np.pad(place.offsets, (0, many * columns - terms))
        source = g[examples]
        if not place.whole:
            source = np.zeros((out, place.line), F32)
            place.lines(source)[...] = g[examples].swapaxes(0, 1)
        with place.inputs() as images:
            place.fill(images, x[examples])
            given = [_at(a) for a in (images, source, total, offsets, place.begin, place.to, channels)]
            run(*given, place.vectors, place.line, len(starts), many, groups, inner // groups * place.channel)

    def work(some: slice) -> None:
        for i in range(some.start, some.stop):
            for each in blocks[len(blocks) * i // parts : len(blocks) * (i + 1) // parts]:
                block(*each, sums[i])

    with one_thread():
        in_parallel(work, parts, parts)
    total = np.add.reduce(sums, 0)
    if not blocks[0][1].whole and not np.isfinite(total).all():
        return None
    found = np.empty((out, terms), F32)
    found[channels.ravel()] = total.reshape(-1, many * columns)[:, :terms]
    return found.reshape(out, inner // groups, *shape.kernel)
