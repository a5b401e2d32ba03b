"""Examples to a batch: tensors and arrays stacked, numbers as tensors, containers member by member."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, GenesisError, ShapeError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.creation.outside import tensor
from genesis.ops.shapes.join import stack

# what to do with other types: default_collate_fn_map[Image] = lambda batch, *, collate_fn_map=None: ...
default_collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] = {}


def default_collate(batch: Sequence[Any]) -> Any:
    """Examples to a batch: tensors and arrays stacked, numbers as tensors, containers member by member.

    Tuples become lists, named tuples and dictionaries keep their type, strings and bytes stay as they are.

    Raises:
        TypeError: an example, or a member of one, that cannot be batched, None among them; the message names the place
        RuntimeError: shapes or lengths differ

    >>> import genesis
    >>> genesis.data.default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=genesis.float64)]
    """
    return _collate(batch, "")


def _collate(batch: Sequence[Any], where: str) -> Any:
    first = batch[0]
    for kind, function in default_collate_fn_map.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=default_collate_fn_map)
    if isinstance(first, Tensor | np.ndarray):
        return _stacked(batch, where)
    if isinstance(first, float | int | np.number | np.bool_):
        return _numbers(batch, where)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        members = {key: _collate(_column(batch, key, where), f"{where}[{key!r}]") for key in first}
        return _like(first, members)
    if isinstance(first, Sequence):
        _check_lengths(batch, where)
        names = getattr(first, "_fields", None) if isinstance(first, tuple) else None
        columns = zip(*batch, strict=True)
        collated = [
            _collate(column, f"{where}.{names[i]}" if names else f"{where}[{i}]") for i, column in enumerate(columns)
        ]
        return type(first)(*collated) if names else collated if isinstance(first, tuple) else _like(first, collated)
    raise _refused(first, where)


def _refused(value: Any, where: str) -> GenesisError:
    what = (
        "None"
        if value is None
        else f"array of dtype {value.dtype}"
        if isinstance(value, np.ndarray)
        else type(value).__name__
    )
    at = f" at example{where}" if where else ""
    return ArgumentError(
        message(
            "default_collate",
            f"cannot batch {what}{at}",
            hint="tensors, arrays, numbers, strings, dicts, lists; or collate_fn=...",
        )
    )


def _stacked(batch: Sequence[Any], where: str) -> Tensor:
    kind = Tensor if isinstance(batch[0], Tensor) else np.ndarray
    if (arrays := _plain(batch)) is not None:
        return wrap(_in_one(arrays))
    for number, item in enumerate(batch):
        if not isinstance(item, kind):
            raise _mixed(batch[0], item, number, where)
        if item.shape != batch[0].shape:
            at = f" at example{where}" if where else ""
            shapes = f"{list(batch[0].shape)} in the first example, {list(item.shape)} in number {number} of the batch"
            raise ShapeError(
                message("default_collate", f"shapes differ{at}: {shapes}", hint="pad or crop, or collate_fn=...")
            )
    if kind is Tensor:
        return stack(list(batch))
    if any(item.dtype.kind in "OSUMm" for item in batch):
        raise _refused(next(item for item in batch if item.dtype.kind in "OSUMm"), where)
    return wrap(np.stack([_native(item) for item in batch]))


def _plain(batch: Sequence[Any]) -> list[np.ndarray[Any, Any]] | None:
    """The arrays of tensors of one shape and dtype without history, which are most: one call of NumPy stacks them."""
    arrays = [item._array for item in batch if item.__class__ is Tensor and item._node is None]
    if len(arrays) != len(batch) or {a.__class__ for a in arrays} != {np.ndarray}:
        return None
    return arrays if len({a.shape for a in arrays}) == 1 == len({a.dtype for a in arrays}) else None


def _in_one(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """``np.stack``, by way of one dimension less: no view of each is made."""
    shape = arrays[0].shape
    return np.concatenate(arrays).reshape(len(arrays), *shape) if shape else np.stack(arrays)


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _mixed(first: Any, item: Any, number: int, where: str) -> GenesisError:
    at = f" at example{where}" if where else ""
    kinds = f"{type(first).__name__} in the first example, {type(item).__name__} in number {number} of the batch"
    return ArgumentError(message("default_collate", f"types differ{at}: {kinds}", hint="collate_fn=..."))


def _numbers(batch: Sequence[Any], where: str) -> Tensor:
    if {item.__class__ for item in batch} not in ({int}, {float}):
        for number, item in enumerate(batch):
            if not isinstance(item, float | int | np.number | np.bool_):
                raise _mixed(batch[0], item, number, where)
    if isinstance(batch[0], np.number | np.bool_):
        return tensor(np.asarray(batch))  # np.float64 is a float, too: the same dtype
    return tensor(list(batch), dtype="float64" if isinstance(batch[0], float) else None)


def _column(batch: Sequence[Any], key: Any, where: str) -> list[Any]:
    for number, item in enumerate(batch):
        if key not in item:
            raise ArgumentError(
                message(
                    "default_collate",
                    f"example{where} number {number} of the batch has no key {key!r}, it has {sorted(item, key=str)}",
                )
            )
    return [item[key] for item in batch]


def _check_lengths(batch: Sequence[Any], where: str) -> None:
    for number, item in enumerate(batch):
        if type(item) is not type(batch[0]) and not isinstance(item, Sequence):
            raise _mixed(batch[0], item, number, where)
        if len(item) != len(batch[0]):
            at = f" at example{where}" if where else ""
            lengths = f"{len(batch[0])} in the first example, {len(item)} in number {number} of the batch"
            raise ShapeError(
                message("default_collate", f"lengths differ{at}: {lengths}", hint="pad or crop, or collate_fn=...")
            )


def _like(container: Any, members: Any) -> Any:
    """Members in a container of the same type, and where that cannot be made, as they are."""
    if type(container) in (dict, list):
        return members
    try:
        if isinstance(container, MutableMapping):
            new = copy.copy(container)
            new.update(members)
            return new
        if isinstance(container, MutableSequence):
            new = copy.copy(container)
            for i, member in enumerate(members):
                new[i] = member
            return new
        return type(container)(members)
    except TypeError:  # range, and types with other constructors
        return members


def default_convert(data: Any) -> Any:
    """Arrays and NumPy numbers in an example as tensors, everything else as it is; what a loader without batches does.

    >>> import genesis, numpy
    >>> genesis.data.default_convert({"x": numpy.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, np.ndarray) and data.dtype.kind not in "OSUMm":
        return wrap(_native(data))
    if isinstance(data, np.number | np.bool_):
        return tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple):
        members = [default_convert(member) for member in data]
        return type(data)(*members) if getattr(data, "_fields", None) else members
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(member) for member in data])
    return data


explain_all(globals(), "default_collate", "default_convert")
