"""Sums of a power of two of arrays in one order, the tree: ``(x0 + x2) + (x1 + x3)``; of products of matrices, too."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.base import blas
from genesis.base.threads import get_num_threads
from genesis.kernels.cpu import gemm, memory
from genesis.kernels.llvm import loops, native
from genesis.kernels.llvm import trees as code
from genesis.kernels.native import runtime
from genesis.ops.reductions.along import total

PART = 1 << 14  # elements that are added at a time: they stay in the cache


def tree_sum(parts: Sequence[Any]) -> Any:
    """The sum of a power of two of values, in the order of the tree.

    >>> tree_sum([1, 2, 3, 4]) == (1 + 3) + (2 + 4)
    True
    """
    return parts[0] if len(parts) == 1 else tree_sum(parts[::2]) + tree_sum(parts[1::2])


def sum_of_arrays(arrays: Sequence[Any]) -> Any:
    """`tree_sum` of contiguous arrays, a part at a time, into memory that is used again."""
    first = arrays[0]
    if first.nbytes < memory.LARGE or len(arrays) == 1:
        return tree_sum(arrays)
    out, flat = memory.empty(first.shape, first.dtype), [x.reshape(-1) for x in arrays]
    whole, between = out.reshape(-1), np.empty((len(arrays), PART), first.dtype)
    for begin in range(0, first.size, PART):
        _add_into(whole[begin : begin + PART], [x[begin : begin + PART] for x in flat], between)
    return out


def _add_into(out: Any, parts: Sequence[Any], between: Any) -> None:
    """`tree_sum` into ``out``, with memory for what is added on the way."""
    if len(parts) == 2:
        np.add(*parts, out=out)
        return
    other = between[0][: out.size]
    _add_into(out, parts[::2], between[1:])
    _add_into(other, parts[1::2], between[1:])
    np.add(out, other, out=out)


def products(a: Any, b: Any, count: int, bias: Any = None) -> Any:
    """``a @ b + bias`` of a matrix whose rows are those of so many of the same shape, in the bits of one by one.

    Own code adds in an order that does not depend on the number of rows: it computes them as one product, which reads ``b``
    once.
    """
    if blas.has_own() and a.size and b.size:
        return gemm.product(a, b, bias)
    product = blas.product if bias is None else partial(blas.product_and_bias, bias=bias)
    return np.concatenate([product(x, b) for x in np.split(a, count)])


def sums_of_rows(a: Any, count: int) -> Any:
    """`tree_sum` of the sums of the rows of so many matrices, whose rows lie one after the other."""
    return tree_sum([total(x, (0,), False) for x in np.split(a, count)])


def sum_of_products(a: Any, b: Any, count: int) -> Any:
    """`tree_sum` of products ``a[i].T @ b[i]`` of so many matrices of the same shapes, whose rows lie one after the other.

    It is added while it is in the cache: four gradients of a weight of 1024 x 1024 from 32 rows each take 1.1 times as long
    as one from 128 rows, and products that are written and added afterwards 1.7 times.
    """
    if not (a.dtype == b.dtype == np.float32 and a.size and b.size and loops.available()):
        return sum_of_arrays(
            [blas.product(x.T, y) for x, y in zip(np.split(a, count), np.split(b, count), strict=True)]
        )
    a, b, (k, m), n = memory.contiguous(a), memory.contiguous(b), a.shape, b.shape[1]
    out = memory.empty((m, n), np.float32)
    head, tail, packed = _table(m, n, k, k // count, get_num_threads())
    addresses = [memory.address(x) for x in (a, b, out, gemm.packed(packed))]
    runtime.run_block(head + _ADDRESSES.pack(*addresses) + tail, 2)
    return out


_ADDRESSES = struct.Struct("=4q")


@functools.lru_cache(1024)
def _table(m: int, n: int, k: int, part: int, threads: int) -> tuple[bytes, bytes, int]:
    """What is before the addresses and what is behind them, in a table of the phases that pack and multiply, and the size
    of what is packed.
    """
    parts = min(threads * gemm.code.PARTS, m * n * k // gemm.code.CHUNK) if threads > 1 else 1
    grid = gemm.Grid.of(m, n, k, max(parts, 1))
    direct = m <= gemm.code.FEW * gemm.tile()[0] and n % (loops.width() // 4) == 0
    words = gemm.block([0] * 5, (m, n, k), (1, m, n, 1, n), grid, direct=direct).tobytes()[_ADDRESSES.size :]
    phases = (gemm.functions().pack, 0 if direct else grid.pack_chunks), (_compiled(), grid.chunks)
    rows = [struct.pack("=3q", function, 2 * 24, chunks) for function, chunks in phases]
    return b"".join(rows), words + struct.pack("=q", part), 0 if direct else grid.packed


@functools.cache
def _compiled() -> int:
    """The address of the phase that multiplies."""
    return native.addresses_in(code.module(loops.width() // 4, *gemm.tile()), [code.NAME])[0]
