"""Sums of products that are added to something: $\\beta x + \\alpha \\sum_i A_i B_i$, outer products, chains of matrices."""

from __future__ import annotations

from typing import Any

from genesis.base import dtypes
from genesis.base.errors import ShapeError, message
from genesis.core.call.older import older_forms, takes_older
from genesis.core.call.out import takes_out
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import explain_all
from genesis.core.call.inplace_methods import inplace_method
from genesis.core.graph.tensor import Tensor
from genesis.ops.products.matmul import _affine, addmm, addmv, baddbmm, bmm, check_factors, outer

_factor = lambda t: 0.5 if t.dtype.category > 1 else 3  # noqa: E731


@older_forms("beta", "alpha")
@composite(halves="alike", dtypes="fci", autocast="low", inplace=True, out=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha \\sum_i A_i B_i$ for batches of matrices.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> genesis.addbmm(genesis.ones(1), genesis.ones(2, 1, 2), genesis.ones(2, 2, 1))
    tensor([[5.]])
    """
    product = bmm(batch1, batch2)
    return _affine(input, product.sum(0, dtype=product.dtype), beta, alpha)


samples(
    addbmm,
    lambda t: [
        case(t(2, 4), t(3, 2, 3), t(3, 3, 4)),
        case(t(4), t(2, 2, 3), t(2, 3, 4), beta=_factor(t), alpha=2),
    ],
)

wrong_inputs(addbmm, (lambda t: case(t(2, 2), t(2, 3), t(3, 2)), RuntimeError, "bmm: "))


@older_forms("beta", "alpha")
@composite(halves="alike", dtypes="fib", inplace=True, out=True, autocast="low:gpu")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """$\\beta x + \\alpha u v^T$ for two vectors; of bool tensors with *and* for the products and *or* for the sum.

    Raises:
        RuntimeError: not two vectors

    >>> import genesis
    >>> genesis.addr(genesis.zeros(2, 2), genesis.tensor([1., 2.]), genesis.ones(2))
    tensor([[1., 1.],
            [2., 2.]])
    """
    check_factors("addr", vec1, beta, alpha)
    product = outer(vec1, vec2)
    if product.dtype is not dtypes.bool:
        return _affine(input, product, beta, alpha)
    product = product & bool(alpha)
    return product | input if beta else product


samples(addr, lambda t: [case(t(2, 3), t(2), t(3)), case(t(3), t(2), t(3), beta=_factor(t), alpha=2)])

wrong_inputs(
    addr,
    (lambda t: case(t(2, 2), t(2, 2), t(2)), RuntimeError, "outer: "),
    (
        lambda t: case(t.int(2, 2), t.int(2), t.int(2), beta=0.5),
        RuntimeError,
        "addr: of integers beta and alpha are whole",
    ),
)

for _op in (addmm, addmv, baddbmm):
    setattr(Tensor, f"{_op.op.name}_", takes_older(inplace_method(_op.op), "beta", "alpha"))


@takes_out
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, in the order of multiplications that costs least.

    Raises:
        RuntimeError: not matrices, or sizes that do not fit

    >>> import genesis
    >>> genesis.chain_matmul(genesis.ones(2, 3), genesis.ones(3, 4), genesis.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    many = list(matrices[0]) if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else list(matrices)
    if not many or any(x.ndim != 2 for x in many):
        raise ShapeError(
            message("chain_matmul", f"expected matrices, got {len(many)} of {[x.ndim for x in many]} dimensions")
        )
    sizes = [many[0].shape[0], *[x.shape[1] for x in many]]
    best: dict[tuple[int, int], tuple[float, int]] = {(i, i): (0, i) for i in range(len(many))}
    for length in range(1, len(many)):
        for i in range(len(many) - length):
            j = i + length
            costs = [
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]
            best[i, j] = min(costs)

    def product(i: int, j: int) -> Tensor:
        k = best[i, j][1]
        return many[i] if i == j else product(i, k) @ product(k + 1, j)

    return product(0, len(many) - 1)


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """$y - \\alpha x$: `sub` with its operands exchanged.

    >>> import genesis
    >>> genesis.rsub(genesis.tensor([1., 2.]), 5)
    tensor([4., 3.])
    """
    scaled = input if alpha == 1 else input * alpha
    return other - scaled  # type: ignore[no-any-return]


Tensor.ger = outer
explain_all(globals(), "chain_matmul", "rsub")

__all__ = ["addbmm", "addr", "chain_matmul", "rsub"]
