"""Activations between ranks that have parts of one model: the same numbers go through all of them, and all compute the same
loss.

So a gradient is that of the loss which each rank has, not of the sum of all, as in `genesis.distributed.nn.functional`.
Those in pairs are each other's gradient: `copied` and `summed`, `gathered` and `divided`, `gathered_for_terms` and
`part_of_sum`. (Shoeybi and others, "Megatron-LM", 2019, where the first pair is called f and g; Korthikanti and others, 2022,
have the last.)
"""

from __future__ import annotations

from typing import Any

from genesis.base.errors import UnsupportedError, message
from genesis.core.functions.function import Function
from genesis.distributed.device_mesh import mesh_of
from genesis.distributed.nn import ops
from genesis.distributed.placements import Partial, Placement
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
        whole = ops.all_gather_stacked(_lengthened(x.movedim(at.dim, 0), at.padded), at.members.key).flatten(0, 1)
        return whole[: at.length].movedim(0, at.dim).contiguous()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Divided.apply(g, ctx.at), None


class _GatheredForTerms(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, at: Sharding) -> Any:
        ctx.at = at
        return _Gathered.apply(x, at)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _PartOfSum.apply(g, ctx.at), None


class _PartOfSum(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, at: Sharding) -> Any:
        ctx.at = at
        rows = _lengthened(x.movedim(at.dim, 0), at.padded * at.members.size())
        mine = ops.reduce_scatter_stacked(rows.unflatten(0, (at.members.size(), at.padded)), "sum", at.members.key)
        return mine[: at.rows].movedim(0, at.dim).contiguous()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _GatheredForTerms.apply(g, ctx.at), None


class _Divided(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, at: Sharding) -> Any:
        ctx.at = at
        return at.part_of(x).clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Gathered.apply(g, ctx.at), None


def _lengthened(rows: Any, length: int) -> Any:
    """Zeros behind the rows, so that there are so many."""
    missing = length - rows.shape[0]
    return cat([rows, rows.new_zeros((missing, *rows.shape[1:]))]) if missing else rows


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


def gathered_for_terms(x: Any, at: Sharding) -> Any:
    """The whole tensor of which each rank has a part, where each goes on with its own part of something else."""
    return _GatheredForTerms.apply(x, at)


def part_of_sum(x: Any, at: Sharding) -> Any:
    """This rank's part of the sum of all ranks' terms."""
    return _PartOfSum.apply(x, at)


def moved(x: Any, ranks: Any, source: Placement, to: Placement, length: int | None = None, terms: bool = False) -> Any:
    """What lies in one way on the ranks of a line, lying in another.

    Args:
        ranks: a group, or a mesh of one dimension
        length: of the dimension that is divided; where it is not known all ranks have as much of it
        terms: whether each rank goes on with its own part of something, so that gradients of what all have are terms

    Raises:
        NotImplementedError: terms are asked for
    """
    members = mesh_of(ranks).get_group()
    if to.is_partial() and not source.is_partial():
        raise UnsupportedError(message("redistribute", "a tensor is not made terms of a sum", hint="Replicate()"))
    if source.is_partial() and not to.is_partial():
        if source != Partial():
            raise UnsupportedError(message("redistribute", f"terms are combined by {source}", hint="Partial()"))
        if to.is_shard():
            return part_of_sum(x, Sharding(x.shape[to.dim], ranks, to.dim % x.ndim))
        x = summed(x, members.key)
    elif source.is_shard():
        dim = source.dim % x.ndim
        if to.is_shard() and to.dim % x.ndim == dim:
            return x
        at = Sharding(x.shape[dim] * members.size() if length is None else length, ranks, dim)
        if to.is_replicate():
            return gathered_for_terms(x, at) if terms else gathered(x, at)
        x = gathered(x, at)
    if to.is_shard():
        return divided(x, Sharding(x.shape[to.dim], ranks, to.dim % x.ndim))
    return copied(x, members.key) if terms and to.is_replicate() else x
