"""Data in batches: datasets, samplers and the loader.

`dataset`   things with a length and examples     `sampler`   orders of examples     `loader`   batches of them
"""

from __future__ import annotations

from genesis.data.dataset import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from genesis.data.loader import DataLoader, default_collate
from genesis.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "Subset",
    "TensorDataset", "WeightedRandomSampler", "default_collate", "random_split",
]  # fmt: skip
