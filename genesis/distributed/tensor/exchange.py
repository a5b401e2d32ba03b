"""Activations between ranks that have parts of one model: the same numbers go through all of them, and all compute the same
loss.

So a gradient is that of the loss which each rank has, not of the sum of all, as in `genesis.distributed.nn.functional`.
Those in pairs are each other's gradient: `copied` and `summed`, `gathered` and `divided`. (Shoeybi and others, "Megatron-LM",
2019, where the first pair is called f and g.)
"""

from __future__ import annotations

from typing import Any

from genesis.core.functions.function import Function
from genesis.distributed.nn import ops
from genesis.distributed.sharded import Sharding
from genesis.ops.shapes.join import cat


class _Copied(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, key: str) -> Any:
        ctx.key = key
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Summed.apply(g, ctx.key), None


class _Summed(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, key: str) -> Any:
        ctx.key = key
        return ops.all_reduce(x, "sum", key)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Copied.apply(g, ctx.key), None


class _Gathered(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, at: Sharding) -> Any:
        ctx.at = at
        rows = x.movedim(at.dim, 0)
        missing = at.padded - rows.shape[0]
        if missing:
            rows = cat([rows, rows.new_zeros((missing, *rows.shape[1:]))])
        whole = ops.all_gather_stacked(rows, at.members.key).flatten(0, 1)
        return whole[: at.length].movedim(0, at.dim)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Divided.apply(g, ctx.at), None


class _Divided(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, at: Sharding) -> Any:
        ctx.at = at
        return at.part_of(x).clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Gathered.apply(g, ctx.at), None


def copied(x: Any, key: str) -> Any:
    """What all ranks have, where each goes on with its own part: gradients are summed."""
    return _Copied.apply(x, key)


def summed(x: Any, key: str) -> Any:
    """The sum of all ranks' terms."""
    return _Summed.apply(x, key)


def gathered(x: Any, at: Sharding) -> Any:
    """The whole tensor of which each rank has a part."""
    return _Gathered.apply(x, at)


def divided(x: Any, at: Sharding) -> Any:
    """This rank's part of what all ranks have."""
    return _Divided.apply(x, at)
