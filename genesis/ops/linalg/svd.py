"""Singular values and singular vectors."""

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
from genesis.ops.linalg import host
from genesis.ops.linalg.common import FACTORIZATION, check_matrix, real_of, results_out
from genesis.ops.linalg.eigen import differences, divided, no_diagonal, refuse_phase
from genesis.ops.products.matmul import matmul


@named_result
class svd_result(NamedTuple):  # noqa: N801
    U: Tensor
    S: Tensor
    Vh: Tensor


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
    refuse_phase("linalg.svd", left + right, "singular vectors")
    apart = differences(s * s).to(left.dtype)
    values = s.to(left.dtype)
    inner = divided(no_diagonal(_skew(left)), apart) * values.unsqueeze(-2)
    inner = inner + values.unsqueeze(-1) * divided(no_diagonal(_skew(right)), apart)
    inner = inner + gs.to(left.dtype).diag_embed()
    if left.is_complex():
        turn = left.diagonal(0, -2, -1) - left.diagonal(0, -2, -1).conj()  # type: ignore[attr-defined]
        inner = inner + divided(turn, 2 * values).diag_embed()
    gradient = matmul(u, matmul(inner, vh))
    if m > k:
        rest = gu - matmul(u, left)
        gradient = gradient + matmul(divided(rest, values.unsqueeze(-2)), vh)
    if n > k:
        rest = (gv - matmul(vh.mH, right)).mH
        gradient = gradient + matmul(u, divided(rest, values.unsqueeze(-1)))
    return gradient


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
    >>> from genesis.ops.linalg.svd import singular_vectors
    >>> singular_vectors(genesis.tensor([[-3.]]), False)[1]
    tensor([3.])
    """
    return tuple(host.lapack("linalg.svd", np.linalg.svd, A, full_matrices))


_DRIVERS = ("gesvd", "gesvdj", "gesvda")


@composite(method=False, dtypes="Fc", torch_name="linalg.svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Singular value decomposition, $A = U \\text{diag}(S) V^H$.

    Gradients of U and V are finite only where all singular values differ (and none is zero, where A is not square), and
    of complex ones defined only for losses that do not depend on their phases; columns beyond the singular values are
    taken to be constant.

    Args:
        A: (\\*, m, n)
        full_matrices: U (\\*, m, m) and Vh (\\*, n, n); else the first k columns and rows, k the smaller size
        driver: None; on CUDA also "gesvd", "gesvdj" or "gesvda", which give the same: cuSOLVER's gesvdj is what computes

    Returns:
        ``(U, S, Vh)``, S (\\*, k) real and descending

    Raises:
        RuntimeError: fewer than two dimensions; a driver
        LinAlgError: inf or nan

    >>> import genesis
    >>> genesis.linalg.svd(genesis.tensor([[3., 0.], [0., -4.]])).S
    tensor([4., 3.])
    """
    _check_driver("linalg.svd", driver, A)
    return results_out("linalg.svd", svd_result(*singular_vectors(A, full_matrices)), out)


def _check_driver(name: str, driver: Any, A: Tensor) -> None:
    if driver is None:
        return
    if not isinstance(A, Tensor) or A.device.type != "cuda":
        raise ShapeError(message(name, f"a driver is for CUDA, got {driver!r}", hint="driver=None"))
    if driver not in _DRIVERS:
        raise ShapeError(message(name, f"driver must be one of {', '.join(_DRIVERS)}, got {driver!r}"))


@composite(method=False, dtypes="Fc", torch_name="linalg.svdvals")
def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Any = None) -> Tensor:
    """The singular values of `svd`, descending; their gradient is always defined.

    >>> import genesis
    >>> genesis.linalg.svdvals(genesis.tensor([[3., 0.], [0., -4.]]))
    tensor([4., 3.])
    """
    _check_driver("linalg.svdvals", driver, A)
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
