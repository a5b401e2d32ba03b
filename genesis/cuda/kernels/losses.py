"""Cross entropy of rows of logits and class indices. Each row is read once for its loss, in blocks with a running maximum, and
once for its gradient; between them the logarithm of the sum of each row is kept, not the softmax.

A class that is none is reported, as an index is.
"""

from __future__ import annotations

import functools
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
from genesis.cuda.kernels.losses_code import APART, BESIDE, GRADIENT, LONG_GRADIENT, LOSS, MEAN, printed
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import ALIGNED, Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.cuda.runtime.reports import BITS, reports
from genesis.jit.lowering.triton_code import pointer_to

SHORT, LONG = 1024, 4096  # elements of a row from which several are read at once, and of a block of a row
I64 = np.dtype(np.int64)
Grid = tuple[int, int, int]


class Row(Launched):
    """A kernel of rows of logits, by the dtypes of its operands.

    Attributes:
        text: what is printed
        writes: how many operands, the last ones, are written
        reports: whether it says which class is none
        sizes: what kinds of numbers come behind these: sizes and steps, and the class that does not count
    """

    text: str
    writes: int
    reports = False
    sizes = "qiiqq"

    def __init__(self, dtypes: tuple[Any, ...], block: int, beside: int = 0, warps: int = 8) -> None:
        self.warps = warps if block > SHORT else 4
        lanes = min(block // beside if beside else 32 * self.warps, block)
        tile = BESIDE if beside else APART
        names = {name: text.format(lanes=lanes, several=block // lanes) for name, text in tile.items()}
        self.source = printed(self.text, block, lanes=lanes, beside=max(beside, 1), mask=(1 << BITS) - 1, **names)
        self.dtypes, self.beside = dtypes, max(beside, 1)
        report = ("*i64", "i64") if self.reports else ()
        self.signature = (
            *[pointer_to(d) for d in dtypes],
            *report,
            *["i32" if n == "i" else "i64" for n in self.sizes],
        )
        self.letters = "Q" * len(dtypes) + ("Qq" if self.reports else "") + self.sizes
        numbers = {len(dtypes) + 1} if self.reports else set()
        self.free = frozenset({*numbers, len(self.letters) - 1})

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        """How many elements of each operand there are."""
        raise NotImplementedError

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
        x = matrix(arrays[0], grid[0], self.classes(values), values[-2]).astype(F32)
        with np.errstate(all="ignore"):
            self.compute(x, arrays[1:], (report[0], values[len(arrays) + 1]) if report else None, values)

    def classes(self, values: tuple[Any, ...]) -> int:
        classes: int = values[len(self.letters) - len(self.sizes) + self.sizes.index("i")]
        return classes

    def compute(self, x: Any, arrays: list[Any], report: Any, values: tuple[Any, ...]) -> None:
        """The same with NumPy, of the logits and the other operands."""
        raise NotImplementedError


class Loss(Row):
    text, writes, reports, sizes = LOSS, 3, True, "iqq"

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        rows, (classes, step, _) = grid[0], values[-3:]
        return [-(-((rows - 1) * step + classes) // self.beside) * self.beside, rows, rows, rows, rows]

    def compute(self, x: Any, arrays: list[Any], report: Any, values: tuple[Any, ...]) -> None:
        loss_of(x, *arrays, report, values[-1])


class Gradient(Row):
    text, writes = GRADIENT, 1

    def counts(self, grid: Grid, values: tuple[Any, ...]) -> list[int]:
        rows, (across, _, wide, step, _) = grid[0], values[-5:]
        return [(rows - 1) * step + wide, rows, rows, 1, 1, (rows - 1) * across + wide]

    def compute(self, x: Any, arrays: list[Any], report: Any, values: tuple[Any, ...]) -> None:
        *given, out = arrays
        gradient(x, *given, matrix(out, *x.shape, values[-5]), values[-1])


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


class Long(Launched):
    """The kernel of gradients of rows without gaps."""

    letters, warps = "QQQQQQqiiq", 8

    def __init__(self, dtype: Any, labels: Any, g: Any, block: int) -> None:
        self.source, self.dtypes, self.block = printed(LONG_GRADIENT, block), (dtype, labels, F32, F32, g, dtype), block
        self.signature = (*[pointer_to(d) for d in self.dtypes], "i64", "i32", "i32", "i64")
        self.free = frozenset({6, 7, 8, 9})

    def counts(self, values: tuple[Any, ...]) -> list[int]:
        n, rows = values[6], values[8]
        return [n, rows, rows, 1, 1, n]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        sizes = enumerate(zip(self.dtypes, self.counts(values), strict=True))
        return [(values[i], d.itemsize * count, i == 5) for i, (d, count) in sizes]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        counts = self.counts(values)
        arrays = [memory.array(values[i], d, n) for i, (d, n) in enumerate(zip(self.dtypes, counts, strict=True))]
        if interpreted():
            arrays[-1][...] = interpreter.run(self.source, grid, [*arrays, *values[6:]])[5]
            return
        x, target, total, share, g, out = arrays
        shape = values[8], values[7]
        with np.errstate(all="ignore"):
            gradient(x.reshape(shape).astype(F32), target, total, share, g, out.reshape(shape), values[9])


class Mean(Launched):
    """The kernel that joins the losses of rows into one number of a dtype."""

    source, letters, warps = MEAN.format(block=2 * LONG), "QQQQi", 8

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
def losses(dtype: Any, labels: Any, block: int, beside: int) -> Loss:
    """``beside`` elements, of 16 bytes, are read at once; 0: one by one."""
    return Loss((dtype, labels, F32, F32, F32), block, beside)


@functools.cache
def gradients(dtype: Any, labels: Any, g: Any, block: int) -> Gradient:
    return Gradient((dtype, labels, F32, F32, g, dtype), block)


@functools.cache
def long_gradients(dtype: Any, labels: Any, g: Any, block: int) -> Long:
    return Long(dtype, labels, g, block)


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


def beside_of(rows: CudaArray) -> int:
    """How many elements of long rows are 16 bytes and may be read at once; 0 where some of them are the memory of others."""
    (count, columns), step, size = rows.shape, rows.strides[0], rows.dtype.itemsize
    if columns <= SHORT or rows.address % ALIGNED:
        return 0
    end = rows.address + ((count - 1) * step + columns) * size
    return ALIGNED // size if end % ALIGNED == 0 or _inside(rows, -(-end // ALIGNED) * ALIGNED) else 0


def _inside(rows: CudaArray, end: int) -> bool:
    """Whether memory goes so far. Of that of others we do not know it."""
    block = getattr(rows.storage, "block", None)
    return block is not None and end <= block.address + block.size


def wide_of(rows: CudaArray) -> int:
    """How many elements of a row are gone through: with some of the gap behind it where that is wide enough for all to be
    done 16 bytes at a time.
    """
    (count, columns), step, size = rows.shape, rows.strides[0], rows.dtype.itemsize
    wide = -(-columns // ALIGNED) * ALIGNED
    end = rows.address + ((count - 1) * step + wide) * size
    return wide if step % ALIGNED == 0 and wide <= step and _inside(rows, end) else columns


def entropy(logits: CudaArray, target: CudaArray, ignored: int, dtype: Any) -> tuple[CudaArray, CudaArray, CudaArray]:
    """The mean of the losses as a number of a dtype, the logarithm of the sum of each row, and the share of a row."""
    (rows, classes), on, input = logits.shape, logits.on, laid(logits)
    target = target if target.is_contiguous else MEMORY.copy(target)
    total, loss, counts = (empty(on, (rows,), F32) for _ in range(3))
    out, share = (empty(on, (), kind) for kind in (dtype, F32))
    stream = used(input, target, total, loss, counts, out, share).handle
    about = reports(on).address, reports(on).number("cross_entropy", f"{classes} classes")
    addresses = [x.address for x in (input, target, total, loss, counts)]
    kernel = losses(input.dtype, target.dtype, block_of(classes), beside_of(input))
    kernel.start(on, stream, (rows, 1, 1), (*addresses, *about, classes, input.strides[0], ignored))
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
    out = padded.result(input.shape, input.dtype, input.device)
    stream = used(input, target, total, share, g, out).handle
    (rows, classes), addresses = input.shape, [x.address for x in (input, target, total, share, g, out)]
    kinds = input.dtype, target.dtype, g.dtype
    if classes >= SHORT and input.is_contiguous and out.is_contiguous:
        block = min(1 << (classes.bit_length() - 1), LONG)
        grid = -(-input.size // block), 1, 1
        long_gradients(*kinds, block).start(out.on, stream, grid, (*addresses, input.size, classes, rows, ignored))
        return out, None, None
    block, wide = block_of(classes), min(wide_of(input), wide_of(out))
    sizes = out.strides[0], classes, wide, input.strides[0], ignored
    gradients(*kinds, block).start(out.on, stream, (rows, -(-classes // block), 1), (*addresses, *sizes))
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
