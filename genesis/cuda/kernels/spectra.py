"""Fourier transforms, by cuFFT where it is installed; else the CPU computes them. cuFFT multiplies by nothing, and of half a
spectrum that real numbers come from it overwrites what it reads: it is given a copy, whose first and (of an even size) last
elements are real, as the transform takes them to be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.pairs import pairs_of, part_of, real_of
from genesis.cuda.libraries import cufft
from genesis.cuda.libraries.loading import library
from genesis.ops.fourier.spectra import COMPLEX


def _there(input: CudaArray, kinds: str) -> bool:
    return library(cufft.NAME) is not None and input.dtype.char in kinds and input.size > 0


def scaled(x: CudaArray, factor: float) -> CudaArray:
    """The same array, multiplied."""
    if factor != 1:
        numbers = pairs_of(x) if x.dtype.kind == "c" else x
        if not MEMORY.update(REGISTRY["mul"], numbers, float(factor)):
            MEMORY.assign(numbers, MEMORY.kernel(REGISTRY["mul"])(numbers, float(factor)))
    return x


def fourier(input: CudaArray, dim: tuple[int, ...], forward: bool, scale: float) -> Any:
    if not _there(input, "FD"):
        return NotImplemented
    if not dim:
        return MEMORY.copy(input)
    dims = sorted(dim)
    for first in range(0, len(dims), cufft.MOST):
        out = MEMORY.empty(input.shape, input.dtype, input.device)
        if not cufft.transformed(input, out, tuple(dims[first : first + cufft.MOST]), forward):
            return NotImplemented
        input = out
    return scaled(input, scale)


def half_spectrum(input: CudaArray, dim: tuple[int, ...], scale: float) -> Any:
    """Over three dimensions at once, the last of which is halved; over others then."""
    if not _there(input, "fd"):
        return NotImplemented
    *others, last = dim
    others.sort()
    first, together = others[: 1 - cufft.MOST], others[1 - cufft.MOST :]
    kind: Any = COMPLEX[input.dtype.itemsize]
    out = MEMORY.empty(_with(input.shape, last, input.shape[last] // 2 + 1), kind, input.device)
    if not cufft.transformed(input, out, (*together, last), True):
        return NotImplemented
    return fourier(out, tuple(first), True, scale) if first else scaled(out, scale)


def from_half_spectrum(input: CudaArray, dim: tuple[int, ...], n: int, scale: float) -> Any:
    """The last dimension by itself, for there imaginary parts do not count that the others leave."""
    if not _there(input, "FD"):
        return NotImplemented
    *others, last = dim
    known = fourier(input, tuple(others), False, 1.0) if others else input
    if known is NotImplemented:
        return known
    half = cufft.with_last(known, (last,))
    MEMORY.assign(half, known)
    _make_real(half, last, n)
    out = MEMORY.empty(_with(input.shape, last, n), real_of(input.dtype), input.device)
    return scaled(out, scale) if cufft.transformed(half, out, (last,), False) else NotImplemented


def _with(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    return (*shape[:dim], n, *shape[dim + 1 :])


def _make_real(half: CudaArray, dim: int, n: int) -> None:
    """Zeros for the imaginary parts of the first element along a dimension, and of that which is its own mirror image."""
    imaginary = part_of(half, 1)
    count = 1 if n % 2 else min(n, 2)
    steps = _with(imaginary.strides, dim, imaginary.strides[dim] * max(n // 2, 1))
    chosen = imaginary.seen(0, _with(imaginary.shape, dim, count), steps)
    zero = MEMORY.zeros((), np.dtype(imaginary.dtype), imaginary.device)
    MEMORY.assign(chosen, zero.seen(0, chosen.shape, (0,) * chosen.ndim))


KERNELS: dict[str, Any] = {"fourier": fourier, "half_spectrum": half_spectrum, "from_half_spectrum": from_half_spectrum}
