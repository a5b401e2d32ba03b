"""Activations between ranks that have parts of one model: the same numbers go through all of them, and all compute the same
loss.

So a gradient is that of the loss which each rank has, not of the sum of all, as in `genesis.distributed.nn.functional`.
Those in pairs are each other's gradient: `copied` and `summed`, `gathered` and `divided`, `gathered_for_terms` and
`part_of_sum`. (Shoeybi and others, "Megatron-LM", 2019, where the first pair is called f and g; Korthikanti and others, 2022,
have the last.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.base.errors import UnsupportedError, message
from genesis.core.functions.function import Function
from genesis.distributed.device_mesh import mesh_of
from genesis.distributed.nn import ops
from genesis.distributed.placements import Partial, Placement
from genesis.distributed.sharded import Sharding
from genesis.ops.shapes.join import cat


class _Exchanged(Function):
    """What goes between ranks in one way, and its gradient in another."""

    @staticmethod
    def forward(ctx: Any, x: Any, at: Any, way: str) -> Any:
        ctx.at, ctx.way = at, way
        return _WAYS[way].go(x, at)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return _Exchanged.apply(g, ctx.at, _WAYS[ctx.way].of_gradient), None, None


class _Way(NamedTuple):
    go: Callable[[Any, Any], Any]
    of_gradient: str


def _gather(x: Any, at: Sharding) -> Any:
    whole = ops.all_gather_stacked(_lengthened(x.movedim(at.dim, 0), at.padded), at.members.key).flatten(0, 1)
    return whole[: at.length].movedim(0, at.dim).contiguous()


def _scatter_sum(x: Any, at: Sharding) -> Any:
    rows = _lengthened(x.movedim(at.dim, 0), at.padded * at.members.size())
    mine = ops.reduce_scatter_stacked(rows.unflatten(0, (at.members.size(), at.padded)), "sum", at.members.key)
    return mine[: at.rows].movedim(0, at.dim).contiguous()


def _lengthened(rows: Any, length: int) -> Any:
    """Zeros behind the rows, so that there are so many."""
    missing = length - rows.shape[0]
    return cat([rows, rows.new_zeros((missing, *rows.shape[1:]))]) if missing else rows


_WAYS = {
    "copied": _Way(lambda x, key: x.view_as(x), "summed"),
    "summed": _Way(lambda x, key: ops.all_reduce(x, "sum", key), "copied"),
    "gathered": _Way(_gather, "divided"),
    "divided": _Way(lambda x, at: at.part_of(x).clone(), "gathered"),
    "gathered_for_terms": _Way(_gather, "part_of_sum"),
    "part_of_sum": _Way(_scatter_sum, "gathered_for_terms"),
}


def copied(x: Any, key: str) -> Any:
    """What all ranks have, where each goes on with its own part: gradients are summed."""
    return _Exchanged.apply(x, key, "copied")


def summed(x: Any, key: str) -> Any:
    """The sum of all ranks' terms."""
    return _Exchanged.apply(x, key, "summed")


def gathered(x: Any, at: Sharding) -> Any:
    """The whole tensor of which each rank has a part."""
    return _Exchanged.apply(x, at, "gathered")


def divided(x: Any, at: Sharding) -> Any:
    """This rank's part of what all ranks have."""
    return _Exchanged.apply(x, at, "divided")


def gathered_for_terms(x: Any, at: Sharding) -> Any:
    """The whole tensor of which each rank has a part, where each goes on with its own part of something else."""
    return _Exchanged.apply(x, at, "gathered_for_terms")


def part_of_sum(x: Any, at: Sharding) -> Any:
    """This rank's part of the sum of all ranks' terms."""
    return _Exchanged.apply(x, at, "part_of_sum")


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
