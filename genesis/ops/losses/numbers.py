"""Losses of numbers and of likelihoods. Each is a composition; ``reduction`` is "mean", "sum" or "none"."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DomainError,
    ShapeError,
    message,
)
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor
from genesis.core.graph.site import warn_user
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.pointwise.choice import where
from genesis.ops.shapes.expand import broadcast_shapes


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


# PyTorch's words, which filters of programs look for
_AS_PYTORCH = (
    "Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect results due to "
    "broadcasting. Please ensure they have the same size.\n  {}; try: {}"
)


def _paired(name: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:
    """The two tensors of a loss, of one shape."""
    x, y = expect_tensor(name, "input", input), expect_tensor(name, "target", target)
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
    warn_user(_AS_PYTORCH.format(y.shape, x.shape, name, _repairs(x, y)), BroadcastWarning)
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
    if expect_tensor(name, "weight", weight).shape != loss.shape:
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


def _loss(autocast: str = "float32", **options: Any) -> Any:
    def declare(function: Any) -> Any:
        name = f"nn.functional.{function.__name__}"
        return composite(halves="wide", method=False, autocast=autocast, torch_name=name, **options)(function)

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
    near = away.clamp(-delta, delta)
    return near * (away - 0.5 * near)


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


@_loss("float32:gpu")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Negative log likelihood of a normal distribution, $\\frac{1}{2} (\\ln v + (x - y)^2 / v)$.

    Args:
        target: of the input's shape, or with sizes of 1, or 0-d for all
        var: $v$, but at least ``eps``: of the input's shape, without its last dimension or with one size of 1, or a
            number

    Raises:
        ValueError: a ``var`` that is negative, or of another shape
        RuntimeError: a ``target`` of another shape

    >>> import genesis
    >>> genesis.nn.functional.gaussian_nll_loss(genesis.ones(1), genesis.ones(1), genesis.ones(1))
    tensor(0.)
    """
    x, y = expect_tensor("gaussian_nll_loss", "input", input), expect_tensor("gaussian_nll_loss", "target", target)
    if x.ndim != y.ndim and y.ndim:
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
    elif tuple(expect_tensor(name, "var", var).shape) == tuple(input.shape[:-1]) and input.ndim:
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
    known = known_values(var)
    if known is not None and (known < 0).any():
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


FUNCTIONAL = ["gaussian_nll_loss", "huber_loss", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss"]
__all__: list[str] = []
