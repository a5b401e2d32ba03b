"""Elements that only move: strided copies, backwards too, and what they make of `flip`, `roll_dims`, `place` and `put`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.kinds.indexing import is_array
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.gathers import bits
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start

WORD = np.dtype(np.uint64)


def _copy(x: Any, out: Any) -> None:
    out[...] = x


COPY = Code(
    "copy",
    (Operand("x"), Operand("out", writes=True)),
    "tl.store(out + out_at, tl.load(x + x_at, mask=inside), mask=inside)",
    _copy,
)


def words(x: CudaArray) -> CudaArray:
    """The same memory as numbers that Triton moves: elements of 16 bytes are two, along one more dimension."""
    one = bits(x)
    return x.seen(0, (*x.shape, 2), (*[2 * s for s in x.strides], 1), WORD) if one is None else one


def copied(target: CudaArray, source: CudaArray) -> bool:
    """Write an array into another one of its dtype, elements in any order; whether there is a kernel for that."""
    if target.dtype != source.dtype:
        return False
    to, x = words(target), words(source)
    strides = broadcast(x, to.shape)
    start(COPY, to.shape, [Placed(x, strides), Placed(to, to.strides)])
    return True


def forward(x: CudaArray) -> CudaArray:
    """The array, or a copy of it if it goes backwards through memory."""
    return MEMORY.copy(x) if min(x.strides, default=0) < 0 else x


def broadcast(x: CudaArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array along a shape that it broadcasts to."""
    own = [0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)]
    return (*[0] * (len(shape) - len(own)), *own[max(len(own) - len(shape), 0) :])


def part(x: CudaArray, key: Any) -> CudaArray:
    """The view that slices name."""
    one = np.empty(1, x.dtype)
    size = x.dtype.itemsize
    ghost = np.lib.stride_tricks.as_strided(one, x.shape, [s * size for s in x.strides], writeable=False)
    view = ghost[key if Ellipsis in key else (*key, ...)]  # only addresses are computed
    offset = view.__array_interface__["data"][0] - one.__array_interface__["data"][0]
    return x.seen(offset, view.shape, tuple([s // size for s in view.strides]))


def narrowed(x: CudaArray, dim: int, start: int, count: int) -> CudaArray:
    """The view of some of the elements along a dimension: `part` of one slice, in a tenth of the time."""
    shape, strides = x.shape, x.strides
    return x.seen(start * strides[dim] * x.dtype.itemsize, (*shape[:dim], count, *shape[dim + 1 :]), strides)


# ---- ops


def flip(input: CudaArray, dims: Sequence[int]) -> Any:
    out = MEMORY.empty(input.shape, input.dtype, input.device)
    turned = {d % input.ndim for d in dims} if input.ndim else set()
    key = tuple([slice(None, None, -1 if d in turned else None) for d in range(input.ndim)])
    return out if not out.size or copied(out, part(input, key)) else NotImplemented


def roll_dims(input: CudaArray, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    out = MEMORY.empty(input.shape, input.dtype, input.device)
    if not out.size:
        return out
    moved = [0] * input.ndim
    for shift, d in zip(shifts, dims, strict=True):
        moved[d] = (moved[d] + shift) % input.shape[d]
    pieces = [
        [(slice(m, n), slice(0, n - m)), (slice(0, m), slice(n - m, n))] if m else [(slice(None), slice(None))]
        for m, n in zip(moved, input.shape, strict=True)
    ]
    for chosen in itertools.product(*pieces):
        copied(part(out, tuple([to for to, _ in chosen])), part(input, tuple([x for _, x in chosen])))
    return out


def placed(input: CudaArray, shape: Sequence[int], key: Any) -> Any:
    """Zeros of a shape with the array where slices say."""
    if any([is_array(k) for k in key]):
        return NotImplemented
    out = MEMORY.zeros(tuple(shape), input.dtype, input.device)
    copied(part(out, key), input)
    return out


def put(input: CudaArray, value: CudaArray, key: Any) -> Any:
    """A copy with the value where slices say."""
    if any([is_array(k) for k in key]) or value.dtype != input.dtype:
        return NotImplemented
    out = MEMORY.copy(input)
    copied(part(out, key), value)
    return out


def contiguous(x: CudaArray) -> CudaArray:
    return x if x.is_contiguous and x.strides == contiguous_strides(x.shape) else MEMORY.copy(x)


def cat(tensors: Sequence[CudaArray], dim: int) -> Any:
    """Each piece is a copy to where it goes."""
    pieces = [x for x in tensors if x.size]
    if not pieces or any([x.dtype != pieces[0].dtype or x.ndim != pieces[0].ndim for x in pieces]):
        return NotImplemented
    first = pieces[0]
    dim %= first.ndim
    sizes = [x.shape[dim] for x in pieces]
    shape = (*first.shape[:dim], sum(sizes), *first.shape[dim + 1 :])
    out, begin = MEMORY.empty(shape, first.dtype, first.device), 0
    for x, n in zip(pieces, sizes, strict=True):
        copied(narrowed(out, dim, begin, n), x)
        begin += n
    return out


def pad_dim(input: CudaArray, dim: int, start: int, size: int) -> Any:
    """Of complex numbers, and where there is nothing to copy; else the op's rule."""
    if input.size and input.dtype.kind != "c":
        return NotImplemented
    shape = (*input.shape[:dim], size, *input.shape[dim + 1 :])
    out = MEMORY.zeros(shape, input.dtype, input.device)
    if input.size:
        copied(narrowed(out, dim, start, input.shape[dim]), input)
    return out


# ---- triangles: rows and columns are the first dimensions of the lanes


def _triangle(x: Any, out: Any, diagonal: int, sign: int) -> None:
    row, column = np.ogrid[: out.shape[0], : out.shape[1]]
    kept = (column - row - diagonal) * sign >= 0
    out[...] = np.where(kept.reshape(*kept.shape, *[1] * (out.ndim - 2)), x, np.zeros((), x.dtype))


TRIANGLE = Code(
    "triangle",
    (Operand("x"), Operand("out", writes=True)),
    "kept = (c1.to(tl.int64) - c0.to(tl.int64) - diagonal) * sign >= 0\n"
    "tl.store(out + out_at, tl.load(x + x_at, mask=inside & kept, other=0), mask=inside)",
    _triangle,
    ("diagonal", "sign"),
    whole=2,
)


def _of_triangle(input: CudaArray, diagonal: int, upper: bool) -> Any:
    out = MEMORY.empty(input.shape, input.dtype, input.device)
    x, to = words(input), words(out)
    order = (input.ndim - 2, input.ndim - 1, *range(input.ndim - 2), *range(input.ndim, x.ndim))
    shape, *strides = (tuple([of[d] for d in order]) for of in (x.shape, x.strides, to.strides))
    start(TRIANGLE, shape, [Placed(x, strides[0]), Placed(to, strides[1])], (int(diagonal), 1 if upper else -1))
    return out


def tril(input: CudaArray, diagonal: int = 0) -> Any:
    return _of_triangle(input, diagonal, False)


def triu(input: CudaArray, diagonal: int = 0) -> Any:
    return _of_triangle(input, diagonal, True)


KERNELS = {"cat": cat, "pad_dim": pad_dim, "tril": tril, "triu": triu, "flip": flip, "roll_dims": roll_dims}
