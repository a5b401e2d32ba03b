"""Launches of the kernels of windows, whose code is in `pooling_code`: for arrays that are laid out in any way, with tables that
are made once, and stay on the device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import memory_order
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels import pooling_code as code
from genesis.cuda.kernels.lanes import INT
from genesis.cuda.kernels.moves import broadcast
from genesis.cuda.kernels.pooling_code import Form
from genesis.cuda.kernels.signatures import remember
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, Prepared, interpreted
from genesis.cuda.memory.sequence import taken_elsewhere, taking
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

TABLES = 256  # on a device
EACH = 8  # elements of a thread: 16 bytes of 16-bit floats; half as many where columns are gathered, one by one
FEWEST = 264  # programs that there should be: two for each processor of an H100
MANY = 1 << 15  # programs from which larger ones are faster: an H200 starts some 0.6 in a nanosecond
INT32 = np.dtype(np.int32)
Grid = tuple[int, int, int]


class Tiles(Launched):
    """The kernel of a form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.source, self.warps = code.source(form), form.warps
        self.dtypes = form.dtypes
        weights = np.dtype(form.wide) if form.weighted else INT32
        dims, sources = len(form.taps), len(code.SOURCES[form.kind])
        self.given = [
            *form.dtypes[:sources],
            *[INT32] * dims,
            *[weights] * (len(form.tables) - dims),
            *form.dtypes[sources:],
        ]
        letter, kind = ("q", "i64") if form.long else ("i", "i32")
        count = len(form.numbers)
        self.signature = (*[pointer_to(d) for d in self.given], *[kind] * count, *["fp64"] * bool(form.scaled))
        self.letters = "Q" * len(self.given) + letter * count + "d" * bool(form.scaled)
        # rows, and sizes of all dimensions but the last, tell nothing about what lies beside what
        first = len(self.given)
        sizes = [i for i, name in enumerate(form.numbers) if name[0] == "s" or name == "rows"]
        self.free = frozenset([first + i for i in sizes if form.numbers[i] != f"s{form.rank - 1}"])

    # ---- on the emulated device

    def _read(
        self, values: tuple[Any, ...]
    ) -> tuple[dict[str, Any], list[tuple[int, Any, tuple[int, ...], tuple[int, ...]]]]:
        """The numbers, and address, dtype, shape and strides of each operand: of sources the spatial dimensions come last,
        behind ones of a stride of zero.
        """
        form = self.form
        rank, pointers = form.rank, len(self.given)
        numbers = dict(zip(form.numbers, values[pointers : pointers + len(form.numbers)], strict=True))
        shape = [numbers[f"s{d}"] for d in range(rank)]
        laid: dict[str, Any] = {}
        for name in form.operands:
            strides = [numbers[f"{name}_{d}"] for d in range(rank)]
            if name in code.RESULTS[form.kind]:
                laid[name] = shape, strides
            else:
                sizes = [numbers[f"size{d}"] for d in range(len(form.axes))]
                still = [0 if d in form.axes else s for d, s in enumerate(strides)]
                laid[name] = [*shape, *sizes], [*still, *[strides[a] for a in form.axes]]
        for name in form.tables:
            d = int(name[-1])
            size = shape[form.axes[d]]
            laid[name] = [form.taps[d], size], [size, 1]
        names = [*code.SOURCES[form.kind], *form.tables, *code.RESULTS[form.kind]]
        return numbers, [(values[i], self.given[i], *map(tuple, laid[name])) for i, name in enumerate(names)]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        first = len(self.given) - len(code.RESULTS[self.form.kind])
        return [
            (
                address,
                (1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])) * dtype.itemsize,
                i >= first,
            )
            for i, (address, dtype, shape, strides) in enumerate(self._read(values)[1])
        ]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        numbers, operands = self._read(values)
        spans, results = self.spans(grid, values), len(code.RESULTS[self.form.kind])
        arrays = [memory.array(a, o[1], n // o[1].itemsize) for (a, n, _), o in zip(spans, operands, strict=True)]
        if interpreted():
            made = interpreter.run(self.source, grid, [*arrays, *values[len(arrays) :]])
            for i in range(len(arrays) - results, len(arrays)):
                arrays[i][...] = made[i]
            return
        views = [
            np.lib.stride_tricks.as_strided(a, shape, [s * a.itemsize for s in strides])
            for a, (_, _, shape, strides) in zip(arrays, operands, strict=True)
        ]
        with np.errstate(all="ignore"):
            _meaning(self.form, views, numbers, values[-1])


def _meaning(form: Form, views: list[Any], numbers: dict[str, Any], by: float) -> None:
    """What a kernel does, with NumPy."""
    names = [*code.SOURCES[form.kind], *form.tables, *code.RESULTS[form.kind]]
    of = dict(zip(names, views, strict=True))
    shape = of[code.RESULTS[form.kind][0]].shape
    dims, lanes = range(len(form.taps)), np.ogrid[tuple([slice(n) for n in shape])]

    def along(d: int, row: Any) -> Any:
        """Numbers for the elements along a spatial dimension."""
        return row.reshape([-1 if i == form.axes[d] else 1 for i in range(len(shape))])

    total = np.full(shape, -0.0 if form.whole and form.wide != "int64" else 0, form.wide)
    best = np.full(shape, np.iinfo(np.int64).min if form.wide == "int64" else -np.inf, form.wide)
    chosen: Any = None
    for tap in np.ndindex(form.taps):
        at = [along(d, of[f"table{d}"][k]).astype(np.int64) for d, k in enumerate(tap)]
        told = [along(d, of[f"of{d}"][k]) for d, k in enumerate(tap) if f"of{d}" in of]
        read = [of[name][(*lanes, *[np.maximum(p, 0) for p in at])] for name in code.SOURCES[form.kind]]
        value = read[0].astype(form.wide)
        if form.kind == "back":
            total += np.where(read[1] == sum(told), value, 0)
        elif form.kind == "sum":
            value = math.prod(told, start=value)
            total += np.where(functools.reduce(np.bitwise_or, at) >= 0, value, total.dtype.type(0))
        else:
            here = sum(told) if told else functools.reduce(lambda a, d: a * numbers[f"size{d}"] + at[d], dims, 0)
            larger = (value > best) | (value != value)
            best, chosen = np.where(larger, value, best), np.where(larger | (chosen is None), here, chosen)
    if form.kind in ("sum", "back"):
        if form.scaled:
            total = total * total.dtype.type(by) if form.scaled == "*" else total / total.dtype.type(by)
        of["out"][...] = total.astype(of["out"].dtype)
        return
    of["at" if form.kind == "positions" else "which"][...] = chosen
    if form.kind == "largest":
        of["out"][...] = best.astype(of["out"].dtype)


@functools.cache
def _kernel(form: Form) -> Tiles:
    return Tiles(form)


# ---- launches


@dataclass(frozen=True, slots=True)
class Tables:
    """What a kernel is told of its windows, on the host.

    Attributes:
        positions: for each spatial dimension, a row for each tap
        told: weights, or parts of numbers, in the same form; none where there are none
        whole: whether all taps are there
    """

    positions: Sequence[Any]
    told: Sequence[Any] = ()
    weighted: bool = False
    whole: bool = False


class Taps:
    """The same on a device."""

    def __init__(self, tables: Tables, like: CudaArray) -> None:
        wide = np.dtype(code.wide_of(like.dtype)) if tables.weighted else INT32
        with taking(None):  # it is no part of what a graph repeats
            self.arrays = [MEMORY.from_host(np.ascontiguousarray(t, INT32), like.device) for t in tables.positions]
            self.arrays += [MEMORY.from_host(np.ascontiguousarray(t, wide), like.device) for t in tables.told]
        self.addresses = [a.address for a in self.arrays]
        self.counts = tuple([len(t) for t in tables.positions])
        self.weighted, self.whole = tables.weighted, tables.whole


def taps_of(like: CudaArray, key: Any, make: Callable[[], Tables]) -> Taps:
    """Tables that were made before. Those that work reads which may be repeated as a graph stay on the device."""
    on = like.storage.on
    kept: dict[Any, Taps] = on.kept.get("taps") or on.keep("taps", lambda _: {})
    held: dict[Any, Taps] = on.kept.get("taps of graphs") or on.keep("taps of graphs", lambda _: {})
    key = key, code.wide_of(like.dtype)
    taps = kept.get(key) or held.get(key)
    if taps is None:
        if len(kept) >= TABLES:
            kept.clear()
        taps = kept[key] = Taps(make(), like)
    if taken_elsewhere(on):
        held[key] = taps
    return taps


def started(
    kind: str,
    sources: tuple[CudaArray, ...],
    results: tuple[CudaArray, ...],
    dims: tuple[int, ...],
    taps: Taps,
    count: int = 1,
) -> None:
    """Compute results from sources that differ from them in the spatial dimensions ``dims`` alone; sums are divided by ``count``."""
    arrays = *sources, *results
    stream = used(*arrays, *taps.arrays).handle
    key = kind, dims, taps, count, *[a._layout or a.layout for a in arrays]
    prepared, numbers = _prepared.get(key) or (None, ())
    values = *[a.address for a in sources], *taps.addresses, *[a.address for a in results]
    if prepared is None:
        kernel, grid, numbers = _made(kind, arrays, len(sources), dims, taps, count)
        prepared = kernel.prepared(arrays[0].storage.on, grid, (*values, *numbers))
        if prepared.lasting:
            remember(_prepared, key, (prepared, numbers))
    prepared.start(stream, (*values, *numbers))


# what was started before, by how operands lie, and the numbers that it is told
_prepared: dict[Any, tuple[Prepared, tuple[Any, ...]]] = {}


def _made(kind: str, arrays: Sequence[CudaArray], sources: int, dims: tuple[int, ...], taps: Taps, count: int) -> Any:
    """The kernel, its grid, and the numbers that it is told."""
    dtypes = tuple([a.dtype for a in arrays])
    exact = dtypes[0] in HALVES or count & (count - 1) == 0  # then a product gives the same digits
    scaled = "" if count == 1 else "*" if exact else "/"
    shapes = [a.shape for a in arrays]
    strides = [broadcast(a, a.shape) for a in arrays]
    axes, extents, steps = _joined(shapes[-1], strides, dims)
    rank, rows, columns = len(extents), math.prod(extents[:-1]), extents[-1]
    ends = [sum([(n - 1) * s for n, s in zip(*each, strict=True)]) for each in zip(shapes, strides, strict=True)]
    tile = _tile(rows, columns, rank - 1 in axes)
    form = Form(
        kind, dtypes, taps.counts, axes, tuple([k[-1] if k[-1] in (0, 1) else 2 for k in steps]), rank, *tile,
        taps.weighted, taps.whole, len(set(strides[:sources])) == 1, scaled, max(*ends, rows * columns) >= INT,
    )  # fmt: skip
    by = [] if not scaled else [1 / count if exact else float(count)]
    numbers = (rows, *extents, *[n for k in steps for n in k], *[shapes[0][d] for d in dims], *by)
    return _kernel(form), (-(-rows // tile[1]) * -(-columns // tile[2]), 1, 1), numbers


def _joined(shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], dims: tuple[int, ...]) -> Any:
    """The dimensions in the order of memory, joined where they can be: which are the spatial ones, their sizes, and the strides
    of each array.
    """
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    axes: dict[int, int] = {}
    for d in sorted(memory_order(strides[-1]), key=lambda d: shape[d] > 1):
        free = extents and d not in dims and len(extents) - 1 not in axes.values()
        if d in dims:
            axes[d] = len(extents)
        elif shape[d] == 1:
            continue
        if free and all([k[-1] == s[d] * shape[d] for k, s in zip(steps, strides, strict=True)]):
            extents[-1] *= shape[d]
            for k, s in zip(steps, strides, strict=True):
                k[-1] = s[d]
            continue
        extents.append(shape[d])
        for k, s in zip(steps, strides, strict=True):
            k.append(s[d])
    if len(extents) == 1:  # there are rows
        return (1,), [1, *extents], [[0, *k] for k in steps]
    return tuple([axes[d] for d in dims]), extents, steps


def _tile(rows: int, columns: int, gathered: bool) -> tuple[int, int, int]:
    """Warps, rows and columns of a program: few elements that are not there, and of a row as many as can be."""
    wide = min([1 << i for i in range(3, 8)], key=lambda v: -(-columns // v) * v * (1 + 4 / v))
    each = EACH // 2 if gathered else EACH
    while each > 1 and rows * columns < FEWEST * 128 * each:
        each //= 2
    warps = 8 if rows * columns > MANY * 128 * each else 4
    return warps, max(32 * warps * each // wide, 1), wide
