"""Losses of class indices: what the forward knows of softmaxes and classes is what the backward needs."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.dtypes import from_numpy
from genesis.base.quiet import quietly
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.core.graph.tensor import wrap
from genesis.kernels import heads
from genesis.kernels.cpu import classes
from genesis.kernels.llvm import loops
from genesis.ops.indexing.gather import coordinates
from genesis.ops.indexing.keys import all_within
from genesis.ops.reductions.along import average, total

_I64 = np.dtype(np.int64)
_FEW = 1 << 12, 1 << 18  # losses, and numbers they are picked from, at most, of which the composition takes longer


def _classes(target: Any, ignore_index: int, many: int) -> tuple[Any, Any]:
    """Class indices as int64 numbers, 0 for those that are ignored; and which of them count, None for all.

    Raises:
        IndexError: one is no class
    """
    classes = target.astype(_I64, copy=False)
    if not 0 <= ignore_index < many and all_within(classes, many):
        return classes, None  # one look at the largest of them
    counts = classes != ignore_index
    classes = np.where(counts, classes, 0)
    if not all_within(classes, many):
        raise IndexError(classes)
    return classes, None if np.count_nonzero(counts) == counts.size else counts


# ---- the mean of the losses of rows of float32 logits, also in traces


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
    return Spec((), F32), (input, Spec(rows, _I64), Spec(rows, F32))


@attach("cross_entropy", np.ndarray, when=_fits, infer=_infer, quiet=True)
def cross_entropy(input: Any, target: Any, weight: None, size_average: None, ignore_index: int, *_: Any) -> Any:
    """The kernel of `genesis.nn.functional.cross_entropy`."""
    if loops.available():
        return classes.of_logits(True, input, target, ignore_index)
    return quietly(_mean_and_shares, input, target, ignore_index)


def _mean_and_shares(input: Any, target: Any, ignore_index: int) -> Any:
    loss, shares, sums, counts, own = _mean_of_rows(input, target, ignore_index)
    np.divide(shares, sums, shares)
    if counts is None:
        share = np.empty(len(shares), F32)
        share.fill(F32.type(1) / F32.type(len(shares)))
    else:
        share = (counts / np.maximum(F32.type(counts.sum()), 1)).astype(F32, copy=False)  # of each row in the mean
    return loss, (shares, own.copy() if own is target else own, share)


def _mean_of_rows(input: Any, target: Any, ignore_index: int) -> tuple[Any, ...]:
    """The loss; exponentials of logits and their sums; which rows count, and their classes."""
    rows, many = input.shape
    own, counts = _classes(target, ignore_index, many)
    shares = np.subtract(input, np.maximum.reduce(input, 1, None, None, True), order="C")
    picked = shares.reshape(-1)[own + _starts(rows, many)]
    np.exp(shares, shares)
    sums = np.add.reduce(shares, 1, None, None, True)
    losses = np.log(sums.reshape(-1))
    np.subtract(losses, picked, losses)
    if counts is None:
        count = F32.type(rows)
    else:
        count, losses = F32.type(counts.sum()), np.where(counts, losses, 0)
    return np.asarray(np.add.reduce(losses) / count), shares, sums, counts, own


def _mean_alone(input: Any, target: Any, weight: None, size_average: None, ignore_index: int, *_: Any) -> Any:
    if loops.available():
        return classes.of_logits(False, input, target, ignore_index)
    return quietly(_mean_of_rows, input, target, ignore_index)[0]


cross_entropy.alone = _mean_alone


@functools.lru_cache(maxsize=64)
def _starts(rows: int, many: int) -> Any:
    """Where each row begins."""
    return np.arange(0, rows * many, many)


@cross_entropy.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    if loops.available():
        return classes.logit_gradients(g, kept, needs)
    return quietly(_gradient_of_mean, g, *kept), None, None


def _gradient_of_mean(g: Any, shares: Any, own: Any, share: Any) -> Any:
    scale = np.multiply(share, g)
    gx = np.multiply(shares, scale[:, None])
    gx.reshape(-1)[own + _starts(*shares.shape)] -= scale
    if np.count_nonzero(share) != len(share):
        gx[share == 0] = 0
    return gx


# ---- few losses of log probabilities without weights: classes that are ignored, any dimensions and reductions


class _Losses(NamedTuple):
    """What the losses of targets are made of.

    Attributes:
        shape: of the log probabilities
        classes: of the targets, int64
        counts: which are not ignored, None for all
        divisor: what the sum is divided by, None for 1
    """

    shape: tuple[int, ...]
    classes: Any
    counts: Any
    divisor: Any


def _takes(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> bool:
    shape = input.shape
    return (
        0 < input.size <= _FEW[1]
        and target.size <= _FEW[0]
        and (input.dtype is F32 or input.dtype is F64)
        and target.dtype.kind in "iu"
        and len(shape) > 0
        and target.shape == (shape[:1] + shape[2:] if len(shape) > 1 else ())
        and weight is None
        and reduction in ("mean", "sum", "none")
    )


def _losses(input: Any, target: Any, ignore_index: int, reduction: str) -> tuple[Any, _Losses]:
    """The result, rounded as the composition rounds it."""
    x, y = (input, target) if input.ndim > 1 else (input[None], target.reshape(1))
    classes, counts = _classes(y, ignore_index, x.shape[1])
    losses = np.negative(x[_key(classes)], order="C")  # the order of a sum is that of memory
    if counts is not None:
        losses = np.where(counts, losses, 0)
    every, divisor = tuple(range(losses.ndim)), None
    if reduction == "none":
        result = losses.reshape(target.shape)
    elif reduction == "sum":
        result = total(losses, every, False)
    elif counts is None:
        divisor, result = losses.dtype.type(losses.size), average(losses, every, False)
    elif not np.count_nonzero(counts):
        result = losses.dtype.type(math.nan)  # with a gradient of zero: a batch that does not count changes nothing
    else:
        divisor = total(counts.astype(losses.dtype), every, False)
        result = total(losses, every, False) / divisor
    return result, _Losses(input.shape, classes.copy() if classes is y else classes, counts, divisor)


def _key(classes: Any) -> Any:
    """The index of the log probability of each class, (N, C, ...) for classes (N, ...)."""
    rows, *others = coordinates(classes.shape)
    return (rows, classes, *others)


def _gradients(g: Any, kept: _Losses, needs: Any) -> Any:
    """The gradient of the log probabilities."""
    shape, classes, counts, divisor = kept
    factors = np.negative(g)
    if divisor is not None:
        factors = factors / divisor
    if counts is not None:
        factors = np.where(counts, factors, 0)
    gx = np.zeros(shape if len(shape) > 1 else (1, *shape), g.dtype)
    gx[_key(classes)] = factors
    return gx.reshape(shape), None, None


def _takes_nll(
    input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int, reduce: Any, reduction: str
) -> bool:
    return size_average is None and reduce is None and _takes(input, target, weight, ignore_index, reduction)


@attach("nll_loss", np.ndarray, when=_takes_nll)
def nll_loss(
    input: Any, target: Any, weight: None, size_average: None, ignore_index: int, reduce: None, reduction: str
) -> Any:
    """The kernel of `genesis.nn.functional.nll_loss`."""
    return _losses(input, target, ignore_index, reduction)


nll_loss.backward(_gradients, reads=())


@attach("losses_of_classes", np.ndarray, when=lambda *arguments: _takes(*arguments[:-1]))
def losses_of_classes(input: Any, target: Any, weight: None, ignore_index: int, reduction: str, name: str) -> Any:
    """The same for `genesis.nn.functional.cross_entropy`."""
    return _losses(input, target, ignore_index, reduction)


losses_of_classes.backward(_gradients, reads=())


# ---- the same, compiled, with weights, too


def _takes_picked(
    input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int, reduce: Any, reduction: str
) -> bool:
    return size_average is None and reduce is None and classes.fit(input, target, weight, reduction)


@attach("nll_loss", np.ndarray, when=_takes_picked, quiet=True)
def compiled_nll_loss(
    input: Any, target: Any, weight: Any, size_average: None, ignore_index: int, reduce: None, reduction: str
) -> Any:
    return classes.of_picked(input, target, weight, ignore_index, reduction)


compiled_nll_loss.backward(classes.picked_gradients, reads=())


@attach("losses_of_classes", np.ndarray, when=lambda x, y, w, _, how, name: classes.fit(x, y, w, how), quiet=True)
def compiled_losses(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str, name: str) -> Any:
    return classes.of_picked(input, target, weight, ignore_index, reduction)


compiled_losses.backward(classes.picked_gradients, reads=())


# ---- the loss of a last layer


def _add_product(total: Any, left: Any, right: Any, adds: bool) -> None:
    dtype, whole = from_numpy(total.dtype), wrap(total)
    product = wrap(left).to(dtype) @ wrap(right).to(dtype)
    whole.add_(product) if adds else whole.copy_(product)


heads.attach_to(np.ndarray, _add_product)
