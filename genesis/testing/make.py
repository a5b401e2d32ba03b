"""Values for samples: distinct, well apart, away from ties and from zero, and the same in every run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.core.graph.tensor import Tensor, wrap


class Maker:
    """What the ``t`` of an op's samples is: ``t(2, 3)``, ``t.int(2, low=0, high=5)``, ``t.bool(3)``, ``t.positive(2)``.

    >>> from genesis.testing import Maker
    >>> Maker()(2, 3).shape
    genesis.Size([2, 3])
    """

    def __init__(
        self, dtype: Any = dtypes.float64, seed: int = 0, layout: str = "contiguous", requires_grad: bool = False
    ) -> None:
        self.dtype = dtypes.as_dtype(dtype)
        self.layout, self.requires_grad = layout, requires_grad
        self._rng = np.random.Generator(np.random.Philox(seed))

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Tensor:
        """Numbers spread evenly over (low, high) in random order, in the dtype under test."""
        count = math.prod(shape)
        if self.dtype.name == "bool":
            return self._wrap(self._rng.integers(0, 2, shape).astype(bool))
        if self.dtype.category == 1:
            low_, high_ = (0 if not self.dtype.is_signed else int(low) - 1), int(high) + 3
            return self._wrap(self._rng.integers(low_, high_, shape).astype(self.dtype.np))
        values = self._spread(count, low, high)
        if self.dtype.is_complex:
            values = values + 1j * self._spread(count, low, high)
        return self._wrap(values.reshape(shape).astype(self.dtype.np))

    def _spread(self, count: int, low: float, high: float) -> Any:
        fractions = (np.arange(count) + self._rng.uniform(0.3, 0.7, count)) / max(count, 1)
        return self._rng.permutation(low + (high - low) * fractions)

    def positive(self, *shape: int) -> Tensor:
        """Numbers in (0.5, 2)."""
        if self.dtype.category < 2:
            return self._wrap(self._rng.integers(1, 4, shape).astype(self.dtype.np))
        return self(*shape, low=0.5, high=2.0)

    def int(self, *shape: int, low: int = -3, high: int = 4) -> Tensor:
        """int64 numbers in [low, high)."""
        return self._wrap(self._rng.integers(low, high, shape).astype(np.int64))

    def bool(self, *shape: int) -> Tensor:
        """True and False."""
        return self._wrap(self._rng.integers(0, 2, shape).astype(bool))

    def _wrap(self, array: Any) -> Tensor:
        array = np.asarray(array)
        # every second element of a larger array, one dimension backwards, turned around
        if self.layout == "strided" and array.ndim:
            wide = np.zeros([2 * n for n in array.shape[::-1]], array.dtype)
            view = wide[(slice(None, None, -2), *[slice(None, None, 2)] * (array.ndim - 1))].T
            view[...] = array
            array = view
        out = wrap(array)
        floating = dtypes.from_numpy(array.dtype).category >= 2
        return out.requires_grad_() if self.requires_grad and floating else out
