"""The Python array API standard (2024.12) for tensors: what ``x.__array_namespace__()`` returns.

Where the standard and PyTorch mean different things by one name (``max``, ``sort``, ``std``, ``take``), `genesis`
follows PyTorch and this namespace the standard. So it does for dtypes: in its functions, 0-d arrays take part in
promotion like all others; operators, ``x + y``, follow PyTorch, where a 0-d tensor gives way. Everything is
differentiable, batched and traced as ever. The extensions ``linalg`` and ``fft`` are there. The
public test suite runs with ``tests/array_api_xfails.txt``, which says what is left out and why. The files are the chapters of the standard.

>>> import genesis
>>> xp = genesis.ones(2).__array_namespace__()
>>> xp.sort(xp.asarray([3., 1.])), xp.std(xp.asarray([1., 3.]))
(tensor([1., 3.]), tensor(1.))
>>> xp.add(xp.asarray([1], dtype=xp.int8), xp.asarray(300)), xp.asarray([1], dtype=xp.int8) + xp.asarray(300)
(tensor([301]), tensor([45], dtype=genesis.int8))
"""

from __future__ import annotations

import math

import genesis as _g
from genesis.array_api import creation, dtypes, elementwise, fft, linalg, manipulation, products, searching, statistics
from genesis.array_api.creation import *
from genesis.array_api.dtypes import *
from genesis.array_api.elementwise import *
from genesis.array_api.elementwise import PROMOTED as PROMOTED
from genesis.array_api.inspection import __array_namespace_info__
from genesis.array_api.manipulation import *
from genesis.array_api.products import *
from genesis.array_api.searching import *
from genesis.array_api.statistics import *

__array_api_version__ = "2024.12"
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None
MISSING: tuple[str, ...] = ()  # of the standard

# What is the same in both
SAME = (
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bool",
    "ceil",
    "complex64",
    "complex128",
    "conj",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "float32",
    "float64",
    "floor",
    "from_dlpack",
    "imag",
    "int8",
    "int16",
    "int32",
    "int64",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "negative",
    "positive",
    "real",
    "reciprocal",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
)
globals().update({name: getattr(_g, name) for name in SAME})

__all__ = [
    "e",
    "fft",
    "inf",
    "linalg",
    "nan",
    "newaxis",
    "pi",
    *SAME,
    *creation.__all__,
    *dtypes.__all__,
    *elementwise.__all__,
    *manipulation.__all__,
    *products.__all__,
    *searching.__all__,
    *statistics.__all__,
]
