"""What of the arguments of a call decides how it is computed: a key by which that is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from genesis.cuda.arrays import CudaArray

KNOWN = 4096  # calls of an op that are remembered
INT = {int}
T = TypeVar("T")
EQUAL = {int, bool, str, type(None)}  # whose values mean the same where they are equal, as those of floats may not


def remember(known: dict[Any, T], key: Any, value: T) -> T:
    """Keep what was found out about a call for those like it; what is full begins anew. Returns the value."""
    if len(known) >= KNOWN:
        known.clear()
    known[key] = value
    return value


def alike(args: tuple[Any, ...], floats: Sequence[int] = ()) -> tuple[Any, ...]:
    """What of a call on a device decides about what is launched, but for addresses, and for floats at these positions."""
    key: list[Any] = []
    for a in args:
        kind = a.__class__
        if kind is CudaArray:
            key.append(a._layout or a.layout)
        elif kind is float and len(key) in floats:
            key.append(float)
        elif kind in EQUAL:
            key.append((kind, a))
        elif kind is not tuple and kind is not list:
            key.append(signature(a))
        else:
            key.append((kind, *a) if {*map(type, a)} == INT else (kind, alike(a)))
    return tuple(key)


def signature(value: Any) -> Any:
    """What of an argument decides about the kernel: of arrays how they are laid out."""
    if isinstance(value, CudaArray):
        return value.shape, value.strides, value.dtype
    if isinstance(value, tuple | list):
        return type(value), tuple([signature(v) for v in value])
    kind = type(value)
    return (kind, value) if kind in EQUAL or isinstance(value, np.dtype) else (kind, repr(value))
