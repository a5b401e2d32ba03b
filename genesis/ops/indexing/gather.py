"""Elements named along one dimension: gather and take, and the sums at places that are their transpose."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.protocol import Array
from genesis.arrays.spec import Spec
from genesis.base.errors import ShapeError, message
from genesis.core.call.kinds import case, composite, indexing, normalize_dim
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.strides import packed
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap
from genesis.ops.indexing.adding import add_at
from genesis.ops.indexing.index import check_index, index_by
from genesis.ops.indexing.keys import all_within, as_index, in_range
from genesis.ops.pointwise.choice import where

_ALL, _I64 = "fcib", np.dtype(np.int64)


def along(name: str, input: Tensor, dim: int, index: Any, reads: bool = False) -> tuple[int, Any]:
    """Check the shapes of gather and scatter: no dimension but ``dim`` may be larger than the input's; and the index, but
    where a device does so when it ``reads``.
    """
    d = _usual(input, dim, index)
    if d is not None:
        return d, index._array
    array = as_index(name, index)
    check_index(name, input, index)
    d = normalize_dim(name, dim, input.ndim)
    shape = tuple(input._array.shape)
    if array.size and len(array.shape) != len(shape):
        raise ShapeError(
            message(
                name,
                f"index has {len(array.shape)} dimensions, input {len(shape)}",
                [("input", input._spec()), ("index", index._spec())],
            )
        )
    if (
        array.size
        and array.shape != shape
        and any([a > b and i != d for i, (a, b) in enumerate(zip(array.shape, shape, strict=True))])
    ):
        raise ShapeError(
            message(name, f"index of shape {list(array.shape)} is larger than the input {list(shape)} outside dim {d}")
        )
    there = (
        reads and shape and isinstance(array, DeviceArray) and array.__class__ is input._array.__class__ and not ACTIVE
    )
    if there and memory_of(array).reports_indices(input._array):
        return d, array
    size = shape[d] if shape else 1
    return d, in_range(name, index, size, f"dim {d} of size {size}")


def _usual(input: Tensor, dim: Any, index: Any) -> int | None:
    """The dimension, where NumPy's arrays meet and all indices are int64 numbers of elements that are there; None where
    there is more to look at, or to explain.
    """
    x = input._array
    if ACTIVE or index.__class__ is not Tensor or x.__class__ is not np.ndarray or dim.__class__ is not int:
        return None
    array = index._array
    if array.__class__ is not np.ndarray or array.dtype is not _I64:
        return None
    d = _dimension(x.shape, array.shape, dim)
    return d if d is not None and all_within(array, x.shape[d]) else None


@functools.lru_cache(maxsize=1 << 10)
def _dimension(shape: tuple[int, ...], named: tuple[int, ...], dim: int) -> int | None:
    """The dimension along which an index of a shape names elements, where both have several, and it fits."""
    if not 0 < len(shape) == len(named) or not -len(shape) <= dim < len(shape) or 0 in named:
        return None
    dim %= len(shape)
    return dim if all([b <= a or i == dim for i, (a, b) in enumerate(zip(shape, named, strict=True))]) else None


def along_key(index: Any, dim: int) -> tuple[Any, ...]:
    """The advanced index that names, for each element of ``index``, its element along ``dim``."""
    if not index.ndim:
        return ()
    # in a trace what was there before is captured
    key = coordinates(index.shape) if index.__class__ is np.ndarray else _grid.__wrapped__(index.shape)
    return (*key[:dim], index, *key[dim + 1 :])


def coordinates(shape: tuple[int, ...]) -> Any:
    """For each dimension its places, as they broadcast with those of the others. Nobody writes to them."""
    return (_grid if sum(shape) <= _SMALL else _grid.__wrapped__)(shape)


_SMALL = 1 << 12  # numbers of an index that are kept for the next call


@functools.lru_cache(maxsize=128)
def _grid(shape: tuple[int, ...]) -> Any:
    ndim = len(shape)
    return tuple([np.arange(n).reshape([n if i == d else 1 for d in range(ndim)]) for i, n in enumerate(shape)])


@indexing(
    {"input": lambda g, input_shape, dim, index, distinct: scatter_sum(g, input_shape, dim, index, distinct)},
    infer=lambda input, dim, index, distinct: Spec(index.shape, input.dtype, input.device),
    dtypes=_ALL,
    quiet=True,
)
def gather_at(input: Array, dim: int, index: Array, distinct: bool = False) -> Any:
    """Elements named by an index array along ``dim``, none of them twice if they are ``distinct``; what `gather` calls.

    >>> import genesis
    >>> genesis.gather(genesis.tensor([1., 2.]), 0, genesis.tensor([1]))
    tensor([2.])
    """
    return packed(np.asarray(input[along_key(index, dim)])) if index.ndim else input.reshape(()).copy()


samples(
    gather_at,
    lambda t: [
        case(t(3, 4), 1, wrap(np.array([[0, 1], [3, 3]]))),
        case(t(3, 4), 1, wrap(np.array([[0, 1], [3, 2]])), True),
    ],
)


@indexing(
    {"input": lambda g, dim, index, distinct: gather_at(g, dim, index, distinct)},
    infer=lambda input, shape, dim, index, distinct: Spec(tuple(shape), input.dtype, input.device),
    dtypes="fci",
)
def scatter_sum(input: Array, shape: Sequence[int], dim: int, index: Array, distinct: bool = False) -> Any:
    """Zeros of a shape, with elements added at the places of an index array along ``dim``, no two at one place if these are
    ``distinct``: the transpose of `gather`.

    >>> import genesis
    >>> from importlib import import_module
    >>> import_module("genesis.ops.indexing.gather").scatter_sum(genesis.ones(2), (3,), 0, genesis.tensor([2, 2]))
    tensor([0., 0., 2.])
    """
    out = np.zeros(shape, input.dtype)
    if index.size:
        key, some = along_key(index, dim), input[tuple(slice(0, n) for n in index.shape)]
        if distinct:
            out[key] = some
        else:
            add_at(out, key, some)
    return out


samples(
    scatter_sum,
    lambda t: [
        case(t(2, 2), (3, 4), 1, wrap(np.array([[0, 1], [3, 3]]))),
        case(t(2, 2), (3, 4), 1, wrap(np.array([[0, 1], [3, 2]])), True),
    ],
)


_AT = lambda t: t.int(2, 2, low=0, high=3)  # noqa: E731


@composite(dtypes=_ALL, out=True)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements named along ``dim``, ``out[i][j] = input[index[i][j]][j]`` for dim 0; in the shape of ``index``.

    Raises:
        IndexError: an index out of range
        RuntimeError: ``index`` has other dimensions, or is larger than the input elsewhere

    >>> import genesis
    >>> genesis.gather(genesis.tensor([[1., 2.], [3., 4.]]), 1, genesis.tensor([[0], [1]]))
    tensor([[1.],
            [4.]])
    """
    usual = _usual(input, dim, index)
    if usual is not None:
        if input._node is None and not LEVELS:  # nothing to record, or to look at: two thirds of the time
            return wrap(gather_at.op.kernel(input._array, usual, index._array))
        return gather_at(input, usual, index)
    key = _there(input._array, index._array, dim) if index.__class__ is Tensor and dim.__class__ is int else None
    known = None if key is None else _fit.get(key)
    if known is not None:
        return gather_at(input, known, wrap(index._array))
    if isinstance(index, Tensor) and {input.ndim, index.ndim} == {0, 1}:  # a number and a list of numbers go together
        return gather(input.reshape(-1), dim, index.reshape(-1)).reshape(index.shape)
    if isinstance(index, Tensor) and index.ndim != input.ndim and not index.numel() and index._array.dtype.kind in "iu":
        return input.reshape(-1)[:0].reshape(index.shape)  # nothing is named: its dimensions are not looked at
    d, array = along("gather", input, dim, index, reads=True)
    if key is not None and array is index._array:
        if len(_fit) == _MANY:
            _fit.clear()
        _fit[key] = d
    return gather_at(input, d, wrap(array))


_MANY = 1 << 10
_fit: dict[Any, int] = {}  # the dimension, by shapes of arrays of a device that were looked at


def _there(x: Any, index: Any, dim: Any) -> Any:
    """What a gather on a device is known by, whose kernel says which index is none; None elsewhere."""
    if not isinstance(x, DeviceArray) or index.__class__ is not x.__class__ or index.device is not x.device or ACTIVE:
        return None
    return (x.shape, x.dtype, index.shape, index.dtype, dim) if memory_of(x).reports_indices(x) else None


samples(gather, lambda t: [case(t(3, 4), 1, _AT(t)), case(t(3, 4), 0, _AT(t))])

wrong_inputs(
    gather,
    (
        lambda t: case(t(2, 2), 0, t.int(2, 2, low=5, high=6)),
        IndexError,
        "gather: index 5 is out of range for dim 0 of size 2",
    ),
    (lambda t: case(t(2, 2), 0, t.int(2)), RuntimeError, "gather: index has 1 dimensions, input 2"),
)


@composite(dtypes=_ALL, out=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened tensor, in the shape of ``index``.

    >>> import genesis
    >>> genesis.take(genesis.tensor([[1., 2.], [3., 4.]]), genesis.tensor([0, 3]))
    tensor([1., 4.])
    """
    return index_by(input.reshape(-1), (as_index("take", index),))


samples(take, lambda t: [case(t(3, 4), t.int(2, 2, low=0, high=12))])


@composite(dtypes=_ALL, out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements named along ``dim``, the indices broadcast against the input; of the flattened tensor for None.

    Negative indices count from the end.

    >>> import genesis
    >>> genesis.take_along_dim(genesis.tensor([[3., 1.]]), genesis.tensor([[1, 0]]), 1)
    tensor([[1., 3.]])
    """
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    d = normalize_dim("take_along_dim", dim, input.ndim)
    indices = where(indices < 0, indices + (input.shape[d] if input.ndim else 1), indices)
    mine, theirs = tuple(input._array.shape), tuple(indices._array.shape)
    shape = tuple([max(a, b) if i != d else b for i, (a, b) in enumerate(zip(mine, theirs, strict=True))])
    wide = (*shape[:d], mine[d], *shape[d + 1 :]) if mine else ()
    source = input if mine == wide else input.expand(wide)
    return gather(source, d, indices if theirs == shape else indices.expand(shape))


samples(
    take_along_dim, lambda t: [case(t(3, 4), t.int(3, 1, low=0, high=4), 1), case(t(3, 4), t.int(5, low=0, high=12))]
)

__all__ = [
    "gather",
    "take",
    "take_along_dim",
]
