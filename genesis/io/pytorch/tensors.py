"""Storages and tensors as PyTorch's files describe them; every number is checked before it is used."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from genesis.arrays.spec import meta
from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.device import CPU, device
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor, wrap
from genesis.io.blocks import Array, short, strided
from genesis.io.pytorch.inert import Built, Named
from genesis.io.source import Damaged

STORAGES = {
    "FloatStorage": dtypes.float32,
    "DoubleStorage": dtypes.float64,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
}
LOCATION = re.compile(r"(cpu|cuda|meta|mps|xpu|hpu|xla|npu|mtia|privateuseone|maia)(:[0-9]{1,4})?")


class StorageType(Built):
    """The class of a storage; without a dtype, bytes."""

    def __init__(self, dtype: dtypes.dtype | None) -> None:
        self.dtype = dtype


class TypedStorage(Built):
    """Memory of tensors, and the device on which they are to be."""

    def __init__(self, memory: Array, dtype: dtypes.dtype | None, device: device) -> None:
        self.memory, self.dtype, self.device = memory, dtype, device


def storage_id(pid: Any, length: int) -> tuple[dtypes.dtype | None, str, str, int, Any]:
    """dtype, key, location, number of bytes, and what else a persistent id says."""
    if type(pid) is not tuple or len(pid) != length or _text(pid[0]) != "storage":
        raise Damaged("is damaged: a persistent id of its pickle is no storage")
    kind, key, location, count = pid[1], _text(pid[2]), _text(pid[3]), pid[4]
    if (
        not isinstance(kind, StorageType)
        or key is None
        or len(key) > 100
        or location is None
        or not LOCATION.fullmatch(location)
    ):
        raise Damaged("is damaged: a persistent id of its pickle is no storage")
    if type(count) is not int or not 0 <= count < 1 << 58:
        raise Damaged(f"is damaged: a storage has {short(count)} elements")
    size = 1 if kind.dtype is None else kind.dtype.itemsize
    return kind.dtype, key, location, count * size, pid[5] if length > 5 else None


def _text(value: Any) -> str | None:
    return value.decode("latin1") if type(value) is bytes else value if type(value) is str else None


def tensor(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Tensor:
    """A tensor on a storage: `torch._utils._rebuild_tensor`."""
    if type(storage) is not TypedStorage or not isinstance(dtype, dtypes.dtype | None):
        raise Damaged("is damaged: a tensor has no storage")
    kind = dtype or storage.dtype or dtypes.uint8
    for numbers in (size, stride, (offset,)):
        if not isinstance(numbers, list | tuple) or any(type(n) is not int or not 0 <= n < 1 << 58 for n in numbers):
            raise Damaged(
                f"is damaged: a tensor has shape {short(size)}, strides {short(stride)} and offset {short(offset)}"
            )
    array = strided(storage.memory, kind.np, offset * kind.itemsize, size, [n * kind.itemsize for n in stride])
    out = wrap(stored(array))
    return out if storage.device == CPU or storage.device.type == "cpu" else out.to(device=storage.device)  # type: ignore[attr-defined]


def tensor_v2(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    metadata: Any = None,
    dtype: Any = None,
) -> Tensor:
    out = tensor(storage, offset, size, stride, dtype)
    bits = metadata if type(metadata) is dict else {}
    if bits.get("conj") is True:
        out = out.conj().clone()  # type: ignore[attr-defined]
    if bits.get("neg") is True:
        out = out.neg()  # type: ignore[attr-defined]
    return _wanting(out, requires_grad)


def tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> Tensor:
    return tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata, dtype)


def meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    if not isinstance(dtype, dtypes.dtype):
        raise Damaged("is damaged: a tensor has no dtype")
    strided(np.empty(0, np.uint8), dtype.np, 0, [*_sizes(size), 0])  # the checks alone
    return _wanting(wrap(meta(tuple(size), dtype.np)), requires_grad)


def _sizes(size: Any) -> Any:
    if not isinstance(size, list | tuple):
        raise Damaged(f"is damaged: a tensor has shape {short(size)}")
    return size


def _wanting(out: Tensor, requires_grad: Any) -> Tensor:
    if not requires_grad:
        return out
    if not (out.is_floating_point() or out.is_complex()):
        raise Damaged("is damaged: a tensor of an integer dtype requires grad")
    return out.requires_grad_()


def parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Parameter:
    if not isinstance(data, Tensor):
        raise Damaged("is damaged: a parameter has no tensor")
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise Damaged("is damaged: a parameter of an integer dtype requires grad")
    out = Parameter(data, bool(requires_grad))
    _attributes(out, state)
    return out


def of_type(function: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """A tensor with attributes, or of a class of its own: `torch._tensor._rebuild_from_type_v2`."""
    if (
        type(function) is not Named
        or not function.name.startswith("torch._utils.")
        or type(kind) is not Named
        or kind.name not in ("torch.Tensor", "torch.nn.parameter.Parameter")
    ):
        raise Damaged("is damaged: a tensor has no class")
    out = function(args)
    if not isinstance(out, Tensor):
        raise Damaged("is damaged: a tensor is none")
    if kind.name != "torch.Tensor" and not isinstance(out, Parameter):
        out = Parameter(out, out.requires_grad)
    _attributes(out, state)
    return out


def _attributes(out: Tensor, state: Any) -> None:
    """Attributes that a program gave to its tensor; never those that tensors have."""
    if type(state) is tuple and len(state) == 2:
        state = state[0]
    for name, value in state.items() if type(state) is dict else ():
        if type(name) is str and not name.startswith("_") and not hasattr(type(out), name) and _plain(value):
            vars(out)[name] = value


def _plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)
