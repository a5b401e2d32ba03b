"""QR: an orthogonal factor and a triangular one, and products of Householder's reflections."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.blas import one_thread
from genesis.base.errors import ArgumentValueError, GraphError, ShapeError, message
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange, eye
from genesis.ops.linalg.common import FACTORIZATION, check_matrix, check_same, diagonal_part, fresh, results_out
from genesis.ops.linalg.triangular import triangular_system
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul
from genesis.ops.shapes.join import cat


@named_result
class qr_result(NamedTuple):  # noqa: N801
    Q: Tensor
    R: Tensor


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
    >>> from genesis.ops.linalg.qr import qr_factors
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
    >>> from genesis.ops.linalg.qr import without_gradient
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


@named_result
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
    >>> from genesis.ops.linalg.qr import reflections
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


__all__ = ["geqrf", "orgqr", "ormqr"]
