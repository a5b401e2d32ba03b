"""Sparse arrays: what a sparse tensor is to those who ask for a shape, a dtype and a device; its elements are two
tensors (`ops/products/sparse.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from genesis.arrays.protocol import NeedsValues, Virtual, asked_for_at
from genesis.base.device import device
from genesis.base.errors import message


class SparseArray(Virtual):
    """A shape, a dtype and a device: ops that know of sparse tensors ask these for their coordinates and values."""

    __slots__ = ("device", "dtype", "shape")
    base: ClassVar[None] = None

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], device: device) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device

    def described(self) -> str:
        return "layout=sparse"

    def refuse(self, what: str, site: Any = None) -> Exception:
        text = "a sparse tensor has no elements one after the other"
        return NeedsValues(message(what, text, asked_for_at(site), "x.to_dense()"))

    def copy(self) -> SparseArray:
        return self
