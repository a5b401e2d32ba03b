"""Connectionist temporal classification, forward and backward in time, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach

IMPOSSIBLE = -np.inf


def _fits(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str, *_: Any) -> bool:  # fmt: skip
    return (
        (log_probs.dtype is F32 or log_probs.dtype is F64)
        and log_probs.ndim == 3
        and log_probs.size > 0
        and targets.dtype.kind in "iu"
        and targets.ndim in (1, 2)
        and 0 <= blank < log_probs.shape[2]
        and reduction in ("mean", "sum", "none")
    )


def _infer(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str, *_: Any) -> Any:  # fmt: skip
    out = Spec(log_probs.shape[1:2] if reduction == "none" else (), log_probs.dtype)
    return out, (Spec(log_probs.shape, log_probs.dtype),)


@attach("ctc_loss", np.ndarray, when=_fits, infer=_infer)
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Any:
    """The kernel of `genesis.nn.functional.ctc_loss`: losses, and the gradient of their sum."""
    sequences = _Sequences(log_probs, targets, input_lengths, target_lengths, blank)
    forward = sequences.forward()
    total = sequences.ends(forward)
    fits = np.isfinite(total)
    shares = np.where(fits, 1.0, 0.0 if zero_infinity else np.nan)
    if reduction == "mean":
        shares /= np.maximum(sequences.lengths, 1) * len(total)
    finite = np.where(fits, total, 0.0)
    gradient = sequences.gradient(forward, finite, shares).astype(log_probs.dtype)
    losses = np.where(fits | zero_infinity, -finite * shares, np.inf)
    loss = losses if reduction == "none" else losses.sum()
    return np.asarray(loss, log_probs.dtype), (gradient,)


@ctc_loss.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    return (g[..., None] * kept[0], *[None] * (len(needs) - 1))


class _Sequences:
    """What a batch of targets may be read along: "blank, target, blank, target, ..., blank", padded."""

    def __init__(self, log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int) -> None:
        self.shape = steps, batch, classes = log_probs.shape
        self.inputs, self.lengths = (np.asarray(n).reshape(-1) for n in (inputs, lengths))
        longest = int(self.lengths.max())
        inside = np.arange(longest) < self.lengths[:, None]
        padded = np.zeros((batch, longest), np.int64)
        padded[inside] = targets if targets.ndim == 1 else targets[:, :longest][inside]
        if (
            not {self.inputs.dtype.kind, self.lengths.dtype.kind} <= {"i", "u"}
            or (targets.ndim == 1 and len(targets) != self.lengths.sum())
            or len(self.inputs) != batch
            or not (self.inputs.min() >= 0 and self.inputs.max() <= steps and self.lengths.min() >= 0)
            or not (padded.min(initial=0) >= 0 and padded.max(initial=0) < classes)
        ):
            raise ValueError("the composition says what is wrong")
        self.path = np.full((batch, 2 * longest + 1), blank)
        self.path[:, 1::2][inside] = padded[inside]
        self.scores = np.take_along_axis(log_probs, self.path[None], 2).astype(F64)
        # a target may follow another one without a blank between them, if it is another one
        self.skips = np.zeros(self.path.shape, bool)
        self.skips[:, 2:] = self.path[:, 2:] != self.path[:, :-2]
        self.last = np.zeros(self.path.shape, bool)
        rows = np.arange(batch)
        self.last[rows, 2 * self.lengths] = True
        self.last[rows, np.maximum(2 * self.lengths - 1, 0)] = True

    def forward(self) -> Any:
        """The logarithm of the probability to be at each point of the path after each step."""
        out = np.full(self.scores.shape, IMPOSSIBLE)
        out[0, :, :2] = self.scores[0, :, :2]
        for t in range(1, len(out)):
            before, now = out[t - 1], out[t]
            now[:] = before
            now[:, 1:] = np.logaddexp(before[:, 1:], before[:, :-1])
            now[:, 2:] = np.logaddexp(now[:, 2:], np.where(self.skips[:, 2:], before[:, :-2], IMPOSSIBLE))
            now += self.scores[t]
        return out

    def ends(self, forward: Any) -> Any:
        """Of each sequence, to be at one of its last two points at its end."""
        at = forward[np.maximum(self.inputs - 1, 0), np.arange(len(self.inputs))]
        total = np.logaddexp.reduce(np.where(self.last, at, IMPOSSIBLE), 1)
        nothing = np.where(self.lengths == 0, 0.0, IMPOSSIBLE)  # is read in no step
        return np.where(self.inputs == 0, nothing, total)

    def gradient(self, forward: Any, total: Any, shares: Any) -> Any:
        """Minus the probability to read each class at each step, given the target."""
        behind = np.where(self.last, 0.0, IMPOSSIBLE)  # of all that comes after a step, from each point
        seen = np.zeros(self.scores.shape)
        state = np.full(self.path.shape, IMPOSSIBLE)
        for t in range(len(forward) - 1, -1, -1):
            state = np.where((self.inputs - 1 == t)[:, None], behind, state)
            seen[t] = np.exp(forward[t] + state - total[:, None])
            there = state + self.scores[t]
            state = there.copy()
            state[:, :-1] = np.logaddexp(there[:, :-1], there[:, 1:])
            state[:, :-2] = np.logaddexp(state[:, :-2], np.where(self.skips[:, 2:], there[:, 2:], IMPOSSIBLE))
        steps, batch, classes = self.shape
        seen *= -shares[:, None]
        positions = (np.arange(steps * batch) * classes).reshape(steps, batch, 1) + self.path
        return np.bincount(positions.reshape(-1), seen.reshape(-1), steps * batch * classes).reshape(self.shape)
