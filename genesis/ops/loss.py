"""Losses. Each is a composition; ``reduction`` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

import numpy as np

from genesis.arrays.protocol import Virtual, bottom
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DomainError,
    DTypeError,
    IndexOutOfRange,
    ShapeError,
    message,
)
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import case, composite
from genesis.core.graph.site import warn_user
from genesis.core.graph.tracing import tracer
from genesis.core.graph.tensor import Tensor
from genesis.ops.activation import log1pexp
from genesis.ops.elementwise import where
from genesis.ops.shape import broadcast_shapes
from genesis.ops.softmax import log_softmax


def reduced(
    name: str, loss: Tensor, reduction: str, size_average: bool | None = None, reduce: bool | None = None
) -> Tensor:
    """The mean, the sum, or the losses themselves."""
    reduction = reduction_of(name, size_average, reduce, reduction)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ArgumentValueError(message(name, f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}"))
    return loss


def reduction_of(name: str, size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that PyTorch's old arguments mean, with PyTorch's warning, where they are given."""
    if size_average is None and reduce is None:
        return reduction
    for what, value in (("size_average", size_average), ("reduce", reduce)):
        if isinstance(value, str):
            raise ArgumentError(
                message(name, f"{what} must be True or False, got {value!r}", hint=f"reduction={value!r}")
            )
    average, once = size_average is None or size_average, reduce is None or reduce
    meant = "mean" if average and once else "sum" if once else "none"
    warn_user(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant


class BroadcastWarning(UserWarning):
    """A loss of an input and a target of different shapes, computed because `allow_loss_broadcast` is on."""


_broadcasts: ContextVar[bool] = ContextVar("genesis_loss_broadcast", default=False)


class allow_loss_broadcast:
    """Let losses broadcast their input and target against each other, with a `BroadcastWarning`, as PyTorch does.

    Without it different shapes are an error: of a prediction (4, 1) and a target (4,) the mean would be taken over (4,
    4) differences. For programs that rely on it: in force from the call on, or inside a ``with`` block, in this thread.

    >>> import genesis, warnings
    >>> warnings.simplefilter("ignore", genesis.nn.BroadcastWarning)
    >>> with genesis.nn.allow_loss_broadcast():
    ...     genesis.nn.functional.mse_loss(genesis.zeros(2, 3), genesis.ones(3))
    tensor(1.)
    """

    def __init__(self, mode: bool = True) -> None:
        self._token = _broadcasts.set(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _broadcasts.reset(self._token)


def _tensor(name: str, what: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(message(name, f"{what} must be a tensor, got {type(value).__name__}"))
    return value


def _paired(name: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """The two tensors of a loss, of one shape."""
    x, y = _tensor(name, "input", input), _tensor(name, "target", target)
    if x._array.shape == y._array.shape:
        return x, y
    text = message(
        name,
        f"shapes differ, input {list(x.shape)} and target {list(y.shape)}",
        [("input", x._spec()), ("target", y._spec())],
        _repairs(x, y),
    )
    if not _broadcasts.get():
        raise ShapeError(text)
    warn_user(text, BroadcastWarning)
    shape = broadcast_shapes(x.shape, y.shape)
    return x.expand(shape), y.expand(shape)


def _repairs(x: Tensor, y: Tensor) -> str:
    """What brings the two to one shape: on the side of the input, or on that of the target."""
    a, b = list(x.shape), list(y.shape)
    for i in range(max(len(a), len(b))):
        if a[:i] + a[i + 1 :] == b and a[i] == 1:
            return f"input.squeeze({i - len(a)}), or target.unsqueeze({i - len(a)})"
        if b[:i] + b[i + 1 :] == a and b[i] == 1:
            return f"input.unsqueeze({i - len(b)}), or target.squeeze({i - len(b)})"
    if math.prod(a) == math.prod(b):
        return "input.reshape(target.shape), or target.reshape(input.shape)"
    return "target.expand_as(input), or input.expand_as(target), if one is meant for all"


def _weighted(name: str, loss: Tensor, weight: Tensor | None) -> Tensor:
    """The losses times one factor for each."""
    if weight is None:
        return loss
    if _tensor(name, "weight", weight).shape != loss.shape:
        text = f"weight of shape {list(weight.shape)} is not the input's, {list(loss.shape)}"
        raise ArgumentValueError(
            message(name, text, [("input", loss._spec()), ("weight", weight._spec())], "weight.expand_as(input)")
        )
    return loss * weight


def _average(name: str, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """`reduced` of weighted losses, whose mean is divided by the sum of the weights."""
    loss = _weighted(name, loss, weight)
    return reduced(name, loss, reduction) if weight is None or reduction != "mean" else loss.sum() / weight.sum()


_two = lambda t: [case(t(2, 3), t(2, 3)), case(t(2, 3), t(2, 3), reduction="sum"), case(t(3), t(3), reduction="none")]  # noqa: E731
_heavy = lambda t: [
    *_two(t),
    case(t(2, 3), t(2, 3), weight=t.positive(2, 3)),
    case(t(3), t(3), weight=t.positive(3), reduction="none"),
]  # noqa: E731
_bad_reduction = (
    lambda t: case(t(2), t(2), reduction="avg"),
    ValueError,
    "reduction must be 'mean', 'sum' or 'none', got 'avg'",
)
_bad_weight = (lambda t: case(t(2), t(2), weight=t(1)), ValueError, "weight of shape [1] is not the input's, [2]")


def _loss(**options: Any) -> Any:
    def declare(function: Any) -> Any:
        return composite(
            halves="wide", method=False, autocast="float32", torch_name="nn.functional." + function.__name__, **options
        )(function)

    return declare


@_loss()
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared error, $(x - y)^2$.

    >>> import genesis
    >>> genesis.nn.functional.mse_loss(genesis.tensor([1., 2.]), genesis.tensor([1., 4.]))
    tensor(2.)
    """
    x, y = _paired("mse_loss", input, target)
    return _average("mse_loss", (x - y).square(), weight, reduction_of("mse_loss", size_average, reduce, reduction))


samples(mse_loss, _heavy)

wrong_inputs(mse_loss, _bad_reduction, _bad_weight)


@_loss()
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute error, $|x - y|$.

    >>> import genesis
    >>> genesis.nn.functional.l1_loss(genesis.tensor([1., 2.]), genesis.tensor([1., 4.]))
    tensor(1.)
    """
    x, y = _paired("l1_loss", input, target)
    return _average("l1_loss", (x - y).abs(), weight, reduction_of("l1_loss", size_average, reduce, reduction))


samples(l1_loss, _heavy)

wrong_inputs(l1_loss, _bad_reduction, _bad_weight)


@_loss()
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squared error near zero, absolute error from ``delta`` on (Huber 1964).

    Raises:
        ValueError: ``delta`` is not positive

    >>> import genesis
    >>> genesis.nn.functional.huber_loss(genesis.tensor([1.]), genesis.tensor([4.]))
    tensor(2.5000)
    """
    if delta <= 0:
        raise ArgumentValueError(message("huber_loss", f"delta must be positive, got {delta}"))
    return reduced(
        "huber_loss", _weighted("huber_loss", _huber(*_paired("huber_loss", input, target), delta), weight), reduction
    )


samples(huber_loss, _heavy)

wrong_inputs(
    huber_loss, (lambda t: case(t(2), t(2), delta=0.0), ValueError, "huber_loss: delta must be positive, got 0.0")
)


def _huber(x: Tensor, y: Tensor, delta: float) -> Tensor:
    away = x - y
    size = away.abs()
    return where(size <= delta, 0.5 * away * away, delta * (size - 0.5 * delta))


@_loss()
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`huber_loss` divided by ``beta``; with ``beta=0`` the absolute error.

    >>> import genesis
    >>> genesis.nn.functional.smooth_l1_loss(genesis.tensor([1.]), genesis.tensor([4.]))
    tensor(2.5000)
    """
    if beta < 0:
        raise ArgumentValueError(message("smooth_l1_loss", f"beta must not be negative, got {beta}"))
    x, y = _paired("smooth_l1_loss", input, target)
    return reduced(
        "smooth_l1_loss", _huber(x, y, beta) / beta if beta else (x - y).abs(), reduction, size_average, reduce
    )


samples(smooth_l1_loss, _two)

wrong_inputs(
    smooth_l1_loss,
    (lambda t: case(t(2), t(2), beta=-1.0), ValueError, "smooth_l1_loss: beta must not be negative, got -1.0"),
)


# ---- classification


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
    classes = bottom(target._array)  # of all samples, under vmap
    if isinstance(classes, Virtual) or tracer.get() is not None:
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


def _of_classes(
    name: str, logp: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, smoothing: float
) -> Tensor:
    """The loss of log probabilities and class indices."""
    dim = 1 if logp.ndim > 1 else 0
    if _all_count(name, target, logp.shape[dim], ignore_index) and weight is None and not smoothing:
        picked = -logp.gather(dim, target.unsqueeze(dim))
        return reduced(name, picked.squeeze(dim) if reduction == "none" else picked, reduction)
    valid = target != ignore_index
    safe = where(valid, target, 0)
    counted = valid.to(logp._array.dtype)
    scale = counted if weight is None else weight[safe] * counted
    loss = where(valid, -logp.gather(dim, safe.unsqueeze(dim)).squeeze(dim) * scale, 0.0)
    if smoothing:
        spread = -(logp if weight is None else logp * _over_classes(weight, logp.ndim, dim)).sum(dim)
        loss = (1 - smoothing) * loss + smoothing / logp.shape[dim] * where(valid, spread, 0.0)
    return loss.sum() / scale.sum() if reduction == "mean" else reduced(name, loss, reduction)


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
    _tensor("nll_loss", "input", input), _tensor("nll_loss", "target", target)
    _classes("nll_loss", input, target, weight)
    return _of_classes(
        "nll_loss", input, target, weight, ignore_index, reduction_of("nll_loss", size_average, reduce, reduction), 0.0
    )


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
    _tensor("cross_entropy", "input", input), _tensor("cross_entropy", "target", target)
    dim = 1 if input.ndim > 1 else 0
    reduction = reduction_of("cross_entropy", size_average, reduce, reduction)
    if target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing, dim)
    _classes("cross_entropy", input, target, weight)
    return _of_classes(
        "cross_entropy", log_softmax(input, dim), target, weight, ignore_index, reduction, label_smoothing
    )


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


def _same_shape(name: str, input: Any, target: Any) -> None:
    x, y = _tensor(name, "input", input), _tensor(name, "target", target)
    if x.shape != y.shape:
        text = f"target of shape {list(y.shape)} is not the input's, {list(x.shape)}"
        raise ArgumentValueError(message(name, text, [("input", x._spec()), ("target", y._spec())], _repairs(x, y)))


_unit = lambda t: [
    case(t(2, 3, low=0.1, high=0.9), t(2, 3, low=0.1, high=0.9)),
    case(t(3, low=0.1, high=0.9), t(3, low=0, high=1), t.positive(3), reduction="sum"),
]  # noqa: E501, E731


def _check_unit(what: str, x: Tensor) -> None:
    """Refuse numbers outside [0, 1] where they are known."""
    values = bottom(x._array)
    if (
        tracer.get() is None
        and isinstance(values, np.ndarray)
        and values.size
        and not (values.min() >= 0 and values.max() <= 1)
    ):
        raise DomainError(
            message(
                "binary_cross_entropy",
                f"all elements of {what} must be between 0 and 1, they are between {values.min()} and {values.max()}",
                hint="x.sigmoid(), or binary_cross_entropy_with_logits",
            )
        )


@_loss()
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities, $-(y \\ln x + (1 - y) \\ln(1 - x))$; logarithms are not below -100.

    >>> import genesis
    >>> genesis.nn.functional.binary_cross_entropy(genesis.tensor([0.5]), genesis.tensor([1.]))
    tensor(0.6931)
    """
    _same_shape("binary_cross_entropy", input, target)
    _check_unit("input", input)
    _check_unit("target", target)
    loss = -(target * input.log().clamp(min=-100) + (1 - target) * (1 - input).log().clamp(min=-100))
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction, size_average, reduce)


samples(binary_cross_entropy, _unit)

wrong_inputs(
    binary_cross_entropy,
    (lambda t: case(t(2, low=0, high=1), t(2, low=0, high=1), reduction="max"), ValueError, "reduction"),
    (lambda t: case(t(2, low=1.1, high=1.5), t(2, low=0.1, high=0.9)), RuntimeError, "all elements of input must be"),
)


@_loss()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; ``pos_weight`` scales the positive part.

    >>> import genesis
    >>> genesis.nn.functional.binary_cross_entropy_with_logits(genesis.tensor([0.]), genesis.tensor([1.]))
    tensor(0.6931)
    """
    _same_shape("binary_cross_entropy_with_logits", input, target)
    positive = target if pos_weight is None else target * pos_weight
    loss = positive * log1pexp(-input) + (1 - target) * log1pexp(input)
    return reduced(
        "binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction, size_average, reduce
    )


samples(
    binary_cross_entropy_with_logits,
    lambda t: [
        case(t(2, 3), t(2, 3, low=0, high=1)),
        case(t(2, 3), t(2, 3, low=0, high=1), pos_weight=t.positive(3), reduction="none"),
    ],
)

wrong_inputs(binary_cross_entropy_with_logits, _bad_reduction)


@_loss()
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback and Leibler's divergence, $y (\\ln y - x)$ with x the log probabilities; also reduction "batchmean".

    >>> import genesis
    >>> genesis.nn.functional.kl_div(genesis.zeros(2), genesis.ones(2), reduction="sum")
    tensor(0.)
    """
    input, target = _paired("kl_div", input, target)
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    reduction = reduction_of("kl_div", size_average, reduce, reduction)
    return loss.sum() / input.shape[0] if reduction == "batchmean" else reduced("kl_div", loss, reduction)


samples(kl_div, lambda t: [case(t(2, 3), t.positive(2, 3)), case(t(2, 3), t(2, 3), reduction="sum", log_target=True)])


@_loss()
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along ``dim``.

    >>> import genesis
    >>> genesis.nn.functional.cosine_similarity(genesis.tensor([[1., 0.]]), genesis.tensor([[1., 1.]]))
    tensor([0.7071])
    """
    from genesis.ops.reduce import norm

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
    return reduced("margin_ranking_loss", (margin - target * (input1 - input2)).relu(), reduction, size_average, reduce)


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
    from genesis.ops.reduce import norm

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
    return reduced("triplet_margin_loss", (near - far + margin).relu(), reduction, size_average, reduce)


samples(triplet_margin_loss, lambda t: [case(t(3, 4), t(3, 4), t(3, 4))])

wrong_inputs(
    triplet_margin_loss,
    (lambda t: case(t(2), t(2), t(2), margin=0.0), ValueError, "triplet_margin_loss: margin must be positive, got 0.0"),
)


@_loss()
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Negative log likelihood of a normal distribution, $\\frac{1}{2} (\\ln v + (x - y)^2 / v)$.

    Args:
        target: of the input's shape, or with sizes of 1
        var: $v$, but at least ``eps``: of the input's shape, without its last dimension or with one size of 1, or a
            number

    Raises:
        ValueError: a ``var`` that is negative, or of another shape
        RuntimeError: a ``target`` of another shape

    >>> import genesis
    >>> genesis.nn.functional.gaussian_nll_loss(genesis.ones(1), genesis.ones(1), genesis.ones(1))
    tensor(0.)
    """
    x, y = _tensor("gaussian_nll_loss", "input", input), _tensor("gaussian_nll_loss", "target", target)
    if x.ndim != y.ndim:
        _paired("gaussian_nll_loss", x, y)
    var = _variance(x, var)
    limited = where(var < eps, var - var.detach() + eps, var)  # the gradient passes, as if nothing had been limited
    loss = 0.5 * (limited.log() + (input - target).square() / limited)
    return reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


samples(
    gaussian_nll_loss,
    lambda t: [
        case(t(3), t(3), t.positive(3)),
        case(t(3), t(3), t.positive(3), True),
        case(t(2, 3), t(2, 3), t.positive(2)),
        case(t(2, 3), t(2, 3), t.positive(2, 1)),
        case(t(2, 3), t(2, 3), 0.5),
    ],
)

wrong_inputs(
    gaussian_nll_loss,
    (
        lambda t: case(t(2, 3), t(2, 3), t.positive(3)),
        ValueError,
        "gaussian_nll_loss: var of shape [3] does not fit input of shape [2, 3]",
    ),
    (lambda t: case(t(2), t(2), -t.positive(2)), ValueError, "gaussian_nll_loss: var must not be negative"),
    (
        lambda t: case(t(2, 1), t(2), t.positive(2, 1)),
        RuntimeError,
        "gaussian_nll_loss: shapes differ, input [2, 1] and target [2]",
    ),
)


def _variance(input: Tensor, var: Any) -> Tensor:
    """A variance that broadcasts over the input, and only in the ways that are meant."""
    name = "gaussian_nll_loss"
    if isinstance(var, int | float) and not isinstance(var, bool):
        var = input.new_full((), var)
    elif tuple(_tensor(name, "var", var).shape) == tuple(input.shape[:-1]) and input.ndim:
        var = var.unsqueeze(-1)
    elif var.ndim != input.ndim or [n for m, n in zip(input.shape, var.shape, strict=True) if m != n] not in ([], [1]):
        raise ArgumentValueError(
            message(
                name,
                f"var of shape {list(var.shape)} does not fit input of shape {list(input.shape)}",
                [("input", input._spec()), ("var", var._spec())],
                "var of the input's shape, without its last dimension, or with one size of 1",
            )
        )
    known = bottom(var._array)
    if not isinstance(known, Virtual) and tracer.get() is None and (known < 0).any():
        raise DomainError(
            message(
                name,
                f"var must not be negative, got {known[known < 0].flat[0] if known.ndim else known}",
                hint="a variance, such as log_var.exp()",
            )
        )
    return var  # type: ignore[no-any-return]


@_loss()
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood of a Poisson distribution, $e^x - y x$ (or $x - y \\ln x$).

    >>> import genesis
    >>> genesis.nn.functional.poisson_nll_loss(genesis.zeros(1), genesis.ones(1))
    tensor(1.)
    """
    input, target = _paired("poisson_nll_loss", input, target)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + where(target > 1, stirling, 0.0)
    return reduced("poisson_nll_loss", loss, reduction, size_average, reduce)


samples(poisson_nll_loss, lambda t: [case(t(3), t.positive(3)), case(t.positive(3), t.positive(3), log_input=False)])


FUNCTIONAL = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "triplet_margin_loss",
]
__all__ = ["cosine_similarity"]
