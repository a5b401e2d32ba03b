"""Factors of matrices: Cholesky's, QR, LU, LDL, and products of reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.blas import one_thread
from genesis.base.errors import ArgumentValueError, GraphError, ShapeError, message
from genesis.core.call.out import write_out
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.choice import where
from genesis.ops.creation.sequences import arange, eye
from genesis.ops.shapes.join import cat
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    fresh,
    FACTORIZATION,
    INT32,
    check_matrix,
    check_same,
    diagonal_part,
    half_diagonal,
    refuse_info,
    square_info,
)
from genesis.ops.linalg.solving import results_out, triangular_system
from genesis.ops.products.matmul import matmul


class cholesky_ex_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    L: Tensor
    info: Tensor


class qr_result(NamedTuple):  # noqa: N801
    Q: Tensor
    R: Tensor


class lu_result(NamedTuple):  # noqa: N801
    P: Tensor
    L: Tensor
    U: Tensor


class lu_factor_result(NamedTuple):  # noqa: N801
    LU: Tensor
    pivots: Tensor


class lu_factor_ex_result(NamedTuple):  # noqa: N801
    LU: Tensor
    pivots: Tensor
    info: Tensor


class ldl_factor_result(NamedTuple):  # noqa: N801
    LD: Tensor
    pivots: Tensor


class ldl_factor_ex_result(NamedTuple):  # noqa: N801
    LD: Tensor
    pivots: Tensor
    info: Tensor


# ---- Cholesky


def _cholesky_rule(g: Any, outs: Any) -> Tensor:
    """Murray 2016, "Differentiation of the Cholesky decomposition", section 3; Hermitian, as its operand is."""
    factor = outs[0]
    inner = half_diagonal(matmul(factor.mH, g[0]).tril())  # type: ignore[attr-defined]
    inner = 0.5 * (inner + inner.mH)
    right = triangular_system(factor.mH, inner, True, False)
    return triangular_system(factor.mH, right.mH, True, False)


def _one_square(name: str, what: str = "A") -> Any:
    def prepare(input: Tensor, *rest: Any) -> Any:
        check_matrix(name, input, True, what)
        return (input, *rest)

    return prepare


@primitive(
    FACTORIZATION,
    {"input": _cholesky_rule},
    infer=lambda input: (fresh(input), square_info(input)),
    prepare=_one_square("linalg.cholesky"),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def cholesky_factor(input: Array) -> Any:
    """The lower factor of Hermitian matrices, of which the upper half is not read, and the order of the first leading
    minor that is not positive; what `linalg.cholesky` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import cholesky_factor
    >>> cholesky_factor(genesis.tensor([[4.]]))[0]
    tensor([[2.]])
    """
    return host.cholesky(input)


@composite(method=False, dtypes="Fc", torch_name="linalg.cholesky_ex")
def linalg_cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """`cholesky` and a number for each matrix: 0, or the order of the first leading minor that is not positive; nothing
    is raised for that.

    >>> import genesis
    >>> genesis.linalg.cholesky_ex(-genesis.eye(2)).info
    tensor(1, dtype=genesis.int32)
    """
    check_matrix("linalg.cholesky", input, True, "A")
    factor, info = cholesky_factor(input.mH if upper else input)
    if check_errors:
        refuse_info("linalg.cholesky", info, "its leading minor of order {} is not positive definite")
    return results_out("linalg.cholesky_ex", cholesky_ex_result(factor.mH if upper else factor, info), out)


@composite(method=False, dtypes="Fc", torch_name="linalg.cholesky")
def linalg_cholesky(input: Tensor, *, upper: bool = False, out: Any = None) -> Tensor:
    """The lower triangle L of $A = LL^H$ (or for ``upper`` U of $A = U^H U$) for Hermitian positive definite matrices
    (\\*, n, n).

    The other half of A is not read; the gradient is Hermitian.

    Raises:
        RuntimeError: not square
        LinAlgError: a matrix is not positive definite

    >>> import genesis
    >>> genesis.linalg.cholesky(genesis.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    factor = linalg_cholesky_ex(input, upper=upper, check_errors=True).L
    return factor if out is None else write_out("linalg.cholesky", factor, out)


_wrong_square = lambda name: (  # noqa: E731
    (lambda t: case(t(2, 3)), RuntimeError, f"{name}: A must be batches of square matrices, they are 2 by 3"),
    (lambda t: case(t(3)), RuntimeError, f"{name}: A must have at least 2 dimensions, it has 1"),
)
wrong_inputs(
    linalg_cholesky,
    *_wrong_square("linalg.cholesky"),
    (lambda t: case(t(2, 2) * 0), RuntimeError, "linalg.cholesky: its leading minor of order 1 is not positive"),
    (
        lambda t: case(t(2, 2, 2) * 0),
        RuntimeError,
        "linalg.cholesky: matrix 0 of the batch: its leading minor of order 1",
    ),
)


# ---- QR


def _qr_rule(g: Any, A: Tensor, outs: Any) -> Tensor:
    """Roberts and Roberts 2020, "QR and LQ decomposition matrix backpropagation algorithms", sections 2 and 3."""
    (q, r), (gq, gr) = outs, g
    m, n = A.shape[-2:]
    if m >= n:
        return _tall_rule(gq, gr, q, r)
    left = _tall_rule(gq + matmul(A[..., m:], gr[..., m:].mH), gr[..., :m], q, r[..., :m])
    return cat([left, matmul(q, gr[..., m:])], -1)


def _tall_rule(gq: Tensor, gr: Tensor, q: Tensor, r: Tensor) -> Tensor:
    inner = (matmul(gr, r.mH) - matmul(q.mH, gq)).triu()  # type: ignore[attr-defined]
    inner = _folded(inner)
    return triangular_system(r, (gq + matmul(q, inner)).mH, True, False).mH


def _folded(x: Tensor) -> Tensor:
    """An upper triangle and its adjoint as one Hermitian matrix."""
    strict, middle = x - diagonal_part(x), diagonal_part(x)
    return strict + strict.mH + (middle.real.to(x.dtype) if x.is_complex() else middle)  # type: ignore[attr-defined, no-any-return]


def _checked_qr(A: Tensor, mode: str) -> Any:
    check_matrix("linalg.qr", A, what="A")
    return A, mode


def _infer_qr(A: Spec, mode: str) -> tuple[Spec, Spec]:
    m, n = A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return Spec((*A.shape[:-2], m, k), A.dtype, A.device), Spec((*A.shape[:-2], k, n), A.dtype, A.device)


@primitive(
    FACTORIZATION,
    {"A": _qr_rule},
    infer=_infer_qr,
    prepare=_checked_qr,
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def qr_factors(A: Array, mode: str) -> Any:
    """Q and R; what `linalg.qr` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import qr_factors
    >>> qr_factors(genesis.tensor([[3.], [4.]]), "reduced")[1].abs()
    tensor([[5.]])
    """
    with one_thread():
        return tuple(np.linalg.qr(A, mode))  # type: ignore[call-overload]


samples(
    qr_factors,
    lambda t: [
        case(t(3, 3), "reduced"),
        case(t(4, 2), "reduced"),
        case(t(2, 4), "reduced"),
        case(t(2, 3, 2), "reduced"),
        case(t(2, 2), "complete"),
        case(t(0, 2), "reduced"),
    ],
)


@composite(method=False, dtypes="Fc", torch_name="linalg.qr")
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """$A = QR$ with orthonormal columns Q and an upper triangle R (Householder's reflections).

    Args:
        A: (\\*, m, n)
        mode: "reduced": Q (\\*, m, k), R (\\*, k, n) with k the smaller of both; "complete": k = m; "r": R alone, Q is
            empty

    Raises:
        ValueError: another mode
        RuntimeError: gradients of "r", and of "complete" where m > n, which are not defined

    >>> import genesis
    >>> genesis.linalg.qr(genesis.tensor([[3., 1.], [4., 2.]])).R.abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentValueError(message("linalg.qr", f'mode must be "reduced", "complete" or "r", got {mode!r}'))
    check_matrix("linalg.qr", A, what="A")
    q, r = qr_factors(A, "complete" if mode == "complete" and A.shape[-2] > A.shape[-1] else "reduced")
    if mode == "r":
        q = A.new_empty((0,))
        r = _without_gradient(r, 'with mode="r" Q, which the gradient needs, is not kept', 'mode="reduced"')
    elif mode == "complete" and A.shape[-2] > A.shape[-1]:
        words = 'with mode="complete" and more rows than columns Q is not determined'
        q, r = [_without_gradient(x, words, 'mode="reduced"') for x in (q, r)]
    return results_out("linalg.qr", qr_result(q, r), out)


@primitive(
    "elementwise_cast",
    {"input": lambda g, problem, hint: _refuse_gradient(problem, hint)},
    infer=lambda input, problem, hint: fresh(input),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def without_gradient(input: Array, problem: str, hint: str) -> Any:
    """The same numbers, whose gradient is an error that says why.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import without_gradient
    >>> without_gradient(genesis.ones(2), "it has none", "x.detach()")
    tensor([1., 1.])
    """
    return input.copy()


def _refuse_gradient(problem: str, hint: str) -> Any:
    raise GraphError(message("backward", problem, hint=hint))


def _without_gradient(x: Tensor, problem: str, hint: str) -> Tensor:
    return without_gradient(x, problem, hint) if x.requires_grad else x


samples(
    linalg_qr,
    lambda t: [
        case(t(3, 3)),
        case(t(4, 2)),
        case(t(2, 4)),
        case(t(2, 3, 2)),
        case(t(3, 3), "complete"),
        case(t(0, 2)),
    ],
)
wrong_inputs(
    linalg_qr,
    (lambda t: case(t(3)), RuntimeError, "linalg.qr: A must have at least 2 dimensions"),
    (lambda t: case(t(3, 3), "full"), ValueError, 'linalg.qr: mode must be "reduced", "complete" or "r", got \'full\''),
)


# ---- LU


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
    >>> from genesis.ops.linalg.factoring import permutation_matrix
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
    >>> from genesis.ops.linalg.factoring import lu_factors
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
    found = lu_factor_ex_result(*lu_factors(A, pivot))
    if check_errors:
        refuse_info("linalg.lu_factor_ex", found.info, "pivot {} is zero")
    return results_out("linalg.lu_factor_ex", found, out)


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
    found = linalg_lu_factor_ex(A, pivot=pivot, check_errors=not pivot)
    return results_out("linalg.lu_factor", lu_factor_result(found.LU, found.pivots), out)


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


@composite(method=False, dtypes="Fc", torch_name="linalg.lu_solve")
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


# ---- reflections


@composite(method=False, dtypes="Fc", torch_name="linalg.householder_product")
def linalg_householder_product(input: Tensor, tau: Tensor, *, out: Any = None) -> Tensor:
    """The first n columns of a product of reflections, $\\prod_i I - \\tau_i v_i v_i^H$, as `geqrf` gives them: $v_i$ is
    one at place i, below it column i of ``input``.

    Args:
        input: (\\*, m, n), m at least n
        tau: (\\*, k), k at most n

    Raises:
        RuntimeError: sizes that do not fit

    >>> import genesis
    >>> a = genesis.tensor([[3., 1.], [4., 2.]])
    >>> genesis.linalg.householder_product(*genesis.geqrf(a)).abs()
    tensor([[0.6000, 0.8000],
            [0.8000, 0.6000]])
    """
    name = "linalg.householder_product"
    check_matrix(name, input)
    m, n = input.shape[-2:]
    if m < n or tau.ndim != input.ndim - 1 or tau.shape[-1] > n or tau.shape[:-1] != input.shape[:-2]:
        what = f"tau {list(tau.shape)} does not go with reflections {list(input.shape)}"
        raise ShapeError(message(name, what, [("input", input._spec()), ("tau", tau._spec())]))
    check_same(name, input=input, tau=tau)
    x = _reflected(input, tau, eye(m, n, dtype=input.dtype, device=input.device).expand(input.shape), False)
    return x if out is None else write_out(name, x, out)


def _reflected(reflections: Tensor, tau: Tensor, x: Tensor, adjoint: bool) -> Tensor:
    """The product of reflections, or its adjoint, times x."""
    k = tau.shape[-1]
    for i in range(k) if adjoint else reversed(range(k)):
        v = reflections[..., i : i + 1]
        rows = arange(v.shape[-2], device=v.device).unsqueeze(-1)
        v = where(rows > i, v, (rows == i).to(v.dtype))
        factor = tau[..., i, None, None]
        x = x - matmul((factor.conj() if adjoint else factor) * v, matmul(v.mH, x))
    return x


samples(
    linalg_householder_product,
    lambda t: [case(t(3, 2), t(2)), case(t(2, 3, 3), t(2, 2)), case(t(3, 0), t(0))],
)
wrong_inputs(
    linalg_householder_product,
    (lambda t: case(t(2, 3), t(3)), RuntimeError, "linalg.householder_product: tau [3] does not go with reflections"),
)


class geqrf_result(NamedTuple):  # noqa: N801
    a: Tensor
    tau: Tensor


@primitive(
    FACTORIZATION,
    infer=lambda input: (fresh(input), Spec((*input.shape[:-2], min(input.shape[-2:])), input.dtype, input.device)),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def reflections(input: Array) -> Any:
    """What `geqrf` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import reflections
    >>> reflections(genesis.eye(2))[1].shape
    genesis.Size([2])
    """
    with one_thread():
        a, tau = np.linalg.qr(input, "raw")
    return np.swapaxes(a, -1, -2).copy(), np.array(tau, input.dtype)


samples(reflections, lambda t: [case(t(3, 2)), case(t(2, 2, 3))])


@composite(dtypes="Fc")
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """The QR factors as LAPACK keeps them, ``(a, tau)``: R on and above the diagonal, below it the reflections that
    `linalg.householder_product` makes Q of. It has no gradient.

    >>> import genesis
    >>> genesis.geqrf(genesis.eye(2)).a.abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_matrix("geqrf", input)
    return results_out("geqrf", geqrf_result(*reflections(input)), out)


samples(geqrf, lambda t: [case(t(3, 2))])
wrong_inputs(geqrf, (lambda t: case(t(3)), RuntimeError, "geqrf: input must have at least 2 dimensions"))


@composite(dtypes="Fc")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`.

    >>> import genesis
    >>> genesis.orgqr(*genesis.geqrf(genesis.eye(1))).abs()
    tensor([[1.]])
    """
    return linalg_householder_product(input, input2)


samples(orgqr, lambda t: [case(t(3, 2), t(2))])


@composite(dtypes="Fc")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Any = None
) -> Tensor:
    """A matrix times the whole product Q of reflections: $QX$, or $XQ$ for ``left=False``, with ``transpose`` of
    $Q^H$.

    >>> import genesis
    >>> a = genesis.tensor([[3., 1.], [4., 2.]])
    >>> genesis.ormqr(*genesis.geqrf(a), a, transpose=True).abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    check_matrix("ormqr", input)
    check_matrix("ormqr", other, what="other")
    if input.shape[-2] != other.shape[-2 if left else -1]:
        raise ShapeError(
            message(
                "ormqr",
                f"Q has {input.shape[-2]} rows, other {other.shape[-2 if left else -1]}",
                [("other", other._spec())],
            )
        )
    x = _reflected(input, tau, other, transpose) if left else _reflected(input, tau, other.mH, not transpose).mH
    return x if out is None else write_out("ormqr", x, out)


samples(ormqr, lambda t: [case(t(3, 2), t(2), t(3, 2)), case(t(3, 2), t(2), t(2, 3), False, True)])
wrong_inputs(ormqr, (lambda t: case(t(3, 2), t(2), t(2, 2)), RuntimeError, "ormqr: Q has 3 rows, other 2"))


# ---- LDL


def _ldl_infer(input: Spec, hermitian: bool) -> Any:
    return fresh(input), Spec(input.shape[:-1], INT32, input.device), square_info(input)


@primitive(
    FACTORIZATION,
    infer=_ldl_infer,
    prepare=_one_square("linalg.ldl_factor"),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def ldl_factors(input: Array, hermitian: bool) -> Any:
    """What `linalg.ldl_factor_ex` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import ldl_factors
    >>> ldl_factors(genesis.tensor([[2., 1.], [1., 2.]]), False)[0]
    tensor([[2.0000, 1.0000],
            [0.5000, 1.5000]])
    """
    from genesis.ops.linalg.bunch_kaufman import factors

    return factors(input, hermitian)


@composite(method=False, dtypes="Fc", torch_name="linalg.ldl_factor_ex")
def linalg_ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """`ldl_factor` and a number for each matrix: 0, or which block of D is zero.

    >>> import genesis
    >>> genesis.linalg.ldl_factor_ex(genesis.zeros(1, 1)).info
    tensor(1, dtype=genesis.int32)
    """
    found = ldl_factor_ex_result(*ldl_factors(input, bool(hermitian)))
    if check_errors:
        refuse_info("linalg.ldl_factor", found.info, "block {} of D is zero")
    return results_out("linalg.ldl_factor_ex", found, out)


@composite(method=False, dtypes="Fc", torch_name="linalg.ldl_factor")
def linalg_ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """$A = LDL^T$ of symmetric (or with ``hermitian``, $LDL^H$ of Hermitian) matrices, D with blocks of one and two rows
    (Bunch and Kaufman 1977), in the form that `ldl_solve` takes, ``(LD, pivots)``. The upper half is not read; it has
    no gradient.

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.linalg.ldl_factor(genesis.tensor([[2., 1.], [1., 2.]])).LD.tril()
    tensor([[2.0000, 0.0000],
            [0.5000, 1.5000]])
    """
    found = linalg_ldl_factor_ex(input, hermitian=hermitian)
    return results_out("linalg.ldl_factor", ldl_factor_result(found.LD, found.pivots), out)


wrong_inputs(
    linalg_ldl_factor,
    (lambda t: case(t(2, 3)), RuntimeError, "linalg.ldl_factor: A must be batches of square matrices"),
)


def _ldl_checked(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Any:
    check_matrix("linalg.ldl_solve", LD, True, "LD")
    check_matrix("linalg.ldl_solve", B, what="B")
    check_same("linalg.ldl_solve", LD=LD, B=B)
    if LD.shape[-1] != B.shape[-2]:
        raise ShapeError(
            message("linalg.ldl_solve", f"LD has {LD.shape[-1]} rows, B {B.shape[-2]}", [("B", B._spec())])
        )
    return LD, pivots, B, bool(hermitian)


@primitive(
    FACTORIZATION,
    infer=lambda LD, pivots, B, hermitian: Spec(
        (*np.broadcast_shapes(LD.shape[:-2], B.shape[:-2]), *B.shape[-2:]), B.dtype, B.device
    ),
    prepare=_ldl_checked,
    batch=lambda b, ld, pivots, other, hermitian: b.run(
        *[b.spread(x, f) for x, f in zip((ld, pivots, other), b.batched, strict=True)], hermitian
    ),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def ldl_system(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Any:
    """What `linalg.ldl_solve` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.factoring import ldl_system
    >>> ldl_system(genesis.tensor([[2.]]), genesis.tensor([1]), genesis.tensor([[4.]]), False)
    tensor([[2.]])
    """
    from genesis.ops.linalg.bunch_kaufman import solve

    return solve(LD, pivots, B, hermitian)


@composite(method=False, dtypes="Fc", torch_name="linalg.ldl_solve")
def linalg_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Any = None) -> Tensor:
    """The solution of $AX = B$ from what `ldl_factor` gives for A. It has no gradient.

    Raises:
        RuntimeError: sizes or dtypes do not fit

    >>> import genesis
    >>> ld, pivots = genesis.linalg.ldl_factor(genesis.tensor([[2., 1.], [1., 2.]]))
    >>> genesis.linalg.ldl_solve(ld, pivots, genesis.tensor([[3.], [3.]]))
    tensor([[1.],
            [1.]])
    """
    x = ldl_system(LD, pivots, B, hermitian)
    return x if out is None else write_out("linalg.ldl_solve", x, out)


__all__ = ["geqrf", "lu_unpack", "orgqr", "ormqr"]
