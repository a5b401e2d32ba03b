"""LU: a permutation and two triangular factors, and systems solved with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    FACTORIZATION,
    INT32,
    check_matrix,
    check_same,
    refuse_info,
    results_out,
    square_info,
)
from genesis.ops.linalg.triangular import triangular_system
from genesis.ops.products.matmul import matmul
from genesis.ops.shapes.join import cat


@named_result
class lu_result(NamedTuple):  # noqa: N801
    P: Tensor
    L: Tensor
    U: Tensor


@named_result
class lu_factor_result(NamedTuple):  # noqa: N801
    LU: Tensor
    pivots: Tensor


@named_result
class lu_factor_ex_result(NamedTuple):  # noqa: N801
    LU: Tensor
    pivots: Tensor
    info: Tensor


def permutation_of(pivots: Tensor, rows: int, dtype: Any) -> Tensor:
    """The matrix P of $A = PLU$."""
    return permutation_matrix(pivots, rows, dtype)


@primitive(
    FACTORIZATION,
    infer=lambda pivots, rows, dtype: Spec((*pivots.shape[:-1], rows, rows), dtype, pivots.device),
    dtypes="F",
    method=False,
    torch_name="",
)
def permutation_matrix(pivots: Array, rows: int, dtype: Any) -> Any:
    """The permutation that exchanges of rows, counted from 1, are together.

    >>> import genesis, numpy
    >>> from genesis.ops.linalg.lu import permutation_matrix
    >>> permutation_matrix(genesis.tensor([2, 2]), 2, numpy.dtype("f4"))
    tensor([[0., 1.],
            [1., 0.]])
    """
    order = host.permutation(pivots.astype(np.int64) - 1, rows)
    return np.swapaxes(np.eye(rows, dtype=dtype)[order], -1, -2)


samples(
    permutation_matrix,
    lambda t: [case(t.int(2, low=1, high=2) * 0 + 2, 3, np.dtype("f8")), case(t.int(0), 0, np.dtype("f8"))],
)


def unpacked(lu: Tensor) -> tuple[Tensor, Tensor]:
    """L, with a diagonal of ones, and U."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower = lu[..., :k].tril(-1)  # type: ignore[attr-defined]
    return lower + eye(m, k, dtype=lu.dtype, device=lu.device), lu[..., :k, :].triu()  # type: ignore[attr-defined]


def _lu_rule(g: Any, outs: Any) -> Tensor:
    """As in Seeger et al. 2017, "Auto-differentiating linear algebra", section 4; of the parts that are no square, the
    one below is $A_2 U^{-1}$ and the one beside $L^{-1} A_2$.
    """
    lu, pivots, _ = outs
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower, upper = unpacked(lu)
    gl, gu = g[0][..., :k].tril(-1), g[0][..., :k, :].triu()
    l1, u1 = lower[..., :k, :], upper[..., :k]
    left, right = matmul(l1.mH, gl[..., :k, :]), matmul(gu[..., :k], u1.mH)
    if n > k:
        left = left - matmul(gu[..., k:], upper[..., k:].mH)
    if m > k:
        right = right - matmul(lower[..., k:, :].mH, gl[..., k:, :])
    inner = triangular_system(u1, (left.tril(-1) + right.triu()).mH, True, False).mH
    gx = triangular_system(l1.mH, inner, True, True)
    if n > k:
        gx = cat([gx, triangular_system(l1.mH, gu[..., k:], True, True)], -1)
    if m > k:
        gx = cat([gx, triangular_system(u1, gl[..., k:, :].mH, True, False).mH], -2)
    return matmul(permutation_of(pivots, m, gx._array.dtype), gx)


def _infer_lu(A: Spec, pivot: bool) -> Any:
    k = min(A.shape[-2:])
    return Spec(A.shape, A.dtype, A.device), Spec((*A.shape[:-2], k), INT32, A.device), square_info(A)


def _checked_lu(A: Tensor, pivot: bool) -> Any:
    check_matrix("linalg.lu_factor", A, what="A")
    return A, bool(pivot)


@primitive(
    FACTORIZATION,
    {"A": _lu_rule},
    infer=_infer_lu,
    prepare=_checked_lu,
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def lu_factors(A: Array, pivot: bool) -> Any:
    """What `linalg.lu_factor_ex` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.lu import lu_factors
    >>> lu_factors(genesis.tensor([[1., 2.], [2., 2.]]), True)[0]
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    return host.lu_factors(A, pivot)


_lu_shapes = lambda t: [case(t(3, 3), True), case(t(2, 4, 2), True), case(t(2, 4), True), case(t(0, 2), True)]  # noqa: E731
samples(lu_factors, _lu_shapes)


@composite(method=False, dtypes="Fc", torch_name="linalg.lu_factor_ex")
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """`lu_factor` and a number for each matrix: 0, or which pivot is zero.

    >>> import genesis
    >>> genesis.linalg.lu_factor_ex(genesis.zeros(2, 2)).info
    tensor(1, dtype=genesis.int32)
    """
    result = lu_factor_ex_result(*lu_factors(A, pivot))
    if check_errors:
        refuse_info("linalg.lu_factor_ex", result.info, "pivot {} is zero")
    return results_out("linalg.lu_factor_ex", result, out)


samples(linalg_lu_factor_ex, lambda t: [case(t(3, 3)), case(t(2, 4, 2))])


@composite(method=False, dtypes="Fc", torch_name="linalg.lu_factor")
def linalg_lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """$A = PLU$ in the form that `lu_solve` takes, ``(LU, pivots)``: U on and above the diagonal, L below, and which row
    each was exchanged with (int32, from 1).

    Args:
        A: (\\*, m, n)
        pivot: exchange rows, so that pivots are largest; without, a matrix may have no factors

    Raises:
        RuntimeError: fewer than two dimensions
        LinAlgError: a pivot is zero, and rows were not exchanged

    >>> import genesis
    >>> genesis.linalg.lu_factor(genesis.tensor([[1., 2.], [2., 2.]])).pivots
    tensor([2, 2], dtype=genesis.int32)
    """
    result = linalg_lu_factor_ex(A, pivot=pivot, check_errors=not pivot)
    return results_out("linalg.lu_factor", lu_factor_result(result.LU, result.pivots), out)


samples(linalg_lu_factor, lambda t: [case(t(3, 3)), case(t(2, 4, 2)), case(t(2, 4))])
wrong_inputs(
    linalg_lu_factor, (lambda t: case(t(3)), RuntimeError, "linalg.lu_factor: A must have at least 2 dimensions")
)


@composite(method=False, dtypes="Fc", torch_name="linalg.lu")
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """$A = PLU$: a permutation, a lower triangle with ones on its diagonal, and an upper one, ``(P, L, U)``.

    Args:
        A: (\\*, m, n)
        pivot: exchange rows; without, P is empty

    Raises:
        RuntimeError: fewer than two dimensions

    >>> import genesis
    >>> p, l, u = genesis.linalg.lu(genesis.tensor([[1., 2.], [2., 2.]]))
    >>> p @ l @ u
    tensor([[1., 2.],
            [2., 2.]])
    """
    lu, pivots, _ = lu_factors(A, pivot)
    p = permutation_of(pivots, A.shape[-2], A._array.dtype) if pivot else A.new_empty((0,))
    return results_out("linalg.lu", lu_result(p, *unpacked(lu)), out)


samples(linalg_lu, lambda t: [case(t(3, 3)), case(t(2, 4, 2)), case(t(2, 4)), case(t(0, 2))])
wrong_inputs(linalg_lu, (lambda t: case(t(3)), RuntimeError, "linalg.lu_factor: A must have at least 2 dimensions"))


@composite(method=False, dtypes="Fc", torch_name="lu_unpack")
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Any = None,
) -> Any:
    """P, L and U of what `linalg.lu_factor` gives; those that are not asked for are empty.

    Raises:
        RuntimeError: pivots that are no int32

    >>> import genesis
    >>> genesis.lu_unpack(*genesis.linalg.lu_factor(genesis.eye(2))).U
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_matrix("lu_unpack", LU_data, what="LU_data")
    if unpack_pivots and LU_pivots._array.dtype != INT32:
        raise ShapeError(message("lu_unpack", f"pivots are int32, got {LU_pivots.dtype}"))
    none = LU_data.new_empty((0,))
    p = permutation_of(LU_pivots, LU_data.shape[-2], LU_data._array.dtype) if unpack_pivots else none
    lower, upper = unpacked(LU_data) if unpack_data else (none, none)
    return results_out("lu_unpack", lu_result(p, lower, upper), out)


@composite(method=False, dtypes="Fc", autocast="own", torch_name="linalg.lu_solve")
def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Any = None,
) -> Tensor:
    """The solution of $AX = B$ (``left=False``: $XA = B$; ``adjoint``: of $A^H$) from what `lu_factor` gives for A.

    Raises:
        RuntimeError: A is not square, sizes or dtypes do not fit

    >>> import genesis
    >>> lu, pivots = genesis.linalg.lu_factor(genesis.tensor([[1., 2.], [2., 2.]]))
    >>> genesis.linalg.lu_solve(lu, pivots, genesis.tensor([[3.], [4.]]))
    tensor([[1.],
            [1.]])
    """
    check_matrix("linalg.lu_solve", LU, True, "LU")
    check_matrix("linalg.lu_solve", B, what="B")
    check_same("linalg.lu_solve", LU=LU, B=B)
    p = permutation_of(pivots, LU.shape[-1], LU._array.dtype)
    if left is adjoint:  # A^H Y = B, or the adjoint of X A = B
        right = B if left else B.mH
        y = triangular_system(LU.mH, right, False, False)
        x = matmul(p, triangular_system(LU.mH, y, True, True))
    else:
        right = matmul(p.mT, B if left else B.mH)
        x = triangular_system(LU, triangular_system(LU, right, False, True), True, False)
    x = x if left else x.mH
    return x if out is None else write_out("linalg.lu_solve", x, out)


__all__ = ["lu_unpack"]
