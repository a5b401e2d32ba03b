"""Factors of matrices, systems of equations and spectra, by cuSOLVER where it is installed; else the CPU computes them.

The library's matrices lie column by column. One of ours that is read so is its transposed, which is what a triangle is
given as; where that will not do, matrices are copied so that they lie that way, and back. Where the CPU refuses (numbers
that are not finite, iterations that do not end) the program waits for what the library said of it, as it would to raise.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, contiguous_strides
from genesis.base.errors import LinAlgError, message
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.complexes import real_of
from genesis.cuda.kernels.moves import broadcast, contiguous, tril, triu
from genesis.cuda.kernels.pivots import determinant, permutation_matrix, sign_and_logarithm
from genesis.cuda.libraries.cusolver import (
    INT,
    LOWER,
    NORMAL,
    SMALL,
    TINY,
    TRANSPOSED,
    UPPER,
    Solver,
    columns,
    count_of,
    solver,
)


def _there(*arrays: CudaArray) -> Solver | None:
    """The library, if it takes these."""
    takes = all([x.dtype.char in "fdFD" and x.dtype == arrays[0].dtype and x.size for x in arrays])
    return solver(arrays[0].on) if takes else None


def _op(name: str, *args: Any) -> Any:
    return MEMORY.kernel(REGISTRY[name])(*args)


def _turned(x: CudaArray) -> CudaArray:
    """Transposed, as a view."""
    return x.seen(0, (*x.shape[:-2], x.shape[-1], x.shape[-2]), (*x.strides[:-2], x.strides[-1], x.strides[-2]))


def _adjoint(x: CudaArray) -> CudaArray:
    return _op("conj_physical", _turned(x)) if x.dtype.kind == "c" else _turned(x)


def _conjugated(x: CudaArray) -> CudaArray:
    """A copy without gaps."""
    return _op("conj_physical", x) if x.dtype.kind == "c" else MEMORY.copy(x)


def _part(x: CudaArray, rows: int, count: int) -> CudaArray:
    """The first rows and columns of matrices."""
    return x.seen(0, (*x.shape[:-2], rows, count), x.strides)


def _infos(x: CudaArray, more: int = 0) -> CudaArray:
    return MEMORY.zeros((count_of(x) + more,), INT, x.device)


def _of_each(info: CudaArray, x: CudaArray) -> CudaArray:
    return info.seen(0, x.shape[:-2], contiguous_strides(x.shape[:-2]))


def _refuse(name: str, x: CudaArray, info: CudaArray) -> None:
    """Raise as the CPU does for matrices that are not finite, and where an iteration did not converge.

    Args:
        info: what was said of each matrix, and room for one number more
    """
    finite = _op("all", _op("isfinite", x), tuple(range(x.ndim)), False)
    MEMORY.assign(info.seen(count_of(x) * INT.itemsize, (), ()), finite)
    said = MEMORY.to_host(info)
    if not said[-1]:
        problem = "a matrix has elements that are inf or nan"
        raise LinAlgError(message(name, problem, [("input", Spec(x.shape, x.dtype))]))
    if said[:-1].any():
        raise LinAlgError(message(name, f"the iteration did not converge (cuSOLVER says {said[:-1].max()})"))


# ---- triangles


def cholesky_factor(input: CudaArray) -> Any:
    """Read by rows, $A$ is $A^T = \\bar{A}$, whose upper factor $U$ in $U^H U$ is $L^T$: by rows again, $L$."""
    made = _there(input)
    if made is None:
        return NotImplemented
    a, info = MEMORY.copy(input), _infos(input)
    made.cholesky(a, info, UPPER)
    return tril(a), _of_each(info, input)


def triangular_system(input: CudaArray, other: CudaArray, upper: bool, unitriangular: bool) -> Any:
    """$A X = B$ read by rows is $X^T A^T = B^T$, with the other triangle."""
    made = _there(input, other)
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
    a, info = columns(x), _infos(x)
    if pivot:
        pivots = MEMORY.empty((*x.shape[:-2], k), INT, x.device)
    else:
        pivots = MEMORY.from_host(np.broadcast_to(np.arange(1, k + 1, dtype=INT), (*x.shape[:-2], k)), x.device)
    made.lu(a, pivots if pivot else None, info)
    return a, pivots, _of_each(info, x)


def lu_factors(x: CudaArray, pivot: bool) -> Any:
    made = _there(x)
    if made is None:
        return NotImplemented
    lu, pivots, info = _eliminated(made, x, pivot)
    return MEMORY.copy(lu), pivots, info


def solve_system(input: CudaArray, other: CudaArray) -> Any:
    made = _there(input, other)
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
    made = _there(x)
    return NotImplemented if made is None else determinant(*_eliminated(made, x)[:2])


def sign_and_logdet(x: CudaArray) -> Any:
    made = _there(x)
    return NotImplemented if made is None else sign_and_logarithm(*_eliminated(made, x)[:2])


def cofactors(input: CudaArray) -> Any:
    """From the inverse; of matrices that have none, the CPU computes them."""
    made = _there(input)
    if made is None:
        return NotImplemented
    lu, pivots, info = _eliminated(made, input)
    det = determinant(lu, pivots)
    regular = _op("bitwise_and", _op("eq", info, 0), _op("isfinite", det))
    if not MEMORY.to_host(_op("all", regular, tuple(range(regular.ndim)), False)):
        return NotImplemented
    n = input.shape[-1]
    one = MEMORY.zeros((n, n), input.dtype, input.device)
    MEMORY.assign(one.seen(0, (n,), (n + 1,)), MEMORY.ones((n,), input.dtype, input.device))
    inverse = _substituted(made, lu, pivots, one)
    factor = det.seen(0, (*det.shape, 1, 1), (*det.strides, 0, 0))
    return _op("mul", MEMORY.copy(_turned(inverse)), factor)


# ---- reflections


def reflections(input: CudaArray) -> Any:
    made = _there(input)
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
    made = _there(x)
    if made is None:
        return NotImplemented
    (m, n), count = x.shape[-2:], count_of(x)
    a, tau = _reflections(made, x)
    k = m if mode == "complete" else min(m, n)
    r = triu(_part(a, k, n))
    if k <= n:
        q, size = _part(a, m, k), m * n
    else:  # more columns than there are reflections
        q, size = columns(MEMORY.zeros((*x.shape[:-2], m, k), x.dtype, x.device)), m * k
        MEMORY.assign(_part(q, m, n), a)
    made.reflected(q, tau, count, size)
    return MEMORY.copy(q), r


# ---- spectra


def hermitian_eigenvectors(x: CudaArray, uplo: str, name: str = "linalg.eigh") -> Any:
    made = _there(x)
    if made is None:
        return NotImplemented
    a, info = columns(x), _infos(x, 1)
    values = MEMORY.empty(x.shape[:-1], _real(x), x.device)
    made.hermitian(a, values, info, LOWER if uplo == "L" else UPPER)
    _refuse(name, x, info)
    return values, MEMORY.copy(a)


def _real(x: CudaArray) -> Any:
    return real_of(x.dtype) if x.dtype.kind == "c" else x.dtype


def singular_vectors(x: CudaArray, full_matrices: bool, name: str = "linalg.svd") -> Any:
    """Read by rows, $A = U S V^H$ is $A^T = \\bar{V} S U^T$: what comes first of it is, by rows, $V^H$ as it is."""
    made = _there(x)
    if made is None:
        return NotImplemented
    (m, n), batch = x.shape[-2:], x.shape[:-2]
    k, count = min(m, n), count_of(x)
    whole = full_matrices or (count > 1 and max(m, n) <= TINY)  # that call gives all of both
    a, info = MEMORY.copy(x), _infos(x, 1)
    s = MEMORY.empty((*batch, k), _real(x), x.device)
    vh = MEMORY.empty((*batch, n if whole else k, n), x.dtype, x.device)
    u = MEMORY.empty((*batch, m if whole else k, m), x.dtype, x.device)
    made.singular(_turned(a), s, vh, u, info, whole)
    _refuse(name, x, info)
    u = _turned(u)
    if whole and not full_matrices:
        u, vh = _part(u, m, k), contiguous(_part(vh, k, n))
    return _conjugated(u), s, vh


def pseudoinverse(x: CudaArray, keep: CudaArray, hermitian: bool) -> Any:
    name = "linalg.pinv"
    factors = hermitian_eigenvectors(x, "L", name) if hermitian else singular_vectors(x, False, name)
    if factors is NotImplemented:
        return factors
    left, values, right = (factors[1], factors[0], _adjoint(factors[1])) if hermitian else factors
    shape = np.broadcast_shapes(keep.shape, values.shape)
    kept = keep.seen(0, shape, broadcast(keep, shape))
    inverse = _op("select_where", kept, _op("reciprocal", values), 0.0)
    scale = MEMORY.empty(inverse.shape, x.dtype, x.device)
    MEMORY.assign(scale, inverse)
    scale = scale.seen(0, (*scale.shape[:-1], 1, scale.shape[-1]), (*scale.strides[:-1], 0, scale.strides[-1]))
    return _op("matmul", _op("mul", _adjoint(right), scale), _adjoint(left))


KERNELS: dict[str, Any] = {
    "cholesky_factor": cholesky_factor,
    "triangular_system": triangular_system,
    "lu_factors": lu_factors,
    "permutation_matrix": permutation_matrix,
    "solve_system": solve_system,
    "linalg_det": linalg_det,
    "sign_and_logdet": sign_and_logdet,
    "cofactors": cofactors,
    "reflections": reflections,
    "qr_factors": qr_factors,
    "hermitian_eigenvectors": hermitian_eigenvectors,
    "singular_vectors": singular_vectors,
    "pseudoinverse": pseudoinverse,
}
