"""Products of float32 matrices by workers: the second matrix is packed once, tiles of the result are chunks.

`product` is a ufunc's call, whose loop does all of it in native code. For tables of phases there are `functions`,
`Grid` and `block`: the addresses of what runs, how many chunks, and the arguments.

    c = a b + bias      (functions().pack, address of the block, grid.pack_chunks)
                        (functions().multiply, address of the block, grid.chunks)
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from genesis.base import blas
from genesis.base.quiet import unnamed
from genesis.kernels.cpu import memory
from genesis.kernels.llvm import gemm as code
from genesis.kernels.llvm import loops, native, rates
from genesis.kernels.llvm.units import FLOAT32, UNITS
from genesis.kernels.native import runtime


class Functions(NamedTuple):
    """Addresses: of functions of phases, ``void f(ptr args, i64 chunk)``, and of loops of ufuncs."""

    pack: int
    multiply: int
    each: int
    product: int
    product_and_bias: int


def tile(unit: str = FLOAT32) -> tuple[int, int]:
    """The rows and vectors of a tile here."""
    return UNITS[unit].tiles[loops.width() // 4]


def width(unit: str = FLOAT32) -> int:
    """The columns of a panel."""
    return tile(unit)[1] * loops.width() // 4


@functools.cache
def functions(unit: str = FLOAT32) -> Functions:
    """Of one of the `units`; compiled when they are first needed."""
    text = code.module(loops.width() // 4, unit)
    return Functions(*native.addresses_in(text, [*code.NAMES, *code.SIGNATURES]))


# ---- for tables of phases


class Grid(NamedTuple):
    """The chunks of a product; what it computes does not depend on them."""

    tiles: int
    panels: int
    across: int
    chunks: int
    pack_panels: int
    pack_chunks: int
    packed: int  # numbers of the packed matrix

    @classmethod
    def of(cls, m: int, n: int, k: int, parts: int) -> Grid:
        """About so many chunks: of rows where they are many, else of columns, that a panel is read for many tiles."""
        tiles, panels = -(-m // tile()[0]), -(-n // width())
        across = 1 if tiles >= 8 * parts else min(panels, parts)
        per, beside = -(-tiles // min(tiles, -(-parts // across))), -(-panels // across)
        across = -(-panels // beside)
        packing = -(-panels // min(panels, parts))
        return cls(per, beside, across, -(-tiles // per) * across, packing, -(-panels // packing), panels * width() * k)


def block(
    addresses: Sequence[int], sizes: tuple[int, int, int], strides: Sequence[int], grid: Grid, more: bool = False,
    direct: bool = False,
) -> Any:  # fmt: skip
    """The words of the arguments of a product, `code.FIELDS`; an array, to be kept as long as it runs.

    Args:
        addresses: of a, b, c, of memory for `Grid.packed` numbers, and of a number for each column that is added, or 0
        sizes: m, n, k
        strides: in numbers, of rows and columns of a, of rows and columns of b, of rows of c
        more: add to what is in c
        direct: b is not packed, but read where it is
    """
    added = int(more or addresses[4] != 0)
    words = *addresses, *sizes, *strides, added, grid.tiles, grid.panels, grid.across, grid.pack_panels, int(direct)
    return np.array([*words, *[0] * len((*code.EACH, *code.TURNED))], np.int64)


# ---- of arrays


@functools.cache
def _ufunc(name: str, unit: str) -> np.ufunc:
    runtime.begin()
    signature, given = code.SIGNATURES[name], runtime.current.ctypes.data
    return loops.made(name, getattr(functions(unit), name), "float", signature.count("),") + 1, 1, signature, given)


class _Scratch(threading.local):
    """Memory of this thread for packed matrices."""

    def __init__(self) -> None:
        self.numbers = np.empty(0, np.float32)


_scratch = _Scratch()
KEPT = 1 << 23  # numbers that a thread keeps at most


def packed(size: int) -> Any:
    """Memory of this thread for so many numbers of a packed matrix."""
    numbers = _scratch.numbers
    if numbers.size < size:
        numbers = memory.empty((size,), np.float32)
        if size <= KEPT:
            _scratch.numbers = numbers
    return numbers


@unnamed
def product(a: Any, b: Any, bias: Any = None, unit: str = FLOAT32) -> Any:
    """``a @ b`` of float32 arrays of two dimensions or more, none of size 0, plus ``bias``, one number for each column. By
    a ``unit`` for pairs of bfloat16 numbers, numbers of ``a`` and ``b`` are such pairs, that stand for two terms.
    """
    if not runtime._pools:
        runtime.begin()
    k, n = b.shape[-2:]
    columns, batch = width(unit), ()
    size = -(-n // columns) * columns * k
    if a.ndim > 2 or b.ndim > 2:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        size *= min(math.prod(batch), code.PARTS * int(runtime.current[2]))
    scratch = packed(size)
    out = memory.empty((*batch, a.shape[-2], n), np.float32)
    if bias is None:
        return _ufunc("product", unit)(a, b, scratch, out)
    return _ufunc("product_and_bias", unit)(a, b, bias if bias.strides == (4,) else bias.copy(), scratch, out)


LEAST, LARGE = 16, 1 << 15  # rows, columns and terms, and multiplications of bfloat16 numbers, from where pairs pay


def product_in_pairs(a: Any, b: Any, bias: Any = None) -> Any:
    """``a @ b`` of bfloat16 arrays as float32 numbers, plus a bias of those; None where it does not pay, or where the terms
    do not lie beside each other in both.
    """
    if b.ndim != 2 or a.ndim < 2 or a.shape[-1] != b.shape[0]:
        return None
    (k, n), m = b.shape, a.size // max(b.shape[0], 1)
    if k % 2 or min(m, n, k) < LEAST or m * n * k < LARGE or not (unit := rates.unit_of_pairs(loops.width() // 4)):
        return None
    rows = a.reshape(m, k) if a.ndim > 2 else a
    words = [_words(x) for x in (rows, b.T)]
    if words[0] is None or words[1] is None:
        return None
    return product(words[0], words[1].T, bias, unit).reshape(*a.shape[:-1], n)


def _words(x: Any) -> Any:
    """Pairs of numbers as float32 numbers; None if they do not lie so."""
    return x.view(np.float32) if x.strides[1] == 2 and x.strides[0] % 4 == 0 and x.ctypes.data % 4 == 0 else None


blas.own.append(blas.Own(lambda: loops.available(), product, product_in_pairs))
