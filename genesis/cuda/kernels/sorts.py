"""Sorting. What is sorted are 64-bit integers, the key above and the position below, so that no two are equal but those that
fill a row up: equals stay as they were. What one program can sort, and few of many, are looked for in other ways (`firsts`).

How they are put in order is in `networks`. Keys of 64 bits are sorted twice, by their lower half and by their upper one.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray, empty
from genesis.cuda.kernels import firsts
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.lowering import Ready, now
from genesis.cuda.kernels.moves import part
from genesis.cuda.kernels.networks import I64, sort_rows
from genesis.cuda.kernels.signatures import remember
from genesis.cuda.runtime.streams import current

LOW = (1 << 32) - 1
LAST = (1 << 31) - 1  # the upper half of what fills a row up


def to_sort(rows: tuple[int, ...], n: int, like: CudaArray) -> CudaArray:
    """Memory for rows of ``n`` integers, which are as long as a power of two: behind them are integers that come last."""
    row = 1 << max(n - 1, 0).bit_length()
    out = empty(like.on, (*rows, row), I64)
    if row > n:
        out.on.enter().fill(out.address, LAST, 4, 2 * out.size, current(out.on).handle)
    return out


# ---- keys of rows: dimension 0 are the rows, 1 what is sorted

_FLOAT = """
v = tl.load(x + x_at + p * x_step0, mask=inside, other=0.0).to(tl.{float})
v = tl.where(v == 0, 0.0, v)
key = v.to(tl.{int}, bitcast=True)
key = tl.where(key < 0, key ^ {top}, key)
key = tl.where(v != v, {top}, key)
"""
_INTEGER = """
key = tl.load(x + x_at + p * x_step0, mask=inside, other=0).to(tl.{int})
"""
_HALF = {"": "", "low": "key = (key & 0xFFFFFFFF) - 0x80000000", "high": "key = key >> 32"}


@functools.cache
def keys(kind: str, wide: bool, down: bool, half: str) -> Code:
    """What is sorted, for numbers of a kind; their upper halves are taken in the order of the ``lower`` ones."""
    names = {"float": "float64" if wide else "float32", "int": "int64" if wide else "int32"}
    top = (1 << 63) - 1 if wide else LAST
    position = f"tl.load(lower + lower_at, mask=inside, other=0) & {LOW}" if half == "high" else "c1.to(tl.int64)"
    text = (_FLOAT if kind == "f" else _INTEGER).format(**names, top=top)
    turned = "key = ~key" if down else ""
    store = "tl.store(out + out_at, (key.to(tl.int64) << 32) | c1.to(tl.int64), mask=inside)"
    lines = [f"p = {position}", *text.split("\n"), turned, _HALF[half], store]

    def meaning(x: Any, *others: Any) -> None:
        out, columns = others[-1], np.arange(others[-1].shape[1])
        p = others[0] & LOW if half == "high" else np.broadcast_to(columns, out.shape)
        v = np.take_along_axis(x[:, 0, :], p, 1)
        key = _ordered(v.astype(names["float"]), names["int"]) if kind == "f" else v.astype(names["int"])
        key = (~key if down else key).astype(np.int64)
        key = (key & LOW) - (1 << 31) if half == "low" else key >> 32 if half == "high" else key
        out[...] = (key << 32) | columns

    lower = (Operand("lower"),) if half == "high" else ()
    operands = (Operand("x", 1), *lower, Operand("out", writes=True))
    return Code("keys", operands, "\n".join([line for line in lines if line]), meaning, whole=2)


def _ordered(v: Any, kind: str) -> Any:
    bits = np.where(v == 0, np.zeros((), v.dtype), v).view(kind)
    top = np.iinfo(kind).max
    return np.where(np.isnan(v), top, np.where(bits < 0, bits ^ top, bits))


def _first(sorted: Any, out: Any) -> None:
    out[...] = sorted & LOW


def _second(lower: Any, sorted: Any, out: Any) -> None:
    out[...] = np.take_along_axis(lower[:, 0, :], sorted & LOW, 1) & LOW


FIRST = Code(
    "positions",
    (Operand("sorted"), Operand("out", writes=True)),
    f"tl.store(out + out_at, tl.load(sorted + sorted_at, mask=inside) & {LOW}, mask=inside)",
    _first,
)
SECOND = Code(
    "positions of positions",
    (Operand("lower", 1), Operand("sorted"), Operand("out", writes=True)),
    f"r = tl.load(sorted + sorted_at, mask=inside, other=0) & {LOW}\n"
    f"tl.store(out + out_at, tl.load(lower + lower_at + r * lower_step0, mask=inside) & {LOW}, mask=inside)",
    _second,
    whole=2,
)


def order(x: CudaArray, down: bool, count: int) -> CudaArray:
    """Of each row of a contiguous matrix, the positions of its first ``count`` numbers in order; equals keep theirs."""
    rows, n = x.shape
    kind, wide = "f" if x.dtype.kind == "f" or x.dtype in HALVES else "i", x.dtype.itemsize == 8
    lower, out = to_sort((rows,), n, x), empty(x.on, (rows, count), I64)
    row = lower.shape[1]
    given, steps = Placed(x, (n, 0), ((n, 1),)), (row, 1)
    start(keys(kind, wide, down, "low" if wide else ""), (rows, n), [given, Placed(lower, steps)])
    lower = sort_rows(lower)
    to = Placed(out, (count, 1))
    if not wide:
        start(FIRST, (rows, count), [Placed(lower, steps), to])
        return out
    upper = to_sort((rows,), n, x)
    start(keys(kind, wide, down, "high"), (rows, n), [given, Placed(lower, steps), Placed(upper, steps)])
    upper = sort_rows(upper)
    start(SECOND, (rows, count), [Placed(lower, (row, 0), ((row, 1),)), Placed(upper, steps), to])
    return out


# ---- ops


_ready: dict[Any, Ready | None] = {}  # of arrays that lie in some way; None: a sort of all that there is


def ordered_last(x: CudaArray, down: bool, count: int) -> CudaArray | Ready:
    """Of contiguous numbers, the positions of the first ``count`` along the last dimension, or the launches that give them."""
    key = x.layout, down, count
    ready = _ready[key] if key in _ready else remember(_ready, key, _launches(x, down, count))
    if ready is not None:
        return ready
    n, shape = x.shape[-1], (*x.shape[:-1], count)
    return order(x.seen(0, (x.size // n, n), (n, 1)), down, count).seen(0, shape, contiguous_strides(shape))


def _launches(x: CudaArray, down: bool, count: int) -> Ready | None:
    n, shape = x.shape[-1], (*x.shape[:-1], count)
    known = firsts.launches_for(x.dtype, x.size // n, n, down, count)
    if known is None:
        return None
    launched, between = known
    return Ready(x.on, launched, [(shape, I64, None)], [((between,), I64, None)] if between else [])


def ordered_along(input: CudaArray, dim: int, down: bool, count: int) -> Any:
    """The positions of the first ``count`` along a dimension, or the launches that give them."""
    if input.dtype.kind == "c" or (input.dtype.kind == "u" and input.dtype.itemsize > 2) or not input.ndim:
        return NotImplemented
    dim %= input.ndim
    if not input.size or not count:
        shape = tuple([count if d == dim else m for d, m in enumerate(input.shape)])
        return MEMORY.empty(shape, I64, input.device)
    if dim == input.ndim - 1 and input.is_contiguous:
        return ordered_last(input, down, count)
    dims = [d for d in range(input.ndim) if d != dim]
    moved = input.seen(0, *[tuple([of[d] for d in (*dims, dim)]) for of in (input.shape, input.strides)])
    x = moved if moved.is_contiguous else MEMORY.copy(moved)
    positions = now(ordered_last(x, down, count), x)
    back = [dims.index(d) if d != dim else len(dims) for d in range(input.ndim)]
    out = positions.seen(0, *[tuple([of[d] for d in back]) for of in (positions.shape, positions.strides)])
    return out if out.is_contiguous else MEMORY.copy(out)


def argsort(input: CudaArray, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return ordered_along(input, dim, descending, input.shape[dim] if input.ndim else 0)


def top_positions(input: CudaArray, k: int, dim: int, largest: bool) -> Any:
    return ordered_along(input, dim, largest, k)


def kth_position(input: CudaArray, k: int, dim: int) -> Any:
    positions = now(ordered_along(input, dim, False, k), input)
    if positions is NotImplemented:
        return positions
    return MEMORY.copy(part(positions, (*[slice(None)] * (dim % input.ndim), slice(k - 1, k))))


KERNELS = {"argsort": argsort, "top_positions": top_positions, "kth_position": kth_position}
