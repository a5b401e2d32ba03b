"""``torch.distributed.tensor`` as far as parameters need it: tensors of which each rank has a part, made of whole ones, and
what they say of themselves. `parallel` has models that are divided so, `exchange` what goes between their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.movement import broadcast
from genesis.distributed.placements import Partial, Placement, Replicate, Shard
from genesis.distributed.sharded import DTensor, ReplicatedTensor, ShardedTensor, Sharding, layout


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """This rank's part of a tensor that all ranks of a mesh have.

    Args:
        device_mesh: the ranks, all of them by default
        placements: ``[Shard(dim)]`` or ``[Replicate()]``; of a mesh of two dimensions ``[Replicate(), Shard(dim)]``; without
            any those of rows
        src_data_rank: the rank of each line of the mesh whose values count; None: all have the same

    Raises:
        TypeError: not a tensor
        NotImplementedError: other placements

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = distribute_tensor(genesis.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> x.placements, x.full_tensor()
    ((Shard(dim=0),), tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(message("distribute_tensor", f"expected a tensor, got {type(tensor).__name__}"))
    if not tensor.shape:
        raise ArgumentError(message("distribute_tensor", "a tensor without dimensions has no rows"))
    mesh, dim = layout("distribute_tensor", device_mesh, placements, tensor.ndim)
    with no_grad():
        given: Any = tensor.detach()
        if src_data_rank is not None and not given.is_meta and mesh.size() > 1:
            given = given.clone()
            for group in mesh.get_all_groups():
                broadcast(given, group=group, group_src=src_data_rank)
        if dim is None:
            return _replicated(tensor, given, mesh)
        at = Sharding(tensor.shape[dim], mesh, dim)
        rows = at.part_of(given).clone()
    made = ShardedTensor(rows, at)
    return Parameter(made, tensor.requires_grad) if isinstance(tensor, Parameter) else made


def _replicated(tensor: Tensor, whole: Tensor, mesh: DeviceMesh) -> Tensor:
    if not isinstance(tensor, Parameter):
        return ReplicatedTensor(whole, mesh)
    return Parameter(whole, tensor.requires_grad)  # all ranks have the same, which is what parameters are


__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh",
]  # fmt: skip

explain_all(globals())
