"""Losses of classes."""

from __future__ import annotations

import math

from genesis.base.errors import (
    ArgumentValueError,
    DTypeError,
    IndexOutOfRange,
    ShapeError,
    message,
)
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.pointwise.choice import where
from genesis.ops.losses.numbers import _loss, reduced, reduction_of
from genesis.ops.learning.softmax import log_softmax


def _classes(name: str, input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    if target._array.dtype.kind not in "iu":
        raise DTypeError(
            message(name, f"class indices must be integers, target is {target.dtype}", hint="target.long()")
        )
    if (
        input.ndim == 0
        or (input.ndim == 1 and target.ndim)
        or (input.ndim > 1 and (input.shape[0], *input.shape[2:]) != tuple(target.shape))
    ):
        raise ShapeError(
            message(
                name,
                f"target of shape {list(target.shape)} does not fit input of shape {list(input.shape)}",
                [("input", input._spec()), ("target", target._spec())],
                "input (N, C, ...) and target (N, ...) of class indices",
            )
        )
    count = input.shape[1 if input.ndim > 1 else 0]
    if weight is not None and tuple(weight.shape) != (count,):
        raise ShapeError(
            message(
                name,
                f"weight has shape {list(weight.shape)}, there are {count} classes",
                [("input", input._spec()), ("weight", weight._spec())],
            )
        )


def _all_count(name: str, target: Tensor, count: int, ignore_index: int) -> bool:
    """Whether no target is seen to be ignored; a class out of range is an error that names it."""
    classes = known_values(target)
    if classes is None:
        return False
    outside = (classes < 0) | (classes >= count)
    if outside.any():
        wrong = classes[outside & (classes != ignore_index)]
        if wrong.size:
            raise IndexOutOfRange(
                message(
                    name,
                    f"target {int(wrong.flat[0])} is out of range for {count} classes",
                    hint="classes count from 0",
                )
            )
        return False
    return not 0 <= ignore_index < count or not (classes == ignore_index).any()


@composite(halves="wide", method=False, torch_name="")
def losses_of_classes(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, name: str
) -> Tensor:
    """The loss of log probabilities and class indices; what `nll_loss` and `cross_entropy` are made of.

    >>> import genesis
    >>> from genesis.ops.losses.classes import losses_of_classes
    >>> losses_of_classes(genesis.tensor([[-1., -2.]]), genesis.tensor([1]), None, -100, "mean", "nll_loss")
    tensor(2.)
    """
    return _of_classes(name, input, target, weight, ignore_index, reduction, 0.0)


samples(
    losses_of_classes,
    lambda t: [
        case(t(4, 3), t.int(4, low=0, high=3), None, -100, "mean", "nll_loss"),
        case(t(2, 3, 4), t.int(2, 4, low=0, high=3), t.positive(3), 1, "sum", "nll_loss"),
        case(t(3), t.int(low=0, high=3), None, -100, "none", "nll_loss"),
    ],
)


def _of_classes(
    name: str, logp: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, smoothing: float
) -> Tensor:
    """The loss of log probabilities and class indices."""
    dim = 1 if logp.ndim > 1 else 0
    if _all_count(name, target, logp.shape[dim], ignore_index) and weight is None and (not smoothing or target.numel()):
        picked = -logp.gather(dim, target.unsqueeze(dim))
        if smoothing:  # a third of the time of what follows
            even = -logp.sum(dim)
            loss = (1 - smoothing) * picked.squeeze(dim) + smoothing / logp.shape[dim] * even
            return loss.sum() / target.numel() if reduction == "mean" else reduced(name, loss, reduction)
        return reduced(name, picked.squeeze(dim) if reduction == "none" else picked, reduction)
    valid = target != ignore_index
    safe = where(valid, target, 0)
    counted = valid.to(logp._array.dtype)
    scale = counted if weight is None else weight[safe.long()] * counted  # uint8 would be a mask
    loss = where(valid, -logp.gather(dim, safe.unsqueeze(dim)).squeeze(dim) * scale, 0.0)
    if smoothing:
        spread = -(logp if weight is None else logp * _over_classes(weight, logp.ndim, dim)).sum(dim)
        loss = (1 - smoothing) * loss + smoothing / logp.shape[dim] * where(valid, spread, 0.0)
    if reduction != "mean":
        return reduced(name, loss, reduction)
    none = ~valid.any()  # then the mean is NaN, and its gradient zero: a batch that does not count changes nothing
    return where(none, math.nan, loss.sum() / where(none, 1, scale.sum()))


@_loss()
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of class indices, $-w_{y} x_{y}$, averaged over the weights of those that count.

    Args:
        input: log probabilities, (N, C, ...) or (C,)
        target: class indices, (N, ...) or a scalar

    Raises:
        IndexError: a class out of range
        RuntimeError: shapes or dtypes that do not fit

    >>> import genesis
    >>> genesis.nn.functional.nll_loss(genesis.tensor([[-1., -2.]]), genesis.tensor([1]))
    tensor(2.)
    """
    expect_tensor("nll_loss", "input", input), expect_tensor("nll_loss", "target", target)
    if size_average is not None or reduce is not None:
        reduction = reduction_of("nll_loss", size_average, reduce, reduction)
        return nll_loss(input, target, weight, None, ignore_index, None, reduction)  # type: ignore[no-any-return]
    _classes("nll_loss", input, target, weight)
    return losses_of_classes(input, target, weight, ignore_index, reduction, "nll_loss")  # type: ignore[no-any-return]


samples(
    nll_loss,
    lambda t: [
        case(t(4, 3), t.int(4, low=0, high=3)),
        case(t(2, 3, 4), t.int(2, 4, low=0, high=3), reduction="sum"),
        case(t(3), t.int(low=0, high=3)),
        case(t(4, 3), t.int(4, low=0, high=3), weight=t.positive(3)),
        case(t(4, 3), t.int(4, low=0, high=3), ignore_index=1, reduction="none"),
    ],
)


wrong_inputs(
    nll_loss,
    (lambda t: case(t(2, 3), t.int(2, low=5, high=6)), IndexError, "nll_loss: target 5 is out of range for 3 classes"),
    (
        lambda t: case(t(2, 3), t.int(3)),
        RuntimeError,
        "nll_loss: target of shape [3] does not fit input of shape [2, 3]",
    ),
    (lambda t: case(t(2, 3), t(2)), RuntimeError, "nll_loss: class indices must be integers"),
)


@_loss()
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits with class indices or class probabilities.

    $-\\sum_c w_c y_c \\ln softmax(x)_c$, with $y$ the (smoothed) one-hot target or the given probabilities.

    Args:
        input: logits, (N, C, ...) or (C,)
        target: class indices (N, ...), or probabilities of the input's shape
        weight: one factor for each class
        ignore_index: targets that do not count
        label_smoothing: the part of the target spread evenly over all classes, in [0, 1]

    Raises:
        IndexError: a class out of range
        RuntimeError: shapes or dtypes that do not fit
        ValueError: smoothing outside [0, 1]

    >>> import genesis
    >>> genesis.nn.functional.cross_entropy(genesis.tensor([[0., 0.]]), genesis.tensor([1]))
    tensor(0.6931)
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentValueError(
            message("cross_entropy", f"label_smoothing must be between 0 and 1, got {label_smoothing}")
        )
    expect_tensor("cross_entropy", "input", input), expect_tensor("cross_entropy", "target", target)
    if size_average is not None or reduce is not None:
        reduction = reduction_of("cross_entropy", size_average, reduce, reduction)
        return cross_entropy(input, target, weight, None, ignore_index, None, reduction, label_smoothing)  # type: ignore[no-any-return]
    dim = 1 if input.ndim > 1 else 0
    if target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing, dim)
    _classes("cross_entropy", input, target, weight)
    logp = log_softmax(input, dim)
    if not label_smoothing:
        return losses_of_classes(logp, target, weight, ignore_index, reduction, "cross_entropy")  # type: ignore[no-any-return]
    return _of_classes("cross_entropy", logp, target, weight, ignore_index, reduction, label_smoothing)


samples(
    cross_entropy,
    lambda t: [
        case(t(4, 3), t.int(4, low=0, high=3)),
        case(t(2, 3, 4), t.int(2, 4, low=0, high=3)),
        case(t(3), t.int(low=0, high=3)),
        case(t(4, 3), t.int(4, low=0, high=3), label_smoothing=0.1, weight=t.positive(3)),
        case(t(4, 3), t(4, 3).softmax(1)),
        case(t(4, 3), t.int(4, low=0, high=3), ignore_index=1, reduction="sum", label_smoothing=0.2),
    ],
)


wrong_inputs(
    cross_entropy,
    (
        lambda t: case(t(2, 3), t.int(2, low=5, high=6)),
        IndexError,
        "cross_entropy: target 5 is out of range for 3 classes",
    ),
    (
        lambda t: case(t(2, 3), t.int(2, low=0, high=2), label_smoothing=1.5),
        ValueError,
        "label_smoothing must be between 0 and 1",
    ),
    (
        lambda t: case(t(2, 3), t.int(3)),
        RuntimeError,
        "cross_entropy: target of shape [3] does not fit input of shape [2, 3]",
    ),
)


def _over_classes(weight: Tensor, ndim: int, dim: int) -> Tensor:
    return weight.reshape([-1 if i == dim else 1 for i in range(ndim)])


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, dim: int
) -> Tensor:
    if input.shape != target.shape:
        of_classes = tuple(target.shape) == (*input.shape[:dim], *input.shape[dim + 1 :])
        raise ShapeError(
            message(
                "cross_entropy",
                f"class indices must be integers, target is {target.dtype} of shape {list(target.shape)}"
                if of_classes
                else f"probabilities of shape {list(target.shape)} do not fit input of shape {list(input.shape)}",
                [("input", input._spec()), ("target", target._spec())],
                "target.long()" if of_classes else "probabilities of the input's shape, or class indices",
            )
        )
    if smoothing:
        target = target * (1 - smoothing) + smoothing / input.shape[dim]
    terms = -log_softmax(input, dim) * target
    loss = (terms if weight is None else terms * _over_classes(weight, input.ndim, dim)).sum(dim)
    if reduction == "mean":
        return loss.sum() / (input.numel() // input.shape[dim])
    return reduced("cross_entropy", loss, reduction)


FUNCTIONAL = ["cross_entropy", "nll_loss"]
__all__: list[str] = []
