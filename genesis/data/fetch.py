"""Loading one batch: what the calling thread, a worker thread and a worker process all do alike.

Every example has its own random numbers: those of a seed that belongs to the epoch, and of the example's position in
the epoch's order. So they do not depend on who loads it, on what was loaded before, or on the size of batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from genesis.core.graph.generator import SeededStream, mixed, seeded_stream
from genesis.data.collate import default_collate
from genesis.data.dataset import Subset, TensorDataset

# What an epoch draws besides examples, from seeds of their own; an example's numbers are of (the epoch's seed,
# position).
BATCHES, ORDER, WORKERS = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker must know about a loader."""

    dataset: Any
    stream: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    collate_fn: Callable[[Any], Any]
    worker_init_fn: Callable[[int], Any] | None
    num_workers: int


@dataclass(frozen=True, slots=True)
class Task:
    """One batch: its number in the epoch, and of which examples (of a stream: ``skip`` so many batches first)."""

    epoch: int
    seed: int
    number: int
    position: int = 0
    indices: Any = None
    skip: int = 0


@dataclass(slots=True)
class WorkerInfo:
    """Where this code runs: the number of the worker, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


worker_info: ContextVar[WorkerInfo | None] = ContextVar("genesis_worker_info", default=None)


def get_worker_info() -> WorkerInfo | None:
    """The worker that calls, or None outside of workers; a stream gives each worker its part by it.

    >>> import genesis
    >>> genesis.data.get_worker_info() is None
    True
    """
    return worker_info.get()


class End(Exception):  # noqa: N818 - of a stream
    """The stream of a worker has no more batches."""


class Stopped(BaseException):
    """The loader does not wait for this batch any more."""


class Fetcher:
    """Loads batches; one for each worker."""

    def __init__(self, job: Job, info: WorkerInfo | None = None) -> None:
        self.job, self.info = job, info
        self.dataset = job.dataset if info is None else info.dataset
        self.stream = SeededStream(0)
        self.stopped: Callable[[], bool] = lambda: False
        self.before_example: Callable[[int], object] | None = None  # called with the example's own seed
        self._epoch, self._count, self._first, self._step = -1, 0, 0, 1
        self._examples: Iterator[Any] = iter(())

    def __call__(self, task: Task) -> Any:
        """The batch of a task.

        Raises:
            End: the stream is at its end
        """
        before = seeded_stream.set(self.stream)
        try:
            return self._from_stream(task) if self.job.stream else self._by_number(task)
        finally:
            seeded_stream.reset(before)

    def _by_number(self, task: Task) -> Any:
        if not self.job.batched:
            self._move(task, task.position)
            example = self._guarded(lambda: self.dataset[task.indices], task.number, f"example {task.indices!r}")
            return self._collated(example, task)
        together = in_one_call(self.dataset, self.job.collate_fn)
        if together is None:
            return self._collated(self._each(task), task)
        self._move(task, task.position)
        examples = self._guarded(lambda: together(list(task.indices)), task.number, f"examples {_short(task.indices)}")
        return list(examples) if type(examples) is Columns else self._collated(examples, task)

    def _each(self, task: Task) -> list[Any]:
        dataset, examples = self.dataset, []
        for position, index in enumerate(task.indices, task.position):
            self._move(task, position)
            try:
                examples.append(dataset[index])
            except BaseException as error:
                self._note(error, task.number, f"example {index!r}")
                raise
        return examples

    def _from_stream(self, task: Task) -> Any:
        if self._epoch != task.epoch:
            self._begin(task)
        size = self.job.batch_size if self.job.batch_size is not None else 1
        batch = list(itertools.islice(self._examples, size))
        if not batch or (self.job.drop_last and len(batch) < size):
            raise End
        number = self._number()
        self._count += 1
        return self._collated(batch if self.job.batched else batch[0], task, number)

    def _number(self) -> int:
        """The number of a stream's batch, if all workers have as many."""
        return self._count * self._step + self._first

    def _begin(self, task: Task) -> None:
        info, self._epoch, self._count = self.info, task.epoch, task.skip
        self._first, self._step = (0, 1) if info is None else (info.id, info.num_workers)
        self._examples = self._run(task)
        for _ in itertools.islice(self._examples, task.skip * (self.job.batch_size or 1)):
            pass

    def _run(self, task: Task) -> Iterator[Any]:
        """The examples of a stream. The p-th one of worker i of n has the random numbers of position p * n + i."""
        self._move(task, self._first)
        examples = self._guarded(lambda: iter(self.dataset), self._number(), "the begin of the stream")
        for count in itertools.count():
            self._move(task, count * self._step + self._first)
            try:
                example = next(examples)
            except StopIteration:
                return
            except BaseException as error:
                self._note(error, self._number(), f"example {count} of the stream")
                raise
            yield example

    def _move(self, task: Task, position: int) -> None:
        if self.stopped():
            raise Stopped
        self.stream.move(task.seed, position)
        if self.before_example is not None:
            self.before_example(mixed(task.seed, position))

    def _collated(self, examples: Any, task: Task, number: int | None = None) -> Any:
        number = task.number if number is None else number
        self.stream.move(mixed(task.seed, BATCHES), number)
        return self._guarded(lambda: self.job.collate_fn(examples), number, "collate_fn")

    def _guarded(self, call: Callable[[], Any], number: int, what: str) -> Any:
        try:
            return call()
        except BaseException as error:
            self._note(error, number, what)
            raise

    def _note(self, error: BaseException, number: int, what: str) -> None:
        if not isinstance(error, Stopped):
            worker = "" if self.info is None else f", worker {self.info.id}"
            error.add_note(f"DataLoader: {what}, batch {number}{worker}")


class Columns(list[Any]):
    """A batch that needs no collating."""


def in_one_call(dataset: Any, collate_fn: Any = None) -> Callable[[list[Any]], Any] | None:
    """How to get several examples of a dataset at once, or None where they come one by one."""
    if type(dataset) is Subset:
        inner = in_one_call(dataset.dataset, collate_fn)
        return None if inner is None else lambda indices: inner([dataset.indices[i] for i in indices])
    if type(dataset) is TensorDataset and collate_fn is default_collate:
        return lambda indices: Columns(dataset[indices])  # one look-up in each tensor
    return getattr(dataset, "__getitems__", None)


def _short(indices: Any) -> str:
    indices = list(indices)
    return repr(indices) if len(indices) <= 4 else f"{indices[0]!r}, {indices[1]!r}, ... {indices[-1]!r}"
