"""Functions of the rows of float32 arrays as compiled loops, where llvmlite is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.core.call.halves import F32
from genesis.core.call.kernels import attach
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops, rows
from genesis.kernels.native import runtime


def fits(x: Any, dims: Any) -> bool:
    """Whether there is a loop: for float32 numbers, reduced over the last dimensions."""
    last = dims == (x.ndim - 1,) or (len(dims) > 0 and tuple(dims) == tuple(range(x.ndim - len(dims), x.ndim)))
    return last and x.dtype is F32 and loops.available()


def on_rows(function: Callable[..., None], signature: str, dims: int, *operands: Any) -> Any:
    """A function of rows on arrays of one shape, over their last ``dims`` dimensions, and numbers of each row."""
    first = operands[0]
    shape = first.shape
    if dims == 1 and first.size < LARGE["elements"] and first.flags.c_contiguous and signature == "(n)->(n)":
        return rows.gufunc(function, signature, runtime.spread)(first)
    length = math.prod(shape[len(shape) - dims :])
    given = [np.ascontiguousarray(x).reshape(-1, length) if x.shape == shape else x.reshape(-1) for x in operands]
    out = memory.empty(shape, F32)
    results = [out.reshape(-1, length)]
    if signature.endswith(",()"):
        root = np.empty((*shape[: len(shape) - dims], *[1] * dims), F32)
        results.append(root.reshape(-1))
    runtime.ready()
    rows.gufunc(function, signature, runtime.spread)(*given, *results)
    return out if len(results) == 1 else (out, root)


@attach("softmax", np.ndarray, when=lambda x, dim, *_: fits(x, (dim,)))
def softmax(input: Any, *_: Any) -> Any:
    return on_rows(rows.softmax, "(n)->(n)", 1, input)


@attach("log_softmax", np.ndarray, when=lambda x, dim, *_: fits(x, (dim,)))
def log_softmax(input: Any, *_: Any) -> Any:
    return on_rows(rows.log_softmax, "(n)->(n)", 1, input)


@attach("standardized", np.ndarray, when=lambda x, dims, eps: fits(x, dims))
def standardized(input: Any, dims: Any, eps: float) -> Any:
    return standardized_and_deviation(input, dims, eps)[0]


def standardized_and_deviation(input: Any, dims: Any, eps: float) -> Any:
    return on_rows(rows.standardized, "(n),()->(n),()", len(dims), input, np.asarray(eps, F32))
