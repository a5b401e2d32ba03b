"""What singular values are for: ranks, pseudoinverses, condition numbers, least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base import dtypes
from genesis.base.device import CPU
from genesis.base.errors import ArgumentError, ArgumentValueError, LinAlgError, ShapeError, message
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.linalg import host
from genesis.ops.linalg.common import FACTORIZATION, check_matrix, check_same, in_front_of, real_of
from genesis.ops.linalg.eigen import linalg_eigvalsh
from genesis.ops.linalg.qr import linalg_qr
from genesis.ops.linalg.svd import linalg_svdvals
from genesis.ops.linalg.triangular import linalg_solve_triangular
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul


@named_result
class lstsq_result(NamedTuple):  # noqa: N801
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# ---- tolerances


def _tolerances(name: str, A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """As given; where neither is, rtol is the larger size times the precision."""
    for what, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.is_complex():
            raise ArgumentError(message(name, f"{what} must be real, it is {value.dtype}"))
    if rtol is None:
        precise = max(A.shape[-2:]) * float(np.finfo(real_of(A._array.dtype)).eps)
        if isinstance(atol, Tensor):
            rtol = where(atol > 0, 0.0, precise)
        else:
            rtol = 0.0 if atol else precise
    return (0.0 if atol is None else atol), rtol


def _column(x: Any) -> Any:
    return x.unsqueeze(-1) if isinstance(x, Tensor) else x


def _kept(sizes: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Which singular values count, of magnitudes along the last dimension."""
    largest = sizes.amax(-1, True) if sizes.shape[-1] else sizes.sum(-1, True)  # type: ignore[attr-defined, call-arg]
    bound = _column(rtol) * largest
    absolute = _column(atol)
    bound = where(bound > absolute, bound, absolute)
    return sizes > bound


@composite(method=False, dtypes="Fc", torch_name="linalg.matrix_rank")
def linalg_matrix_rank(
    A: Tensor,
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
    out: Any = None,
) -> Tensor:
    """How many singular values (or magnitudes of eigenvalues, if ``hermitian``) are greater than
    $\\max(atol, \\sigma_1 rtol)$.

    Args:
        A: (\\*, m, n)
        tol: an older name of ``atol``
        atol: 0 unless given
        rtol: $\\max(m, n) \\varepsilon$, or 0 if ``atol`` is given and positive

    >>> import genesis
    >>> genesis.linalg.matrix_rank(genesis.ones(3, 3))
    tensor(1)
    """
    check_matrix("linalg.matrix_rank", A, hermitian, "A")
    atol = tol if atol is None else atol
    if tol is not None and rtol is None:
        rtol = 0.0
    absolute, relative = _tolerances("linalg.matrix_rank", A, atol, rtol)
    sizes = (linalg_eigvalsh(A).abs() if hermitian else linalg_svdvals(A)).detach()
    rank = _kept(sizes, absolute, relative).sum(-1)
    return rank if out is None else write_out("linalg.matrix_rank", rank, out)


samples(linalg_matrix_rank, lambda t: [case(t(3, 3)), case(t(2, 2, 4), atol=0.5), case(t(0, 3)), case(t(3, 3), 1.0)])
wrong_inputs(linalg_matrix_rank, (lambda t: case(t(3)), RuntimeError, "linalg.matrix_rank: A must have at least 2"))


# ---- pseudoinverse


def _pinv_rule(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    """Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares", at constant rank."""
    p, ph, gh = out, out.mH, g.mH
    left = matmul(gh - matmul(A, matmul(p, gh)), matmul(p, ph))
    right = matmul(matmul(ph, p), gh - matmul(matmul(gh, p), A))
    return left + right - matmul(ph, matmul(g, ph))


@primitive(
    FACTORIZATION,
    {"A": _pinv_rule},
    infer=lambda A, keep, hermitian: Spec((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype, A.device),
    batch=lambda b, A, keep, hermitian: in_front_of(b, (A, keep), (2, 1), hermitian),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def pseudoinverse(A: Array, keep: Array, hermitian: bool) -> Any:
    """The pseudoinverse by those singular values (or eigenvalues) that are kept; what `linalg.pinv` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.least_squares import pseudoinverse
    >>> pseudoinverse(genesis.tensor([[2.]]), genesis.tensor([True]), False)
    tensor([[0.5000]])
    """
    if hermitian:
        values, left = host.lapack("linalg.pinv", np.linalg.eigh, A)
        right = host.adjoint(left)
    else:
        left, values, right = host.lapack("linalg.pinv", np.linalg.svd, A, False)
    inverse = np.divide(1, values, out=np.zeros_like(values), where=np.broadcast_to(keep, values.shape))
    return (host.adjoint(right) * inverse[..., None, :].astype(A.dtype)) @ host.adjoint(left)


samples(
    pseudoinverse,
    lambda t: [case(t(3, 2), t.bool(2) | True, False), case(t(2, 2, 3), t.bool(2, 2) | True, False)],
)


@composite(method=False, dtypes="Fc", torch_name="linalg.pinv")
def linalg_pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Any = None,
) -> Tensor:
    """The pseudoinverse (Moore and Penrose) of matrices (\\*, m, n), by singular values, or by eigenvalues if
    ``hermitian``.

    Those not greater than $\\max(atol, \\sigma_1 rtol)$ count as zero. Its gradient is that at constant rank.

    Args:
        rcond: an older name of ``rtol``
        atol: 0 unless given
        rtol: $\\max(m, n) \\varepsilon$, or 0 if ``atol`` is given and positive

    >>> import genesis
    >>> genesis.linalg.pinv(genesis.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    check_matrix("linalg.pinv", A, hermitian, "A")
    absolute, relative = _tolerances("linalg.pinv", A, atol, rcond if rtol is None else rtol)
    constant = A.detach()
    if A.numel():
        sizes = linalg_eigvalsh(constant).abs() if hermitian else linalg_svdvals(constant)
        inverse = pseudoinverse(A, _kept(sizes, absolute, relative), bool(hermitian))
    else:
        inverse = A.mH.clone()
    return inverse if out is None else write_out("linalg.pinv", inverse, out)


samples(linalg_pinv, lambda t: [case(t(3, 3)), case(t(2, 4)), case(t(2, 3, 2)), case(t(0, 3)), case(t(3, 2), atol=0.1)])
wrong_inputs(linalg_pinv, (lambda t: case(t(3)), RuntimeError, "linalg.pinv: A must have at least 2 dimensions"))


@composite(method=False, dtypes="Fc", torch_name="linalg.cond")
def linalg_cond(A: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """The condition number, $\\|A\\| \\|A^{-1}\\|$; inf of matrices without an inverse.

    Args:
        A: (\\*, n, n); for the norms 2 and -2, (\\*, m, n)
        p: of which norm: None or 2 (largest over smallest singular value), -2, "fro", "nuc", inf, -inf, 1, -1

    >>> import genesis
    >>> genesis.linalg.cond(genesis.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """
    from genesis.ops.linalg.norms import linalg_matrix_norm
    from genesis.ops.linalg.solving import linalg_inv_ex

    if p in (None, 2, -2):
        check_matrix("linalg.cond", A, what="A")
        s = linalg_svdvals(A)
        if not s.shape[-1]:
            raise ShapeError(message("linalg.cond", "the matrix has no elements", [("A", A._spec())]))
        condition = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        check_matrix("linalg.cond", A, True, "A")
        inverse, info = linalg_inv_ex(A)
        condition = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
        condition = where(info == 0, condition, float("inf"))
    return condition if out is None else write_out("linalg.cond", condition, out)


samples(linalg_cond, lambda t: [case(t(3, 3)), case(t(2, 3, 3), "fro"), case(t(2, 4), -2), case(t(3, 3), 1)])
wrong_inputs(
    linalg_cond, (lambda t: case(t(2, 3), 1), RuntimeError, "linalg.cond: A must be batches of square matrices")
)


# ---- least squares


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@composite(method=False, dtypes="Fc", autocast="own", torch_name="linalg.lstsq")
def linalg_lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """X with the smallest $\\|AX - B\\|$, of several the smallest X; by singular values, of "gels" by QR.

    Args:
        A: (\\*, m, n)
        B: (\\*, m, k), or vectors (\\*, m)
        rcond: singular values of A below so many times the largest count as zero, $\\max(m, n) \\varepsilon$ unless
            given; not of "gels", which takes A to have full rank
        driver: "gelsy" (None), "gels", "gelsd" or "gelss": what else is given, as LAPACK's functions of these names do;
            "gels" is the fastest on a GPU

    Returns:
        ``(solution, residuals, rank, singular_values)``: squared norms of the columns of $AX - B$ where m > n and the
        rank is full, else empty; the rank is empty for "gels", the singular values for "gels" and "gelsy"

    Raises:
        ValueError: another driver
        RuntimeError: sizes or dtypes do not fit
        LinAlgError: "gels", and A has not full rank (on a GPU, numbers that are not finite)

    >>> import genesis
    >>> a = genesis.tensor([[1., 0.], [1., 1.], [1., 2.]])
    >>> genesis.linalg.lstsq(a, genesis.tensor([[1.], [3.], [5.]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    name, driver = "linalg.lstsq", "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise ArgumentValueError(message(name, f"driver must be one of {', '.join(_DRIVERS)}, got {driver!r}"))
    check_matrix(name, A, what="A")
    check_same(name, A=A, B=B)
    vectors = B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]
    right = B.unsqueeze(-1) if vectors else B
    if right.ndim < 2 or right.shape[-2] != A.shape[-2]:
        raise ShapeError(message(name, f"A has {A.shape[-2]} rows", [("A", A._spec()), ("B", B._spec())]))
    m, n = A.shape[-2:]
    if driver == "gels" and A.numel():
        return _of_full_rank(A, right, vectors)
    relative = max(m, n) * float(np.finfo(real_of(A._array.dtype)).eps) if rcond is None else rcond
    sizes = linalg_svdvals(A.detach())
    keep = sizes > sizes[..., :1] * _column(relative)
    x = matmul(pseudoinverse(A, keep, False), right) if A.numel() else _no_equations(A, right)
    rank, empty = keep.sum(-1), A.new_empty((0,))
    full = known_values(rank) is not None and bool((known_values(rank) == n).all())
    residuals = empty
    if m > n and full and driver != "gelsy":
        residuals = (matmul(A, x) - right).abs().square().sum(-2)  # type: ignore[attr-defined]
    return lstsq_result(
        x.squeeze(-1) if vectors else x,
        residuals.real if residuals.is_complex() else residuals,  # type: ignore[arg-type]
        rank if driver != "gels" else rank.new_empty((0,)),
        sizes if driver in ("gelsd", "gelss") else sizes.new_empty((0,)),
    )


def _of_full_rank(a: Tensor, right: Tensor, vectors: bool) -> Any:
    """By QR factors of A, or of its adjoint where there are more unknowns than equations."""
    m, n = a.shape[-2:]
    q, r = linalg_qr(a if m >= n else a.mH)
    if m >= n:
        x = linalg_solve_triangular(r, matmul(q.mH, right), upper=True)
    else:
        x = matmul(q, linalg_solve_triangular(r.mH, right, upper=False))
    zero = known_values((r.diagonal(dim1=-2, dim2=-1) == 0).any(-1)) if a.device == CPU else None
    if zero is not None and zero.any():
        raise LinAlgError(message("linalg.lstsq", "A has not full rank", hint='driver="gelsy"'))
    apart = matmul(a, x) - right
    residuals = (apart.conj() * apart).real.sum(-2) if m > n else x.new_empty((0,), dtype=a.dtype.to_real())
    empty = a.new_empty((0,), dtype=a.dtype.to_real())
    return lstsq_result(x.squeeze(-1) if vectors else x, residuals, empty.new_empty((0,), dtype=dtypes.int64), empty)


def _no_equations(a: Tensor, right: Tensor) -> Tensor:
    shape = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(right.shape[:-2]))
    return a.new_zeros((*shape, a.shape[-1], right.shape[-1]))


samples(linalg_lstsq, lambda t: [case(t(4, 2), t(4, 3)), case(t(2, 4), t(2, 1)), case(t(2, 3, 2), t(2, 3))])
wrong_inputs(
    linalg_lstsq,
    (lambda t: case(t(3, 2), t(2, 2)), RuntimeError, "linalg.lstsq: A has 3 rows"),
    (lambda t: case(t(3, 2), t(3, 2), driver="x"), ValueError, "linalg.lstsq: driver must be one of gels, gelsy"),
)
