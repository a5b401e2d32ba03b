"""Losses of probabilities, each of its own: yes or no, and divergences."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentValueError, DomainError, message
from genesis.core.call.kinds import case
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor
from genesis.core.graph.tensor import Tensor, known_values
from genesis.ops.losses.numbers import _bad_reduction, _loss, _paired, _repairs, reduced, reduction_of
from genesis.ops.pointwise.curves import bounded_log, bounded_log1p, log1pexp


def _same_shape(name: str, input: Any, target: Any) -> None:
    x, y = expect_tensor(name, "input", input), expect_tensor(name, "target", target)
    if x.shape != y.shape:
        text = f"target of shape {list(y.shape)} is not the input's, {list(x.shape)}"
        raise ArgumentValueError(message(name, text, [("input", x._spec()), ("target", y._spec())], _repairs(x, y)))


_unit = lambda t: [
    case(t(2, 3, low=0.1, high=0.9), t(2, 3, low=0.1, high=0.9)),
    case(t(3, low=0.1, high=0.9), t(3, low=0, high=1), t.positive(3), reduction="sum"),
]  # noqa: E501, E731


def _check_unit(what: str, x: Tensor) -> None:
    """Refuse numbers outside [0, 1] where they are known."""
    values = known_values(x)
    if values is not None and values.size and not (values.min() >= 0 and values.max() <= 1):
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
    loss = -(target * bounded_log(input) + (1 - target) * bounded_log1p(-input))
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
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduced("kl_div", loss, reduction)


samples(kl_div, lambda t: [case(t(2, 3), t.positive(2, 3)), case(t(2, 3), t(2, 3), reduction="sum", log_target=True)])


FUNCTIONAL = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"]
__all__: list[str] = []
