"""Products of 16-bit matrices whose rows do not begin at multiples of 16 bytes.

Tensor cores are fed 16 bytes at once, and cuBLASLt asks that of addresses and of what is from one row to the next, and of
extents along rows. For other matrices it has kernels of an older kind, a quarter as fast or less: where a product is large
enough, it is made of copies whose rows are further apart, and what it gives is copied to where it belongs.

    logits (16384, 50257)   rows of 100514 bytes   ->   rows of 100608 bytes, of which 94 are nothing

A compiled step lays such values out so from the first (`genesis.cuda.steps.apart`): there is nothing to copy then.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from genesis.arrays.spec import contiguous_strides
from genesis.core.call.halves import HALVES
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.libraries import cublaslt

BYTES, LINE = 16, 128  # that tensor cores are fed at once, and of a line of the cache, where rows of many begin
WIDE = 2048  # bytes of a row from which the rest of a line is little
# operations in a second where all begins at multiples of so many bytes: measured of 2 and 16, the others are a guess
RATES = {2: 140e12, 4: 280e12, 8: 280e12, BYTES: 600e12}
MOVED, COPIED = 4e12, 3e12  # bytes in a second of a product that is bound by them, and of a copy
STARTED = 5e-6  # seconds that each copy takes in any case
LARGE = 1 << 35  # operations from which a product may be several


class _Wanted(threading.local):  # no context variable: kernels are run in contexts of their own
    gaps = False


_here = _Wanted()


@contextmanager
def gaps(wanted: bool) -> Iterator[None]:
    """Results of 16 bits may have gaps between their rows in here: who calls takes them as they are."""
    before, _here.gaps = _here.gaps, wanted
    try:
        yield
    finally:
        _here.gaps = before


def result(shape: Sequence[int], dtype: Any, device: Any) -> CudaArray:
    """New memory for a result, with such rows if they are wanted."""
    wanted = _here.gaps and dtype in HALVES and len(shape) > 1
    return padded(shape, dtype, device) if wanted else MEMORY.empty(tuple(shape), dtype, device)


def row_step(columns: int, size: int) -> int:
    """From one row to the next, in elements of so many bytes."""
    multiple = (LINE if columns * size >= WIDE else BYTES) // size
    return -(-columns // multiple) * multiple


def padded_strides(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """The strides of an array whose rows begin at multiples of 16 bytes."""
    return (*contiguous_strides((*shape[:-1], row_step(shape[-1], size)))[:-1], 1)


def padded(shape: Sequence[int], dtype: Any, device: Any) -> CudaArray:
    """New memory with such rows."""
    strides = padded_strides(shape, dtype.itemsize)
    whole = MEMORY.empty((*shape[:-1], row_step(shape[-1], dtype.itemsize)), dtype, device)
    return whole.seen(0, tuple(shape), strides)


@dataclass(frozen=True, slots=True)
class Direct:
    """A product of operands where they lie."""

    shape: tuple[int, ...]
    repeated: cublaslt.Repeated

    def run(self, x: CudaArray, y: CudaArray, bias: CudaArray | None) -> CudaArray | None:
        """None where it may be another one."""
        if x.dtype in HALVES and ((x.address | y.address) % BYTES or _here.gaps):
            return None
        return self.repeated.run(x, y, bias, self.shape)


def multiplied(
    x: CudaArray, y: CudaArray, bias: CudaArray | None, shape: tuple[int, ...], batch: int, steps: tuple[int, int]
) -> tuple[CudaArray | None, Direct | None]:
    """``x @ y + bias`` by cuBLASLt, see `genesis.cuda.libraries.cublaslt.multiplied`, or None if that does not do it; and how
    the same is done again, if nothing but addresses decides about that.
    """
    out = wanted = result(shape, x.dtype, x.device)
    half = x.dtype in HALVES
    alike = not half or not (_here.gaps or (x.address | y.address) % BYTES)
    if half and pays(x, y, out):
        alike, out = False, wanted if multiple(wanted) == BYTES else padded(shape, x.dtype, x.device)
        (x, az), (y, bz) = (_aligned(a, step) for a, step in zip((x, y), steps, strict=True))
        steps = az, bz
    parts = divided(x, y, bias, out) if half and batch == 1 else [(x, y, bias, out, False)]
    alike &= len(parts) == 1
    for left, right, added, into, adds in parts:
        repeated = cublaslt.multiplied(left, right, added, into, batch, steps, adds)
        if repeated is None:
            return None, None
    if out is not wanted:
        MEMORY.assign(wanted, out)
    return wanted, Direct(shape, repeated) if alike else None


Part = tuple[
    CudaArray, CudaArray, CudaArray | None, CudaArray, bool
]  # operands, bias, result, and whether it is added to


def divided(x: CudaArray, y: CudaArray, bias: CudaArray | None, out: CudaArray) -> list[Part]:
    """A large product as one of extents along rows that are multiples of 16 bytes, as cuBLASLt's fast kernels ask, and small
    ones of the few rows or columns that are left.
    """
    (m, k), n, step = x.shape[-2:], y.shape[-1], BYTES // x.dtype.itemsize
    if out.ndim < 2 or 2 * m * k * n < LARGE or min(map(multiple, (x, y, out))) < BYTES:
        return [(x, y, bias, out, False)]
    along_k = x.strides[-1] == 1 or y.strides[-1] != 1  # an extent of rows of x, or of y turned
    lefts = m % step if x.strides[-1] != 1 else 0, n % step, k % step if along_k else 0
    rows, columns, depths = (_cut(size, left) for size, left in zip((m, n, k), lefts, strict=True))
    return [
        (
            _part(x, row, depth),
            _part(y, depth, column),
            None
            if bias is None or depth[0]
            else _part(bias.seen(0, (1, n), (n, 1)), (0, 1), column).seen(0, column[1:], (1,)),
            _part(out.seen(0, (m, n), out.strides[-2:]), row, column),
            depth[0] > 0,
        )
        for row in rows
        for column in columns
        for depth in depths
    ]


def _cut(size: int, left: int) -> list[tuple[int, int]]:
    """Where the parts of an extent begin, and how long they are."""
    return [(at, count) for at, count in ((0, size - left), (size - left, left)) if count]


def _part(x: CudaArray, rows: tuple[int, int], columns: tuple[int, int]) -> CudaArray:
    down, right = x.strides[-2:]
    offset = (rows[0] * down + columns[0] * right) * x.dtype.itemsize
    return x.seen(offset, (rows[1], columns[1]), (down, right))


def pays(*arrays: CudaArray) -> bool:
    """Whether a product of two operands, and what it gives, gains more by copies than these take."""
    multiples = [multiple(x) for x in arrays]
    worst = min(multiples)
    if worst == BYTES:
        return False
    sizes = [math.prod(x.shape) * x.dtype.itemsize for x in arrays]
    operations = 2 * math.prod(arrays[2].shape) * arrays[0].shape[-1]
    copied = [2 * n for n, each in zip(sizes, multiples, strict=True) if each < BYTES]
    slow, fast = [max(operations / RATES[each], sum(sizes) / MOVED) for each in (worst, BYTES)]
    return slow - fast > sum(copied) / COPIED + len(copied) * STARTED


def multiple(x: CudaArray) -> int:
    """Of how many bytes the address is a multiple, and what is from one row or matrix to the next; at most 16."""
    strides = [s for n, s in zip(x.shape, x.strides, strict=True) if n > 1 and s != 1]
    return math.gcd(x.address, BYTES, *[s * x.dtype.itemsize for s in strides])


def _aligned(x: CudaArray, step: int) -> tuple[CudaArray, int]:
    """An operand with rows, or columns, that begin at multiples of 16 bytes, and the step to the next; a copy if need be."""
    if multiple(x) == BYTES:
        return x, step
    turned = x.strides[-1] != 1
    seen = x.seen(0, (*x.shape[:-2], *x.shape[:-3:-1]), (*x.strides[:-2], *x.strides[:-3:-1])) if turned else x
    copy = padded(seen.shape, x.dtype, x.device)
    MEMORY.assign(copy, seen)
    strides = copy.strides
    if turned:
        copy = copy.seen(0, x.shape, (*strides[:-2], *strides[:-3:-1]))
    return copy, strides[-3] if step else 0
