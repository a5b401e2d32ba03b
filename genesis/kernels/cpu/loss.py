"""Cross entropy of float32 logits and class indices: the softmax of the forward is what the backward needs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.dtypes import from_numpy
from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.core.graph.tensor import wrap
from genesis.kernels import heads


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
    rows, many = input.shape
    counts = target != ignore_index
    whole = np.count_nonzero(counts) == rows  # a reduction takes five times as long
    classes = target.astype(np.int64) if whole else np.where(counts, target, 0).astype(np.int64, copy=False)
    if np.maximum.reduce(classes.view(np.uint64)) >= many:  # negative ones are large
        raise IndexError(classes)
    positions = np.add(classes, _starts(rows, many), classes)
    shares = np.subtract(input, np.maximum.reduce(input, 1, None, None, True), order="C")
    picked = shares.reshape(-1)[positions]
    np.exp(shares, shares)
    total = np.add.reduce(shares, 1, None, None, True)
    np.divide(shares, total, shares)
    losses = np.log(total.reshape(-1))
    np.subtract(losses, picked, losses)
    if whole:
        count = F32.type(rows)
        share = np.empty(rows, F32)
        share.fill(F32.type(1) / count)
    else:
        count, losses = F32.type(counts.sum()), np.where(counts, losses, 0)
        share = (counts / np.maximum(count, 1)).astype(F32, copy=False)  # of each row in the mean
    return np.asarray(np.add.reduce(losses) / count), (shares, positions, share)


@functools.lru_cache(maxsize=64)
def _starts(rows: int, many: int) -> Any:
    """Where each row begins."""
    return np.arange(0, rows * many, many)


@cross_entropy.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    shares, positions, share = kept
    scale = np.multiply(share, g)
    gx = np.multiply(shares, scale[:, None])
    gx.reshape(-1)[positions] -= scale
    if np.count_nonzero(share) != len(share):
        gx[share == 0] = 0
    return gx, None, None


def _add_product(total: Any, left: Any, right: Any, adds: bool) -> None:
    dtype, whole = from_numpy(total.dtype), wrap(total)
    product = wrap(left).to(dtype) @ wrap(right).to(dtype)
    whole.add_(product) if adds else whole.copy_(product)


heads.attach_to(np.ndarray, _add_product)
