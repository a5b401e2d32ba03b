"""Powers, exponentials and products of matrices, and what is made of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


from genesis.arrays.protocol import Array
from genesis.base.errors import ShapeError, message
from genesis.core.call.out import write_out
from genesis.core.call.halves import wide
from genesis.core.call.kinds import case, composite, normalize_dim, primitive
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import eye
from genesis.ops.shapes.join import cat, stack
from genesis.ops.linalg import host
from genesis.ops.linalg.common import fresh, FACTORIZATION, check_matrix
from genesis.ops.linalg.solving import linalg_inv
from genesis.ops.indexing.mask import diagonal
from genesis.ops.products.matmul import matmul


def _derivative(a: Tensor, direction: Tensor) -> Tensor:
    """Of the exponential at a, along a direction: the block above of $\\exp [[A, E], [0, A]]$ (Mathias 1996)."""
    n = a.shape[-1]
    above, below = cat([a, direction], -1), cat([a * 0, a], -1)
    return linalg_matrix_exp(cat([above, below], -2))[..., :n, n:]  # type: ignore[no-any-return]


def _checked_exp(A: Tensor) -> Any:
    check_matrix("linalg.matrix_exp", A, True, "A")
    return (A,)


@primitive(
    FACTORIZATION,
    {"A": lambda g, A: _derivative(A.mH, g)},
    infer=lambda A: fresh(A),
    prepare=_checked_exp,
    jvp=lambda args, tangents, out: _derivative(args[0], tangents[0]),
    holomorphic=False,
    dtypes="Fc",
    method=False,
    torch_name="linalg.matrix_exp",
)
def linalg_matrix_exp(A: Array) -> Any:
    """The exponential of square matrices (\\*, n, n), $\\sum_k A^k / k!$, by scaling and squaring (Higham 2005).

    Raises:
        RuntimeError: not square

    >>> import genesis
    >>> genesis.linalg.matrix_exp(genesis.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return host.exponential(A)


samples(linalg_matrix_exp, lambda t: [case(t(3, 3)), case(t(2, 2, 2)), case(t(2, 2) * 9), case(t(0, 0)), case(t(1, 1))])
wrong_inputs(
    linalg_matrix_exp,
    (lambda t: case(t(2, 3)), RuntimeError, "linalg.matrix_exp: A must be batches of square matrices, they are 2 by 3"),
)


@composite(method=False, dtypes="Fc", torch_name="linalg.matrix_power")
def linalg_matrix_power(A: Tensor, n: int, *, out: Any = None) -> Tensor:
    """$A^n$ by repeated squaring, of the inverse for negative n, which integers do not take.

    Raises:
        RuntimeError: not square
        LinAlgError: n is negative, and there is no inverse

    >>> import genesis
    >>> genesis.linalg.matrix_power(genesis.tensor([[2., 0.], [0., 4.]]), -1)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_matrix("linalg.matrix_power", A if n < 0 or A.dtype.category != 1 else A.double(), True, "A")  # type: ignore[attr-defined]
    square = linalg_inv(A) if n < 0 else A
    power: Tensor | None = None
    for bit in reversed(f"{abs(n):b}"):
        if bit == "1":
            power = square if power is None else matmul(power, square)
        square = matmul(square, square)
    if power is None:
        power = eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape).clone()
    power = power.clone() if power is A else power
    return power if out is None else write_out("linalg.matrix_power", power, out)


samples(
    linalg_matrix_power, lambda t: [case(t(3, 3), 3), case(t(2, 2), 1), case(t(3, 3) + 4 * eye(3).to(t(1).dtype), -2)]
)
wrong_inputs(
    linalg_matrix_power,
    (lambda t: case(t(2, 3), 2), RuntimeError, "linalg.matrix_power: A must be batches of square matrices"),
)


@composite(method=False, dtypes="f", autocast="low", torch_name="linalg.multi_dot")
def linalg_multi_dot(tensors: Sequence[Tensor], *, out: Any = None) -> Tensor:
    """The product of two or more matrices in the order that takes fewest multiplications; the first and the last may be
    vectors (Cormen et al., "Introduction to Algorithms", section 15.2).

    Raises:
        RuntimeError: fewer than two, or other than 2-D in the middle

    >>> import genesis
    >>> genesis.linalg.multi_dot([genesis.ones(1, 9), genesis.ones(9, 1), genesis.ones(1, 9)]).shape
    genesis.Size([1, 9])
    """
    name, parts = "linalg.multi_dot", list(tensors)
    if len(parts) < 2:
        raise ShapeError(message(name, f"at least two matrices are needed, got {len(parts)}"))
    row, column = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0].unsqueeze(0) if row else parts[0]
    parts[-1] = parts[-1].unsqueeze(-1) if column else parts[-1]
    for i, x in enumerate(parts):
        if x.ndim != 2:
            raise ShapeError(message(name, f"tensor {i} must be a matrix, it is {x.ndim}-D", [("tensor", x._spec())]))
    kind, parts = parts[0].dtype, wide(parts)
    product = _product(parts, _order([x.shape[0] for x in parts] + [parts[-1].shape[1]]), 0, len(parts) - 1).to(kind)
    product = product.squeeze(-1) if column else product
    product = product.squeeze(0) if row else product
    return product if out is None else write_out(name, product, out)


def _order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each run of factors where its last product is."""
    n, cost, cut = len(sizes) - 1, {(i, i): 0 for i in range(len(sizes))}, {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], cut[i, j] = min(options)
    return cut


def _product(parts: Sequence[Tensor], cut: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return parts[i]
    k = cut[i, j]
    return matmul(_product(parts, cut, i, k), _product(parts, cut, k + 1, j))  # type: ignore[no-any-return]


samples(
    linalg_multi_dot,
    lambda t: [case([t(2, 3), t(3, 4), t(4, 2)]), case([t(3), t(3, 2), t(2)]), case([t(2, 3), t(3, 2)])],
)
wrong_inputs(
    linalg_multi_dot,
    (lambda t: case([t(2, 2)]), RuntimeError, "linalg.multi_dot: at least two matrices are needed, got 1"),
    (lambda t: case([t(2), t(2), t(2)]), RuntimeError, "linalg.multi_dot: tensor 1 must be a matrix, it is 1-D"),
)


@composite(method=False, dtypes="fc", halves="wide", torch_name="linalg.cross")
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """The cross product of vectors of three elements along ``dim``; other dimensions broadcast.

    Raises:
        RuntimeError: another size, or other ranks

    >>> import genesis
    >>> genesis.linalg.cross(genesis.tensor([1., 0., 0.]), genesis.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    name = "linalg.cross"
    pair = [("input", input._spec()), ("other", other._spec())]
    if input.ndim != other.ndim:
        raise ShapeError(message(name, f"the operands have {input.ndim} and {other.ndim} dimensions", pair))
    d = normalize_dim(name, dim, input.ndim)
    if not input.ndim or input.shape[d] != 3 or other.shape[d] != 3:
        raise ShapeError(message(name, f"dim {dim} must have size 3 in both", pair))
    (a1, a2, a3), (b1, b2, b3) = input.unbind(d), other.unbind(d)
    result = stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], d)
    return result if out is None else write_out(name, result, out)


samples(linalg_cross, lambda t: [case(t(2, 3), t(2, 3)), case(t(3, 1), t(3, 2), dim=0), case(t(3), t(3))])
wrong_inputs(
    linalg_cross,
    (lambda t: case(t(2, 2), t(2, 2)), RuntimeError, "linalg.cross: dim -1 must have size 3 in both"),
    (lambda t: case(t(3), t(2, 3)), RuntimeError, "linalg.cross: the operands have 1 and 2 dimensions"),
)


@composite(method=False, dtypes="fc", halves="alike", autocast="low", torch_name="linalg.vecdot")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """Dot products along ``dim``, $\\sum_i \\bar x_i y_i$; other dimensions broadcast.

    >>> import genesis
    >>> genesis.linalg.vecdot(genesis.tensor([1., 2.]), genesis.tensor([3., 4.]))
    tensor(11.)
    """
    result = (x.conj() * y).sum(dim)
    return result if out is None else write_out("linalg.vecdot", result, out)


samples(linalg_vecdot, lambda t: [case(t(3), t(3)), case(t(2, 3), t(3)), case(t(3, 2), t(3, 2), dim=0)])


@composite(method=False, dtypes="fcib", torch_name="linalg.diagonal")
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view.

    >>> import genesis
    >>> genesis.linalg.diagonal(genesis.eye(3))
    tensor([1., 1., 1.])
    """
    return diagonal(A, offset, dim1, dim2)


samples(linalg_diagonal, lambda t: [case(t(3, 3)), case(t(2, 3, 4), offset=1)])


@composite(method=False, dtypes="Fci", torch_name="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers of numbers as matrices, $V_{ij} = x_i^j$ for j below N (as many as there are numbers).

    Raises:
        RuntimeError: N below 2

    >>> import genesis
    >>> genesis.linalg.vander(genesis.tensor([2., 3.]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise ShapeError(message("linalg.vander", f"N must be greater than 1, got {N}"))
    column = x.unsqueeze(-1)
    ones = x.new_ones(column.shape)
    if count <= 1:
        return ones[..., :count]  # type: ignore[no-any-return]
    return cat([ones, column.expand(*x.shape, count - 1).cumprod(-1)], -1)


samples(linalg_vander, lambda t: [case(t(3)), case(t(2, 3), N=4), case(t(1)), case(t(), N=3)])
wrong_inputs(linalg_vander, (lambda t: case(t(3), N=1), RuntimeError, "linalg.vander: N must be greater than 1, got 1"))


@composite(method=False, dtypes="Fc", torch_name="linalg.matmul")
def linalg_matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """`matmul`.

    >>> import genesis
    >>> genesis.linalg.matmul(genesis.ones(1, 2), genesis.ones(2, 1))
    tensor([[2.]])
    """
    return matmul(input, other, out=out)


samples(linalg_matmul, lambda t: [case(t(2, 3), t(3, 2))])
