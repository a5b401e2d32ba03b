"""Normal numbers of a stream in one native call that makes the words, too, where llvmlite is."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64
from genesis.core.graph import normals as meaning
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import entries, native, normals
from genesis.kernels.native import runtime

_MASK = 2**64 - 1


def maker(dtype: Any) -> meaning.Maker | None:
    """What makes normal numbers of a dtype; None where NumPy does."""
    if dtype is F32:
        return _maker("float")
    return _maker("double") if dtype is F64 else None


@functools.cache
def _maker(kind: str) -> meaning.Maker | None:
    if native.host() is None:
        return None
    alone, plain = entries.of_arrays("normals", normals.code(kind), 1, 6)
    dtype, each = F32 if kind == "float" else F64, 2 * normals.PAIRS

    def make(shape: tuple[int, ...], count: int, key: int, block: int) -> Any:
        if count >= LARGE["for threads"]:
            return many(shape, count, key, block)
        out = np.empty(shape, dtype) if count < LARGE["elements"] else memory.empty(shape, dtype)
        if count:
            alone(out, 0, -(-count // each), key, block, block >> 64, count)
        return out

    def many(shape: tuple[int, ...], count: int, key: int, block: int) -> Any:
        out = memory.empty(shape, dtype)
        words = _signed(key), _signed(block), _signed(block >> 64)
        runtime.in_slices(plain, [memory.address(out)], -(-count // each), (*words, count))
        return out

    return make


def _signed(word: int) -> int:
    """The last 64 bits, as a signed number."""
    return (word + (1 << 63) & _MASK) - (1 << 63)


meaning.maker = maker
