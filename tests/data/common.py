"""Datasets that several tests share; at module level, so that spawned workers can load them."""

from __future__ import annotations

import itertools

import genesis
from genesis.data import DataLoader, Dataset, IterableDataset, get_worker_info

WORKERS = [(0, None), (1, "thread"), (2, "thread"), (4, "thread"), (1, "fork"), (2, "fork"), (4, "fork")]


def make(dataset, workers, kind, **options):
    context = {} if kind is None else {"multiprocessing_context": kind}
    return DataLoader(dataset, num_workers=workers, **context, **options)


class Noisy(Dataset):
    """Example i: its number, and random numbers of it, more or less many."""

    def __init__(self, count=23):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        genesis.rand(i % 3)  # what an example draws must not matter for the next
        return i, genesis.randn(3), genesis.nn.functional.dropout(genesis.ones(2)), int(genesis.randint(1000, ()))


class NoisyStream(IterableDataset):
    """Examples i, each worker every n-th, with a random number that is drawn after the split."""

    def __init__(self, count=23):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in itertools.islice(range(self.count), first, None, step):
            yield i, genesis.randn(2)


def noisy_collate(batch):
    return genesis.data.default_collate(batch) + [genesis.rand(2)]


def plain(batch):
    """A batch as lists, to compare."""
    return [x.tolist() if isinstance(x, genesis.Tensor) else x for x in batch]
