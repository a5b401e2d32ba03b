"""The loader: batches of examples, in order, also from worker threads."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.tensor import Tensor, wrap
from genesis.data.dataset import IterableDataset, TensorDataset
from genesis.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from genesis.ops.create import tensor
from genesis.ops.join import stack


def default_collate(batch: list[Any]) -> Any:
    """Examples to a batch: tensors and arrays stacked, numbers as tensors, containers member by member.

    >>> import genesis
    >>> genesis.data.default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=genesis.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray):
        return wrap(np.stack(batch))
    if isinstance(first, bool | int | np.number):
        return tensor(np.asarray(batch))
    if isinstance(first, float):
        return tensor(batch, dtype="float64")
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in zip(*batch, strict=True)))
    if isinstance(first, list | tuple):
        if any(len(item) != len(first) for item in batch):
            raise ArgumentValueError(message("default_collate", "examples of one batch must have one length"))
        return [default_collate(list(part)) for part in zip(*batch, strict=True)]
    raise ArgumentError(message("default_collate", f"cannot batch {type(first).__name__}", hint="pass collate_fn=..."))


class DataLoader:
    """Batches of a dataset.

    Args:
        batch_size: examples in a batch (None: examples themselves); shuffle: in random order, from ``generator`` if given
        sampler, batch_sampler: other orders; drop_last: leave out a last batch that is not full
        collate_fn: from a list of examples to a batch; num_workers: threads that load ahead, ``prefetch_factor`` batches each

    Raises:
        ValueError: options that exclude each other

    >>> import genesis
    >>> data = genesis.data.TensorDataset(genesis.arange(5))
    >>> [len(x) for (x,) in genesis.data.DataLoader(data, batch_size=2)]
    [2, 2, 1]
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
                 num_workers: int = 0, collate_fn: Callable[[list[Any]], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, generator: Any = None, prefetch_factor: int = 2, **unsupported: Any) -> None:  # fmt: skip
        if unsupported:
            raise ArgumentError(message("DataLoader", f"unknown argument {next(iter(unsupported))!r}"))
        if num_workers < 0:
            raise ArgumentValueError(message("DataLoader", f"num_workers must not be negative, got {num_workers}"))
        if sampler is not None and shuffle:
            raise ArgumentValueError(message("DataLoader", "sampler and shuffle exclude each other"))
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ArgumentValueError(message("DataLoader", "batch_sampler excludes batch_size, shuffle, sampler and drop_last"))
        self.dataset, self.num_workers, self.prefetch_factor = dataset, num_workers, prefetch_factor
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.collate_fn = collate_fn or (default_collate if batch_size is not None or batch_sampler is not None else lambda x: x)
        self.stream = isinstance(dataset, IterableDataset)
        if self.stream:
            if shuffle or sampler is not None or batch_sampler is not None:
                raise ArgumentValueError(message("DataLoader", "an IterableDataset has its own order"))
            self.sampler = self.batch_sampler = None
            return
        self.sampler = sampler if sampler is not None else RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler

    def __len__(self) -> int:
        if self.stream:
            raise ArgumentError(message("DataLoader", f"{type(self.dataset).__name__} is a stream, its length is not known", hint="iterate over it"))
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]

    def _load(self, indices: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[indices])
        if type(self.dataset) is TensorDataset and self.collate_fn is default_collate:
            return list(self.dataset[list(indices)])  # the whole batch in one look-up
        return self.collate_fn([self.dataset[i] for i in indices])

    def __iter__(self) -> Iterator[Any]:
        if self.stream:
            return self._from_stream()
        order = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]
        return self._ahead(order) if self.num_workers else map(self._load, order)

    def _from_stream(self) -> Iterator[Any]:
        examples = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, examples)
            return
        while batch := list(itertools.islice(examples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def _ahead(self, order: Iterator[Any]) -> Iterator[Any]:
        """Batches loaded by threads, given out in order; an exception is raised where its batch would have come."""
        with ThreadPoolExecutor(self.num_workers) as pool:
            waiting: deque[Future[Any]] = deque()
            for indices in itertools.islice(order, self.num_workers * self.prefetch_factor):
                waiting.append(pool.submit(self._load, indices))
            try:
                while waiting:
                    batch = waiting.popleft().result()
                    for indices in itertools.islice(order, 1):
                        waiting.append(pool.submit(self._load, indices))
                    yield batch
            finally:
                for future in waiting:
                    future.cancel()
