"""Orders in which examples are taken.

The orders here are drawn from a seed that is taken from the generator when an order begins. So they do not depend on
what else is drawn meanwhile, and can begin anywhere (`begin_at`): that is how a loader goes on in the middle of an
epoch.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.base.late import Late
from genesis.core.call.refusal import described, explain_all
from genesis.core.graph.generator import Generator, default_generator, mixed
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.outside import tensor
from genesis.ops.creation.random import multinomial

T_co = TypeVar("T_co", covariant=True)
_processes, _environment = Late("genesis.distributed"), Late("genesis.distributed.environment")
_CHUNK = 8192  # numbers that are drawn, or turned into Python integers, at once


class Sampler(Generic[T_co]):
    """Base class: subclasses define ``__iter__`` over the numbers of examples."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} defines no __iter__")


class SeekableSampler(Sampler[T_co]):
    """A sampler whose order can begin anywhere."""

    def begin_at(self, position: int) -> Iterator[T_co]:
        """The order without its first ``position`` members."""
        raise NotImplementedError(f"{type(self).__name__} defines no begin_at")

    def __iter__(self) -> Iterator[T_co]:
        return self.begin_at(0)


def begin_at(sampler: Iterable[Any], position: int) -> Iterator[Any]:
    """An order without its first members, which are not drawn where the sampler can do without."""
    if isinstance(sampler, SeekableSampler) and type(sampler).__iter__ is SeekableSampler.__iter__:
        return sampler.begin_at(position)
    return itertools.islice(iter(sampler), position, None) if position else iter(sampler)


def _sized(name: str, value: Any, what: str = "data_source") -> Any:
    if not isinstance(value, Sized):
        raise ArgumentError(message(name, f"{what} must have a length, got {described(value)}"))
    return value


def drawn_seed(generator: Any) -> int:
    """A seed from a generator, or from the default one."""
    if generator is not None and not isinstance(generator, Generator):
        raise ArgumentError(message("generator", f"expected a genesis.Generator, got {type(generator).__name__}"))
    return int((default_generator if generator is None else generator).words(1)[0])


def _permutation(count: int, seed: int, begin: int = 0, end: int | None = None) -> Iterator[int]:
    order = np.argsort(Generator().manual_seed(seed).words(count), kind="stable")[begin:end]
    for start in range(0, len(order), _CHUNK):
        yield from order[start : start + _CHUNK].tolist()


class SequentialSampler(SeekableSampler[int]):
    """The examples in their own order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = _sized("SequentialSampler", data_source)

    def begin_at(self, position: int) -> Iterator[int]:
        return iter(range(position, len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(SeekableSampler[int]):
    """The examples in random order, another one each time; from ``generator`` if given.

    Args:
        replacement: each example is drawn from all; otherwise from those that are left, until there are none
        num_samples: how many (the dataset's length unless given); they are drawn as they are needed

    Raises:
        TypeError: ``replacement`` is not a bool
        ValueError: ``num_samples`` is not a positive integer

    >>> import genesis, itertools
    >>> many = genesis.data.RandomSampler(range(5), replacement=True, num_samples=10**10)
    >>> len(list(itertools.islice(many, 3)))
    3
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Any = None) -> None:  # fmt: skip
        if not isinstance(replacement, bool):
            raise ArgumentError(message("RandomSampler", f"replacement must be a bool, got {replacement!r}"))
        self.data_source, self.replacement, self.generator = (
            _sized("RandomSampler", data_source),
            replacement,
            generator,
        )
        self._num_samples = num_samples
        if num_samples is not None:
            _check_count("RandomSampler", num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def begin_at(self, position: int) -> Iterator[int]:
        draw = self._with_replacement if self.replacement else self._rounds
        return draw(drawn_seed(self.generator), len(self.data_source), position, self.num_samples)

    def _with_replacement(self, seed: int, count: int, position: int, end: int) -> Iterator[int]:
        while position < end:
            chunk, first = divmod(position, _CHUNK)
            numbers = Generator().manual_seed(mixed(seed, chunk)).integers(0, count, (_CHUNK,))
            yield from numbers[first : first + end - position].tolist()
            position += _CHUNK - first

    def _rounds(self, seed: int, count: int, position: int, end: int) -> Iterator[int]:
        while count and position < end:
            number, first = divmod(position, count)
            yield from _permutation(count, mixed(seed, number), first, first + end - position)
            position += count - first

    def __len__(self) -> int:
        return self.num_samples


def _check_count(name: str, num_samples: Any) -> None:
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
        raise ArgumentValueError(message(name, f"num_samples must be a positive integer, got {num_samples!r}"))


class SubsetRandomSampler(SeekableSampler[Any]):
    """The given numbers in random order."""

    def __init__(self, indices: Sequence[Any], generator: Any = None) -> None:
        if isinstance(indices, Mapping | Set):
            raise ArgumentError(
                message(
                    "SubsetRandomSampler",
                    f"expected a sequence of indices, got {type(indices).__name__}",
                    hint="list(indices)",
                )
            )
        self.indices, self.generator = _sized("SubsetRandomSampler", indices, "indices"), generator

    def begin_at(self, position: int) -> Iterator[Any]:
        order = _permutation(len(self.indices), drawn_seed(self.generator), position)
        return (self.indices[i] for i in order)

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(SeekableSampler[int]):
    """Examples drawn with probabilities proportional to weights.

    Raises:
        ValueError: weights that are not one-dimensional, ``num_samples`` that is not a positive integer
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        _check_count("WeightedRandomSampler", num_samples)
        if not isinstance(replacement, bool):
            raise ArgumentValueError(
                message("WeightedRandomSampler", f"replacement must be a bool, got {replacement!r}")
            )
        self.weights = (weights.detach() if isinstance(weights, Tensor) else tensor(np.asarray(weights))).double()
        if self.weights.ndim != 1:
            shape = list(self.weights.shape)
            raise ArgumentValueError(message("WeightedRandomSampler", f"weights must be one-dimensional, got {shape}"))
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def begin_at(self, position: int) -> Iterator[int]:
        stream = Generator().manual_seed(drawn_seed(self.generator))
        order = multinomial(self.weights, self.num_samples, self.replacement, generator=stream)
        return iter(order[position:].tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(SeekableSampler[list[Any]]):
    """Lists of ``batch_size`` numbers from another sampler; the last may be shorter, unless ``drop_last``.

    >>> from genesis.data import BatchSampler
    >>> list(BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ArgumentValueError(
                message("BatchSampler", f"batch_size must be a positive integer, got {batch_size!r}")
            )
        if not isinstance(drop_last, bool):
            raise ArgumentValueError(message("BatchSampler", f"drop_last must be a bool, got {drop_last!r}"))
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def begin_at(self, position: int) -> Iterator[list[Any]]:
        return self._batches(begin_at(self.sampler, position * self.batch_size))

    def _batches(self, numbers: Iterator[Any]) -> Iterator[list[Any]]:
        while batch := list(itertools.islice(numbers, min(self.batch_size, sys.maxsize))):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler[int]):
    """The numbers of one of several processes, which share a dataset: each gets as many, some twice where they do not
    divide.

    Args:
        num_replicas, rank: how many processes there are, and which this is; as `genesis.distributed` says, where they
            are not given
        seed: of the order, the same in all processes; drop_last: leave out what does not divide
        shards: ours: give each process the examples of its part of so many processes, and batches that are as many times
            larger, so that any number of processes takes the steps of so many. What ``GENESIS_SHARDS`` says in the
            environment, where it is not given; see `genesis.nn.parallel.DistributedDataParallel`

    Raises:
        ValueError: a rank that is not there; shards that do not divide among the processes

    >>> from genesis.data import DistributedSampler
    >>> list(DistributedSampler(range(5), 2, 1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True, seed: int = 0,
        drop_last: bool = False, *, shards: int | None = None,
    ) -> None:  # fmt: skip
        name = "DistributedSampler"
        num_replicas = _processes.get_world_size() if num_replicas is None else num_replicas
        rank = _processes.get_rank() if rank is None else rank
        for argument, value in (("num_replicas", num_replicas), ("rank", rank)):
            if not isinstance(value, int):
                raise ArgumentError(message(name, f"{argument} must be an int, got {described(value)}"))
        if not 0 <= rank < num_replicas:
            raise ArgumentValueError(message(name, f"rank must be from 0 to {num_replicas - 1}, got {rank}"))
        self.dataset, self.num_replicas, self.rank, self.epoch = _sized(name, dataset, "dataset"), num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        shards = _environment.logical_ranks() if shards is None else shards
        shards = num_replicas if shards is None else shards
        if not isinstance(shards, int) or shards < 1 or shards % num_replicas:
            text = f"{shards!r} shards do not divide among {num_replicas} ranks"
            raise ArgumentValueError(message(name, text, hint="as many for each rank"))
        self.shards_here, count = shards // num_replicas, len(dataset)
        self.num_samples = (count // shards if drop_last else -(-count // shards)) * self.shards_here
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order = list(_permutation(count, self.seed + self.epoch)) if self.shuffle else list(range(count))
        if self.total_size > count:
            order = list(itertools.islice(itertools.cycle(order), self.total_size)) if order else []
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order: call it before each epoch."""
        self.epoch = epoch


explain_all(globals(), strict=False)
