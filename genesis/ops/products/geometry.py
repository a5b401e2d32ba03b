"""Kronecker and cross products, traces, powers of matrices, and distances."""

from __future__ import annotations

from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor


@composite(out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product.

    >>> import genesis
    >>> genesis.kron(genesis.tensor([1., 2.]), genesis.tensor([1., 10.]))
    tensor([ 1., 10.,  2., 20.])
    """
    n = max(input.ndim, other.ndim)
    a, b = [1] * (n - input.ndim) + list(input.shape), [1] * (n - other.ndim) + list(other.shape)
    x = input.reshape([m for size in a for m in (size, 1)])
    y = other.reshape([m for size in b for m in (1, size)])
    return (x * y).reshape([p * q for p, q in zip(a, b, strict=True)])


samples(kron, lambda t: [case(t(2, 2), t(2, 3)), case(t(2), t(3))])


@composite(halves="wide", autocast="float32:cpu")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    Raises:
        RuntimeError: not a matrix

    >>> import genesis
    >>> genesis.trace(genesis.eye(3))
    tensor(3.)
    """
    if input.ndim != 2:
        raise ShapeError(message("trace", f"expected a matrix, got {input.ndim}-D", [("input", input._spec())]))
    return input.diagonal().sum()


samples(trace, lambda t: [case(t(3, 3))])

wrong_inputs(trace, (lambda t: case(t(3)), RuntimeError, "trace: expected a matrix, got 1-D"))


@composite(halves="wide", out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of three elements along ``dim`` (None: the first dimension of size 3).

    Raises:
        RuntimeError: another size

    >>> import genesis
    >>> genesis.cross(genesis.tensor([1., 0., 0.]), genesis.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    d = next((i for i, n in enumerate(input.shape) if n == 3), -1) if dim is None else dim
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise ShapeError(
            message(
                "cross",
                f"dim {d} must have size 3, it has {input.shape[d]}",
                [("input", input._spec()), ("other", other._spec())],
            )
        )
    a, b = input.roll(-1, d), other.roll(-1, d)
    return a * other.roll(-2, d) - input.roll(-2, d) * b


samples(cross, lambda t: [case(t(2, 3), t(2, 3)), case(t(3, 2), t(3, 2), 0)])

wrong_inputs(cross, (lambda t: case(t(2, 3), t(2, 3), 0), RuntimeError, "cross: dim 0 must have size 3, it has 2"))


@composite(halves="wide", autocast="float32")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Distances in the p-norm between all pairs of rows; exact, so ``compute_mode`` has no effect.

    >>> import genesis
    >>> genesis.cdist(genesis.zeros(1, 2), genesis.tensor([[3., 4.]]))
    tensor([[5.]])
    """
    from genesis.ops.reductions.norms import norm

    return norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


samples(cdist, lambda t: [case(t(3, 2), t(4, 2)), case(t(2, 3, 2), t(2, 4, 2), 1.0)])

__all__ = [
    "cdist",
    "cross",
    "kron",
    "trace",
]
