"""Factors of matrices and systems of equations, by cuSOLVER where it is installed; else the CPU computes them.

The library's matrices lie column by column. One of ours that is read so is its transposed, which is what a triangle is
given as; where that will not do, matrices are copied so that they lie that way, and back.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.matrices import computed, corner, infos, of_each, real_kind, solver_for, turned
from genesis.cuda.kernels.moves import broadcast, tril, triu
from genesis.cuda.kernels.pivots import determinant, permutation_matrix, sign_and_logarithm
from genesis.cuda.libraries.cusolver import INT, LOWER, NORMAL, SMALL, TRANSPOSED, UPPER, Solver, columns, count_of
from genesis.ops.linalg.host import approximants, coefficients

# ---- triangles


def cholesky_factor(input: CudaArray) -> Any:
    """Read by rows, $A$ is $A^T = \\bar{A}$, whose upper factor $U$ in $U^H U$ is $L^T$: by rows again, $L$."""
    made = solver_for(input)
    if made is None:
        return NotImplemented
    a, info = MEMORY.copy(input), infos(input)
    made.cholesky(a, info, UPPER)
    return tril(a), of_each(info, input)


def triangular_system(input: CudaArray, other: CudaArray, upper: bool, unitriangular: bool) -> Any:
    """$A X = B$ read by rows is $X^T A^T = B^T$, with the other triangle."""
    made = solver_for(input, other)
    if made is None:
        return NotImplemented
    batch = np.broadcast_shapes(input.shape[:-2], other.shape[:-2])
    b = MEMORY.empty((*batch, *other.shape[-2:]), other.dtype, other.device)
    MEMORY.assign(b, other.seen(0, b.shape, broadcast(other, b.shape)))
    a, operation, step = _as_it_lies(input)
    below = upper == (operation == NORMAL)
    made.triangular(a, _order(input, batch), b, LOWER if below else UPPER, operation, unitriangular, step)
    return b


def _as_it_lies(x: CudaArray) -> tuple[CudaArray, int, int]:
    """Matrices, how they are to be read (by rows they are transposed already), and what is from one row or column to the next."""
    n = x.shape[-1]
    outer, inner = x.strides[-2:]
    even = x.ndim == 2 or _is_even(x)
    if even and inner == 1 and outer >= n:
        return _joined(x), NORMAL, outer
    if even and outer == 1 and inner >= n:
        return _joined(x), TRANSPOSED, inner
    return _joined(MEMORY.copy(x)), NORMAL, n


def _is_even(x: CudaArray) -> bool:
    """Whether matrices are one distance apart."""
    steps = [(n, s) for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True) if n > 1]
    return all([s > 0 for _, s in steps]) and all([s == t * n for (_, s), (n, t) in itertools.pairwise(steps)])


def _joined(x: CudaArray) -> CudaArray:
    """All dimensions of a batch as one."""
    steps = [s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True) if n > 1]
    return x.seen(0, (count_of(x), *x.shape[-2:]), (steps[-1] if steps else 0, *x.strides[-2:]))


def _order(x: CudaArray, batch: tuple[int, ...]) -> Any:
    """Which matrix goes with each of a batch that they broadcast to."""
    own = np.arange(count_of(x)).reshape(x.shape[:-2])
    return np.broadcast_to(own, batch).reshape(-1)


# ---- LU


def _eliminated(made: Solver, x: CudaArray, pivot: bool = True) -> tuple[CudaArray, CudaArray, CudaArray]:
    """Factors that lie column by column, exchanges and infos."""
    k = min(x.shape[-2:])
    a, info = columns(x), infos(x)
    if pivot:
        pivots = MEMORY.empty((*x.shape[:-2], k), INT, x.device)
    else:
        pivots = MEMORY.from_host(np.broadcast_to(np.arange(1, k + 1, dtype=INT), (*x.shape[:-2], k)), x.device)
    made.lu(a, pivots if pivot else None, info)
    return a, pivots, of_each(info, x)


def lu_factors(x: CudaArray, pivot: bool) -> Any:
    made = solver_for(x)
    if made is None:
        return NotImplemented
    lu, pivots, info = _eliminated(made, x, pivot)
    return MEMORY.copy(lu), pivots, info


def solve_system(input: CudaArray, other: CudaArray) -> Any:
    made = solver_for(input, other)
    if made is None:
        return NotImplemented
    lu, pivots, info = _eliminated(made, input)
    return _substituted(made, lu, pivots, other), info


def _substituted(made: Solver, lu: CudaArray, pivots: CudaArray, other: CudaArray) -> CudaArray:
    batch = np.broadcast_shapes(lu.shape[:-2], other.shape[:-2])
    shape = (*batch, *other.shape[-2:])
    b = columns(other, shape)
    count, n, k = math.prod(batch), *shape[-2:]
    if count_of(lu) == 1:  # all columns of all
        made.substituted(lu, pivots, b.seen(0, (n, count * k), (1, n)), [0])
    elif count_of(lu) == count and n <= SMALL:
        made.substituted_together(lu, pivots, b)
    else:
        made.substituted(lu, pivots, b, _order(lu, batch))
    return MEMORY.copy(b)


def linalg_det(x: CudaArray) -> Any:
    made = solver_for(x)
    return NotImplemented if made is None else determinant(*_eliminated(made, x)[:2])


def sign_and_logdet(x: CudaArray) -> Any:
    made = solver_for(x)
    return NotImplemented if made is None else sign_and_logarithm(*_eliminated(made, x)[:2])


def cofactors(input: CudaArray) -> Any:
    """From the inverse; of matrices that have none, the CPU computes them."""
    made = solver_for(input)
    if made is None:
        return NotImplemented
    lu, pivots, info = _eliminated(made, input)
    det = determinant(lu, pivots)
    regular = computed("bitwise_and", computed("eq", info, 0), computed("isfinite", det))
    if not MEMORY.to_host(computed("all", regular, tuple(range(regular.ndim)), False)):
        return NotImplemented
    inverse = _substituted(made, lu, pivots, _identity(input))
    factor = det.seen(0, (*det.shape, 1, 1), (*det.strides, 0, 0))
    return computed("mul", MEMORY.copy(turned(inverse)), factor)


def _identity(like: CudaArray) -> CudaArray:
    """A matrix as large as these."""
    n = like.shape[-1]
    out = MEMORY.zeros((n, n), like.dtype, like.device)
    MEMORY.assign(out.seen(0, (n,), (n + 1,)), MEMORY.ones((n,), like.dtype, like.device))
    return out


def linalg_matrix_exp(x: CudaArray) -> Any:
    """As on the CPU, but of as many squarings for all matrices as the largest needs; numbers that are not finite are the
    CPU's.
    """
    made = solver_for(x)
    if made is None:
        return NotImplemented
    sizes = computed("sum", computed("abs", x), (x.ndim - 2,), False, real_kind(x))
    size = float(MEMORY.to_host(computed("amax", sizes, tuple(range(sizes.ndim)), False)))
    if not math.isfinite(size):
        return NotImplemented
    table = approximants(x.dtype)
    degree, bound = next((each for each in table if size <= each[1]), table[-1])
    squarings = max(math.ceil(math.log2(size / bound)), 0) if size else 0
    result = _approximated(made, computed("mul", x, 2.0**-squarings), degree)
    for _ in range(squarings):
        result = computed("matmul", result, result)
    return result


def _approximated(made: Solver, x: CudaArray, degree: int) -> CudaArray:
    """By Pade's approximant of a degree."""
    c = coefficients(degree)
    square, power = computed("matmul", x, x), _identity(x)
    even, odd = computed("mul", power, c[0]), computed("mul", power, c[1])
    for j in range(2, degree, 2):
        power = square if j == 2 else computed("matmul", power, square)
        even = computed("add", even, computed("mul", power, c[j]))
        odd = computed("add", odd, computed("mul", power, c[j + 1]))
    odd = computed("matmul", x, odd)
    lu, pivots, _ = _eliminated(made, computed("sub", even, odd))
    return _substituted(made, lu, pivots, computed("add", even, odd))


# ---- reflections


def reflections(input: CudaArray) -> Any:
    made = solver_for(input)
    if made is None:
        return NotImplemented
    a, tau = _reflections(made, input)
    return MEMORY.copy(a), tau


def _reflections(made: Solver, x: CudaArray) -> tuple[CudaArray, CudaArray]:
    a = columns(x)
    tau = MEMORY.empty((*x.shape[:-2], min(x.shape[-2:])), x.dtype, x.device)
    made.reflections(a, tau)
    return a, tau


def qr_factors(x: CudaArray, mode: str) -> Any:
    made = solver_for(x)
    if made is None:
        return NotImplemented
    (m, n), count = x.shape[-2:], count_of(x)
    a, tau = _reflections(made, x)
    k = m if mode == "complete" else min(m, n)
    r = triu(corner(a, k, n))
    if k <= n:
        q, size = corner(a, m, k), m * n
    else:  # more columns than there are reflections
        q, size = columns(MEMORY.zeros((*x.shape[:-2], m, k), x.dtype, x.device)), m * k
        MEMORY.assign(corner(q, m, n), a)
    made.reflected(q, tau, count, size)
    return MEMORY.copy(q), r


KERNELS: dict[str, Any] = {
    "cholesky_factor": cholesky_factor,
    "triangular_system": triangular_system,
    "lu_factors": lu_factors,
    "permutation_matrix": permutation_matrix,
    "solve_system": solve_system,
    "linalg_det": linalg_det,
    "sign_and_logdet": sign_and_logdet,
    "cofactors": cofactors,
    "linalg_matrix_exp": linalg_matrix_exp,
    "reflections": reflections,
    "qr_factors": qr_factors,
}
