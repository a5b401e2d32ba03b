"""Losses of margins: what is right shall be ahead of what is wrong by at least so much."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DomainError, DTypeError, ShapeError, message
from genesis.core.call.kinds import case
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor, explain_all
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.creation.sequences import arange
from genesis.ops.losses.distances import pairwise_distance
from genesis.ops.losses.numbers import _bad_reduction, _loss, reduced
from genesis.ops.pointwise.choice import where
from genesis.ops.pointwise.curves import log1pexp


def _signs(t: Any, *shape: int) -> Any:
    return (t(*shape) > 0).to(t(1).dtype) * 2 - 1


def _class_numbers(name: str, target: Tensor, classes: int, lowest: int) -> None:
    if target._array.dtype.kind not in "iu":
        raise DTypeError(
            message(name, f"class indices must be integers, target is {target.dtype}", hint="target.long()")
        )
    known = known_values(target)
    if known is not None and known.size and not lowest <= known.min() <= known.max() < classes:
        raise DomainError(message(name, f"targets {known.min()} to {known.max()} are not in [{lowest}, {classes})"))


@_loss()
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$\\frac{1}{C} \\sum_{i \\ne y} w_y \\max(0, margin - x_y + x_i)^p$ of scores (N, C) or (C,) and classes y.

    Raises:
        RuntimeError: shapes that do not fit, or a class out of range
        ValueError: p is neither 1 nor 2

    >>> import genesis
    >>> genesis.nn.functional.multi_margin_loss(genesis.tensor([[0.5, 0.]]), genesis.tensor([0]))
    tensor(0.2500)
    """
    name = "multi_margin_loss"
    if p not in (1, 2):
        raise ArgumentValueError(message(name, f"p must be 1 or 2, got {p}"))
    x, y = (input.reshape(1, -1), target.reshape(-1)) if input.ndim < 2 else (input, target)
    if x.ndim != 2 or tuple(y.shape) != (x.shape[0],):
        raise ShapeError(message(name, "input (N, C) and target (N,) do not fit",
                                 [("input", input._spec()), ("target", target._spec())]))  # fmt: skip
    classes = x.shape[1]
    _class_numbers(name, target, classes, 0)
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(message(name, f"weight has shape {list(weight.shape)}, there are {classes} classes"))
    at = y.unsqueeze(1)  # type: ignore[attr-defined]
    excess = (margin - x.gather(1, at) + x).relu()  # type: ignore[attr-defined]
    excess = excess if p == 1 else excess * excess
    excess = where(arange(classes, device=x.device) == at, 0.0, excess if weight is None else excess * weight[at])
    loss = excess.sum(1) / classes  # type: ignore[attr-defined]
    return reduced(name, loss.squeeze(0) if target.ndim == 0 else loss, reduction, size_average, reduce)


samples(
    multi_margin_loss,
    lambda t: [
        case(t(4, 3), t.int(4, low=0, high=3)),
        case(t(3), t.int(low=0, high=3), p=2, margin=0.5, reduction="none"),
        case(t(4, 3), t.int(4, low=0, high=3), weight=t.positive(3), reduction="sum"),
    ],
)
wrong_inputs(
    multi_margin_loss,
    (lambda t: case(t(2, 3), t.int(2, low=0, high=3), p=3), ValueError, "p must be 1 or 2, got 3"),
    (lambda t: case(t(2, 3), t.int(3, low=0, high=3)), RuntimeError, "do not fit"),
    (lambda t: case(t(2, 3), t.int(2, low=5, high=6)), RuntimeError, "targets 5 to 5 are not in [0, 3)"),
    (lambda t: case(t(2, 3), t(2)), RuntimeError, "class indices must be integers"),
)


@_loss()
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$\\frac{1}{C} \\sum_{j \\in y} \\sum_{i \\notin y} \\max(0, 1 - (x_j - x_i))$ of scores (N, C) or (C,).

    ``target`` has the input's shape: the classes of each row, up to the first -1.

    Raises:
        RuntimeError: shapes that do not fit, or a class out of range

    >>> import genesis
    >>> genesis.nn.functional.multilabel_margin_loss(genesis.tensor([0.5, 0., 0.]), genesis.tensor([0, -1, 1]))
    tensor(0.3333)
    """
    name = "multilabel_margin_loss"
    if input.numel() == target.numel() == 1 and input.ndim + target.ndim < 2:  # a number is a row of one class
        input, target = input.reshape(1), target.reshape(1)
    if input.shape != target.shape or input.ndim not in (1, 2):
        raise ShapeError(message(name, "input and target of one shape, (N, C) or (C,), are needed",
                                 [("input", input._spec()), ("target", target._spec())]))  # fmt: skip
    _class_numbers(name, target, input.shape[-1], -1)
    counted = (target >= 0).long().cumprod(-1).bool()  # type: ignore[operator, attr-defined]
    safe = where(counted, target, 0)
    classes = arange(input.shape[-1], device=input.device)
    among = ((safe.unsqueeze(-1) == classes) & counted.unsqueeze(-1)).any(-2)  # type: ignore[attr-defined]
    short = (1 - (input.gather(-1, safe).unsqueeze(-1) - input.unsqueeze(-2))).relu()  # type: ignore[attr-defined]
    pairs = counted.unsqueeze(-1) & ~among.unsqueeze(-2)
    loss = where(pairs, short, 0.0).sum((-2, -1)) / input.shape[-1]  # type: ignore[attr-defined]
    return reduced(name, loss, reduction, size_average, reduce)


samples(
    multilabel_margin_loss,
    lambda t: [
        case(t(2, 4), t.int(2, 4, low=-1, high=4)),
        case(t(3), t.int(3, low=-1, high=3), reduction="none"),
        case(t(3, 2), t.int(3, 2, low=0, high=2), reduction="sum"),
    ],
)
wrong_inputs(
    multilabel_margin_loss,
    (lambda t: case(t(2, 3), t.int(2, 2, low=0, high=2)), RuntimeError, "input and target of one shape"),
    (lambda t: case(t(3), t.int(3, low=7, high=8)), RuntimeError, "are not in"),
)


@_loss("float32:gpu")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$-\\frac{1}{C} \\sum_i w_i (y_i \\ln \\sigma(x_i) + (1 - y_i) \\ln \\sigma(-x_i))$ over the last dimension.

    >>> import genesis
    >>> genesis.nn.functional.multilabel_soft_margin_loss(genesis.zeros(1, 2), genesis.ones(1, 2))
    tensor(0.6931)
    """
    expect_tensor("multilabel_soft_margin_loss", "target", target)
    terms = target * log1pexp(-input) + (1 - target) * log1pexp(input)  # type: ignore[operator]
    loss = (terms if weight is None else terms * weight).mean(-1)
    return reduced("multilabel_soft_margin_loss", loss, reduction, size_average, reduce)


samples(
    multilabel_soft_margin_loss,
    lambda t: [case(t(2, 3), t(2, 3, low=0, high=1)), case(t(3), t(3, low=0, high=1), t.positive(3), reduction="none")],
)
wrong_inputs(multilabel_soft_margin_loss, _bad_reduction)


@_loss()
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$\\ln(1 + e^{-y x})$ for y of 1 or -1.

    >>> import genesis
    >>> genesis.nn.functional.soft_margin_loss(genesis.zeros(2), genesis.ones(2))
    tensor(0.6931)
    """
    expect_tensor("soft_margin_loss", "target", target)
    return reduced("soft_margin_loss", log1pexp(-target * input), reduction, size_average, reduce)  # type: ignore[operator]


samples(soft_margin_loss, lambda t: [case(t(2, 3), _signs(t, 2, 3)), case(t(3), _signs(t, 3), reduction="sum")])
wrong_inputs(soft_margin_loss, _bad_reduction)


@_loss()
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$x$ where y is 1, $\\max(0, margin - x)$ where y is -1, of distances x.

    >>> import genesis
    >>> genesis.nn.functional.hinge_embedding_loss(genesis.tensor([0.25, 0.25]), genesis.tensor([1, -1]))
    tensor(0.5000)
    """
    expect_tensor("hinge_embedding_loss", "target", target)
    far = where(target != 1, (margin - input).clamp(min=0), 0.0)  # type: ignore[operator, attr-defined]
    loss = far + where(target != -1, input, 0.0)
    return reduced("hinge_embedding_loss", loss, reduction, size_average, reduce)


samples(
    hinge_embedding_loss,
    lambda t: [case(t(2, 3), _signs(t, 2, 3)), case(t(3), _signs(t, 3), margin=0.3, reduction="none")],
)
wrong_inputs(hinge_embedding_loss, _bad_reduction)


@_loss()
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """$1 - \\cos(x_1, x_2)$ where y is 1, $\\max(0, \\cos(x_1, x_2) - margin)$ where y is -1.

    Inputs (N, D) and target (N,), or (D,) and a scalar.

    Raises:
        RuntimeError: shapes that do not fit

    >>> import genesis
    >>> x = genesis.ones(1, 2)
    >>> genesis.nn.functional.cosine_embedding_loss(x, -x, genesis.tensor([1]))
    tensor(2.)
    """
    name, tiny = "cosine_embedding_loss", 1e-12
    if input1.ndim not in (1, 2) or input2.ndim != input1.ndim or target.ndim != input1.ndim - 1:
        given = [("input1", input1._spec()), ("input2", input2._spec()), ("target", target._spec())]
        raise ShapeError(message(name, "inputs (N, D) and target (N,), or (D,) and a scalar, are needed", given))
    sizes = (input1 * input1).sum(-1) + tiny, (input2 * input2).sum(-1) + tiny  # type: ignore[operator]
    cos = (input1 * input2).sum(-1) / (sizes[0] * sizes[1]).sqrt()  # type: ignore[operator]
    loss = where(target == 1, 1 - cos, 0.0) + where(target == -1, (cos - margin).clamp(min=0), 0.0)
    return reduced(name, loss, reduction, size_average, reduce)


samples(
    cosine_embedding_loss,
    lambda t: [
        case(t(3, 4), t(3, 4), _signs(t, 3)),
        case(t(4), t(4), _signs(t), margin=-0.5),
        case(t(3, 4), t(3, 4), _signs(t, 3), reduction="none"),
    ],
)
wrong_inputs(
    cosine_embedding_loss,
    (lambda t: case(t(3, 4), t(3, 4), t(3, 4)), RuntimeError, "inputs (N, D) and target (N,)"),
)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """$\\max(0, d(a, p) - d(a, n) + margin)$ with ``distance_function(x, y)`` of one's own; `pairwise_distance` if it is None.

    Raises:
        RuntimeError: numbers of dimensions that differ
        ValueError: the margin is not positive

    >>> import genesis
    >>> a, p = genesis.zeros(1, 2), genesis.ones(1, 2)
    >>> distance = lambda x, y: (x - y).abs().sum(-1)
    >>> genesis.nn.functional.triplet_margin_with_distance_loss(a, p, a, distance_function=distance)
    tensor(3.)
    """
    name = "triplet_margin_with_distance_loss"
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(message(name, f"{anchor.ndim}, {positive.ndim} and {negative.ndim} dimensions"))
    if not margin > 0:
        raise ArgumentValueError(message(name, f"margin must be positive, got {margin}"))
    if distance_function is not None and not callable(distance_function):
        raise ArgumentError(message(name, f"distance_function must be a function, got {distance_function!r}"))
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))  # type: ignore[attr-defined]
    return reduced(name, (margin + near - far).clamp(min=0), reduction)  # type: ignore[operator]


FUNCTIONAL = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_with_distance_loss",
]
__all__: list[str] = []
explain_all(globals(), "triplet_margin_with_distance_loss")
