"""Tensors of what Python, NumPy and other libraries hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.device import CPU, as_device, default_device, memory_named
from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.quiet import unnamed
from genesis.core.call.creating import creates, expect_plain, pinned
from genesis.core.call.refusal import explain_all, refuse_call
from genesis.core.graph.modes import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.construct import array_from
from genesis.ops.creation.create import finished


@unnamed
def _array_of(data: list[Any], dtype: Any) -> Any:
    """Numbers that may be too large for the dtype, which is no warning."""
    return np.array(data, dtype)


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor holding a copy of ``data``: numbers, nested sequences, NumPy arrays, other tensors.

    Python floats take the default dtype, integers int64; arrays keep their dtype. Integer literals that are to
    require grad become floating, an explicit integer ``dtype`` is an error then.

    Raises:
        TypeError, ValueError: not a rectangular array of numbers
        RuntimeError: an integer dtype that is to require grad

    >>> import genesis
    >>> genesis.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> genesis.tensor([1, 2, 3], requires_grad=True)
    tensor([1., 2., 3.], requires_grad=True)
    """
    if pin_memory is not False and expect_plain("tensor", None, pin_memory):
        return pinned(tensor(data, dtype=dtype, device=device), requires_grad)  # type: ignore[no-any-return]
    if data.__class__ is list and dtype is device is None and not (requires_grad or ACTIVE or LEVELS):
        kinds = {x.__class__ for x in data}  # most are lists of floats or of integers
        if (kinds == {float} or kinds == {int}) and default_device() is CPU:
            try:
                return wrap(_array_of(data, np.int64 if int in kinds else dtypes.get_default_dtype().np))
            except OverflowError:  # explained below
                pass
    try:
        return finished(array_from(data, dtype, device, requires_grad), requires_grad)
    except Exception as error:
        refuse_call(tensor, {"data": data, "dtype": dtype, "device": device, "requires_grad": requires_grad}, error)
        raise


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, sharing memory where that is possible (tensors, NumPy arrays of the right dtype).

    >>> import genesis, numpy as np
    >>> a = np.zeros(2); t = genesis.as_tensor(a); a[0] = 1; t
    tensor([1., 0.], dtype=genesis.float64)
    """
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    here = (default_device() if device is None else as_device(device)).type == "cpu"
    if isinstance(data, np.ndarray) and here and (dtype is None or dtypes.as_np(dtype) == data.dtype):
        return from_numpy(data)
    return tensor(data, dtype=dtype, device=device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`as_tensor` with ``copy``: True always copies, False never (an error where it would have to).

    >>> import genesis
    >>> genesis.asarray([1.0])
    tensor([1.])
    """
    if copy:
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    out = as_tensor(obj, dtype, device)
    if copy is False and not (out is obj or (isinstance(obj, np.ndarray) and out._array is obj)):
        raise ArgumentValueError(message("asarray", "this needs a copy, and copy=False forbids one"))
    return out.requires_grad_() if requires_grad else out


def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a NumPy array: a write to one is seen by the other.

    A read-only array gives a tensor that cannot be written to in place.

    Raises:
        TypeError: not a NumPy array, or of a dtype without counterpart (strings, objects, dates)

    >>> import genesis, numpy as np
    >>> genesis.from_numpy(np.array([1, 2], dtype=np.int32))
    tensor([1, 2], dtype=genesis.int32)
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(
            message("from_numpy", f"expected a NumPy array, got {type(ndarray).__name__}", hint="genesis.tensor(...)")
        )
    dtypes.from_numpy(ndarray.dtype)
    native = ndarray if ndarray.dtype.isnative else ndarray.astype(ndarray.dtype.newbyteorder("="))
    return finished(stored(np.asarray(native)), False)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of any object that speaks DLPack (NumPy, PyTorch, JAX on the CPU, ...).

    Args:
        device: where the tensor shall be; None: where the memory is
        copy: True always copies, False never

    Raises:
        ValueError: ``copy=False``, and the tensor shall be elsewhere than the memory

    >>> import genesis, numpy as np
    >>> genesis.from_dlpack(np.ones(2, dtype=np.float32))
    tensor([1., 1.])
    """
    if isinstance(ext_tensor, Tensor):
        out: Tensor = ext_tensor.detach()
    elif (memory := _memory_of_gpu(ext_tensor)) is not None:
        out = wrap(memory.from_dlpack(ext_tensor))
    else:
        never = {"copy": False} if copy is False else {}  # NumPy 2.0 does not know the word
        out = from_numpy(np.from_dlpack(ext_tensor, **never))
    device = out.device if device is None else as_device(device)
    if copy is False and device != out.device:
        raise ArgumentValueError(
            message("from_dlpack", f"{device} needs a copy of what is on {out.device}, and copy=False forbids one")
        )
    return out.to(device, copy=bool(copy))


def _memory_of_gpu(ext_tensor: Any) -> Any:
    """The memory of GPUs, for an object that is on one; DLPack's number for them is 2."""
    where = getattr(ext_tensor, "__dlpack_device__", None)
    return memory_named("cuda") if where is not None and where()[0] == 2 else None


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor on the memory of a Python buffer.

    >>> import genesis
    >>> genesis.frombuffer(bytearray(8), dtype=genesis.int32)
    tensor([0, 0], dtype=genesis.int32)
    """
    return finished(np.frombuffer(buffer, dtypes.as_np(dtype), count, offset), requires_grad)


@creates(out=False)
def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`tensor` in this one's dtype and place."""
    kind, device = self._array.dtype if dtype is None else dtype, self.device if device is None else device
    return tensor(data, dtype=kind, device=device, requires_grad=requires_grad)


Tensor.new_tensor = _new_tensor


explain_all(globals(), "asarray", "from_dlpack", "frombuffer")

__all__ = [
    "as_tensor",
    "asarray",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "tensor",
]
