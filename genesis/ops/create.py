"""Tensors out of nothing, out of Python and out of NumPy."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.spec import Spec, meta
from genesis.base import dtypes
from genesis.base.device import CPU, MEMORIES, META, as_device, default_device, require_available
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, message
from genesis.base.memory import impossible, too_large
from genesis.core.call.dispatch import made_inside, write_out
from genesis.core.graph.modes import ACTIVE, LEVELS
from genesis.core.call.refusal import described, explain_all, refuse_call
from genesis.core.graph.tensor import Tensor, array_from, in_dtype, wrap
from genesis.ops.shape import sizes


def _finish(array: Any, requires_grad: bool) -> Tensor:
    out = wrap(array)
    if ACTIVE or LEVELS:
        made_inside(out)
    return out.requires_grad_() if requires_grad else out


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
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
    return _finish(array_from(data, dtype, device, requires_grad), requires_grad)


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
    return _finish(np.asarray(native), False)


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
    else:
        never = {"copy": False} if copy is False else {}  # NumPy 2.0 does not know the word
        out = from_numpy(np.from_dlpack(ext_tensor, **never))
    place = out.device if device is None else as_device(device)
    if copy is False and place != out.device:
        raise ArgumentValueError(
            message("from_dlpack", f"{place} needs a copy of what is on {out.device}, and copy=False forbids one")
        )
    return out.to(place, copy=bool(copy))


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor on the memory of a Python buffer.

    >>> import genesis
    >>> genesis.frombuffer(bytearray(8), dtype=genesis.int32)
    tensor([0, 0], dtype=genesis.int32)
    """
    return _finish(np.frombuffer(buffer, dtypes.as_np(dtype), count, offset), requires_grad)


# ---- filled tensors


def _new(name: str, shape: tuple[int, ...], dtype: Any, device: Any, make: Any) -> Any:
    for n in shape:
        if n < 0:
            raise ShapeError(message(name, f"sizes cannot be negative, got {list(shape)}"))
    place = require_available(default_device() if device is None else as_device(device))
    kind = dtypes.as_np(dtypes.get_default_dtype() if dtype is None else dtype)
    if place == META:
        return meta(shape, kind)
    if impossible(shape, kind):
        raise too_large(name, shape, kind, Spec(shape, kind))
    try:
        return make(shape, kind) if place == CPU else _made_elsewhere(name, shape, kind, place, make)
    except MemoryError:
        raise too_large(name, shape, kind, Spec(shape, kind)) from None


def _made_elsewhere(name: str, shape: tuple[int, ...], kind: Any, place: Any, make: Any) -> Any:
    """By the memory of the device if it has such a method, else made on the host and copied."""
    plain = name.removeprefix("new_").removesuffix("_like")
    own = getattr(MEMORIES[place.type], plain) if plain in ("zeros", "ones", "empty") else None
    return placed(np.asarray(make(shape, kind)), place) if own is None else own(shape, kind, place)


def _maker(name: str, make: Any, what: str) -> Any:
    def create(
        *size: Any, out: Tensor | None = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        try:
            if out is not None:
                return write_out(name, wrap(_new(name, sizes(size), out._array.dtype, out.device, make)), out)
            return _finish(_new(name, sizes(size), dtype, device, make), requires_grad)
        except Exception as error:
            refuse_call(
                create,
                {"size": size, "out": out, "dtype": dtype, "device": device, "requires_grad": requires_grad},
                error,
            )
            raise

    def create_like(
        input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
    ) -> Tensor:
        try:
            kind, place = input._array.dtype if dtype is None else dtype, input.device if device is None else device
            return _finish(_new(name + "_like", tuple(input._array.shape), kind, place, make), requires_grad)
        except Exception as error:
            refuse_call(
                create_like, {"input": input, "dtype": dtype, "device": device, "requires_grad": requires_grad}, error
            )
            raise

    def new(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        kind, place = self._array.dtype if dtype is None else dtype, self.device if device is None else device
        return _finish(_new("new_" + name, sizes(size), kind, place, make), requires_grad)

    example = f">>> import genesis\n>>> genesis.{name}(2, 3).shape\ngenesis.Size([2, 3])\n"
    create.__doc__ = f"A tensor of {what}, in the default dtype unless given.\n\n{example}"
    create_like.__doc__ = f"A tensor of {what}, in the shape, dtype and place of ``input``."
    new.__doc__ = f"A tensor of {what}, in this one's dtype and place."
    create.__name__, create_like.__name__, new.__name__ = name, name + "_like", "new_" + name
    setattr(Tensor, "new_" + name, new)
    return create, create_like


zeros, zeros_like = _maker("zeros", np.zeros, "zeros")
ones, ones_like = _maker("ones", np.ones, "ones")
empty, empty_like = _maker("empty", np.empty, "whatever the memory holds")


def _fill_dtype(value: Any) -> Any:
    return dtypes.bool if isinstance(value, bool) else dtypes.int64 if isinstance(value, int) else (
        dtypes.get_default_dtype().to_complex() if isinstance(value, builtins.complex) else dtypes.get_default_dtype()
    )  # fmt: skip


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one value; its dtype follows from the value unless given.

    >>> import genesis
    >>> genesis.full((2,), 7)
    tensor([7, 7])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = _fill_dtype(value) if dtype is None else dtype
    return _finish(
        _new("full", sizes((size,)), kind, device, lambda shape, k: np.full(shape, in_dtype("full", value, k))),
        requires_grad,
    )


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of one value in the shape, dtype and place of ``input``.

    >>> import genesis
    >>> genesis.full_like(genesis.zeros(2), 3)
    tensor([3., 3.])
    """
    kind, place = input._array.dtype if dtype is None else dtype, input.device if device is None else device
    return full(tuple(input._array.shape), fill_value, dtype=kind, device=place, requires_grad=requires_grad)


def _new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of one value, in this one's dtype and place."""
    kind, place = self._array.dtype if dtype is None else dtype, self.device if device is None else device
    return full(size, fill_value, dtype=kind, device=place, requires_grad=requires_grad)


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """`tensor` in this one's dtype and place."""
    kind, place = self._array.dtype if dtype is None else dtype, self.device if device is None else device
    return tensor(data, dtype=kind, device=place, requires_grad=requires_grad)


Tensor.new_full, Tensor.new_tensor = _new_full, _new_tensor


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor in the default dtype unless given.

    >>> import genesis
    >>> genesis.scalar_tensor(2)
    tensor(2.)
    """
    return full(
        (), s, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


# ---- ranges


def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Numbers from ``start`` (0) up to, not including, ``end`` in steps; int64 if all three are integers.

    Raises:
        RuntimeError: a step of zero, or one that leads away from ``end``

    >>> import genesis
    >>> genesis.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        start, end = 0, start
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    whole = all(isinstance(x, int | np.integer) for x in (start, end, step))
    kind = dtypes.as_np(dtype if dtype is not None else dtypes.int64 if whole else dtypes.get_default_dtype())
    if not whole and not (math.isfinite(start) and math.isfinite(end)):
        raise ShapeError(message("arange", f"the range from {start} to {end} is not finite"))
    if not whole and kind == np.int64:  # PyTorch cuts all three before it counts
        start, end, step, whole = int(start), int(end), int(step), True
    if step == 0 or (end - start) * (1 if step > 0 else -1) < 0:
        raise ShapeError(message("arange", f"step {step} does not lead from {start} to {end}"))
    count = max(0, -(-(end - start) // step) if whole else math.ceil((end - start) / step))
    if kind.kind in "iu":
        start, step, whole = int(start), int(step), True
        for bound in (start, end if kind == np.int64 else start):
            in_dtype("arange", int(bound), np.dtype(np.int64))

    def make(shape: tuple[int, ...], k: Any) -> Any:
        return (start + np.arange(count, dtype=np.int64 if whole else np.float64) * step).astype(k)

    return _finish(_new("arange", (int(count),), kind, device, make), requires_grad)


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    >>> import genesis
    >>> genesis.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if steps < 0:
        raise ShapeError(message("linspace", f"steps cannot be negative, got {steps}"))
    return _finish(
        _new(
            "linspace",
            (int(steps),),
            dtype,
            device,
            lambda shape, k: np.linspace(float(start), float(end), steps).astype(k),
        ),
        requires_grad,
    )


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` numbers from ``base**start`` to ``base**end``, evenly spaced in the exponent.

    >>> import genesis
    >>> genesis.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    make = lambda shape, k: np.logspace(float(start), float(end), steps, base=base).astype(k)  # noqa: E731
    return _finish(_new("logspace", (int(steps),), dtype, device, make), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of an ``n`` by ``m`` matrix of zeros.

    >>> import genesis
    >>> genesis.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape = (n, n if m is None else m)
    return _finish(_new("eye", shape, dtype, device, lambda s, k: np.eye(*s, dtype=k)), requires_grad)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """A complex tensor of its real and imaginary parts, of one dtype.

    Raises:
        RuntimeError: the parts differ in dtype

    >>> import genesis
    >>> genesis.complex(genesis.tensor([1.]), genesis.tensor([2.]))
    tensor([1.+2.j])
    """
    if real.dtype is not imag.dtype:
        raise DTypeError(message("complex", f"the parts differ in dtype, {real.dtype} and {imag.dtype}"))
    return real + imag * 1j


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """A complex tensor of absolute values and angles in radians.

    >>> import genesis
    >>> genesis.polar(genesis.tensor([2.]), genesis.tensor([0.]))
    tensor([2.+0.j])
    """
    return complex(abs * angle.cos(), abs * angle.sin())


def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a tensor.

    >>> import genesis
    >>> genesis.is_tensor([1.0])
    False
    """
    return isinstance(obj, Tensor)


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise ArgumentError(message(name, f"input must be a tensor, got {described(value)}"))


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import genesis
    >>> genesis.numel(genesis.zeros(2, 3))
    6
    """
    return _tensor("numel", input).numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating."""
    return _tensor("is_floating_point", input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return _tensor("is_complex", input).is_complex()


explain_all(
    globals(),
    "arange",
    "asarray",
    "complex",
    "eye",
    "from_dlpack",
    "frombuffer",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "polar",
    "scalar_tensor",
)

__all__ = [
    "arange",
    "as_tensor",
    "asarray",
    "complex",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "linspace",
    "logspace",
    "numel",
    "ones",
    "ones_like",
    "polar",
    "scalar_tensor",
    "tensor",
    "zeros",
    "zeros_like",
]
