"""Indexing: elements that integers name are read, added up, or replaced.

Ops of the kind are linear in their values; the integers are a tensor operand like any other, without a gradient (it is
saved as a copy: it may be written to before backward). An op that takes a whole index, as ``x[1:, i, j]`` has it, gets
the index (``key``) with `AT` where an index tensor stands, and the index tensors as one operand, ``indices``: the
tensor, or several of them stacked. Masks whose values are known stay in the key.

Many samples: where all are indexed alike, the hidden dimension is a slice in front; else it is one more index tensor,
which says for each element from which sample it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.memory import placed
from genesis.arrays.protocol import Dispatched
from genesis.base.device import META, device
from genesis.base.errors import ShapeError, message
from genesis.core.call.dispatch import public
from genesis.core.call.kind import Kind, Rule, called
from genesis.core.call.kinds.declare import Rules, primitive
from genesis.core.call.op import Op
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer

AT = "at"  # in a key: here stands an index tensor
ROW = "row"  # the same, of which no number may be below 0; arrays of devices alone have such keys
Key = tuple[Any, ...]


class Indexing(Kind):
    """Reading, adding and replacing by index."""

    linear = True
    copies = True

    def batch(self, op: Op) -> Rule | None:
        names = op.signature.parameters
        return (
            along_dim if "key" not in names else added if "shape" in names else replaced if "value" in names else read
        )


INDEXING = Indexing("indexing")


def indexing(vjp: Rules, *, infer: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Declare an op that finds elements by integers.

    Its operands are named ``input``, ``value``, and ``index`` (along a dimension ``dim``) or ``indices`` (of a ``key``);
    a parameter ``shape`` is that of the result.
    """
    return primitive(INDEXING, vjp, infer=infer, method=False, torch_name="", **options)


# ---- keys


def split(key: Key, x: Tensor, shape: Sequence[int]) -> tuple[Tensor | None, Key]:
    """The index tensors of a key as one operand, where x is, and the key with `AT` instead of them; ``shape`` is that of
    what is indexed, for errors.
    """
    arrays = [k for k in key if is_index_tensor(k)]
    if not arrays:
        return None, key
    rest = tuple([AT if is_index_tensor(k) else k for k in key])
    tensors = [k if isinstance(k, Tensor) else wrap(_at_home(k, x.device)) for k in arrays]
    if len(tensors) == 1:
        return tensors[0], rest
    try:
        if tracer.get() is None and all([t._array.__class__ is np.ndarray for t in tensors]):
            shape = tensors[0]._array.shape
            if all([t._array.shape == shape for t in tensors]):  # a third of the time
                return wrap(np.array([t._array for t in tensors], np.int64)), rest
            return wrap(np.stack(np.broadcast_arrays(*[t._array.astype(np.int64, copy=False) for t in tensors]))), rest
        common = np.broadcast_shapes(*[t._array.shape for t in tensors])
    except ValueError:
        text = "the indices cannot be broadcast together"
        raise ShapeError(message("index", text, [("input", f"{list(shape)}")])) from None
    return public("stack")([public("expand")(t.to(np.dtype(np.int64)), common) for t in tensors]), rest


def _at_home(array: Any, home: device) -> Any:
    return placed(array, home) if array.__class__ is np.ndarray and home != META else array


def filled(key: Key, indices: Any) -> Key:
    """A key as NumPy wants it, with the arrays of its index tensors."""
    if indices is None:
        return key
    if len(key) == 1:
        return (indices,)
    several = sum([k.__class__ is str for k in key]) > 1
    rest = iter([indices[i, ...] for i in range(len(indices))] if several else [indices])
    return tuple([next(rest) if k.__class__ is str else k for k in key])


def is_array(k: Any) -> bool:
    return isinstance(k, np.ndarray | Dispatched | Tensor)


def is_index_tensor(k: Any) -> bool:
    """Whether part of a key is an index tensor: masks are not."""
    return is_array(k) and (k._array if isinstance(k, Tensor) else k).dtype.kind != "b"


# ---- many samples at once


@called("in front")
def read(b: Any, x: Any, indices: Any, key: Key) -> Any:
    """``x[key]``"""
    in_x, in_indices = b.batched
    if in_x and not in_indices and _adjacent(key):
        return b.run(x, indices, (slice(None), *key))
    spread = _BatchedKey(b, indices, in_indices, key, x.ndim - in_x, in_x)
    return spread.samples_first(b.run(x, *split(spread.key, x, x.shape)))


@called("in front")
def added(b: Any, x: Any, indices: Any, shape: Sequence[int], key: Key) -> Any:
    """Zeros of ``shape``, to which x is added at ``key``."""
    x, whole = b.spread(x, b.batched[0]), (b.size, *shape)
    if not b.batched[1] and _adjacent(key):
        return b.run(x, indices, whole, (slice(None), *key))
    spread = _BatchedKey(b, indices, b.batched[1], key, len(shape), True)
    indices, key = split(spread.key, x, whole)
    return b.run(spread.as_numpy_gives(x), indices, whole, key)


@called("in front")
def replaced(b: Any, x: Any, value: Any, indices: Any, key: Key) -> Any:
    """x with ``value`` at ``key``."""
    x, (_, in_value, in_indices) = b.spread(x, b.batched[0]), b.batched
    if not in_indices and _adjacent(key):
        ghost = np.broadcast_to(np.zeros((), np.int8), x.shape[1:])
        zeros = None if indices is None else np.broadcast_to(np.zeros((), np.int64), indices.shape)
        ndim = np.ndim(ghost[filled(key, zeros)])
        return b.run(x, b.padded(value, in_value, ndim), indices, (slice(None), *key))
    spread = _BatchedKey(b, indices, in_indices, key, x.ndim - 1, True)
    value = b.padded(b.spread(value, in_value), True, spread.kept + spread.rank)
    return b.run(x, spread.as_numpy_gives(value), *split(spread.key, x, x.shape))


@called("in front")
def along_dim(b: Any, *args: Any) -> Any:
    """Values and integers get the hidden dimension in front of all others; ``dim`` is one further."""
    op, given = b.op, list(args)
    for i, flag in zip(op.tensors, b.batched, strict=True):
        given[i] = b.spread(args[i], flag)
    for i, name in enumerate(op.signature.parameters):
        if name == "dim":
            given[i] = args[i] + 1
        if name == "shape":
            given[i] = (b.size, *args[i])
    if given[op.tensors[-1]].ndim == 1:  # samples without dimensions: their one element
        return given[0].clone()
    return b.run(*given)


def _adjacent(key: Key) -> bool:
    """Whether NumPy leaves the dimensions of the index where they are, also behind a slice in front."""
    where = [i for i, k in enumerate(key) if k.__class__ is str or is_array(k) or isinstance(k, int)]
    return not where or where[-1] - where[0] == len(where) - 1


class _BatchedKey:
    """An index for all samples: the key with the hidden dimension, and where NumPy then puts the dimensions of the
    result.
    """

    def __init__(self, b: Any, indices: Any, batched: bool, key: Key, ndim: int, hidden: bool) -> None:
        key = self._spelled_out(_rows(key, indices, batched), ndim)
        self.rank = max([k.ndim - (batched and isinstance(k, Tensor)) for k in key if is_array(k)], default=0)
        self.at = self._first_index_dim(key)  # where the dimensions of the index are in one sample's result
        arrays = [self._aligned(k) if batched and isinstance(k, Tensor) else k for k in key]
        if hidden:
            arrays.insert(0, np.arange(b.size).reshape(-1, *[1] * self.rank))
        self.key = tuple(arrays)
        self.got = self._first_index_dim(self.key)
        self.kept = sum(1 for k in key if k is None or isinstance(k, slice))

    @staticmethod
    def _spelled_out(key: Key, ndim: int) -> Key:
        """No masks and no ellipsis; integers are arrays."""
        items: list[Any] = []
        for k in key:
            mask = isinstance(k, np.ndarray) and k.dtype.kind == "b"
            items += [np.asarray(i) for i in k.nonzero()] if mask else [np.asarray(k) if isinstance(k, int) else k]
        missing = ndim - sum(1 for k in items if k is not None and k is not Ellipsis)
        at = next((i for i, k in enumerate(items) if k is Ellipsis), len(items))
        return tuple([*items[:at], *[slice(None)] * missing, *[k for k in items[at:] if k is not Ellipsis]])

    @staticmethod
    def _first_index_dim(key: Key) -> int:
        where = [i for i, k in enumerate(key) if is_array(k)]
        return where[0] if where and where[-1] - where[0] == len(where) - 1 else 0

    def _aligned(self, index: Tensor) -> Tensor:
        shape = index._array.shape
        return index.reshape(shape[0], *[1] * (self.rank + 1 - len(shape)), *shape[1:])

    def _orders(self) -> tuple[list[int], list[int]]:
        """The dimensions of the result, named by numbers: as NumPy gives them, and as one sample's are, with the hidden
        one in front.
        """
        kept, index = list(range(self.kept)), list(range(self.kept + 1, self.kept + 1 + self.rank))
        hidden = [self.kept]
        return kept[: self.got] + hidden + index + kept[self.got :], hidden + kept[: self.at] + index + kept[self.at :]

    def samples_first(self, x: Tensor) -> Tensor:
        got, want = self._orders()
        return x if got == want else x.permute([got.index(d) for d in want])

    def as_numpy_gives(self, x: Tensor) -> Tensor:
        got, want = self._orders()
        return x if got == want else x.permute([want.index(d) for d in got])


def _rows(key: Key, indices: Any, batched: bool) -> Key:
    """A key with its index tensors put back, each with the hidden dimension in front if there is one."""
    if indices is None:
        return key
    count = sum([k.__class__ is str for k in key])
    rest = iter([indices.select(batched, i) for i in range(count)] if count > 1 else [indices])
    return tuple([next(rest) if k.__class__ is str else k for k in key])
