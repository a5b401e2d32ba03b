"""Cross entropy together with its gradient, in programs in which the gradient of the loss is known before the loss: a row is
read from memory once, and again from the cache.

How many rows count, on which each gradient depends, is in the classes: they are counted first. Few rows of few classes are
one program's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.fused import FUSED
from genesis.core.call.halves import F32
from genesis.core.call.kinds.others import FUSION
from genesis.core.call.op import LateSignature, Op
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels import padded
from genesis.cuda.kernels.losses import (
    IN_PROGRAMS,
    LONG,
    Grid,
    Row,
    beside_of,
    block_of,
    laid,
    loss_of,
    matrix,
    mean,
    wide_of,
)
from genesis.cuda.kernels.losses import gradient as gradient_of
from genesis.cuda.kernels.losses_code import BOTH, FEW, SHARE, printed
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import ALIGNED, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.reports import BITS, reports
from genesis.jit.lowering.triton_code import pointer_to

WITH_GRADIENT = f"{IN_PROGRAMS}.with_gradient"
# bytes of a row: of more the rows that are under way, two or three on each processor, do not stay in the cache of 50 MB
CACHED = 1 << 17
WARPS = 32  # of rows that begin at 16 bytes: few rows are under way then
BLOCK = 8192
SMALL = (
    1 << 12
)  # logits that one program goes through sooner than three kernels begin: it has as many threads as it can


class Share(Launched):
    """The kernel that gives what each row has of the mean."""

    letters, warps = "QQiq", 8

    def __init__(self, labels: Any) -> None:
        self.labels = labels
        self.source = SHARE.format(block=BLOCK)
        self.signature = pointer_to(labels), "*fp32", "i32", "i64"
        self.free = frozenset({3})

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[0], values[2] * self.labels.itemsize, False), (values[1], F32.itemsize, True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        target, share = memory.array(values[0], self.labels, values[2]), memory.array(values[1], F32, 1)
        if interpreted():
            share[...] = interpreter.run(self.source, grid, [target, share, *values[2:]])[1]
        else:
            share[0] = 1 / max(np.count_nonzero(target.astype(np.int64) != values[3]), 1)


class Both(Row):
    """The kernel of rows for their losses and their gradients."""

    text, writes, reports = BOTH, 3, True

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        rows, (across, classes, wide, step, _) = grid[0], values[-5:]
        logits = (rows - 1) * step + max(wide, -(-classes // self.beside) * self.beside)
        return [logits, rows, 1, 1, rows, rows, (rows - 1) * across + wide]

    def compute(self, x: Any, arrays: list[Any], report: Any, values: tuple[Any, ...]) -> None:
        target, share, g, loss, counts, out = arrays
        across, classes, _, _, ignored = values[-5:]
        total = np.empty(len(x), F32)
        loss_of(x, target, total, loss, counts, report, ignored)
        gradient_of(x, target, total, share, g, matrix(out, len(x), classes, across), ignored)


class Few(Launched):
    """The kernel of few rows: their mean loss, and their gradients."""

    letters = "QQQQQQqqiiqq"

    def __init__(self, dtype: Any, labels: Any, g: Any, result: Any, rows: int, classes: int) -> None:
        self.warps = min(max(rows * classes // 64, 4), 32)
        self.dtypes = dtype, labels, g, result, dtype
        self.source = printed(FEW, rows, classes=classes, mask=(1 << BITS) - 1)
        self.signature = (*[pointer_to(d) for d in self.dtypes], "*i64", "i64", "i64", "i32", "i32", "i64", "i64")
        self.free = frozenset({6, 11})

    def counts(self, values: tuple[Any, ...]) -> list[int]:
        across, rows, classes, step, _ = values[-5:]
        return [(rows - 1) * step + classes, rows, 1, 1, (rows - 1) * across + classes]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        sizes = zip(self.dtypes, self.counts(values), strict=True)
        return [(values[i], d.itemsize * count, i > 2) for i, (d, count) in enumerate(sizes)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        sizes = zip(self.dtypes, self.counts(values), strict=True)
        arrays = [memory.array(values[i], d, count) for i, (d, count) in enumerate(sizes)]
        report = memory.array(values[5], np.dtype(np.int64), 1)
        if interpreted():
            results = interpreter.run(self.source, grid, [*arrays, report, *values[6:]])
            for array, made in zip([*arrays, report], results, strict=False):
                array[...] = made
            return
        across, rows, classes, step, ignored = values[-5:]
        logits, target, g, result, out = arrays
        x, (total, loss, counts) = matrix(logits, rows, classes, step).astype(F32), np.empty((3, rows), F32)
        with np.errstate(all="ignore"):
            loss_of(x, target, total, loss, counts, (report, values[6]), ignored)
            result[0], share = loss.sum() / counts.sum(), 1 / max(counts.sum(), F32.type(1))
            gradient_of(x, target, total, share, g, matrix(out, rows, classes, across), ignored)


@functools.cache
def of_few(dtype: Any, labels: Any, g: Any, result: Any, rows: int, classes: int) -> Few:
    return Few(dtype, labels, g, result, rows, classes)


@functools.cache
def share_of(labels: Any) -> Share:
    return Share(labels)


@functools.cache
def both(dtype: Any, labels: Any, g: Any, block: int, beside: int) -> Both:
    return Both((dtype, labels, F32, g, F32, F32, dtype), block, beside, WARPS if beside else 8)


def with_gradient(
    g: CudaArray, logits: CudaArray, target: CudaArray, ignored: int, dtype: Any
) -> tuple[CudaArray, CudaArray]:
    """The mean of the losses as a number of a dtype, and the gradient of the logits."""
    (rows, classes), on, input = logits.shape, logits.on, laid(logits)
    target = target if target.is_contiguous else MEMORY.copy(target)
    result, out = MEMORY.empty((), dtype, input.device), padded.result(input.shape, input.dtype, input.device)
    about = reports(on).address, reports(on).number("cross_entropy", f"{classes} classes")
    sizes = 1 << (rows - 1).bit_length(), 1 << (classes - 1).bit_length()
    if math.prod(sizes) <= SMALL:
        whole = of_few(input.dtype, target.dtype, g.dtype, np.dtype(dtype), *sizes)
        addresses = [x.address for x in (input, target, g, result, out)]
        values = *addresses, *about, out.strides[0], rows, classes, input.strides[0], ignored
        whole.start(on, used(input, target, g, result, out).handle, (1, 1, 1), values)
        return result, out
    loss, counts = (MEMORY.empty((rows,), F32, input.device) for _ in range(2))
    share = MEMORY.empty((), F32, input.device)
    stream = used(input, target, g, loss, counts, result, share, out).handle
    share_of(target.dtype).start(on, stream, (1, 1, 1), (target.address, share.address, rows, ignored))
    beside = beside_of(input) if input.strides[0] % ALIGNED == 0 else 0
    block = block_of(classes, BLOCK if beside else LONG)
    wide = min(wide_of(input), wide_of(out))
    addresses = [x.address for x in (input, target, share, g, loss, counts, out)]
    sizes = out.strides[0], classes, wide, input.strides[0], ignored
    kernel = both(input.dtype, target.dtype, g.dtype, block, beside)
    kernel.start(on, stream, (rows, 1, 1), (*addresses, *about, *sizes))
    mean(dtype).start(on, stream, (1, 1, 1), (*[x.address for x in (loss, counts, result, share)], rows))
    return result, out


def _infer(g: Spec, logits: Spec, target: Spec, ignored: int, dtype: Any) -> list[Spec]:
    return [Spec((), dtype, logits.device), Spec(logits.shape, logits.dtype, logits.device)]


_op = FUSED[WITH_GRADIENT] = Op(
    WITH_GRADIENT, FUSION, LateSignature(lambda: with_gradient), with_gradient, infer=_infer
)
_op.kernel, _op.tensors = with_gradient, (0, 1, 2)
