"""Rows and elements of float32 numbers that are named, and those combined at places that may be named more than once, where
llvmlite is: lookups in a table and their gradients, messages to the nodes of a graph.
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
from genesis.ops.indexing.keys import all_within, explain_index
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


def _is_table(input: Any, indices: Any, key: Any) -> bool:
    """Whether many rows are taken whole: ``x[indices]`` of a table of float32."""
    return (
        len(key) == 1
        and key[0] is AT
        and input.dtype is F32
        and input.ndim > 1
        and indices.size * (width := math.prod(input.shape[1:])) >= LARGE["elements"]
        and width <= _WIDE
        and indices.dtype.kind in "iu"
        and input.flags.c_contiguous
        and loops.available()
    )


_WIDE = 1 << 12  # numbers of a row: NumPy's copies of longer ones are as fast


@attach("take_index", np.ndarray, when=_is_table)
def taken(input: Any, indices: Any, key: Any) -> Any:
    numbers = np.ascontiguousarray(indices, _I64)
    if _is_outside(numbers, len(input)):
        numbers = row_numbers(numbers, len(input))
        if _is_outside(numbers, len(input)):
            raise explain_index(input.shape, (indices,))
    return _rows_taken(input, numbers, indices.shape)


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
    if _names_rows(index, dim):
        return _added(np.zeros(shape, F32), _first_of_rows(index), values)
    numbers, values = _within(index, shape[dim]), np.ascontiguousarray(values)
    total, address = np.zeros(shape), memory.address
    sizes = (math.prod(shape[:dim]), shape[dim], index.shape[dim], inner)
    _along()(address(total), address(numbers), address(values), *sizes)
    return total.astype(F32)


@functools.lru_cache(maxsize=1 << 10)
def _sizes_of(shape: tuple[int, ...], named: tuple[int, ...], dim: int) -> tuple[int, int, int, int] | None:
    """How many there are before the dimension of an index, in it, of the index, and behind; None where the index has not the
    sizes of all other dimensions, or something is empty.
    """
    if not named or 0 in shape or 0 in named or resized(named, dim, shape[dim]) != shape:
        return None
    return math.prod(shape[:dim]), shape[dim], named[dim], math.prod(shape[dim + 1 :])


def _takes(input: Any, dim: int, index: Any, distinct: bool = False) -> bool:
    return (
        input.dtype.itemsize in _WORDS
        and _sizes_of(input.shape, index.shape, dim) is not None
        and input.flags.c_contiguous
        and loops.available()
    )


_WORDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}  # elements, which are only moved, by their bytes
_wrong = np.zeros(1, np.int64)  # counts calls with an index that is none


@attach("gather_at", np.ndarray, when=_takes)
def gathered(input: Any, dim: int, index: Any, distinct: bool = False) -> Any:
    if input.dtype is F32 and index.size >= LARGE["elements"] and _names_rows(index, dim):
        return _rows_taken(input, _within(_first_of_rows(index), len(input)), index.shape[:1])
    outer, size, count, inner = _sizes_of(input.shape, index.shape, dim)  # type: ignore[misc]
    few, dtype = index.size < LARGE["elements"], input.dtype
    numbers, out = np.ascontiguousarray(index, _I64), (np if few else memory).empty(index.shape, dtype)
    run, before = _taken(_WORDS[dtype.itemsize]), _wrong.item(0)
    if few:
        run.alone(input, numbers, out, _wrong, 0, outer, size, count, inner)
    else:
        run((input, numbers, out, _wrong), outer, (size, count, inner), out.size >= LARGE["for threads"])
    if _wrong.item(0) != before:  # by this call, or by one of another thread
        _within(numbers, size)
    return out


def _combines(input: Any, value: Any, dim: int, index: Any, reduce: str) -> bool:
    """Whether float32 numbers are combined whose index has the sizes of all dimensions but its own."""
    return (
        input.dtype is F32
        and value.dtype is F32
        and index.size >= LARGE["elements"]
        and value.shape == index.shape
        and resized(index.shape, dim, input.shape[dim]) == input.shape
        and loops.available()
    )


_COMBINED = {"prod": "fmul", "amax": "ogt", "amin": "olt"}


@attach("scatter_combined", np.ndarray, when=_combines)
def combined(input: Any, value: Any, dim: int, index: Any, reduce: str) -> Any:
    out = np.array(input, order="C")
    if _names_rows(index, dim):
        return _added(out, _first_of_rows(index), value, _COMBINED[reduce])
    numbers, value, address = _within(index, input.shape[dim]), np.ascontiguousarray(value), memory.address
    sizes = math.prod(input.shape[:dim]), input.shape[dim], index.shape[dim], math.prod(input.shape[dim + 1 :])
    _along(_COMBINED[reduce])(address(out), address(numbers), address(value), *sizes)
    return out


def _names_rows(index: Any, dim: int) -> bool:
    """Whether an index along the first dimension has one number for each row, expanded."""
    return dim == 0 and math.prod(index.shape[1:]) > 1 and not any(index.strides[1:])


def _first_of_rows(index: Any) -> Any:
    return index[(slice(None), *[0] * (index.ndim - 1))]


def _rows_taken(input: Any, numbers: Any, shape: tuple[int, ...]) -> Any:
    out = memory.empty((*shape, *input.shape[1:]), F32)
    much = out.size >= LARGE["for threads"]
    _rows_taking()((input, numbers, out), numbers.size, (math.prod(input.shape[1:]),), much)
    return out


def _added(out: Any, rows: Any, values: Any, what: str = "fadd") -> Any:
    rows, values = _within(rows, len(out)), np.ascontiguousarray(values)
    address = memory.address
    _of_rows(what)(address(out), address(rows), address(values), len(rows), values.size // max(len(rows), 1))
    return out


def _within(index: Any, size: int) -> Any:
    """The indices as the loops read them, which look at nothing: in a replay nobody did before."""
    numbers = np.ascontiguousarray(index, _I64)
    if _is_outside(numbers, size):
        raise IndexError(f"index out of range: {numbers.min()} to {numbers.max()}, of {size}")
    return numbers


def _is_outside(numbers: Any, size: int) -> bool:
    return numbers.size > 0 and not all_within(numbers, size)


@functools.cache
def _of_rows(what: str) -> Callable[..., None]:
    code = adding.combine_rows(loops.width() // 4, what)
    return native.nest("combine_rows", code, len(adding.POINTERS), len(adding.SIZES))


@functools.cache
def _along(what: str = "fadd") -> Callable[..., None]:
    """Sums, which are in float64, or what else is combined."""
    name, code = ("add_along", adding.add_along()) if what == "fadd" else ("combine_along", adding.combine_along(what))
    return native.nest(name, code, len(adding.POINTERS), len(adding.ALONG))


@functools.cache
def _taken(word: str) -> Nest:
    return Nest("take_along", adding.take_along(word), len(adding.TAKEN) + 1, 1 + len(adding.ALONG))


@functools.cache
def _rows_taking() -> Nest:
    return Nest("take_rows", adding.take_rows(loops.width() // 4), len(adding.TAKEN), 3)
