"""The arguments of a kernel, as the driver wants them: values one behind the other in memory, and an array of their
addresses.

Each thread has buffers of its own: the driver reads them during `cuLaunchKernel`, where another thread may be about to
write its own.

Machine code of Triton has two parameters more than its source (`HIDDEN`): addresses of memory for what its own launcher
offers. The driver reads as many addresses as the machine code has parameters, so these are there, too, and hold 0.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

POINTER, INT, LONG, FLOAT, DOUBLE, FLAG = "Q", "i", "q", "f", "d", "b"
_SIZES = {POINTER: 8, INT: 4, LONG: 8, FLOAT: 4, DOUBLE: 8, FLAG: 1}
HIDDEN = 2  # parameters behind those of the source, 8 bytes of 0 each


class Parameters:
    """What the arguments of a kernel are, by a letter each: ``"QQi"`` are two pointers and an int.

    >>> Parameters("QQi").offsets
    (0, 8, 16)
    """

    __slots__ = ("_buffers", "letters", "offsets", "packed")

    def __init__(self, letters: str) -> None:
        self.letters = letters
        offsets, at, form = [], 0, "<"
        for letter in letters:
            size = _SIZES[letter]
            form += "x" * (-at % size) + letter
            at += -at % size
            offsets.append(at)
            at += size
        self.offsets = tuple(offsets)
        self.packed = struct.Struct(form)
        self._buffers: dict[int, tuple[Any, Any, int]] = {}

    def address(self, values: tuple[Any, ...]) -> int:
        """The address of the array of addresses, after the values are written."""
        buffers = self._buffers.get(threading.get_ident()) or self._new()
        self.packed.pack_into(buffers[0], 0, *values)
        return buffers[2]

    def _new(self) -> tuple[Any, Any, int]:
        zero = -(-self.packed.size // 8) * 8  # where the hidden ones are, which nobody writes to
        memory = ctypes.create_string_buffer(zero + 8)
        first, offsets = ctypes.addressof(memory), (*self.offsets, *[zero] * HIDDEN)
        pointers = (ctypes.c_void_p * len(offsets))(*[first + at for at in offsets])
        made = self._buffers[threading.get_ident()] = memory, pointers, ctypes.addressof(pointers)
        return made
