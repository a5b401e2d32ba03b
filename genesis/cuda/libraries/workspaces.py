"""Memory in which a library computes, for as long as one of its calls lasts."""

from __future__ import annotations

import numpy as np

from genesis.cuda.arrays import CudaArray, empty
from genesis.cuda.memory import sequence
from genesis.cuda.runtime.devices import Device

BYTE = np.dtype(np.uint8)
COUNTERS = 512  # bytes of those that hold nothing but counters of programs, and what is as small


def workspace(on: Device, count: int) -> CudaArray:
    """So many bytes. Of work that is repeated a small one is nobody else's: see `genesis.cuda.recorded.zeros`."""
    if count > COUNTERS or sequence.here.source is None:
        return empty(on, (count,), BYTE)
    with sequence.apart():
        return empty(on, (count,), BYTE)
