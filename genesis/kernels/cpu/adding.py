"""Sums of rows and elements of float32 numbers at places that may be named more than once, where llvmlite is: gradients of lookups in
a table, messages to the nodes of a graph. And elements named along a dimension.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.kinds.indexing import AT
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import adding, loops, native
from genesis.ops.indexing.adding import DENSE, row_numbers
from genesis.ops.reductions.along import resized

_I64 = np.dtype(np.int64)


def _rows_of_a_table(input: Any, indices: Any, shape: Any, key: Any) -> bool:
    """Whether rows are added whole: ``x[indices]`` of a table of float32."""
    return (
        len(key) == 1
        and key[0] is AT
        and input.dtype is F32
        and input.size >= LARGE["elements"]
        and indices.dtype.kind in "iu"
        and math.prod(shape[1:]) > 1
        and loops.available()
    )


@attach("place", np.ndarray, when=_rows_of_a_table)
def added(input: Any, indices: Any, shape: Any, key: Any) -> Any:
    out = np.zeros(shape, F32)
    values = np.broadcast_to(input, (*indices.shape, *shape[1:]))
    return _added(out, row_numbers(indices, shape[0]), values)


def _fits(input: Any, shape: Any, dim: int, index: Any, distinct: bool = False) -> bool:
    """Whether an index has the sizes of all dimensions but its own, and names many elements of few."""
    return (
        input.dtype is F32
        and input.size >= LARGE["elements"]
        and index.ndim > 0
        and resized(index.shape, dim, shape[dim]) == tuple(shape)
        and math.prod(shape) <= DENSE * index.size
        and loops.available()
    )


@attach("scatter_sum", np.ndarray, when=_fits)
def scattered(input: Any, shape: Any, dim: int, index: Any, distinct: bool = False) -> Any:
    values, inner = input[tuple([slice(n) for n in index.shape])], math.prod(shape[dim + 1 :])
    if dim == 0 and inner > 1 and not any(index.strides[1:]):  # one number for each row, expanded
        return _added(np.zeros(shape, F32), index[(slice(None), *[0] * (index.ndim - 1))], values)
    numbers, values = _within(index, shape[dim]), np.ascontiguousarray(values)
    total, address = np.zeros(shape), memory.address
    sizes = (math.prod(shape[:dim]), shape[dim], index.shape[dim], inner)
    _along()(address(total), address(numbers), address(values), *sizes)
    return total.astype(F32)


def _takes(input: Any, dim: int, index: Any, distinct: bool = False) -> bool:
    """Whether an index has the sizes of all dimensions but its own, and names many elements."""
    return (
        input.dtype is F32
        and index.size >= LARGE["elements"]
        and resized(index.shape, dim, input.shape[dim]) == input.shape
        and input.flags.c_contiguous
        and loops.available()
    )


@attach("gather_at", np.ndarray, when=_takes)
def gathered(input: Any, dim: int, index: Any, distinct: bool = False) -> Any:
    numbers, out = _within(index, input.shape[dim]), memory.empty(index.shape, F32)
    outer, inner = math.prod(input.shape[:dim]), math.prod(input.shape[dim + 1 :])
    much = out.size >= LARGE["for threads"]
    _taken()((input, numbers, out), outer, (input.shape[dim], index.shape[dim], inner), much)
    return out


def _added(out: Any, rows: Any, values: Any) -> Any:
    rows, values = _within(rows, len(out)), np.ascontiguousarray(values)
    address = memory.address
    _function()(address(out), address(rows), address(values), len(rows), values.size // max(len(rows), 1))
    return out


def _within(index: Any, size: int) -> Any:
    """The indices as the loops read them, which look at nothing: in a replay nobody did before."""
    numbers = np.ascontiguousarray(index, _I64)
    if numbers.size and np.maximum.reduce(numbers.reshape(-1).view(np.uint64)) >= size:  # negative ones are large
        raise IndexError(f"index out of range: {numbers.min()} to {numbers.max()}, of {size}")
    return numbers


@functools.cache
def _function() -> Callable[..., None]:
    lanes = loops.width() // 4
    return native.nest("add_rows", adding.add_rows(lanes), len(adding.POINTERS), len(adding.SIZES))


@functools.cache
def _along() -> Callable[..., None]:
    return native.nest("add_along", adding.add_along(), len(adding.POINTERS), len(adding.ALONG))


@functools.cache
def _taken() -> Nest:
    return Nest("take_along", adding.take_along(), len(adding.TAKEN), 1 + len(adding.ALONG))
