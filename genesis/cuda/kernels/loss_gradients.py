"""Cross entropy together with its gradient, in programs in which the gradient of the loss is known before the loss: a row is
read from memory once, and again from the cache.

How many rows count, on which each gradient depends, is in the classes: they are counted first.
"""

from __future__ import annotations

import functools
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
from genesis.cuda.kernels.losses_code import BOTH, SHARE
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import ALIGNED, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.reports import reports
from genesis.jit.lowering.triton_code import pointer_to

WITH_GRADIENT = f"{IN_PROGRAMS}.with_gradient"
# bytes of a row: of more the rows that are under way, two or three on each processor, do not stay in the cache of 50 MB
CACHED = 1 << 17
WARPS = 16  # of rows that begin at 16 bytes: few rows are under way then
BLOCK = 8192


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

    def __init__(self, dtype: Any, labels: Any, g: Any, block: int, beside: int) -> None:
        super().__init__(BOTH, (dtype, labels, F32, g, F32, F32, dtype), 3, block, True, beside, WARPS if beside else 8)
        self.signature = (*self.signature[:9], "i64", *self.signature[9:])
        self.letters = f"{self.letters[:9]}q{self.letters[9:]}"
        self.free = frozenset({8, len(self.letters) - 1})

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


@functools.cache
def share_of(labels: Any) -> Share:
    return Share(labels)


@functools.cache
def both(dtype: Any, labels: Any, g: Any, block: int, beside: int) -> Both:
    return Both(dtype, labels, g, block, beside)


def with_gradient(
    g: CudaArray, logits: CudaArray, target: CudaArray, ignored: int, dtype: Any
) -> tuple[CudaArray, CudaArray]:
    """The mean of the losses as a number of a dtype, and the gradient of the logits."""
    (rows, classes), on, input = logits.shape, logits.on, laid(logits)
    target = target if target.is_contiguous else MEMORY.copy(target)
    loss, counts = (MEMORY.empty((rows,), F32, input.device) for _ in range(2))
    result, share = (MEMORY.empty((), kind, input.device) for kind in (dtype, F32))
    out = padded.result(input.shape, input.dtype, input.device)
    stream = used(input, target, g, loss, counts, result, share, out).handle
    share_of(target.dtype).start(on, stream, (1, 1, 1), (target.address, share.address, rows, ignored))
    beside = beside_of(input) if input.strides[0] % ALIGNED == 0 else 0
    block = block_of(classes, BLOCK if beside else LONG)
    wide = min(wide_of(input), wide_of(out))
    addresses = [x.address for x in (input, target, share, g, loss, counts, out)]
    about = reports(on).address, reports(on).number("cross_entropy", f"{classes} classes")
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
