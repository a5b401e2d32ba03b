"""Data in batches: datasets, samplers and the loader.

`dataset`   things with a length and examples     `sampler`    orders of examples
`loader`    batches of them                       `collate`    from examples to a batch
`iteration` the loader's iterator, its progress   `fetch`      loading one batch, with random numbers of its own
`threads`   workers in this process               `processes`  workers beside it
`transfer`  batches through shared memory
"""

from __future__ import annotations

from genesis.data.collate import default_collate, default_collate_fn_map, default_convert
from genesis.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from genesis.data.fetch import WorkerInfo, get_worker_info
from genesis.data.loader import DataLoader
from genesis.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "WorkerInfo", "default_collate", "default_collate_fn_map", "default_convert",
    "get_worker_info", "random_split",
]  # fmt: skip
