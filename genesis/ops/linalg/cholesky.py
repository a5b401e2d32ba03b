"""Factors of symmetric and Hermitian matrices: Cholesky's and LDL, and systems solved with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.base.library import named_result
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.graph.tensor import Tensor
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    FACTORIZATION,
    INT32,
    check_matrix,
    check_same,
    fresh,
    half_diagonal,
    in_front_of,
    one_square,
    refuse_info,
    results_out,
    square_info,
)
from genesis.ops.linalg.triangular import triangular_system
from genesis.ops.products.matmul import matmul


@named_result
class cholesky_ex_result(NamedTuple):  # noqa: N801  # named as PyTorch names it
    L: Tensor
    info: Tensor


@named_result
class ldl_factor_result(NamedTuple):  # noqa: N801
    LD: Tensor
    pivots: Tensor


@named_result
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


@primitive(
    FACTORIZATION,
    {"input": _cholesky_rule},
    infer=lambda input: (fresh(input), square_info(input)),
    prepare=one_square("linalg.cholesky"),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def cholesky_factor(input: Array) -> Any:
    """The lower factor of Hermitian matrices, of which the upper half is not read, and the order of the first leading
    minor that is not positive; what `linalg.cholesky` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.cholesky import cholesky_factor
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


# ---- LDL


def _ldl_infer(input: Spec, hermitian: bool) -> Any:
    return fresh(input), Spec(input.shape[:-1], INT32, input.device), square_info(input)


@primitive(
    FACTORIZATION,
    infer=_ldl_infer,
    prepare=one_square("linalg.ldl_factor"),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def ldl_factors(input: Array, hermitian: bool) -> Any:
    """What `linalg.ldl_factor_ex` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.cholesky import ldl_factors
    >>> ldl_factors(genesis.tensor([[2., 1.], [1., 2.]]), False)[0]
    tensor([[2.0000, 0.0000],
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
    result = ldl_factor_ex_result(*ldl_factors(input, bool(hermitian)))
    if check_errors:
        refuse_info("linalg.ldl_factor", result.info, "block {} of D is zero")
    return results_out("linalg.ldl_factor_ex", result, out)


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
    result = linalg_ldl_factor_ex(input, hermitian=hermitian)
    return results_out("linalg.ldl_factor", ldl_factor_result(result.LD, result.pivots), out)


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
    batch=lambda b, ld, pivots, other, hermitian: in_front_of(b, (ld, pivots, other), (2, 1, 2), hermitian),
    dtypes="Fc",
    method=False,
    torch_name="",
)
def ldl_system(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Any:
    """What `linalg.ldl_solve` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.cholesky import ldl_system
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
