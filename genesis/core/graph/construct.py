"""Arrays out of what holds numbers: Python's sequences, NumPy's arrays, other tensors."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, apart, placed
from genesis.arrays.spec import Spec, meta
from genesis.arrays.stored import stored
from genesis.base import dtypes
from genesis.base.device import CPU, MEMORIES, META, as_device, default_device, device, require_available
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
    message,
)
from genesis.base.memory import too_large
from genesis.base.narrow import NARROW, converted
from genesis.core.graph.lost import note
from genesis.core.graph.size import Size
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer


def constructed(data: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool) -> Any:
    """The array of ``Tensor(*data)``: of sizes, or of data in the default dtype."""
    sizes = tuple(data[0]) if len(data) == 1 and isinstance(data[0], Size) else data
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    if all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in sizes):
        return _uninitialised(
            tuple(sizes) if data else (0,),
            dtypes.as_np(kind),
            default_device() if device is None else as_device(device),
        )
    if len(data) > 1 or isinstance(data[0], bool | np.bool_):
        raise ArgumentError(
            message(
                "Tensor",
                f"expected sizes or a sequence of numbers, got {', '.join(type(x).__name__ for x in data)}",
                hint="genesis.tensor(...)",
            )
        )
    if isinstance(data[0], Tensor):
        return array_from(data[0], dtype, device, requires_grad)
    source = array_from(data[0], dtype, device, requires_grad)
    if dtype is None and source.dtype.kind == "c":
        raise ArgumentError(
            message("Tensor", "the data are complex, Tensor(...) makes real tensors", hint="genesis.tensor(...)")
        )
    return source if dtype is not None else array_from(wrap(source), kind, device)


def constructed_by_name(data: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool, **keywords: Any) -> Any:
    """The array of ``Tensor(array=..., order=..., ndmin=..., copy=...)``, where ``array`` is data and its dtype is
    kept.
    """
    unknown = [name for name in keywords if name not in ("array", "copy", "ndmin", "order")]
    if unknown:
        raise ArgumentError(message("Tensor", f"unknown argument {unknown[0]!r}"))
    if bool(data) == ("array" in keywords):
        raise ArgumentError(
            message(
                "Tensor",
                f"the data are given {'twice' if data else 'neither by position nor as array='}",
                hint="Tensor(array=[1.0, 2.0])",
            )
        )
    if keywords.get("copy", True) not in (True, None):
        raise ArgumentError(
            message(
                "Tensor", "the data are always copied, copy is False", hint="genesis.from_numpy(array) shares memory"
            )
        )
    source = (
        constructed(data, dtype, device, requires_grad)
        if data
        else array_from(keywords["array"], dtype, device, requires_grad)
    )
    order, ndmin = keywords.get("order", "K"), keywords.get("ndmin", 0)
    if isinstance(source, np.ndarray):
        return np.array(source, copy=None, order=order, ndmin=ndmin)
    return (
        source
        if (order, ndmin) == ("K", 0)
        else array_from(wrap(source).reshape((1,) * (ndmin - source.ndim) + tuple(source.shape)))
    )


def _uninitialised(shape: tuple[int, ...], dtype: Any, where: device) -> Any:
    where = require_available(where)
    if any(n < 0 for n in shape):
        raise ShapeError(message("Tensor", f"sizes cannot be negative, got {list(shape)}"))
    try:
        return MEMORIES[where.type].empty(shape, dtype, where)
    except (MemoryError, ValueError):
        raise too_large("Tensor", shape, dtype, Spec(shape, dtype)) from None


def array_from(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """A new array of anything that holds numbers; the rules of ``genesis.tensor``."""
    if data.__class__ is float and dtype is None is device and abs(data) < 1e30 and default_device() is CPU:
        kind = dtypes.get_default_dtype().np
        if kind.char in "fd":
            return np.array(data, kind)
    target = as_device(device) if device is not None else data.device if isinstance(data, Tensor) else default_device()
    target = require_available(target)
    want = None if dtype is None else dtypes.as_np(dtype)
    if isinstance(data, Tensor):
        if tracer.get() is not None:
            return data.detach().to(dtypes.from_numpy(want or data._array.dtype)).clone()._array
        source = data._array
        if isinstance(source, DeviceArray):
            return data.detach().to(device=target, dtype=want, copy=True)._array
        if data._node is not None:
            note("tensor(...), which copies the value", data._node, sys._getframe(2))
    else:
        source = _from_python(data, want, requires_grad)
    if target == META or isinstance(source, Spec):
        return meta(tuple(source.shape), want or source.dtype)
    if want in NARROW or source.dtype in NARROW:
        return stored(converted(np.ascontiguousarray(source).reshape(source.shape), want or source.dtype))
    kind = want or source.dtype
    if target == CPU and source.__class__ is np.ndarray and not source.flags.c_contiguous:
        return apart(source, kind)
    return placed(np.array(source, dtype=kind, copy=True, order="C"), target)


def tensor_like(data: Any, x: Tensor) -> Tensor:
    """Data as a tensor of the dtype of another, a tensor as it is."""
    return data if isinstance(data, Tensor) else wrap(array_from(data, x._array.dtype))


_NUMBERS: set[type] = {bool, int, float, complex}
_SEQUENCES: set[type] = {list, tuple}


def _from_python(data: Any, want: Any, requires_grad: bool) -> np.ndarray[Any, Any]:
    mixed = isinstance(data, list | tuple) and not _types(data) <= _NUMBERS
    if mixed:
        data = _without_tensors(data, _depth(data))
        mixed = any(isinstance(leaf, np.ndarray | np.generic) for leaf in _leaves_of(data))
    try:
        array = np.asarray(data)
        if mixed and array.dtype.kind == "O":  # NumPy has no promotion of bfloat16 with numbers
            array = np.asarray(data, want or _promoted(data))
        dtypes.from_numpy(array.dtype)
    except (ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise _not_an_array(data, error) from None
    plain = not isinstance(data, np.ndarray | np.generic) and not hasattr(data, "__array__")
    if plain and array.size and array.dtype.kind in "iufc":
        _check_range(array, want or (array.dtype if array.dtype.kind != "u" else np.dtype(np.int64)))
    if want is None and plain:
        default = dtypes.as_np(dtypes.get_default_dtype())
        if mixed:
            want = _promoted(data)
        elif array.dtype.kind == "f" and array.dtype == np.float64:
            want = default
        elif array.dtype.kind == "c":
            want = np.result_type(default, np.complex64)
        elif requires_grad and array.dtype.kind in "biu":  # [1, 2, 3] that is to require grad means numbers
            want = default
        if not array.size and isinstance(data, list | tuple):
            want = default
    with np.errstate(all="ignore"):
        return array if want is None else converted(array, want)


def in_dtype(name: str, value: Any, dtype: Any) -> Any:
    """A number in a dtype, or an error where it does not fit; negative numbers wrap around in unsigned dtypes, as in
    PyTorch.
    """
    if isinstance(value, complex) and dtype.kind in "biuf":
        raise ArgumentError(message(name, f"{value} is complex, {dtypes.from_numpy(dtype)} is not"))
    if dtype.kind in "iu" and isinstance(value, int | float):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        number = int(value) if isinstance(value, int) or math.isfinite(value) else None
        if number is None or not (low or -high) <= number <= high:
            raise DTypeError(
                message(name, f"{value} does not fit {dtypes.from_numpy(dtype)}, which holds {low} to {high}")
            )
        return np.array(number % (high + 1) if not low else number, dtype)
    with np.errstate(all="ignore"):
        return converted(np.array(value), dtype)


def _check_range(array: Any, dtype: Any) -> None:
    """Refuse Python numbers that a dtype does not hold."""
    if dtype.kind in "iuf" and (array.dtype.kind == "c" or (dtype.kind != "f" and array.dtype is not dtype)):
        for bound in (array.flat[0],) if array.dtype.kind == "c" else (array.min(), array.max()):
            in_dtype("tensor", bound.item(), dtype)


def _types(data: Sequence[Any]) -> set[type]:
    """The types of what nested sequences hold."""
    kinds = set(map(type, data))
    if not kinds.isdisjoint(_SEQUENCES):
        kinds -= _SEQUENCES
        return kinds.union(*[_types(item) for item in data if isinstance(item, list | tuple)])
    return kinds


def _depth(data: Any) -> int:
    """How many dimensions nested sequences have, by the first of each; a tensor among them is a number."""
    depth = 0
    while isinstance(data, list | tuple) and data:
        data, depth = data[0], depth + 1
    return depth + (data.ndim if isinstance(data, np.ndarray) else isinstance(data, list | tuple))


def _without_tensors(data: Any, depth: int) -> Any:
    if isinstance(data, Tensor):
        if depth:
            return data._on_host()
        if data.numel() != 1:
            problem = f"a tensor in a list stands for a number, this one has {data.numel()} elements"
            raise ArgumentValueError(message("tensor", problem, [("element", data._spec())], "stack(list)"))
        return data._on_host().reshape(())[()]
    if isinstance(data, list | tuple):
        return [_without_tensors(item, depth - 1) for item in data]
    return data


def _promoted(data: Any) -> np.dtype[Any]:
    """The dtype of NumPy values and numbers together."""
    default = dtypes.get_default_dtype()
    of_numbers: dict[type, Any] = {bool: dtypes.bool, int: dtypes.int64, float: default, complex: default.to_complex()}
    kinds = {of_numbers.get(type(leaf)) or dtypes.from_numpy(np.asarray(leaf).dtype) for leaf in _leaves_of(data)}
    return dtypes.as_np(functools.reduce(dtypes.promote_types, kinds))


def _leaves_of(data: Any) -> Iterator[Any]:
    for item in data if isinstance(data, list | tuple) else ():
        yield from _leaves_of(item)
    if not isinstance(data, list | tuple):
        yield data


def _not_an_array(data: Any, error: Exception) -> Exception:
    text = str(error)
    if "object" in text and (numbers := [x for x in _leaves_of(data) if isinstance(x, int)]):
        largest = max(numbers, key=abs)
        if abs(largest) >= 2**63:
            return ArgumentValueError(message("tensor", f"{largest} does not fit an integer of 64 bits"))
    if "inhomogeneous" in text:
        return ArgumentValueError(message("tensor", "the nested sequence is ragged, its rows differ in length",
                                  hint="pad the rows to one length"))  # fmt: skip
    return ArgumentError(
        message("tensor", f"cannot make a tensor of {type(data).__name__}", hint="pass numbers, lists or arrays")
    )
