"""Elements as every engine can combine them, and back.

16-bit floats are summed and multiplied in float32 and rounded once. Booleans are bytes of which the sum is the largest
and the product the smallest. The smallest and largest of floats are found among integers in the same order, with NaN
beyond both ends: so NaN wins, as in `genesis.maximum`, and all ranks get the same bits whatever the order of combining.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.device import CPU
from genesis.base.errors import DTypeError, message
from genesis.base.narrow import NARROW
from genesis.core.call.halves import HALVES
from genesis.distributed.engine import Host

BITWISE = ("band", "bor", "bxor")
_BOOLEAN = {"sum": "max", "product": "min", "min": "min", "max": "max", "band": "min", "bor": "max", "bxor": "bxor"}


class Wire(NamedTuple):
    """How elements of a dtype are combined: by which op of an engine, as what, and how they come back."""

    op: str
    there: Callable[[Host], Host]  # contiguous memory, the same where nothing is to be done
    back: Callable[[Host, int], Host]  # from what was combined, and the number of ranks


def _same(x: Host) -> Host:
    return x


def _widened(x: Host) -> Host:
    return x.astype(np.float32)


@np.errstate(over="ignore")
def _rounded(x: Host, dtype: np.dtype[np.generic]) -> Host:
    return x.astype(dtype, copy=False)


def _as_it_is(x: Host, size: int) -> Host:
    return x


@functools.lru_cache(256)
def wire(name: str, dtype: np.dtype[np.generic], op: str) -> Wire:
    """How ``op`` (``"mean"`` among others) combines elements of a dtype.

    Raises:
        RuntimeError: that has no meaning
    """
    if dtype in NARROW:
        raise _refused(name, dtype, "numbers of this dtype are only stored, and moved", "x.float()")
    kind = "f" if dtype in HALVES else dtype.kind
    if op in BITWISE and kind not in "iub":
        raise _refused(name, dtype, f"{op.upper()} is of integers and booleans")
    if kind == "b":
        return _of_booleans(name, dtype, op)
    if op == "mean":
        return _mean(name, dtype, kind)
    if op in ("min", "max"):
        if kind == "c":
            raise _refused(name, dtype, f"complex numbers have no {op}")
        return _extreme(dtype, op) if kind == "f" else Wire(op, _same, _as_it_is)
    if dtype in HALVES:
        return Wire(op, _widened, lambda x, size: _rounded(x, dtype))
    return Wire(op, _same, _as_it_is)


def _of_booleans(name: str, dtype: np.dtype[np.generic], op: str) -> Wire:
    if op == "mean":
        raise _refused(name, dtype, "booleans have no mean")
    return Wire(_BOOLEAN[op], lambda x: x.view(np.uint8), lambda x, size: x.view(np.bool_))


def _mean(name: str, dtype: np.dtype[np.generic], kind: str) -> Wire:
    if kind in "iu":
        raise _refused(name, dtype, "integers have no mean", "ReduceOp.SUM, and divide")

    def back(x: Host, size: int) -> Host:
        parts = x.reshape(-1).view(x.real.dtype)  # a quotient of complex numbers is rounded more than once
        return _rounded(np.divide(parts, parts.dtype.type(size), out=parts).view(x.dtype), dtype)

    return Wire("sum", _widened if dtype in HALVES else _same, back)


def _extreme(dtype: np.dtype[np.generic], op: str) -> Wire:
    """By integers in the order of the floats: the bits, with those behind the sign turned round below zero."""
    wide = np.dtype(np.float32) if dtype in HALVES else dtype
    bits = np.dtype(np.int64 if wide.itemsize == 8 else np.int32)
    limits = np.iinfo(bits)
    nan = limits.max if op == "max" else limits.min

    def turned(x: Host) -> Host:
        return np.where(x < 0, x ^ bits.type(limits.max), x)

    def there(x: Host) -> Host:
        x = x.astype(wide, copy=False)
        return np.where(np.isnan(x), bits.type(nan), turned(x.view(bits)))

    def back(x: Host, size: int) -> Host:
        values = turned(x).view(wide)
        return _rounded(np.where(x == nan, wide.type(np.nan), values), dtype)

    return Wire(op, there, back)


def _refused(name: str, dtype: np.dtype[np.generic], problem: str, hint: str | None = None) -> Exception:
    return DTypeError(message(name, problem, [("tensor", Spec((), dtype, CPU))], hint))
