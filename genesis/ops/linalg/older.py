"""The names of linear algebra that are older than `genesis.linalg`, as functions and as methods."""

from __future__ import annotations

from typing import Any, NamedTuple

from genesis.base.library import named_result
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg.cholesky import linalg_cholesky
from genesis.ops.linalg.common import check_matrix, check_same, regular, results_out
from genesis.ops.linalg.determinants import linalg_det, linalg_slogdet
from genesis.ops.linalg.least_squares import linalg_pinv
from genesis.ops.linalg.lu import linalg_lu_factor_ex, linalg_lu_solve
from genesis.ops.linalg.products import linalg_matrix_exp, linalg_matrix_power, linalg_multi_dot
from genesis.ops.linalg.qr import linalg_qr
from genesis.ops.linalg.solving import linalg_inv
from genesis.ops.linalg.svd import linalg_svd
from genesis.ops.linalg.triangular import triangular_system
from genesis.ops.pointwise.choice import where


@named_result
class qr_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    Q: Tensor
    R: Tensor


@named_result
class svd_result(NamedTuple):  # noqa: N801
    U: Tensor
    S: Tensor
    V: Tensor


@named_result
class triangular_solve_result(NamedTuple):  # noqa: N801
    solution: Tensor
    cloned_coefficient: Tensor


@composite(dtypes="Fc")
def cholesky(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """`linalg.cholesky`.

    >>> import genesis
    >>> genesis.cholesky(genesis.tensor([[4.]]))
    tensor([[2.]])
    """
    factor = linalg_cholesky(input, upper=upper)
    return factor if out is None else write_out("cholesky", factor, out)


@composite(dtypes="Fc")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """The solution of $AX = B$ from Cholesky's factor of A, $A = LL^H$ (or for ``upper`` $A = L^H L$).

    Args:
        B: (\\*, n, k), batches broadcast
        L: (\\*, n, n), of which the other half is not read

    Raises:
        RuntimeError: L is not square, sizes or dtypes do not fit

    >>> import genesis
    >>> genesis.cholesky_solve(genesis.tensor([[8.]]), genesis.tensor([[2.]]))
    tensor([[2.]])
    """
    check_matrix("cholesky_solve", L, True, "L")
    check_matrix("cholesky_solve", B, what="B")
    check_same("cholesky_solve", B=B, L=L)
    lower = L.mH if upper else L
    x = triangular_system(lower.mH, triangular_system(lower, B, False, False), True, False)
    return x if out is None else write_out("cholesky_solve", x, out)


Tensor.cholesky_solve = cholesky_solve
samples(cholesky_solve, lambda t: [case(t(3, 2), regular(t, 3, 3)), case(t(2, 3, 1), regular(t, 3, 3), True)])
wrong_inputs(
    cholesky_solve,
    (lambda t: case(t(2, 1), t(2, 3)), RuntimeError, "cholesky_solve: L must be batches of square matrices"),
)


@composite(dtypes="Fc")
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """The inverse of A from Cholesky's factor of it, $A = LL^H$ (or for ``upper`` $A = L^H L$).

    >>> import genesis
    >>> genesis.cholesky_inverse(genesis.tensor([[2.]]))
    tensor([[0.2500]])
    """
    check_matrix("cholesky_inverse", L, True, "L")
    x = cholesky_solve(eye(L.shape[-1], dtype=L.dtype, device=L.device), L, upper)
    return x if out is None else write_out("cholesky_inverse", x, out)


Tensor.cholesky_inverse = cholesky_inverse
samples(cholesky_inverse, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2), True)])
wrong_inputs(
    cholesky_inverse, (lambda t: case(t(2, 3)), RuntimeError, "cholesky_inverse: L must be batches of square matrices")
)


@composite(dtypes="Fc")
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """`linalg.qr`, "reduced" or "complete".

    >>> import genesis
    >>> genesis.qr(genesis.eye(2)).R.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return results_out("qr", qr_result(*linalg_qr(input, "reduced" if some else "complete")), out)


@composite(dtypes="Fc")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """`linalg.svd`, with V in the place of its adjoint, ``(U, S, V)``; without ``compute_uv`` U and V are zeros.

    >>> import genesis
    >>> genesis.svd(genesis.eye(2)).S
    tensor([1., 1.])
    """
    u, s, vh = linalg_svd(input, not (some and compute_uv))
    v = vh.mH
    if not compute_uv:
        u, v = u.new_zeros(u.shape), v.new_zeros(v.shape)
    return results_out("svd", svd_result(u, s, v), out)


@composite(dtypes="Fc")
def det(input: Tensor) -> Tensor:
    """`linalg.det`.

    >>> import genesis
    >>> genesis.det(genesis.eye(2))
    tensor(1.)
    """
    return linalg_det(input)  # type: ignore[no-any-return]


@composite(dtypes="Fc")
def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """`linalg.slogdet`.

    >>> import genesis
    >>> genesis.slogdet(genesis.eye(2)).logabsdet
    tensor(0.)
    """
    return linalg_slogdet(input, out=out)


@composite(dtypes="Fc")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan where that is negative, -inf where it is zero.

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.logdet(genesis.eye(2))
    tensor(0.)
    """
    check_matrix("logdet", input, True, "A")
    sign, log = linalg_slogdet(input)
    return sign.log() + log if input.is_complex() else where(sign == -1.0, float("nan"), log)


samples(logdet, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2))])
wrong_inputs(logdet, (lambda t: case(t(2, 3)), RuntimeError, "logdet: A must be batches of square matrices"))


@composite(dtypes="Fc")
def inverse(input: Tensor, *, out: Any = None) -> Tensor:
    """`linalg.inv`.

    >>> import genesis
    >>> genesis.inverse(genesis.eye(1))
    tensor([[1.]])
    """
    return linalg_inv(input, out=out)  # type: ignore[no-any-return]


@composite(dtypes="Fc")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`.

    >>> import genesis
    >>> genesis.pinverse(genesis.eye(1))
    tensor([[1.]])
    """
    return linalg_pinv(input, rcond)  # type: ignore[no-any-return]


@composite(dtypes="Fc")
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`.

    >>> import genesis
    >>> genesis.matrix_exp(genesis.zeros(1, 1))
    tensor([[1.]])
    """
    return linalg_matrix_exp(input)  # type: ignore[no-any-return]


@composite(dtypes="Fc")
def matrix_power(input: Tensor, n: int, *, out: Any = None) -> Tensor:
    """`linalg.matrix_power`.

    >>> import genesis
    >>> genesis.matrix_power(genesis.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return linalg_matrix_power(input, n, out=out)  # type: ignore[no-any-return]


@composite(dtypes="Fc", method=False)
def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """`linalg.multi_dot`, of one matrix, too.

    >>> import genesis
    >>> genesis.chain_matmul(genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[2.]])
    """
    if len(matrices) == 1:
        return matrices[0]
    return linalg_multi_dot(list(matrices), out=out)  # type: ignore[no-any-return]


@composite(dtypes="Fc", method=False)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor`, and with ``get_infos`` 0 or which pivot is zero, for each matrix.

    >>> import genesis
    >>> len(genesis.lu(genesis.eye(2), get_infos=True))
    3
    """
    results = tuple(linalg_lu_factor_ex(A, pivot=pivot))[: 3 if get_infos else 2]
    return results if out is None else tuple(write_out("lu", r, o) for r, o in zip(results, out, strict=True))


@composite(dtypes="Fc", method=False)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """`linalg.lu_solve`.

    >>> import genesis
    >>> genesis.lu_solve(genesis.ones(1, 1), *genesis.linalg.lu_factor(genesis.tensor([[2.]])))
    tensor([[0.5000]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)  # type: ignore[no-any-return]


@composite(dtypes="Fc")
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """The solution of $AX = b$ (with ``transpose``, of $A^T X = b$) for triangles, and a copy of A.

    >>> import genesis
    >>> genesis.triangular_solve(genesis.ones(1, 1), genesis.tensor([[2.]])).solution
    tensor([[0.5000]])
    """
    check_matrix("triangular_solve", A, True, "A")
    check_matrix("triangular_solve", b, what="b")
    x = (
        triangular_system(A.mT, b, not upper, unitriangular)
        if transpose
        else triangular_system(A, b, upper, unitriangular)
    )
    return results_out("triangular_solve", triangular_solve_result(x, A.clone()), out)


Tensor.triangular_solve = triangular_solve
samples(
    triangular_solve, lambda t: [case(t(3, 2), regular(t, 3, 3)), case(t(3, 2), regular(t, 3, 3), False, True, True)]
)
wrong_inputs(
    triangular_solve, (lambda t: case(t(2, 1), t(2, 3)), RuntimeError, "triangular_solve: A must be batches of square")
)

for _call in (det, slogdet, inverse, pinverse, matrix_exp):
    samples(_call, lambda t: [case(regular(t, 3, 3))])
samples(matrix_power, lambda t: [case(t(2, 2), 3), case(t(2, 2), 0), case(regular(t, 2, 2), -2)])
samples(chain_matmul, lambda t: [case(t(2, 3), t(3, 4), t(4, 2)), case(t(2, 3))])
samples(lu, lambda t: [case(t(3, 3)), case(t(2, 3), get_infos=True)])
Tensor.lu, Tensor.lu_solve = lu, lu_solve

__all__ = [
    "chain_matmul",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]
