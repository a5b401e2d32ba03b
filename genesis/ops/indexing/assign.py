"""Writing ``x[...] = v`` in all its forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, placed
from genesis.arrays.spec import Spec
from genesis.arrays.stored import Stored
from genesis.base import dtypes
from genesis.base.narrow import widened
from genesis.base.quiet import unnamed
from genesis.base.errors import (
    ArgumentError,
    ShapeError,
    message,
)
from genesis.core.call.views import rebase
from genesis.core.call.writes import bump, check_writable, inplace, only_writes, same_device
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import Node, recorded
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.ops.indexing.index import check_key, index_by, put_by, select_first
from genesis.ops.indexing.keys import (
    mask_places,
    parse_key,
    pick,
    picked_spec,
    scalar_apart,
    to_int,
    unknown,
    without_masks,
)
from genesis.ops.pointwise.choice import where
from genesis.ops.shapes.expand import sum_to


class IndexPutBackward(Node):
    """``x[key] = value``, written in place: the old elements get no gradient, the value gets theirs."""

    __slots__ = ()
    op_name = "setitem"
    input_names = ("input", "value")

    def _pull(self, g: Any) -> Any:
        (key,) = self._unpack()
        input_edge, value_edge = self._edges
        ginput = None
        if input_edge is not None:
            ginput = g.clone()
            ginput[key] = 0
        if value_edge is None:
            return ginput, None
        picked, shape = index_by(g, key), value_edge._shape
        return ginput, sum_to(picked, shape[max(0, len(shape) - picked.ndim) :]).reshape(shape)


def _put_into(self: Tensor, key: Any, value: Any) -> None:
    """``self[key] = value`` inside a transform: as the function that it is."""
    source = value if isinstance(value, Tensor) else wrap(placed(_numbers(value), self.device))
    picked = _picked_shape(self._spec(), key)
    while source.ndim > len(picked) and source.shape[0] == 1:
        source = source.squeeze(0)
    if source._array.dtype is not self._array.dtype:
        source = source.to(self._array.dtype)
    if any(n not in (1, m) for n, m in zip(source.shape[::-1], picked[::-1], strict=False)) or source.ndim > len(
        picked
    ):
        raise ShapeError(
            message("setitem", f"a value of shape {list(source.shape)} does not fit the indexed shape {list(picked)}")
        )
    inplace("setitem", lambda old, new: _replaced(old, new, key), self, (source,), {})


def _picked_shape(spec: Spec, key: tuple[Any, ...]) -> Any:
    apart = scalar_apart(key)
    return picked_spec(spec, key).shape if apart is None else _picked_shape(picked_spec(spec, apart[0]), apart[1])


def _replaced(x: Tensor, value: Tensor, key: tuple[Any, ...]) -> Tensor:
    """`put` with the integers that only a transform knows taken first."""
    apart = scalar_apart(key)
    if apart is None:
        return put_by(x, value, key)
    only, rest = apart
    return put_by(x, _replaced(index_by(x, only), value, rest), only)


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    if isinstance(key, Tensor) and key._array.dtype.kind == "b" and unknown(key._array) and _is_of(key, self):
        _put_where(self, key, value)
        return
    if _filled(self, key, value):
        return
    parsed, basic = parse_key(key)
    if not basic:
        check_key("setitem", self, key)
        target, rest = select_first(self, without_masks(self._spec(), parsed))
        if target is not self:
            check_writable(self, "setitem", False)
            return _set(target, rest, value)
        parsed = rest
    _set(self, parsed, value)


def _is_of(mask: Tensor, x: Tensor) -> bool:
    """Whether a mask has the first dimensions of a tensor."""
    return mask.ndim > 0 and mask.shape == x.shape[: mask.ndim]


def _put_where(self: Tensor, mask: Tensor, value: Any) -> None:
    """``self[mask] = value`` of a mask whose values only a transform knows, in the first dimensions: what has no dimension
    for the elements that the mask names is the same at all of them; else it says how many these are.
    """
    source = value if isinstance(value, Tensor) else wrap(placed(_numbers(value), self.device))
    same_device("setitem", self, source)
    if source._array.dtype is not self._array.dtype:
        source = source.to(self._array.dtype)
    picked = 1 + self.ndim - mask.ndim
    while source.ndim >= picked and source.shape[0] == 1:
        source = source.squeeze(0)
    if source.ndim >= picked:
        count = source.shape[0]
        indices = tuple([mask_places(mask, count, dim)._array for dim in range(mask.ndim)])
        _put_into(self, indices, source)
        return
    rest = self.shape[mask.ndim :]
    if any(n not in (1, m) for n, m in zip(source.shape[::-1], rest[::-1], strict=False)):
        raise ShapeError(
            message("setitem", f"a value of shape {list(source.shape)} does not fit the indexed shape {[None, *rest]}")
        )
    spread = lambda old, mask, new: where(mask.reshape(*mask.shape, *[1] * len(rest)), new, old)
    inplace("setitem", spread, self, (mask, source), {})


_BASIC, _ADVANCED, _I64 = {int, slice}, {slice, Tensor, np.ndarray}, np.dtype(np.int64)


def _usual_key(array: Any, key: Any) -> tuple[Any, ...] | None:
    """Most indices as NumPy takes them: integers and slices, or masks, int64 tensors and slices. None for others."""
    items = key if key.__class__ is tuple else (key,)
    if _BASIC.issuperset(map(type, items)):
        return (*items, ...)
    if not _ADVANCED.issuperset(map(type, items)) or not array.size:
        return None
    items = tuple([item._array if item.__class__ is Tensor else item for item in items])
    arrays = [item for item in items if item.__class__ is not slice]
    usual = all([a.__class__ is np.ndarray and a.ndim and (a.dtype is _I64 or a.dtype.kind == "b") for a in arrays])
    return items if usual else None


@unnamed
def _filled(x: Tensor, key: Any, value: Any) -> bool:
    """Whether a usual part of NumPy's memory was all there was to write to, with a number or a tensor that fits."""
    array = x._array
    if isinstance(value, Tensor):
        if grad_mode.get() and value._node is not None:
            return False
        value = value._array
        if value.__class__ is not np.ndarray or value.dtype is not array.dtype:
            return False
    elif array.dtype.char not in ("fd" if value.__class__ is float else "fdl" if value.__class__ is int else ""):
        return False
    if not only_writes(x):
        return False
    usual = _usual_key(array, key)
    if usual is None:
        return False
    try:
        array[usual] = value
    except (IndexError, TypeError, ValueError, ArithmeticError):  # what comes next explains
        return False
    bump(x, "setitem")
    return True


def _set(self: Tensor, parsed: tuple[Any, ...], value: Any) -> None:
    tensor = value if isinstance(value, Tensor) else None
    recording = grad_mode.get() and (self._node is not None or (tensor is not None and tensor._node is not None))
    check_writable(self, "setitem", recording)
    if tensor is not None and not isinstance(self._array, Spec) and not isinstance(tensor._array, Spec):
        same_device("setitem", self, tensor)
    if isinstance(self._array, Spec):
        picked_spec(self._array, parsed)
    elif (
        isinstance(self._array, DeviceArray)
        or tracer.get() is not None
        or unknown(self._array)
        or (tensor is not None and unknown(tensor._array))
        or any(unknown(k) for k in parsed)
    ):
        _put_into(self, parsed, value)
        return
    else:
        self._own_memory()
        _write(self._array, parsed, value)
    bump(self, "setitem")
    if recording:
        edges = self._node, None if tensor is None else tensor._node
        rebase(self, recorded(IndexPutBackward, edges, self._array, (_owned(parsed),)))


def _owned(key: Any) -> Any:
    """The same index with copies of its arrays: the tensors that they come from may be written to before backward."""
    return tuple([k.copy() if isinstance(k, np.ndarray | DeviceArray) else k for k in key])


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    """What is assigned to elements, if it is no tensor."""
    try:
        source = np.asarray(to_int(value) if isinstance(value, list | tuple) else value)
    except ValueError:
        source = np.asarray(None)
    if source.dtype.kind not in "iubfcV":
        raise ArgumentError(message("setitem", f"cannot assign {type(value).__name__}", hint="a number or a tensor"))
    return source


def _write(array: Any, key: Any, value: Any) -> None:
    """Checked before anything is written, so that an error leaves the array as it was."""
    source = value._array if isinstance(value, Tensor) else value
    if isinstance(source, Spec):
        raise ArgumentError(message("setitem", "the value is a meta tensor, it has no data"))
    if not isinstance(source, np.ndarray | np.generic | int | float | complex):
        source = _numbers(source)
    target = pick(np.broadcast_to(np.zeros((), np.int8), array.shape), key)
    shape = np.shape(source)
    while len(shape) > target.ndim and shape[0] == 1:  # leading dimensions of size 1 are dropped, as in PyTorch
        shape, source = shape[1:], source[0]
    try:
        np.broadcast_to(np.zeros((), np.int8), shape) if not shape else np.broadcast_to(
            np.empty(shape, np.int8), target.shape
        )
    except ValueError:
        raise ShapeError(
            message("setitem", f"a value of shape {list(shape)} does not fit the indexed shape {list(target.shape)}")
        ) from None
    if source.__class__ is Stored:
        source = widened(source)
    if isinstance(source, complex | np.complexfloating) and not dtypes.from_numpy(array.dtype).is_complex:
        raise ArgumentError(message("setitem", "a complex value does not fit a real tensor"))
    with np.errstate(all="ignore"):
        array[key] = source


Tensor.__setitem__ = _setitem

__all__: list[str] = []
