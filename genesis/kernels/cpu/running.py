"""Running sums and products of float32 arrays as compiled loops, where llvmlite is: the bits are those of NumPy's."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops, native, running
from genesis.kernels.native import runtime


def _fits(x: Any, dim: int, dtype: Any) -> bool:
    return (
        x.dtype is F32 and dtype is F32 and x.size >= LARGE["elements"] and x.flags.c_contiguous and loops.available()
    )


@functools.lru_cache(maxsize=8)
def _loop(what: str, columns: bool) -> Any:
    code = running.of_columns(what) if columns else running.of_rows(what)
    return native.nest("running", code, len(running.POINTERS), len(running.SIZES))


def _along(what: str, x: Any, dim: int) -> Any:
    length, inner = x.shape[dim], math.prod(x.shape[dim + 1 :])
    out = memory.empty(x.shape, F32)
    addresses = [memory.address(a) for a in (x, out)]
    slices = 1 if x.size < LARGE["for threads"] else None
    runtime.in_slices(_loop(what, inner > 1), addresses, x.size // (length * inner), (length, inner), slices)
    return out


@attach("cumsum", np.ndarray, when=_fits)
def cumsum(input: Any, dim: int, dtype: Any) -> Any:
    return _along("fadd", input, dim)


@attach("cumprod", np.ndarray, when=_fits)
def cumprod(input: Any, dim: int, dtype: Any) -> Any:
    return _along("fmul", input, dim)
