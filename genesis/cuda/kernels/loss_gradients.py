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
    JOINED,
    LONG,
    SUMMED,
    Grid,
    Row,
    block_of,
    laid,
    loss_of,
    matrix,
    mean,
    wide_of,
)
from genesis.cuda.kernels.losses import gradient as gradient_of
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

_SHARE = """
import triton
import triton.language as tl


@triton.jit
def kernel(target, share, n, ignored):
    many = tl.zeros([{block}], tl.float32)
    for first in range(0, n, {block}):
        at = first + tl.arange(0, {block})
        label = tl.load(target + at, mask=at < n, other=0).to(tl.int64)
        many += tl.where((at < n) & (label != ignored), 1.0, 0.0)
    tl.store(share, tl.div_rn(1.0, tl.maximum(tl.sum(many, 0), 1.0)))
""".lstrip()

_BOTH = f"""{JOINED}@triton.jit
def changed(value, at, own, logarithm, scale):
    return (power_of_two((value - logarithm) * {{bits}}) - tl.where(at == own, 1.0, 0.0)) * scale


@triton.jit
def kernel(x, target, share, g, loss, counts, out, report, number, across, C, wide, step, ignored):{SUMMED}
    scale = tl.load(share) * tl.load(g).to(tl.float32)
    for first in range(0, whole, {{block}}):
        value = tl.load(x + row * step + first + at).to(tl.float32)
        value = tl.where(counted, changed(value, first + at, label, logarithm, scale), 0.0)
        tl.store(out + row * across + first + at, value.to(out.dtype.element_ty))
    value = tl.load(x + row * step + whole + at, mask=whole + at < wide, other=0.0).to(tl.float32)
    value = tl.where(counted, changed(value, whole + at, label, logarithm, scale), 0.0)
    tl.store(out + row * across + whole + at, value.to(out.dtype.element_ty), mask=whole + at < wide)
"""


class Share(Launched):
    """The kernel that gives what each row has of the mean."""

    letters, warps = "QQiq", 8

    def __init__(self, labels: Any) -> None:
        self.labels = labels
        self.source = _SHARE.format(block=BLOCK)
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
        super().__init__(
            _BOTH, (dtype, labels, F32, g, F32, F32, dtype), 3, block, True, beside, WARPS if beside else 8
        )
        self.signature = (*self.signature[:9], "i64", *self.signature[9:])
        self.letters = f"{self.letters[:9]}q{self.letters[9:]}"
        self.free = frozenset({8, len(self.letters) - 1})

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        rows, (across, _, wide, step, _) = grid[0], values[-5:]
        return [(rows - 1) * step + wide, rows, 1, 1, rows, rows, (rows - 1) * across + wide]

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
    aligned = input.strides[0] % ALIGNED == 0 and classes > 1024
    block, beside = block_of(classes, BLOCK if aligned else LONG), ALIGNED // input.dtype.itemsize if aligned else 0
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
