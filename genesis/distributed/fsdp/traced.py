"""Whole parameters as functions of shards: what a trace, and so a compiled step, has in place of memory that comes and
goes.
"""

from __future__ import annotations

from typing import Any

from genesis.base import dtypes
from genesis.core.functions.function import Function
from genesis.core.graph.tensor import wrap
from genesis.distributed.fsdp.units import Part
from genesis.distributed.nn.ops import all_gather_stacked, all_reduce, reduce_scatter_stacked
from genesis.ops.creation.create import zeros
from genesis.ops.shapes.join import cat


class Whole(Function):
    """The rows of all ranks; its gradient is this rank's rows of the mean over the ranks, or of the sum by ``factor``."""

    @staticmethod
    def forward(ctx: Any, x: Any, part: Part, reduce_dtype: Any, factor: float | None) -> Any:
        ctx.part, ctx.reduce_dtype, ctx.factor = part, reduce_dtype, factor
        at = part.sharding
        gathered = all_gather_stacked(_lengthened(x, at.padded), at.members.key)
        return gathered.reshape(at.members.size() * at.padded, *part.shape[1:])[: at.length]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        part: Part = ctx.part
        at, dtype = part.sharding, g.dtype
        size = at.members.size()
        sent = g if ctx.reduce_dtype is None else g.to(dtype=dtypes.from_numpy(ctx.reduce_dtype))
        blocks = _lengthened(sent, size * at.padded).reshape(size, at.padded, *part.shape[1:])
        op = "mean" if ctx.factor is None else "sum"
        rows = reduce_scatter_stacked(blocks, op, at.members.key)
        rows = (rows if at.replicas is None else all_reduce(rows, op, at.replicas.key))[: at.rows]
        return (rows if ctx.factor is None else rows / ctx.factor).to(dtype=dtype), None, None, None


def _lengthened(x: Any, length: int) -> Any:
    missing = length - x.shape[0]
    return x if not missing else cat([x, zeros(missing, *x.shape[1:], dtype=x.dtype, device=x.device)])


def whole_in_a_trace(part: Part, reduce_dtype: Any, factor: float | None) -> Any:
    """The parameter that a forward in a trace computes with."""
    x: Any = part.shard.to_local()  # type: ignore[attr-defined]
    if part.shard._array.dtype != part.dtype:
        x = x.to(dtype=wrap(part.nothing).dtype)
    return Whole.apply(x, part, reduce_dtype, factor)
