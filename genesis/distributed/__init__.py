"""Several processes that compute together: ``torch.distributed`` on MPI.

`groups` `subgroups` `device_mesh` which processes there are      `environment` `installed`   what the launcher said, where MPI is
`collectives` `reductions` `movement` `messages` `objects`   what is called
`calls` `futures` agreement, waiting         `memory` `wire`   tensors as engines take them
`engine`     the protocol, a world of one   `mpi`    the engine of MPI
`nn`         collectives with gradients     `optim`  optimizers whose state is divided among ranks
`arrivals` `manager` processes that no launcher started     `stores` `tcp_store`   keys and values that they have in common
`sharded` `placements` `tensor`   tensors of which each rank has a part          `fsdp`   modules made of them
`pipelining`   models in stages

    import genesis.distributed as dist
    dist.init_process_group()              # alone, or what genesis run -n 2, mpiexec and srun start
    dist.all_reduce(x)                     # the sum of everybody's x
"""

from __future__ import annotations

from genesis.base.errors import DistributedError
from genesis.core.call.refusal import explain_all
from genesis.distributed import nn
from genesis.distributed.calls import Work
from genesis.distributed.collectives import barrier, monitored_barrier
from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.grad_bucket import GradBucket
from genesis.distributed.groups import (
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)
from genesis.distributed.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from genesis.distributed.movement import (
    all_gather,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    scatter,
)
from genesis.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from genesis.distributed.reductions import (
    ReduceOp,
    all_reduce,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_tensor,
)
from genesis.distributed.stores import FileStore, HashStore, PrefixStore, Store
from genesis.distributed.subgroups import new_subgroups, new_subgroups_by_enumeration
from genesis.distributed.tcp_store import TCPStore

DistError = DistBackendError = DistNetworkError = DistStoreError = DistributedError
is_ucc_available = is_xccl_available = is_gloo_available
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor

__all__ = [
    "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "GradBucket", "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_gather_single", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_device_mesh", "init_process_group", "irecv", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "nn", "recv", "recv_object_list", "reduce",
    "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list",
    "send", "send_object_list",
]  # fmt: skip

explain_all(globals())
