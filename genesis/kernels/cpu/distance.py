"""Distances of all pairs of rows, without the memory of all differences.

Those of float32 rows are a product of matrices, exact where it is not: $|a - b|^2 = |a|^2 + |b|^2 - 2 a b$ loses what the
terms have in common. In float64, of rows whose mean was taken off, that is less than the rounding of float32, but where
rows are almost equal: their differences are taken one by one. Of float64 rows, and in the 1-norm, all differences are
taken, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach

LEAST = 1 << 14  # differences from where this pays
BLOCK = 1 << 20  # differences of rows that are almost equal at a time
PART = 1 << 16  # distances, or differences of all rows, at a time: what is computed of them stays in the cache
CLOSE = 1e-7  # of the squares of the terms: what float64 leaves is then below the rounding of float32


def _fits(x1: Any, x2: Any, p: Any, compute_mode: Any) -> bool:
    return (
        p in (1, 2)
        and (x1.dtype is F32 or x1.dtype is F64)
        and x2.dtype is x1.dtype
        and x1.ndim >= 2
        and x2.ndim >= 2
        and x1.shape[-1] == x2.shape[-1]
        and x1.size * x2.shape[-2] >= LEAST
        and x2.size
        and (x1.shape[:-2] == x2.shape[:-2] or _broadcast(x1, x2))
    )


def _broadcast(x1: Any, x2: Any) -> bool:
    shapes = zip(reversed(x1.shape[:-2]), reversed(x2.shape[:-2]), strict=False)
    return all(n == m or n == 1 or m == 1 for n, m in shapes)


def _infer(x1: Any, x2: Any, p: Any, *_: Any) -> Any:
    out = Spec((*_batch(x1, x2), x1.shape[-2], x2.shape[-2]), x1.dtype)
    return out, ("x1", "x2", "p", out)


def _batch(x1: Any, x2: Any) -> tuple[int, ...]:
    batch: tuple[int, ...] = x1.shape[:-2]
    return batch if x2.shape[:-2] == batch else np.broadcast_shapes(batch, x2.shape[:-2])


def _aligned(x1: Any, x2: Any, *pairs: Any) -> tuple[Any, ...]:
    """The rows, and arrays over their pairs, with one batch.

    Rows that all meet the same others (a batch of points, and one table of centers) are those of one matrix.
    """
    if x1.shape[:-2] == x2.shape[:-2]:
        return x1, x2, *pairs
    if x2.size == x2.shape[-2] * x2.shape[-1]:
        return x1.reshape(-1, x1.shape[-1]), x2.reshape(x2.shape[-2:]), *(y.reshape(-1, y.shape[-1]) for y in pairs)
    batch = _batch(x1, x2)
    return *(np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (x1, x2)), *pairs


def _summed(g: Any, x: Any) -> Any:
    """The gradient of rows that were repeated over a batch."""
    if g.size == x.size:
        return g.reshape(x.shape)
    new = g.ndim - x.ndim
    repeated = tuple(i for i, n in enumerate(g.shape) if i < new or n != x.shape[i - new])
    return g.sum(repeated, F64, keepdims=True).astype(x.dtype).reshape(x.shape)


@attach("cdist", np.ndarray, when=_fits, infer=_infer)
def cdist(x1: Any, x2: Any, p: Any, compute_mode: Any) -> Any:
    out = np.empty((*_batch(x1, x2), x1.shape[-2], x2.shape[-2]), x1.dtype)
    a, b, lengths = _aligned(x1, x2, out)
    for at in np.ndindex(a.shape[:-2]):
        if p == 2 and x1.dtype is F32:
            _distances(a[at], b[at], lengths[at])
        else:
            _differences(a[at], b[at], lengths[at], p)
    return out, (x1, x2, p, out)


def _distances(a: Any, b: Any, out: Any) -> None:
    if not np.isfinite(a).all() or not np.isfinite(b).all():  # infinities have differences, but no products
        _differences(a, b, out, 2)
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


def _differences(a: Any, b: Any, out: Any, p: float) -> None:
    for rows, apart in _apart(a, b):
        out[rows] = np.sqrt(np.square(apart, out=apart).sum(-1)) if p == 2 else np.abs(apart, out=apart).sum(-1)


def _apart(a: Any, b: Any) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time, and what they differ from all others by, in float64."""
    step = max(1, PART // max(b.size, 1))
    for begin in range(0, len(a), step):
        rows = slice(begin, begin + step)
        yield rows, a[rows, None].astype(F64) - b


@cdist.backward
def _(g: Any, kept: Any, needs: Any) -> Any:
    """Each difference, divided by its length, times the gradient of the distance; none from a row to itself."""
    x1, x2, p, out = kept
    a, b, g, out = _aligned(x1, x2, g, out)
    g1, g2 = np.empty(a.shape, a.dtype), np.empty(b.shape, b.dtype)
    for at in np.ndindex(a.shape[:-2]):
        if p == 1:
            _shares(a[at], b[at], g[at], np.sign, g1[at], g2[at])
        elif a.dtype is F64:
            _shares(a[at], b[at], _weights(g[at], out[at]), np.positive, g1[at], g2[at])
        else:
            _gradients(a[at], b[at], g[at], out[at], g1[at], g2[at])
    return _summed(g1, x1), _summed(g2, x2)


def _weights(g: Any, length: Any) -> Any:
    return np.divide(g, length, out=np.zeros(length.shape), where=length != 0)


def _gradients(x1: Any, x2: Any, g: Any, out: Any, g1: Any, g2: Any) -> None:
    mean = x2.mean(0, dtype=F64)
    b, step = x2 - mean, max(1, PART // len(x2))
    products, sums = np.zeros(b.shape), np.zeros(len(b))
    for begin in range(0, len(x1), step):
        rows = slice(begin, begin + step)
        a, weight = x1[rows] - mean, _weights(g[rows], out[rows].astype(F64))
        g1[rows] = a * weight.sum(1)[:, None] - weight @ b
        products += weight.T @ a
        sums += weight.sum(0)
    g2[...] = b * sums[:, None] - products


def _shares(a: Any, b: Any, weight: Any, of: Any, g1: Any, g2: Any) -> None:
    """A function of each difference times its weight, summed for each row of both."""
    total = np.zeros(b.shape, F64)
    for rows, apart in _apart(a, b):
        shares = of(apart)
        g1[rows] = np.einsum("ij,ijk->ik", weight[rows], shares)
        total -= np.einsum("ij,ijk->jk", weight[rows], shares)
    g2[...] = total
