"""Functions of the rows of float32 arrays as compiled loops, where llvmlite is."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.quiet import unnamed
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.kinds import reduced_shape
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.cpu.norm import number
from genesis.kernels.llvm import loops, rows, spread
from genesis.kernels.native import runtime


def fits(x: Any, dims: Any) -> bool:
    """Whether there is a loop: for float32 numbers, reduced over the last dimensions."""
    last = dims == (x.ndim - 1,) or (len(dims) > 0 and tuple(dims) == tuple(range(x.ndim - len(dims), x.ndim)))
    return last and x.dtype is F32 and loops.available()


@functools.cache
def _nest(function: Callable[..., None]) -> Nest:
    return Nest("nest", rows.nest(function), 2, 3)


@unnamed
def on_rows(function: Callable[..., None], x: Any) -> Any:
    """A function of the rows of an array."""
    x = np.ascontiguousarray(x)
    length = x.shape[-1]
    if x.size < LARGE["elements"]:
        out = np.empty(x.shape, F32)
        if length:
            _nest(function).alone(x, out, 0, x.size // length, length)
        return out
    runtime.ready()
    out = memory.like(x)
    rows.gufunc(function, "(n)->(n)", runtime.spread)(x.reshape(-1, length), out.reshape(-1, length))
    return out


def _are_last(x: Any, dim: int, *_: Any) -> bool:
    return x.dtype is F32 and dim == x.ndim - 1 and loops.available()


@attach("softmax", np.ndarray, when=_are_last)
@unnamed
def softmax(input: Any, *_: Any) -> Any:
    return on_rows(rows.softmax, input)


@attach("log_softmax", np.ndarray, when=_are_last)
@unnamed
def log_softmax(input: Any, *_: Any) -> Any:
    return on_rows(rows.log_softmax, input)


@attach("standardized", np.ndarray, when=lambda x, dims, eps: fits(x, dims))
def standardized(input: Any, dims: Any, eps: float) -> Any:
    return standardized_and_deviation(input, dims, eps)[0]


@unnamed
def standardized_and_deviation(input: Any, dims: Any, eps: float) -> Any:
    shape, lead = input.shape, input.ndim - len(dims)
    out, root = memory.empty(shape, F32), np.empty((*shape[:lead], *[1] * len(dims)), F32)
    length = math.prod(shape[lead:])
    runtime.ready()
    loop = rows.gufunc(rows.standardized, "(n),()->(n),()", runtime.spread)
    given = np.ascontiguousarray(input).reshape(-1, length), np.asarray(eps, F32).reshape(-1)
    loop(*given, out.reshape(-1, length), root.reshape(-1))
    return out, root


# ---- variances


@functools.cache
def _spread(root: bool) -> Nest:
    return Nest("spread", spread.of_rows(loops.width() // 4, root), len(spread.POINTERS), len(spread.SIZES))


def _is_of_rows(input: Any, dim: Any, unbiased: None, keepdim: bool, correction: Any, *_: Any) -> bool:
    return input.size > 0 and input.flags.c_contiguous and correction.__class__ in (int, float) and fits(input, dim)


def _spread_of_rows(root: bool, input: Any, dim: Any, keepdim: bool, correction: float) -> Any:
    out = np.empty(reduced_shape(input.shape, dim, keepdim), F32)
    length = input.size // out.size
    arrays, much = (input, number(max(length - correction, 0)), out), input.size >= 2 * runtime.GRAIN
    _spread(root)(arrays, out.size, (length,), much)
    return out


@attach("var", np.ndarray, when=_is_of_rows)
@unnamed
def var(input: Any, dim: Any, unbiased: None, keepdim: bool, correction: float, *_: Any) -> Any:
    return _spread_of_rows(False, input, dim, keepdim, correction)


@attach("std", np.ndarray, when=_is_of_rows)
@unnamed
def std(input: Any, dim: Any, unbiased: None, keepdim: bool, correction: float, *_: Any) -> Any:
    return _spread_of_rows(True, input, dim, keepdim, correction)
