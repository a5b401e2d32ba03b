"""Copies, conversions between dtypes and devices, complex parts, and fills."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.memory import (
    DeviceArray,
    apart,
    copied,
    memory_of,
    non_blocking as non_blocking_copies,
    strides_of_copy,
)
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec, meta, strides_of
from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.device import CPU, MEMORIES, as_device, device, names_device, require_available
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError, message
from genesis.base.narrow import NARROW, converted
from genesis.base.layouts import FORMAT_DIMS, FORMATS, contiguous_format, preserve_format
from genesis.core.call.dispatch import public
from genesis.core.call.halves import HALVES
from genesis.core.call.op import samples
from genesis.core.call.kernels import attach
from genesis.core.call.kinds import as_it_is, case, primitive, unary, view
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.call.writes import bump, inplace, only_writes, unwatched
from genesis.core.graph.modes import grad_mode
from genesis.core.layers import stored as stored_arrays  # noqa: F401, ops act on them from here on

# ---- copies and conversions

_plain_clone = unary(
    "clone",
    lambda x: x.copy(),
    "A copy with its own memory; the gradient passes through.",
    "[1., 2.] -> [1., 2.]",
    vjp=lambda g: g,
    inplace=False,
    strides=lambda input: None,
)


def clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    if memory_format is contiguous_format:
        return _plain_clone(input)
    if memory_format is preserve_format or not _is_format("clone", memory_format) or input.is_contiguous(memory_format):
        return _plain_clone(input) if _in_rows(input) else convert(input, input._array.dtype)
    return _contiguous(input, memory_format)


def _in_rows(x: Any) -> bool:
    """Whether a copy of a tensor is row-major; that of whatever is no tensor is refused elsewhere."""
    if not isinstance(x, Tensor):
        return True
    array = x._array
    if array.__class__ is np.ndarray:
        return bool(array.flags.c_contiguous)
    return bool(array.dtype in NARROW or x.is_sparse or x.is_contiguous())


clone.__doc__ = _plain_clone.__doc__
clone.op = _plain_clone.op
Tensor.clone = clone


def _contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """This tensor if its memory is in the order of this format, else a copy that is."""
    if memory_format is contiguous_format and self._array.__class__ is np.ndarray:
        return self if self._array.flags.c_contiguous else _plain_clone(self)
    if not _is_format("contiguous", memory_format):
        raise ArgumentError(message("contiguous", "preserve_format says nothing of an order", hint="x.clone()"))
    if self.is_contiguous(memory_format):
        return self
    if memory_format is not contiguous_format:
        return _channels_last(self, FORMAT_DIMS[memory_format])
    return _plain_clone(self)


def _is_format(name: str, memory_format: Any) -> bool:
    """Whether an argument asks for an order of memory."""
    if memory_format is not None and memory_format not in FORMATS:
        raise ArgumentError(
            message(name, f"memory_format must be one of {', '.join(map(str, FORMATS))}, got {memory_format!r}")
        )
    return memory_format is not None and memory_format is not preserve_format


def _channels_last(x: Tensor, dims: int) -> Tensor:
    """A copy in whose memory the second dimension is the last."""
    if x.ndim != dims:
        problem = f"channels last is for tensors of {dims} dimensions, this one has {x.ndim}"
        raise ShapeError(message("memory_format", problem, [("input", x._spec())]))
    return _plain_clone(x.movedim(1, -1)).movedim(-1, 1)


Tensor.contiguous = _contiguous


def _order_kept(input: Spec, dtype: Any) -> tuple[int, ...] | None:
    """The strides of a conversion, None for row-major ones."""
    return None if dtype in NARROW or input.dtype in NARROW else strides_of_copy(input.shape, strides_of(input))


@primitive(
    "elementwise_cast",
    {"input": lambda g: g},
    infer=lambda input, dtype: Spec(input.shape, dtype, input.device),
    strides=_order_kept,
    method=False,
    dtypes="fcib",
    torch_name="",
)
def convert(input: Array, dtype: Any) -> Any:
    """Elements converted to another dtype, in the order of the input's memory; the gradient is converted back. What
    `Tensor.to` calls.

    >>> import genesis
    >>> genesis.tensor([1.5]).to(genesis.int64)
    tensor([1])
    """
    if dtype in NARROW or input.dtype in NARROW:
        return stored(converted(np.ascontiguousarray(input).reshape(input.shape), dtype))
    if input.dtype.kind == "c" and dtype.kind not in "cb":  # bool: either part is not zero
        input = input.real
    return apart(input, dtype)


samples(convert, lambda t: [case(t(2, 3), np.dtype(np.float64)), case(t(), np.dtype(np.complex128))])


@primitive(
    "elementwise_cast",
    {"input": lambda g: g},
    infer=lambda input, name: input,
    method=False,
    dtypes="fcib",
    torch_name="",
)
def named(input: Array, name: str) -> Any:
    """The same elements, copied, under a name that checkpoint policies and reports know.

    >>> import genesis
    >>> genesis.ops.creation.convert.named(genesis.ones(2), "hidden")
    tensor([1., 1.])
    """
    return input.copy()


samples(named, lambda t: [case(t(2, 3), "hidden"), case(t(), "h")])


def _to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """This tensor in another dtype or on another device; itself when nothing changes.

    ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` and ``to(other)`` are all understood. Differentiable.

    >>> import genesis
    >>> genesis.ones(2).to(genesis.float64).dtype
    genesis.float64
    """
    if len(args) == 1 and device is None is dtype and not copy and memory_format is preserve_format:  # most calls
        first = args[0]
        want = first.np if first.__class__ is dtypes.dtype else first if isinstance(first, np.dtype) else None
        if want is not None:
            return self if self._array.dtype is want else convert(self, want)  # type: ignore[no-any-return]
    flags = [arg for arg in args if isinstance(arg, bool)]  # non_blocking, then copy
    copy = flags[1] if len(flags) > 1 else copy
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg._array.dtype, arg.device
        elif isinstance(arg, bool):
            continue
        elif names_device(arg):
            device = arg
        elif arg is not None:
            dtype = arg
    out = self
    want = self._array.dtype if dtype is None else dtype if isinstance(dtype, np.dtype) else dtypes.as_np(dtype)
    if want is not self._array.dtype or copy:
        out = convert(self, want)
    if device is not None and not (device.__class__ is str and device == "cpu" and out._array.__class__ is np.ndarray):
        where, here = require_available(as_device(device)), self.device
        if where.type == "meta" != here.type:
            return wrap(meta(tuple(self._array.shape), want))
        if where != here:
            if here.type == "meta":
                raise ArgumentError(
                    message(
                        "to",
                        f"a meta tensor has no data to move to {where}",
                        hint=f"genesis.empty_like(x, device='{where}')",
                    )
                )
            out = _moved(out, where, here, non_blocking or (bool(flags) and flags[0]))
    if not _is_format("to", memory_format):
        return out
    if (
        memory_format is contiguous_format
        and out is self
        and not any([out.is_contiguous(order) for order in FORMAT_DIMS])
    ):
        return out  # a view of another kind is as good, as in PyTorch
    return _contiguous(out, memory_format)


Tensor.to = _to


def _moved(input: Tensor, where: device, here: device, waits_not: bool) -> Tensor:
    """On another device, in the order that it has in memory."""
    dtype = input._array.dtype
    lies = None if input.is_contiguous() else Spec(tuple(input.shape), dtype, CPU, tuple(input.stride()))  # type: ignore[attr-defined]
    kept = None if lies is None else _order_kept(lies, dtype)
    if kept is not None:
        order = sorted(range(input.ndim), key=lambda d: -kept[d])
        back = sorted(range(input.ndim), key=order.__getitem__)
        return _moved(input.permute(order).contiguous(), where, here, waits_not).permute(back)  # type: ignore[attr-defined, no-any-return]
    if not waits_not:
        return transfer(input, where, here)  # type: ignore[no-any-return]
    token = non_blocking_copies.set(True)
    try:
        return transfer(input, where, here)  # type: ignore[no-any-return]
    finally:
        non_blocking_copies.reset(token)


@primitive(
    "transfer",
    {"input": lambda g, device, source: transfer(g, source, device)},
    infer=lambda input, device, source: Spec(input.shape, input.dtype, device),
    jvp="linear",
    batch=as_it_is,
    method=False,
    dtypes="fcib",
    torch_name="",
)
def transfer(input: Array, device: device, source: device) -> Any:
    """The same elements in the memory of ``device``, from that of ``source``; the gradient goes back. What `Tensor.to`
    calls.

    >>> import genesis
    >>> x = genesis.ones(2)
    >>> genesis.ops.creation.convert.transfer(x, x.device, x.device)
    tensor([1., 1.])
    """
    return (
        memory_of(input).to_host(input)
        if device == CPU
        else MEMORIES[device.type].from_host(memory_of(input).to_host(input), device)
    )


samples(transfer, lambda t: [case(t(2, 3), CPU, CPU), case(t(), CPU, CPU)])


# what every device has: made of its memory


def _cast(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = wrap(x).real._array  # type: ignore[attr-defined]
    return apart(x, dtype)


attach(transfer, DeviceArray, transfer.op.meaning)
attach(clone, DeviceArray, copied)
attach(named, DeviceArray, lambda input, name: copied(input))
attach(convert, DeviceArray, _cast)


def _caster(name: str, kind: Any) -> None:
    def cast(self: Tensor, memory_format: Any = preserve_format) -> Tensor:
        if memory_format is preserve_format and self.__class__ is Tensor:
            return self if self._array.dtype is kind.np else convert(self, kind.np)  # type: ignore[no-any-return]
        return self.to(kind, memory_format=memory_format)

    cast.__name__, cast.__doc__ = name, f"This tensor as {kind}."
    setattr(Tensor, name, cast)


for _name, _kind in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
    "chalf": dtypes.complex32,
}.items():
    _caster(_name, _kind)
Tensor.cpu = lambda self, memory_format=None: self.to(device="cpu")
Tensor.type_as = lambda self, other: self.to(other.dtype)


# the names of PyTorch's classes of tensors of one dtype
LEGACY = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char",
          "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat",
          "complex128": "ComplexDouble", "complex32": "ComplexHalf"}  # fmt: skip


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of PyTorch's class of such tensors, ``torch.FloatTensor``; or with an argument (a dtype, such a class or its
    name, which say where, too, or ``Tensor`` for the default dtype) this tensor converted.
    """
    if dtype is None:
        name, room = self.dtype.name, "cuda." if self.device.type == "cuda" else ""
        return f"torch.{room}{LEGACY.get(name, name.replace('float8', 'Float8'))}Tensor"
    if dtype is Tensor or dtype == "torch.Tensor":
        dtype = dtypes.get_default_dtype()
    device = getattr(dtype, "device", None)  # of a class, which says it
    if isinstance(dtype, str):
        room, _, name = dtype.rpartition(".")
        device = "cuda" if room.endswith("cuda") else "cpu" if name.endswith("Tensor") else None
        name = name.removesuffix("Tensor")
        dtype = next((mine for mine, legacy in LEGACY.items() if legacy == name), dtype)
        dtype = getattr(dtypes, dtype, dtype)
    return self.to(device=device or self.device, dtype=getattr(dtype, "dtype", dtype))


Tensor.type = _type


def _cuda(self: Tensor, device: Any = None, non_blocking: bool = False) -> Tensor:
    """This tensor on a GPU; an error where there is no backend for one."""
    return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)  # type: ignore[attr-defined, no-any-return]


Tensor.cuda = _cuda


class _Elsewhere:
    """A name that NumPy's arrays have and tensors have not: reading it says what to write instead, ``hasattr`` that it
    is not there.
    """

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        raise AttributeError(message("Tensor", f"has no attribute {self.name!r}", hint=self.instead))


for _name, _instead in {
    "astype": "x.to(genesis.float32), x.float()",
    "copy": "x.clone(), or y.copy_(x) to write into y",
    "fill": "x.fill_(value)",
    "strides": "x.stride()",
    "tobytes": "x.numpy().tobytes()",
    "flat": "x.flatten()",
    "concatenate": "genesis.cat([x, y])",
}.items():
    _elsewhere = _Elsewhere(_instead)
    _elsewhere.name = _name
    setattr(Tensor, _name, _elsewhere)


def _complex_part(name: str, meaning: Any, rule: Any, doc: str) -> Any:
    def infer(input: Spec) -> Spec:
        return Spec(input.shape, dtypes.from_numpy(input.dtype).to_real().np, input.device)

    meaning.__name__, meaning.__doc__ = name, doc
    return view({"input": rule}, infer=infer, dtypes="c", holomorphic=False, method=False, batch=as_it_is,
                put=partial(_put_part, name), samples=lambda t: [case(t(2, 3))])(meaning)  # fmt: skip


def _put_part(name: str, whole: Tensor, part: Tensor) -> Tensor:
    """A complex tensor with other real or imaginary parts; the bytes side by side, for ``inf * 1j`` is no number."""
    parts = [part, imag(whole)] if name == "real" else [real(whole), part]
    return public("view_dtype")(public("stack")(parts, -1), whole._array.dtype).reshape(whole.shape)


def _real(input: Array) -> Any:
    return input.real


def _imag(input: Array) -> Any:
    return input.imag


def _imag_rule(g: Any) -> Any:
    return g * 1j


real = _complex_part(
    "real",
    _real,
    lambda g: g,
    "Real parts, as a view.\n\n>>> import genesis\n>>> genesis.real(genesis.tensor([1 + 2j]))\ntensor([1.])\n",
)
imag = _complex_part(
    "imag",
    _imag,
    _imag_rule,
    "Imaginary parts, as a view.\n\n>>> import genesis\n>>> genesis.imag(genesis.tensor([1 + 2j]))\ntensor([2.])\n",
)


def _real_of(self: Tensor) -> Tensor:
    return real(self) if self.is_complex() else self


def _real_set(self: Tensor, value: Any) -> None:
    _real_of(self).copy_(value)


Tensor.real = property(_real_of, _real_set)


def _imag_of(self: Tensor) -> Tensor:
    if not self.is_complex():
        raise DTypeError(message("imag", f"real tensors have no imaginary part, this one is {self.dtype}"))
    return imag(self)


def _imag_set(self: Tensor, value: Any) -> None:
    _imag_of(self).copy_(value)


Tensor.imag = property(_imag_of, _imag_set)

# ---- fills


def _fill(x: Any, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.ndim:
            raise ArgumentValueError(message("fill_", f"needs a 0-d value, got {value.ndim} dimensions"))
        return value.expand(x._array.shape)
    from genesis.ops.creation.create import full_like

    return full_like(x.detach(), value)


def _copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write ``src``, broadcast and converted, into this tensor's memory."""
    source = src if isinstance(src, Tensor) else _as_tensor(src)
    if _moves_only(self, source):
        if self._array.dtype is source._array.dtype:
            self._array[...] = source._array
        else:
            with np.errstate(all="ignore"):
                self._array[...] = source._array
        bump(self, "copy_")
        return self
    return inplace(
        "copy_",
        lambda old, value: value.to(old._array.dtype, device=old.device, non_blocking=non_blocking).expand(
            old._array.shape
        ),
        self,
        (source,),
        {},
    )


def _as_tensor(value: Any) -> Tensor:
    from genesis.ops.creation.outside import as_tensor

    return as_tensor(value)


def _moves_only(self: Tensor, source: Tensor) -> bool:
    """Whether copying is that of NumPy, with nothing to record or to refuse: a tenth of the time."""
    x, y = self._array, source._array
    return (
        y.__class__ is np.ndarray
        and (x.dtype is y.dtype or (_is_real(x.dtype) and _is_real(y.dtype)))
        and x.shape == y.shape
        and (source._node is None or not grad_mode.get())
        and only_writes(self)
    )


def _is_real(dtype: Any) -> bool:
    """Whether NumPy converts from and to a dtype by assignment as `convert` does."""
    return dtype.kind in "fiub" or dtype in HALVES


def _fill_(self: Tensor, value: Any) -> Tensor:
    """Set all elements to a number or 0-d tensor."""
    if value.__class__ is float and abs(value) < 1e30 and self._array.dtype.char in "fd" and only_writes(self):
        self._array.fill(value)
        bump(self, "fill_")
        return self
    if value.__class__ is float and abs(value) < 6e4 and self.is_floating_point() and _filled(self, value, "fill_"):
        return self  # which is a number in any of these dtypes
    return inplace("fill_", lambda old, v: _fill(old, v), self, (value,), {})


def _filled(x: Tensor, value: float, name: str) -> bool:
    """Whether the memory of a device was set to a number, where that is all there is to do."""
    array = x._array
    done = isinstance(array, DeviceArray) and unwatched(x) and memory_of(array).fill(array, value)
    if done:
        bump(x, name)
    return done


def _zero_(self: Tensor) -> Tensor:
    """Set all elements to zero."""
    if self._array.dtype.char in "fdl?" and only_writes(self):
        self._array.fill(0)
        bump(self, "zero_")
        return self
    if _filled(self, 0, "zero_"):
        return self
    return inplace("zero_", lambda old: _fill(old, 0), self, (), {})


Tensor.copy_, Tensor.fill_, Tensor.zero_ = _copy_, _fill_, _zero_

__all__ = ["clone", "imag", "real"]
