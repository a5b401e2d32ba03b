"""Rows named along one dimension: index_select, index_add, index_copy, index_fill and index_put."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ShapeError, message
from genesis.base.layouts import contiguous_format
from genesis.core.call.kinds import case, composite, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.indexing.index import add_by, check_index, index_by
from genesis.ops.indexing.keys import all_within, as_index, in_range, tensor_key
from genesis.ops.pointwise.choice import where

_ALL, _I64 = "fcib", np.dtype(np.int64)


def _rows(name: str, input: Tensor, dim: int, index: Any) -> tuple[int, Any]:
    numbers = _numbers(input, dim, index)
    if numbers is not None:
        return dim % input._array.ndim, numbers
    array = as_index(name, index)
    check_index(name, input, index)
    if len(array.shape) > 1:
        raise ShapeError(message(name, f"index must have at most one dimension, it has {len(array.shape)}"))
    d = normalize_dim(name, dim, input.ndim)
    size = input._array.shape[d] if input.ndim else 1
    array = in_range(name, index, size, f"dim {d} of size {size}")
    return d, array.reshape(-1) if array.__class__ is np.ndarray else wrap(array).reshape(-1)._array


def _check_source(name: str, input: Tensor, d: int, index: Any, source: Tensor) -> None:
    """Refuse a source that has not one slice of the input for each index."""
    shape, given = tuple(input._array.shape), tuple(source._array.shape)
    wanted = (*shape[:d], int(index.shape[0]), *shape[d + 1 :])
    if given != wanted and (given or math.prod(wanted) > 1) and (given or shape):
        raise ShapeError(message(name, f"source of shape {list(source.shape)} does not fit, it must be {list(wanted)}",
                                 [("input", input._spec()), ("source", source._spec())]))  # fmt: skip


def _row_key(d: int, array: Any) -> tuple[Any, ...]:
    return (*(slice(None),) * d, array)


def _taken(input: Tensor, dim: Any, index: Any) -> Any:
    """The slices where NumPy's arrays meet, all numbers are those of slices, and nothing is recorded: NumPy has a call for
    that, which takes a third of the time of an index. None elsewhere.
    """
    numbers = _numbers(input, dim, index) if input._node is None else None
    return None if numbers is None or not input._array.flags.c_contiguous else input._array.take(numbers, dim)


def _numbers(input: Tensor, dim: Any, index: Any) -> Any:
    """The numbers of an index where NumPy's arrays meet, and all are those of slices, counted from the first; None
    elsewhere.
    """
    if ACTIVE or LEVELS or index.__class__ is not Tensor:
        return None
    x, numbers = input._array, index._array
    plain = x.__class__ is np.ndarray is numbers.__class__ and numbers.dtype is _I64 and numbers.ndim == 1
    if not plain or not numbers.size or dim.__class__ is not int or not -x.ndim <= dim < x.ndim:
        return None
    return numbers if all_within(numbers, x.shape[dim]) else None


@composite(dtypes=_ALL, out=True)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices along ``dim`` named by a 1-d index, in that order.

    Raises:
        IndexError: an index out of range

    >>> import genesis
    >>> genesis.index_select(genesis.tensor([1., 2., 3.]), 0, genesis.tensor([2, 0]))
    tensor([3., 1.])
    """
    chosen = _taken(input, dim, index)
    if chosen is not None:
        return wrap(chosen)
    d, array = _rows("index_select", input, dim, index)
    return index_by(input, _row_key(d, array)) if input.ndim else input.clone()


samples(index_select, lambda t: [case(t(3, 4), 0, t.int(2, low=0, high=3)), case(t(3, 4), -1, t.int(5, low=0, high=4))])

wrong_inputs(
    index_select,
    (
        lambda t: case(t(2), 0, t.int(1, low=7, high=8)),
        IndexError,
        "index_select: index 7 is out of range for dim 0 of size 2",
    ),
)


@composite(halves="wide", dtypes="fci", inplace=True, out=True)
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """``input`` with slices of ``source`` added at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_add(genesis.zeros(3), 0, genesis.tensor([1, 1]), genesis.tensor([2., 3.]))
    tensor([0., 5., 0.])
    """
    d, array = _rows("index_add", input, dim, index)
    if not input.ndim:
        return index_add(input.reshape(1), 0, index, source.reshape(-1), alpha=alpha).reshape(())
    _check_source("index_add", input, d, array, source)
    added = add_by(source if alpha == 1 else source * alpha, tuple(input._array.shape), _row_key(d, array))
    return input + added


samples(
    index_add,
    lambda t: [
        case(t(3, 4), 0, t.int(2, low=0, high=3), t(2, 4)),
        case(t(3, 4), 1, t.int(2, low=0, high=3), t(3, 2), alpha=2),
    ],
)

wrong_inputs(
    index_add,
    (
        lambda t: case(t(3, 4), 1, t.int(2, low=0, high=3), t(2, 3, 2, 2)),
        RuntimeError,
        "index_add: source of shape [2, 3, 2, 2] does not fit, it must be [3, 2]",
    ),
    (
        lambda t: case(t(3, 4), 0, t.int(2, low=0, high=3), t(4)),
        RuntimeError,
        "index_add: source of shape [4] does not fit, it must be [2, 4]",
    ),
)


@composite(dtypes=_ALL, inplace=True, out=True)
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """``input`` with slices replaced by those of ``source`` at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_copy(genesis.zeros(3), 0, genesis.tensor([1]), genesis.tensor([2.]))
    tensor([0., 2., 0.])
    """
    d, array = _rows("index_copy", input, dim, index)
    if not input.ndim:
        return index_copy(input.reshape(1), 0, index, source.reshape(-1)).reshape(())
    _check_source("index_copy", input, d, array, source)
    out = input.clone(memory_format=contiguous_format)
    out[_row_key(d, array)] = source
    return out


samples(index_copy, lambda t: [case(t(3, 4), 0, t.int(1, low=0, high=3), t(1, 4))])

wrong_inputs(
    index_copy,
    (
        lambda t: case(t(3, 4), 0, t.int(2, low=0, high=3), t(1, 4)),
        RuntimeError,
        "index_copy: source of shape [1, 4] does not fit, it must be [2, 4]",
    ),
)


@composite(dtypes=_ALL, inplace=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """``input`` with slices set to one value at the places of a 1-d index along ``dim``.

    >>> import genesis
    >>> genesis.index_fill(genesis.zeros(3), 0, genesis.tensor([1]), 7)
    tensor([0., 7., 0.])
    """
    integers = isinstance(index, Tensor) and index._array.dtype.kind == "i"
    if integers and input.ndim and _numbers(input, dim, index) is None:  # from the end, which only it takes
        index = index + (index < 0) * input.shape[normalize_dim("index_fill", dim, input.ndim)]
    d, array = _rows("index_fill", input, dim, index)
    if not input.ndim:
        return index_fill(input.reshape(1), 0, index, value).reshape(())
    # a row that the index names twice is filled once: so is the gradient counted
    if isinstance(value, Tensor) and input.ndim:
        filled = input.new_zeros(input.shape[d], dtype=dtypes.bool)
        filled[wrap(array)] = True
        return where(filled.reshape([-1 if i == d else 1 for i in range(input.ndim)]), value.to(input.dtype), input)
    out = input.clone()
    out[_row_key(d, array)] = value
    return out


samples(index_fill, lambda t: [case(t(3, 4), 0, t.int(2, low=0, high=3), 1.5)])


@composite(halves="wide", dtypes="fci", inplace=True)
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """``input`` with ``values`` at (or, with ``accumulate``, added at) a tuple of indices.

    >>> import genesis
    >>> genesis.index_put(genesis.zeros(3), (genesis.tensor([1, 1]),), genesis.tensor([2., 3.]), accumulate=True)
    tensor([0., 5., 0.])
    """
    key = tensor_key(indices)
    if not accumulate:
        out = input.clone()
        out[key] = values
        return out
    shape = index_by(input.detach(), key).shape
    return input + add_by(values.expand(shape), tuple(input._array.shape), key)


samples(index_put, None)

__all__ = [
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
]
