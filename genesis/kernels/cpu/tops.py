"""Where the few largest or smallest numbers of contiguous rows of float32 are, as compiled loops, where llvmlite is."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops, native, tops
from genesis.kernels.native import runtime

_I64 = np.dtype(np.int64)


def _fits(x: Any, k: int, dim: int, largest: bool) -> bool:
    of_rows = x.dtype is F32 and dim == x.ndim - 1 and x.flags.c_contiguous
    return of_rows and 0 < k <= tops.MOST and x.shape[-1] < tops.LENGTH and loops.available()


@functools.cache
def _loop(largest: bool) -> Any:
    code = tops.of_rows(loops.width() // 4, largest)
    return native.nest("positions", code, len(tops.POINTERS), len(tops.SIZES))


@attach("top_positions", np.ndarray, when=_fits)
def top_positions(input: Any, k: int, dim: int, largest: bool) -> Any:
    length = input.shape[-1]
    out = memory.empty((*input.shape[:-1], k), _I64)
    slices = 1 if input.size < LARGE["for threads"] else None
    addresses = [memory.address(a) for a in (input, out)]
    runtime.in_slices(_loop(largest), addresses, out.size // k, (length, k), slices)
    return out
