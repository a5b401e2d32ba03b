"""$A = LDL^T$ or $LDL^H$ with blocks of one and two rows in D, on the host, as LAPACK's sytrf and hetrf leave it.

The lower half is read; a pivot p > 0 says that rows k and p (from 1) were exchanged; two equal negative ones that rows
k + 1 and -p were, and that the block has two rows (Bunch and Kaufman 1977; LAPACK's users' guide).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

INT32 = np.dtype(np.int32)
_ALPHA = (1 + math.sqrt(17)) / 8


def factors(a: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """LD, pivots and for each matrix 0 or which block is zero."""
    n = a.shape[-1]
    flat = np.array(a).reshape(math.prod(a.shape[:-2]), n, n)
    pivots, info = np.zeros((len(flat), n), INT32), np.zeros(len(flat), INT32)
    for i, matrix in enumerate(flat):
        info[i] = _factor(matrix, pivots[i], _conjugate if hermitian and a.dtype.kind == "c" else _same)
    return np.tril(flat).reshape(a.shape), pivots.reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def _conjugate(x: Any) -> Any:
    return np.conj(x)


def _same(x: Any) -> Any:
    return x


def _size(x: Any) -> Any:
    return np.abs(x.real) + np.abs(x.imag)


def _choose(a: Any, k: int, conj: Any) -> tuple[int, int]:
    """The row to exchange with, and of how many rows the block is."""
    diagonal = abs(a[k, k].real) if conj is _conjugate else _size(a[k, k])
    below = _size(a[k + 1 :, k])
    if not len(below) or max(diagonal, below.max()) == 0:
        return k, 1
    row = k + 1 + int(below.argmax())
    largest = below.max()
    if diagonal >= _ALPHA * largest:
        return k, 1
    others = np.concatenate([_size(a[row, k:row]), _size(a[row + 1 :, row])]).max()
    if diagonal >= _ALPHA * largest * (largest / others):
        return k, 1
    own = abs(a[row, row].real) if conj is _conjugate else _size(a[row, row])
    return (row, 1) if own >= _ALPHA * others else (row, 2)


def _factor(a: Any, pivots: Any, conj: Any) -> int:
    n, k, info = len(a), 0, 0
    while k < n:
        row, rows = _choose(a, k, conj)
        _exchange(a, k + rows - 1, row, k, conj)
        end = k + rows
        block = a[k:end, k:end].copy()
        if rows == 2:
            block[0, 1] = conj(block[1, 0])
        if conj is _conjugate:
            block[np.arange(rows), np.arange(rows)] = block.diagonal().real
            a[k:end, k:end] = np.where(np.eye(rows, dtype=bool), block, a[k:end, k:end])
        pivots[k:end] = row + 1 if rows == 1 else -(row + 1)
        if rows == 1 and block[0, 0] == 0:
            info = info or k + 1
        else:
            part = a[end:, k:end].copy()
            a[end:, k:end] = np.linalg.solve(block.T, part.T).T
            a[end:, end:] -= np.tril(a[end:, k:end] @ conj(part).T)
        k = end
    return info


def _exchange(a: Any, i: int, j: int, start: int, conj: Any) -> None:
    """Rows and columns i < j of a symmetric matrix, in its lower half, from column ``start``."""
    if i == j:
        return
    a[[i, j], start:i] = a[[j, i], start:i]
    a[j + 1 :, [i, j]] = a[j + 1 :, [j, i]]
    between = a[i + 1 : j, i].copy()
    a[i + 1 : j, i] = conj(a[j, i + 1 : j])
    a[j, i + 1 : j] = conj(between)
    a[i, i], a[j, j] = a[j, j], a[i, i]
    a[j, i] = conj(a[j, i])


def solve(ld: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """$A^{-1} B$ from the factors."""
    shape = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    n, k = b.shape[-2:]
    conj = _conjugate if hermitian and ld.dtype.kind == "c" else _same
    x = np.broadcast_to(b, (*shape, n, k)).copy()
    count = math.prod(shape)
    each = zip(
        np.broadcast_to(ld, (*shape, n, n)).reshape(count, n, n),
        np.broadcast_to(pivots, (*shape, n)).reshape(count, n),
        x.reshape(count, n, k),
        strict=True,
    )
    for matrix, rows, out in each:
        _solve(matrix, rows, out, conj)
    return x


def _blocks(pivots: Any) -> list[tuple[int, int, int]]:
    """For each block its first row, its end, and the row that its last one was exchanged with."""
    blocks, k = [], 0
    while k < len(pivots):
        rows = 1 if pivots[k] > 0 else 2
        blocks.append((k, k + rows, abs(int(pivots[k])) - 1))
        k += rows
    return blocks


def _solve(a: Any, pivots: Any, x: Any, conj: Any) -> None:
    blocks = _blocks(pivots)
    for k, end, row in blocks:
        x[[end - 1, row]] = x[[row, end - 1]]
        x[end:] -= a[end:, k:end] @ x[k:end]
        block = a[k:end, k:end].copy()
        if end - k == 2:
            block[0, 1] = conj(block[1, 0])
        x[k:end] = np.linalg.solve(block, x[k:end]) if block.any() else x[k:end] / block[0, 0]
    for k, end, row in reversed(blocks):
        x[k:end] -= conj(a[end:, k:end]).T @ x[end:]
        x[[end - 1, row]] = x[[row, end - 1]]
