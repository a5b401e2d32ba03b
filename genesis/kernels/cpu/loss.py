"""Cross entropy of float32 logits and class indices: the softmax of the forward is what the backward needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach


def _fits(
    input: Any,
    target: Any,
    weight: Any,
    size_average: Any,
    ignore_index: int,
    reduce: Any,
    reduction: str,
    label_smoothing: float,
) -> bool:
    """One row of logits for each index, and the mean of the losses."""
    return (
        input.dtype == F32
        and input.ndim == 2
        and input.size > 0
        and target.dtype.kind in "iu"
        and target.shape == input.shape[:1]
        and weight is None
        and size_average is None
        and reduce is None
        and reduction == "mean"
        and label_smoothing == 0
    )


def _infer(input: Spec, *_: Any) -> tuple[Spec, tuple[Any, ...]]:
    rows = input.shape[:1]
    return Spec((), F32), (input, Spec(rows, np.dtype(np.int64)), Spec(rows, F32))


@attach("cross_entropy", np.ndarray, when=_fits, infer=_infer)
def cross_entropy(input: Any, target: Any, weight: None, size_average: None, ignore_index: int, *_: Any) -> Any:
    """The kernel of `genesis.nn.functional.cross_entropy`."""
    counts = target != ignore_index
    whole = bool(np.logical_and.reduce(counts))  # methods of arrays cost 2 us more
    classes = target.astype(np.int64) if whole else np.where(counts, target, 0).astype(np.int64, copy=False)
    if np.maximum.reduce(classes.view(np.uint64)) >= input.shape[1]:  # negative ones are large
        raise IndexError(classes)
    shares = np.subtract(input, np.maximum.reduce(input, 1, None, None, True), order="C")
    picked = shares[np.arange(len(classes)), classes]
    np.exp(shares, shares)
    total = np.add.reduce(shares, 1, None, None, True)
    shares /= total
    losses = np.log(total[:, 0])
    losses -= picked
    if whole:
        count, share = F32.type(len(classes)), np.full(len(classes), F32.type(1) / F32.type(len(classes)), F32)
    else:
        count, losses = F32.type(counts.sum()), np.where(counts, losses, 0)
        share = (counts / np.maximum(count, 1)).astype(F32, copy=False)  # of each row in the mean
    return np.asarray(np.add.reduce(losses) / count), (shares, classes, share)


@cross_entropy.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    shares, classes, share = kept
    scale = (share * g)[:, None]
    gx = shares * scale
    gx[np.arange(len(classes)), classes] -= scale[:, 0]
    if not np.logical_and.reduce(share):
        gx[share == 0] = 0
    return gx, None, None
