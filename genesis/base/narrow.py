"""Conversions from and to the dtypes that are only stored: 8-bit floats, and complex numbers of 16-bit parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.base.dtypes import STORED, NpDtype, complex32, float8_e4m3fn, float8_e5m2, float8_e8m0fnu

Values = np.ndarray[Any, Any]
NARROW = frozenset([kind.np for kind in STORED])
_HALVES, _E4M3, _E5M2, _E8M0 = complex32.np, float8_e4m3fn.np, float8_e5m2.np, float8_e8m0fnu.np


def converted(array: Values, dtype: NpDtype) -> Values:
    """A copy of an array in another dtype: rounded by way of float32 where one of the two is only stored, and to
    float8_e4m3fn, which has no infinity, cut off at 448; NaN stays NaN.

    >>> converted(np.array([3.1, 1000.0]), _E4M3).tolist()
    [3.0, 448.0]
    """
    if dtype not in NARROW and array.dtype not in NARROW:
        return array.astype(dtype)
    with np.errstate(all="ignore"):
        x = widened(array)
        if x.dtype.kind == "c" and dtype.kind not in "cb" and dtype != _HALVES:  # bool: either part is not zero
            x = x.real
        return np.asarray(_narrowed(x, dtype) if dtype in NARROW else x.astype(dtype))


def widened(array: Values) -> Values:
    """Stored numbers as float32 or complex64, which hold all of them; other arrays as they are."""
    if array.dtype not in NARROW:
        return array
    array = array.view(np.ndarray)
    if array.dtype != _HALVES:
        return array.astype(np.float32)
    out = np.empty(array.shape, np.complex64)
    out.real, out.imag = array["real"], array["imag"]
    return out


def restrided(memory: Values, shape: Any, strides: Any, writeable: bool = True) -> Values:
    """NumPy's ``as_strided``, also of float8_e5m2, whose name its protocol does not know. (That takes 5 us; the class of
    arrays, which takes contiguous ones of NumPy's dtypes and looks where they end, 0.7.)
    """
    if memory.flags.c_contiguous and memory.dtype.isbuiltin == 1 and min(strides, default=0) >= 0:
        try:
            plain: Values = np.ndarray(shape, memory.dtype, memory, 0, strides)
        except ValueError:  # beyond its own end
            pass
        else:
            if not writeable:
                plain.flags.writeable = False
            return plain
    strided = np.lib.stride_tricks.as_strided
    if memory.dtype != _E5M2:
        return strided(memory, shape, strides, writeable=writeable)
    view: Values = strided(memory.view(np.uint8), shape, strides, writeable=writeable).view(_E5M2)
    return view


def _narrowed(x: Values, dtype: NpDtype) -> Values:
    if dtype == _HALVES:
        parts = x.astype(np.complex64)
        out = np.empty(x.shape, dtype)
        out["real"], out["imag"] = parts.real, parts.imag
        return out
    x = x.astype(np.float32)
    if dtype == _E8M0:
        return _exponents(x).view(dtype)
    return (np.clip(x, -448, 448) if dtype == _E4M3 else x).astype(dtype)


def _exponents(x: Values) -> Values:
    """The biased exponents of the nearest powers of two, 255 for what is not finite. Numbers half way between two go
    up, but for the smallest, whose exponents have no bit in front of the point.
    """
    bits: Any = np.atleast_1d(x).view(np.uint32)
    exponent, fraction = bits >> 23 & 255, bits & 0x7FFFFF
    up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    out: Values = (exponent + (up & (exponent < 255))).astype(np.uint8).reshape(x.shape)
    return out
