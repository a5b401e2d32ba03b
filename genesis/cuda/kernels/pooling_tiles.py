"""Launches of the kernels of windows, whose code is in `pooling_code`: for arrays that are laid out in any way, with tables that
are made once, and stay on the device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import memory_order
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels import pooling_code as code
from genesis.cuda.kernels.lanes import INT
from genesis.cuda.kernels.moves import broadcast
from genesis.cuda.kernels.pooling_code import Form
from genesis.cuda.kernels.signatures import KNOWN
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
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

    total = np.zeros(shape, form.wide)
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


def on_device(like: CudaArray, key: Any, make: Any, dtype: Any) -> CudaArray:
    """An array of the host that is always the same, on a device. What work reads that may be repeated as a graph stays there."""
    on = like.storage.on
    kept: dict[Any, CudaArray] = on.kept.get("tables") or on.keep("tables", lambda _: {})
    held: dict[Any, CudaArray] = on.kept.get("tables of graphs") or on.keep("tables of graphs", lambda _: {})
    array = held.get(key)
    if array is None:
        array = kept.get(key)
    if array is None:
        if len(kept) >= TABLES:
            kept.clear()
        with taking(None):  # it is no part of what a graph repeats
            array = kept[key] = MEMORY.from_host(np.ascontiguousarray(make(), dtype), like.device)
    if taken_elsewhere(on):
        held[key] = array
    return array


def started(kind: str, sources: Sequence[CudaArray], results: Sequence[CudaArray], dims: Sequence[int], tables: Sequence[CudaArray],
            taps: tuple[int, ...], weighted: bool = False, whole: bool = False, count: int = 1) -> None:  # fmt: skip
    """Compute results from sources that differ from them in the spatial dimensions ``dims`` alone; sums are divided by ``count``."""
    strides = [broadcast(a, a.shape) for a in (*sources, *results)]
    sizes = tuple([sources[0].shape[d] for d in dims])
    dtypes = tuple([a.dtype for a in (*sources, *results)])
    exact = dtypes[0] in HALVES or count & (count - 1) == 0  # then a product gives the same digits
    scaled = "" if count == 1 else "*" if exact else "/"
    form, numbers, grid = _laid_out(
        kind, results[0].shape, sizes, tuple(strides), dtypes, tuple(dims), taps, weighted, whole, scaled
    )
    arrays = [*sources, *tables, *results]
    by = [] if not scaled else [1 / count if exact else float(count)]
    values = (*[a.address for a in arrays], *numbers, *by)
    _kernel(form).start(results[0].on, used(*arrays).handle, grid, values)


@functools.lru_cache(KNOWN)
def _laid_out(kind: str, shape: tuple[int, ...], sizes: tuple[int, ...], strides: tuple[tuple[int, ...], ...],
              dtypes: tuple[Any, ...], dims: tuple[int, ...], taps: tuple[int, ...], weighted: bool, whole: bool, scaled: str) -> Any:  # fmt: skip
    """The form of a kernel, its numbers and its grid: dimensions in the order of memory, joined where they can be."""
    extents: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    axes: dict[int, int] = {}
    for d in sorted(memory_order(strides[-1]), key=lambda d: shape[d] > 1):
        if d in dims:
            axes[d] = len(extents)
        elif shape[d] == 1:
            continue
        elif extents and len(extents) - 1 not in axes.values() and all(
            [k[-1] == s[d] * shape[d] for k, s in zip(steps, strides, strict=True)]
        ):  # fmt: skip
            extents[-1] *= shape[d]
            for k, s in zip(steps, strides, strict=True):
                k[-1] = s[d]
            continue
        extents.append(shape[d])
        for k, s in zip(steps, strides, strict=True):
            k.append(s[d])
    rank, rows, columns = len(extents), math.prod(extents[:-1]), extents[-1]
    furthest = max([sum([(n - 1) * s for n, s in zip(shape, each, strict=True)]) for each in strides])
    of_sources = max([math.prod(sizes) * max(each) for each in strides])
    tile = _tile(rows, columns, rank - 1 in axes.values())
    alike = len({k for k in strides[: len(code.SOURCES[kind])]}) == 1
    form = Form(
        kind, dtypes, taps, tuple([axes[d] for d in dims]), tuple([k[-1] if k[-1] in (0, 1) else 2 for k in steps]), rank, *tile,
        weighted, whole, alike, scaled, max(math.prod(shape), furthest, of_sources + furthest) >= INT,
    )  # fmt: skip
    numbers = (rows, *extents, *[n for k in steps for n in k], *sizes)
    return form, numbers, (-(-rows // tile[1]) * -(-columns // tile[2]), 1, 1)


def _tile(rows: int, columns: int, gathered: bool) -> tuple[int, int, int]:
    """Warps, rows and columns of a program: few elements that are not there, and of a row as many as can be."""
    wide = min([1 << i for i in range(3, 8)], key=lambda v: -(-columns // v) * v * (1 + 4 / v))
    each = EACH // 2 if gathered else EACH
    while each > 1 and rows * columns < FEWEST * 128 * each:
        each //= 2
    warps = 8 if rows * columns > MANY * 128 * each else 4
    return warps, max(32 * warps * each // wide, 1), wide
