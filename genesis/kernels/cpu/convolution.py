"""Convolutions in blocks: windows of a few examples are copied, as columns of a matrix that stays in the cache, and
multiplied with the weights by BLAS.

- Where channels are next to each other in memory, windows are rows, and so is the result.
- Without a stride along the first spatial dimension, windows along the others only are copied: for each row of the
  kernel they are a matrix already, a view, and the products of all rows are added.
- Kernels of one element without a stride need no copies.
- A transposed convolution without a stride is a convolution with turned weights. With one, it is several of them for
  places that are a stride apart, or products are added to where their windows are.
- Where there is llvmlite, float32 windows are not copied at all (`kernels/cpu/sliding.py`), unless channels are next to
  each other.
- Threads take blocks. Sums over examples are always made in the same parts, so their bits do not depend on threads.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.blas import one_thread, product
from genesis.base.threads import in_parallel
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory, sliding
from genesis.ops.spatial.arguments import Sizes
from genesis.ops.spatial.convolution import (
    add_windows,
    infer_convolution,
    inside,
    is_channels_last,
    one_is_channels_last,
    spread_sizes,
    widened,
    windows,
    with_channels_last,
)

BLOCK = 1 << 20  # bytes of columns: with the weights they fit the cache of a core
PARTS = 4  # of a sum over examples
LEAST = 16  # terms of a product from where it may be one of several


class Shape(NamedTuple):
    """What slides: the kernel, how, and to how many places. (A tuple: it is looked up at every call.)"""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int
    count: Sizes  # type: ignore[assignment]  # a method of tuples

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def pointwise(self) -> bool:
        return self.taps == 1 and set(self.stride) == {1} and not any(self.padding)


# ---- blocks


def _blocks(examples: int, positions: int, rows: int, each: int) -> list[tuple[slice, slice]]:
    """Slices of examples and of rows of places, ``each`` bytes of columns for a place: as many as fit, at least one row."""
    whole = max(positions * each, 1)
    if whole <= 4 * BLOCK or rows == 1:
        many = max(BLOCK // whole, 1)
        return [(slice(i, min(i + many, examples)), slice(0, rows)) for i in range(0, examples, many)]
    some = max(rows * BLOCK // whole, 1)
    return [(slice(i, i + 1), slice(j, min(j + some, rows))) for i in range(examples) for j in range(0, rows, some)]


class _Windows:
    """The windows of blocks of an input, copied into memory that is used again."""

    def __init__(self, x: Any, shape: Shape, last: bool) -> None:
        self.x, self.shape, self.last = x, shape, last
        self.border: Any = None
        self.held: slice | None = None
        self.memory = np.empty(0, x.dtype)

    def _padded(self, part: slice) -> Any:
        if not any(self.shape.padding):
            return self.x[part]
        sizes = [n + 2 * p for n, p in zip(self.x.shape[2:], self.shape.padding, strict=True)]
        many = part.stop - part.start
        if self.border is None or self.border.shape[0] < many:
            self.border = self._zeros(many, sizes)
        if self.held != part:
            self.border[:many][inside(self.shape.padding)] = self.x[part]
            self.held = part
        return self.border[:many]

    def _zeros(self, many: int, sizes: list[int]) -> Any:
        channels = self.x.shape[1]
        if not self.last:
            return np.zeros((many, channels, *sizes), self.x.dtype)
        return np.moveaxis(np.zeros((many, *sizes, channels), self.x.dtype), -1, 1)

    def of(self, part: slice, rows: slice, order: str) -> Any:
        """Windows with the dimensions of ``order``: n examples, c channels, k the kernel's, o places."""
        shape = self.shape
        count = (rows.stop - rows.start, *shape.count[1:])
        x = self._padded(part)[:, :, rows.start * shape.stride[0] :]
        view = windows(x, shape.kernel, shape.stride, shape.dilation, count)
        dims = len(shape.kernel)
        axes = {"n": [0], "c": [1], "k": range(2, 2 + dims), "o": range(2 + dims, 2 + 2 * dims)}
        view = view.transpose([a for letter in order for a in axes[letter]])
        if self.memory.size < view.size:
            self.memory = np.empty(view.size, self.x.dtype)
        columns = self.memory[: view.size].reshape(view.shape)
        np.copyto(columns, view)
        return columns


# ---- forward


def _forward(x: Any, w: Any, bias: Any, shape: Shape) -> Any:
    last = shape.groups == 1 and (is_channels_last(x) or is_channels_last(w))
    if shape.pointwise:
        return _pointwise(x, w, bias, shape, last)
    if not last and sliding.takes(x, w.shape[0], shape):
        return sliding.forward(x, w, bias, shape)
    if not last and _slides(w, shape):
        return _by_rows(x, w, bias, shape)
    n, channels, out = x.shape[0], w.shape[0], shape.count
    y = memory.empty((n, *out, channels) if last else (n, channels, *out), x.dtype)
    inner = w.shape[1] * shape.taps
    weights = np.moveaxis(w, 1, -1).reshape(channels, inner).T if last else w.reshape(shape.groups, -1, inner)
    each = x.shape[1] * shape.taps * x.itemsize
    blocks = _blocks(n, math.prod(out), out[0], each)

    def work(some: slice) -> None:
        view = _Windows(x, shape, last)
        for part, rows in blocks[some]:
            if last:
                columns = view.of(part, rows, "nokc")
                target = y[part, rows].reshape(-1, channels)
                np.matmul(columns.reshape(-1, inner), weights, out=target)
            else:
                columns = view.of(part, rows, "ncko")
                many = part.stop - part.start
                tail = math.prod(out[1:])
                target = y.reshape(n, shape.groups, -1, math.prod(out))[
                    part, :, :, rows.start * tail : rows.stop * tail
                ]
                np.matmul(weights, columns.reshape(many, shape.groups, inner, -1), out=target)
            if bias is not None:
                target += bias if last else bias.reshape(shape.groups, -1, 1)

    with one_thread():
        in_parallel(work, len(blocks))
    return np.moveaxis(y, -1, 1) if last else y


def _slides(w: Any, shape: Shape) -> bool:
    """Whether it pays to add products for each row of the kernel: they have more terms than the sum of them costs."""
    return shape.stride[0] == 1 and shape.kernel[0] > 1 and w.shape[1] * math.prod(shape.kernel[1:]) >= LEAST


def _rows_of(shape: Shape) -> Shape:
    """The windows along all dimensions but the first."""
    rows = shape.count[0] + shape.dilation[0] * (shape.kernel[0] - 1)
    return shape._replace(kernel=(1, *shape.kernel[1:]), count=(rows, *shape.count[1:]))


def _matrices(view: _Windows, part: slice, rows: slice, shape: Shape) -> Iterator[tuple[int, Any]]:
    """For each row of the kernel, the matrix (n, groups, terms, places) of its windows."""
    many, step = rows.stop - rows.start, shape.dilation[0]
    window_rows = view.of(part, slice(rows.start, rows.stop + step * (shape.kernel[0] - 1)), "ncko")
    tail = math.prod(shape.count[1:])
    columns = window_rows.reshape(window_rows.shape[0], shape.groups, -1, (many + step * (shape.kernel[0] - 1)) * tail)
    for k in range(shape.kernel[0]):
        yield k, columns[..., k * step * tail : (k * step + many) * tail]


def _by_rows(x: Any, w: Any, bias: Any, shape: Shape) -> Any:
    n, channels, groups, out = x.shape[0], w.shape[0], shape.groups, shape.count
    y = memory.empty((n, channels, *out), x.dtype)
    weights = np.ascontiguousarray(np.moveaxis(w, 2, 0)).reshape(w.shape[2], groups, channels // groups, -1)
    inner, tail = _rows_of(shape), math.prod(out[1:])
    blocks = _blocks(n, math.prod(out), out[0], x.shape[1] * inner.taps * x.itemsize)

    def work(some: slice) -> None:
        view, scratch = _Windows(x, inner, False), np.empty(0, x.dtype)
        for part, rows in blocks[some]:
            target = y.reshape(n, groups, -1, math.prod(out))[part, :, :, rows.start * tail : rows.stop * tail]
            for k, columns in _matrices(view, part, rows, shape):
                if not k:
                    np.matmul(weights[0], columns, out=target)
                    continue
                if scratch.size < target.size:
                    scratch = np.empty(target.size, x.dtype)
                more = scratch[: target.size].reshape(target.shape)
                np.matmul(weights[k], columns, out=more)
                np.add(target, more, out=target)
            if bias is not None:
                np.add(target, bias.reshape(groups, -1, 1), out=target)

    with one_thread():
        in_parallel(work, len(blocks))
    return y


def _pointwise(x: Any, w: Any, bias: Any, shape: Shape, last: bool) -> Any:
    n, inner, count = x.shape[0], w.shape[1], math.prod(shape.count)
    if last:
        y = product(np.moveaxis(x, 1, -1).reshape(n * count, inner), w.reshape(-1, inner).T)
        y = np.moveaxis(y.reshape(n, *shape.count, w.shape[0]), -1, 1)
    else:
        groups = shape.groups
        if groups == 1:
            y = product(w.reshape(-1, inner), x.reshape(n, inner, count))
        else:
            y = product(w.reshape(groups, -1, inner), x.reshape(n, groups, inner, count))
        y = y.reshape(n, w.shape[0], *shape.count)
    if bias is not None:
        y += bias.reshape(-1, *[1] * len(shape.count))
    return y


# ---- transposed


def _transposed(x: Any, w: Any, bias: Any, shape: Shape, out: Sizes) -> Any:
    """The transpose; ``shape.count`` are the sizes of x."""
    turned = _turned_shape(shape, out)
    if turned is not None:
        return _forward(x, _turned(w, shape.groups), bias, turned)
    if max(shape.stride) > 1 and sliding.takes(x, w.shape[1] * shape.groups, shape) and not is_channels_last(x):
        return _by_phases(x, w, bias, shape, out)
    y = _scattered(x, w, shape, out)
    if bias is not None:
        y += bias.reshape(-1, *[1] * len(out))
    return with_channels_last(y) if is_channels_last(x) or is_channels_last(w) else y


@functools.lru_cache(maxsize=512)
def _turned_shape(shape: Shape, out: Sizes) -> Shape | None:
    """What a transposed convolution is with turned weights; None if it is no convolution."""
    padding = tuple([d * (k - 1) - p for k, d, p in zip(shape.kernel, shape.dilation, shape.padding, strict=True)])
    least = spread_sizes(shape.count, shape.kernel, shape.stride, shape.padding, shape.dilation, (0,) * len(out))
    fits = set(shape.stride) == {1} and min(padding) >= 0 and least == out
    return shape._replace(padding=padding, count=out) if fits else None


def _turned(w: Any, groups: int) -> Any:
    """Weights (in, out / groups, *kernel) of a transposed convolution as those of a convolution."""
    each = w.shape[0] // groups
    grouped = w.reshape(groups, each, *w.shape[1:]).swapaxes(1, 2)
    flipped = grouped[(..., *[slice(None, None, -1)] * (w.ndim - 2))]
    return np.ascontiguousarray(flipped).reshape(groups * w.shape[1], each, *w.shape[2:])


def _by_phases(x: Any, w: Any, bias: Any, shape: Shape, out: Sizes) -> Any:
    """Of places that are a stride apart, each comes from the same elements of the kernel: a convolution without stride."""
    channels = w.shape[1] * shape.groups
    x, y = memory.contiguous(x), memory.empty((x.shape[0], channels, *out), x.dtype)
    for phase in itertools.product(*map(range, shape.stride)):
        dims = [
            _phase(*each)
            for each in zip(phase, shape.kernel, shape.stride, shape.padding, shape.dilation, out, strict=True)
        ]
        taps, padding, dilation, slices, count = zip(*dims, strict=True)
        kernel = _turned(w[(slice(None), slice(None), *taps)], shape.groups)
        here = y[(slice(None), slice(None), *slices)]
        if kernel.size and here.size:
            one = Shape(kernel.shape[2:], (1,) * len(out), padding, dilation, shape.groups, count)
            sliding.forward(x, kernel, None, one, here)
        else:  # no element reaches these
            here[...] = 0
    if bias is not None:
        y += bias.reshape(-1, *[1] * len(out))
    return y


def _phase(r: int, k: int, s: int, p: int, d: int, n: int) -> tuple[slice, int, int, slice, int]:
    """Along a dimension, for the places q s + r - p of a transposed convolution: the elements of the kernel they come
    from, the padding and dilation of these as a convolution, the places and how many they are.
    """
    taps = [t for t in range(k) if t * d % s == r]
    step, dilation = s // math.gcd(s, d), d // math.gcd(s, d)
    first = max(0, -((r - p) // s))  # the least q
    outputs = slice(first * s + r - p, n, s)
    count = len(range(n)[outputs])
    if not taps:
        return slice(0, 0), 0, 1, outputs, count
    before = (taps[0] * d - r) // s  # elements of the input between q and the first
    return slice(taps[0], k, step), before + (len(taps) - 1) * dilation - first, dilation, outputs, count


def _scattered(x: Any, w: Any, shape: Shape, out: Sizes) -> Any:
    """Products for every window, added to where it is."""
    n, groups, each, count = x.shape[0], shape.groups, w.shape[0] // shape.groups, math.prod(shape.count)
    channels, y = w.shape[1] * groups, memory.empty((x.shape[0], w.shape[1] * groups, *out), x.dtype)
    weights = w.reshape(groups, each, -1).swapaxes(1, 2)
    x = x.reshape(n, groups, each, count)
    blocks = _blocks(n, count, 1, channels * shape.taps * x.itemsize)
    sizes = [m + 2 * p for m, p in zip(out, shape.padding, strict=True)]

    def work(some: slice) -> None:
        for part, _ in blocks[some]:
            columns = np.matmul(weights, x[part])
            whole = np.zeros((columns.shape[0], channels, *sizes), x.dtype)
            columns = columns.reshape(columns.shape[0], channels, *shape.kernel, *shape.count)
            add_windows(whole, columns, shape.kernel, shape.stride, shape.dilation, shape.count)
            y[part] = whole[inside(shape.padding)]

    with one_thread():
        in_parallel(work, len(blocks))
    return y


# ---- the gradient of weights


def _weight(x: Any, g: Any, shape: Shape) -> Any:
    n, groups, out = x.shape[0], shape.groups, math.prod(shape.count)
    last = groups == 1 and is_channels_last(x)
    inner, channels = x.shape[1] // groups * shape.taps, g.shape[1] // groups
    if not last and sliding.takes(x, g.shape[1], shape):
        result = sliding.weight(x, g, shape)
        if result is not None:
            return result
    by_rows = not last and out >= LEAST and shape.stride[0] == 1 and shape.kernel[0] > 1
    if by_rows:
        return _weight_by_rows(x, g, shape)
    blocks = list(_tasks(n, shape, x, out, shape.count[0]))
    sums = np.zeros((len(blocks), groups, channels, inner), x.dtype)

    def work(some: slice) -> None:
        for i in range(some.start, some.stop):
            view = _Windows(x, shape, last)
            for part, rows in blocks[i]:
                there = g[part, :, rows]
                if last:
                    columns = view.of(part, rows, "nokc").reshape(1, -1, inner)
                    other = np.moveaxis(there, 1, -1).reshape(1, -1, channels).swapaxes(1, 2)
                else:
                    columns = view.of(part, rows, "ckno").reshape(groups, inner, -1).swapaxes(1, 2)
                    other = there.swapaxes(0, 1).reshape(groups, channels, -1)
                sums[i] += np.matmul(other, columns)

    with one_thread():
        in_parallel(work, len(blocks), len(blocks))
    total = np.add.reduce(sums, 0) if len(blocks) != 1 else sums[0]
    if last:
        return np.moveaxis(total.reshape(channels, *shape.kernel, x.shape[1]), -1, 1).copy()
    return total.reshape(g.shape[1], x.shape[1] // groups, *shape.kernel)


def _weight_by_rows(x: Any, g: Any, shape: Shape) -> Any:
    n, groups, out = x.shape[0], shape.groups, math.prod(shape.count)
    inner, channels, tail = _rows_of(shape), g.shape[1] // groups, math.prod(shape.count[1:])
    blocks = list(_tasks(n, inner, x, out, shape.count[0]))
    terms = x.shape[1] // groups * inner.taps
    sums = np.zeros((len(blocks), shape.kernel[0], groups, channels, terms), x.dtype)

    def work(some: slice) -> None:
        for i in range(some.start, some.stop):
            view = _Windows(x, inner, False)
            for part, rows in blocks[i]:
                there = g[part, :, rows].reshape(-1, groups, channels, (rows.stop - rows.start) * tail)
                for k, columns in _matrices(view, part, rows, shape):
                    for a, b in zip(there, columns, strict=True):
                        sums[i, k] += np.matmul(a, b.swapaxes(1, 2))

    with one_thread():
        in_parallel(work, len(blocks), len(blocks))
    total = np.add.reduce(sums, 0).reshape(shape.kernel[0], g.shape[1], x.shape[1] // groups, *shape.kernel[1:])
    return np.ascontiguousarray(np.moveaxis(total, 0, 2))


def _tasks(n: int, shape: Shape, x: Any, out: int, rows: int) -> Iterator[list[tuple[slice, slice]]]:
    """Blocks in as many parts as sums are made in."""
    blocks = _blocks(n, out, rows, x.shape[1] * shape.taps * x.itemsize)
    parts = min(PARTS, len(blocks))
    for i in range(parts):
        yield blocks[len(blocks) * i // parts : len(blocks) * (i + 1) // parts]


# ---- attached


@functools.lru_cache(maxsize=512)
def _known(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any,
    groups: int,
) -> tuple[Sizes, Shape]:  # fmt: skip
    """The sizes of the result for arrays of these shapes and dtypes, and what slides."""
    given = [None if each is None else Spec(*each) for each in (input, weight, bias)]
    sizes = infer_convolution(*given, stride, padding, dilation, transposed, extra, groups).shape[2:]
    return sizes, Shape(weight[0][2:], stride, padding, dilation, groups, input[0][2:] if transposed else sizes)


@attach("convolution", np.ndarray)
def convolution(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
) -> Any:
    """The kernel of `genesis.convolution`."""
    packed = input.flags.c_contiguous and weight.flags.c_contiguous
    given = (input.shape, input.dtype), (weight.shape, weight.dtype), bias if bias is None else (bias.shape, bias.dtype)
    sizes, shape = _known(*given, stride, padding, dilation, transposed, extra, groups)
    x, w, b = (input, weight, bias) if input.dtype is F32 else widened(input, weight, bias)
    if not (input.size and math.prod(sizes)):  # no products
        out = np.zeros((x.shape[0], w.shape[1] * groups if transposed else w.shape[0], *sizes), x.dtype)
        out += 0 if b is None else b.reshape(-1, *[1] * len(sizes))
    else:
        out = _transposed(x, w, b, shape, sizes) if transposed else _forward(x, w, b, shape)
    if not packed and (is_channels_last(x) or is_channels_last(w)) and not is_channels_last(out):
        out = with_channels_last(out)
    return out if out.dtype is input.dtype else out.astype(input.dtype)


@attach("convolution_weight", np.ndarray)
def convolution_weight(
    input: Any, other: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The kernel of a convolution's gradient for its weight."""
    x, g = widened(input, other)
    shape = Shape(tuple(kernel), stride, padding, dilation, groups, g.shape[2:])
    if not (x.size and g.size):
        return np.zeros((g.shape[1], x.shape[1] // groups, *kernel), input.dtype)
    out = _weight(x, g, shape).astype(input.dtype, copy=False)
    return with_channels_last(out) if one_is_channels_last(input, other) else out
