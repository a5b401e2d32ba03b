"""Losses of class indices of float32 arrays, compiled, where llvmlite is: one call for all rows of a small array."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.base.quiet import unnamed
from genesis.core.call.halves import F32, F64
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops, losses
from genesis.ops.reductions.along import average, total

I64 = np.dtype(np.int64)
_REDUCTIONS = ("mean", "sum", "none")


def fit(input: Any, target: Any, weight: Any, reduction: str) -> bool:
    """Whether the loops take a call that is right: log probabilities, or logits, (N, C, ...) or (C,) of float32."""
    shape = input.shape
    return (
        input.dtype is F32
        and target.dtype.kind in "iu"
        and len(shape) > 0 < input.size
        and target.shape == (shape[:1] + shape[2:] if len(shape) > 1 else ())
        and (weight is None or (weight.dtype is F32 and weight.shape == (shape[1 if len(shape) > 1 else 0],)))
        and reduction in _REDUCTIONS
        and loops.available()
    )


@functools.cache
def _forward(name: str, logits: bool, weighted: bool, keeps: bool) -> Nest:
    options = losses.Options(logits, weighted, keeps)
    code = losses.forward(loops.width() // 4, options)
    return Nest(name, code, len(losses.pointers(options)), len(losses.SIZES))


@functools.cache
def _gradient(logits: bool) -> Nest:
    code = losses.gradient(loops.width() // 4, logits)
    return Nest("gradient", code, len(losses.OF_LOGITS if logits else losses.OF_PICKED), len(losses.GRADIENTS))


def _of_rows(keeps: bool, logits: bool, weighted: bool, arrays: list[Any], sizes: tuple[int, ...]) -> None:
    """What is computed of all rows.

    Raises:
        IndexError: a class is none
    """
    x, labels, classes = arrays[:3]
    if x.size < LARGE["for threads"]:
        _forward("whole", logits, weighted, keeps)(arrays, labels.size, sizes, False)
    else:
        _forward("rows", logits, weighted, keeps)(arrays, labels.size, sizes, True)
        _forward("finish", logits, weighted, keeps)(arrays, labels.size, sizes, False)
    if classes.item(0) == losses.OUTSIDE:
        raise IndexError(labels)


# ---- of rows of logits


def of_logits(keeps: bool, input: Any, target: Any, ignored: int) -> Any:
    """The mean of the losses; with what `logit_gradients` wants, if that ``keeps`` it."""
    x, labels = np.ascontiguousarray(input), np.ascontiguousarray(target, I64)
    rows, out = labels.size, np.empty((), F32)
    classes, share = np.empty(rows, I64), np.empty(rows, F32)
    arrays = [x, labels, classes, share, out, np.empty(rows, F64)]
    if keeps:
        shares = memory.like(x)
        arrays.append(shares)
    _of_rows(keeps, True, False, arrays, (x.shape[1], 1, ignored))
    return (out, (shares, classes, share)) if keeps else out


def logit_gradients(g: Any, kept: Any, needs: Any) -> Any:
    """The gradient of the logits."""
    shares, classes, share = kept
    gx = memory.like(shares)
    arrays = np.ascontiguousarray(g), shares, classes, share, gx
    _gradient(True)(arrays, classes.size, (shares.shape[1], 1, 0), gx.size >= LARGE["for threads"])
    return gx, None, None


# ---- of log probabilities


@unnamed
def of_picked(input: Any, target: Any, weight: Any, ignored: int, reduction: str) -> Any:
    """The loss or losses, rounded as the composition rounds them, and what `picked_gradients` wants."""
    x, labels = memory.contiguous(input), np.ascontiguousarray(target, I64)
    each = np.empty(target.shape or (1,), F32)
    classes, share = np.empty(labels.size, I64), np.empty(labels.size, F32)
    arrays = [x, labels, classes, share, each]
    if weight is not None:
        arrays.append(np.ascontiguousarray(weight))
    sizes = _sizes(input.shape)
    _of_rows(False, False, weight is not None, arrays, (*sizes, ignored))
    every, divisor = tuple(range(each.ndim)), None
    if reduction == "none":
        result = each.reshape(target.shape)
    elif reduction == "sum":
        result = total(each, every, False)
    elif weight is None and np.count_nonzero(share) == share.size:
        divisor, result = F32.type(each.size), average(each, every, False)
    else:
        divisor = total(share.reshape(each.shape), every, False)
        result = total(each, every, False) / divisor
    return result, (input.shape, sizes, classes, share, divisor)


def _sizes(shape: Any) -> tuple[int, int]:
    """How many classes there are, and how many places behind them."""
    return (shape[-1], 1) if len(shape) < 3 else (shape[1], math.prod(shape[2:]))


@unnamed
def picked_gradients(g: Any, kept: Any, needs: Any) -> Any:
    """The gradient of the log probabilities."""
    if needs[2]:  # of the weights, which hardly anybody asks for
        return NotImplemented
    shape, sizes, classes, share, divisor = kept
    scale = np.ascontiguousarray(g if divisor is None else g / divisor)
    gx = memory.zeros(shape, F32)
    _gradient(False)((scale, classes, share, gx), classes.size, (*sizes, int(g.ndim > 0)), False)
    return gx, None, None
