"""What LAPACK computes, for batches of matrices on the host, by NumPy; and what NumPy's LAPACK has no function for:
factors of a matrix with pivots, systems with triangles, and the exponential.

A matrix that a routine refuses is named by its place in the batch and by LAPACK's number, from 1: the pivot that is
zero, the leading minor that is not positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.blas import one_thread
from genesis.base.errors import LinAlgError, message

INT32 = np.dtype(np.int32)


def adjoint(x: Any) -> Any:
    """Conjugated and transposed."""
    return np.conj(np.swapaxes(x, -1, -2))


def finite(name: str, x: Any) -> None:
    """Refuse matrices with inf or nan, on which iterations do not end."""
    if not np.isfinite(x).all():
        raise LinAlgError(message(name, "a matrix has elements that are inf or nan", [("input", _spec(x))]))


def _spec(x: Any) -> Any:
    from genesis.arrays.spec import Spec

    return Spec(x.shape, x.dtype)


def lapack(name: str, routine: Callable[..., Any], *args: Any) -> Any:
    """A routine that iterates, on matrices that are finite."""
    finite(name, args[0])
    try:
        with one_thread():
            return routine(*args)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(message(name, f"the iteration did not converge ({error})")) from None


# ---- triangles


def solve_triangle(a: Any, b: Any, upper: bool) -> Any:
    """$A^{-1} B$ for triangles: of a triangle turned so that it is an upper one, LAPACK's LU factors are the identity
    and the triangle itself, so its general solver substitutes backwards.
    """
    a, b = (np.triu(a), b) if upper else (np.tril(a)[..., ::-1, ::-1], b[..., ::-1, :])
    try:
        with one_thread():
            x = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        x = _substituted(a, b)
    return x if upper else x[..., ::-1, :]


def _substituted(a: Any, b: Any) -> Any:
    """The same row by row, dividing by what is zero on the diagonal."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.broadcast_to(b, (*shape, *b.shape[-2:])).copy()
    for i in reversed(range(a.shape[-1])):
        known = a[..., i : i + 1, i + 1 :] @ x[..., i + 1 :, :]
        x[..., i : i + 1, :] = (x[..., i : i + 1, :] - known) / a[..., i : i + 1, i : i + 1]
    return x


# ---- LU


_NARROW = 16  # columns that are eliminated one by one


def lu_factors(a: Any, pivot: bool = True) -> tuple[Any, Any, Any]:
    """L below and U on and above the diagonal, the rows exchanged (from 1, int32), the first pivot that is zero.

    Recursively: the left half of the columns, what that makes of the right half, and the rest (Toledo 1997).
    """
    lu = np.array(a, order="C")
    m, n = lu.shape[-2:]
    k = min(m, n)
    flat = lu.reshape(math.prod(lu.shape[:-2]), m, n)
    pivots = np.zeros((len(flat), k), np.int64)
    with one_thread():
        _eliminate(flat, pivots, 0, k, pivot)
        if k < n and k:
            flat[:, :, k:] = _exchanged(flat[:, :, k:], pivots, 0, k)
            flat[:, :k, k:] = solve_unit(flat[:, :k, :k], flat[:, :k, k:])
    zero = np.diagonal(flat, 0, -2, -1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if k else np.zeros(len(flat))
    batch = lu.shape[:-2]
    return lu, (pivots + 1).astype(INT32).reshape(*batch, k), info.astype(INT32).reshape(batch)


def _eliminate(a: Any, pivots: Any, start: int, end: int, pivot: bool) -> None:
    if end - start <= _NARROW:
        for j in range(start, end):
            _eliminate_column(a, pivots, start, j, end, pivot)
        return
    middle = (start + end) // 2
    _eliminate(a, pivots, start, middle, pivot)
    right = a[:, :, middle:end]
    right[...] = _exchanged(right, pivots, start, middle)
    right[:, start:middle] = solve_unit(a[:, start:middle, start:middle], right[:, start:middle])
    right[:, middle:] -= a[:, middle:, start:middle] @ right[:, start:middle]
    _eliminate(a, pivots, middle, end, pivot)
    left = a[:, :, start:middle]
    left[...] = _exchanged(left, pivots, middle, end)


def _eliminate_column(a: Any, pivots: Any, start: int, j: int, end: int, pivot: bool) -> None:
    each = np.arange(len(a))
    column = a[:, j:, j]
    size = np.abs(column.real) + np.abs(column.imag) if column.dtype.kind == "c" else np.abs(column)
    row = j + (np.where(np.isnan(size), -1.0, size).argmax(-1) if pivot else np.zeros(len(a), np.int64))
    pivots[:, j] = row
    part = a[:, :, start:end]
    upper = part[:, j].copy()
    part[:, j] = part[each, row]
    part[each, row] = upper
    head = a[:, j : j + 1, j]
    a[:, j + 1 :, j] = np.where(head == 0, a[:, j + 1 :, j], a[:, j + 1 :, j] / np.where(head == 0, 1, head))
    a[:, j + 1 :, j + 1 : end] -= a[:, j + 1 :, j : j + 1] * a[:, j : j + 1, j + 1 : end]


def _exchanged(a: Any, pivots: Any, start: int, end: int) -> Any:
    """Rows exchanged as the pivots from ``start`` to ``end`` say."""
    order = permutation(pivots[:, start:end], a.shape[1], start)
    return np.take_along_axis(a, order[:, :, None], 1)


def permutation(pivots: Any, rows: int, start: int = 0) -> Any:
    """Which row comes to which place, of exchanges counted from 0."""
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for j in range(pivots.shape[-1]):
        other = pivots[..., j : j + 1]
        mine = order[..., start + j : start + j + 1].copy()
        order[..., start + j : start + j + 1] = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, mine, -1)
    return order


def solve_unit(a: Any, b: Any) -> Any:
    """$L^{-1} B$ for lower triangles whose diagonal is one."""
    unit = np.tril(a, -1)
    diagonal = np.arange(a.shape[-1])
    unit[..., diagonal, diagonal] = 1
    return solve_triangle(unit, b, False)


# ---- factors that may not be there


def cholesky(a: Any) -> tuple[Any, Any]:
    """L, and the order of the first leading minor that is not positive."""
    try:
        with one_thread():
            return np.linalg.cholesky(a), np.zeros(a.shape[:-2], INT32)
    except np.linalg.LinAlgError:
        pass
    flat = a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])
    pairs = [_cholesky(matrix) for matrix in flat]
    return np.stack([x for x, _ in pairs]).reshape(a.shape), np.array([i for _, i in pairs], INT32).reshape(
        a.shape[:-2]
    )


def _cholesky(a: Any) -> tuple[Any, int]:
    try:
        return np.linalg.cholesky(a), 0
    except np.linalg.LinAlgError:
        pass
    factor = np.tril(a).copy()
    for j in range(len(a)):
        row = factor[j, :j]
        pivot = (factor[j, j] - (row @ row.conj())).real
        if not pivot > 0:
            return factor, j + 1
        factor[j, j] = math.sqrt(pivot)
        factor[j + 1 :, j] = (factor[j + 1 :, j] - factor[j + 1 :, :j] @ row.conj()) / factor[j, j]
    return factor, 0


def solve(a: Any, b: Any) -> tuple[Any, Any]:
    """$A^{-1} B$, and the first pivot that is zero."""
    try:
        with one_thread():
            return np.linalg.solve(a, b), np.zeros(a.shape[:-2], INT32)
    except np.linalg.LinAlgError:
        lu, pivots, info = lu_factors(a)
    order = permutation(pivots.astype(np.int64) - 1, a.shape[-1])
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows = np.take_along_axis(
        np.broadcast_to(b, (*shape, *b.shape[-2:])), np.broadcast_to(order, (*shape, order.shape[-1]))[..., None], -2
    )
    return solve_triangle(lu, solve_unit(lu, rows), True), info


def cofactors(a: Any) -> Any:
    """$\\det(A) A^{-T}$ without the conjugate, of any square matrix: from singular values where it has no inverse."""
    n = a.shape[-1]
    with one_thread():
        det = np.linalg.det(a)[..., None, None]
        eye = np.broadcast_to(np.eye(n, dtype=a.dtype), a.shape)
        regular = (det != 0) & np.isfinite(det)
        if regular.all():
            return np.swapaxes(det * np.linalg.solve(a, eye), -1, -2)
        finite("linalg.det", a)
        u, s, vh = np.linalg.svd(a)
        others = np.stack([np.prod(np.delete(s, i, -1), -1) for i in range(n)], -1)
        turn = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
        return np.swapaxes(turn * ((adjoint(vh) * others[..., None, :]) @ adjoint(u)), -1, -2)


def nearly_singular(a: Any) -> bool:
    """Whether the inverse of one of the matrices has lost half of its digits, or there is none."""
    with one_thread(), np.errstate(all="ignore"):
        try:
            size = np.abs(a).sum(-1).max(-1, initial=0) * np.abs(np.linalg.inv(a)).sum(-1).max(-1, initial=0)
        except np.linalg.LinAlgError:
            return True
    return not bool((size * math.sqrt(np.finfo(a.dtype).eps) < 1).all())


# ---- the exponential

_THETA = {4: ((3, 0.4258730016922831), (5, 1.880152677804762), (7, 3.925724783138660)),
          8: ((3, 0.01495585217958292), (5, 0.2539398330063230), (7, 0.9504178996162932),
              (9, 2.097847961257068), (13, 5.371920351148152))}  # fmt: skip


def approximants(dtype: Any) -> tuple[tuple[int, float], ...]:
    """Degrees of Pade approximants of the exponential, and the largest norm that each is for."""
    return _THETA[8 if dtype.itemsize // (2 if dtype.kind == "c" else 1) == 8 else 4]


def coefficients(degree: int) -> list[float]:
    """Of the numerator, by powers; those of the denominator have other signs where powers are odd."""
    c = [math.factorial(2 * degree - j) / (math.factorial(j) * math.factorial(degree - j)) for j in range(degree + 1)]
    return [x / c[-1] for x in c]


def exponential(a: Any) -> Any:
    """$e^A$ by a diagonal Pade approximant of $A / 2^s$, squared s times (Higham 2005, "The scaling and squaring method
    for the matrix exponential revisited", algorithm 2.3; the bounds are those of its table 2.3).
    """
    n = a.shape[-1]
    flat = a.reshape(math.prod(a.shape[:-2]), n, n)
    if not flat.size:
        return a.copy()
    size = np.abs(flat).sum(-2).max(-1)
    table = approximants(a.dtype)
    out = np.empty_like(flat)
    bounds = np.array([bound for _, bound in table])
    which = np.searchsorted(bounds, size).clip(max=len(table) - 1)
    with np.errstate(all="ignore"), one_thread():
        squarings = np.where(size > bounds[-1], np.ceil(np.log2(size / bounds[-1])), 0)
        known = np.isfinite(squarings)
        squarings = np.where(known, squarings, 0).astype(int)
        for i, s in sorted(set(zip(which.tolist(), squarings.tolist(), strict=True))):
            here = (which == i) & (squarings == s)
            out[here] = _pade(flat[here], table[i][0], s)
        out[~known] = np.nan
    return out.reshape(a.shape)


def _pade(a: Any, degree: int, squarings: int) -> Any:
    a = a / a.dtype.type(2.0**squarings)
    c = coefficients(degree)
    square = a @ a
    power = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    even, odd = c[0] * power, c[1] * power
    for j in range(2, degree, 2):
        power = power @ square
        even = even + a.dtype.type(c[j]) * power
        odd = odd + a.dtype.type(c[j + 1]) * power
    odd = a @ odd
    result = np.linalg.solve((even - odd).astype(a.dtype), (even + odd).astype(a.dtype))
    for _ in range(squarings):
        result = result @ result
    return result
