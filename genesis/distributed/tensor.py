"""``torch.distributed.tensor`` as far as parameters of `genesis.distributed.fsdp.fully_shard` need it: tensors of which each
rank has rows, made of whole ones, and what they say of themselves.
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
from genesis.distributed.sharded import ShardedTensor, Sharding, mesh_of_rows

DTensor = ShardedTensor


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """This rank's rows of a tensor that all ranks of a mesh have.

    Args:
        device_mesh: the ranks, all of them by default
        placements: ``[Shard(0)]``; of a mesh of two dimensions ``[Replicate(), Shard(0)]``; without any these
        src_data_rank: the rank of each line of the mesh whose values count; None: all have the same

    Raises:
        TypeError: not a tensor
        NotImplementedError: other placements: rows are what is divided

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> x = distribute_tensor(genesis.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> x.placements, x.full_tensor()
    ((Shard(dim=0),), tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(message("distribute_tensor", f"expected a tensor, got {type(tensor).__name__}"))
    mesh = mesh_of_rows("distribute_tensor", device_mesh, placements)
    if not tensor.shape:
        raise ArgumentError(message("distribute_tensor", "a tensor without dimensions has no rows"))
    at = Sharding(tensor.shape[0], mesh)
    with no_grad():
        given: Any = tensor.detach()
        if src_data_rank is not None and not given.is_meta and mesh.size() > 1:
            given = given.clone()
            for group in mesh.get_all_groups():
                broadcast(given, group=group, group_src=src_data_rank)
        rows = given[at.begin : at.end].clone()
    made = ShardedTensor(rows, at)
    return Parameter(made, tensor.requires_grad) if isinstance(tensor, Parameter) else made


__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh",
]  # fmt: skip

explain_all(globals())
