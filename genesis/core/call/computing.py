"""The result arrays of a call: by the op's kernel, or by the interpreter of virtual arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of, placed
from genesis.arrays.protocol import Dispatched
from genesis.arrays.spec import Spec, spec_of
from genesis.base import dtypes
from genesis.base.errors import (
    DeviceError,
    DimError,
    DTypeError,
    GenesisError,
    IndexOutOfRange,
    ShapeError,
    UnsupportedError,
    message,
)
from genesis.base.memory import impossible, too_large
from genesis.base.quiet import quietly, unnamed
from genesis.core.call.op import Op
from genesis.core.call.promotion import cast_operand, compute_dtypes
from genesis.core.call.strides import packed
from genesis.core.graph.modes import ACTIVE, interception
from genesis.core.graph.tensor import Tensor

ndarray = np.ndarray


def infer_operands(op: Op, operands: Sequence[Any]) -> Any:
    return op.infer(*[spec_of(x) if hasattr(x, "shape") else x for x in operands])  # type: ignore[misc]


def intercepted(op: Op, arrays: Sequence[Any], kernel: Callable[[], Any]) -> Any:
    if ACTIVE:
        for between in interception.get():
            # no closure: an error that is kept would keep what that holds
            kernel = partial(between, op, arrays, kernel)
    return kernel()


def compute_operands(op: Op, operands: Sequence[Any], options: Sequence[Any], result: Spec) -> np.ndarray[Any, Any]:
    """The kernel on operands of one dtype; what follows them in the signature is handed on as it is."""
    with np.errstate(all="ignore"):
        cast = [cast_operand(x, dtype) for x, dtype in zip(operands, compute_dtypes(op, operands), strict=True)]
        try:
            r = np.asarray(op.kernel(*cast, *options))
        except (MemoryError, ValueError) as error:
            _check_memory(op.name, (result,), error)
            raise
        # a kernel may return its operand: results have memory of their own
        if not r.flags.owndata or any([r is x for x in cast]):
            r = r.copy()
        return r.astype(result.dtype, copy=False)


_NUMBERS = float, int, bool, complex


def _dtypes_met(op: Op, operands: Sequence[Any], key: tuple[Any, ...]) -> Any:
    """The dtypes in which such operands are computed, and that of the result: from then on by ``key``. None where they
    depend on the values of numbers.
    """
    arrays = [x for x in operands if x.__class__ is ndarray]
    if not arrays or (
        op.result == "bool" and len(arrays) < len(operands) and all([x.dtype.kind in "biu" for x in arrays])
    ):
        return None
    op.dtypes_met[key] = known = (compute_dtypes(op, operands), infer_operands(op, operands).dtype)
    return known


@unnamed
def in_memory(op: Op, operands: Sequence[Any], options: Sequence[Any] = ()) -> np.ndarray[Any, Any] | None:
    """The kernel of an elementwise op on NumPy arrays and numbers, in dtypes that are looked up; None where something
    else, or an error to explain, is left to do. (An eighth of the time.)
    """
    key: list[Any] = [dtypes.get_default_dtype()]
    for x in operands:
        if x.__class__ is ndarray:
            key += x.dtype, not x.ndim
        elif x.__class__ in _NUMBERS:
            key.append(x.__class__)
        else:
            return None
    try:
        known = op.dtypes_met.get(tuple(key)) or _dtypes_met(op, operands, tuple(key))
        if known is None:
            return None
        cast = [
            x if dtype is None or (x.__class__ is ndarray and x.dtype is dtype) else cast_operand(x, dtype)
            for x, dtype in zip(operands, known[0], strict=True)
        ]
        kernel = op.kernel
        r: Any = kernel(*cast, *options) if kernel.__class__ is np.ufunc else quietly(kernel, *cast, *options)
        if r.__class__ is not ndarray:
            r = np.asarray(r)
        if r.dtype is not known[1]:
            r = r.astype(known[1], copy=False)
        # a kernel may return its operand: results have memory of their own
        return r if r.base is None and not any([r is x for x in cast]) else r.copy()  # type: ignore[no-any-return]
    except Exception:  # what comes next explains
        return None


def compute_elementwise(op: Op, *arguments: Any) -> np.ndarray[Any, Any]:
    """An elementwise op on NumPy arrays and numbers."""
    operands = arguments if op.plain else [arguments[i] for i in op.tensors]
    return compute_operands(op, operands, arguments[len(operands) :], infer_operands(op, operands))


EXPLAINED = ShapeError, DTypeError, DimError, IndexOutOfRange  # of which `infer` says more

# For each class of virtual array but specs: interpret(op, arrays, top), the result arrays of an op. ``arrays`` are its
# arguments with arrays for tensors, ``top`` the one of that class whose layer is outermost.
INTERPRETERS: dict[type, Callable[[Op, tuple[Any, ...], Any], Any]] = {}


def interpreted(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The result arrays of an op on virtual arrays; where that fails, an error that speaks of the shapes that the user
    sees.
    """
    try:
        if isinstance(top, DeviceArray):
            _check_devices(op, arrays, top, top.device)
            return on_device(op, arrays, top)
        attached = op.kernels.get(top.__class__)
        result = NotImplemented if attached is None else attached(*arrays)
        return INTERPRETERS[top.__class__](op, arrays, top) if result is NotImplemented else result
    except EXPLAINED:
        infer(op, arrays)
        raise


def on_device(op: Op, arrays: tuple[Any, ...], top: Any) -> Any:
    """The result arrays of an op of arrays that are all on one device, by the kernel that is attached for the class of its
    arrays, or for `DeviceArray`.
    """
    kernel = op.on_devices.get(top.__class__) or device_kernel(op, top)
    copied = op.kind.copies
    at_home = [_index_at(a, top.device) if a.__class__ is tuple else a for a in arrays] if copied else arrays
    result = NotImplemented
    try:
        if kernel is not None:
            result = kernel(*at_home)
    except Exception as error:
        if _explained(error):
            infer(op, arrays)  # raises an error that explains, if it can
        raise
    if result is NotImplemented:
        raise UnsupportedError(
            message(
                op.name,
                f"{top.device.type} has no kernel for this op",
                operands=[("input", spec_of(top))],
                hint=f"attach a kernel (genesis.devices.attach), or x.cpu().{op.name}(...)",
            )
        )
    return result


def device_kernel(op: Op, top: Any) -> Callable[..., Any] | None:
    """What computes an op of arrays like this one, which is known from then on."""
    kernels = op.kernels
    kernel = kernels.get(top.__class__) or kernels.get(DeviceArray) or memory_of(top).kernel(op)
    if kernel is not None:
        op.on_devices[top.__class__] = kernel
    return kernel


def of_floats_there(op: Op, x: Any, *other: Any) -> Any:
    """The result of an elementwise op of an array of a device, and of another one there or a number, of which nothing is to be
    converted; None where that, or an error to explain, is left to do.
    """
    kind = x.__class__
    kernel = op.on_devices.get(kind)
    if kernel is None:  # no device, or its first call
        return None
    for y in other:
        other_kind = y.__class__
        if other_kind is not kind:
            if other_kind is not float and other_kind is not int:
                return None
        elif y.device is not x.device:
            return None
    try:
        r = kernel(x, *other)
    except Exception as error:
        if isinstance(error, Warning) or not _explained(error):
            raise
        return None  # what comes next explains
    return None if r is NotImplemented else r


def _explained(error: Exception) -> bool:
    """Whether an error of a kernel is one of which `infer` may say more."""
    return isinstance(error, EXPLAINED) or not isinstance(error, GenesisError)


def device_operands(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
    """The arrays of tensors that are all on one device, between numbers, and the first of them; None of anything else."""
    arrays: list[Any] = []
    top: Any = None
    for a in args:
        if isinstance(a, Tensor):
            x = a._array
            if top is None:
                if not isinstance(x, DeviceArray):
                    return None
                top = x
            elif x.__class__ is not top.__class__ or x.device is not top.device:
                return None
            arrays.append(x)
        elif a.__class__ is float or a.__class__ is int:
            arrays.append(a)
        else:
            return None
    return (tuple(arrays), top) if top is not None else None


def _index_at(key: tuple[Any, ...], device: Any) -> tuple[Any, ...]:
    """An index with its arrays, which lists and masks are, on a device."""
    return tuple([placed(x, device) if x.__class__ is np.ndarray else x for x in key])


def _operand_names(op: Op, count: int) -> list[str]:
    names = [] if op.variadic else [list(op.signature.parameters)[i] for i in op.tensors]
    return [*names, *[f"index {i}" if names else str(i) for i in range(count - len(names))]]


def _check_devices(op: Op, arrays: tuple[Any, ...], top: Any, device: Any) -> None:
    """Refuse tensors, and index tensors, on another device than the one that computes."""
    given = arrays[0] if op.variadic else [arrays[i] for i in op.tensors]
    kind = top.__class__
    if not [x for x in given if x.__class__ is not float and (x.__class__ is not kind or x.device is not device)]:
        return
    specs = [
        (name, spec_of(x)) for name, x in zip(_operand_names(op, len(given)), given, strict=True) if hasattr(x, "shape")
    ]
    devices = dict.fromkeys([spec.device for _, spec in specs])
    if len(devices) > 1:
        raise DeviceError(
            message(
                op.name,
                f"operands are on {' and '.join(map(str, devices))}",
                operands=specs,
                hint="move one with .to(device)",
            )
        )
    assert device in devices


def compute(op: Op, arrays: Sequence[Any]) -> Any:
    try:
        result = quietly(op.kernel, *arrays)
    except GenesisError:
        raise
    except Exception as error:
        specs = infer(op, arrays)  # raises an error that explains, if it can
        _check_memory(op.name, specs if isinstance(specs, tuple | list) else (specs,), error)
        raise
    if op.kind.packed:
        return tuple([packed(r) for r in result]) if isinstance(result, tuple | list) else packed(np.asarray(result))
    if (
        result.__class__ is np.ndarray
        or result.__class__ is tuple
        or result.__class__ is list
        or isinstance(result, Dispatched)
    ):
        return result
    return np.asanyarray(result)


def _check_memory(name: str, specs: Sequence[Any], error: Exception) -> None:
    """Raise what explains a kernel that failed for want of memory."""
    for spec in specs:
        if isinstance(spec, Spec) and (isinstance(error, MemoryError) or impossible(spec.shape, spec.dtype)):
            raise too_large(name, spec.shape, spec.dtype, spec) from None


def infer(op: Op, arrays: Sequence[Any]) -> Any:
    """The specs of the results, from the specs of the arguments."""
    return op.kind.infer(op, arrays)
