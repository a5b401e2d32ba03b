"""Losses of distances between points."""

from __future__ import annotations

from genesis.base import dtypes
from genesis.base.errors import (
    ArgumentValueError,
    ShapeError,
    message,
)
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.indexing.mask import triu_indices
from genesis.ops.losses.numbers import _loss, reduced
from genesis.ops.reductions.norms import norm
from genesis.ops.shapes.expand import broadcast_shapes


@_loss("float32:gpu")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along ``dim``.

    >>> import genesis
    >>> genesis.nn.functional.cosine_similarity(genesis.tensor([[1., 0.]]), genesis.tensor([[1., 1.]]))
    tensor([0.7071])
    """
    if x1._array.dtype is not x2._array.dtype:
        kind = dtypes.result_type(x1, x2)
        if kind.is_floating_point or kind.is_complex:
            x1, x2 = x1.to(kind), x2.to(kind)
    a, b = x1, x2
    if x1._array.shape != x2._array.shape:
        shape = broadcast_shapes(x1.shape, x2.shape)
        a, b = x1.expand(shape), x2.expand(shape)
    return (a / norm(a, 2, dim, True).clamp(min=eps) * (b / norm(b, 2, dim, True).clamp(min=eps))).sum(dim)


samples(cosine_similarity, lambda t: [case(t(3, 4), t(3, 4)), case(t(3, 4), t(4), dim=-1)])


@_loss()
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$\\max(0, -y (x_1 - x_2) + margin)$ for y of 1 or -1.

    >>> import genesis
    >>> genesis.nn.functional.margin_ranking_loss(genesis.ones(1), genesis.zeros(1), -genesis.ones(1))
    tensor(1.)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        shapes = [("input1", input1._spec()), ("input2", input2._spec()), ("target", target._spec())]
        raise ShapeError(
            message(
                "margin_ranking_loss",
                f"{input1.ndim}, {input2.ndim} and {target.ndim} dimensions",
                shapes,
                "tensors of one shape",
            )
        )
    return reduced(
        "margin_ranking_loss", (margin - target * (input1 - input2)).clamp(min=0), reduction, size_average, reduce
    )


samples(margin_ranking_loss, lambda t: [case(t(3), t(3), (t(3) > 0).to(t(1).dtype) * 2 - 1)])


@_loss()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$\\max(0, d(a, p) - d(a, n) + margin)$ of distances in the p-norm.

    >>> import genesis
    >>> genesis.nn.functional.triplet_margin_loss(genesis.zeros(1, 2), genesis.zeros(1, 2), genesis.ones(1, 2) * 5)
    tensor(0.)
    """
    from genesis.ops.reductions.norms import norm

    if not anchor.ndim == positive.ndim == negative.ndim:
        shapes = [("anchor", anchor._spec()), ("positive", positive._spec()), ("negative", negative._spec())]
        raise ShapeError(
            message(
                "triplet_margin_loss",
                f"{anchor.ndim}, {positive.ndim} and {negative.ndim} dimensions",
                shapes,
                "tensors of one shape",
            )
        )
    if not margin > 0:
        raise ArgumentValueError(message("triplet_margin_loss", f"margin must be positive, got {margin}"))
    near, far = norm(anchor - positive + eps, p, -1), norm(anchor - negative + eps, p, -1)
    if swap:
        far = far.minimum(norm(positive - negative + eps, p, -1))
    return reduced("triplet_margin_loss", (near - far + margin).clamp(min=0), reduction, size_average, reduce)


samples(triplet_margin_loss, lambda t: [case(t(3, 4), t(3, 4), t(3, 4))])


wrong_inputs(
    triplet_margin_loss,
    (lambda t: case(t(2), t(2), t(2), margin=0.0), ValueError, "triplet_margin_loss: margin must be positive, got 0.0"),
)


@_loss("float32:gpu")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of $x_1 - x_2 + eps$ over the last dimension.

    >>> import genesis
    >>> genesis.nn.functional.pairwise_distance(genesis.tensor([[3., 4.]]), genesis.zeros(1, 2))
    tensor([5.0000])
    """
    from genesis.ops.reductions.norms import norm

    return norm(x1 - x2 + eps, p, -1, keepdim)  # type: ignore[operator]


samples(
    pairwise_distance,
    lambda t: [case(t(3, 4), t(3, 4)), case(t(4), t(3, 4), 1.0, keepdim=True), case(t(2, 3), t(3), float("inf"))],
)


@composite(halves="wide", method=False, torch_name="pdist", autocast="float32:gpu")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Raises:
        RuntimeError: not a floating matrix, or a negative p

    >>> import genesis
    >>> genesis.pdist(genesis.tensor([[0.], [1.], [3.]]))
    tensor([1., 3., 2.])
    """
    from genesis.ops.reductions.norms import norm

    if input.ndim != 2 or not input.is_floating_point():
        raise ShapeError(message("pdist", "a floating matrix is needed", [("input", input._spec())]))
    if p < 0:
        raise ShapeError(message("pdist", f"p must not be negative, got {p}"))
    rows, columns = triu_indices(input.shape[0], input.shape[0], 1).to(input.device)  # type: ignore[attr-defined]
    return norm(input[rows] - input[columns], p, -1)  # type: ignore[operator]


samples(pdist, lambda t: [case(t(4, 3)), case(t(3, 2), 1), case(t(1, 3))])
wrong_inputs(
    pdist,
    (lambda t: case(t(3)), RuntimeError, "pdist: a floating matrix is needed"),
    (lambda t: case(t(3, 2), -1), RuntimeError, "p must not be negative"),
)


FUNCTIONAL = ["cosine_similarity", "margin_ranking_loss", "pairwise_distance", "pdist", "triplet_margin_loss"]
__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
