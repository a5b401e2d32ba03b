"""What `genesis.nn.parallel.DistributedDataParallel` asks of ranks: equal tensors, and steps of which they have different numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.base.late import Late
from genesis.core.graph.modes import grad_mode, no_grad
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.distributed import pieces
from genesis.distributed.algorithms.join import Join, JoinHook
from genesis.distributed.groups import GroupMember
from genesis.distributed.memory import spread
from genesis.distributed.movement import broadcast
from genesis.distributed.reductions import ReduceOp, all_reduce
from genesis.ops.shapes.join import cat

_collectives = Late("genesis.distributed.nn.ops")


def share(tensors: Sequence[Tensor], group: Any, root: int = 0) -> None:
    """Make tensors those of one rank of a group: one message for each dtype and device."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each)
    for alike in kinds.values():
        if tracer.get() is not None:
            _share_in_graph(alike, group, root)
            continue
        flat = pieces.joined([each.detach().reshape(-1)._array for each in alike])  # type: ignore[attr-defined]
        broadcast(wrap(flat), group=group, group_src=root)
        if group.rank() != root:
            spread(flat, alike)


@no_grad()
def _share_in_graph(tensors: Sequence[Tensor], group: Any, root: int) -> None:
    """The same as nodes of a trace."""
    key = None if group is GroupMember.WORLD else group.key
    flat = _collectives.broadcast_from(cat([each.reshape(-1) for each in tensors]), root, key)
    for each, part in zip(tensors, flat.split([each.numel() for each in tensors]), strict=True):
        each.copy_(part.reshape(each.shape))


def begun(model: Any) -> int:
    """Before a forward in `Join`: tell the ranks that have joined what they are to do; the rank whose buffers count."""
    told = Join.notify_join_context(model)
    if told is not None:
        told.wait()
    sends = model.require_backward_grad_sync
    active, _, _, root = _agree(model, sends, sends and grad_mode.get())
    if model._together:
        model._buckets.ranks = active if model._divides_by_active else model.process_group.size()
    return root


def _agree(model: Any, sends: bool, combines: bool, active: bool = True) -> tuple[int, bool, bool, int]:
    """How many ranks have a step, whether these send buffers and combine gradients, and the first rank among them."""
    group = model.process_group
    said = np.zeros((group.size(), 3), np.int64)
    said[group.rank()] = active, sends, combines
    all_reduce(wrap(said), ReduceOp.MAX, group)
    return int(said[:, 0].sum()), bool(said[:, 1].any()), bool(said[:, 2].any()), int(said[:, 0].argmax())


class Hook(JoinHook):
    """What a rank that has no step left does.

    Args:
        divide_by_initial_world_size: gradients are sums over ranks that have a step, divided by the number of all ranks; else
            by the number of those
    """

    def __init__(self, model: Any, divide_by_initial_world_size: bool = True, **others: Any) -> None:
        self.model = model
        model._divides_by_active = not divide_by_initial_world_size

    def main_hook(self) -> None:
        model = self.model
        _, sends, combines, root = _agree(model, False, False, active=False)
        buffers = list(model.module.buffers()) if model.broadcast_buffers else []
        if sends and buffers and model._together:
            share(buffers, model.process_group, root)
        if combines and model._together:
            model._buckets.add_nothing()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All end with the parameters of the first rank that had the most steps."""
        model = self.model
        if model._together:
            model._buckets.ranks = model.process_group.size()
            *_, root = _agree(model, False, False, active=is_last_joiner)
            share([*model.module.parameters(), *model.module.buffers()], model.process_group, root)
