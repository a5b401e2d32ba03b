"""Collectives as ops of arrays on devices: by those that write into tensors, which know what moves such memory."""

from __future__ import annotations

import math
from typing import Any

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.core.call.kernels import attach
from genesis.core.graph.tensor import wrap
from genesis.distributed import movement, reductions
from genesis.distributed.groups import group_keyed
from genesis.distributed.nn import ops
from genesis.distributed.reductions import ReduceOp


@attach(ops.all_reduce, DeviceArray)
def all_reduce(x: Any, op: str, group: str | None) -> Any:
    out = memory_of(x).copy(x)
    reductions.all_reduce(wrap(out), ReduceOp(op), group_keyed("all_reduce", group))
    return out


@attach(ops.broadcast_from, DeviceArray)
def broadcast_from(x: Any, root: int, group: str | None) -> Any:
    out = memory_of(x).copy(x)
    movement.broadcast(wrap(out), group=group_keyed("broadcast", group), group_src=root)
    return out


@attach(ops.reduce_to, DeviceArray)
def reduce_to(x: Any, root: int, op: str, group: str | None) -> Any:
    members, memory = group_keyed("reduce", group), memory_of(x)
    out = memory.copy(x)
    reductions.reduce(wrap(out), op=ReduceOp(op), group=members, group_dst=root)
    return out if members.engine.rank == root else memory.zeros(x.shape, x.dtype, x.device)


@attach(ops.all_gather_stacked, DeviceArray)
def all_gather_stacked(x: Any, group: str | None) -> Any:
    members = group_keyed("all_gather", group)
    out = memory_of(x).empty((members.engine.size, *x.shape), x.dtype, x.device)
    movement.all_gather_into_tensor(wrap(out), wrap(x), members)
    return out


@attach(ops.reduce_scatter_stacked, DeviceArray)
def reduce_scatter_stacked(x: Any, op: str, group: str | None) -> Any:
    memory = memory_of(x)
    flat = memory.empty((math.prod(x.shape[1:]),), x.dtype, x.device)
    given = wrap(memory.copy(x)).reshape(-1)  # type: ignore[attr-defined]
    reductions.reduce_scatter_tensor(wrap(flat), given, ReduceOp(op), group_keyed("reduce_scatter", group))
    return wrap(flat).reshape(x.shape[1:])._array  # type: ignore[attr-defined]
