"""Eigenvalues, singular values, and what is made of them: pseudoinverses, ranks, least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, ShapeError, message
from genesis.core.call.out import write_out
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.pointwise.choice import where
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    FACTORIZATION,
    check_matrix,
    check_same,
    complex_of,
    diagonal_part,
    real_of,
)
from genesis.ops.linalg.solving import linalg_solve, results_out
from genesis.ops.products.matmul import matmul


class eigh_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    eigenvalues: Tensor
    eigenvectors: Tensor


class eig_result(NamedTuple):  # noqa: N801
    eigenvalues: Tensor
    eigenvectors: Tensor


class svd_result(NamedTuple):  # noqa: N801
    U: Tensor
    S: Tensor
    Vh: Tensor


class lstsq_result(NamedTuple):  # noqa: N801
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# ---- gradients


def _differences(values: Tensor) -> Tensor:
    """$\\lambda_j - \\lambda_i$, with ones on the diagonal."""
    apart = values.unsqueeze(-2) - values.unsqueeze(-1)
    return apart + eye(values.shape[-1], dtype=values.dtype, device=values.device)


def _over(x: Tensor, apart: Tensor) -> Tensor:
    """The quotient; zero over zero is zero: a vector that nobody asked for may have an equal neighbour."""
    return x / where((x == 0) & (apart == 0), 1, apart)


def _no_diagonal(x: Tensor) -> Tensor:
    return x - diagonal_part(x)


def _refuse_phase(name: str, x: Tensor, what: str) -> None:
    """Refuse a loss that depends on the phase of complex vectors, which is arbitrary."""
    if not x.is_complex():
        return
    found = known_values(x.detach())
    if found is None or not found.size:
        return
    phase = np.abs(np.diagonal(found, 0, -2, -1).imag)
    tolerance = 1e-2 if found.dtype == np.complex64 else 1e-8
    if (phase > tolerance * max(1.0, float(np.abs(found).max()))).any():
        raise GraphError(
            message(
                name,
                f"{what} in the complex case are determined up to a factor $e^{{i \\phi}}$, and the loss depends on it",
                hint="differentiate what does not depend on the phase, such as magnitudes",
            )
        )


def _check_square(name: str) -> Any:
    def prepare(A: Tensor, *rest: Any) -> Any:
        check_matrix(name, A, True, "A")
        return (A, *rest)

    return prepare


# ---- Hermitian


def _eigh_rule(g: Any, outs: Any) -> Tensor:
    """Giles 2008, "An extended collection of matrix derivative results", section 3.1."""
    (values, vectors), (gl, gv) = outs, g
    inner = matmul(vectors.mH, gv)
    _refuse_phase("linalg.eigh", inner, "eigenvectors")
    middle = _over(_no_diagonal(inner), _differences(values)) + gl.diag_embed().to(inner.dtype)
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
    >>> from genesis.ops.linalg.spectral import hermitian_eigenvectors
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
    _refuse_phase("linalg.eig", inner, "eigenvectors")
    along = inner.diagonal(0, -2, -1).real.to(inner.dtype)  # type: ignore[attr-defined]
    inner = inner - matmul(vectors.mH, vectors) * along.unsqueeze(-2)
    middle = _over(_no_diagonal(inner), _differences(values).conj()) + gl.diag_embed()
    found = linalg_solve(vectors.mH, matmul(middle, vectors.mH))
    return found if A.is_complex() else found.real  # type: ignore[return-value]


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
    prepare=_check_square("linalg.eig"),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def eigenvectors(A: Array) -> Any:
    """What `linalg.eig` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.spectral import eigenvectors
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


# ---- singular values


def _skew(x: Tensor) -> Tensor:
    return x - x.mH


def _svd_rule(g: Any, outs: Any) -> Tensor:
    """Townsend 2016, "Differentiating the singular value decomposition"; with complex vectors Wan and Zhang 2019,
    "Automatic differentiation for complex valued SVD". Columns beyond the singular values are ignored.
    """
    (u, s, vh), (gu, gs, gvh) = outs, g
    k = s.shape[-1]
    m, n = u.shape[-2], vh.shape[-1]
    u, vh, gu, gv = u[..., :k], vh[..., :k, :], gu[..., :k], gvh[..., :k, :].mH
    left, right = matmul(u.mH, gu), matmul(vh, gv)
    _refuse_phase("linalg.svd", left + right, "singular vectors")
    apart = _differences(s * s).to(left.dtype)
    values = s.to(left.dtype)
    inner = _over(_no_diagonal(_skew(left)), apart) * values.unsqueeze(-2)
    inner = inner + values.unsqueeze(-1) * _over(_no_diagonal(_skew(right)), apart)
    inner = inner + gs.to(left.dtype).diag_embed()
    if left.is_complex():
        turn = left.diagonal(0, -2, -1) - left.diagonal(0, -2, -1).conj()  # type: ignore[attr-defined]
        inner = inner + _over(turn, 2 * values).diag_embed()
    found = matmul(u, matmul(inner, vh))
    if m > k:
        rest = gu - matmul(u, left)
        found = found + matmul(_over(rest, values.unsqueeze(-2)), vh)
    if n > k:
        rest = (gv - matmul(vh.mH, right)).mH
        found = found + matmul(u, _over(rest, values.unsqueeze(-1)))
    return found


def _checked_svd(A: Tensor, full_matrices: Any) -> Any:
    check_matrix("linalg.svd", A, what="A")
    return A, bool(full_matrices)


def _infer_svd(A: Spec, full_matrices: bool) -> Any:
    m, n = A.shape[-2:]
    k, batch = min(m, n), A.shape[:-2]
    return (
        Spec((*batch, m, m if full_matrices else k), A.dtype, A.device),
        Spec((*batch, k), real_of(A.dtype), A.device),
        Spec((*batch, n if full_matrices else k, n), A.dtype, A.device),
    )


@primitive(
    FACTORIZATION,
    {"A": _svd_rule},
    infer=_infer_svd,
    prepare=_checked_svd,
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def singular_vectors(A: Array, full_matrices: bool) -> Any:
    """What `linalg.svd` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.spectral import singular_vectors
    >>> singular_vectors(genesis.tensor([[-3.]]), False)[1]
    tensor([3.])
    """
    return tuple(host.lapack("linalg.svd", np.linalg.svd, A, full_matrices))


@composite(method=False, dtypes="Fc", torch_name="linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Singular value decomposition, $A = U \\text{diag}(S) V^H$.

    Gradients of U and V are finite only where all singular values differ (and none is zero, where A is not square), and
    of complex ones defined only for losses that do not depend on their phases; columns beyond the singular values are
    taken to be constant.

    Args:
        A: (\\*, m, n)
        full_matrices: U (\\*, m, m) and Vh (\\*, n, n); else the first k columns and rows, k the smaller size
        driver: must be None, as on every CPU

    Returns:
        ``(U, S, Vh)``, S (\\*, k) real and descending

    Raises:
        RuntimeError: fewer than two dimensions; a driver
        LinAlgError: inf or nan

    >>> import genesis
    >>> genesis.linalg.svd(genesis.tensor([[3., 0.], [0., -4.]])).S
    tensor([4., 3.])
    """
    _no_driver("linalg.svd", driver)
    return results_out("linalg.svd", svd_result(*singular_vectors(A, full_matrices)), out)


def _no_driver(name: str, driver: Any) -> None:
    if driver is not None:
        raise ShapeError(message(name, f"a driver is for CUDA, got {driver!r}", hint="driver=None"))


@composite(method=False, dtypes="Fc", torch_name="linalg.svdvals")
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Any = None) -> Tensor:
    """The singular values of `svd`, descending; their gradient is always defined.

    >>> import genesis
    >>> genesis.linalg.svdvals(genesis.tensor([[3., 0.], [0., -4.]]))
    tensor([4., 3.])
    """
    _no_driver("linalg.svdvals", driver)
    values = singular_vectors(A, False)[1]
    return values if out is None else write_out("linalg.svdvals", values, out)


samples(linalg_svdvals, lambda t: [case(t(3, 3)), case(t(2, 4)), case(t(2, 3, 2)), case(t(0, 2))])
wrong_inputs(
    linalg_svdvals,
    (lambda t: case(t(3)), RuntimeError, "linalg.svd: A must have at least 2 dimensions, it has 1"),
    (lambda t: case(t(2, 2), driver="gesvd"), RuntimeError, "linalg.svdvals: a driver is for CUDA, got 'gesvd'"),
)
wrong_inputs(
    linalg_svd,
    (lambda t: case(t(3)), RuntimeError, "linalg.svd: A must have at least 2 dimensions, it has 1"),
    (lambda t: case(t(2, 2) * float("nan")), RuntimeError, "linalg.svd: a matrix has elements that are inf or nan"),
)


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
    found = _kept(sizes, absolute, relative).sum(-1)
    return found if out is None else write_out("linalg.matrix_rank", found, out)


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
    batch=lambda b, A, keep, hermitian: b.run(
        *[b.spread(x, f) for x, f in zip((A, keep), b.batched, strict=True)], hermitian
    ),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def pseudoinverse(A: Array, keep: Array, hermitian: bool) -> Any:
    """The pseudoinverse by those singular values (or eigenvalues) that are kept; what `linalg.pinv` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.spectral import pseudoinverse
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
        found = pseudoinverse(A, _kept(sizes, absolute, relative), bool(hermitian))
    else:
        found = A.mH.clone()
    return found if out is None else write_out("linalg.pinv", found, out)


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
        found = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        check_matrix("linalg.cond", A, True, "A")
        inverse, info = linalg_inv_ex(A)
        found = linalg_matrix_norm(A, p) * linalg_matrix_norm(inverse, p)
        found = where(info == 0, found, float("inf"))
    return found if out is None else write_out("linalg.cond", found, out)


samples(linalg_cond, lambda t: [case(t(3, 3)), case(t(2, 3, 3), "fro"), case(t(2, 4), -2), case(t(3, 3), 1)])
wrong_inputs(
    linalg_cond, (lambda t: case(t(2, 3), 1), RuntimeError, "linalg.cond: A must be batches of square matrices")
)


# ---- least squares


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@composite(method=False, dtypes="Fc", torch_name="linalg.lstsq")
def linalg_lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """X with the smallest $\\|AX - B\\|$, of several the smallest X; by singular values.

    Args:
        A: (\\*, m, n)
        B: (\\*, m, k), or vectors (\\*, m)
        rcond: singular values of A below so many times the largest count as zero, $\\max(m, n) \\varepsilon$ unless
            given; not of "gels", which takes A to have full rank
        driver: "gelsy" (None), "gels", "gelsd" or "gelss": what else is given, as LAPACK's functions of these names do

    Returns:
        ``(solution, residuals, rank, singular_values)``: squared norms of the columns of $AX - B$ where m > n and the
        rank is full, else empty; the rank is empty for "gels", the singular values for "gels" and "gelsy"

    Raises:
        ValueError: another driver
        RuntimeError: sizes or dtypes do not fit

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
    relative = max(m, n) * float(np.finfo(real_of(A._array.dtype)).eps) if rcond is None else rcond
    sizes = linalg_svdvals(A.detach())
    keep = sizes > (sizes[..., :1] * _column(relative) if driver != "gels" else 0)
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


def _no_equations(a: Tensor, right: Tensor) -> Tensor:
    shape = np.broadcast_shapes(tuple(a.shape[:-2]), tuple(right.shape[:-2]))
    return a.new_zeros((*shape, a.shape[-1], right.shape[-1]))


samples(linalg_lstsq, lambda t: [case(t(4, 2), t(4, 3)), case(t(2, 4), t(2, 1)), case(t(2, 3, 2), t(2, 3))])
wrong_inputs(
    linalg_lstsq,
    (lambda t: case(t(3, 2), t(2, 2)), RuntimeError, "linalg.lstsq: A has 3 rows"),
    (lambda t: case(t(3, 2), t(3, 2), driver="x"), ValueError, "linalg.lstsq: driver must be one of gels, gelsy"),
)
