"""Iterators of PyTorch's `DataLoader`, which libraries make over loaders of their own."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from typing import Any

from genesis import data
from genesis.pytorch.stand_ins.common import Values, values


class _DatasetKind(enum.IntEnum):
    """Whether samples are asked for by number, or come one after the other."""

    Map, Iterable = 0, 1


class _BaseDataLoaderIter:
    """The batches of a loader: of this package, or of any class with the attributes that PyTorch's iterator reads."""

    def __init__(self, loader: Any) -> None:
        self._batches = iter(loader) if isinstance(loader, data.DataLoader) else _batches(loader)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        return next(self._batches)


class _InfiniteConstantSampler(data.Sampler):
    """What PyTorch's loader has for the sampler of a dataset without numbers: None, again and again."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _batches(loader: Any) -> Iterator[Any]:
    dataset, collate = loader.dataset, loader.collate_fn
    if loader._dataset_kind == _DatasetKind.Map:
        for index in loader._index_sampler:
            yield collate([dataset[i] for i in index] if loader._auto_collation else dataset[index])
        return
    samples = iter(dataset)
    for index in loader._index_sampler:  # says how many samples a batch has, where it has several
        batch = (
            [sample for _, sample in zip(index, samples, strict=False)]
            if loader._auto_collation
            else next(samples, _END)
        )
        if batch is _END or batch == []:
            return
        yield collate(batch)


_END = object()


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches made by this process."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches of a loader that asks for workers; a loader that is not of this package has its batches made by this process."""


@values("torch.utils.data.dataloader")
def _dataloader() -> Values:
    kinds = (_DatasetKind, _BaseDataLoaderIter, _SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter)
    return {kind.__name__: kind for kind in (*kinds, _InfiniteConstantSampler)}
