"""Sums of a power of two of arrays in one order, the tree: ``(x0 + x2) + (x1 + x3)``; of products of matrices, too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.base import blas
from genesis.kernels.cpu import gemm, memory
from genesis.kernels.llvm import loops

PART = 1 << 14  # elements that are added at a time: they stay in the cache
LEAST = 8, 1 << 16  # rows, and numbers of a product, from where it is computed in blocks
ROWS, NEAR = (
    72,
    1 << 18,
)  # rows of a block; numbers of a second matrix that stays in the cache while blocks are computed


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


def products(a: Sequence[Any], b: Any, bias: Any = None) -> list[Any]:
    """``a[i] @ b + bias`` of matrices that have the same shapes, in the same bits as one by one.

    Where they are own code's, whose sums have an order that does not depend on the number of rows, they are one product: so
    ``b`` is read once.
    """
    product = blas.product if bias is None else partial(blas.product_and_bias, bias=bias)
    if len(a) == 1 or not blas._is_own(a[0], b):
        return [product(x, b) for x in a]
    rows = len(a[0])
    out = gemm.product(np.concatenate(a), b, bias)
    return [out[i * rows : (i + 1) * rows] for i in range(len(a))]


def sum_of_products(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """`tree_sum` of products ``a[i].T @ b[i]`` of matrices that have the same shapes.

    A block of rows of all products is added while it is in the cache: four gradients of a weight of 1024 x 1024 from 32 rows
    each take 1.3 times as long as one from 128 rows, and products that are written and added afterwards 1.7 times.
    """
    rows, columns = b[0].shape
    size = a[0].shape[1] * columns
    if not (a[0].dtype == b[0].dtype == np.float32 and rows >= LEAST[0] and size >= LEAST[1] and loops.available()):
        return sum_of_arrays([blas.product(x.T, y) for x, y in zip(a, b, strict=True)])
    height = ROWS if b[0].size <= NEAR and len(a) > 1 else a[0].shape[1]
    out = memory.empty((a[0].shape[1], columns), np.float32)
    between = np.empty((len(a) - 1, height, columns), np.float32)
    for begin in range(0, len(out), height):
        pairs = [(x.T[begin : begin + height], y) for x, y in zip(a, b, strict=True)]
        _multiply_into(out[begin : begin + height], pairs, between)
    return out


def _multiply_into(out: Any, pairs: Sequence[tuple[Any, Any]], between: Any) -> None:
    """`tree_sum` of products into ``out``."""
    if len(pairs) == 1:
        gemm.product_into(out, *pairs[0])
        return
    other = between[0][: len(out)]
    _multiply_into(out, pairs[::2], between[1:])
    _multiply_into(other, pairs[1::2], between[1:])
    np.add(out, other, out=out)
