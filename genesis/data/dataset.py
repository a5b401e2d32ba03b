"""Datasets: a length and examples by number, or a stream of examples."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.random import randperm

T_co = TypeVar("T_co", covariant=True)


class DatasetError(ArgumentValueError, AssertionError):
    """Datasets that do not fit together (PyTorch raises AssertionError)."""


class Dataset(Generic[T_co]):
    """Base class: subclasses define ``__getitem__`` and ``__len__``.

    A subclass may define ``__getitems__(indices)``, which returns a list of examples; the loader then asks for all of
    a batch in one call.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} defines no __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base class of streams: subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
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
            raise DatasetError(message("TensorDataset", f"tensors must have one length, got {lengths}"))
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Examples are tuples (or dictionaries, of keywords) of the examples of several datasets.

    Raises:
        ValueError: the lengths differ, or no dataset is given

    >>> import genesis
    >>> genesis.data.StackDataset(x=[1, 2], y="ab")[1]
    {'x': 2, 'y': 'b'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            what = "datasets are given by position and by keyword" if args else "no dataset is given"
            raise ArgumentValueError(message("StackDataset", what, hint="StackDataset(a, b) or StackDataset(x=a, y=b)"))
        self.datasets: tuple[Any, ...] | dict[str, Any] = args or kwargs
        lengths = [len(d) for d in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ArgumentValueError(message("StackDataset", f"datasets must have one length, got {lengths}"))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple([d[index] for d in self.datasets])

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0])


class Subset(Dataset[Any]):
    """Some examples of a dataset, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        if not hasattr(type(dataset), "__getitem__"):
            raise ArgumentError(message("Subset", f"a dataset has examples by number, {described(dataset)} has not"))
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other.

    Raises:
        ValueError: there is none, or one is a stream
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise DatasetError(message("ConcatDataset", "no dataset is given"))
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise DatasetError(message("ConcatDataset", f"{type(d).__name__} is a stream", hint="ChainDataset"))
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        index = index + len(self) if index < 0 else index
        if not 0 <= index < len(self):
            raise IndexError(f"example {index} of {len(self)}")
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other.

    Raises:
        ValueError: one of them is not a stream
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise DatasetError(message("ChainDataset", f"{type(d).__name__} is not an IterableDataset",
                                           hint="ConcatDataset"))  # fmt: skip
            yield d

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self._streams())

    def __len__(self) -> int:
        return sum(len(d) for d in self._streams())


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Disjoint random parts of a dataset, of given lengths, or of fractions that add up to 1.

    Of fractions, what is left over by rounding down goes one by one to the first parts.

    Raises:
        ValueError: the lengths do not add up to the dataset's, or a fraction is not between 0 and 1

    >>> import genesis
    >>> [len(part) for part in genesis.data.random_split(range(10), [0.8, 0.2])]
    [8, 2]
    """
    count = len(dataset)
    sizes: list[Any] = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 + 1e-9:
        for i, n in enumerate(lengths):
            if not 0 <= n <= 1:
                raise ArgumentValueError(message("random_split", f"fraction {i} must be between 0 and 1, got {n}"))
        sizes = [math.floor(count * n) for n in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count or any(n != int(n) or n < 0 for n in sizes):
        raise ArgumentValueError(message("random_split", f"lengths {list(lengths)} do not add up to {count} examples"))
    order = randperm(count, generator=generator).tolist()
    sizes = [int(n) for n in sizes]
    return [Subset(dataset, order[end - n : end]) for n, end in zip(sizes, itertools.accumulate(sizes), strict=True)]


explain_all(globals())
