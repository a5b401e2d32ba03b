"""Form and place: views, parts, joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.onnx.builder import INT64, Builder, Value, lowers
from genesis.onnx.tracing import Dim

END = np.iinfo(np.int64).max


@lowers("reshape", "view_shape")
def _reshape(b: Builder, x: Value, shape: Sequence[Any]) -> str:
    return b.reshape(x, b.out.shape)


@lowers("expand")
def _expand(b: Builder, x: Value, size: Sequence[Any]) -> str:
    return x.name if x.shape == b.out.shape else b.node("Expand", x, b.ints(b.out.shape))


@lowers("permute")
def _permute(b: Builder, x: Value, dims: Sequence[int]) -> str:
    return b.node("Transpose", x, perm=[d % x.rank for d in dims]) if x.rank else x.name


@lowers("transpose")
def _transpose(b: Builder, x: Value, dim0: int, dim1: int) -> str:
    order = list(range(x.rank))
    if x.rank:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.node("Transpose", x, perm=order) if x.rank else x.name


@lowers("narrow")
def _narrow(b: Builder, x: Value, dim: int, start: Any, length: Any) -> str:
    if x.shape[dim] == length:
        return x.name
    if isinstance(start, Dim) or isinstance(length, Dim):
        stop = b.node("Add", b.ints([start]), b.ints([length]))
        return b.node("Slice", x, b.ints([start]), stop, b.ints([dim]))
    return b.slice(x, dim, start, start + length)


def spread_key(key: Sequence[Any], rank: int) -> list[Any]:
    """The parts of an index, one for each dimension and one for each None; the ellipsis written out."""
    taken = sum(k is not None and k is not Ellipsis for k in key)
    full = [slice(None)] * (rank - taken)
    if Ellipsis not in [k for k in key if k is None or k is Ellipsis]:
        return [*key, *full]
    at = next(i for i, k in enumerate(key) if k is Ellipsis)
    return [*key[:at], *full, *key[at + 1 :]]


def sliced(b: Builder, x: Value, key: Sequence[Any]) -> tuple[str, list[int]]:
    """The slices of an index, with integers as slices of one; and which of the dimensions are to go."""
    starts, stops, dims, steps, gone = [], [], [], [], []
    dim = 0
    for k in key:
        if k is None:
            continue
        if isinstance(k, int) and not isinstance(k, bool):
            starts, stops, steps = [*starts, k], [*stops, k + 1 if k != -1 else END], [*steps, 1]
            dims, gone = [*dims, dim], [*gone, dim]
        elif isinstance(k, slice) and k != slice(None):
            step = 1 if k.step is None else k.step
            starts.append((0 if step > 0 else END) if k.start is None else k.start)
            stops.append((END if step > 0 else -END) if k.stop is None else k.stop)
            steps, dims = [*steps, step], [*dims, dim]
        elif not isinstance(k, slice):
            raise UnsupportedError(message("export", f"an index of {type(k).__name__} in a view"))
        dim += 1
    name = x.name
    if dims:
        name = b.node("Slice", name, b.ints(starts), b.ints(stops), b.ints(dims), b.ints(steps))
    return name, gone


@lowers("slice_view")
def _slice_view(b: Builder, x: Value, key: Sequence[Any]) -> str:
    parts = spread_key(key if isinstance(key, tuple) else (key,), x.rank)
    name, gone = sliced(b, x, parts)
    if gone:
        name = b.node("Squeeze", name, b.constant(gone, INT64))
    new = [i for i, k in enumerate([k for k in parts if not isinstance(k, int)]) if k is None]
    return b.unsqueeze(name, *new) if new else name


@lowers("cat")
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> str:
    kept = [x for x in tensors if x.rank == len(b.out.shape) or 0 not in x.shape]  # [0] joins anything
    return b.node("Concat", *[b.cast(x, b.out.dtype) for x in kept], axis=dim)


@lowers("flip")
def _flip(b: Builder, x: Value, dims: Sequence[int]) -> str:
    if not dims:
        return b.node("Identity", x)
    many = len(dims)
    return b.node("Slice", x, b.ints([-1] * many), b.ints([-END] * many), b.ints(list(dims)), b.ints([-1] * many))


@lowers("roll_dims")
def _roll(b: Builder, x: Value, shifts: Sequence[int], dims: Sequence[int]) -> str:
    name = x.name
    for shift, dim in zip(shifts, dims, strict=True):
        by = shift % x.shape[dim] if x.shape[dim] else 0
        if by:
            name = b.node("Concat", b.slice(name, dim, -by, END), b.slice(name, dim, 0, -by), axis=dim)
    return name if name != x.name else b.node("Identity", x)


@lowers("pad_dim")
def _pad_dim(b: Builder, x: Value, dim: int, start: int, size: int) -> str:
    pads = [0] * (2 * x.rank)
    pads[dim], pads[x.rank + dim] = start, size - start - x.shape[dim]
    return b.node("Pad", x, b.constant(pads, INT64))


@lowers("constant_pad_nd")
def _constant_pad(b: Builder, x: Value, pad: Sequence[int], value: Any = 0) -> str:
    if not any(pad):
        return b.node("Identity", x)
    return b.node("Pad", x, b.constant(onnx_pads(pad, x.rank), INT64), b.scalar(value, x.dtype))


def onnx_pads(pad: Sequence[int], rank: int) -> list[int]:
    """PyTorch's order, from the last dimension in pairs, as all beginnings and then all ends.

    >>> onnx_pads((1, 2), 2)
    [0, 1, 0, 2]
    """
    before, after = [0] * rank, [0] * rank
    for i in range(len(pad) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = pad[2 * i], pad[2 * i + 1]
    return [*before, *after]


def _triangle(name: str, upper: int) -> None:
    @lowers(name)
    def _(b: Builder, x: Value, diagonal: int = 0) -> str:
        return b.node("Trilu", x, b.constant(diagonal, INT64), upper=upper)


_triangle("tril", 0)
_triangle("triu", 1)


def _picked(b: Builder, x: Value, positions: np.ndarray[Any, Any]) -> str:
    """Elements by their positions in row-major order."""
    return b.node("Gather", b.reshape(x, [-1]), b.constant(positions, INT64))


def _numbered(x: Value) -> np.ndarray[Any, Any]:
    """The positions of all elements in row-major order."""
    return np.arange(int(np.prod([n + 0 for n in x.shape]))).reshape(x.shape)


@lowers("diagonal")
def _diagonal(b: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    return _picked(b, x, np.diagonal(_numbered(x), offset, dim1, dim2))


@lowers("strided_view")
def _strided(
    b: Builder, x: Value, size: Sequence[int], stride: Sequence[int], offset: int, steps: Sequence[int]
) -> str:
    packed = [s // 8 for s in _numbered(x).strides]
    if any([n > 1 and s != p for n, s, p in zip(x.shape, steps, packed, strict=True)]):
        raise UnsupportedError(
            message("export", "a view of memory that is not in row-major order", hint="x.contiguous()")
        )
    positions = offset + sum(np.arange(n).reshape(-1, *[1] * (len(size) - 1 - i)) * s
                          for i, (n, s) in enumerate(zip(size, stride, strict=True)))  # fmt: skip
    return _picked(b, x, np.broadcast_to(positions, tuple(size)))


@lowers("unfold")
def _windows(b: Builder, x: Value, dimension: int, size: int, step: int) -> str:
    if not x.rank:
        return b.unsqueeze(x, 0)
    count = (x.shape[dimension] - size) // step + 1
    positions = np.arange(count)[:, None] * step + np.arange(size)
    out = b.node("Gather", x, b.constant(positions, INT64), axis=dimension)
    return b.node("Transpose", out, perm=[*range(dimension + 1), *range(dimension + 2, x.rank + 1), dimension + 1])
