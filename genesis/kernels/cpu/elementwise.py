"""Elementary functions of float32 arrays, computed in float64 where NumPy's float32 loops are too far off.

Those that use AVX-512 are up to 4 units of the last place from the exact result, those of other processors mostly less
than one. So each function is asked for a number where its loops are known to be off. In float64 it takes three to five
times as long, and is correctly rounded but for a few results in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach

_FAR_OFF = {  # where the error is more than 1.7 units
    "exp": (np.exp, -71.7384),
    "exp2": (np.exp2, 126.55355),
    "expm1": (np.expm1, 88.02608),
    "log": (np.log, 0.79086655),
    "log2": (np.log2, 0.74634874),
    "log10": (np.log10, 0.74992317),
    "tan": (np.tan, 1.4496364e24),
    "asin": (np.arcsin, 0.52120084),
    "atan": (np.arctan, 0.12530684),
    "cosh": (np.cosh, 8.315556),
}
_WORTH = 4096  # elements from where casting in pieces pays


def is_far_off(ufunc: Any, at: float) -> bool:
    """Whether the float32 loop is more than 1.5 units off there, in an array that vector loops take."""
    x = np.full(64, at, F32)
    exact = ufunc(x.astype(F64))
    return bool(np.max(np.abs(ufunc(x) - exact) / np.spacing(np.abs(exact).astype(F32))) > 1.5)


def _in_float64(x: Any, ufunc: Any = None) -> Any:
    if x.dtype is not F32:
        return ufunc(x)
    if x.size < _WORTH:
        return ufunc(x, dtype=F64).astype(F32)
    return ufunc(x, np.empty_like(x), dtype=F64, casting="same_kind")


def in_float64(ufunc: Any) -> Callable[[Any], Any]:
    """A kernel of one function; no closure, so that it is called as directly as a ufunc (`base/quiet.py`)."""
    return FunctionType(_in_float64.__code__, globals(), ufunc.__name__, (ufunc,))


for _name, (_ufunc, _at) in _FAR_OFF.items():
    if is_far_off(_ufunc, _at):
        attach(_name, np.ndarray, in_float64(_ufunc))


@attach("xlogy", np.ndarray, when=lambda x, y: x.dtype is F32)
def xlogy(x: Any, y: Any) -> Any:
    """Rounded once."""
    product = x * np.log(y, dtype=F64)
    return np.where(np.equal(x, 0) & ~np.isnan(y), 0, product).astype(F32)


_FEW = 1024  # elements up to which NumPy's own function, one number at a time, is as fast as several vector loops


def _sum_of_powers(high: Any, low: Any, power: Any, unit: float) -> Any:
    """The larger one, and ln(1 + power(d)) / unit for the distance d; what rounding took off d is made good."""
    d = _distance(high, low)
    back = d - low
    rest = (low - (d - back)) - (high + back)
    rest[~np.isfinite(rest)] = 0.0
    rest *= unit
    part = power(d)
    part += part * rest
    return high + np.log1p(part) / unit


def _short_sum_of_powers(high: Any, low: Any, power: Any, unit: float) -> Any:
    """The same where the result is rounded to float32."""
    d = _distance(high, low)
    power(d, out=d)
    np.log1p(d, out=d)
    d *= 1.0 / unit
    d += high
    return d


def _distance(high: Any, low: Any) -> Any:
    d = low - high
    d[high == low] = 0.0  # both may be infinite
    return d


def _in_pairs(name: str, own: Any, power: Any, unit: float) -> None:
    """Attach a kernel for two operands that broadcast, a block of elements at a time."""

    def kernel(x: Any, y: Any) -> Any:
        short = x.dtype is F32
        if short and max(x.size, y.size) <= _FEW:
            return own(x, y, dtype=F64).astype(F32)
        formula = _short_sum_of_powers if short else _sum_of_powers
        flags: Any = ["external_loop", "buffered", "zerosize_ok"]
        access: Any = [["readonly"], ["readonly"], ["writeonly", "allocate"]]
        with np.nditer(
            [x, y, None], flags, access, [F64, F64, x.dtype], casting="same_kind", buffersize=8192
        ) as blocks:
            for a, b, target in blocks:
                target[...] = formula(np.maximum(a, b), np.minimum(a, b), power, unit)
            return blocks.operands[2]

    attach(name, np.ndarray, kernel, when=lambda x, y: x.dtype.kind == "f")


_in_pairs("logaddexp", np.logaddexp, np.exp, 1.0)
_in_pairs("logaddexp2", np.logaddexp2, np.exp2, math.log(2))
