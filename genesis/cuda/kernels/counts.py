"""How often numbers occur: `bincount` and `histc`. Counts are added by atomic operations, which give the same numbers in any
order; weights are summed in the order of their elements (`sums`).

How many counts there are, or between which numbers bins lie, may be in the elements: the host asks for the smallest and the
largest then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels import sums
from genesis.cuda.kernels.host import host_kernel
from genesis.cuda.kernels.lanes import Code, Operand, Placed, start
from genesis.cuda.kernels.searches import searchsorted

I32, I64 = np.dtype(np.int32), np.dtype(np.int64)
MOST = sums.LAST  # elements


def _count(x: Any, out: Any) -> None:
    out += np.bincount(x.reshape(-1), minlength=out.shape[-1]).astype(out.dtype)


COUNT = Code(
    "counts",
    (Operand("x"), Operand("out", 1, writes=True)),
    "to = tl.load(x + x_at, mask=inside, other=0).to(tl.int64)\n"
    "one = (at * 0 + 1).to(tl.int32)\n"
    "tl.atomic_add(out + out_at + to * out_step0, one, mask=inside)",
    _count,
)


def _counted(x: CudaArray, size: int) -> CudaArray:
    """Of numbers that are all below a size."""
    out = MEMORY.zeros((size,), I32, x.device)
    placed = [Placed(x, x.strides), Placed(out, (0,) * x.ndim, ((size, 1),))]
    start(COUNT, x.shape, placed)
    return out


def _converted(x: CudaArray, dtype: Any) -> CudaArray:
    out = MEMORY.empty(x.shape, dtype, x.device)
    MEMORY.assign(out, x)
    return out


def _ends(x: CudaArray) -> tuple[Any, Any]:
    """The smallest and the largest."""
    dims = tuple(range(x.ndim))
    return tuple([MEMORY.to_host(MEMORY.kernel(REGISTRY[name])(x, dims, False))[()] for name in ("amin", "amax")])  # type: ignore[return-value]


def bincount(input: CudaArray, weights: CudaArray | None, minlength: int) -> Any:
    kind = I64 if weights is None else F32 if weights.dtype == F32 else F64
    if not input.size:
        return MEMORY.zeros((minlength,), kind, input.device)
    taken = input.size < MOST and input.dtype.kind in "iu" and (weights is None or weights.dtype.kind in "fi")
    low, high = _ends(input) if taken else (-1, -1)
    if low < 0:  # the CPU says what is wrong, if something is
        return host_kernel(REGISTRY["bincount"])(input, weights, minlength)
    size = max(int(high) + 1, minlength)
    if weights is None:
        return _converted(_counted(input, size), I64)
    return _converted(sums.scatter_sum(_converted(weights, F64), (size,), 0, input), kind)


def histc(input: CudaArray, bins: int, low: float, high: float) -> Any:
    wide = F32 if input.dtype in HALVES else input.dtype
    if not input.size:
        return MEMORY.zeros((bins,), input.dtype, input.device)
    if low == high:
        low, high = map(float, _ends(input))
    low, high = (low - 1, high + 1) if low == high else (low, high)
    if not np.isfinite(high - low) or input.size >= MOST:
        return NotImplemented
    edges = np.linspace(low, high, bins + 1, dtype=wide)
    edges[-1] = np.nextafter(edges[-1], wide.type(np.inf))  # the last bin has its end
    where = searchsorted(MEMORY.from_host(edges, input.device), input, True, None, "right", None)
    counts = _counted(where, bins + 2)  # in front of all bins, and behind them, or no number
    return _converted(counts.seen(counts.dtype.itemsize, (bins,), (1,)), input.dtype)


KERNELS = {"bincount": bincount, "histc": histc}
