"""Norms of vectors and of matrices."""

from __future__ import annotations

import math
from typing import Any

from genesis.base.errors import ArgumentValueError, DTypeError, ShapeError, message
from genesis.core.call.out import write_out
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.reductions.extremes import amax, amin
from genesis.ops.reductions.norms import norm
from genesis.ops.linalg.svd import linalg_svdvals


def _in_dtype(name: str, x: Tensor, dtype: Any) -> Tensor:
    if x.dtype.category < 2 and dtype is None:
        raise DTypeError(message(name, f"the input must be floating or complex, it is {x.dtype}", hint="x.double()"))
    if dtype is None:
        return x
    if x.is_complex() != dtype.is_complex:
        raise DTypeError(message(name, f"dtype {dtype} does not go with {x.dtype}: both complex, or both real"))
    return x.to(dtype)


@composite(method=False, dtypes="fc", halves="input", autocast="float32:gpu", torch_name="linalg.vector_norm")
def linalg_vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The norm of vectors, $(\\sum_i |x_i|^p)^{1/p}$.

    Args:
        ord: p: any number; inf the largest, -inf the smallest magnitude, 0 how many are not zero
        dim: over which dimensions; None: all
        dtype: what x is converted to first

    Raises:
        RuntimeError: integers; no elements, where p is negative or infinite
        IndexError: a dim out of range

    >>> import genesis
    >>> genesis.linalg.vector_norm(genesis.tensor([3., 4.]))
    tensor(5.)
    """
    name = "linalg.vector_norm"
    if isinstance(ord, bool | str) or not isinstance(ord, int | float):
        raise ArgumentValueError(message(name, f"ord must be a number, got {ord!r}"))
    y = _in_dtype(name, x, dtype)
    dims = None if dim is None or dim == () or dim == [] else dim
    result = norm(y, float(ord), dims, keepdim)
    return result if out is None else write_out(name, result, out)


samples(
    linalg_vector_norm,
    lambda t: [
        case(t(3, 4)),
        case(t(3, 4), 1, 1),
        case(t(3, 4), 3.5, (0, 1), True),
        case(t(3, 4), math.inf),
        case(t(3, 4), -math.inf, 0),
        case(t()),
    ],
)
wrong_inputs(
    linalg_vector_norm,
    (lambda t: case(t(3), "fro"), ValueError, "linalg.vector_norm: ord must be a number, got 'fro'"),
    (lambda t: case(t.int(3)), RuntimeError, "linalg.vector_norm: the input must be floating or complex"),
    (lambda t: case(t(3), 2, 1), IndexError, "dim 1 is out of range for 1 dimensions"),
)


def _two_dims(name: str, x: Tensor, dim: Any) -> tuple[int, int]:
    if not isinstance(dim, tuple | list) or len(dim) != 2:
        raise ArgumentValueError(message(name, f"dim must be two dimensions, got {dim!r}"))
    if x.ndim < 2:
        raise ShapeError(message(name, f"the input must have at least 2 dimensions, it has {x.ndim}"))
    a, b = [normalize_dim(name, d, x.ndim) for d in dim]
    if a == b:
        raise ShapeError(message(name, f"dim {tuple(dim)} names a dimension twice"))
    return a, b


def _of_sums(x: Tensor, p: float, rows: int, columns: int, keepdim: bool) -> Tensor:
    along, other = (rows, columns) if abs(p) == 1 else (columns, rows)
    sums = x.abs().sum(along, True)  # type: ignore[attr-defined]
    result = (amax if p > 0 else amin)(sums, other, True)
    return result if keepdim else result.squeeze((rows, columns))


@composite(method=False, dtypes="Fc", autocast="float32:gpu", torch_name="linalg.matrix_norm")
def linalg_matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """The norm of matrices.

    Args:
        ord: "fro": root of the sum of squares; "nuc": sum of singular values; inf, -inf: largest, smallest sum of
            magnitudes of a row; 1, -1: of a column; 2, -2: largest, smallest singular value
        dim: the two dimensions of a matrix
        dtype: what A is converted to first

    Raises:
        ValueError: another ``ord``
        RuntimeError: fewer than two dimensions; integers

    >>> import genesis
    >>> genesis.linalg.matrix_norm(genesis.tensor([[1., 2.], [3., 4.]]), 1)
    tensor(6.)
    """
    name = "linalg.matrix_norm"
    x = _in_dtype(name, A, dtype)
    rows, columns = _two_dims(name, x, dim)
    if ord == "fro":
        result = norm(x, 2.0, (rows, columns), keepdim)
    elif ord == "nuc" or ord in (2, -2):
        result = _of_singular_values(x, ord, rows, columns, keepdim)
    elif isinstance(ord, int | float) and abs(ord) in (1, math.inf):
        result = _of_sums(x, ord, rows, columns, keepdim)
    else:
        raise ArgumentValueError(message(name, f'ord must be "fro", "nuc", inf, -inf, 1, -1, 2 or -2, got {ord!r}'))
    return result if out is None else write_out(name, result, out)


def _of_singular_values(x: Tensor, ord: Any, rows: int, columns: int, keepdim: bool) -> Tensor:
    s = linalg_svdvals(x.movedim((rows, columns), (-2, -1)))
    result = s.sum(-1) if ord == "nuc" else (amax if ord == 2 else amin)(s, -1)
    if keepdim:
        for d in sorted((rows, columns)):
            result = result.unsqueeze(d)
    return result


samples(
    linalg_matrix_norm,
    lambda t: [
        case(t(3, 4)),
        case(t(3, 4), "nuc"),
        case(t(2, 3, 4), 1),
        case(t(2, 3, 4), math.inf, (0, 2), True),
        case(t(3, 3), 2),
        case(t(3, 3), -2),
        case(t(3, 4), -1),
    ],
)
wrong_inputs(
    linalg_matrix_norm,
    (lambda t: case(t(3, 3), 3), ValueError, 'linalg.matrix_norm: ord must be "fro", "nuc", inf'),
    (lambda t: case(t(3)), RuntimeError, "linalg.matrix_norm: the input must have at least 2 dimensions, it has 1"),
    (lambda t: case(t(3, 3), "fro", (0, 0)), RuntimeError, "linalg.matrix_norm: dim (0, 0) names a dimension twice"),
)


@composite(method=False, dtypes="Fc", torch_name="linalg.norm")
def linalg_norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    out: Any = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of a vector or of a matrix: of a matrix, where ``dim`` has two dimensions, or is left out and A has two;
    without ``ord`` the root of the sum of squares of all elements.

    >>> import genesis
    >>> genesis.linalg.norm(genesis.tensor([[3., 4.], [0., 0.]]))
    tensor(5.)
    """
    name = "linalg.norm"
    dims = dim if isinstance(dim, tuple | list) else None if dim is None else (dim,)
    if ord is None:
        result = linalg_vector_norm(A, 2, dims, keepdim, dtype=dtype)
    elif (dims is not None and len(dims) == 1) or (dims is None and A.ndim == 1):
        result = linalg_vector_norm(A, ord, dims, keepdim, dtype=dtype)
    else:
        if dims is None and A.ndim != 2:
            raise ShapeError(
                message(name, f"with ord the input must be 1-D or 2-D, it is {A.ndim}-D", [("A", A._spec())])
            )
        result = linalg_matrix_norm(A, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return result if out is None else write_out(name, result, out)


samples(
    linalg_norm,
    lambda t: [
        case(t(3, 4)),
        case(t(3)),
        case(t(3, 3), "nuc"),
        case(t(3), 3),
        case(t(2, 3, 4), 1, (0, 1)),
        case(t(2, 3), 2, 1),
    ],
)
wrong_inputs(
    linalg_norm,
    (lambda t: case(t(2, 2, 2), 2), RuntimeError, "linalg.norm: with ord the input must be 1-D or 2-D, it is 3-D"),
)
