"""DLPack: tensors of other libraries on the same memory of a GPU, and ours on theirs. https://dmlc.github.io/dlpack

Who takes an array says on which stream it will use it: that stream waits for what was told to ours until now. The
memory is kept until the taker says that it is done with it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import GraphError, UnsupportedError, message
from genesis.core.graph.tensor import Tensor
from genesis.cuda.arrays import CudaArray, Storage, used
from genesis.cuda.runtime.devices import Device, device_at
from genesis.cuda.runtime.streams import Stream, current

CUDA = 2  # the type of such devices
NAME, USED = b"dltensor", b"used_dltensor"
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# functions of our own, for what others say of those of `ctypes.pythonapi` holds for everybody
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

_given: dict[int, Any] = {}  # what takers have, by the address of its description


# ---- out


def capsule(array: CudaArray, stream: int | None) -> Any:
    """What `__dlpack__` returns, for a taker that will use the array on a stream (-1: it waits by itself)."""
    if stream != -1:
        _taken_on(array, 1 if stream is None else stream)
    numbers = ctypes.c_int64 * max(array.ndim, 1)
    shape, strides = numbers(*array.shape), numbers(*array.strides)
    code = _BFLOAT if array.dtype == dtypes.bfloat16.np else _CODES.get(array.dtype.kind)
    if code is None:
        raise UnsupportedError(message("__dlpack__", f"{array.dtype.name} has no code"))
    managed = _Managed()
    managed.tensor = _Tensor(
        array.address, CUDA, array.on.index, array.ndim, code, 8 * array.dtype.itemsize, 1, shape, strides, 0
    )
    managed.deleter = _deleter
    address = ctypes.addressof(managed)
    _given[address] = managed, shape, strides, array
    return _new(address, NAME, _destructor)


def _taken_on(array: CudaArray, stream: int) -> None:
    """Let a stream of somebody else wait for what was told to ours."""
    event = used(array).record_event()
    array.on.enter().stream_wait(stream, event.cuda_event)


@_Deleter
def _deleter(managed: Any) -> None:
    _given.pop(ctypes.addressof(managed.contents), None)


@_Destructor
def _destructor(capsule: Any) -> None:
    if _is_valid(capsule, NAME):  # nobody took it
        _given.pop(_pointer(capsule, NAME), None)


# ---- in


class Foreign(Storage):
    """Memory of somebody else, who is told when nobody has it any more."""

    __slots__ = ("managed",)

    def __init__(self, on: Device, managed: Any) -> None:
        self.on, self.managed, self.stream = on, managed, None

    def used_on(self, stream: Stream) -> None:
        pass

    def __del__(self) -> None:
        managed = getattr(self, "managed", None)
        if managed is not None and managed.contents.deleter:
            managed.contents.deleter(managed)


def taken(tensor: Any) -> CudaArray:
    """The array of a tensor of another library, that says by ``__dlpack_device__`` that it is on a GPU."""
    on = device_at(tensor.__dlpack_device__()[1])
    held = tensor.__dlpack__(stream=current(on).handle)
    address = _pointer(id(held), NAME)
    _rename(id(held), USED)
    managed = ctypes.cast(address, ctypes.POINTER(_Managed))
    said = managed.contents.tensor
    shape = tuple(said.shape[: said.ndim])
    strides = tuple(said.strides[: said.ndim]) if said.strides else None
    return CudaArray(Foreign(on, managed), said.data + said.offset, shape, _dtype(said), strides)


def _dtype(said: Any) -> np.dtype[Any]:
    if said.code == _BFLOAT and said.bits == 16:
        return dtypes.bfloat16.np
    letter = next((letter for letter, code in _CODES.items() if code == said.code), None)
    if letter is None or said.lanes != 1:
        raise UnsupportedError(message("from_dlpack", f"no dtype of code {said.code} and {said.bits} bits"))
    return np.dtype(np.bool_ if letter == "b" else f"{letter}{said.bits // 8}")


# ---- the older interface


def _interface(self: Tensor) -> dict[str, Any]:
    """Version 3 of the interface of CUDA arrays, for libraries that take no DLPack: where the memory is and how it is laid out,
    and the stream that the taker has to wait for.

    Raises:
        AttributeError: the tensor is on no GPU, or of a dtype that NumPy cannot name
        RuntimeError: it requires a gradient
    """
    x = self._array
    if not isinstance(x, CudaArray) or x.dtype.kind not in "biufc":
        raise AttributeError(f"a tensor of {self.dtype} on {self.device} has no __cuda_array_interface__")
    if self.requires_grad:
        raise GraphError(message("__cuda_array_interface__", "the tensor requires a gradient", hint="x.detach()"))
    strides = None if x.is_contiguous else tuple([s * x.dtype.itemsize for s in x.strides])
    address = x.address if x.size else 0
    return {"shape": tuple(x.shape), "typestr": x.dtype.str, "data": (address, False), "strides": strides, "version": 3,
            "stream": used(x).handle}  # fmt: skip


Tensor.__cuda_array_interface__ = property(_interface)  # type: ignore[attr-defined]
