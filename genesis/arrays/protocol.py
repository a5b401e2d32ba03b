"""The protocol of arrays: everything a `Tensor` may hold has a shape, a NumPy dtype and a device.

`numpy.ndarray` is the array of the CPU. It obeys the protocol but for ``device``, which is why the
device of an array is asked for through `device_of`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from genesis.base.device import CPU, device


class Array(Protocol):
    """Anything a tensor can hold; the annotation ``Array`` in an op's signature marks a tensor parameter."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def ndim(self) -> int: ...


def device_of(array: Any) -> device:
    """The device an array lives on."""
    return CPU if isinstance(array, np.ndarray) else array.device
