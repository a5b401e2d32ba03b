"""Modules that are trained by several devices or processes.

`data_parallel`   several GPUs of one process     `scattering`   what is divided among them     `distributed`   several processes
`buckets`         their gradients, combined while backward still runs
`shards`          batches in a fixed number of parts, whatever the number of processes
"""

from __future__ import annotations

from genesis.nn.parallel.data_parallel import DataParallel, data_parallel
from genesis.nn.parallel.distributed import DistributedDataParallel
from genesis.nn.parallel.scattering import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]
