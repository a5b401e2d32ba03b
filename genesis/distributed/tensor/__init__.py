"""``torch.distributed.tensor``: tensors of which each rank has a part, made of whole ones.

`dtensor` `creation` what programs compute with     `propagation` `parts`   how functions of them are computed
`rules` `products` `layers`   how their results lie
`exchange` what goes between ranks       `parallel` `styles`   models that are divided
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.base.late import Late
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import no_grad
from genesis.core.graph.parameter import Parameter
from genesis.core.graph.tensor import Tensor
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.movement import broadcast
from genesis.distributed.placements import Partial, Placement, Replicate, Shard
from genesis.distributed.sharded import DTensor, Sharding
from genesis.distributed.tensor.creation import distribute_module, empty, full, ones, rand, randn, zeros

_dtensor = Late("genesis.distributed.tensor.dtensor")


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """A tensor that all ranks of a mesh have, of which each keeps its part: a `DTensor`, which has the shape of the whole. Of a
    parameter a parameter; one that all have is as it was.

    Args:
        device_mesh: the ranks, all of them by default
        placements: ``Shard(dim)`` or ``Replicate()`` for each dimension of the mesh; without any each rank has all of it
        src_data_rank: the rank of each line of the mesh whose values count; None: all have the same

    Raises:
        TypeError: not a tensor
        ValueError: another number of placements than the mesh has dimensions; a `DTensor` that lies otherwise
        NotImplementedError: terms of a sum, a dimension that is divided twice

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
    if len(placements) != mesh.ndim:
        text = f"placements are {list(placements)}, the mesh has {mesh.ndim} dimensions"
        raise ArgumentValueError(message("distribute_tensor", text, hint="one for each"))
    if tensor._layout is not None:
        if tensor._layout.mesh == mesh and tensor._layout.placements == _dtensor.normal(placements, tensor.ndim):
            return tensor
        text = f"the tensor lies as {list(tensor._layout.placements)} already"
        raise ArgumentValueError(message("distribute_tensor", text, hint="x.redistribute(placements=...)"))
    with no_grad():
        given: Any = tensor.detach()
        if src_data_rank is not None and not given.is_meta and mesh.size() > 1:
            given = given.clone()
            for group in mesh.get_all_groups():
                broadcast(given, group=group, group_src=src_data_rank)
        if not isinstance(tensor, Parameter):
            return _parted(given, mesh, placements)
        same = all([each.is_replicate() for each in placements])
        return Parameter(given if same else _parted(given, mesh, placements), tensor.requires_grad)


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
