"""Sums, means and maxima of looked-up rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.errors import ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.core.call.kinds import case, composite
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import tensor
from genesis.ops.learning.embedding import embedding
from genesis.ops.pointwise.choice import where

NAME = "embedding_bag"


def _bags(input: Tensor, offsets: Tensor | None, last: bool) -> tuple[Any, Any] | None:
    """For each bag the places of its numbers in the flat input, and which of these are there; None if all bags have
    as many.
    """
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentValueError(message(NAME, "input (B, n) has bags of n numbers, offsets are for input (N,)"))
        return None
    if input.ndim != 1 or not isinstance(offsets, Tensor) or offsets.ndim != 1:
        text = "input (B, n), or input (N,) and offsets (B,), are needed"
        raise ArgumentValueError(message(NAME, text, [("input", input._spec())]))
    starts = [int(n) for n in offsets.tolist()]
    ends = starts[1:] if last else [*starts[1:], input.shape[0]][: len(starts)]
    starts = starts[: len(ends)]
    if (starts and starts[0] != 0) or any([b < a for a, b in zip(starts, ends, strict=True)]) or (
        ends and ends[-1] > input.shape[0]
    ):  # fmt: skip
        raise ShapeError(message(NAME, f"offsets must grow from 0 to at most {input.shape[0]}, got {offsets.tolist()}"))
    sizes = np.array([b - a for a, b in zip(starts, ends, strict=True)], np.int64)
    steps = np.arange(sizes.max(initial=0))
    there = steps < sizes[:, None]
    return np.where(there, np.array(starts, np.int64)[:, None] + steps, 0), there


@composite(halves="wide", method=False, torch_name="nn.functional.embedding_bag")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of ``weight`` by number, and of each bag of numbers their sum, mean or maximum; zeros of an empty bag.

    Args:
        input: (B, n), bags of n numbers; or (N,), where ``offsets`` (B,) are the beginnings of the bags
        mode: "sum", "mean" or "max"; per_sample_weights: of "sum", a factor for each number
        include_last_offset: the last offset is the end of the last bag
        padding_idx: a number that does not count
        max_norm, norm_type, scale_grad_by_freq, sparse: as of `embedding`

    Raises:
        ValueError: shapes or a mode that do not fit
        RuntimeError, IndexError: offsets or numbers out of range

    >>> import genesis
    >>> weight = genesis.tensor([[1., 2.], [3., 4.], [5., 6.]])
    >>> genesis.nn.functional.embedding_bag(genesis.tensor([0, 1, 2]), weight, genesis.tensor([0, 2]))
    tensor([[2., 3.],
            [5., 6.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ArgumentValueError(message(NAME, f"mode must be 'sum', 'mean' or 'max', got {mode!r}"))
    if mode == "max" and scale_grad_by_freq:
        raise ArgumentValueError(message(NAME, "scale_grad_by_freq is for 'sum' and 'mean'"))
    if mode == "max" and sparse:
        raise ArgumentValueError(message(NAME, "sparse gradients are for 'sum' and 'mean'"))
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ArgumentValueError(message(NAME, "per_sample_weights must have the input's shape",
                                 [("input", input._spec()), ("per_sample_weights", per_sample_weights._spec())]))  # fmt: skip
    if per_sample_weights is not None and mode != "sum":
        raise UnsupportedError(message(NAME, f"per_sample_weights are for mode 'sum', got {mode!r}"))
    if isinstance(input._array, Spec) or (offsets is not None and isinstance(offsets._array, Spec)):
        count = input.shape[0] if offsets is None else offsets.shape[0] - include_last_offset
        return weight.new_empty((count, weight.shape[1]), device=input.device)  # type: ignore[attr-defined, no-any-return]
    bags = _bags(input, offsets, include_last_offset)
    rows = embedding(input, weight, padding_idx if sparse else None, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)  # type: ignore[operator, attr-defined]
    counts = input == input if padding_idx is None else input != padding_idx % weight.shape[0]
    if bags is not None:
        indices, there = (tensor(x, device=input.device) for x in bags)
        if not input.shape[0]:
            return rows.sum(0).expand(indices.shape[0], weight.shape[1]).clone()  # type: ignore[attr-defined, no-any-return]
        rows, counts = rows[indices], counts[indices] & there  # type: ignore[index]
    return _pooled(rows, counts.unsqueeze(-1), mode)  # type: ignore[attr-defined]


def _pooled(rows: Tensor, counts: Tensor, mode: str) -> Tensor:
    """(B, n, D) and which count, to (B, D)."""
    if mode != "max":
        total = where(counts, rows, 0.0).sum(1)  # type: ignore[attr-defined]
        return total if mode == "sum" else total / counts.sum(1).clamp(min=1)  # type: ignore[attr-defined, no-any-return]
    if not rows.shape[1]:
        return rows.sum(1)  # type: ignore[attr-defined, no-any-return]
    most = where(counts, rows, -math.inf).max(1)[0]  # type: ignore[attr-defined]
    return where(counts.any(1), most, 0.0)  # type: ignore[attr-defined]


samples(
    embedding_bag,
    lambda t: [
        case(t.int(2, 3, low=0, high=4), t(4, 2)),
        case(t.int(2, 3, low=0, high=4), t(4, 2), mode="sum", per_sample_weights=t(2, 3)),
        case(t.int(2, 3, low=0, high=4), t(4, 2), mode="max", padding_idx=1),
    ],
)
wrong_inputs(
    embedding_bag,
    (lambda t: case(t.int(2, low=0, high=4), t(4, 2)), ValueError, "input (N,) and offsets (B,)"),
    (lambda t: case(t.int(1, 2, low=0, high=4), t(4, 2), mode="min"), ValueError, "'sum', 'mean' or 'max', got 'min'"),
    (
        lambda t: case(t.int(2, low=0, high=4), t(4, 2), t.int(1, low=1, high=2)),
        RuntimeError,
        "offsets must grow from 0",
    ),
    (lambda t: case(t.int(1, 2, low=9, high=10), t(4, 2)), IndexError, "index 9 is out of range for 4 rows"),
    (
        lambda t: case(t.int(1, 2, low=0, high=4), t(4, 2), per_sample_weights=t(1, 2)),
        NotImplementedError,
        "per_sample_weights are for mode 'sum'",
    ),
)


FUNCTIONAL = ["embedding_bag"]
__all__: list[str] = []
