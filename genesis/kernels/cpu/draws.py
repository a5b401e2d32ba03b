"""Random numbers of a stream in one native call that makes the words, too, where llvmlite is."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64
from genesis.core.graph import normals as meaning
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import draws, entries, native, normals
from genesis.kernels.native import runtime

_MASK = 2**64 - 1


def maker(dtype: Any) -> meaning.Maker | None:
    """What makes normal numbers of a dtype; None where NumPy does."""
    if dtype is F32:
        return _maker("float")
    return _maker("double") if dtype is F64 else None


@functools.cache
def _maker(kind: str) -> meaning.Maker | None:
    return None if native.host() is None else _in_pieces("normals", normals.code(kind), kind, 2 * normals.PAIRS)


def uniform_maker(dtype: Any, drops: bool = False) -> Callable[..., Any] | None:
    """What makes numbers in [0, 1) of a dtype, or factors of a dropout; None where NumPy does."""
    if dtype is F32:
        return _factors() if drops else _uniform("float")
    return _uniform("double") if dtype is F64 and not drops else None


@functools.cache
def _uniform(kind: str) -> Callable[..., Any] | None:
    return None if native.host() is None else _in_pieces("uniform", draws.uniform(kind, False), kind, draws.WORDS)


@functools.cache
def _factors() -> Callable[..., Any] | None:
    if native.host() is None:
        return None
    make = _in_pieces("uniform", draws.uniform("float", True), "float", draws.WORDS, len(draws.KEPT))

    def factors(shape: tuple[int, ...], count: int, key: int, block: int, p: float) -> Any:
        return make(shape, count, key, block, *_BITS.unpack(_NUMBERS.pack(p, 1 / (1 - p))))

    return factors


_NUMBERS, _BITS = struct.Struct("2f"), struct.Struct("2I")


def _in_pieces(name: str, code: str, kind: str, each: int, more: int = 0) -> Callable[..., Any]:
    """What makes numbers by a function of pieces of so many, with so many integers of its own."""
    alone, plain = entries.of_arrays(name, code, 1, 6 + more)
    dtype = F32 if kind == "float" else F64

    def make(shape: tuple[int, ...], count: int, key: int, block: int, *others: int) -> Any:
        if count >= LARGE["for threads"]:
            return many(shape, count, key, block, *others)
        out = np.empty(shape, dtype) if count < LARGE["elements"] else memory.empty(shape, dtype)
        if count:
            alone(out, 0, -(-count // each), key, block, block >> 64, count, *others)
        return out

    def many(shape: tuple[int, ...], count: int, key: int, block: int, *others: int) -> Any:
        out = memory.empty(shape, dtype)
        words = _signed(key), _signed(block), _signed(block >> 64)
        runtime.in_slices(plain, [memory.address(out)], -(-count // each), (*words, count, *others))
        return out

    return make


def _signed(word: int) -> int:
    """The last 64 bits, as a signed number."""
    return (word + (1 << 63) & _MASK) - (1 << 63)


meaning.maker, meaning.uniform_maker = maker, uniform_maker
