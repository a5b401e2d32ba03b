"""Complex numbers as pairs of floats: views of their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import contiguous_strides
from genesis.cuda.arrays import CudaArray
from genesis.cuda.kernels.lanes import Placed
from genesis.cuda.kernels.moves import broadcast, contiguous


def real_of(dtype: Any) -> Any:
    return np.dtype(f"f{dtype.itemsize // 2}")


def part_of(x: CudaArray, which: int) -> CudaArray:
    """The real (0) or imaginary (1) parts, as a view."""
    real = real_of(x.dtype)
    return x.seen(which * real.itemsize, x.shape, tuple([2 * s for s in x.strides]), real)


def pairs_of(x: CudaArray) -> CudaArray:
    """The parts along one more dimension, as a view."""
    return x.seen(0, (*x.shape, 2), (*[2 * s for s in x.strides], 1), real_of(x.dtype))


def from_pairs(pairs: CudaArray) -> CudaArray:
    held = contiguous(pairs)
    return held.seen(0, held.shape[:-1], contiguous_strides(held.shape[:-1]), np.dtype(f"c{2 * held.dtype.itemsize}"))


def in_pairs(x: CudaArray, shape: tuple[int, ...]) -> Placed:
    """Both parts of each element, along a shape that an array broadcasts to."""
    strides = broadcast(x, shape)
    return Placed(part_of(x, 0), tuple([2 * s for s in strides]), ((2, 1),))
