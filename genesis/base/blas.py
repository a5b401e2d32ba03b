"""Products of matrices, by compiled code of our own or by NumPy's BLAS with one thread at a time and workers of our own.

OpenBLAS's threads wait actively for the next part of a product. On a machine that does something else, too, the
operating system takes turns between those that wait and those that work: a product of 64 x 784 and 784 x 128 took 100
us with one thread and 3800 us with two, beside two busy processes. So BLAS gets one thread while a product is computed
here, if the product is so large that it would use more; where that pays, workers (`base/threads.py`) take slices of it.
Afterwards BLAS has the number of threads that it had, for whoever uses NumPy without Genesis.

Large products of float32 matrices are `own` code's, where there is llvmlite: its workers are native and take smaller
parts. Any other BLAS is used as it is, and so is OpenBLAS with OpenMP. (Apple's Accelerate does not wait actively.)
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from genesis.base.dtypes import as_np
from genesis.base.locks import process_lock
from genesis.base.quiet import quietly, unnamed
from genesis.base.threads import get_num_threads, in_parallel

ALONE = 9_000  # multiplications up to which OpenBLAS uses one thread by itself, for any shapes
ALONE_MATRICES = 1 << 18  # the same for two matrices
_OWN_THREADS = 1  # what OpenBLAS calls its own threads, in contrast to those of OpenMP
PART = 12_000_000  # multiplications of a slice for a worker, at least: 100 to 300 us, of which waking it may take 50


@functools.cache
def _openblas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to ask NumPy's OpenBLAS for its number of threads and how to set it; None if it is another BLAS."""
    # finds what that library is linked to
    library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", "_64", ""):
            try:
                get, put = library[f"{prefix}_get_num_threads{suffix}"], library[f"{prefix}_set_num_threads{suffix}"]
            except AttributeError:
                continue
            if getattr(library, f"{prefix}_get_parallel{suffix}")() != _OWN_THREADS:
                return None
            get.restype, get.argtypes, put.restype, put.argtypes = ctypes.c_int, (), None, (ctypes.c_int,)
            return get, put
    return None


def blas_threads() -> int | None:
    """The threads that BLAS uses outside of Genesis; None where it cannot be asked."""
    openblas = _openblas()
    return None if openblas is None else openblas[0]()


def set_blas_threads(num: int) -> None:
    """Let BLAS use so many threads outside of Genesis; nothing where it cannot be told."""
    openblas = _openblas()
    if openblas is not None and openblas[0]() != num:
        openblas[1](num)


_lock = process_lock()
_inside = [0, 0]  # products that are being computed, in any thread; the threads that BLAS had before


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS uses one thread."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    openblas = _openblas()
    if openblas is None:
        return
    with _lock:
        _inside[0] += 1
        if _inside[0] == 1:
            _inside[1] = openblas[0]()
            if _inside[1] > 1:
                openblas[1](1)


def _leave() -> None:
    openblas = _openblas()
    if openblas is None:
        return
    with _lock:
        _inside[0] -= 1
        if _inside[0] == 0 and _inside[1] > 1:
            openblas[1](_inside[1])


def _after_fork() -> None:
    if _inside[0]:  # in threads that the child does not have
        _inside[0] = 1
        _leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Own(NamedTuple):
    """Products of float32 matrices that are not BLAS's (`kernels/native/gemm.py`)."""

    is_available: Callable[[], bool]
    product: Callable[..., Any]  # of two matrices, and a bias or None
    product_in_pairs: Callable[..., Any]  # the same of bfloat16 matrices; None where it is not computed so


own: list[Own] = []  # one, where there is any
empty: Callable[..., Any] = np.empty  # where large results go (`kernels/cpu/memory.py`)
FEW = 8  # terms from where a float32 product of `ALONE_MATRICES` multiplications is none of `LARGE` bytes
LARGE = 1 << 18  # bytes of a result from where fresh memory costs as much as a product of few terms
OWN_INNER, OWN_COLUMNS = 4, 16  # ... whose inner size, and number of columns, is as large as this
OWN_OF_BATCH, OWN_BATCH = 1 << 14, 1 << 22  # multiplications of each in a batch, and of all, from where it pays
_F32, _BF16 = np.dtype(np.float32), as_np("bfloat16")

_here = sys.modules[__name__]  # whose `ALONE` may be set: the function below has another namespace


@unnamed
def product(a: Any, b: Any) -> Any:
    """``np.matmul``."""
    work = a.size * b.shape[-1]
    if work <= _here.ALONE:
        return np.matmul(a, b)
    if work <= _here.ALONE_MATRICES and a.ndim == 2 == b.ndim and len(a) > 1 < b.shape[1] and len(b) >= FEW:
        return np.matmul(a, b)  # for which `_large` finds nothing else
    if work > _here.ALONE_MATRICES and _is_own(a, b):
        return own[0].product(a, b)
    return quietly(_here._large, a, b)


@unnamed
def product_and_bias(a: Any, b: Any, bias: Any) -> Any:
    """``np.matmul(a, b) + bias`` of one number for each column."""
    if a.size * b.shape[-1] > _here.ALONE_MATRICES and a.ndim > 1 and bias.shape == b.shape[-1:] and _is_own(a, b):
        return own[0].product(a, b, bias)
    out = product(a, b)
    return np.add(out, bias, out=out) if out.__class__ is np.ndarray else out + bias


@unnamed
def product_of_halves(a: Any, b: Any, bias: Any = None) -> Any:
    """``np.matmul(a, b) + bias`` of 16-bit floats, as float32 numbers that are not rounded."""
    out = None
    if own and a.dtype is _BF16 and a.__class__ is np.ndarray is b.__class__:
        out = own[0].product_in_pairs(a, b, None if bias is None else bias.astype(_F32))
    if out is not None:
        return out
    out = product(a.astype(_F32), b.astype(_F32))
    return out if bias is None else out + bias.astype(_F32)


@unnamed
def has_own() -> bool:
    """Whether there is `own` code, and no BLAS that it is not measured against."""
    return bool(own) and _openblas() is not None and bool(own[0].is_available())


@unnamed
def _is_own(a: Any, b: Any) -> bool:
    """Whether the product is of matrices that `own` code multiplies."""
    fits = a.dtype is _F32 is b.dtype and a.__class__ is np.ndarray is b.__class__ and b.ndim > 1 < a.ndim
    if not fits or b.shape[-2] < OWN_INNER or b.shape[-1] < OWN_COLUMNS or a.shape[-2] == 1:
        return False
    each = a.shape[-2] * b.shape[-2] * b.shape[-1]
    batch = each >= OWN_OF_BATCH and a.size * b.shape[-1] >= OWN_BATCH
    return bool(each > _here.ALONE_MATRICES or batch) and has_own()


def _large(a: Any, b: Any) -> Any:
    matrices = a.ndim > 1 < b.ndim
    each = a.shape[-2] * b.size // math.prod(b.shape[:-2]) if matrices else a.size
    if (matrices and each <= ALONE_MATRICES and a.shape[-2] != 1 != b.shape[-1]) or _openblas() is None:
        return _into_memory(a, b)
    _enter()
    try:
        if matrices and get_num_threads() > 1 and a.dtype is b.dtype and a.dtype.kind in "fc":
            return _in_slices(a, b, each)
        return _into_memory(a, b)
    finally:
        _leave()


def _into_memory(a: Any, b: Any) -> Any:
    """``np.matmul``; two matrices with a large product into memory that was used before."""
    if not a.ndim == 2 == b.ndim or a.dtype is not b.dtype or a.shape[1] != b.shape[0]:
        return np.matmul(a, b)
    shape = a.shape[0], b.shape[1]
    large = shape[0] * shape[1] * a.itemsize >= LARGE and a.dtype.kind in "fc"
    return np.matmul(a, b, _here.empty(shape, a.dtype)) if large else np.matmul(a, b)


def _in_slices(a: Any, b: Any, each: int) -> Any:
    """Products of so many multiplications each, by several threads: slices of the batch, else of rows, or of columns
    where rows are few.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    threads = get_num_threads()
    rounds = math.prod(batch) * each // (PART * threads)
    if rounds < 1:
        return np.matmul(a, b)
    parts = threads * min(rounds, 2)  # as many for each thread: two, where one may be late
    out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    if batch and batch[0] > 1:
        count = batch[0]
        cut_a, cut_b = (x.ndim == out.ndim and x.shape[0] > 1 for x in (a, b))
        part = lambda s: np.matmul(a[s] if cut_a else a, b[s] if cut_b else b, out[s])  # noqa: E731
    elif 4 * a.shape[-2] > b.shape[-1]:  # slices of columns are not contiguous: they take longer
        count = a.shape[-2]
        part = lambda s: np.matmul(a[..., s, :], b, out[..., s, :])  # noqa: E731
    else:
        count = b.shape[-1]
        part = lambda s: np.matmul(a, b[..., s], out[..., s])  # noqa: E731
    in_parallel(part, count, min(count, parts))
    return out
