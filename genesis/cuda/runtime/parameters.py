"""The arguments of a kernel, as the driver wants them: values one behind the other in memory, and an array of their
addresses.

Each thread has buffers of its own: the driver reads them during `cuLaunchKernel`, where another thread may be about to
write its own.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

POINTER, INT, LONG, FLOAT, DOUBLE, FLAG = "Q", "i", "q", "f", "d", "b"
_SIZES = {POINTER: 8, INT: 4, LONG: 8, FLOAT: 4, DOUBLE: 8, FLAG: 1}


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
        memory = ctypes.create_string_buffer(max(self.packed.size, 1))
        first = ctypes.addressof(memory)
        pointers = (ctypes.c_void_p * max(len(self.offsets), 1))(*[first + at for at in self.offsets])
        made = self._buffers[threading.get_ident()] = memory, pointers, ctypes.addressof(pointers)
        return made
