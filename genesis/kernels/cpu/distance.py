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
BLOCK = 1 << 20  # distances, or differences, at a time
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
    b64, step = b - mean, max(1, BLOCK // len(b))
    b_squares = np.einsum("ij,ij->i", b64, b64)
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        a64 = a[rows] - mean
        squares = np.einsum("ij,ij->i", a64, a64)[:, None] + b_squares
        total = squares - 2 * (a64 @ b64.T)
        i, j = np.nonzero(total <= CLOSE * squares)
        for some in np.array_split(np.arange(len(i)), 1 + len(i) * a.shape[1] // BLOCK):
            apart = a[rows][i[some]].astype(F64) - b[j[some]]
            total[i[some], j[some]] = np.einsum("ij,ij->i", apart, apart)
        out[rows] = np.sqrt(total)


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
        a, b, far = x1[at] - mean, x2[at] - mean, out[at] != 0
        weight = np.where(far, g[at], 0) / np.where(far, out[at].astype(F64), 1)
        g1[at] = a * weight.sum(1)[:, None] - weight @ b
        g2[at] = b * weight.sum(0)[:, None] - weight.T @ a
    return g1, g2
