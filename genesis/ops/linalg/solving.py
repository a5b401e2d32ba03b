"""Systems of linear equations, and inverses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
    broadcast_batches,
    check_matrix,
    check_system,
    fitted,
    in_front_of,
    refuse_info,
    regular,
    results_out,
    square_info,
)
from genesis.ops.products.matmul import matmul


@named_result
class inv_ex_result(NamedTuple):  # noqa: N801
    inverse: Tensor
    info: Tensor


@named_result
class solve_ex_result(NamedTuple):  # noqa: N801
    result: Tensor
    info: Tensor


_SINGULAR = "the matrix is singular, pivot {} is zero"


# ---- A X = B


def _checked_system(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    check_system("linalg.solve", input, other)
    return input, other


def _infer_solve(input: Spec, other: Spec) -> tuple[Spec, Spec]:
    batch = broadcast_batches("linalg.solve", input.shape, other.shape)
    return Spec((*batch, *other.shape[-2:]), input.dtype, input.device), square_info(input)


def _solve_jvp(args: Any, tangents: Any, out: Any) -> Any:
    da, db = tangents
    right = None if da is None else -matmul(da, out[0])
    right = db if right is None else right if db is None else right + db
    return solve_system(args[0], right)[0], None


def _solve_batch(b: Any, x: Tensor, y: Tensor) -> Any:
    solution, info = in_front_of(b, (x, y), (2, 2))
    return solution, info.reshape((b.size, *b.specs[0].shape[:-2]))


@primitive(
    FACTORIZATION,
    {
        "input": lambda g, input, outs: fitted(-matmul(solve_system(input.mH, g[0])[0], outs[0].mH), input.shape),
        "other": lambda g, input, other_shape: fitted(solve_system(input.mH, g[0])[0], other_shape),
    },
    infer=_infer_solve,
    prepare=_checked_system,
    jvp=_solve_jvp,
    batch=_solve_batch,
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="",
)
def solve_system(input: Array, other: Array) -> Any:
    """$A^{-1} B$, and for each matrix 0 or the place of its first pivot that is zero; what `linalg.solve` is made of.

    >>> import genesis
    >>> from genesis.ops.linalg.solving import solve_system
    >>> solve_system(genesis.tensor([[2.]]), genesis.tensor([[6.]]))[0]
    tensor([[3.]])
    """
    return host.solve(input, other)


samples(
    solve_system,
    lambda t: [
        case(regular(t, 3, 3), t(3, 2)),
        case(regular(t, 2, 3, 3), t(2, 3, 1)),
        case(regular(t, 2, 2), t(3, 2, 2)),
        case(regular(t, 2, 1, 2, 2), t(3, 2, 2)),
        case(t(0, 0), t(0, 2)),
    ],
)
wrong_inputs(
    solve_system,
    (lambda t: case(t(2, 3), t(2, 1)), RuntimeError, "linalg.solve: A must be batches of square matrices"),
    (lambda t: case(t(2, 2), t(3, 1)), RuntimeError, "linalg.solve: A has 2 rows, B 3"),
)


def _is_vectors(a: Tensor, b: Tensor) -> bool:
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and a.shape[:-1] == b.shape)


@composite(method=False, dtypes="Fc", torch_name="linalg.solve_ex")
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """`solve` and a number for each matrix: 0, or which pivot is zero; nothing is raised for that.

    >>> import genesis
    >>> genesis.linalg.solve_ex(genesis.zeros(1, 1), genesis.ones(1)).info
    tensor(1, dtype=genesis.int32)
    """
    check_matrix("linalg.solve", A, True, "A")
    vectors = _is_vectors(A, B)
    if not left and vectors:
        raise ShapeError(message("linalg.solve", "left=False is for matrices B, not for vectors", [("B", B._spec())]))
    right = B.unsqueeze(-1) if vectors else B
    x, info = solve_system(A, right) if left else solve_system(A.mT, right.mT)
    x = x.squeeze(-1) if vectors else x if left else x.mT
    if check_errors:
        refuse_info("linalg.solve", info, _SINGULAR)
    return results_out("linalg.solve_ex", solve_ex_result(x, info), out)


samples(linalg_solve_ex, lambda t: [case(regular(t, 3, 3), t(3))])


@composite(method=False, dtypes="Fc", torch_name="linalg.solve")
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """The solution of $AX = B$, or of $XA = B$ for ``left=False``, by LU factors (LAPACK's gesv).

    Args:
        A: (\\*, n, n)
        B: (\\*, n, k), batches broadcast; or vectors, (\\*, n) with the batches of A, or (n,)

    Raises:
        RuntimeError: A is not square, sizes or dtypes do not fit
        LinAlgError: a matrix has no inverse

    >>> import genesis
    >>> genesis.linalg.solve(genesis.tensor([[2., 0.], [0., 4.]]), genesis.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    x = linalg_solve_ex(A, B, left=left, check_errors=True).result
    return x if out is None else write_out("linalg.solve", x, out)


samples(
    linalg_solve,
    lambda t: [
        case(regular(t, 3, 3), t(3, 2)),
        case(regular(t, 3, 3), t(3)),
        case(regular(t, 2, 3, 3), t(2, 3)),
        case(regular(t, 2, 3, 3), t(4, 3), left=False),
        case(regular(t, 2, 1, 3, 3), t(2, 3, 2)),
        case(t(0, 0), t(0)),
    ],
)
wrong_inputs(
    linalg_solve,
    (lambda t: case(t(2, 2) * 0, t(2)), RuntimeError, "linalg.solve: the matrix is singular, pivot 1 is zero"),
    (
        lambda t: case(t.int(2, 2), t(2)),
        RuntimeError,
        "linalg.solve: A must be floating or complex, it is genesis.int64",
    ),
    (lambda t: case(t(2, 2).half(), t(2).half()), RuntimeError, "linalg.solve: genesis.float16 has too few digits"),
)


@composite(method=False, dtypes="Fc", torch_name="linalg.inv_ex")
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """`inv` and a number for each matrix: 0, or which pivot is zero; nothing is raised for that.

    >>> import genesis
    >>> genesis.linalg.inv_ex(genesis.eye(2)).info
    tensor(0, dtype=genesis.int32)
    """
    check_matrix("linalg.inv", A, True, "A")
    inverse, info = solve_system(A, eye(A.shape[-1], dtype=A.dtype, device=A.device))
    if check_errors:
        refuse_info("linalg.inv", info, _SINGULAR)
    return results_out("linalg.inv_ex", inv_ex_result(inverse, info), out)


samples(linalg_inv_ex, lambda t: [case(regular(t, 3, 3))])


@composite(method=False, dtypes="Fc", torch_name="linalg.inv")
def linalg_inv(A: Tensor, *, out: Any = None) -> Tensor:
    """The inverse $A^{-1}$ of square matrices (\\*, n, n). Prefer `solve` to a product with it.

    Raises:
        RuntimeError: not square
        LinAlgError: a matrix has no inverse

    >>> import genesis
    >>> genesis.linalg.inv(genesis.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    x = linalg_inv_ex(A, check_errors=True).inverse
    return x if out is None else write_out("linalg.inv", x, out)


samples(linalg_inv, lambda t: [case(regular(t, 3, 3)), case(regular(t, 2, 2, 2)), case(t(0, 0)), case(t(0, 2, 2))])
wrong_inputs(
    linalg_inv,
    (lambda t: case(t(2, 3)), RuntimeError, "linalg.inv: A must be batches of square matrices, they are 2 by 3"),
    (lambda t: case(t(2, 2) * 0), RuntimeError, "linalg.inv: the matrix is singular"),
)


# ---- tensors as matrices


@composite(method=False, dtypes="Fc", torch_name="linalg.tensorinv")
def linalg_tensorinv(A: Tensor, ind: int = 2, *, out: Any = None) -> Tensor:
    """The inverse of the map that `tensordot` with A is: $B_{jk} A_{kl} = \\delta_{jl}$, ``ind`` being the number of
    dimensions of k.

    Raises:
        RuntimeError: the products of the first and of the other sizes differ, or ``ind`` is not positive

    >>> import genesis
    >>> genesis.linalg.tensorinv(genesis.eye(6).reshape(2, 3, 6), ind=2).shape
    genesis.Size([6, 2, 3])
    """
    if not isinstance(ind, int) or ind <= 0:
        raise ShapeError(message("linalg.tensorinv", f"ind must be a positive integer, got {ind!r}"))
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(first) != math.prod(rest):
        raise ShapeError(
            message("linalg.tensorinv", f"the products of {list(first)} and {list(rest)} differ", [("A", A._spec())])
        )
    n = math.prod(first)
    x = linalg_inv(A.reshape(n, n)).reshape((*rest, *first))
    return x if out is None else write_out("linalg.tensorinv", x, out)


samples(
    linalg_tensorinv, lambda t: [case(regular(t, 4, 4).reshape(2, 2, 4)), case(regular(t, 4, 4).reshape(4, 2, 2), 1)]
)
wrong_inputs(
    linalg_tensorinv,
    (lambda t: case(t(2, 3, 4)), RuntimeError, "linalg.tensorinv: the products of [2, 3] and [4] differ"),
    (lambda t: case(t(2, 2), 0), RuntimeError, "linalg.tensorinv: ind must be a positive integer, got 0"),
)


@composite(method=False, dtypes="Fc", torch_name="linalg.tensorsolve")
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Any = None) -> Tensor:
    """X with $\\text{tensordot}(A, X) = B$, over the last dimensions of A.

    Args:
        dims: dimensions of A that are moved to its end first

    Raises:
        RuntimeError: A is not square as a map

    >>> import genesis
    >>> a = genesis.eye(6).reshape(2, 3, 6)
    >>> genesis.linalg.tensorsolve(a, genesis.ones(2, 3)).shape
    genesis.Size([6])
    """
    if dims is not None:
        chosen = [d % A.ndim for d in (dims if isinstance(dims, list | tuple) else (dims,))]
        A = A.permute([d for d in range(A.ndim) if d not in chosen] + chosen)
    rest = tuple(A.shape[B.ndim :])
    if math.prod(rest) != B.numel() or math.prod(A.shape[: B.ndim]) != B.numel():
        raise ShapeError(
            message(
                "linalg.tensorsolve",
                f"A has {math.prod(A.shape[: B.ndim])} by {math.prod(rest)} elements, B {B.numel()}",
                [("A", A._spec()), ("B", B._spec())],
            )
        )
    n = B.numel()
    x = linalg_solve(A.reshape(n, n), B.reshape(n)).reshape(rest)
    return x if out is None else write_out("linalg.tensorsolve", x, out)


samples(linalg_tensorsolve, lambda t: [case(regular(t, 4, 4).reshape(2, 2, 4), t(2, 2))])
wrong_inputs(
    linalg_tensorsolve, (lambda t: case(t(2, 3), t(2)), RuntimeError, "linalg.tensorsolve: A has 2 by 3 elements, B 2")
)
