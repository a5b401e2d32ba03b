"""Modules whose parameters are divided among ranks, under the names of ``torch.distributed.fsdp``.

`sharding`   `fully_shard`, and what it makes of a module     `policies`   what it is told
`group`      parameters that are whole at the same time       `units`      those that travel together
`saved`      what nodes keep of them                          `traced`     the same in compiled steps
"""

from __future__ import annotations

from genesis.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from genesis.distributed.fsdp.sharding import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
