"""The methods of `Tensor` that lead out of Genesis: to numbers, lists, NumPy arrays, copies and pickles."""

from __future__ import annotations

import copy as copying
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import DeviceArray, apart, memory_of
from genesis.arrays.protocol import Dispatched, Virtual, value_of
from genesis.arrays.spec import Spec
from genesis.arrays.stored import Stored
from genesis.base.errors import (
    ArgumentError,
    GraphError,
    ShapeError,
    message,
)
from genesis.base.narrow import widened
from genesis.core.graph.escapes import leaves
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.site import line_here
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


def numpy_view(self: Tensor) -> np.ndarray[Any, Any]:
    """The NumPy array inside, shared; an error when there is no data."""
    if isinstance(self._array, Dispatched):
        raise self._array.refuse("numpy", line_here())
    if tracer.get() is not None:
        tracer.get().refuse_numbers(self)
    self._own_memory()
    return self._array if self._array.__class__ is not Stored else self._array.view(np.ndarray)


def on_host(self: Tensor) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array: the one inside, or a copy of what a device holds."""
    if not isinstance(self._array, DeviceArray):
        return self.numpy_view()
    if tracer.get() is not None:
        tracer.get().refuse_numbers(self)
    return memory_of(self._array).to_host(self._array)


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """A NumPy array on the same memory (no copy); bfloat16 becomes ``ml_dtypes.bfloat16``.

    Raises:
        RuntimeError: the tensor requires grad, which is neither off (`no_grad`) nor given up (``force=True``), or it has
            no data
    """
    if self._node is not None and not force and grad_mode.get():
        raise GraphError(
            message("numpy", "the tensor requires grad, NumPy would lose the history", hint="x.detach().numpy()")
        )
    return self.numpy_view()


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: another dtype needs a copy, and copy=False forbids one")
        return array.astype(dtype)
    return array.copy() if copy else array


def item(self: Tensor) -> Any:
    """The one element as a Python number."""
    array = self._array
    if (
        self._node is None
        and not ACTIVE
        and array.__class__ is np.ndarray
        and array.size == 1
        and array.dtype.kind != "V"
    ):
        return array.item()
    if self._array.size != 1:
        raise ShapeError(
            message("item", f"the tensor has {self._array.size} elements, item() needs exactly one",
                    operands=[("tensor", self._spec())], hint="index it first, or tolist()")
        )  # fmt: skip
    if tracer.get() is not None:
        number = tracer.get().number(self)
        if number is not None:
            return number
    if self._node is not None:
        leaves("item()", self._node)
    value = (self if isinstance(self._array, np.ndarray) else _plain(self))._on_host().reshape(-1)[0]
    if self._array.__class__ is Stored:
        return widened(np.asarray(value)).item()
    return float(value) if self._array.dtype.kind == "V" or self.dtype.is_floating_point else value.item()


def _plain(x: Tensor) -> Tensor:
    """What the innermost array of a layered one holds."""
    from genesis.core.graph.tensor import wrap

    return wrap(value_of(x._array))


def tolist(self: Tensor) -> Any:
    """The elements as (nested lists of) Python numbers."""
    if self._node is not None:
        leaves("tolist()", self._node)
    array = widened(self._on_host())
    if self.dtype.is_floating_point and array.dtype.kind != "f":
        array = array.astype(np.float32)
    return array.tolist()


def as_float(self: Tensor) -> float:
    return float(self.item())


def as_int(self: Tensor) -> int:
    return int(self.item())


def as_complex(self: Tensor) -> complex:
    return complex(self.item())


def as_index(self: Tensor) -> int:
    if self._array.dtype.kind not in "iu" or self._array.size != 1:
        raise ArgumentError(
            message("index", f"only a one-element integer tensor can be an index, this is {self._spec()}")
        )
    return int(self.item())


def as_bool(self: Tensor) -> bool:
    if self._array.size != 1:
        raise ShapeError(
            message("bool", f"the truth of {self._array.size} elements is ambiguous",
                    operands=[("tensor", self._spec())], hint="x.any() or x.all()")
        )  # fmt: skip
    return bool(self.item())


def length(self: Tensor) -> int:
    if not self._array.ndim:
        raise ArgumentError(message("len", "a 0-d tensor has no length"))
    return int(self._array.shape[0])


def iterator(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise ArgumentError(message("iter", "a 0-d tensor cannot be iterated"))
    return iter(self.unbind(0))


def backwards(self: Tensor) -> Tensor:
    return self.flip(0) if self._array.ndim else self


def contains(self: Tensor, value: Any) -> bool:
    return bool((self == value).any())


def formatted(self: Tensor, spec: str) -> str:
    if not spec and (self._array.ndim or isinstance(self._array, Virtual)):
        return repr(self)
    if self._array.size != 1:
        raise ArgumentError(
            message("format", f"{spec!r} formats one element, the tensor has {self._array.size}",
                    hint="f'{x}' prints the whole tensor")
        )  # fmt: skip
    return format(self.item(), spec)


def deepcopied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise GraphError(
            message("deepcopy", "only leaf tensors can be deep-copied", hint="copy x.detach(), or clone() it")
        )
    from genesis.core.graph.tensor import wrap

    out: Tensor = wrap(self._array if isinstance(self._array, Spec) else apart(self._array), type(self))
    memo[id(self)] = out
    out.requires_grad_(self.requires_grad)
    for name, value in self.__dict__.items():
        setattr(out, name, copying.deepcopy(value, memo))
    if self.grad is not None:
        out.grad = copying.deepcopy(self.grad, memo)
    return out


def reduced(self: Tensor) -> Any:
    if not self.is_leaf:
        raise GraphError(message("pickle", "only leaf tensors can be pickled", hint="pickle x.detach()"))
    if isinstance(self._array, Virtual) and not isinstance(self._array, Spec):
        raise self._array.refuse("pickle", line_here())
    from genesis.core.graph.tensor import _rebuild

    if isinstance(self._array, DeviceArray):
        return _rebuild, (type(self), self._on_host(), self.requires_grad, self.device)
    array = (
        self._array if isinstance(self._array, Spec) else np.ascontiguousarray(self._array).reshape(self._array.shape)
    )
    return _rebuild, (type(self), array, self.requires_grad)


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The functions of the Python array API standard, `genesis.array_api`."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            message(
                "__array_namespace__",
                f"version {api_version!r} of the array API is not known",
                hint="2021.12 to 2024.12",
            )
        )
    return importlib.import_module("genesis.array_api")


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This tensor on another device (the array API's ``to``)."""
    return self.to(device=device)


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The memory as a DLPack capsule; of negative strides a copy, for which some consumers (PyTorch 2.13) abort the
    process.
    """
    inside = self.detach()._array
    if isinstance(inside, DeviceArray) and not self.requires_grad:
        return memory_of(inside).dlpack(inside, stream)
    array = self.numpy()
    if any(step < 0 for step in array.strides):
        if copy is False:
            raise BufferError(
                message(
                    "__dlpack__",
                    "negative strides need a copy, and copy=False forbids one",
                    [("input", self._spec())],
                    hint="x.contiguous()",
                )
            )
        array = array.copy()
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    # NumPy 2.0 knows stream alone
    return array.__dlpack__(**{name: value for name, value in options.items() if value is not None})


def dlpack_device(self: Tensor) -> tuple[int, int]:
    if isinstance(self._array, DeviceArray):
        return memory_of(self._array).dlpack_device(self._array)
    return self.numpy_view().__dlpack_device__()
