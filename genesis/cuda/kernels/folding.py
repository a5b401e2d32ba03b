"""Windows as columns, which is a copy, and back, which is a sum of the elements of columns that lie on each other; the same
of windows along one dimension, which are views.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import F64, HALVES
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.lanes import LANES, Code, Operand, Placed, start
from genesis.cuda.kernels.moves import copied, part
from genesis.cuda.kernels.pooling_tiles import Tables, started, taps_of


def unfold_columns(input: CudaArray, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = input
    if any(padding):
        sizes = [n + 2 * p for n, p in zip(input.shape[-2:], padding, strict=True)]
        x = MEMORY.zeros((*input.shape[:-2], *sizes), input.dtype, input.device)
        inside = [slice(p, p + n) for n, p in zip(input.shape[-2:], padding, strict=True)]
        if not copied(part(x, (..., *inside)), input):
            return NotImplemented
    count = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(x.shape[-2:], kernel_size, dilation, stride, strict=True)
    ]
    lead, steps = x.shape[:-2], x.strides[-2:]
    windows = x.seen(
        0,
        (*lead, *kernel_size, *count),
        (*x.strides[:-2], *[d * s for d, s in zip(dilation, steps, strict=True)],
         *[d * s for d, s in zip(stride, steps, strict=True)]),
    )  # fmt: skip
    shape = (*lead[:-1], lead[-1] * math.prod(kernel_size), math.prod(count))
    out = MEMORY.empty(shape, input.dtype, input.device)
    laid = out.seen(0, windows.shape, contiguous_strides(windows.shape))
    return out if not out.size or copied(laid, windows) else NotImplemented


@functools.lru_cache(maxsize=512)
def _overlapping(
    n: int, size: int, stride: int, padding: int, dilation: int, count: int, steps: tuple[int, int]
) -> Any:
    """For each of n elements where those of windows are that lie on it, by the steps from an element of a window to the next
    and from a window to the next.
    """
    at = np.arange(size)[:, None] * dilation + np.arange(count) * stride - padding
    where = np.arange(size)[:, None] * steps[0] + np.arange(count) * steps[1]
    rows = [where[at == i] for i in range(n)]
    out = np.full((n, max([len(row) for row in rows] + [1])), -1, np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def fold_columns(input: CudaArray, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    if input.dtype.kind == "c" or not input.size:
        return NotImplemented
    rules = list(zip(output_size, kernel_size, stride, padding, dilation, strict=True))
    high, wide = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in rules]
    window, columns = math.prod(kernel_size), high * wide
    channels, lead = input.shape[-2] // window, input.shape[:-2]
    x = input if input.is_contiguous else MEMORY.copy(input)
    steps = (kernel_size[1] * columns, wide), (columns, 1)
    keys = [(*rule, count, step) for rule, count, step in zip(rules, (high, wide), steps, strict=True)]
    made = [_overlapping(*key) for key in keys]
    by = taps_of(x, ("overlapping", *keys), lambda: Tables([m.T for m in made]))
    b, spans = math.prod(lead) * channels, [int(m.max()) + 1 for m in made]
    out = MEMORY.empty((*lead, channels, *output_size), x.dtype, x.device)
    flat = out.seen(0, (b, *output_size), contiguous_strides((b, *output_size)))
    seen = x.seen(0, (b, *spans), (window * columns, 1, 1))
    started("sum", (seen,), (flat,), (1, 2), by)
    return out


@functools.cache
def folding(kind: str) -> Code:
    """What the windows have that an element is in, one window after the other; sums are of numbers of a kind."""
    lines = f"""
i = c0.to(tl.int64)
w = tl.maximum((i - size + step) // step, 0)
last = tl.minimum(i // step, count - 1)
total = tl.zeros([{LANES}], tl.{kind})
while tl.max((inside & (w <= last)).to(tl.int32), 0) > 0:
    value = tl.load(x + x_at + w * x_step0 + (i - w * step) * x_step1, mask=inside & (w <= last), other=0)
    total += value.to(tl.{kind})
    w += 1
tl.store(out + out_at, total.to(out.dtype.element_ty), mask=inside)
"""

    def meaning(x: Any, out: Any, size: int, step: int, count: int) -> None:
        parts, total = x[0], np.zeros(out.shape, kind)  # (..., windows, elements)
        for w in range(count):
            total[w * step : w * step + size] += np.moveaxis(parts[..., w, :], -1, 0)
        out[...] = total.astype(out.dtype)

    return Code(
        "folding", (Operand("x", 2), Operand("out", writes=True)), lines, meaning, ("size", "step", "count"), whole=1
    )


def fold_windows(input: CudaArray, length: int, dimension: int, size: int, step: int) -> Any:
    if input.dtype.kind not in "f" and input.dtype not in HALVES:
        return NotImplemented
    own, steps = input.shape[:-1], input.strides[:-1]
    out = MEMORY.empty((*own[:dimension], length, *own[dimension + 1 :]), input.dtype, input.device)
    others = [d for d in range(len(own)) if d != dimension]
    shape = (length, *[own[d] for d in others])
    reached = ((own[dimension], steps[dimension]), (size, input.strides[-1]))
    x = Placed(input, (0, *[steps[d] for d in others]), reached)
    to = Placed(out, (out.strides[dimension], *[out.strides[d] for d in others]))
    kind = "float64" if input.dtype == F64 else "float32"
    start(folding(kind), shape, [x, to], (size, step, own[dimension]))
    return out


KERNELS = {"unfold_columns": unfold_columns, "fold_columns": fold_columns, "fold_windows": fold_windows}
