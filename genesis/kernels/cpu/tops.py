"""Where the few largest or smallest numbers of contiguous rows of float32 are, as compiled loops, where llvmlite is."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops, tops

_I64 = np.dtype(np.int64)


def _fits(x: Any, k: int, dim: int, largest: bool) -> bool:
    of_rows = x.dtype is F32 and dim == x.ndim - 1 and x.flags.c_contiguous
    return of_rows and 0 < k <= tops.MOST and x.shape[-1] < tops.LENGTH and loops.available()


@functools.cache
def _loop(largest: bool) -> Nest:
    return Nest("positions", tops.of_rows(loops.width() // 4, largest), len(tops.POINTERS), len(tops.SIZES))


@attach("top_positions", np.ndarray, when=_fits)
def top_positions(input: Any, k: int, dim: int, largest: bool) -> Any:
    length = input.shape[-1]
    out = memory.empty((*input.shape[:-1], k), _I64)
    _loop(largest)((input, out), out.size // k, (length, k), input.size >= LARGE["for threads"])
    return out
