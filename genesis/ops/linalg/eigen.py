"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, GraphError, message
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    FACTORIZATION,
    check_matrix,
    complex_of,
    diagonal_part,
    one_square,
    real_of,
    results_out,
)
from genesis.ops.linalg.solving import linalg_solve
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul


@named_result
class eigh_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    eigenvalues: Tensor
    eigenvectors: Tensor


@named_result
class eig_result(NamedTuple):  # noqa: N801
    eigenvalues: Tensor
    eigenvectors: Tensor


# ---- gradients


def differences(values: Tensor) -> Tensor:
    """$\\lambda_j - \\lambda_i$, with ones on the diagonal."""
    apart = values.unsqueeze(-2) - values.unsqueeze(-1)
    return apart + eye(values.shape[-1], dtype=values.dtype, device=values.device)


def divided(x: Tensor, apart: Tensor) -> Tensor:
    """The quotient; zero over zero is zero: a vector that nobody asked for may have an equal neighbour."""
    return x / where((x == 0) & (apart == 0), 1, apart)


def no_diagonal(x: Tensor) -> Tensor:
    return x - diagonal_part(x)


def refuse_phase(name: str, x: Tensor, what: str) -> None:
    """Refuse a loss that depends on the phase of complex vectors, which is arbitrary."""
    if not x.is_complex():
        return
    values = known_values(x.detach())
    if values is None or not values.size:
        return
    phase = np.abs(np.diagonal(values, 0, -2, -1).imag)
    tolerance = 1e-2 if values.dtype == np.complex64 else 1e-8
    if (phase > tolerance * max(1.0, float(np.abs(values).max()))).any():
        raise GraphError(
            message(
                name,
                f"{what} in the complex case are determined up to a factor $e^{{i \\phi}}$, and the loss depends on it",
                hint="differentiate what does not depend on the phase, such as magnitudes",
            )
        )


# ---- Hermitian


def _eigh_rule(g: Any, outs: Any) -> Tensor:
    """Giles 2008, "An extended collection of matrix derivative results", section 3.1."""
    (values, vectors), (gl, gv) = outs, g
    inner = matmul(vectors.mH, gv)
    refuse_phase("linalg.eigh", inner, "eigenvectors")
    middle = divided(no_diagonal(inner), differences(values)) + gl.diag_embed().to(inner.dtype)
    return matmul(vectors, matmul(middle, vectors.mH))


def _checked_eigh(A: Tensor, UPLO: Any = "L") -> Any:
    check_matrix("linalg.eigh", A, True, "A")
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ArgumentValueError(message("linalg.eigh", f'UPLO must be "L" or "U", got {UPLO!r}'))
    return A, UPLO.upper()


@primitive(
    FACTORIZATION,
    {"A": _eigh_rule},
    infer=lambda A, UPLO: (Spec(A.shape[:-1], real_of(A.dtype), A.device), Spec(A.shape, A.dtype, A.device)),
    prepare=_checked_eigh,
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def hermitian_eigenvectors(A: Array, UPLO: str) -> Any:
    """What `linalg.eigh` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.eigen import hermitian_eigenvectors
    >>> hermitian_eigenvectors(genesis.tensor([[3.]]), "L")[0]
    tensor([3.])
    """
    return tuple(host.lapack("linalg.eigh", np.linalg.eigh, A, UPLO))


@composite(method=False, dtypes="Fc", torch_name="linalg.eigh")
def linalg_eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of real symmetric or complex Hermitian matrices, $A = V \\text{diag}(L) V^H$.

    Gradients of the eigenvectors are finite only where all eigenvalues differ, and of complex ones defined only for
    losses that do not depend on their phases.

    Args:
        A: (\\*, n, n)
        UPLO: which half is read, "L" or "U"

    Returns:
        ``(eigenvalues, eigenvectors)``: real, in ascending order, (\\*, n); columns, (\\*, n, n)

    Raises:
        RuntimeError: not square
        ValueError: another ``UPLO``
        LinAlgError: inf or nan

    >>> import genesis
    >>> genesis.linalg.eigh(genesis.tensor([[2., 1.], [1., 2.]])).eigenvalues
    tensor([1., 3.])
    """
    return results_out("linalg.eigh", eigh_result(*hermitian_eigenvectors(A, UPLO)), out)


@composite(method=False, dtypes="Fc", torch_name="linalg.eigvalsh")
def linalg_eigvalsh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """The eigenvalues of `eigh`, in ascending order; their gradient is always defined.

    >>> import genesis
    >>> genesis.linalg.eigvalsh(genesis.tensor([[2., 1.], [1., 2.]]))
    tensor([1., 3.])
    """
    values = hermitian_eigenvectors(A, UPLO)[0]
    return values if out is None else write_out("linalg.eigvalsh", values, out)


wrong_inputs(
    linalg_eigh,
    (lambda t: case(t(2, 3)), RuntimeError, "linalg.eigh: A must be batches of square matrices, they are 2 by 3"),
    (lambda t: case(t(2, 2), "X"), ValueError, 'linalg.eigh: UPLO must be "L" or "U", got \'X\''),
    (lambda t: case(t(2, 2) * float("nan")), RuntimeError, "linalg.eigh: a matrix has elements that are inf or nan"),
)


# ---- general


def _eig_rule(g: Any, A: Tensor, outs: Any) -> Tensor:
    """Boeddeker et al. 2017, "On the computation of complex-valued gradients", section 4.17, with vectors of length 1."""
    (values, vectors), (gl, gv) = outs, g
    inner = matmul(vectors.mH, gv)
    refuse_phase("linalg.eig", inner, "eigenvectors")
    along = inner.diagonal(0, -2, -1).real.to(inner.dtype)  # type: ignore[attr-defined]
    inner = inner - matmul(vectors.mH, vectors) * along.unsqueeze(-2)
    middle = divided(no_diagonal(inner), differences(values).conj()) + gl.diag_embed()
    gradient = linalg_solve(vectors.mH, matmul(middle, vectors.mH))
    return gradient if A.is_complex() else gradient.real  # type: ignore[return-value]


def _complex_eig(A: Any) -> Any:
    values, vectors = host.lapack("linalg.eig", np.linalg.eig, A)
    return values.astype(complex_of(A.dtype)), vectors.astype(complex_of(A.dtype))


@primitive(
    FACTORIZATION,
    {"A": _eig_rule},
    infer=lambda A: (
        Spec(A.shape[:-1], complex_of(A.dtype), A.device),
        Spec(A.shape, complex_of(A.dtype), A.device),
    ),
    prepare=one_square("linalg.eig"),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def eigenvectors(A: Array) -> Any:
    """What `linalg.eig` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.eigen import eigenvectors
    >>> eigenvectors(genesis.tensor([[3.]]))[0]
    tensor([3.+0.j])
    """
    return _complex_eig(A)


@composite(method=False, dtypes="Fc", torch_name="linalg.eig")
def linalg_eig(A: Tensor, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of square matrices, complex and in no order, $A = V \\text{diag}(L) V^{-1}$.

    The columns of V have length 1. Gradients are finite only where all eigenvalues differ, and defined only for losses
    that do not depend on the phases of the vectors.

    Returns:
        ``(eigenvalues, eigenvectors)``: (\\*, n) and (\\*, n, n)

    Raises:
        RuntimeError: not square
        LinAlgError: inf or nan

    >>> import genesis
    >>> genesis.linalg.eig(genesis.tensor([[0., 1.], [-1., 0.]])).eigenvalues.abs()
    tensor([1., 1.])
    """
    return results_out("linalg.eig", eig_result(*eigenvectors(A)), out)


@composite(method=False, dtypes="Fc", torch_name="linalg.eigvals")
def linalg_eigvals(A: Tensor, *, out: Any = None) -> Tensor:
    """The eigenvalues of `eig`.

    >>> import genesis
    >>> genesis.linalg.eigvals(genesis.tensor([[2.]]))
    tensor([2.+0.j])
    """
    values = eigenvectors(A)[0]
    return values if out is None else write_out("linalg.eigvals", values, out)


wrong_inputs(
    linalg_eig,
    (lambda t: case(t(2, 3)), RuntimeError, "linalg.eig: A must be batches of square matrices, they are 2 by 3"),
    (lambda t: case(t(2, 2) * float("inf")), RuntimeError, "linalg.eig: a matrix has elements that are inf or nan"),
)
