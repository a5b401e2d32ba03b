"""Spectra of matrices by cuSOLVER: eigenvectors of Hermitian ones and singular vectors. Where the CPU refuses (numbers that
are not finite, iterations that do not end) the program waits for what the library said of it, as it would to raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import LinAlgError, message
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.matrices import adjoint, computed, conjugated, corner, infos, real_kind, solver_for, turned
from genesis.cuda.kernels.moves import broadcast, contiguous
from genesis.cuda.libraries.cusolver import INT, LOWER, TINY, UPPER, columns, count_of


def _refuse(name: str, x: CudaArray, info: CudaArray) -> None:
    """Raise as the CPU does for matrices that are not finite, and where an iteration did not converge.

    Args:
        info: what was said of each matrix, and room for one number more
    """
    finite = computed("all", computed("isfinite", x), tuple(range(x.ndim)), False)
    MEMORY.assign(info.seen(count_of(x) * INT.itemsize, (), ()), finite)
    said = MEMORY.to_host(info)
    if not said[-1]:
        problem = "a matrix has elements that are inf or nan"
        raise LinAlgError(message(name, problem, [("input", Spec(x.shape, x.dtype))]))
    if said[:-1].any():
        raise LinAlgError(message(name, f"the iteration did not converge (cuSOLVER says {said[:-1].max()})"))


def hermitian_eigenvectors(x: CudaArray, uplo: str, name: str = "linalg.eigh") -> Any:
    made = solver_for(x)
    if made is None:
        return NotImplemented
    a, info = columns(x), infos(x, 1)
    values = MEMORY.empty(x.shape[:-1], real_kind(x), x.device)
    made.hermitian(a, values, info, LOWER if uplo == "L" else UPPER)
    _refuse(name, x, info)
    return values, MEMORY.copy(a)


def singular_vectors(x: CudaArray, full_matrices: bool, name: str = "linalg.svd") -> Any:
    """Read by rows, $A = U S V^H$ is $A^T = \\bar{V} S U^T$: what comes first of it is, by rows, $V^H$ as it is."""
    made = solver_for(x)
    if made is None:
        return NotImplemented
    (m, n), batch = x.shape[-2:], x.shape[:-2]
    k, count = min(m, n), count_of(x)
    whole = full_matrices or (count > 1 and max(m, n) <= TINY)  # that call gives all of both
    a, info = MEMORY.copy(x), infos(x, 1)
    s = MEMORY.empty((*batch, k), real_kind(x), x.device)
    vh = MEMORY.empty((*batch, n if whole else k, n), x.dtype, x.device)
    u = MEMORY.empty((*batch, m if whole else k, m), x.dtype, x.device)
    made.singular(turned(a), s, vh, u, info, whole)
    _refuse(name, x, info)
    u = turned(u)
    if whole and not full_matrices:
        u, vh = corner(u, m, k), contiguous(corner(vh, k, n))
    return conjugated(u), s, vh


def pseudoinverse(x: CudaArray, keep: CudaArray, hermitian: bool) -> Any:
    name = "linalg.pinv"
    factors = hermitian_eigenvectors(x, "L", name) if hermitian else singular_vectors(x, False, name)
    if factors is NotImplemented:
        return factors
    left, values, right = (factors[1], factors[0], adjoint(factors[1])) if hermitian else factors
    shape = np.broadcast_shapes(keep.shape, values.shape)
    kept = keep.seen(0, shape, broadcast(keep, shape))
    inverse = computed("select_where", kept, computed("reciprocal", values), 0.0)
    scale = MEMORY.empty(inverse.shape, x.dtype, x.device)
    MEMORY.assign(scale, inverse)
    scale = scale.seen(0, (*scale.shape[:-1], 1, scale.shape[-1]), (*scale.strides[:-1], 0, scale.strides[-1]))
    return computed("matmul", computed("mul", adjoint(right), scale), adjoint(left))


KERNELS: dict[str, Any] = {
    "hermitian_eigenvectors": hermitian_eigenvectors,
    "singular_vectors": singular_vectors,
    "pseudoinverse": pseudoinverse,
}
