"""Approximations of low rank by random projections (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.1)."""

from __future__ import annotations

from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.random import randn
from genesis.ops.linalg.qr import linalg_qr
from genesis.ops.linalg.svd import linalg_svd


_MOST = 10_000  # refinements: after some tens nothing changes


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns that span nearly what the columns of A - M do."""

    def times(x: Tensor) -> Tensor:
        return A @ x if M is None else A @ x - M @ x

    def times_adjoint(x: Tensor) -> Tensor:
        return A.mH @ x if M is None else A.mH @ x - M.mH @ x

    basis = linalg_qr(times(randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        basis = linalg_qr(times(linalg_qr(times_adjoint(basis)).Q)).Q
    return basis


def _check_matrix(name: str, x: Tensor) -> None:
    if x.ndim < 2:
        raise ShapeError(message(name, f"A must have at least two dimensions, it has {x.ndim}", [("A", x._spec())]))
    if x.dtype.category < 2:
        text = f"A must have floating or complex numbers, it has {x.dtype}"
        raise ArgumentValueError(message(name, text, hint="A.float()"))


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    r"""``(U, S, V)`` with $A - M \approx U \, diag(S) V^H$ of rank ``q``, found with random projections.

    Args:
        q: how many singular values, a little more than what is wanted
        niter: how often the projection is refined
        M: what is taken off first, such as means; it broadcasts

    Raises:
        RuntimeError: A has fewer than two dimensions
        ValueError: integers; ``niter`` is more than 10,000

    >>> import genesis
    >>> U, S, V = genesis.svd_lowrank(genesis.tensor([[3., 0.], [0., 1.], [0., 0.]]), 1)
    >>> S.round(decimals=1)
    tensor([3.])
    """
    _check_matrix("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if niter > _MOST:
        raise ArgumentValueError(message("svd_lowrank", f"niter must be at most {_MOST}, got {niter}", hint="niter=2"))
    M = None if M is None else M.broadcast_to(A.shape)
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter, None if M is None else M.mH)
        return U, S, V
    basis = _basis(A, q, niter, M)
    inside = basis.mH @ A if M is None else basis.mH @ (A - M)
    U, S, Vh = linalg_svd(inside, full_matrices=False)
    return basis @ U, S, Vh.mH


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of observations, the rows of A, less their means: the columns of V are the principal directions.

    Args:
        q: how many directions; at most 6 unless given
        center: take the means off

    Raises:
        ValueError: ``q`` is negative or more than there are rows or columns; ``niter`` is negative; integers
        RuntimeError: A has fewer than two dimensions

    >>> import genesis
    >>> U, S, V = genesis.pca_lowrank(genesis.tensor([[3., 1.], [1., 1.], [2., 1.]]), 1)
    >>> S.round(decimals=1)
    tensor([1.4000])
    """
    _check_matrix("pca_lowrank", A)
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ArgumentValueError(message("pca_lowrank", f"q must be between 0 and {min(m, n)}, got {q}"))
    if niter < 0:
        raise ArgumentValueError(message("pca_lowrank", f"niter must not be negative, got {niter}"))
    return svd_lowrank(A, q, niter, A.mean(-2, True) if center else None)


explain_all(globals(), "svd_lowrank", "pca_lowrank")

__all__ = ["pca_lowrank", "svd_lowrank"]
