"""Sums of products over named dimensions, as products of matrices: two operands at a time, from the left."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.products import multiplied, takes

Sizes = dict[str, int]


def einsum_terms(operands: Sequence[CudaArray], terms: Sequence[str], result: str) -> Any:
    sizes = {c: n for x, term in zip(operands, terms, strict=True) for c, n in zip(term, x.shape, strict=True)}
    alike = all([x.shape == tuple([sizes[c] for c in term]) and len({*term}) == len(term)
                 for x, term in zip(operands, terms, strict=True)])  # fmt: skip
    rounded = len(operands) > 2 and operands[0].dtype in HALVES  # between two products
    if not alike or rounded or not takes(list(operands), operands[0]) or 0 in [*sizes.values()]:
        return NotImplemented
    x, term = operands[0], terms[0]
    for i, (y, other) in enumerate(zip(operands[1:], terms[1:], strict=True), 2):
        x, term = _contracted(x, term, y, other, {*result, *"".join(terms[i:])}, sizes)
    x, term = _summed(x, term, {*result}, sizes)
    turned = _permuted(x, term, result)
    return turned if turned.is_contiguous and turned is not operands[0] and len(operands) > 1 else MEMORY.copy(turned)


def _contracted(
    x: CudaArray, left: str, y: CudaArray, right: str, kept: set[str], sizes: Sizes
) -> tuple[CudaArray, str]:
    """The product of two operands, summed over what nobody needs any more."""
    x, left = _summed(x, left, kept | {*right}, sizes)
    y, right = _summed(y, right, kept | {*left}, sizes)
    both = [c for c in left if c in right]
    batch, inner = "".join([c for c in both if c in kept]), "".join([c for c in both if c not in kept])
    rows, columns = "".join([c for c in left if c not in both]), "".join([c for c in right if c not in both])
    count = _size(batch, sizes)
    m, k, n = _size(rows, sizes), _size(inner, sizes), _size(columns, sizes)
    first = _grouped(_permuted(x, left, batch + rows + inner), (len(batch), len(rows)), (count, m, k))
    second = _grouped(_permuted(y, right, batch + inner + columns), (len(batch), len(inner)), (count, k, n))
    out = multiplied(first, second, None, (count, m, n))
    term = batch + rows + columns
    shape = tuple([sizes[c] for c in term])
    return out.seen(0, shape, contiguous_strides(shape)), term


def _summed(x: CudaArray, term: str, kept: set[str], sizes: Sizes) -> tuple[CudaArray, str]:
    """Without the dimensions that are in no other operand: a product with ones."""
    gone = "".join([c for c in term if c not in kept])
    if not gone:
        return x, term
    left = "".join([c for c in term if c in kept])
    m, k = _size(left, sizes), _size(gone, sizes)
    rows = _grouped(_permuted(x, term, left + gone), (0, len(left)), (1, m, k))
    ones = MEMORY.full((1, k, 1), x.dtype, 1, x.device)
    shape = tuple([sizes[c] for c in left])
    return multiplied(rows, ones, None, (1, m, 1)).seen(0, shape, contiguous_strides(shape)), left


def _size(term: str, sizes: Sizes) -> int:
    return math.prod([sizes[c] for c in term])


def _permuted(x: CudaArray, term: str, to: str) -> CudaArray:
    order = [term.index(c) for c in to]
    return x.seen(0, tuple([x.shape[i] for i in order]), tuple([x.strides[i] for i in order]))


def _grouped(x: CudaArray, counts: tuple[int, int], shape: tuple[int, int, int]) -> CudaArray:
    """Three dimensions of groups of neighbours; a copy where a group does not lie in equal steps."""
    first, second = counts[0], counts[0] + counts[1]
    groups = [(0, first), (first, second), (second, x.ndim)]
    steps = [_step(x.shape[a:b], x.strides[a:b]) for a, b in groups]
    if None in steps or min(x.strides, default=0) < 0:
        return MEMORY.copy(x).seen(0, shape, contiguous_strides(shape))
    return x.seen(0, shape, tuple([s or 0 for s in steps]))


def _step(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The step of some dimensions as one; None if they have no common one."""
    real = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not real:
        return 1
    for (_, outer), (n, inner) in itertools.pairwise(real):
        if outer != n * inner:
            return None
    return real[-1][1]


KERNELS = {"einsum_terms": einsum_terms}
