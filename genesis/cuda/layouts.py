"""How arrays lie on devices. Arrays that lie in one way have the same `Layout`: which one it is decides about a kernel, and a
call whose operands lie as those of another is known by their layouts alone, objects that are compared by identity.
"""

from __future__ import annotations

import math
from typing import Any

from genesis.arrays.spec import contiguous_strides
from genesis.cuda.runtime.devices import Device

ALIGNED = 16  # bytes that kernels read at once, where an address is a multiple of them
KNOWN = 1 << 14  # layouts of a device that are remembered


class Layout:
    """A device, a shape, a dtype, strides in elements, and whether the address is a multiple of 16 bytes.

    Attributes:
        count: bytes of an array that lies so without gaps
    """

    __slots__ = ("aligned", "count", "dtype", "on", "shape", "strides")

    def __init__(self, on: Device, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], aligned: bool) -> None:
        self.on, self.shape, self.dtype, self.strides, self.aligned = on, shape, dtype, strides, aligned
        self.count = math.prod(shape) * dtype.itemsize

    def __repr__(self) -> str:
        return f"<layout {self.dtype}{list(self.shape)} by {list(self.strides)} on {self.on}>"


def layout(
    on: Device, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None, aligned: bool = True
) -> Layout:
    """The layout of arrays of this kind; without strides of those without gaps."""
    known: dict[Any, Layout] = on.kept.get("layouts") or on.keep("layouts", lambda on: {})
    key = shape, dtype, strides, aligned
    made = known.get(key)
    if made is None:
        if len(known) >= KNOWN:  # those that arrays have stay what they are, and are met as others from now on
            known.clear()
        steps = contiguous_strides(shape) if strides is None else strides
        made = known.setdefault((shape, dtype, steps, aligned), Layout(on, shape, dtype, steps, aligned))
        known[key] = made
    return made
