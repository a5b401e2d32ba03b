"""Datasets: a length and examples by number."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from genesis.base.errors import ArgumentValueError, message
from genesis.core.tensor import Tensor
from genesis.ops.random import randperm


class Dataset:
    """Base class: subclasses define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base class of streams: subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class TensorDataset(Dataset):
    """Examples are rows of tensors of one length.

    Raises:
        ValueError: the lengths differ

    >>> import genesis
    >>> len(genesis.data.TensorDataset(genesis.zeros(5, 2), genesis.zeros(5)))
    5
    """

    def __init__(self, *tensors: Tensor) -> None:
        lengths = [len(t) for t in tensors]
        if not tensors or len(set(lengths)) > 1:
            raise ArgumentValueError(message("TensorDataset", f"tensors must have one length, got {lengths}"))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """Some examples of a dataset, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1] if self.cumulative_sizes else 0

    def __getitem__(self, index: int) -> Any:
        index = index + len(self) if index < 0 else index
        if not 0 <= index < len(self):
            raise IndexError(f"example {index} of {len(self)}")
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Disjoint random parts of a dataset, of given lengths or fractions.

    Raises:
        ValueError: the lengths do not add up to the dataset's

    >>> import genesis
    >>> [len(part) for part in genesis.data.random_split(range(10), [0.8, 0.2])]
    [8, 2]
    """
    count = len(dataset)
    sizes = [int(n) for n in lengths]
    if any(isinstance(n, float) for n in lengths) and sum(lengths) <= 1 + 1e-9:
        sizes = [int(count * n) for n in lengths]
        for i in range(count - sum(sizes) if abs(sum(lengths) - 1) < 1e-9 else 0):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count:
        raise ArgumentValueError(message("random_split", f"lengths {list(lengths)} do not add up to {count} examples"))
    order = randperm(count, generator=generator).tolist()
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
