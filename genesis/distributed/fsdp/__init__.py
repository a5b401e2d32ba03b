"""Modules whose parameters are divided among ranks, under the names of ``torch.distributed.fsdp``.

`sharding`   `fully_shard`, and what it makes of a module     `policies`   what it is told
`group`      parameters that are whole at the same time       `units`      those that travel together
`saved`      what nodes keep of them                          `traced`     the same in compiled steps
`wrapper`    `FullyShardedDataParallel`, a module around it   `wrap`       which modules inside are sharded
"""

from __future__ import annotations

from genesis.distributed.fsdp import wrap
from genesis.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from genesis.distributed.fsdp.sharding import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from genesis.distributed.fsdp.wrapper import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel",
    "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictType",
    "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "wrap",
]  # fmt: skip
