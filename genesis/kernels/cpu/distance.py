"""Distances of all pairs of float32 rows: by a product of matrices, exact where it is not.

$|a - b|^2 = |a|^2 + |b|^2 - 2 a b$ loses what the terms have in common. In float64, of rows whose mean was taken off, that
is less than the rounding of float32, but where rows are almost equal: their differences are taken one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach

LEAST = 1 << 14  # differences from where this pays
BLOCK = 1 << 20  # differences at a time
PART = 1 << 16  # distances at a time: what is computed of them stays in the cache
CLOSE = 1e-7  # of the squares of the terms: what float64 leaves is then below the rounding of float32


def _fits(x1: Any, x2: Any, p: Any, compute_mode: Any) -> bool:
    return (
        p == 2
        and x1.dtype is F32
        and x2.dtype is F32
        and x1.ndim == x2.ndim >= 2
        and x1.shape[:-2] == x2.shape[:-2]
        and x1.shape[-1] == x2.shape[-1]
        and x1.size * x2.shape[-2] >= LEAST
    )


def _infer(x1: Any, x2: Any, *_: Any) -> Any:
    out = Spec((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    return out, ("x1", "x2", out)


@attach("cdist", np.ndarray, when=_fits, infer=_infer)
def cdist(x1: Any, x2: Any, p: Any, compute_mode: Any) -> Any:
    out = np.empty((*x1.shape[:-1], x2.shape[-2]), F32)
    for at in np.ndindex(x1.shape[:-2]):
        _distances(x1[at], x2[at], out[at])
    return out, (x1, x2, out)


def _distances(a: Any, b: Any, out: Any) -> None:
    if not np.isfinite(a).all() or not np.isfinite(b).all():  # infinities have differences, but no products
        _differences(a, b, out)
        return
    mean = b.mean(0, dtype=F64)
    b64, step = b - mean, max(1, PART // len(b))
    b_squares = np.einsum("ij,ij->i", b64, b64)
    turned, largest = -2 * b64.T, b_squares.max()
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        a64 = a[rows] - mean
        a_squares = np.einsum("ij,ij->i", a64, a64)[:, None]
        total = a64 @ turned
        total += a_squares
        total += b_squares
        if total.min() <= CLOSE * (a_squares.max() + largest):
            i, j = np.nonzero(total <= CLOSE * (a_squares + b_squares))
            for some in np.array_split(np.arange(len(i)), 1 + len(i) * a.shape[1] // BLOCK):
                apart = a[rows][i[some]].astype(F64) - b[j[some]]
                total[i[some], j[some]] = np.einsum("ij,ij->i", apart, apart)
        out[rows] = np.sqrt(total, out=total)


def _differences(a: Any, b: Any, out: Any) -> None:
    step = max(1, BLOCK // b.size)
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        out[rows] = np.sqrt(np.square(a[rows, None].astype(F64) - b).sum(-1))


@cdist.backward
def _(g: Any, kept: Any, needs: Any) -> Any:
    """Each difference, divided by its length, times the gradient of the distance; none from a row to itself."""
    x1, x2, out = kept
    g1, g2 = np.empty(x1.shape, F32), np.empty(x2.shape, F32)
    for at in np.ndindex(x1.shape[:-2]):
        mean = x2[at].mean(0, dtype=F64)
        b, step = x2[at] - mean, max(1, PART // x2.shape[-2])
        products, sums = np.zeros(b.shape), np.zeros(len(b))
        for begin in range(0, x1.shape[-2], step):
            rows = (*at, slice(begin, begin + step))
            a, length = x1[rows] - mean, out[rows].astype(F64)
            far = length != 0
            weight = np.divide(g[rows], length, out=np.zeros(far.shape), where=far)
            g1[rows] = a * weight.sum(1)[:, None] - weight @ b
            products += weight.T @ a
            sums += weight.sum(0)
        g2[at] = b * sums[:, None] - products
    return g1, g2
