"""What of the arguments of a call decides how it is computed: a key by which that is remembered."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.cuda.arrays import CudaArray

KNOWN = 4096  # calls of an op that are remembered
EQUAL = {int, bool, str, type(None)}  # whose values mean the same where they are equal, as those of floats may not


def signature(value: Any) -> Any:
    """What of an argument decides about the kernel: of arrays how they are laid out."""
    if isinstance(value, CudaArray):
        return value.shape, value.strides, value.dtype
    if isinstance(value, tuple | list):
        return type(value), tuple([signature(v) for v in value])
    kind = type(value)
    return (kind, value) if kind in EQUAL or isinstance(value, np.dtype) else (kind, repr(value))
