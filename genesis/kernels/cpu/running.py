"""Running sums, products and extremes of float32 arrays as compiled loops, where llvmlite is: the bits are those of NumPy's."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.base.quiet import unnamed
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.call.kinds import reduced_shape
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import extremes, loops, running

_I64 = np.dtype(np.int64)


def _fits(x: Any, dim: int, dtype: Any) -> bool:
    return x.dtype is F32 and dtype is F32 and x.size > 0 < x.ndim and x.flags.c_contiguous and loops.available()


@functools.lru_cache(maxsize=8)
def _loop(what: str, columns: bool) -> Nest:
    if what in extremes.STARTS:
        code = extremes.of_columns(what, loops.width() // 8) if columns else extremes.of_rows(what)
        return Nest("positions", code, len(extremes.POINTERS), len(extremes.SIZES))
    code = running.of_columns(what) if columns else running.of_rows(what)
    return Nest("running", code, len(running.POINTERS), len(running.SIZES))


def _along(what: str, x: Any, dim: int, dtype: Any = F32) -> Any:
    length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
    out = memory.like(x) if dtype is F32 else memory.empty(x.shape, dtype)
    much = x.size >= LARGE["for threads"]
    _loop(what, inner > 1)((x, out), x.size // (length * inner), (length, inner), much)
    return out


@attach("cumsum", np.ndarray, when=_fits)
@unnamed
def cumsum(input: Any, dim: int, dtype: Any) -> Any:
    return _along("fadd", input, dim)


@attach("cumprod", np.ndarray, when=_fits)
@unnamed
def cumprod(input: Any, dim: int, dtype: Any) -> Any:
    return _along("fmul", input, dim)


@attach("running_position", np.ndarray, when=lambda x, dim, largest: _fits(x, dim, x.dtype))
@unnamed
def running_position(input: Any, dim: int, largest: bool) -> Any:
    return _along("oge" if largest else "ole", input, dim, _I64)


def _is_of_rows(x: Any, dim: Any, keepdim: bool, dtype: Any) -> bool:
    """Whether long rows are multiplied whose numbers are next to each other."""
    return (
        len(dim) > 0
        and _fits(x, 0, dtype)
        and x.size >= LARGE["elements"]
        and dim[0] == x.ndim - len(dim)
        and math.prod(x.shape[dim[0] :]) >= running.PARTS * loops.width() // 4
    )


@functools.cache
def _product() -> Nest:
    return Nest("product", running.product_of_rows(loops.width() // 4), len(running.POINTERS), len(running.SIZES))


@attach("prod", np.ndarray, when=_is_of_rows)
def prod(input: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    out = np.empty(reduced_shape(input.shape, dim, keepdim), F32)
    length, much = input.size // out.size, input.size >= LARGE["for threads"]
    _product()((input, out), out.size, (length, 1), much)
    return out
