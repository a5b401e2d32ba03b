"""What may stand in brackets, ``x[...]``, brought into one form.

Basic indices (integers, slices, None, Ellipsis) give views, with negative strides for negative steps (which PyTorch has
not). Integer tensors, lists and masks copy, and their gradient is scattered back, adding where an element was taken
more than once. As in PyTorch, an integer beside an index tensor is taken first: ``x[0, :, [1, 2]]`` is
``x[0][:, [1, 2]]`` (NumPy moves the dimension of the list to the front), and uint8 tensors are masks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.protocol import Array, Dispatched, Virtual
from genesis.arrays.spec import Spec
from genesis.base.errors import (
    ArgumentError,
    ArgumentValueError,
    IndexOutOfRange,
    ShapeError,
    UnsupportedError,
    message,
)
from genesis.core.call.kinds import as_it_is, case, primitive
from genesis.core.call.kinds.indexing import is_array
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.site import line_here, user_level
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer


def as_index(name: str, index: Any) -> Any:
    """An index tensor as an array; one without data stands for zeros, so that shapes can be inferred."""
    if not isinstance(index, Tensor):
        raise ArgumentError(message(name, f"index must be a tensor, got {type(index).__name__}"))
    if index._array.dtype.kind not in "iu":
        raise IndexOutOfRange(message(name, f"tensors used as indices must be integer or bool, got {index.dtype}"))
    if isinstance(index._array, Spec):
        return np.broadcast_to(np.zeros((), np.int64), index._array.shape)
    # as a key, uint8 is a mask
    return index._array if index._array.dtype != np.uint8 else index.detach().to(np.dtype(np.int64))._array


def all_within(array: Any, size: int) -> bool:
    """Whether the numbers of an int64 array, of which there is one, are 0, ..., size - 1."""
    plain = array.view(np.uint64)  # negative ones are large: one pass, not two
    if array.flags.c_contiguous:  # a third of the time of a reduction, where there are few; of others it takes a copy
        return plain.item(plain.argmax()) < size  # type: ignore[no-any-return]
    return bool(np.maximum.reduce(distinct(plain), None) < size)


def distinct(array: Any) -> Any:
    """The elements of an expanded array, those once that are one in memory."""
    if 0 not in array.strides:
        return array
    return array[tuple([slice(None) if step else slice(1) for step in array.strides])]


def refuse_outside(name: str, array: Any, size: int, where: str) -> None:
    if array.size and array.dtype.kind == "i" and array.dtype.itemsize == 8 and all_within(array, size):
        return
    low, high = (int(array.min()), int(array.max())) if array.size else (0, -1)
    if low < 0 or high >= size:
        raise IndexOutOfRange(message(name, f"index {low if low < 0 else high} is out of range for {where}"))


@primitive(
    "movement",
    {},
    batch=as_it_is,
    infer=lambda index, name, size, where: index,
    method=False,
    dtypes="i",
    torch_name="",
)
def check_range(index: Array, name: str, size: int, where: str) -> Any:
    """The same indices, each of which must be one of 0, ..., size - 1.

    Raises:
        IndexError: one is not

    >>> import genesis
    >>> genesis.ops.indexing.keys.check_range(genesis.tensor([1, 0]), "gather", 2, "dim 0 of size 2")
    tensor([1, 0])
    """
    refuse_outside(name, index, size, where)
    return index.copy()


samples(
    check_range,
    lambda t: [
        case(t.int(2, 3, low=0, high=3), "gather", 3, "dim 0 of size 3"),
        case(t.int(0), "gather", 3, "dim 0 of size 3"),
    ],
)

wrong_inputs(
    check_range,
    (
        lambda t: case(t.int(2, low=5, high=6), "gather", 3, "dim 0 of size 3"),
        IndexError,
        "gather: index 5 is out of range for dim 0 of size 3",
    ),
)


def _differs(b: Any, *args: Any) -> Any:
    raise UnsupportedError(
        message(
            "index",
            "how many elements a mask names differs from sample to sample",
            hint="use genesis.where(mask, x, other)",
        )
    )


@primitive(
    "movement",
    {},
    batch=_differs,
    infer=lambda mask, count, dim: Spec((count,), np.dtype(np.int64), mask.device),
    method=False,
    dtypes="b",
    torch_name="",
)
def mask_places(mask: Array, count: int, dim: int) -> Any:
    """Where a mask is true, along one dimension: what masks become inside a trace, whose shapes are known beforehand.

    Raises:
        RuntimeError: it is true at another number of places

    >>> import genesis
    >>> genesis.ops.indexing.keys.mask_places(genesis.tensor([[True, False], [True, True]]), 3, 1)
    tensor([0, 0, 1])
    """
    positions = np.ascontiguousarray(np.nonzero(mask)[dim])
    if len(positions) != count:
        raise ShapeError(
            message(
                "index",
                f"the mask names {len(positions)} elements, {count} when the function was traced",
                [("mask", f"bool{list(mask.shape)}")],
            )
        )
    return positions


samples(
    mask_places,
    lambda t: [case(wrap(np.array([[True, False], [True, True]])), 3, 1), case(wrap(np.zeros(2, np.bool_)), 0, 0)],
)

wrong_inputs(
    mask_places,
    (
        lambda t: case(wrap(np.array([True, False])), 2, 0),
        RuntimeError,
        "index: the mask names 1 elements, 2 when the function was traced",
    ),
)


def in_range(name: str, index: Tensor, size: int, where: str) -> Any:
    """An index tensor as an array that is checked: here, for every sample, or whenever a trace is replayed."""
    array = as_index(name, index)
    if isinstance(array, Dispatched) or tracer.get() is not None:
        return check_range(index, name, size, where)._array
    refuse_outside(name, array, size, where)
    return array


def _mask_array(mask: Tensor) -> Any:
    if isinstance(mask._array, Spec):
        raise UnsupportedError(
            message("index", "the shape of the result depends on the mask, a meta tensor has no data")
        )
    if isinstance(mask._array, Virtual):
        raise UnsupportedError(
            message(
                "index",
                "the shape of the result depends on the values of the mask, which this transform does not know",
                operands=[("asked for at", line_here()), ("mask", mask._spec())],
                hint="use genesis.where(mask, x, other), or x.masked_fill(mask, value)",
            )
        )
    # which a trace refuses for tensors from outside
    return mask._array if mask.ndim and not isinstance(mask._array, DeviceArray) else mask._on_host()


def parse_key(key: Any) -> tuple[tuple[Any, ...], bool]:
    """An index as NumPy wants it, and whether it is basic (then the result is a view)."""
    items = key if key.__class__ is tuple else tuple(key) if key.__class__ is list and _means_tuple(key) else (key,)
    parsed: list[Any] = []
    basic = True
    for item in items:
        if item.__class__ is int or item is None or item is Ellipsis:
            parsed.append(item)
        elif isinstance(item, slice):
            parsed.append(_parse_slice(item))
        elif (
            isinstance(item, Tensor)
            and item._array.dtype.kind in "iu"
            and item._array.dtype != np.uint8
            and not item.ndim
            and not unknown(item._array)
            and tracer.get() is None
        ):
            parsed.append(int(item))
        else:
            parsed.append(_parse_array(item))
            basic = False
    return tuple(parsed), basic


def _means_tuple(key: list[Any]) -> bool:
    """Whether PyTorch takes a list for the tuple of its items: one with a slice, a sequence or a tensor among its first
    32.
    """
    if len(key) >= 32 or not any(
        k is None or k is Ellipsis or isinstance(k, slice | Tensor | list | tuple | range | np.ndarray) for k in key
    ):
        return False
    text = message(
        "index",
        "a list of several indices is taken as the tuple of them, which is deprecated",
        hint="x[tuple(key)], or x[genesis.tensor(key)]",
    )
    warnings.warn(text, UserWarning, stacklevel=user_level())
    return True


def tensor_key(indices: Any) -> tuple[Any, ...]:
    """The index of `index_put`: index tensors, 0-d ones too, and None for whole dimensions."""
    return tuple([slice(None) if i is None else _parse_array(i) for i in indices])


def unknown(array: Any) -> bool:
    """Whether an array has values that only a transform knows."""
    return isinstance(array, Virtual) and not isinstance(array, Spec)


def _parse_slice(item: slice) -> slice:
    if item.step is not None and int(item.step) == 0:
        raise ArgumentValueError(
            message("index", "the step of a slice is 0", hint="x[::2], or x[::-1] for the reverse order")
        )
    bounds = [b if b is None else b.__index__() for b in (item.start, item.stop, item.step)]
    return slice(*bounds)


def _parse_array(item: Any) -> Any:
    if isinstance(item, Tensor):
        array = as_index("index", item) if item._array.dtype not in _MASKS else _mask_array(item)
    elif isinstance(item, bool | np.bool_ | list | tuple | range | np.ndarray | np.integer):
        array = np.asarray([to_int(i) for i in item] if isinstance(item, list | tuple) else item)
        array = array.astype(np.int64) if not array.size and array.dtype.kind == "f" else array
    elif isinstance(item, Dispatched):
        array = item
    else:
        raise IndexOutOfRange(
            message(
                "index",
                f"{type(item).__name__} is not an index",
                hint="integers, slices, None, ..., integer or bool tensors",
            )
        )
    if array.dtype.kind not in "iub":
        raise IndexOutOfRange(message("index", f"tensors used as indices must be integer or bool, got {array.dtype}"))
    if array.dtype == np.uint8 and isinstance(array, np.ndarray):
        text = message(
            "index",
            "a uint8 tensor is taken as a mask, which is deprecated",
            hint="mask.bool(), or index.long() for places",
        )
        warnings.warn(text, UserWarning, stacklevel=user_level())
        array = array != 0
    return array


_MASKS = (np.dtype(np.bool_), np.dtype(np.uint8))


def to_int(item: Any) -> Any:
    return (
        item.tolist()
        if isinstance(item, Tensor)
        else [to_int(i) for i in item]
        if isinstance(item, list | tuple)
        else item
    )


def dims_of(k: Any) -> int:
    """How many dimensions a part of an index stands for."""
    if k is None or k is Ellipsis:
        return 0
    return k.ndim if is_array(k) and k.dtype.kind == "b" else 1


def without_masks(spec: Spec, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index of a trace, its masks written as places: a mask may be another one at the next replay, with as many
    elements.
    """
    active = tracer.get()
    if active is None or not any(k.__class__ is np.ndarray and k.dtype.kind == "b" and k.ndim for k in key):
        return key
    picked_spec(spec, key)  # the masks fit
    items: list[Any] = []
    for k in key:
        masked = k.__class__ is np.ndarray and k.dtype.kind == "b" and k.ndim
        if masked:
            active.mask_counted(k)
        items += [mask_places(wrap(k), int(k.sum()), d)._array for d in range(k.ndim)] if masked else [k]
    return tuple(items)


def _is_mask(k: Any) -> bool:
    return k.__class__ is np.ndarray and k.ndim > 0 and k.dtype.kind == "b"


def is_flag(k: Any) -> bool:
    """Whether part of an index is one bool: a new dimension, of size 1 or 0."""
    return k.__class__ is np.ndarray and not k.ndim and k.dtype.kind == "b"


def is_scalar(k: Any) -> bool:
    """Whether part of an index is an integer whose value only a transform knows."""
    return is_array(k) and not k.ndim and k.dtype.kind != "b"


def scalar_apart(key: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """The index of the first such integer that stands beside index tensors, alone, and the index without it."""
    at = next((i for i, k in enumerate(key) if is_scalar(k)), None)
    if at is None or all(is_scalar(k) for k in key if is_array(k)):
        return None
    only = [part for k in key[:at] for part in ([k] if k is None or k is Ellipsis else [slice(None)] * dims_of(k))]
    after = [slice(None)] * sum(dims_of(k) for k in key[at + 1 :]) if Ellipsis in only else []
    rest = (*[slice(None) if k is None else k for k in key[:at]], *key[at + 1 :])
    return (*only, key[at], *after), rest


def explain_index(shape: Sequence[int], key: tuple[Any, ...]) -> Exception:
    """What NumPy's refusal of an index means."""
    consumed = sum(dims_of(k) for k in key)
    text = f"{list(shape)}"
    if consumed > len(shape):
        return IndexOutOfRange(message("index", f"{consumed} indices for {len(shape)} dimensions", [("input", text)]))
    dim = 0
    for at, k in enumerate(key):
        if k is None:
            continue
        if k is Ellipsis:
            dim = len(shape) - sum(dims_of(later) for later in key[at + 1 :])
            continue
        if isinstance(k, int | np.ndarray) and not (isinstance(k, np.ndarray) and k.dtype.kind == "b"):
            low, high = (k, k) if isinstance(k, int) else (int(k.min()), int(k.max())) if k.size else (0, -1)
            if low < -shape[dim] or high >= shape[dim]:
                bad = low if low < -shape[dim] else high
                return IndexOutOfRange(
                    message(
                        "index", f"index {bad} is out of range for dim {dim} of size {shape[dim]}", [("input", text)]
                    )
                )
        if _is_mask(k) and tuple(shape[dim : dim + k.ndim]) != k.shape:
            return IndexOutOfRange(
                message(
                    "index", f"a mask of shape {list(k.shape)} does not fit sizes {list(shape[dim : dim + k.ndim])}"
                )
            )
        dim += dims_of(k)
    return ShapeError(message("index", "the indices cannot be broadcast together", [("input", text)]))


def pick(x: Any, key: Any) -> Any:
    try:
        picked = x[key]
    except (IndexError, ValueError, MemoryError):
        raise explain_index(x.shape, key) from None
    if not x.size and key.__class__ is tuple and any([_is_mask(k) and not k.size for k in key]):
        error = explain_index(x.shape, key)  # NumPy does not look at masks of an array without elements
        if isinstance(error, IndexOutOfRange):
            raise error
    return picked


def picked_spec(input: Spec, key: Any) -> Spec:
    """Indexing nothing but a shape: NumPy does it on an array without memory."""
    ghost = np.broadcast_to(np.zeros((), np.int8), input.shape)
    zeros = [np.broadcast_to(np.zeros((), np.int64), k.shape) if isinstance(k, Dispatched) else k for k in key]
    return Spec(np.shape(pick(ghost, tuple(zeros))), input.dtype, input.device)
