"""``torch.distributed.tensor``: tensors of which each rank has a part, made of whole ones.

`dtensor` `creation` what programs compute with     `propagation` `parts`   how functions of them are computed
`rules` `products` `layers`   how their results lie
`exchange` what goes between ranks       `parallel` `styles`   models that are divided
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.movement import broadcast
from genesis.distributed.placements import Partial, Placement, Replicate, Shard
from genesis.distributed.sharded import DTensor, ShardedTensor, Sharding, layout
from genesis.distributed.tensor.creation import distribute_module, empty, full, ones, rand, randn, zeros

_dtensor = Late("genesis.distributed.tensor.dtensor")


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """A tensor that all ranks of a mesh have, of which each keeps its part: a `DTensor`, which has the shape of the whole; of a
    parameter, this rank's rows.

    Args:
        device_mesh: the ranks, all of them by default
        placements: ``Shard(dim)`` or ``Replicate()`` for each dimension of the mesh, of a parameter ``Shard`` along the last one
            only; without any each rank has all of it
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
    mesh = mesh_of(group_of("distribute_tensor", None) if device_mesh is None else device_mesh)
    placements = [Replicate()] * mesh.ndim if placements is None else placements
    with no_grad():
        given: Any = tensor.detach()
        if src_data_rank is not None and not given.is_meta and mesh.size() > 1:
            given = given.clone()
            for group in mesh.get_all_groups():
                broadcast(given, group=group, group_src=src_data_rank)
        return (
            _parameter(tensor, given, mesh, placements)
            if isinstance(tensor, Parameter)
            else _parted(given, mesh, placements)
        )


def _parameter(tensor: Tensor, given: Any, mesh: DeviceMesh, placements: Any) -> Parameter:
    """This rank's rows of a parameter; one that all ranks have is what parameters are."""
    _, dim = layout("distribute_tensor", mesh, placements, tensor.ndim)
    if dim is not None:
        at = Sharding(tensor.shape[dim], mesh, dim)
        given = ShardedTensor(at.part_of(given).clone(), at)
    return Parameter(given, tensor.requires_grad)


def _parted(given: Any, mesh: DeviceMesh, placements: Any) -> Any:
    """A tensor that programs compute with."""
    lies, local = _dtensor.normal(placements, given.ndim), given
    for number, each in enumerate(lies):
        if each.is_partial():
            text = "a tensor is not made terms of a sum"
            raise UnsupportedError(message("distribute_tensor", text, hint="DTensor.from_local"))
        if isinstance(each, Shard):
            local = Sharding(local.shape[each.dim], mesh.get_group(number), each.dim).part_of(local)
    return _dtensor.Distributed.around(local.clone(), mesh, lies, given.shape)


__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip

explain_all(globals())
