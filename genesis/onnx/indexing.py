"""Elements named by indices: gather, scatter, embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.core.call.kinds.indexing import AT
from genesis.onnx.builder import INT64, Builder, Value, lowers
from genesis.onnx.shapes import sliced, spread_key
from genesis.onnx.whole import whole

whole("embedding", when=lambda input, weight, padding_idx, max_norm, *rest: max_norm is None)


@lowers("embedding")
def _embedding(b: Builder, ids: Value, weight: Value, *rest: Any) -> str:
    return b.node("Gather", weight, ids)


@lowers("check_range")
def _check_range(b: Builder, index: Value, *rest: Any) -> str:
    return index.name  # ONNX has its own error for an index out of range


@lowers("gather_at")
def _gather_at(b: Builder, x: Value, dim: int, index: Value, distinct: bool = False) -> str:
    if not index.rank:
        return b.reshape(x, [])
    return b.node("GatherElements", x, index, axis=dim)


@lowers("scatter_sum")
def _scatter_sum(b: Builder, x: Value, shape: Sequence[Any], dim: int, index: Value, distinct: bool = False) -> str:
    zeros = b.node("Expand", b.constant(0, x.dtype), b.ints(shape))
    return b.node("ScatterElements", zeros, index, _named(b, x, index), axis=dim, reduction="add")


@lowers("scatter_combined")
def _scatter_combined(b: Builder, x: Value, value: Value, dim: int, index: Value, reduce: str) -> str:
    how = {"prod": "mul", "amax": "max", "amin": "min"}[reduce]
    return b.node("ScatterElements", x, index, _named(b, value, index), axis=dim, reduction=how)


def _named(b: Builder, x: Value, index: Value) -> Any:
    """The part of values that an index names places for."""
    if x.shape == index.shape:
        return x
    return b.node("Slice", x, b.ints([0] * x.rank), b.node("Shape", index), b.ints(list(range(x.rank))))


def _key(key: Any, rank: int) -> list[Any]:
    return spread_key(key if isinstance(key, tuple) else (key,), rank)


def _index_dims(parts: Sequence[Any]) -> list[int]:
    """The dimensions that index tensors stand for."""
    dims = [i for i, k in enumerate([k for k in parts if k is not None]) if k is AT or (isinstance(k, str) and k == AT)]
    if any([k is None or isinstance(k, int) for k in parts]):
        raise UnsupportedError(message("export", "new dimensions and integers beside index tensors",
                                       hint="index in two steps: x[0][:, ids]"))  # fmt: skip
    return dims


def _last(b: Builder, indices: Value) -> str:
    """Indices that lie one after the other in the first dimension, in the last one."""
    return b.node("Transpose", indices, perm=[*range(1, indices.rank), 0])


@lowers("take_index")
def _take_index(b: Builder, x: Value, indices: Value | None, key: Any) -> str:
    parts = _key(key, x.rank)
    dims = _index_dims(parts)
    if not dims or indices is None:
        raise UnsupportedError(message("export", "an index without index tensors"))
    name, _ = sliced(b, x, [slice(None) if i in dims else k for i, k in enumerate(parts)])
    if len(dims) == 1:
        return b.node("Gather", name, indices, axis=dims[0])
    rest = [i for i in range(x.rank) if i not in dims]
    if dims != list(range(len(dims))):
        name = b.node("Transpose", name, perm=[*dims, *rest])
    out = b.node("GatherND", name, _last(b, indices))
    many, at = indices.rank - 1, dims[0]
    if dims != list(range(at, at + len(dims))) or not at:
        return out
    order = [*range(many, many + at), *range(many), *range(many + at, many + len(rest))]  # where the indices stood
    return b.node("Transpose", out, perm=order)


def _written(b: Builder, target: Any, rank: int, shape: Sequence[Any], value: Value, indices: Any, key: Any,
             reduction: str) -> str:  # fmt: skip
    """``target[key] = value``, or with a reduction added to it."""
    parts = _key(key, rank)
    if indices is None:
        positions = np.arange(int(np.prod(shape))).reshape(tuple(shape))[tuple(parts)]
        updates = b.reshape(b.node("Expand", value, b.ints(list(positions.shape))), [-1])
        flat = b.node(
            "ScatterND",
            b.reshape(target, [-1]),
            b.constant(positions.reshape(-1, 1), INT64),
            updates,
            reduction=reduction,
        )
        return b.reshape(flat, shape)
    dims = _index_dims(parts)
    if dims != list(range(len(dims))) or any([k != slice(None) for k in parts[len(dims) :]]):
        raise UnsupportedError(message("export", "a write at index tensors that are not the first dimensions"))
    at = b.unsqueeze(indices, indices.rank) if len(dims) == 1 else _last(b, indices)
    wanted = [*(indices.shape if len(dims) == 1 else indices.shape[1:]), *shape[len(dims) :]]
    updates = value.name if list(value.shape) == wanted else b.node("Expand", value, b.ints(wanted))
    return b.node("ScatterND", target, at, updates, reduction=reduction)


@lowers("put")
def _put(b: Builder, x: Value, value: Value, indices: Value | None, key: Any) -> str:
    return _written(b, x, x.rank, x.shape, value, indices, key, "none")


@lowers("place")
def _into_zeros(b: Builder, x: Value, indices: Value | None, shape: Sequence[Any], key: Any) -> str:
    zeros = b.node("Expand", b.constant(0, x.dtype), b.ints(list(shape)))
    return _written(b, zeros, len(shape), shape, x, indices, key, "add")
