"""The extension ``linalg``: linear algebra of matrices in the last two axes."""

from __future__ import annotations

from typing import Any, NamedTuple

import genesis as _g
from genesis.array_api.dtypes import on_promoted, promoted
from genesis.array_api.manipulation import matrix_transpose
from genesis.array_api.products import tensordot, vecdot
from genesis.array_api.statistics import sum
from genesis.base.errors import ShapeError, message
from genesis.core.graph.tensor import Tensor

matmul = on_promoted("matmul")


class EighResult(NamedTuple):
    """Eigenvalues in growing order, and the vectors in columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Singular values in falling order, between the vectors of both sides."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangle whose product with its adjoint is a positive definite matrix."""
    return _g.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements."""
    return _g.linalg.cross(*promoted(x1, x2), dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Determinants."""
    return _g.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals, as the last axis."""
    return _g.linalg.diagonal(x, offset=offset)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*_g.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return _g.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverses."""
    return _g.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices."""
    return _g.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Powers of square matrices."""
    return _g.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are above ``rtol`` times the largest."""
    return _g.linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(message("outer", f"two vectors are needed, got {x1.ndim}-D and {x2.ndim}-D"))
    a, b = promoted(x1, x2)
    return a[:, None] * b  # type: ignore[no-any-return]


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudo-inverses; singular values up to ``rtol`` times the largest count as zero."""
    return _g.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns times an upper triangle."""
    return QRResult(*_g.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of determinants, and the logarithm of their sizes."""
    return SlogdetResult(*_g.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """What x1 has to be multiplied by for x2: a vector if x2 has one axis, else the columns of matrices."""
    a, b = promoted(x1, x2)
    if b.ndim == 1:
        return _g.linalg.solve(a, b[:, None])[..., 0]  # type: ignore[no-any-return]
    batch = _g.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _g.linalg.solve(a, b.broadcast_to((*batch, *b.shape[-2:])))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition."""
    return SVDResult(*_g.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values."""
    return _g.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of diagonals."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Norms along axes, or of all elements."""
    return _g.linalg.vector_norm(x, ord, axis, keepdims)


__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
           "trace", "vecdot", "vector_norm"]  # fmt: skip
