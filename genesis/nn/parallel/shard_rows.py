"""The rows of a batch as those of its shards, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ShapeError, message
from genesis.core.graph.tensor import Tensor
from genesis.ops.shapes.join import cat, stack


def apart(x: Any, count: int) -> Any:
    """The rows of a batch with the shards as first dimension: row ``i`` is of shard ``i % count``."""
    return x.reshape(x.shape[0] // count, count, *x.shape[1:]).transpose(0, 1).contiguous()


def rows_of(x: Any, i: int, count: int) -> Any:
    """The rows of one shard, in one piece."""
    return x[i::count].contiguous() if count > 1 else x.contiguous()


def shown(parts: Sequence[Any]) -> Any:
    """What each shard gave as one tensor, whose first dimension they are; of others than tensors that of the first."""
    first = parts[0]
    if not isinstance(first, Tensor):
        return first
    # (a gradient goes back to each in one piece)
    return cat(list(parts)).reshape(len(parts), *first.shape) if first.ndim else stack(list(parts))


def joined(x: Any, rows: int) -> Any:
    """The rows of all shards, so many each, in the order that they had; the mean of numbers."""
    if not isinstance(x, Tensor):
        return x
    if x.ndim == 1:
        return x.mean()  # type: ignore[attr-defined]
    if x.shape[1] != rows:
        text = f"an output of a shard has shape {list(x.shape[1:])}, and its shard has {rows} rows"
        hint = "outputs whose first dimension is the batch's; or shards=None"
        raise ShapeError(message("DistributedDataParallel", text, hint=hint))
    return x.transpose(0, 1).reshape(rows * x.shape[0], *x.shape[2:])  # type: ignore[attr-defined]
