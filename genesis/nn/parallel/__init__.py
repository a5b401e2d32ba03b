"""Modules that are trained by several devices or processes.

`data_parallel`   several devices of one process, of which there is one here     `distributed`   several processes
`buckets`         their gradients, combined while backward still runs
`shards`          batches in a fixed number of parts, whatever the number of processes
"""

from __future__ import annotations

from genesis.nn.parallel.data_parallel import DataParallel, data_parallel
from genesis.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
