"""Reading ``x[...]`` in all its forms, and the ops that it and its gradients are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.core.call.kinds import case, indexing, view
from genesis.core.call.kinds.indexing import AT, ROW, filled, is_array, split
from genesis.core.call.op import samples
from genesis.core.call.strides import packed
from genesis.core.call.writes import same_device
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.ops.indexing.adding import add_at
from genesis.ops.indexing.keys import (
    dims_of,
    is_flag,
    is_scalar,
    parse_key,
    pick,
    picked_spec,
    refuse_outside,
    scalar_apart,
    without_masks,
)
from genesis.ops.shapes.expand import sum_to

_I64 = np.dtype(np.int64)

_ALL, _I64 = "fcib", np.dtype(np.int64)


def select_first(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
    """The tensor with the integers, None and slices of an index applied, and the index tensors that are left; both as
    they are without integers.
    """
    # of no dimension: it does not part index tensors
    if any(k is Ellipsis for k in key) and sum(map(dims_of, key)) == x.ndim:
        key = tuple([k for k in key if k is not Ellipsis])
    if not any(k.__class__ is int or is_flag(k) for k in key) or all(is_scalar(k) for k in key if is_array(k)):
        return x, key
    basic: list[Any] = []
    rest: list[Any] = []
    for k in key:
        if is_flag(k):
            basic.append(None)
            rest.append(np.flatnonzero(k))
        elif is_array(k):
            basic += [slice(None)] * dims_of(k)
            rest.append(k)
        else:
            basic.append(k)
            rest += [] if k.__class__ is int else [k if k is Ellipsis else slice(None)]
    return slice_view(x, tuple(basic)), tuple(rest)


@view(
    {"input": lambda g, input_shape, key: place(g, None, input_shape, key)},
    infer=picked_spec,
    put=lambda whole, part, key: put(whole, part, None, key),
    method=False,
    torch_name="",
    batch=lambda b, x, key: b.run(x, (slice(None), *key)),
)
def slice_view(input: Array, key: Any) -> Any:
    """Basic indexing, as a view; what ``x[1:3, None]`` and ``x[::-1]`` call.

    >>> import genesis
    >>> genesis.arange(5)[1:4:2], genesis.arange(5)[::-2]
    (tensor([1, 3]), tensor([4, 2, 0]))
    """
    whole = key if Ellipsis in key else (*key, ...)
    try:
        return input[whole]
    except (IndexError, ValueError, MemoryError):
        return pick(input, whole)  # says why


samples(
    slice_view,
    lambda t: [
        case(t(3, 4), (slice(1, 3),)),
        case(t(3, 4), (1, None, slice(0, 4, 2))),
        case(t(3, 4), (Ellipsis, 0)),
        # with an ellipsis NumPy gives a 0-d view, not a number
        case(t(3, 4), (slice(None, None, -1), slice(2, None, -2))),
    ],
)


@indexing(
    {"input": lambda g, input_shape, indices, key: place(g, indices, input_shape, key)},
    infer=lambda input, indices, key: picked_spec(input, filled(key, _zeros(indices))),
    dtypes=_ALL,
    quiet=True,
)
def take_index(input: Array, indices: Array | None, key: Any) -> Any:
    """Advanced indexing, a copy; what ``x[[0, 2, 2]]`` and ``x[mask]`` call.

    >>> import genesis
    >>> genesis.arange(5)[[0, 2, 2]]
    tensor([0, 2, 2])
    """
    if len(key) == 1 and key[0].__class__ is str:
        if key[0] == ROW:
            refuse_outside("embedding", indices, len(input), f"{len(input)} rows")
        if indices.dtype is _I64 and indices.ndim and input.ndim and input.flags.c_contiguous:
            try:
                return input.take(indices, 0)  # a third of the time
            except IndexError:  # said below
                pass
    return packed(np.asarray(pick(input, filled(key, indices))))


samples(
    take_index,
    lambda t: [
        case(t(4, 3), wrap(np.array([0, 2, 2])), (AT,)),
        case(t(4, 3), wrap(np.array([[0, 1], [2, 2]])), (slice(None), AT)),
        case(t(4, 2, 3), wrap(np.array([[0, 2, 2], [1, 0, 0]])), (AT, slice(None), AT)),
    ],
)


def _zeros(indices: Any) -> Any:
    """Index tensors of a shape, for shapes."""
    return None if indices is None else np.broadcast_to(np.zeros((), np.int64), indices.shape)


@indexing(
    {"input": lambda g, indices, key: _at(g, indices, key)},
    infer=lambda input, indices, shape, key: Spec(tuple(shape), input.dtype, input.device),
    dtypes="fci",
)
def place(input: Array, indices: Array | None, shape: Sequence[int], key: Any) -> Any:
    """Zeros of a shape with the tensor added at an index: the transpose of indexing.

    >>> import genesis
    >>> genesis.ops.indexing.index.place(genesis.ones(2), None, (4,), (slice(1, 3),))
    tensor([0., 1., 1., 0.])
    """
    out = np.zeros(shape, input.dtype)
    key = filled(key, indices)
    if any([is_array(k) for k in key]):
        add_at(out, key, input)
    else:
        out[key] = input
    return out


samples(
    place,
    lambda t: [
        case(t(2), None, (5,), (slice(1, 3),)),
        case(t(2), None, (5,), (slice(3, None, -2),)),
        case(t(), None, (5,), (3,)),
        case(t(3), wrap(np.array([0, 2, 2])), (4,), (AT,)),
    ],
)


@indexing(
    {
        "input": lambda g, indices, key: put(g, g.new_zeros(()), indices, key),
        "value": lambda g, value_shape, indices, key: sum_to(_at(g, indices, key), value_shape),
    },
    infer=lambda input, value, indices, key: input,
    holomorphic=False,
    dtypes=_ALL,
)
def put(input: Array, value: Array, indices: Array | None, key: Any) -> Any:
    """A copy with the elements at an index replaced: what ``x[key] = value`` means where memory is not written to.

    >>> import genesis
    >>> genesis.ops.indexing.index.put(genesis.zeros(3), genesis.ones(1), None, (slice(1, 3),))
    tensor([0., 1., 1.])
    """
    out = input.copy()
    out[filled(key, indices)] = value
    return out


samples(
    put,
    lambda t: [
        case(t(4, 3), t(3), None, (1,)),
        case(t(4, 3), t(), None, (2, 1)),
        case(t(4, 3), t(2, 3), wrap(np.array([0, 2])), (AT,)),
        case(t(3), t(), None, (slice(0, 2),)),
    ],
)


def _at(x: Tensor, indices: Tensor | None, key: Any) -> Tensor:
    basic = indices is None and not any([is_array(k) for k in key])
    return slice_view(x, key) if basic else take_index(x, indices, key)


def _apart(key: Any, x: Tensor, shape: Sequence[int]) -> tuple[Tensor | None, Any]:
    """The index tensors of a parsed index as one operand, and the rest; its masks are copied, or places in a trace."""
    if tracer.get() is None:
        key = tuple([k.copy() if k.__class__ is np.ndarray and k.dtype.kind == "b" else k for k in key])
    else:
        key = without_masks(Spec(tuple(shape), np.dtype(np.int8)), key)
    return split(key, x, shape)


def index_by(x: Tensor, key: Any) -> Tensor:
    """``x[key]``, for an index that is parsed."""
    return _at(x, *_apart(key, x, x._array.shape))


def add_by(x: Tensor, shape: Sequence[int], key: Any) -> Tensor:
    """Zeros of a shape with ``x`` added at an index that is parsed."""
    indices, rest = _apart(key, x, shape)
    return place(x, indices, shape, rest)  # type: ignore[no-any-return]


def put_by(x: Tensor, value: Tensor, key: Any) -> Tensor:
    """``x`` with ``value`` at an index that is parsed."""
    return put(x, value, *_apart(key, x, x._array.shape))  # type: ignore[no-any-return]


def _getitem(self: Tensor, key: Any) -> Tensor:
    if key.__class__ is int or (key.__class__ is slice and _is_plain(key)):  # most indices: nothing to parse
        return slice_view(self, (key,))
    if key.__class__ is Tensor and not ACTIVE and _names_rows(key._array, self._array):
        return take_index(self, key, (AT,))  # type: ignore[no-any-return]
    if (
        key.__class__ is tuple
        and key
        and key[0].__class__ is Tensor
        and (arrays := _index_arrays(self, key))
        and (chosen := _elements(self, arrays)) is not None
    ):
        return chosen
    parsed, basic = parse_key(key)
    if basic:
        return slice_view(self, parsed)
    check_key("index", self, key)
    if len(parsed) == 1 and self._array.__class__ is np.ndarray and not ACTIVE:
        array = parsed[0]
        if array.__class__ is np.ndarray and array.ndim:
            return _rows(self, array)
    return _taken(*select_first(self, without_masks(self._spec(), parsed)))


def _index_arrays(x: Tensor, key: tuple[Any, ...]) -> list[Any] | None:
    """The arrays of an index ``x[i, j]`` of int64 tensors of one dimension, into rows in the memory of NumPy; None of others."""
    array = x._array
    if ACTIVE or LEVELS or array.__class__ is not np.ndarray or not array.flags.c_contiguous:
        return None
    arrays = [k._array if k.__class__ is Tensor else None for k in key]
    usual = all([a.__class__ is np.ndarray and a.dtype is _I64 and a.ndim == 1 for a in arrays])
    return arrays if usual else None


def _elements(x: Tensor, arrays: list[Any]) -> Tensor | None:
    """The elements that they name; None where that is to be explained, or to be done in steps."""
    try:
        if x._node is None:
            return wrap(x._array[tuple(arrays)])
        if len(arrays) > 1:
            return take_index(x, wrap(np.array(arrays)), (AT,) * len(arrays))  # type: ignore[no-any-return]
    except (IndexError, ValueError, MemoryError):
        pass
    return None


def _names_rows(index: Any, x: Any) -> bool:
    """Whether an index is an array of a device that names rows of another one there."""
    alike = index.__class__ is x.__class__ and isinstance(x, DeviceArray) and index.device is x.device
    return alike and index.dtype.char in "lq" and bool(index.shape and x.shape)


def _is_plain(key: slice) -> bool:
    start, stop = key.start, key.stop
    return key.step is None and (start is None or start.__class__ is int) and (stop is None or stop.__class__ is int)


def check_index(name: str, x: Tensor, index: Tensor) -> None:
    """Refuse an index on another device; a meta tensor may be indexed by one with data, for its shape."""
    if not isinstance(x._array, Spec) and not isinstance(index._array, Spec):
        same_device(name, x, index, "the tensor is on {}, the index on {}")


def check_key(name: str, x: Tensor, key: Any) -> None:
    """Refuse index tensors on another device; those of the CPU are copied to where the tensor is."""
    for item in key if key.__class__ is tuple else (key,):
        if isinstance(item, Tensor) and not (item._array.__class__ is np.ndarray and isinstance(x._array, DeviceArray)):
            check_index(name, x, item)


def _rows(x: Tensor, array: Any) -> Tensor:
    """``x[array]``, which is most of advanced indexing, without the steps for longer indices (3 us less)."""
    if array.dtype.kind == "b":
        return take_index(x, None, (array.copy(),))  # type: ignore[no-any-return]
    return take_index(x, wrap(array), (AT,))  # type: ignore[no-any-return]


def _taken(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    apart = scalar_apart(key)
    return index_by(x, key) if apart is None else _taken(index_by(x, apart[0]), apart[1])


Tensor.__getitem__ = _getitem

__all__: list[str] = []
