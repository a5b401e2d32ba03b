"""What reductions, scans and sorts share: shapes, accumulation, picking by position, and refusals."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.protocol import Layer
from genesis.base import dtypes
from genesis.base.errors import DTypeError, message
from genesis.base.layouts import contiguous_format
from genesis.base.blas import product
from genesis.base.quiet import unnamed
from genesis.core.call.computing import on_device
from genesis.core.call.kinds import reduced_shape
from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.graph.modes import ACTIVE, LEVELS, grad_mode
from genesis.core.graph.tracing import tracer
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.version import SHARED
from genesis.ops.indexing.gather import gather_at
from genesis.ops.shapes.join import cat
from genesis.ops.shapes.expand import expand

WIDE = dict.fromkeys(HALVES, F32)  # 16-bit floats are accumulated in float32

# ---- on arrays


@unnamed
def count(shape: Sequence[int], dim: Sequence[int]) -> int:
    """How many elements are reduced to one."""
    return math.prod(shape) if len(dim) >= len(shape) else math.prod([shape[d] for d in dim])


def resized(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    """The shape with another size along ``dim``."""
    return tuple(size if i == dim else n for i, n in enumerate(shape))


@unnamed
def axes(x: Any, dim: tuple[int, ...]) -> Any:
    """Dimensions as NumPy wants them: None for all, which it does faster."""
    return None if len(dim) >= x.ndim else dim


@unnamed
def widened(x: Any) -> Any:
    """16-bit floats as float32, all others as they are."""
    return x.astype(F32) if x.dtype in WIDE else x


@unnamed
def rounded(x: Any, dtype: Any) -> Any:
    """A result in its dtype; ``astype`` alone takes 0.7 us to find that there is nothing to do."""
    return x if x.dtype == dtype else x.astype(dtype)


def real_of(dtype: Any) -> Any:
    """The real dtype of the same precision."""
    return dtypes.from_numpy(dtype).to_real().np


_LEAF = 8  # rows that are added one after the other
_ROW = 64  # numbers next to each other, from which they are added first, in pairs
_SHORT = 16, 1024  # float32 numbers next to each other whose sums are a product with ones
_SMALL = 4096  # float32 numbers that are added in float64 at once
_EACH_OF = [(slice(None),) * n for n in range(65)]  # of as many dimensions, all; NumPy arrays have at most 64
EXACT = {F32: F64, F64: np.dtype(np.longdouble)}  # for the last few rows, whose rounding nothing averages out


@unnamed
def _tree(x: Any, d: int, keepdim: bool) -> Any:
    """The sum along one dimension: rows are added `_LEAF` at a time, and the last of many more exactly."""
    rows = np.moveaxis(x, d, 0) if d else x
    exact = EXACT.get(x.dtype) if len(rows) > _LEAF * _LEAF else None
    while len(rows) > _LEAF:
        k = len(rows) // _LEAF
        whole = rows if k * _LEAF == len(rows) else rows[: k * _LEAF]
        added = np.add.reduce(whole.reshape(_LEAF, k, *rows.shape[1:]), 0)
        rows = added if whole is rows else np.concatenate((added, rows[k * _LEAF :]))
    last = np.add.reduce(rows, 0, exact, None, keepdim)
    last = last if exact is None else last.astype(x.dtype)
    return np.moveaxis(last, 0, d) if keepdim and d else last


@unnamed
def total(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The sum over ``dim`` by a tree, whatever the layout.

    NumPy adds in pairs along the dimension whose elements lie closest together, and one after the other along all
    others: the
    error of a column sum grows with its length, to 400 units of the last place for a million rows.
    """
    axis = None if len(dim) >= x.ndim else dim
    if (
        (x.size <= _LEAF or (len(dim) == 1 and x.shape[dim[0]] <= _LEAF))
        or (x.flags.c_contiguous and (axis is None or dim[0] >= x.ndim - len(dim)))
        or (axis is None and x.flags.f_contiguous)
    ):
        if x.size > _SMALL and axis is not None and x.dtype is F32 and x.flags.c_contiguous:
            left = x.shape[: x.ndim - len(dim)]
            if dim[0] == len(left) and _SHORT[0] <= (many := math.prod(x.shape[len(left) :])) <= _SHORT[1]:
                return _sums_of_short_rows(x, many).reshape(left + (1,) * len(dim) if keepdim else left)
        return np.add.reduce(x, axis, None, None, keepdim)
    if x.size <= _SMALL and x.dtype is F32:
        return np.add.reduce(x, axis, F64, None, keepdim).astype(F32)
    if len(dim) == 1:
        d = dim[0]
        steps = [abs(s) for s, n in zip(x.strides, x.shape, strict=True) if n > 1]
        if len(steps) > 1 and abs(x.strides[d]) == min(steps):
            return np.add.reduce(x, d, None, None, keepdim)
        return _tree(x, d, keepdim)
    many, last, rest, longest, left = _steps(x.shape, dim)
    if x.flags.c_contiguous and x.dtype is F32 and _SHORT[0] <= many <= _SHORT[1]:  # NumPy takes 3 to 5 times as long
        x = _sums_of_short_rows(x, many).reshape(x.shape[: -len(last)] + (1,) * len(last))
    elif x.flags.c_contiguous and many >= _ROW:
        x = np.add.reduce(x, last, None, None, True)
    else:
        rest, longest = dim, tuple(sorted(dim, key=lambda d: (-x.shape[d], d)))
    if x.size <= _SMALL and x.dtype is F32:
        x = total(x, rest, True)
    else:
        for d in longest:
            x = total(x, (d,), True)
    return x if keepdim else x.reshape(left)


def _sums_of_short_rows(x: Any, many: int) -> Any:
    return product(x.reshape(-1, many), _ones(many))


@functools.cache
def _ones(count: int) -> Any:
    return np.ones(count, F32)


@functools.lru_cache(maxsize=512)
def _steps(shape: tuple[int, ...], dim: tuple[int, ...]) -> Any:
    """The dimensions after which no other comes, and how many elements they have; the rest of them, also the longest
    first; the shape that is left.
    """
    last = tuple([d for d in dim if d >= len(shape) - sum([each >= d for each in dim])])
    rest = tuple([d for d in dim if d not in last])
    left = tuple([n for i, n in enumerate(shape) if i not in dim])
    return math.prod([shape[d] for d in last]), last, rest, tuple(sorted(rest, key=lambda d: (-shape[d], d))), left


@unnamed
def fold(ufunc: Any, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """``ufunc.reduce`` with a result in ``dtype``."""
    if ufunc is np.add and dtype is x.dtype and (dtype is F32 or dtype is F64):  # what is usual: 0.2 us less
        return total(x, dim, keepdim)
    wide = WIDE.get(dtype, dtype)
    if ufunc is np.add and dtype.kind not in "iub":
        result = total(x if x.dtype == wide else x.astype(wide), dim, keepdim)
    elif ufunc is np.multiply and x.dtype is wide and x.size > _SMALL and _in_rows(x, dim):
        result = _product_of_rows(x.reshape(-1, count(x.shape, dim))).reshape(reduced_shape(x.shape, dim, keepdim))
    else:
        result = ufunc.reduce(x, axes(x, dim), wide, None, keepdim)
    return result if wide is dtype else result.astype(dtype)


@unnamed
def _in_rows(x: Any, dim: tuple[int, ...]) -> bool:
    """Whether what is reduced is next to each other."""
    return bool(x.flags.c_contiguous and not _steps(x.shape, dim)[2])


@unnamed
def _product_of_rows(x: Any) -> Any:
    """Half of each row times the other: NumPy multiplies numbers next to each other one after the other."""
    while x.shape[1] >= _ROW:
        half, odd = divmod(x.shape[1], 2)
        rest = x[:, 2 * half :]
        x = x[:, :half] * x[:, half : 2 * half]
        if odd:
            x[:, :1] *= rest
    return np.multiply.reduce(x, 1)


@unnamed
def average(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The mean over ``dim``; of equal numbers exactly that number, so that nothing is left when it is taken off."""
    n = count(x.shape, dim)
    mean = total(x, dim, keepdim) / n
    if n > 1 and x.size and _may_be_constant(x, dim):
        off = total(
            x - (mean if keepdim else mean.reshape(tuple([1 if i in dim else s for i, s in enumerate(x.shape)]))),
            dim,
            keepdim,
        )
        mean = np.where(np.isfinite(off), mean + off / n, mean).astype(x.dtype)
    return mean


@unnamed
def _may_be_constant(x: Any, dim: tuple[int, ...]) -> bool:
    """Whether the first and the last of the numbers along ``dim`` are equal somewhere."""
    if len(dim) >= x.ndim:
        return bool(x.item(0) == x.item(-1))
    if len(dim) == 1:
        before = _EACH_OF[dim[0]]
        same = x[(*before, 0)] == x[(*before, -1)]
    else:
        first, last = (x[tuple([end if i in dim else slice(None) for i in range(x.ndim)])] for end in (0, -1))
        same = first == last
    return np.count_nonzero(same) > 0  # a third of the time of ``any``


# ---- on tensors


def restore(reduced: Tensor, shape: Sequence[int], dim: Sequence[int]) -> Tensor:
    """Undo a reduction's change of shape: the reduced dimensions come back, expanded to their sizes."""
    array = reduced._array
    if 0 < array.ndim < len(shape):
        reduced = reduced.reshape([1 if i in dim else n for i, n in enumerate(shape)])
        array = reduced._array
    if isinstance(array, DeviceArray) and not (ACTIVE or LEVELS or grad_mode.get()):
        spread = wrap(on_device(expand.op, (array, tuple(shape)), array))
        spread._counter = SHARED  # whoever writes to it has a copy: no view is needed
        return spread
    if math.prod(shape) <= 256 and not grad_mode.get():  # for few elements a copy costs a third of a view
        if array.__class__ is np.ndarray and (not ACTIVE or tracer.get() is None):
            full = np.empty(shape, array.dtype)
            full[...] = array
            return wrap(full)
        # a product of it rounds as it does outside of a trace, and is added up in the order of any other such layer's
        if tracer.get() is not None or (isinstance(array, Layer) and array.computed):
            return expand(reduced, shape).clone(memory_format=contiguous_format)
    return expand(reduced, shape)


def pick(input: Tensor, dim: int, indices: Tensor, keepdim: bool, distinct: bool = True) -> tuple[Tensor, Tensor]:
    """One element along ``dim`` for each index, and the indices; the gradient goes back to where they were, which is
    ``distinct`` places: none is named twice.
    """
    x, at = input._array, indices._array
    if input._node is None and not (ACTIVE or LEVELS) and x.__class__ is np.ndarray is at.__class__:
        values = gather_at.op.kernel(x, dim, at, distinct)  # nothing to record, or to look at: half of the time
        if keepdim or not x.ndim:
            return wrap(values), indices
        shape = at.shape[:dim] + at.shape[dim + 1 :]
        return wrap(values.reshape(shape)), wrap(at.reshape(shape))
    picked = gather_at(input, dim, indices, distinct)
    return (picked, indices) if keepdim else (_without(picked, dim), _without(indices, dim))


def _without(x: Tensor, dim: int) -> Tensor:
    """A result that nobody else has without a dimension of size 1: no view of itself, where it has no history."""
    array = x._array
    if x._node is not None or ACTIVE or LEVELS or array.__class__ is not np.ndarray or not array.ndim:
        return x.squeeze(dim)  # type: ignore[attr-defined, no-any-return]
    return wrap(array.reshape(array.shape[:dim] + array.shape[dim + 1 :]))


def product_of_others(x: Tensor, dim: Sequence[int]) -> Tensor:
    """For each element the product of the others along ``dim``: of those before times that of those after.

    Dividing the whole product by the element would fail where it is zero, and lose digits where the product underflows.
    """
    order = [*(i for i in range(x.ndim) if i not in dim), *(i for i in range(x.ndim) if i in dim)]
    swept = x.permute(order)
    flat = swept.reshape([*(n for i, n in enumerate(x.shape) if i not in dim), count(x.shape, dim)])
    one = x.new_ones(flat[..., :1].shape)
    before = cat([one, flat[..., :-1]], -1).cumprod(-1)
    after = cat([flat[..., 1:], one], -1).flip(-1).cumprod(-1).flip(-1)
    return (before * after).reshape(swept.shape).permute([order.index(i) for i in range(x.ndim)])


def check_floating(name: str, input: Tensor, kinds: str = "floating or complex") -> None:
    """Refuse integers, and complex numbers where ``kinds`` does not name them."""
    if input.dtype.category < 2 or (input.is_complex() and "complex" not in kinds):
        raise DTypeError(
            message(name, f"the input must be {kinds}, it is {input.dtype}", hint=f"x.float().{name}(...)")
        )


def check_ordered(name: str, input: Tensor) -> None:
    """Refuse complex numbers, which have no order."""
    if input._array.dtype.kind not in "fiub" and input.is_complex():
        raise DTypeError(
            message(name, f"{input.dtype} has no order", [("input", input._spec())], hint=f"x.abs().{name}(...)")
        )
