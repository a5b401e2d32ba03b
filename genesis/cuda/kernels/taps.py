"""Sums and largest elements along a dimension by a table, which says for each result what goes into it: pooling,
interpolation, reflected borders, windows as columns and back.

The rules are those of `genesis.ops.spatial.tables`; their tables are made once, and stay on the device.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.lanes import LANES, Code, Operand, Placed, start
from genesis.cuda.kernels.moves import copied, part
from genesis.cuda.memory.sequence import taking
from genesis.ops.spatial.tables import sizes_of, taps

KEPT = 256  # tables on a device
INT64, F32, F64 = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)

# ---- what lanes do

_TAPS = """
{first}
for k in range(0, count):
    i = tl.load(table + table_at + k * table_step0, mask=inside, other=-1)
    ok = inside & (i >= 0)
    value = tl.load(x + x_at + i * x_step0, mask=ok, other=0).to(tl.{wide})
"""


def _read(x: Any, table: Any, k: int) -> tuple[Any, Any]:
    """The k-th element of each lane, and whether there is one."""
    i = np.broadcast_to(table[..., k], x.shape[:-1])
    return np.take_along_axis(x, np.where(i >= 0, i, 0)[..., None], -1)[..., 0], i >= 0


@functools.cache
def summing(wide: str, weighted: bool) -> Code:
    """Sums of the elements of a table, in a wide dtype, with weights or without."""
    factor = " * tl.load(weights + weights_at + k * weights_step0, mask=ok, other=0)" if weighted else ""
    lines = (
        _TAPS.format(first=f"total = tl.zeros([{LANES}], tl.{wide})", wide=wide).strip()
        + f"\n    total += value{factor}\ntl.store(out + out_at, total.to(out.dtype.element_ty), mask=inside)"
    )

    def meaning(x: Any, table: Any, *rest: Any) -> None:
        out, count = rest[-2], rest[-1]
        total = np.zeros(out.shape, wide)
        for k in range(count):
            value, ok = _read(x, table, k)
            part = value.astype(wide) * rest[0][..., k] if weighted else value.astype(wide)
            total += np.where(ok, part, total.dtype.type(0))
        out[...] = total.astype(out.dtype)

    weights = (Operand("weights", 1),) if weighted else ()
    operands = (Operand("x", 1), Operand("table", 1), *weights, Operand("out", writes=True))
    return Code("sum of taps", operands, lines, meaning, ("count",))


@functools.cache
def largest(wide: str, inner: bool) -> Code:
    """The largest element of a table, of equals the first, NaN above all; and where it is, with ``inner`` of the dimensions
    behind as well.
    """
    first = f"best = tl.load(x + x_at, mask=inside, other=0).to(tl.{wide})\nat_best = tl.full([{LANES}], -1, tl.int64)"
    where = "tl.load(inner + inner_at + tl.where(at_best < 0, 0, at_best) * inner_step0, mask=inside, other=0) + at_best * size"
    lines = (
        _TAPS.format(first=first, wide=wide).strip()
        + "\n    larger = ok & ((value > best) | (value != value) | (at_best < 0))"
        + "\n    best = tl.where(larger, value, best)\n    at_best = tl.where(larger, i, at_best)"
        + "\ntl.store(out + out_at, best.to(out.dtype.element_ty), mask=inside)"
        + f"\ntl.store(position + position_at, {where if inner else 'at_best'}, mask=inside)"
    )

    def meaning(x: Any, table: Any, *rest: Any) -> None:
        out, position, count, size = rest[-4:]
        best, at = np.zeros(out.shape, x.dtype), np.full(out.shape, -1, np.int64)
        for k in range(count):
            value, ok = _read(x, table, k)
            larger = ok & ((value > best) | (value != value) | (at < 0))
            best, at = np.where(larger, value, best), np.where(larger, table[..., k], at)
        out[...] = best
        before = np.take_along_axis(rest[0], np.where(at < 0, 0, at)[..., None], -1)[..., 0] if inner else 0
        position[...] = before + at * size if inner else at

    further = (Operand("inner", 1),) if inner else ()
    operands = (
        Operand("x", 1),
        Operand("table", 1),
        *further,
        Operand("out", writes=True),
        Operand("position", writes=True),
    )
    return Code("largest of taps", operands, lines, meaning, ("count", "size"))


# ---- tables


def on_device(like: CudaArray, key: Any, make: Any, dtype: Any) -> CudaArray:
    """An array of the host that is always the same, on a device."""
    kept = like.on.keep("tables", lambda _: {})
    if key not in kept:
        if len(kept) >= KEPT:
            kept.clear()
        with taking(None):  # it is no part of what a graph repeats
            kept[key] = MEMORY.from_host(np.ascontiguousarray(make(), dtype), like.device)
    return kept[key]  # type: ignore[no-any-return]


def _wide(x: CudaArray) -> str:
    if x.dtype in HALVES or x.dtype == F32:
        return "float32"
    return "float64" if x.dtype == F64 else "int64"


def _along(x: CudaArray, dim: int) -> Placed:
    """Lanes that stay where they are along a dimension, whose elements are named."""
    strides = (*x.strides[:dim], 0, *x.strides[dim + 1 :])
    return Placed(x, strides, ((x.shape[dim], x.strides[dim]),))


def _row(table: CudaArray, rank: int, dim: int) -> Placed:
    """A row of a table for each place along a dimension."""
    strides = [0] * rank
    strides[dim] = table.strides[0]
    return Placed(table, tuple(strides), ((table.shape[1], table.strides[1]),))


def summed(x: CudaArray, dim: int, key: Any, made: Any) -> CudaArray:
    """Sums along a dimension, by positions and weights that ``made()`` gives."""
    positions, weights = made()
    shape = (*x.shape[:dim], len(positions), *x.shape[dim + 1 :])
    out = MEMORY.empty(shape, x.dtype, x.device)
    wide = _wide(x)
    table = on_device(x, (key, "positions"), lambda: positions, INT64)
    placed = [_along(x, dim), _row(table, x.ndim, dim)]
    if weights is not None:
        held = on_device(x, (key, wide), lambda: weights, np.dtype(wide))
        placed.append(_row(held, x.ndim, dim))
    start(summing(wide, weights is not None), shape, [*placed, Placed(out, out.strides)], (positions.shape[1],))
    return out


# ---- ops


def mix(input: CudaArray, dim: int, rule: Any, back: bool = False) -> Any:
    _, weights = taps(rule, back)
    if not input.size:
        shape = (*input.shape[:dim], sizes_of(rule, back)[1], *input.shape[dim + 1 :])
        return MEMORY.zeros(shape, input.dtype, input.device)
    if input.dtype.kind == "c" or (weights is not None and _wide(input) == "int64"):
        return NotImplemented
    return summed(input, dim % input.ndim, (rule, back), lambda: taps(rule, back))


def max_places(input: CudaArray, rules: Any) -> Any:
    shape = (*input.shape[: -len(rules)], *[sizes_of(rule)[1] for rule in rules])
    if 0 in shape:
        return MEMORY.empty(shape, INT64, input.device)
    if not input.size:
        return NotImplemented
    values, inner, size = input, None, 1
    for back, rule in enumerate(reversed(rules)):
        dim, (positions, _) = values.ndim - 1 - back, taps(rule)
        shape = (*values.shape[:dim], len(positions), *values.shape[dim + 1 :])
        table = on_device(input, ((rule, False), "positions"), lambda positions=positions: positions, INT64)
        out, at = (MEMORY.empty(shape, dtype, input.device) for dtype in (input.dtype, INT64))
        further = [] if inner is None else [_along(inner, dim)]
        placed = [
            _along(values, dim),
            _row(table, values.ndim, dim),
            *further,
            *[Placed(a, a.strides) for a in (out, at)],
        ]
        start(largest(_wide(input), inner is not None), shape, placed, (positions.shape[1], size))
        values, inner, size = out, at, size * rule[1]
    return inner


def unfold_columns(input: CudaArray, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = input
    if any(padding):
        sizes = [n + 2 * p for n, p in zip(input.shape[-2:], padding, strict=True)]
        x = MEMORY.zeros((*input.shape[:-2], *sizes), input.dtype, input.device)
        inside = [slice(p, p + n) for n, p in zip(input.shape[-2:], padding, strict=True)]
        if not copied(part(x, (..., *inside)), input):
            return NotImplemented
    count = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(x.shape[-2:], kernel_size, dilation, stride, strict=True)
    ]
    lead, steps = x.shape[:-2], x.strides[-2:]
    windows = x.seen(
        0,
        (*lead, *kernel_size, *count),
        (*x.strides[:-2], *[d * s for d, s in zip(dilation, steps, strict=True)],
         *[d * s for d, s in zip(stride, steps, strict=True)]),
    )  # fmt: skip
    shape = (*lead[:-1], lead[-1] * math.prod(kernel_size), math.prod(count))
    out = MEMORY.empty(shape, input.dtype, input.device)
    laid = out.seen(0, windows.shape, contiguous_strides(windows.shape))
    return out if not out.size or copied(laid, windows) else NotImplemented


@functools.lru_cache(maxsize=512)
def _overlapping(n: int, size: int, stride: int, padding: int, dilation: int, count: int) -> Any:
    """For each of n elements the numbers of (element of a window, window) that lie on it."""
    at = np.arange(size)[:, None] * dilation + np.arange(count) * stride - padding
    rows = [np.flatnonzero(at.reshape(-1) == i) for i in range(n)]
    out = np.full((n, max([len(row) for row in rows] + [1])), -1, np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def fold_columns(input: CudaArray, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    if input.dtype.kind == "c" or not input.size:
        return NotImplemented
    rules = list(zip(output_size, kernel_size, stride, padding, dilation, strict=True))
    count = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rules]
    channels, lead = input.shape[-2] // math.prod(kernel_size), input.shape[:-2]
    x = input if input.is_contiguous else MEMORY.copy(input)
    b, (kh, kw), (oh, ow) = math.prod(lead) * channels, kernel_size, count
    turned = MEMORY.empty((b, kh, oh, kw, ow), x.dtype, x.device)
    plain = (kh * kw * oh * ow, kw * oh * ow, ow, oh * ow, 1)
    copied(turned, x.seen(0, turned.shape, plain))
    out = turned.seen(0, (b, kh * oh, kw * ow), contiguous_strides((b, kh * oh, kw * ow)))
    for dim, (rule, windows) in enumerate(zip(rules, count, strict=True), 1):
        key = ("overlapping", *rule, windows)
        out = summed(out, dim, key, lambda rule=rule, windows=windows: (_overlapping(*rule, windows), None))  # type: ignore[misc]
    shape = (*lead, channels, *output_size)
    return out.seen(0, shape, contiguous_strides(shape))


KERNELS = {"mix": mix, "max_places": max_places, "unfold_columns": unfold_columns, "fold_columns": fold_columns}
