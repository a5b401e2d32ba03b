"""Tensors out of nothing: zeros, ones and other fills, in given shapes and in those of others."""

from __future__ import annotations

import builtins
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.memory import HOST, laid_out_as, memory_of, orders, placed, strides_of_copy
from genesis.arrays.protocol import Layer, Virtual
from genesis.arrays.sparse import SparseArray
from genesis.arrays.spec import Spec, meta, strides_in_order
from genesis.arrays.stored import Stored, stored
from genesis.base import dtypes
from genesis.base.device import CPU, MEMORIES, META, as_device, default_device, require_available
from genesis.base.errors import ArgumentError, DTypeError, ShapeError, message
from genesis.base.layouts import FORMAT_DIMS, FORMATS, contiguous_format, preserve_format
from genesis.base.memory import impossible, too_large
from genesis.base.narrow import NARROW, converted
from genesis.core.call.recording import made_inside
from genesis.core.call.creating import creates, expect_plain, pinned
from genesis.core.call.out import takes_out, write_out
from genesis.core.call.refusal import expect_tensor, explain_all, refuse_call
from genesis.core.graph.modes import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.construct import in_dtype
from genesis.ops.shapes.expand import sizes


def finished(array: Any, requires_grad: bool) -> Tensor:
    out = wrap(array)
    if ACTIVE or LEVELS:
        made_inside(out)
    return out.requires_grad_() if requires_grad else out


def laid_out(made: Tensor, memory_format: Any, requires_grad: bool) -> Tensor:
    """A new tensor in an order of memory."""
    made = made.contiguous(memory_format)
    return made.requires_grad_() if requires_grad else made


def order_of(input: Tensor, memory_format: Any) -> tuple[int, ...] | None:
    """The strides of a tensor made in the form of another, None for row-major ones: those of the order asked for, else those
    of a copy.
    """
    array = input._array
    if memory_format is None or memory_format is preserve_format:
        if array.__class__ is np.ndarray:
            return None if array.flags.c_contiguous else strides_of_copy(array.shape, HOST.strides(array))
        if isinstance(array, Layer) or array.dtype in NARROW or input.is_sparse:
            return None
        return strides_of_copy(tuple(array.shape), tuple(input.stride()))
    if memory_format not in FORMATS:
        raise ArgumentError(
            message("memory_format", f"must be one of {', '.join(map(str, FORMATS))}, got {memory_format!r}")
        )
    if memory_format is contiguous_format:
        return None
    shape, dims = tuple(array.shape), FORMAT_DIMS[memory_format]
    if len(shape) != dims:
        problem = f"channels last is for tensors of {dims} dimensions, this one has {len(shape)}"
        raise ShapeError(message("memory_format", problem, [("input", input._spec())]))
    return strides_in_order(shape, (0, *range(2, dims), 1))


def new_in_order(
    name: str, shape: tuple[int, ...], dtype: Any, device: Any, make: Any, strides: tuple[int, ...]
) -> Any:
    """A new array, of one value, with these strides."""
    made = new_filled(name, shape, dtype, device, lambda shape, kind: laid_out_as(make, shape, kind, strides))
    return made if made.__class__ is np.ndarray else laid_as(made, strides)


def in_order(made: Tensor, strides: tuple[int, ...] | None, requires_grad: bool = False) -> Tensor:
    """A tensor that was made just now with these strides, which leave no gaps (None: as it is)."""
    array = made._array
    if strides is not None:
        if isinstance(array, Virtual) and not isinstance(array, Spec):
            order, back = orders(strides)
            made = made.permute(order).contiguous().permute(back).clone()  # type: ignore[attr-defined]
        else:
            made = finished(laid_as(array, strides), False)
    return made.requires_grad_() if requires_grad else made


def laid_as(array: Any, strides: tuple[int, ...]) -> Any:
    """An array with these strides, which leave no gaps: itself if it has them."""
    if isinstance(array, Spec):
        return replace(array, strides=strides)
    if isinstance(array, Stored) or memory_of(array).strides(array) == strides:
        return array
    memory, shape = memory_of(array), tuple(array.shape)
    if array.__class__ is np.ndarray:
        out = laid_out_as(np.empty, shape, array.dtype, strides)
        out[...] = array
        return out
    out = memory.empty_in_order(shape, array.dtype, array.device, strides)
    memory.assign(out, array)
    return out


def new_filled(name: str, shape: tuple[int, ...], dtype: Any, device: Any, make: Any) -> Any:
    for n in shape:
        if n < 0:
            raise ShapeError(message(name, f"sizes cannot be negative, got {list(shape)}"))
    device = default_device() if device is None else as_device(device)
    if device is not CPU:
        device = require_available(device)
    kind = dtypes.get_default_dtype().np if dtype is None else dtypes.as_np(dtype)
    if device is not CPU and device == META:
        return meta(shape, kind)
    if impossible(shape, kind):
        raise too_large(name, shape, kind, Spec(shape, kind))
    try:
        if kind in NARROW:
            make = partial(_narrow, make)
        return make(shape, kind) if device is CPU else _made_elsewhere(name, shape, kind, device, make)
    except MemoryError:
        if device != CPU:
            raise  # it says more of the memory of its device
        raise too_large(name, shape, kind, Spec(shape, kind)) from None


def _narrow(make: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """An array of a dtype that is only stored: made in one that holds all its numbers."""
    return stored(converted(make(shape, np.dtype(np.complex64 if kind.names else np.float32)), kind))


def _made_elsewhere(name: str, shape: tuple[int, ...], kind: Any, device: Any, make: Any) -> Any:
    """By the memory of the device if it has such a method, else made on the host and copied."""
    plain = name.removeprefix("new_").removesuffix("_like")
    own = getattr(MEMORIES[device.type], plain) if plain in ("zeros", "ones", "empty") else None
    return placed(np.asarray(make(shape, kind), order="C"), device) if own is None else own(shape, kind, device)


def _maker(name: str, make: Any, what: str) -> Any:
    def create(
        *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None, device: Any = None,
        pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        if layout is not None or pin_memory is not False:
            expect_plain(name, layout, pin_memory)
            if pin_memory:
                return pinned(create(*shape, size=size, out=out, dtype=dtype, device=device), requires_grad)  # type: ignore[no-any-return]
        if memory_format is not None:
            if name != "empty":
                raise ArgumentError(message(name, "has no argument memory_format", hint="to(memory_format=...)"))
            made = create(*shape, size=size, out=out, dtype=dtype, device=device)
            return laid_out(made, memory_format, requires_grad)
        if size is not None:
            shape = (*shape, size)
        if out is dtype is device is None and not (requires_grad or ACTIVE or LEVELS):  # as it is mostly called
            plain = shape[0] if len(shape) == 1 and shape[0].__class__ is tuple else shape
            if {n.__class__ for n in plain} == {int} and default_device() is CPU:
                try:
                    return wrap(make(plain, dtypes.get_default_dtype().np))
                except (ValueError, MemoryError):  # explained below
                    pass
        try:
            if out is not None:
                return write_out(name, wrap(new_filled(name, sizes(shape), out._array.dtype, out.device, make)), out)
            return finished(new_filled(name, sizes(shape), dtype, device, make), requires_grad)
        except Exception as error:
            refuse_call(
                create,
                {"size": shape, "out": out, "dtype": dtype, "device": device, "requires_grad": requires_grad},
                error,
            )
            raise

    def create_like(
        input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
        requires_grad: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        if layout is not None or pin_memory is not False:
            expect_plain(name + "_like", layout, pin_memory)
            if pin_memory:
                return pinned(create_like(input, dtype=dtype, device=device), requires_grad)  # type: ignore[no-any-return]
        try:
            if input._array.__class__ is SparseArray and name != "ones":
                return input._zeros_like(dtype, device, requires_grad)  # type: ignore[attr-defined, no-any-return]
            kind, device = input._array.dtype if dtype is None else dtype, input.device if device is None else device
            shape, order = tuple(input._array.shape), order_of(input, memory_format)
            if order is None:
                return finished(new_filled(name + "_like", shape, kind, device, make), requires_grad)
            return finished(new_in_order(name + "_like", shape, kind, device, make, order), requires_grad)
        except Exception as error:
            refuse_call(
                create_like, {"input": input, "dtype": dtype, "device": device, "requires_grad": requires_grad}, error
            )
            raise

    def new(
        self: Tensor, *shape: Any, size: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        if layout is not None or pin_memory is not False:
            expect_plain("new_" + name, layout, pin_memory)
            if pin_memory:
                return pinned(new(self, *shape, size=size, dtype=dtype, device=device), requires_grad)  # type: ignore[no-any-return]
        if size is not None:
            shape = (*shape, size)
        kind, device = self._array.dtype if dtype is None else dtype, self.device if device is None else device
        return finished(new_filled("new_" + name, sizes(shape), kind, device, make), requires_grad)

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


def _of_one_value(value: Any, shape: tuple[int, ...], kind: Any) -> np.ndarray[Any, Any]:
    """Zeros come from the system as they are, and cost something only where they are used."""
    if value.__class__ is float and kind.char in "fd" and 0 < abs(value) < 1e30:
        out = np.empty(shape, kind)
        out.fill(value)  # a number of the dtype: a third of the time
        return out
    filler = in_dtype("full", value, kind)
    is_zero = kind.kind in "fiub" and filler == 0 and not np.signbit(filler)
    return np.zeros(shape, kind) if is_zero else np.full(shape, filler)


@creates
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of one value; its dtype follows from the value unless given.

    >>> import genesis
    >>> genesis.full((2,), 7)
    tensor([7, 7])
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    kind = _fill_dtype(value) if dtype is None else dtype
    return finished(new_filled("full", sizes((size,)), kind, device, partial(_of_one_value, value)), requires_grad)


@creates(out=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of one value in the shape, dtype and place of ``input``.

    >>> import genesis
    >>> genesis.full_like(genesis.zeros(2), 3)
    tensor([3., 3.])
    """
    kind, device = input._array.dtype if dtype is None else dtype, input.device if device is None else device
    shape, order = tuple(input._array.shape), order_of(input, memory_format)
    if order is None:
        return full(shape, fill_value, dtype=kind, device=device, requires_grad=requires_grad)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return finished(new_in_order("full", shape, kind, device, partial(_of_one_value, value), order), requires_grad)


@creates(out=False)
def _new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of one value, in this one's dtype and place."""
    kind, device = self._array.dtype if dtype is None else dtype, self.device if device is None else device
    return full(size, fill_value, dtype=kind, device=device, requires_grad=requires_grad)


Tensor.new_full = _new_full


@creates(out=False)
def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor in the default dtype unless given.

    >>> import genesis
    >>> genesis.scalar_tensor(2)
    tensor(2.)
    """
    return full(
        (), s, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


@takes_out
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
    out = real + imag * 1j
    return out if real.dtype is not dtypes.float16 else out.to(dtypes.complex32)  # type: ignore[attr-defined, no-any-return]


@takes_out
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


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import genesis
    >>> genesis.numel(genesis.zeros(2, 3))
    6
    """
    return expect_tensor("numel", "input", input).numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating."""
    return expect_tensor("is_floating_point", "input", input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return expect_tensor("is_complex", "input", input).is_complex()


explain_all(globals(), "complex", "full", "full_like", "polar", "scalar_tensor")

__all__ = [
    "complex",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "is_complex",
    "is_floating_point",
    "is_tensor",
    "numel",
    "ones",
    "ones_like",
    "polar",
    "scalar_tensor",
    "zeros",
    "zeros_like",
]
