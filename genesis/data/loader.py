"""The loader: batches of examples, in order, also from workers ahead of time."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import expect_function, explain_all
from genesis.core.graph.generator import Generator, mixed
from genesis.core.graph.tensor import wrap
from genesis.data.collate import default_collate, default_convert
from genesis.data.dataset import Dataset, IterableDataset
from genesis.data.fetch import WORKERS, Job
from genesis.data.iteration import Iteration, Progress
from genesis.data.processes import Processes, start_context
from genesis.data.sampler import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler, drawn_seed
from genesis.data.threads import Caller, Crew, Threads

T_co = TypeVar("T_co", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Batches of a dataset.

    The same seed gives the same batches with any number of workers of any kind: in datasets, transforms and
    ``collate_fn``, Genesis's default generator gives numbers that depend on the epoch's seed and the example's position
    in the epoch. The epoch's seed is drawn from ``generator``, or from the default one, when an iterator is made.

    Args:
        batch_size: examples in a batch (None: examples themselves); shuffle: in random order
        sampler, batch_sampler: other orders; drop_last: leave out a last batch that is not full
        collate_fn: from a list of examples to a batch
        num_workers: how many workers load ahead, ``prefetch_factor`` batches each (2 unless given)
        multiprocessing_context: "thread" for threads; otherwise workers are processes, and this is how they are
            started ("fork", "forkserver", "spawn" or a context; "fork" on Linux unless given)
        worker_init_fn: called in each worker with its number; persistent_workers: keep them from epoch to epoch
        timeout: seconds to wait for a batch of a worker (0: for ever); in_order: False for the first that is ready
        generator: where the seeds of epochs and of shuffling come from
        pin_memory: bring batches into memory that a GPU copies from while the program goes on, where there is a GPU
        pin_memory_device: accepted, without an effect

    Raises:
        ValueError: options that exclude each other, or values out of range

    >>> import genesis
    >>> data = genesis.data.TensorDataset(genesis.arange(5))
    >>> [len(x) for (x,) in genesis.data.DataLoader(data, batch_size=2)]
    [2, 2, 1]
    """

    _initialized = False

    def __init__(self, dataset: Dataset[T_co], batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None,
                 multiprocessing_context: Any = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True, **unknown: Any) -> None:  # fmt: skip
        if unknown:
            raise ArgumentError(message("DataLoader", f"unknown argument {next(iter(unknown))!r}"))
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.stream = isinstance(dataset, IterableDataset)
        _check_orders(dataset, self.stream, shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise _wrong("sampler and shuffle exclude each other")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise _wrong("batch_sampler excludes batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise _wrong("batch_size=None, which makes no batches, excludes drop_last")
        self.dataset, self.num_workers, self.timeout, self.in_order = dataset, num_workers, timeout, in_order
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.generator, self.drop_last = generator, drop_last
        self.batch_size = None if batch_sampler is not None else batch_size
        if sampler is None and not self.stream:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            several = sampler.shards_here if isinstance(sampler, DistributedSampler) else 1
            batch_sampler = BatchSampler(sampler, batch_size * several if several > 1 else batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        if collate_fn is not None:
            expect_function("DataLoader", "collate_fn", collate_fn)
        self.collate_fn = collate_fn or (default_collate if self.batched else default_convert)
        self._crew: Crew | None = None  # persistent workers
        self._progress: Progress | None = None
        self._resume: dict[str, Any] | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise _wrong(f"{name} cannot be changed any more", hint="make another DataLoader")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self._context = _checked_context(context, self.num_workers)

    @property
    def batched(self) -> bool:
        return self.batch_sampler is not None

    @property
    def index_sampler(self) -> Any:
        return self.batch_sampler if self.batched else self.sampler

    @property
    def stateful_sampler(self) -> Any:
        """The sampler that knows its own state (``state_dict``, ``load_state_dict``), if one does."""
        known = (s for s in (self.batch_sampler, self.sampler) if callable(getattr(s, "load_state_dict", None)))
        return next(known, None)

    def __len__(self) -> int:
        if not self.stream:
            return len(self.index_sampler)
        if not hasattr(self.dataset, "__len__"):
            what = f"{type(self.dataset).__name__} is a stream, its length is not known"
            raise ArgumentError(message("DataLoader", what, hint="iterate over it"))
        count, size = len(self.dataset), self.batch_size
        return count if size is None else count // size if self.drop_last else -(-count // size)

    def __iter__(self) -> Iteration:
        given, self._resume = self._resume, None
        if given is not None and given["finished"]:
            given = None
        if given is None or self.generator is not None:
            self._origin = self._generator_states()
            seed = drawn_seed(self.generator) >> 1  # fits into a signed 64-bit integer
        else:
            self._origin, seed = given["generators"], given["seed"]
        self._progress = Progress(seed, max(1, self.num_workers), given)
        return Iteration(self, self._workers(seed), self._progress)

    def _get_iterator(self) -> Iteration:
        """What PyTorch calls it, for loaders with an ``__iter__`` of their own."""
        return DataLoader.__iter__(self)

    def _workers(self, seed: int) -> Crew:
        if self._crew is not None:
            return self._crew
        job = Job(self.dataset, self.stream, self.batched, self.batch_size, self.drop_last, self.collate_fn,
                  self.worker_init_fn, self.num_workers)  # fmt: skip
        crew = self._new_crew(job, mixed(seed, WORKERS) >> 2)
        if self.persistent_workers:
            self._crew = crew
            weakref.finalize(self, crew.close).atexit = False
        return crew

    def _new_crew(self, job: Job, seed: int) -> Crew:
        if not self.num_workers:
            return Caller(job)
        # a worker process may not have children: its own loaders have threads, which give the same batches
        if self._context == "thread" or multiprocessing.current_process().daemon:
            return Threads(job, seed)
        return Processes(job, seed, start_context(self._context))

    def end_workers(self) -> None:
        """End persistent workers now, not when the loader is collected."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close(at_once=True)

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Where the last iterator is, of plain numbers and lists, for `load_state_dict`.

        It also has the states of generators that were given to the loader and its sampler. Epochs that draw their seed
        from the default generator need its state as well: `genesis.get_rng_state`.
        """
        if self._resume is not None:
            return dict(self._resume)
        if self._progress is None or self._progress.finished:
            return {"finished": True, "workers": self.num_workers, "generators": self._generator_states()}
        return self._progress.state() | {"workers": self.num_workers, "generators": self._origin}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next iterator go on where the state was taken, with any number of workers.

        The batches that come are those that would have come. A stream, and a sampler without a ``state_dict`` that is
        not Genesis's own, are run up to the place.

        Raises:
            ValueError: not the state of such a loader; a stream's with another number of workers
        """
        if not isinstance(state_dict, dict) or not {"finished", "workers", "generators"} <= set(state_dict):
            raise ArgumentValueError(message("load_state_dict", "this is not the state of a DataLoader"))
        state = dict(state_dict)
        if self.stream and not state["finished"] and max(1, state["workers"]) != max(1, self.num_workers):
            what = f"a stream is split among workers: the state is of {state['workers']}, the loader has {self.num_workers}"
            raise ArgumentValueError(message("load_state_dict", what, hint=f"num_workers={state['workers']}"))
        for generator, saved in zip(self._generators(), state["generators"], strict=True):
            if generator is not None and saved is not None:
                generator.set_state(wrap(np.array(saved, dtype=np.uint8)))
        self._resume = state

    def _generators(self) -> list[Generator | None]:
        """Generators that were given to the loader and its samplers."""
        generators = (self.generator, *(getattr(s, "generator", None) for s in (self.sampler, self.batch_sampler)))
        return [g if isinstance(g, Generator) else None for g in generators]

    def _generator_states(self) -> list[Any]:
        return [None if g is None else g.get_state().tolist() for g in self._generators()]


def _wrong(what: str, hint: str | None = None) -> ArgumentValueError:
    return ArgumentValueError(message("DataLoader", what, hint=hint))


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if not isinstance(num_workers, int) or isinstance(num_workers, bool):
        raise ArgumentError(message("DataLoader", f"num_workers must be an integer, got {num_workers!r}"))
    if num_workers < 0:
        raise _wrong(f"num_workers must not be negative, got {num_workers}", hint="num_workers=0 loads without workers")
    if not timeout >= 0:
        raise _wrong(f"timeout must not be negative, got {timeout}")
    if prefetch_factor is not None:
        if num_workers == 0:
            raise _wrong("prefetch_factor needs workers", hint="num_workers=1, or prefetch_factor=None")
        if not isinstance(prefetch_factor, int) or isinstance(prefetch_factor, bool) or prefetch_factor < 1:
            raise _wrong(f"prefetch_factor must be a positive integer, got {prefetch_factor!r}")
    if num_workers == 0 and persistent_workers:
        raise _wrong("persistent_workers needs workers", hint="num_workers=1")
    if num_workers == 0 and timeout:
        raise _wrong("timeout needs workers: without them a batch cannot be left waiting", hint="num_workers=1")


def _check_orders(dataset: Any, stream: bool, shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items() if stream else ():
        if value is not None:
            raise _wrong(f"an IterableDataset has its own order, got {name}={value!r}")


def _checked_context(context: Any, num_workers: int) -> Any:
    if context is None:
        return None
    if num_workers == 0:
        raise _wrong("multiprocessing_context needs workers", hint="num_workers=1")
    known = [*multiprocessing.get_all_start_methods(), "thread"]
    if isinstance(context, str):
        if context not in known:
            raise _wrong(f"multiprocessing_context must be one of {known}, got {context!r}")
        return context
    if not isinstance(context, multiprocessing.context.BaseContext):
        what = f"multiprocessing_context must be a context or one of {known}, got {context!r}"
        raise ArgumentError(message("DataLoader", what))
    return context


explain_all(globals(), "DataLoader", strict=False)
