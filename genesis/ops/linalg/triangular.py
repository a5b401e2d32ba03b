"""Systems whose matrix is a triangle."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.kinds import case, composite, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.out import write_out
from genesis.core.call.strides import packed
from genesis.core.graph.tensor import Tensor
from genesis.ops.linalg import host
from genesis.ops.linalg.common import (
    FACTORIZATION,
    broadcast_batches,
    check_matrix,
    check_system,
    fitted,
    in_front_of,
    regular,
)
from genesis.ops.products.matmul import matmul


def _checked_triangle(input: Tensor, other: Tensor, upper: bool, unitriangular: bool) -> Any:
    check_system("linalg.solve_triangular", input, other)
    return input, other, bool(upper), bool(unitriangular)


def _triangle_rule(g: Any, input: Tensor, out: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    full = -matmul(triangular_system(input.mH, g, not upper, unitriangular), out.mH)
    return fitted(full.triu(int(unitriangular)) if upper else full.tril(-int(unitriangular)), input.shape)


def _triangle_jvp(args: Any, tangents: Any, out: Any) -> Any:
    a, _, upper, unit = args
    da, db = tangents[:2]
    if da is not None:
        da = -matmul(da.triu(int(unit)) if upper else da.tril(-int(unit)), out)
    right = db if da is None else da if db is None else da + db
    return triangular_system(a, right, upper, unit)


@primitive(
    FACTORIZATION,
    {
        "input": _triangle_rule,
        "other": lambda g, input, other_shape, upper, unitriangular: fitted(
            triangular_system(input.mH, g, not upper, unitriangular), other_shape
        ),
    },
    infer=lambda input, other, upper, unitriangular: Spec(
        (*broadcast_batches("linalg.solve_triangular", input.shape, other.shape), *other.shape[-2:]),
        input.dtype,
        input.device,
    ),
    prepare=_checked_triangle,
    jvp=_triangle_jvp,
    batch=lambda b, x, y, *rest: in_front_of(b, (x, y), (2, 2), *rest),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def triangular_system(input: Array, other: Array, upper: bool, unitriangular: bool) -> Any:
    """$A^{-1} B$ for triangles A; what `linalg.solve_triangular` is made of. A zero on the diagonal divides.

    >>> import genesis
    >>> from genesis.ops.linalg.triangular import triangular_system
    >>> triangular_system(genesis.tensor([[2., 9.], [0., 4.]]), genesis.tensor([[2.], [4.]]), False, False)
    tensor([[1.],
            [1.]])
    """
    if unitriangular:
        input = np.array(input)
        diagonal = np.arange(input.shape[-1])
        input[..., diagonal, diagonal] = 1
    return packed(host.solve_triangle(input, other, upper))


samples(
    triangular_system,
    lambda t: [
        case(regular(t, 3, 3), t(3, 2), True, False),
        case(regular(t, 2, 3, 3), t(3, 2), False, False),
        case(t(3, 3), t(2, 3, 1), True, True),
        case(t(0, 0), t(0, 1), True, False),
    ],
)


@composite(method=False, dtypes="Fc", torch_name="linalg.solve_triangular")
def linalg_solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Any = None,
) -> Tensor:
    """The solution of $AX = B$ (or $XA = B$ for ``left=False``) for triangular A, of which the other half is not read.

    Args:
        A: (\\*, n, n); with ``unitriangular`` its diagonal is taken to be one
        B: (\\*, n, k), batches broadcast

    Raises:
        RuntimeError: A is not square, sizes or dtypes do not fit

    >>> import genesis
    >>> a = genesis.tensor([[2., 1.], [0., 4.]])
    >>> genesis.linalg.solve_triangular(a, genesis.tensor([[4.], [8.]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    check_matrix("linalg.solve_triangular", A, True, "A")
    check_matrix("linalg.solve_triangular", B, what="B")
    if left:
        x = triangular_system(A, B, upper, unitriangular)
    else:
        x = triangular_system(A.mT, B.mT, not upper, unitriangular).mT
    return x if out is None else write_out("linalg.solve_triangular", x, out)


samples(
    linalg_solve_triangular,
    lambda t: [
        case(regular(t, 3, 3), t(3, 2), upper=True),
        case(regular(t, 3, 3), t(2, 3), upper=False, left=False),
        case(regular(t, 2, 3, 3), t(3, 2), upper=False, unitriangular=True),
    ],
)
wrong_inputs(
    linalg_solve_triangular,
    (
        lambda t: case(t(2, 3), t(2, 1), upper=True),
        RuntimeError,
        "linalg.solve_triangular: A must be batches of square matrices",
    ),
    (lambda t: case(t(2, 2), t(2), upper=True), RuntimeError, "linalg.solve_triangular: B must have at least 2"),
)
