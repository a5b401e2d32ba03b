"""Determinants, their signs and logarithms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.blas import one_thread
from genesis.base import dtypes
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import eye
from genesis.ops.linalg import host
from genesis.ops.linalg.common import FACTORIZATION, fresh, one_square, real_of, regular, results_out
from genesis.ops.linalg.solving import linalg_inv, linalg_inv_ex
from genesis.ops.linalg.svd import linalg_svd
from genesis.ops.pointwise.choice import where
from genesis.ops.products.matmul import matmul


@named_result
class slogdet_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    sign: Tensor
    logabsdet: Tensor


def _infer_numbers(A: Spec) -> Spec:
    return Spec(A.shape[:-2], A.dtype, A.device)


@primitive(
    FACTORIZATION,
    {"A": lambda g, A: g[..., None, None] * cofactors(A).conj()},
    infer=_infer_numbers,
    prepare=one_square("linalg.det"),
    holomorphic=False,
    out=True,
    dtypes="Fc",
    method=False,
    torch_name="linalg.det",
)
def linalg_det(A: Array) -> Any:
    """The determinant of square matrices (\\*, n, n), by LU factors; 1 of an empty one.

    Its gradient, and the gradient of that, are those of the polynomial: matrices without an inverse have them, too.

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.linalg.det(genesis.tensor([[1., 2.], [3., 5.]]))
    tensor(-1.)
    """
    with one_thread():
        return np.asarray(np.linalg.det(A)).astype(A.dtype)


samples(linalg_det, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2, 2)), case(t(0, 0)), case(t(1, 1))])
wrong_inputs(linalg_det, (lambda t: case(t(2, 3)), RuntimeError, "linalg.det: A must be batches of square matrices"))


def _cofactors_rule(g: Tensor, input: Tensor) -> Tensor:
    """Of $C = \\det(A) A^{-T}$."""
    array = input._array
    if isinstance(array, np.ndarray) and host.nearly_singular(array):
        return _cofactors_rule_of_any(g, input)
    right = linalg_inv(input).mH
    value = cofactors(input).conj()
    along = (g * value).sum((-2, -1), True)  # type: ignore[call-arg]
    return along * right - matmul(value, matmul(g.mT, right))


def _cofactors_rule_of_any(g: Tensor, input: Tensor) -> Tensor:
    """The same without an inverse. For $A = U S V^H$ the second differential of the determinant in the directions
    $U X V^H$ and $U Y V^H$ is $\\det(U) \\det(V^H) \\sum_{ik} P_{ik} (X_{ii} Y_{kk} - X_{ik} Y_{ki})$, where $P_{ik}$ is the
    product of all singular values but two.
    """
    u, s, vh = linalg_svd(input)
    same = eye(s.shape[-1], dtype=dtypes.bool)
    one = where(same, 1.0, s[..., None, :])  # (*, i, n)
    two = where(same, 0.0, where(same, 1.0, one[..., None, :]).prod(-1))  # (*, i, k)
    x = u.mH @ g.conj() @ vh.mH
    diagonal = (two * x.diagonal(dim1=-2, dim2=-1)[..., None, :]).sum(-1)
    inner = diagonal.diag_embed() - (two * x).mT
    turn = (linalg_det(u) * linalg_det(vh)).conj()[..., None, None]
    return turn * (u @ inner.conj() @ vh)


@primitive(
    FACTORIZATION,
    {"input": _cofactors_rule},
    infer=lambda input: fresh(input),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def cofactors(input: Array) -> Any:
    """The matrix of cofactors, $\\det(A) A^{-T}$ where there is an inverse; the gradient of `linalg.det`.

    >>> import genesis
    >>> from genesis.ops.linalg.determinants import cofactors
    >>> cofactors(genesis.tensor([[1., 2.], [3., 4.]]))
    tensor([[ 4., -3.],
            [-2.,  1.]])
    """
    return host.cofactors(input).astype(input.dtype)


samples(cofactors, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2, 2)), case(t(0, 0))])


def _sign_part(g: Tensor, sign: Tensor) -> Tensor:
    """What the gradient of the sign says of the angle."""
    return (g * sign.conj()).imag  # type: ignore[return-value]


def _slogdet_rule(g: Any, A: Tensor, outs: Any) -> Tensor:
    total = g[1]
    if A.is_complex():
        from genesis.ops.creation.create import complex as of_parts

        total = of_parts(g[1], _sign_part(g[0], outs[0]))
    # of singular matrices not a number, or infinite, without an error: the value -inf says enough
    return total[..., None, None] * linalg_inv_ex(A).inverse.mH


@primitive(
    FACTORIZATION,
    {"A": _slogdet_rule},
    infer=lambda A: (_infer_numbers(A), Spec(A.shape[:-2], real_of(A.dtype), A.device)),
    prepare=one_square("linalg.slogdet"),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def sign_and_logdet(A: Array) -> Any:
    """What `linalg.slogdet` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.determinants import sign_and_logdet
    >>> sign_and_logdet(genesis.eye(2))[1]
    tensor(0.)
    """
    with one_thread():
        sign, log = np.linalg.slogdet(A)
    return np.asarray(sign, A.dtype), np.asarray(log, real_of(A.dtype))


samples(sign_and_logdet, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2, 2)), case(t(0, 0))])


@composite(method=False, dtypes="Fc", torch_name="linalg.slogdet")
def linalg_slogdet(A: Tensor, *, out: Any = None) -> Any:
    """The sign (of a complex matrix, the angle as a number of magnitude 1) of the determinant and the logarithm of its
    absolute value, ``(sign, logabsdet)``; 0 and -inf where it is zero.

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.linalg.slogdet(-genesis.eye(3)).sign
    tensor(-1.)
    """
    return results_out("linalg.slogdet", slogdet_result(*sign_and_logdet(A)), out)


samples(linalg_slogdet, lambda t: [case(regular(t, 3, 3))])
wrong_inputs(linalg_slogdet, (lambda t: case(t(3)), RuntimeError, "linalg.slogdet: A must have at least 2 dimensions"))
