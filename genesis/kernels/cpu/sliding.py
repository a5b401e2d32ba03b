"""Convolutions of float32 without copies of their windows, where there is llvmlite.

The input is copied once, with its border, one block of examples at a time: for each channel and each phase of the
stride an image. In it all windows of one element of the kernel are the same places moved by an offset, so that the
vectors of neighbouring places are read where they are. (`genesis.kernels.llvm.sliding` has the loops.)

Rows of the output that are whole vectors are written where they belong. For others there are images for each element of
the kernel along the last dimension, without a border there: so the places of all rows are one line, of whole vectors
again. Where that would copy too much, the line goes through the border between rows, and places are copied out of it.

The gradient for the weight reads the images with the channels of a place next to each other, where these fill vectors.

All of it is one phase of native code, copies included (`genesis.kernels.native.chunked`): a chunk is some blocks.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.base.threads import get_num_threads
from genesis.core.call.halves import F32
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import loops, objects, sliding
from genesis.kernels.native.chunked import Calls, Signature, Words
from genesis.ops.spatial.arguments import Sizes

BLOCK = 1 << 19  # bytes of the images of a block: they stay in the cache while all channels of the output pass
LEAST = 1 << 18  # multiplications from where it is worth to have llvmlite
SHARE = 1 << 22  # multiplications of a block, at least, where blocks are made smaller for more threads
PARTS = 4  # of a sum over examples
FEW = 20  # blocks that are chunks of their own
# channels of the output for each image of one of the input, at least; images of all, at most, where vectors overlap
APART = 4, 64


@functools.cache
def _registers(channels: int) -> tuple[int, int, tuple[int, int]]:
    """How many channels and how many vectors have their sums in registers: of places, and of terms of a weight."""
    lanes = loops.width() // 4
    many = lanes != 8  # 32 registers, not 16
    rows = next(r for r in ((8, 4, 2, 1) if many else (4, 2, 1)) if r <= channels)
    columns = {8: 3, 4: 6, 2: 8, 1: 8} if many else {4: 3, 2: 4, 1: 6}
    return rows, columns[rows], (min(4, rows), 6) if many else (min(2, rows), 5)


@functools.cache
def _named(which: str, *options: Any) -> tuple[str, str]:
    """A function of `genesis.kernels.llvm.sliding`: its name, which is another one for other options, and its code."""
    code = getattr(sliding, which)(loops.width() // 4, *options)
    name = f"sliding_{objects.name_of(code, suffix='')[:16]}"
    return name, code.replace(f"@{which}(", f"@{name}(")


def _flat_indices(axes: Any, sizes: Sizes) -> Any:
    """The numbers of places in an array of these sizes, for all combinations of the places along its dimensions."""
    return _sums([[i * math.prod(sizes[d + 1 :]) for i in at] for d, at in enumerate(axes)])


def _sums(axes: Any) -> Any:
    """Of all combinations."""
    total = np.zeros((), np.int64)
    for at in axes:
        total = np.add.outer(total, np.array(at, np.int64))
    return total.ravel()


_SPARE = 8  # vectors after the last: so many are computed together


def _size_of_image(count: int, reach: int, stride: int, padding: int, size: int) -> int:
    """Along a dimension. Without a stride a window may end in the border before the next row, or image."""
    if stride > 1:
        return count + reach // stride
    return max(count + reach - max(padding, 0), min(max(padding + size, 0), count + reach))


def _shortest(*counts: int) -> int:
    """How many numbers rows have at least, if none has more than twice as many: as many as vectors have; else 0."""
    for n in (16, 8, 4, 2):
        if n <= loops.width() // 4 and all([n <= count <= 2 * n for count in counts]):
            return n
    return 0


class Geometry:
    """Where things are in a block of so many examples of such a size, with so many channels of input and output.

    ``spaced``: places of a row of the output are not next to each other in memory. ``apart``: there are images for each
    element of the kernel along the last dimension, with rows as long as the output's; so these follow on each other
    without a border, and vectors go on from one to the next. ``planes`` are the images of a channel.
    """

    def __init__(self, shape: Any, sizes: Sizes, channels: int, out: int, many: int, spaced: bool, apart: bool) -> None:
        self.shape, self.sizes, self.out, self.many = shape, sizes, out, many
        reach = [d * (k - 1) for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        self.image = tuple(map(_size_of_image, shape.count, reach, shape.stride, shape.padding, sizes))
        steps, taps = shape.stride, [np.arange(k) * d for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        self.phases = [list(range(s)) for s in steps]  # where in the input images begin
        if apart:
            self.image, steps = (*self.image[:-1], shape.count[-1]), (*steps[:-1], shape.kernel[-1])
            self.phases[-1], taps[-1] = taps[-1].tolist(), np.arange(shape.kernel[-1])
        self.each, self.planes = math.prod(self.image), math.prod(steps)
        self.channel = self.planes * many * self.each  # from one of the input to the next
        phases = _flat_indices([at % s for at, s in zip(taps, steps, strict=True)], steps)
        quotients = [at // s for at, s in zip(taps, steps, strict=True)]
        one = phases * many * self.each + _flat_indices(quotients, self.image)
        self.offsets = np.add.outer(np.arange(channels // shape.groups) * self.channel, one).ravel()
        self.fill = self._rows_of_input()
        self.short = _shortest(*self.fill[2]), _shortest(shape.count[-1])
        self.left: dict[Sizes, Any] = {}
        lanes = loops.width() // 4
        self.whole = apart or (shape.count[-1] % lanes == 0 and not spaced)
        if self.whole:
            together = shape.count[-2:] if apart else shape.count[-1:]  # dimensions whose places follow on each other
            run, before = math.prod(together), shape.count[: -len(together)]
            starts = [*range(0, run - lanes + 1, lanes), *([run - lanes] if run % lanes else [])]
            self.line = math.prod(shape.count)
            rows = [range(n) for n in before]
            begin, to = (
                _sums([np.arange(many) * example, _flat_indices(rows, sizes), starts])
                for example, sizes in ((self.each, self.image), (out * self.line, shape.count))
            )
            self.vectors = len(to)
            self.begin, self.to = (np.pad(table, (0, _SPARE), mode="edge") for table in (begin, to))
        else:
            end = (many - 1) * self.each + _flat_indices([[o - 1] for o in shape.count], self.image)[0] + 1
            self.vectors = -(-int(end) // lanes)
            self.begin = self.to = np.arange(self.vectors + _SPARE) * lanes
            self.line = max(len(self.to) * lanes, many * self.each)
        # a vector may begin at the last place, and a window at the last of an image
        self.size = channels * self.channel + self.each + (_SPARE + 1) * lanes
        self.room = 0 if self.whole else out * self.line  # numbers of the lines

    def _rows_of_input(self) -> Any:
        """Of each row of the images where it begins in the input, and where among those of a channel; its length."""
        shape, rows = self.shape, []
        for number, phase in enumerate(itertools.product(*self.phases)):
            lows, counts = [], []
            for f, s, p, n, size in zip(phase, shape.stride, shape.padding, self.sizes, self.image, strict=True):
                low, high = max(0, -((f - p) // s)), min(size, (n - 1 + p - f) // s + 1)
                lows.append(low)
                counts.append(max(0, high - low))
            axes = [range(low, low + count) for low, count in zip(lows[:-1], counts[:-1], strict=True)]
            to = _flat_indices([*axes, [lows[-1]]], self.image) + number * self.many * self.each
            steps = zip([*axes, [lows[-1]]], phase, shape.stride, shape.padding, strict=True)
            of = _flat_indices([[f - p + s * i for i in axis] for axis, f, s, p in steps], self.sizes)
            rows += [(a, b, counts[-1]) for a, b in zip(of, to, strict=True) if counts[-1]]
        return np.array(rows, np.int64).reshape(-1, 3).T.copy()

    def leave(self, steps: Sizes) -> Any:
        """Of each row of the output where it begins in a line, where in memory with such steps, and its length."""
        if steps in self.left:
            return self.left[steps]
        rows = [*map(range, self.shape.count[:-1]), [0]]
        of = _flat_indices(rows, self.image)
        to = _sums([[i * step for i in axis] for axis, step in zip(rows, steps, strict=True)])
        self.left[steps] = np.array([of, to, np.full(len(of), self.shape.count[-1])], np.int64)
        return self.left[steps]


def _room(sizes: Any) -> tuple[list[int], int]:
    """Where arrays of so many numbers begin that lie behind each other, in bytes, and how many there are in all."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-4 * size // 64) * 64)
    return starts[:-1], starts[-1]


def takes(x: Any, out: int, shape: Any) -> bool:
    """Whether these loops are for a convolution: float32, and worth it."""
    return x.dtype is F32 and _work(x.shape, out, shape) >= max(LEAST, 1) and loops.available()


@functools.lru_cache(maxsize=512)
def _work(input: Sizes, out: int, shape: Any) -> int:
    return int(input[0] * math.prod(shape.count) * out * (input[1] // shape.groups) * shape.taps)


_geometry = functools.lru_cache(maxsize=128)(Geometry)
Blocks = list[tuple[int, Geometry]]


def _blocks(input: Sizes, shape: Any, out: int, block: int, share: int, spaced: bool, apart: bool) -> Blocks:
    """The first example of each block, and its geometry: `_count` blocks, the larger ones first."""
    n, channels, *sizes = input
    of = functools.partial(_geometry, shape, tuple(sizes), channels, out, spaced=spaced, apart=apart)
    each, larger = divmod(n, count := _count(n, block // (4 * channels * of(1).channel), share))
    return [(i * each + min(i, larger), of(each + (i < larger))) for i in range(count)]


def _apart(shape: Any, inner: int, out: int, overlap: bool) -> bool:
    """Whether it pays to have images for each element of the kernel along the last dimension: rows are no whole vectors,
    what is copied more often is read for many channels of the output, and those of the input stay in the cache.
    ``overlap``: whether two vectors may have places in common.
    """
    lanes, positions, k = loops.width() // 4, math.prod(shape.count[-2:]), shape.kernel[-1]
    least, most = APART
    if positions % lanes:
        fits = overlap and positions >= lanes and inner * k <= most
    else:
        fits = 4 * inner * k * positions <= BLOCK
    return bool(shape.count[-1] % lanes and fits and out // shape.groups >= least * k)


def _count(n: int, many: int, share: int) -> int:
    """In how many blocks of ``many`` examples at most, if that can be, the same number for each of ``share`` threads."""
    return min(n, -(-n // max(1, many) // share) * share)


def _share(input: Sizes, out: int, shape: Any, threads: int) -> int:
    """Of how many threads each gets as many blocks as another; one where blocks would be too small."""
    return threads if _work(input, out, shape) > threads * SHARE else 1


def _runs(blocks: Blocks) -> Iterator[tuple[int, int, Geometry]]:
    """The first and the last example of blocks one after the other that are alike."""
    for geometry, run in itertools.groupby(blocks, lambda block: block[1]):
        starts = [start for start, _ in run]
        yield starts[0], starts[-1] + geometry.many, geometry


@functools.cache
def _by_rows(channels: int, groups: int, rows: int) -> tuple[list[int], Any]:
    """Where blocks of so many channels begin in a group, the last where it ends with it; and the channels of all."""
    each = channels // groups
    starts = [*range(0, each - rows + 1, rows), *([each - rows] if each % rows else [])]
    inside = np.add.outer(np.array(starts), np.arange(rows)).ravel()
    return starts, np.add.outer(np.arange(groups) * each, inside)


def _packed(w: Any, groups: int, rows: int, starts: list[int]) -> Any:
    """The weights of so many channels next to each other, for each term."""
    each = w.reshape(groups, w.shape[0] // groups, -1)
    if len(starts) * rows == each.shape[1]:
        return np.ascontiguousarray(each.reshape(groups, len(starts), rows, -1).swapaxes(2, 3))
    return np.ascontiguousarray(np.stack([each[:, s : s + rows].swapaxes(1, 2) for s in starts], 1))


def _steps(sizes: Sizes) -> Sizes:
    """Of an array in the order of its dimensions: numbers from one place to the next."""
    return tuple([math.prod(sizes[d + 1 :]) for d in range(len(sizes))])


def _every(shape: Any) -> int:
    return int(shape.stride[-1]) if shape.stride[-1] < 3 else 0


class _Forward:
    """What all convolutions of arrays of such sizes have in common; ``steps``: of the array that is written to."""

    def __init__(
        self, shape: Any, input: Sizes, out: int, steps: Sizes | None, threads: int, block: int, most: int = 0
    ) -> None:
        n, inner, groups, lanes = input[0], input[1], shape.groups, loops.width() // 4
        self.rows, columns, _ = _registers(out // groups)
        self.starts, channels = _by_rows(out, groups, self.rows)
        self.channels = channels
        spaced, share = steps is not None, _share(input, out, shape, threads)
        self.blocks = _blocks(
            input, shape, out, block, share, spaced, not spaced and _apart(shape, inner // groups, out, True)
        )
        self.whole = self.blocks[0][1].whole
        short = self.blocks[0][1].short
        short = short[0] if _every(shape) == 1 else 0, 0 if self.whole or spaced else short[1]
        name, code = _named("forward", self.rows, columns, self.whole, _every(shape), spaced, short)
        words = Words(Signature(name, *sliding.FORWARD, 4, 2))
        of_example, of_channel, *_ = _steps(input)
        y_example, y_channel, *y_steps = steps or _steps((n, out, *shape.count))
        part = max(1, block // 2 // (4 * lanes * columns * inner // groups * self.blocks[0][1].planes)) * columns
        terms, kinds = inner // groups * shape.taps, list({geometry: 0 for _, geometry in self.blocks})
        starts, room = _room([size for geometry in kinds for size in (geometry.size, geometry.room)])
        count = len(self.blocks)
        chunks = min(count, most or (count if count < FEW else 4 * threads))
        for i in range(chunks):
            for first, last, geometry in _runs(self.blocks[count * i // chunks : count * (i + 1) // chunks]):
                vectors = -(-geometry.vectors // columns) * columns
                at = 2 * kinds.index(geometry)
                leave = None if self.whole else geometry.leave(tuple(y_steps))
                words.call(
                    (4 * first * of_example, 0, 0, 4 * first * y_example),
                    starts[at : at + 2],
                    (geometry.offsets, geometry.begin, geometry.to, channels, geometry.fill, leave),
                    (0, (last - first) // geometry.many, geometry.many, inner // groups, out, groups, len(self.starts), terms,
                     -(-terms // sliding.CHUNK), vectors, part, -(-vectors // part), geometry.each, geometry.channel,
                     geometry.line, geometry.fill.shape[1], math.prod(shape.count[:-1]), of_example, of_channel,
                     shape.stride[-1], y_example, y_channel, y_steps[-1]),
                )  # fmt: skip
            words.end()
        self.calls = Calls(code, words, room)


_forward = functools.lru_cache(maxsize=256)(_Forward)


def forward(x: Any, w: Any, bias: Any, shape: Any, y: Any = None) -> Any:
    """The convolution, written to ``y`` if it is given; `takes` said yes."""
    out, x = w.shape[0], memory.contiguous(x)
    steps = None if y is None else tuple([s // 4 for s in y.strides])
    made = _forward(shape, x.shape, out, steps, get_num_threads(), BLOCK)
    y = memory.empty((x.shape[0], out, *shape.count), F32) if y is None else y
    packed = _packed(w, shape.groups, made.rows, made.starts)
    added = np.zeros(out, F32) if bias is None else np.ascontiguousarray(bias, F32)
    made.calls.on(x, packed, added, y)
    return y


class _Weight:
    """What the gradients for the weight have in common for arrays of such sizes."""

    def __init__(self, shape: Any, input: Sizes, out: int, block: int) -> None:
        inner, groups = input[1] // shape.groups, shape.groups
        self.rows, self.columns = _registers(out // groups)[2]
        self.starts, self.channels = _by_rows(out, groups, self.rows)
        self.terms = inner * shape.taps
        self.many = -(-self.terms // self.columns)
        share, apart = _share(input, out, shape, PARTS), _apart(shape, inner, out, False)
        self.blocks = _blocks(input, shape, out, block, share, False, apart)
        self.parts = min(PARTS, len(self.blocks))
        self.whole = self.blocks[0][1].whole
        short = self.blocks[0][1].short
        short = short[0] if _every(shape) == 1 else 0, 0 if self.whole else short[1]
        name, code = _named("weight", self.rows, self.columns, self.whole, _every(shape), short)
        words = Words(Signature(name, *sliding.WEIGHT, 3, 3))
        of_example, of_channel, *_ = _steps(input)
        g_example, g_channel, *g_steps = _steps((input[0], out, *shape.count))
        kinds = list({geometry: 0 for _, geometry in self.blocks})
        near = self.rows * self.columns * self.many * loops.width() // 4
        starts, room = _room([near, *[size for geometry in kinds for size in (geometry.size, geometry.room)]])
        spare, count = np.zeros(self.many * self.columns - self.terms, np.int64), len(self.blocks)
        offsets = [np.concatenate([geometry.offsets, spare]) for geometry in kinds]
        self.sums = groups * len(self.starts) * self.rows * self.many * self.columns  # numbers of a part
        for i in range(self.parts):
            for first, last, geometry in _runs(self.blocks[count * i // self.parts : count * (i + 1) // self.parts]):
                kind = kinds.index(geometry)
                leave = None if self.whole else geometry.leave(tuple(g_steps))
                words.call(
                    (4 * first * of_example, 4 * first * g_example, 4 * i * self.sums),
                    (*starts[1 + 2 * kind : 3 + 2 * kind], 0),
                    (offsets[kind], geometry.begin, geometry.to, self.channels, geometry.fill, leave),
                    (0, (last - first) // geometry.many, geometry.many, inner, out, groups, len(self.starts), self.many,
                     geometry.vectors, geometry.each, geometry.channel, geometry.line, geometry.fill.shape[1],
                     math.prod(shape.count[:-1]), of_example, of_channel, shape.stride[-1], g_example, g_channel),
                )  # fmt: skip
            words.end()
        self.calls = Calls(code, words, room)


_weight = functools.lru_cache(maxsize=256)(_Weight)


# ---- the gradient for the weight where channels of the input fill vectors

NEAR = 1 << 15  # bytes of the rows of images that stay near while all channels and terms pass
ADDED = 256  # places that are added before they are added to the rest, at most: fewer digits are lost


class _ByChannels:
    """What the gradients for the weight have in common for arrays of such sizes."""

    def __init__(self, shape: Any, input: Sizes, out: int, block: int) -> None:
        (n, inner, *sizes), lanes = input, loops.width() // 4
        reach = [d * (k - 1) for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        image = [(o - 1) * s + r + 1 for o, s, r in zip(shape.count, shape.stride, reach, strict=True)]
        self.inner, self.depth = inner, (depth := -(-inner // lanes) * lanes)
        each = math.prod(image) * depth
        taps = [[i * d for i in range(k)] for k, d in zip(shape.kernel, shape.dilation, strict=True)]
        offsets = np.add.outer(_flat_indices(taps, image) * depth, np.arange(0, depth, lanes)).ravel()
        self.rows, self.columns = _channel_registers(out, len(offsets))
        self.starts, self.channels = _by_rows(out, 1, self.rows)
        self.term_blocks = -(-len(offsets) // self.columns)
        self.offsets = np.pad(offsets, (0, self.term_blocks * self.columns - len(offsets)))
        self.many = -(-n // _count(n, block // (4 * each), _share(input, out, shape, PARTS)))
        self.blocks, self.examples = -(-n // self.many), n
        self.parts = min(PARTS, self.blocks)
        lines = [*[[i * s for i in range(o)] for o, s in zip(shape.count[:-1], shape.stride, strict=False)], [0]]
        whole = math.prod(shape.count)
        examples = np.arange(self.many)
        origins = np.add.outer(examples * each, _flat_indices(lines, image) * depth).ravel()
        to = np.add.outer(examples * out * whole, np.arange(0, whole, shape.count[-1])).ravel()
        fill = _rows_inside(shape, sizes, image) * np.array([[1], [depth], [1]])
        of_example, of_channel, *_ = _steps(input)
        lines = len(to) // self.many
        step = depth * shape.stride[-1]
        near = max(1, min(NEAR // (4 * step), ADDED) // shape.count[-1])
        self.width = self.term_blocks * self.columns * lanes
        name, code = _named("weight_by_channels", self.rows, self.columns)
        words = Words(Signature(name, *sliding.BY_CHANNELS, 3, 1))
        for part in range(self.parts):
            begin, end = (self.blocks * i // self.parts for i in (part, part + 1))
            for start, stop, many in self._runs(begin, end):
                rows = many * lines
                words.call(
                    (4 * start * of_example, 4 * start * out * whole, 4 * part * len(self.starts) * self.rows * self.width),
                    (0,),
                    (self.offsets, self.channels, fill, origins, to),
                    (0, (stop - start) // many, many, inner, depth, len(self.starts), self.term_blocks, rows, near,
                     -(-rows // near), shape.count[-1], step, each, fill.shape[1], of_example, of_channel, out * whole,
                     whole),
                )  # fmt: skip
            words.end()
        self.calls = Calls(code, words, 4 * self.many * each)

    def _runs(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The first and the last example of blocks, and how many each has; the last of all may have fewer."""
        whole = min(last, self.examples // self.many)
        if whole > first:
            yield first * self.many, whole * self.many, self.many
        if last > whole:
            yield whole * self.many, self.examples, self.examples - whole * self.many

    def gradient(self, x: Any, g: Any, shape: Any) -> Any:
        sums = memory.zeros((self.parts, len(self.starts) * self.rows, self.width), F32)
        self.calls.on(x, g, sums)
        result = _in_order(_added(sums), self.channels, g.shape[1], shape.taps * self.depth)
        result = result.reshape(g.shape[1], *shape.kernel, self.depth)[..., : self.inner]
        return np.ascontiguousarray(result.transpose(0, result.ndim - 1, *range(1, result.ndim - 1)))


def _channel_registers(out: int, vectors: int) -> tuple[int, int]:
    """How many channels of the output and how many vectors have their sums in registers."""
    if loops.width() == 32:  # 16 registers, not 32
        return min(4, out), 3
    return (min(6, out), 4) if vectors % 3 and not vectors % 4 else (min(8, out), 3)


def _rows_inside(shape: Any, sizes: Any, image: Any) -> Any:
    """Of each row of the input that is in the image: where it begins, and where in the image; its length."""
    counts = [max(0, min(n, size - p)) for n, size, p in zip(sizes, image, shape.padding, strict=True)]
    axes = [*map(range, counts[:-1]), [0]]
    of = _flat_indices(axes, sizes)
    to = _flat_indices([[i + p for i in axis] for axis, p in zip(axes, shape.padding, strict=True)], image)
    return np.array([of, to, np.full(len(of), counts[-1])], np.int64)


_by_channels = functools.lru_cache(maxsize=256)(_ByChannels)


def weight(x: Any, g: Any, shape: Any) -> Any:
    """The gradient for the weight; None where inf or nan may have been multiplied by the zeros of the border."""
    x, g, groups = memory.contiguous(x), memory.contiguous(g), shape.groups
    if groups == 1 and x.shape[1] >= loops.width() // 4:
        return _by_channels(shape, x.shape, g.shape[1], BLOCK).gradient(x, g, shape)
    made = _weight(shape, x.shape, g.shape[1], BLOCK)
    sums = np.zeros((made.parts, groups, len(made.starts) * made.rows, made.many * made.columns), F32)
    made.calls.on(x, g, sums)
    total = _added(sums)
    if not made.whole and not np.isfinite(total).all():
        return None
    total = total.reshape(-1, made.many * made.columns)
    result = _in_order(total, made.channels.ravel(), g.shape[1], made.terms)
    return np.ascontiguousarray(result.reshape(g.shape[1], x.shape[1] // groups, *shape.kernel))


def _added(sums: Any) -> Any:
    return sums[0] if len(sums) == 1 else np.add.reduce(sums, 0)


def _in_order(rows: Any, channels: Any, out: int, count: int) -> Any:
    """The first numbers of the row of each channel; blocks of channels may have some in common."""
    if len(rows) == out:
        return rows[:, :count]
    result = np.empty((out, count), rows.dtype)
    result[channels] = rows[:, :count]
    return result
