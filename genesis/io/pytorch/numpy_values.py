"""NumPy arrays, scalars and dtypes of checkpoints: numbers only, and as many bytes as the shape says."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.io.blocks import short, strided
from genesis.io.pytorch.inert import Built, Named
from genesis.io.source import Damaged


class NumpyType(Built):
    """A dtype on its way: BUILD says its byte order."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def build(self, state: Any) -> None:
        if (
            type(state) is not tuple
            or len(state) < 2
            or type(state[1]) is not str
            or state[1] not in ("<", ">", "|", "=")
        ):
            raise Damaged("is damaged: a NumPy dtype has no byte order")
        self.dtype = self.dtype.newbyteorder(state[1])


def numpy_type(name: Any, align: Any = False, copy: Any = True) -> NumpyType:
    if type(name) is not str or name not in {
        "b1",
        "i1",
        "i2",
        "i4",
        "i8",
        "u1",
        "u2",
        "u4",
        "u8",
        "f2",
        "f4",
        "f8",
        "c8",
        "c16",
    }:
        raise Damaged("holds NumPy values of a dtype that is no number", "save numbers")
    return NumpyType(np.dtype(name))


def scalar(kind: Any, data: Any) -> Any:
    return array(data, kind, (), "C")[()]


def array(data: Any, kind: Any, shape: Any, order: Any) -> Any:
    """An array of the system's byte order in memory of its own."""
    if type(data) is str:
        data = latin1(data)
    if (
        type(kind) is not NumpyType
        or type(data) not in (bytes, bytearray)
        or not isinstance(shape, tuple)
        or type(order) is not str
        or order not in ("C", "F")
    ):
        raise Damaged("is damaged: a NumPy array has no bytes")
    memory = np.frombuffer(data, np.uint8)
    values = strided(memory, kind.dtype, 0, shape if order == "C" else shape[::-1])
    if values.nbytes != memory.nbytes:
        raise Damaged(f"is damaged: a NumPy array of shape {short(shape)} has {memory.nbytes} bytes")
    return (values if order == "C" else values.T).astype(kind.dtype.newbyteorder("="), order=order)


def empty(kind: Any, shape: Any, code: Any) -> Any:
    """An array that `complete` fills."""
    if type(kind) is not Named or kind.name != "numpy.ndarray":
        raise Damaged("is damaged: a NumPy array has no class")
    return np.empty(0, np.int8)


def complete(target: Any, state: Any) -> None:
    """Give an array its shape and elements."""
    if type(state) is not tuple or len(state) != 5 or type(state[3]) is not bool:
        raise Damaged("is damaged: a NumPy array has no bytes")
    _, shape, kind, fortran, data = state
    order = "F" if fortran else "C"
    values = array(data, kind, shape, order)
    target.__setstate__((1, values.shape, values.dtype, fortran, values.tobytes(order)))


def latin1(text: Any, encoding: Any = "latin1") -> bytes:
    """How protocol 2 writes bytes: as the string of their characters."""
    if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1"):
        raise Damaged("is damaged: bytes are no string")
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise Damaged("is damaged: bytes are made of characters that are none") from None
