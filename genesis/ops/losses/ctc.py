"""Connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, message
from genesis.core.call.kinds import case
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.refusal import expect_tensor
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.create import full
from genesis.ops.creation.outside import tensor
from genesis.ops.losses.numbers import _loss, reduced
from genesis.ops.pointwise.choice import where
from genesis.ops.reductions.norms import logsumexp
from genesis.ops.shapes.join import cat, stack

LOW = -1e30  # the logarithm of what is impossible: a sum of such numbers is finite, and so are its gradients


def _lengths(what: str, given: Any, batch: int, most: int) -> list[int]:
    lengths = given.tolist() if isinstance(given, Tensor) else given
    lengths = list(lengths) if isinstance(lengths, list | tuple) else [lengths]
    if not all([isinstance(n, int) and not isinstance(n, bool) for n in lengths]):
        raise ArgumentError(message("ctc_loss", f"{what} must be integers, got {given}"))
    if len(lengths) != batch:
        raise ShapeError(message("ctc_loss", f"{len(lengths)} {what} for a batch of {batch}"))
    if any([not 0 <= n <= most for n in lengths]):
        raise ShapeError(message("ctc_loss", f"{what} must be from 0 to {most}, got {lengths}"))
    return lengths


def _padded(targets: Tensor, lengths: list[int]) -> Tensor:
    """The targets of each sequence as a row, of those that stand one after the other."""
    longest, starts = max(lengths, default=0), [sum(lengths[:i]) for i in range(len(lengths))]
    if not longest:
        return targets.new_zeros((len(lengths), 0))  # type: ignore[attr-defined, no-any-return]
    last = max(targets.shape[0] - 1, 0)
    return targets[tensor([[min(s + j, last) for j in range(longest)] for s in starts], device=targets.device)]  # type: ignore[index]


def _steps(log_probs: Tensor, targets: Tensor, blank: int, input_lengths: list[int]) -> Tensor:
    """The log probability to be at each place of "blank, target, blank, target, ..., blank" when the input ends."""
    steps, batch, _ = log_probs.shape
    blanks = full(targets.shape, blank, dtype=targets.dtype, device=targets.device)
    last = full((batch, 1), blank, dtype=targets.dtype, device=targets.device)
    path = cat([stack([blanks, targets], -1).reshape(batch, -1), last], -1)
    scores = log_probs.gather(2, path.expand(steps, *path.shape)).clamp(min=LOW)  # type: ignore[attr-defined]
    never = lambda n: full((batch, n), LOW, dtype=scores.dtype, device=scores.device)  # noqa: E731
    states = path.shape[1]
    # a target may follow another one without a blank between them, if it is another one
    skips = cat([never(2) == 0, path[:, 2:] != path[:, :-2]], 1)[:, :states]  # type: ignore[index]
    state = cat([scores[0, :, :2], never(max(states - 2, 0))], 1)
    going = tensor(input_lengths, device=log_probs.device).unsqueeze(1)  # type: ignore[attr-defined]
    for t in range(1, max(input_lengths, default=0)):
        one = cat([never(1), state[:, :-1]], 1)
        two = where(skips, cat([never(2), state], 1)[:, :states], LOW)  # type: ignore[index]
        new = (logsumexp(stack([state, one, two]), 0) + scores[t]).clamp(min=LOW)
        state = where(t < going, new, state)
    return state


@_loss()
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of the targets, over all alignments with the input (Graves et al. 2006).

    Args:
        log_probs: (T, N, C), logarithms of probabilities, or (T, C) without a batch
        targets: (N, S) padded, or (sum of the lengths,): class indices, without ``blank``
        input_lengths, target_lengths: N integers each
        reduction: "mean" divides each loss by its target's length (1, if that is 0) before
        zero_infinity: zeros for targets that do not fit into their input; else their loss is infinite

    Raises:
        RuntimeError: shapes, lengths or dtypes that do not fit

    >>> import genesis
    >>> log_probs = genesis.zeros(3, 1, 2).log_softmax(-1)
    >>> genesis.nn.functional.ctc_loss(log_probs, genesis.tensor([[1]]), [3], [1])
    tensor(0.2877)
    """
    name = "ctc_loss"
    expect_tensor(name, "log_probs", log_probs), expect_tensor(name, "targets", targets)
    given = [("log_probs", log_probs._spec()), ("targets", targets._spec())]
    alone = log_probs.ndim == 2
    if log_probs.ndim not in (2, 3) or targets.ndim not in (1, 2):
        raise ShapeError(message(name, "log_probs (T, N, C) or (T, C) and targets (N, S) or (S,) are needed", given))
    if targets._array.dtype.kind not in "iu":
        raise DTypeError(message(name, f"targets must be integers, they are {targets.dtype}", hint="targets.long()"))
    if alone:
        log_probs = log_probs.unsqueeze(1)  # type: ignore[attr-defined]
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ShapeError(message(name, f"blank is {blank}, there are {classes} classes", given))
    if targets.ndim == 2 and targets.shape[0] != batch:
        raise ShapeError(message(name, f"{targets.shape[0]} rows of targets for a batch of {batch}", given))
    inputs = _lengths("input_lengths", input_lengths, batch, steps)
    lengths = _lengths("target_lengths", target_lengths, batch, targets.shape[-1])
    if targets.ndim == 1:
        if sum(lengths) != targets.shape[0]:
            raise ShapeError(message(name, f"target_lengths are {sum(lengths)} together, targets {targets.shape[0]}"))
        targets = _padded(targets, lengths)
    if steps == 0:
        log_probs = full((1, batch, classes), 0.0, dtype=log_probs.dtype, device=log_probs.device)
    state = _steps(log_probs, targets.long(), blank, inputs)  # type: ignore[attr-defined]
    ends = tensor([[2 * n, max(2 * n - 1, 0)] for n in lengths], device=log_probs.device).reshape(batch, 2)
    no_target, nothing = (tensor(x, dtype="bool", device=log_probs.device) for x in (
        [n == 0 for n in lengths], [n == 0 for n in inputs]))  # fmt: skip
    end = state.gather(1, ends)  # type: ignore[attr-defined]
    loss = -logsumexp(stack([end[:, 0], where(no_target, LOW, end[:, 1])]), 0)
    loss = where(nothing, where(no_target, 0.0, -LOW), loss)
    impossible = loss > -0.1 * LOW
    # the inner choice keeps the infinite gradients to their own sequences
    loss = where(impossible, 0.0 if zero_infinity else where(impossible, loss, 0.0) * math.inf, loss)
    if reduction == "mean":
        return (loss / tensor([max(n, 1) for n in lengths], device=log_probs.device)).mean()  # type: ignore[attr-defined]
    if reduction not in ("none", "sum"):
        raise ArgumentValueError(message(name, f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}"))
    return reduced(name, loss.squeeze(0) if alone else loss, reduction)


def _cases(t: Any) -> list[Any]:
    x = lambda *shape: t(*shape).log_softmax(-1)  # noqa: E731
    return [
        case(x(4, 2, 3), t.int(2, 2, low=1, high=3), (4, 4), (1, 2)),
        case(x(5, 2, 3), t.int(3, low=0, high=2), (5, 4), (2, 1), blank=2, reduction="none"),
        case(x(4, 3), t.int(2, low=1, high=3), (4,), (2,), reduction="sum"),
        case(x(2, 1, 3), t.int(1, 2, low=1, high=2), (2,), (2,), zero_infinity=True),
    ]


samples(ctc_loss, _cases)
wrong_inputs(
    ctc_loss,
    (lambda t: case(t(4, 2, 3), t.int(2, 2, low=1, high=3), (5, 4), (1, 2)), RuntimeError, "from 0 to 4, got"),
    (lambda t: case(t(4, 2, 3), t.int(2, 2, low=1, high=3), (4,), (1, 2)), RuntimeError, "1 input_lengths for a batch"),
    (lambda t: case(t(4, 2, 3), t.int(2, 2, low=1, high=3), (4, 4), (1, 3)), RuntimeError, "target_lengths must be"),
    (lambda t: case(t(4, 2, 3), t.int(4, low=1, high=3), (4, 4), (1, 2)), RuntimeError, "are 3 together, targets 4"),
    (lambda t: case(t(4, 2, 3), t(2, 2), (4, 4), (1, 2)), RuntimeError, "targets must be integers"),
    (lambda t: case(t(4, 2, 3), t.int(2, 2), (4, 4), (1, 2), blank=3), RuntimeError, "blank is 3, there are 3 classes"),
)


FUNCTIONAL = ["ctc_loss"]
__all__: list[str] = []
