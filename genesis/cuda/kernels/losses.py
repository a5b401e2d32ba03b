"""Cross entropy of rows of logits and class indices. Each row is read once for its loss, in blocks with a running maximum, and
once for its gradient; between them the logarithm of the sum of each row is kept, not the softmax.

A class that is none is reported, as an index is.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call.fused import FUSED
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.kinds.others import FUSION
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.kernels import padded
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import ALIGNED, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.reports import BITS, reports
from genesis.jit.lowering.triton_code import pointer_to
from genesis.jit.lowering.triton_functions import needed

LONG = 4096  # elements of a block of a row
I64 = np.dtype(np.int64)
Grid = tuple[int, int, int]

_HEAD = """
import triton
import triton.language as tl


""".lstrip()

# a thread has a maximum of several elements at a time, and for that one power of two besides those of the elements: of those
# beside each other that it reads at once, or, where rows begin anywhere, of those that lie a thread for each apart. What is
# no whole block is read apart, as what a mask says is read one by one
_BESIDE = {"axis": "1", "wide": ":, None",
           "at": "tl.arange(0, {lanes})[:, None] * {several} + tl.arange(0, {several})[None, :]"}  # fmt: skip
_APART = {"axis": "0", "wide": "None, :",
          "at": "tl.arange(0, {several})[:, None] * {lanes} + tl.arange(0, {lanes})[None, :]"}  # fmt: skip
# the logarithm of the sum of a row, whether its class counts, and what its logit is
SUMMED = """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row).to(tl.int64)
    counted = label != ignored
    bad = counted & ((label < 0) | (label >= C))
    tl.store(report, number | (label & {mask}), mask=bad)
    own = tl.where(counted & (bad == 0), label, 0)
    best = tl.full([{lanes}], float("-inf"), tl.float32)
    sums = tl.zeros([{lanes}], tl.float32)
    at = {at}
    whole = C // {block} * {block}
    for first in range(0, whole, {block}):
        best, sums = joined(best, sums, tl.load(x + row * step + first + at).to(tl.float32))
    rest = tl.load(x + row * step + whole + at, mask=whole + at < wide, other=float("-inf")).to(tl.float32)
    best, sums = joined(best, sums, tl.where(whole + at < C, rest, float("-inf")))
    most = tl.max(best, 0)
    shift = tl.where(most == float("-inf"), 0.0, most)
    logarithm = most + tl.log(tl.sum(sums * power_of_two((best - shift) * {bits}), 0))
    picked = tl.load(x + row * step + own).to(tl.float32)
    tl.store(loss + row, tl.where(counted, logarithm - picked, 0.0))
    tl.store(counts + row, counted.to(tl.float32))
"""
JOINED = """
@triton.jit
def joined(best, sums, value):
    larger = tl.maximum(best, tl.max(value, {axis}))
    shift = tl.where(larger == float("-inf"), 0.0, larger)
    powers = power_of_two((value - shift[{wide}]) * {bits})
    return larger, sums * power_of_two((best - shift) * {bits}) + tl.sum(powers, {axis})


""".lstrip()
_LOSS = f"""{JOINED}@triton.jit
def kernel(x, target, total, loss, counts, report, number, C, wide, step, ignored):{SUMMED}    tl.store(total + row, logarithm)
"""

_MEAN = """
import triton
import triton.language as tl


@triton.jit
def kernel(loss, counts, out, share, n):
    sums = tl.zeros([{block}], tl.float32)
    many = tl.zeros([{block}], tl.float32)
    for first in range(0, n, {block}):
        at = first + tl.arange(0, {block})
        sums += tl.load(loss + at, mask=at < n, other=0.0)
        many += tl.load(counts + at, mask=at < n, other=0.0)
    count = tl.sum(many, 0)
    tl.store(out, tl.div_rn(tl.sum(sums, 0), count).to(out.dtype.element_ty))
    tl.store(share, tl.div_rn(1.0, tl.maximum(count, 1.0)))
""".lstrip()

_CHANGED = """
@triton.jit
def changed(value, at, label, logarithm, scale, ignored):
    value = power_of_two((value.to(tl.float32) - logarithm) * {bits}) - tl.where(at == label, 1.0, 0.0)
    return tl.where(label == ignored, 0.0, value * scale)


@triton.jit
def kernel(x, target, total, share, g, out, across, C, wide, step, ignored):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * {block} + tl.arange(0, {block})
    label = tl.load(target + row).to(tl.int64)
    scale = tl.load(share) * tl.load(g).to(tl.float32)
    logarithm = tl.load(total + row)
""".lstrip()
_GRADIENT = f"""{_CHANGED}    value = tl.load(x + row * step + at, mask=at < wide, other=0.0)
    value = changed(value, at, label, logarithm, scale, ignored)
    tl.store(out + row * across + at, value.to(out.dtype.element_ty), mask=at < wide)
"""
# of rows that begin anywhere, in both in the same way: from the last multiple of 16 bytes before each, so that whole blocks
# are read and written 16 bytes at a time
_SKEWED = f"""{_CHANGED}    first = row * step // {{beside}} * {{beside}}
    before = (row * step - first).to(tl.int32)
    if (tl.program_id(1) > 0) & (tl.program_id(1) * {{block}} + {{block}} <= before + C):
        value = changed(tl.load(x + first + at), at - before, label, logarithm, scale, ignored)
        tl.store(out + first + at, value.to(out.dtype.element_ty))
    else:
        inside = (at >= before) & (at < before + C)
        value = tl.load(x + first + at, mask=inside, other=0.0)
        value = changed(value, at - before, label, logarithm, scale, ignored)
        tl.store(out + first + at, value.to(out.dtype.element_ty), mask=inside)
"""


class Row(Launched):
    """A kernel of rows of logits: operands by their dtypes, and how many of each are read."""

    def __init__(self, source: str, dtypes: tuple[Any, ...], writes: int, block: int, reports: bool,
                 beside: int = 0, warps: int = 8) -> None:  # fmt: skip
        self.warps = warps if block > 1024 else 4
        lanes = min(block // beside if beside else 32 * self.warps, block)
        tile = _BESIDE if beside else _APART
        names = {name: text.format(lanes=lanes, several=block // lanes) for name, text in tile.items()}
        lines = source.format(
            block=block, lanes=lanes, beside=beside, mask=(1 << BITS) - 1, bits=math.log2(math.e), **names
        )
        self.source = _HEAD + "\n".join([*needed([lines]), lines])
        self.dtypes, self.writes, self.reports = dtypes, writes, reports
        report = ("*i64", "i64") if reports else ("i64",)
        self.signature = (*[pointer_to(d) for d in dtypes], *report, "i32", "i32", "i64", "i64")
        self.letters = "Q" * len(dtypes) + ("Qq" if reports else "q") + "iiqq"
        numbers = {len(dtypes) + 1} if reports else set()
        self.free = frozenset({*numbers, len(self.letters) - 1})

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        """How many elements of each operand there are."""
        rows, (wide, step, _) = grid[0], values[-3:]
        logits = (rows - 1) * step + wide
        if self.reports:
            return [logits, rows, rows, rows, rows]
        return [logits, rows, rows, 1, 1, (rows - 1) * values[len(self.dtypes)] + wide]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        first = len(self.dtypes) - self.writes
        sizes = zip(self.dtypes, self.counts(grid, values), strict=True)
        return [(values[i], d.itemsize * count, i >= first) for i, (d, count) in enumerate(sizes)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        counts = self.counts(grid, values)
        arrays = [memory.array(values[i], d, n) for i, (d, n) in enumerate(zip(self.dtypes, counts, strict=True))]
        report = [memory.array(values[len(arrays)], I64, 1)] if self.reports else []
        if interpreted():
            results = interpreter.run(self.source, grid, [*arrays, *report, *values[len(arrays) + len(report) :]])
            for array, result in zip([*arrays, *report], results, strict=False):
                array[...] = result
            return
        classes, _, step, _ = values[-4:]
        x = matrix(arrays[0], grid[0], classes, step).astype(F32)
        with np.errstate(all="ignore"):
            self.compute(x, arrays[1:], (report[0], values[len(arrays) + 1]) if report else None, values)

    def compute(self, x: Any, arrays: list[Any], report: Any, values: tuple[Any, ...]) -> None:
        """The same with NumPy, of the logits and the other operands."""
        if self.reports:
            target, total, loss, counts = arrays
            loss_of(x, target, total, loss, counts, report, values[-1])
        else:
            target, total, share, g, out = arrays
            gradient(x, target, total, share, g, matrix(out, len(x), x.shape[1], values[len(self.dtypes)]), values[-1])


def matrix(array: Any, rows: int, columns: int, step: int) -> Any:
    return np.lib.stride_tricks.as_strided(array, (rows, columns), (step * array.itemsize, array.itemsize))


def loss_of(x: Any, target: Any, total: Any, loss: Any, counts: Any, report: Any, ignored: int) -> None:
    label = target.astype(np.int64)
    counted = label != ignored
    bad = counted & ((label < 0) | (label >= x.shape[1]))
    if bad.any():
        report[0][0] = report[1] | (int(label[bad][0]) & (1 << BITS) - 1)
    most = x.max(1, keepdims=True)
    shift = np.where(np.isneginf(most), 0, most)
    total[...] = (most + np.log(np.exp(x - shift).sum(1, keepdims=True)))[:, 0]
    picked = np.take_along_axis(x, np.where(counted & ~bad, label, 0)[:, None], 1)[:, 0]
    loss[...], counts[...] = np.where(counted, total - picked, 0), counted


def gradient(x: Any, target: Any, total: Any, share: Any, g: Any, out: Any, ignored: int) -> None:
    value = np.exp(x - total[:, None])
    own = (target >= 0) & (target < x.shape[1])
    value[np.flatnonzero(own), target[own].astype(np.int64)] -= 1
    value = np.where((target == ignored)[:, None], F32.type(0), value * (share * g.astype(F32)))
    out[...] = value.astype(out.dtype)


class Mean(Launched):
    """The kernel that joins the losses of rows into one number of a dtype."""

    source, letters, warps = _MEAN.format(block=2 * LONG), "QQQQi", 8

    def __init__(self, dtype: Any) -> None:
        self.dtypes = F32, F32, dtype, F32
        self.signature = (*[pointer_to(d) for d in self.dtypes], "i32")

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        return [(values[i], d.itemsize * (values[4] if i < 2 else 1), i > 1) for i, d in enumerate(self.dtypes)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        loss, counts, out, share = [
            memory.array(values[i], d, values[4] if i < 2 else 1) for i, d in enumerate(self.dtypes)
        ]
        if interpreted():
            _, _, out[...], share[...], _ = interpreter.run(self.source, grid, [loss, counts, out, share, values[4]])
            return
        with np.errstate(all="ignore"):
            out[0], share[0] = loss.sum() / counts.sum(), 1 / max(counts.sum(), 1)


@functools.cache
def mean(dtype: Any) -> Mean:
    return Mean(dtype)


@functools.cache
def losses(dtype: Any, labels: Any, block: int, beside: int) -> Row:
    """``beside`` elements are read at once; 0: rows begin anywhere."""
    return Row(_LOSS, (dtype, labels, F32, F32, F32), 3, block, True, beside)


@functools.cache
def gradients(dtype: Any, labels: Any, g: Any, block: int, beside: int = 0) -> Row:
    """``beside`` elements are 16 bytes, in which rows begin anywhere; 0: rows begin there, or are read one by one."""
    return Row(_SKEWED if beside else _GRADIENT, (dtype, labels, F32, F32, g, dtype), 1, block, False, beside)


def block_of(classes: int, most: int = LONG) -> int:
    return min(max(1 << (classes - 1).bit_length(), 32), most)


def fits(input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int, reduce: Any, reduction: str,
         label_smoothing: float) -> bool:  # fmt: skip
    """One row of logits for each index, and the mean of the losses."""
    return (
        kernels_wanted() and (input.dtype == F32 or input.dtype in HALVES) and input.ndim == 2 and input.size > 0
        and target.dtype.kind in "iu" and target.shape == input.shape[:1] and weight is None and size_average is None
        and reduce is None and reduction == "mean" and label_smoothing == 0 and input.shape[1] < 1 << 30
    )  # fmt: skip


def _infer(input: Spec, *_: Any) -> tuple[Spec, tuple[Any, ...]]:
    return Spec((), input.dtype), ("input", "target", Spec(input.shape[:1], F32), Spec((), F32), "ignore_index")


def laid(input: CudaArray) -> CudaArray:
    """Rows whose elements lie together."""
    return input if input.strides[1] == 1 and input.strides[0] >= 0 else MEMORY.copy(input)


def wide_of(rows: CudaArray) -> int:
    """How many elements of a row are gone through: with some of the gap behind it where that is wide enough for all to be
    done 16 bytes at a time.
    """
    (count, columns), step, size = rows.shape, rows.strides[0], rows.dtype.itemsize
    wide = -(-columns // ALIGNED) * ALIGNED
    end = rows.address + ((count - 1) * step + wide) * size
    block = getattr(rows.storage, "block", None)  # of memory of others we do not know how far it goes
    inside = block is not None and end <= block.address + block.size
    return wide if inside and step % ALIGNED == 0 and wide <= step else columns


def entropy(logits: CudaArray, target: CudaArray, ignored: int, dtype: Any) -> tuple[CudaArray, CudaArray, CudaArray]:
    """The mean of the losses as a number of a dtype, the logarithm of the sum of each row, and the share of a row."""
    (rows, classes), on, input = logits.shape, logits.on, laid(logits)
    target = target if target.is_contiguous else MEMORY.copy(target)
    total, loss, counts = (empty(on, (rows,), F32) for _ in range(3))
    out, share = (empty(on, (), kind) for kind in (dtype, F32))
    stream = used(input, target, total, loss, counts, out, share).handle
    about = reports(on).address, reports(on).number("cross_entropy", f"{classes} classes")
    addresses = [x.address for x in (input, target, total, loss, counts)]
    block = block_of(classes)
    beside = ALIGNED // input.dtype.itemsize if input.strides[0] % ALIGNED == 0 and block > 1024 else 0
    kernel = losses(input.dtype, target.dtype, block, beside)
    kernel.start(on, stream, (rows, 1, 1), (*addresses, *about, classes, wide_of(input), input.strides[0], ignored))
    addresses = [x.address for x in (loss, counts, out, share)]
    mean(out.dtype).start(on, stream, (1, 1, 1), (*addresses, rows))
    return out, total, share


@attach("cross_entropy", CudaArray, when=fits, infer=_infer)
def cross_entropy(
    input: CudaArray, target: CudaArray, weight: None, size_average: None, ignore_index: int, *_: Any
) -> Any:
    """The kernel of `genesis.nn.functional.cross_entropy`."""
    out, total, share = entropy(input, target, ignore_index, input.dtype)
    return out, (input, target, total, share, ignore_index)


@cross_entropy.backward(reads=("input", "target"))
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    logits, target, total, share, ignored = kept
    input = laid(logits)
    target = target if target.is_contiguous else MEMORY.copy(target)
    (rows, classes), block = input.shape, block_of(input.shape[1])
    out = padded.result(input.shape, input.dtype, input.device)
    stream = used(input, target, total, share, g, out).handle
    addresses = [x.address for x in (input, target, total, share, g, out)]
    wide, size = min(wide_of(input), wide_of(out)), input.dtype.itemsize
    alike = input.strides == out.strides and (input.address | out.address) % ALIGNED == 0
    beside = ALIGNED // size if alike and block > 1024 and input.strides[0] * size % ALIGNED else 0
    grid = rows, -(-(classes + max(beside - 1, 0)) // block), 1
    gradients(input.dtype, target.dtype, g.dtype, block, beside).start(
        out.on, stream, grid, (*addresses, out.strides[0], classes, wide, input.strides[0], ignored)
    )
    return out, None, None


# ---- in programs: of 16-bit logits that were widened for it, which are read as they are

IN_PROGRAMS = "fused.cross_entropy.CudaArray"
OF_HALVES = f"{IN_PROGRAMS}.of_halves"


def _of_halves(input: Spec, *_: Any) -> list[Spec]:
    return [Spec(shape, F32, input.device) for shape in ((), input.shape[:1], ())]


def _in_float32(input: CudaArray, target: CudaArray, weight: None, size_average: None, ignored: int, *_: Any) -> Any:
    return entropy(input, target, ignored, F32)


_op = FUSED[OF_HALVES] = Op(OF_HALVES, FUSION, cross_entropy.op.signature, cross_entropy.op.meaning, infer=_of_halves)
_op.kernel, _op.tensors = _in_float32, cross_entropy.tensors
