"""Indexing: ``x[...]`` and ``x[...] = v`` in all their forms.

Basic indices (integers, slices, None, Ellipsis) give views, with negative strides for negative steps (which PyTorch has
not). Integer tensors, lists and masks copy, and their gradient is scattered back, adding where an element was taken
more than once. As in PyTorch, an integer beside an index tensor is taken
first: ``x[0, :, [1, 2]]`` is ``x[0][:, [1, 2]]`` (NumPy moves the dimension of the list to the front), and uint8
    tensors are masks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, placed
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
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.strides import packed
from genesis.core.call.kinds.indexing import AT, filled, is_array, split
from genesis.core.call.kinds import as_it_is, case, indexing, primitive, view
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import Node, recorded
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.site import line_here, user_level
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.call.views import bump, check_writable, inplace, rebase, same_device
from genesis.ops.choice import where
from genesis.ops.shape import sum_to

_ALL = "fcib"

# ---- keys


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


def _refuse_outside(name: str, array: Any, size: int, where: str) -> None:
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
    >>> genesis.ops.index.check_range(genesis.tensor([1, 0]), "gather", 2, "dim 0 of size 2")
    tensor([1, 0])
    """
    _refuse_outside(name, index, size, where)
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
    >>> genesis.ops.index.mask_places(genesis.tensor([[True, False], [True, True]]), 3, 1)
    tensor([0, 0, 1])
    """
    places = np.ascontiguousarray(np.nonzero(mask)[dim])
    if len(places) != count:
        raise ShapeError(
            message(
                "index",
                f"the mask names {len(places)} elements, {count} when the function was traced",
                [("mask", f"bool{list(mask.shape)}")],
            )
        )
    return places


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
    _refuse_outside(name, array, size, where)
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
            and not _unknown(item._array)
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


def _unknown(array: Any) -> bool:
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
        array = np.asarray([_to_int(i) for i in item] if isinstance(item, list | tuple) else item)
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


def _to_int(item: Any) -> Any:
    return (
        item.tolist()
        if isinstance(item, Tensor)
        else [_to_int(i) for i in item]
        if isinstance(item, list | tuple)
        else item
    )


def _consumed(k: Any) -> int:
    """How many dimensions a part of an index stands for."""
    if k is None or k is Ellipsis:
        return 0
    return k.ndim if is_array(k) and k.dtype.kind == "b" else 1


def _with_places(spec: Spec, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index of a trace, its masks written as places: a mask may be another one at the next replay, with as many
    elements.
    """
    if tracer.get() is None or not any(k.__class__ is np.ndarray and k.dtype.kind == "b" and k.ndim for k in key):
        return key
    _infer_pick(spec, key)  # the masks fit
    items: list[Any] = []
    for k in key:
        masked = k.__class__ is np.ndarray and k.dtype.kind == "b" and k.ndim
        items += [mask_places(wrap(k), int(k.sum()), d)._array for d in range(k.ndim)] if masked else [k]
    return tuple(items)


def select_first(x: Tensor, key: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
    """The tensor with the integers, None and slices of an index applied, and the index tensors that are left; both as
    they are without integers.
    """
    # of no dimension: it does not part index tensors
    if any(k is Ellipsis for k in key) and sum(map(_consumed, key)) == x.ndim:
        key = tuple([k for k in key if k is not Ellipsis])
    if not any(k.__class__ is int or _is_flag(k) for k in key) or all(_is_scalar(k) for k in key if is_array(k)):
        return x, key
    basic: list[Any] = []
    rest: list[Any] = []
    for k in key:
        if _is_flag(k):
            basic.append(None)
            rest.append(np.flatnonzero(k))
        elif is_array(k):
            basic += [slice(None)] * _consumed(k)
            rest.append(k)
        else:
            basic.append(k)
            rest += [] if k.__class__ is int else [k if k is Ellipsis else slice(None)]
    return slice_view(x, tuple(basic)), tuple(rest)


def _is_flag(k: Any) -> bool:
    """Whether part of an index is one bool: a new dimension, of size 1 or 0."""
    return k.__class__ is np.ndarray and not k.ndim and k.dtype.kind == "b"


def _is_scalar(k: Any) -> bool:
    """Whether part of an index is an integer whose value only a transform knows."""
    return is_array(k) and not k.ndim and k.dtype.kind != "b"


def _scalar_apart(key: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """The index of the first such integer that stands beside index tensors, alone, and the index without it."""
    at = next((i for i, k in enumerate(key) if _is_scalar(k)), None)
    if at is None or all(_is_scalar(k) for k in key if is_array(k)):
        return None
    only = [part for k in key[:at] for part in ([k] if k is None or k is Ellipsis else [slice(None)] * _consumed(k))]
    after = [slice(None)] * sum(_consumed(k) for k in key[at + 1 :]) if Ellipsis in only else []
    rest = (*[slice(None) if k is None else k for k in key[:at]], *key[at + 1 :])
    return (*only, key[at], *after), rest


def explain_index(shape: Sequence[int], key: tuple[Any, ...]) -> Exception:
    """What NumPy's refusal of an index means."""
    consumed = sum(_consumed(k) for k in key)
    text = f"{list(shape)}"
    if consumed > len(shape):
        return IndexOutOfRange(message("index", f"{consumed} indices for {len(shape)} dimensions", [("input", text)]))
    dim = 0
    for at, k in enumerate(key):
        if k is None:
            continue
        if k is Ellipsis:
            dim = len(shape) - sum(_consumed(later) for later in key[at + 1 :])
            continue
        if isinstance(k, int | np.ndarray) and not (isinstance(k, np.ndarray) and k.dtype.kind == "b"):
            low, high = (k, k) if isinstance(k, int) else (int(k.min()), int(k.max())) if k.size else (0, 0)
            if low < -shape[dim] or high >= shape[dim]:
                bad = low if low < -shape[dim] else high
                return IndexOutOfRange(
                    message(
                        "index", f"index {bad} is out of range for dim {dim} of size {shape[dim]}", [("input", text)]
                    )
                )
        if isinstance(k, np.ndarray) and k.dtype.kind == "b" and k.ndim and tuple(shape[dim : dim + k.ndim]) != k.shape:
            return IndexOutOfRange(
                message(
                    "index", f"a mask of shape {list(k.shape)} does not fit sizes {list(shape[dim : dim + k.ndim])}"
                )
            )
        dim += _consumed(k)
    return ShapeError(message("index", "the indices cannot be broadcast together", [("input", text)]))


def _pick(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except (IndexError, ValueError, MemoryError):
        raise explain_index(x.shape, key) from None


def _infer_pick(input: Spec, key: Any) -> Spec:
    """Indexing nothing but a shape: NumPy does it on an array without memory."""
    ghost = np.broadcast_to(np.zeros((), np.int8), input.shape)
    zeros = [np.broadcast_to(np.zeros((), np.int64), k.shape) if isinstance(k, Dispatched) else k for k in key]
    return Spec(np.shape(_pick(ghost, tuple(zeros))), input.dtype, input.device)


# ---- reading


@view(
    {"input": lambda g, input_shape, key: place(g, None, input_shape, key)},
    infer=_infer_pick,
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
    return _pick(input, key if Ellipsis in key else (*key, ...))


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
    infer=lambda input, indices, key: _infer_pick(input, filled(key, _zeros(indices))),
    dtypes=_ALL,
)
def take_index(input: Array, indices: Array | None, key: Any) -> Any:
    """Advanced indexing, a copy; what ``x[[0, 2, 2]]`` and ``x[mask]`` call.

    >>> import genesis
    >>> genesis.arange(5)[[0, 2, 2]]
    tensor([0, 2, 2])
    """
    return packed(np.asarray(_pick(input, filled(key, indices))))


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


def add_at(out: Any, key: Any, values: Any) -> None:
    """``out[key] += values``, adding repeatedly where an element is named more than once; 16-bit floats are rounded
    once.
    """
    if out.dtype in HALVES:
        total = out.astype(F32)
        add_at(total, key, values.astype(F32))
        out[...] = total
        return
    single = key[0] if len(key) == 1 else None
    if isinstance(single, np.ndarray) and single.dtype.kind in "iu" and out.dtype.kind == "f" and single.size:
        _add_rows(out, single, values)
    else:
        shape = np.broadcast_to(np.False_, out.shape)[key].shape
        if values.ndim > len(shape):  # NumPy 2.4 crashes
            raise ShapeError(
                message(
                    "index", f"values of shape {list(values.shape)} cannot be added at an index of shape {list(shape)}"
                )
            )
        np.add.at(out, key, values)


def _add_rows(out: Any, index: Any, values: Any) -> None:
    """Rows summed by their index: sorted and reduced in runs, 5 to 20 times faster than ``np.add.at``."""
    rows = out.shape[0]
    flat = np.where(index < 0, index + rows, index).reshape(-1)
    values = np.broadcast_to(values, (*index.shape, *out.shape[1:])).reshape(flat.size, -1)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums = np.add.reduceat(values[order], starts, axis=0, dtype=out.dtype) if values.shape[1] else values[:0]
    if values.shape[1]:
        target = ordered[starts]
        out[target] += sums.reshape(len(target), *out.shape[1:])


@indexing(
    {"input": lambda g, indices, key: _at(g, indices, key)},
    infer=lambda input, indices, shape, key: Spec(tuple(shape), input.dtype, input.device),
    dtypes="fci",
)
def place(input: Array, indices: Array | None, shape: Sequence[int], key: Any) -> Any:
    """Zeros of a shape with the tensor added at an index: the transpose of indexing.

    >>> import genesis
    >>> genesis.ops.index.place(genesis.ones(2), None, (4,), (slice(1, 3),))
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
    >>> genesis.ops.index.put(genesis.zeros(3), genesis.ones(1), None, (slice(1, 3),))
    tensor([0., 1., 1.])
    """
    out = input.copy()
    out[filled(key, indices)] = value
    return out


samples(
    put,
    lambda t: [
        case(t(4, 3), t(3), None, (1,)),
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
        key = _with_places(Spec(tuple(shape), np.dtype(np.int8)), key)
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
    parsed, basic = parse_key(key)
    if basic:
        return slice_view(self, parsed)
    _check_key("index", self, key)
    if len(parsed) == 1 and self._array.__class__ is np.ndarray and not ACTIVE:
        array = parsed[0]
        if array.__class__ is np.ndarray and array.ndim:
            return _rows(self, array)
    return _taken(*select_first(self, _with_places(self._spec(), parsed)))


def check_index(name: str, x: Tensor, index: Tensor) -> None:
    """Refuse an index on another device; a meta tensor may be indexed by one with data, for its shape."""
    if not isinstance(x._array, Spec) and not isinstance(index._array, Spec):
        same_device(name, x, index, "the tensor is on {}, the index on {}")


def _check_key(name: str, x: Tensor, key: Any) -> None:
    """Refuse index tensors on another device."""
    for item in key if key.__class__ is tuple else (key,):
        if isinstance(item, Tensor):
            check_index(name, x, item)


def _rows(x: Tensor, array: Any) -> Tensor:
    """``x[array]``, which is most of advanced indexing, without the steps for longer indices (3 us less)."""
    if array.dtype.kind == "b":
        return take_index(x, None, (array.copy(),))  # type: ignore[no-any-return]
    return take_index(x, wrap(array), (AT,))  # type: ignore[no-any-return]


def _taken(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    apart = _scalar_apart(key)
    return index_by(x, key) if apart is None else _taken(index_by(x, apart[0]), apart[1])


Tensor.__getitem__ = _getitem

# ---- writing


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
    apart = _scalar_apart(key)
    return _infer_pick(spec, key).shape if apart is None else _picked_shape(_infer_pick(spec, apart[0]), apart[1])


def _replaced(x: Tensor, value: Tensor, key: tuple[Any, ...]) -> Tensor:
    """`put` with the integers that only a transform knows taken first."""
    apart = _scalar_apart(key)
    if apart is None:
        return put_by(x, value, key)
    only, rest = apart
    return put_by(x, _replaced(index_by(x, only), value, rest), only)


def _setitem(self: Tensor, key: Any, value: Any) -> None:
    if isinstance(key, Tensor) and key._array.dtype.kind == "b" and _unknown(key._array) and key.shape == self.shape:
        inplace("setitem", lambda old, mask: where(mask, value, old), self, (key,), {})
        return
    parsed, basic = parse_key(key)
    if not basic:
        _check_key("setitem", self, key)
        target, rest = select_first(self, _with_places(self._spec(), parsed))
        if target is not self:
            check_writable(self, "setitem", False)
            return _set(target, rest, value)
        parsed = rest
    _set(self, parsed, value)


def _set(self: Tensor, parsed: tuple[Any, ...], value: Any) -> None:
    tensor = value if isinstance(value, Tensor) else None
    recording = grad_mode.get() and (self._node is not None or (tensor is not None and tensor._node is not None))
    check_writable(self, "setitem", recording)
    if tensor is not None and not isinstance(self._array, Spec) and not isinstance(tensor._array, Spec):
        same_device("setitem", self, tensor)
    if isinstance(self._array, Spec):
        _infer_pick(self._array, parsed)
    elif (
        isinstance(self._array, DeviceArray)
        or tracer.get() is not None
        or _unknown(self._array)
        or (tensor is not None and _unknown(tensor._array))
        or any(_unknown(k) for k in parsed)
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
        source = np.asarray(_to_int(value) if isinstance(value, list | tuple) else value)
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
    target = _pick(np.broadcast_to(np.zeros((), np.int8), array.shape), key)
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
    if isinstance(source, complex | np.complexfloating) and array.dtype.kind != "c":
        raise ArgumentError(message("setitem", "a complex value does not fit a real tensor"))
    with np.errstate(all="ignore"):
        array[key] = source


Tensor.__setitem__ = _setitem

__all__: list[str] = []
