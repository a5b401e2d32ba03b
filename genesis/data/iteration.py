"""The iterator of a loader: it hands out tasks, puts results in order, and knows how far it is."""

from __future__ import annotations

import atexit
import copy
import itertools
import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from genesis.base.device import memory_named
from genesis.base.errors import ArgumentValueError, WorkerError, message
from genesis.base.pytree import is_container, tree_map
from genesis.core.graph.generator import SeededStream, mixed, seeded_stream
from genesis.data.fetch import ORDER, End, Task
from genesis.data.sampler import begin_at
from genesis.data.threads import Crew, Failure

if TYPE_CHECKING:
    from genesis.data.loader import DataLoader

_EPOCHS = itertools.count()
_CREWS: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_crews() -> None:
    for crew in list(_CREWS):
        crew.close(at_once=True)


def pinned(batch: Any) -> Any:
    """A batch whose tensors, and whatever else has a ``pin_memory``, lie in memory that a GPU copies from while the program
    goes on; the batch itself where there is no GPU.
    """
    return batch if memory_named("cuda") is None else _pinned(batch)


def _pinned(value: Any) -> Any:
    if callable(getattr(value, "pin_memory", None)):
        return value.pin_memory()
    if isinstance(value, list):  # also one with names for its items
        out = copy.copy(value)
        out[:] = [_pinned(item) for item in value]
        return out
    return tree_map(_pinned, value) if is_container(type(value)) else value


class Progress:
    """How far an epoch is for the caller, whatever was loaded ahead."""

    def __init__(self, seed: int, workers: int, given: dict[str, Any] | None = None) -> None:
        given = given or {}
        self.seed, self.finished = seed, bool(given.get("finished", False))
        self.batches, self.examples = given.get("batches", 0), given.get("examples", 0)
        self.order = given.get("order")  # of a sampler with a state_dict
        self.counts, self.turn = list(given.get("counts") or [0] * workers), given.get("turn", 0)  # of a stream
        self.early: set[int] = set()  # numbers of batches that were given out before their turn (in_order=False)

    def count(self, pending: Pending, stream: bool) -> None:
        if stream:
            self.counts[pending.worker] += 1
            self.turn, self.batches = (pending.worker + 1) % len(self.counts), self.batches + 1
            return
        self.early.add(pending.number)
        while self.batches in self.early:
            self.early.remove(self.batches)
            self.batches += 1
        self.examples, self.order = pending.end, pending.order

    def state(self) -> dict[str, Any]:
        if self.early:
            raise ArgumentValueError(message("state_dict", "batches were given out of order", hint="in_order=True"))
        names = ("seed", "finished", "batches", "examples", "order", "counts", "turn")
        return {name: list(value) if isinstance(value := getattr(self, name), list) else value for name in names}


class Pending:
    """A batch that was asked for: its number and worker, where the next one begins, the sampler's state after it."""

    __slots__ = ("end", "number", "order", "worker")

    def __init__(self, number: int, worker: int, end: int, order: Any) -> None:
        self.number, self.worker, self.end, self.order = number, worker, end, order


class Iteration:
    """One epoch of a loader, from wherever its progress is."""

    def __init__(self, loader: DataLoader, crew: Crew, progress: Progress) -> None:
        self.loader, self.crew, self.progress, self.epoch = loader, crew, progress, next(_EPOCHS)
        self.workers, crew.epoch = loader.num_workers, self.epoch
        self.pending: deque[Pending] = deque()
        self.results: dict[int, Any] = {}
        self.ended: set[int] = set()  # workers whose part of a stream is at its end
        self.skips, self.turn = list(progress.counts), progress.turn
        self.number, self.position = progress.batches, progress.examples
        _CREWS.add(crew)
        self.closing = None if loader.persistent_workers else weakref.finalize(self, crew.close)
        if self.closing is not None:
            self.closing.atexit = False
        try:
            self.order_stream = SeededStream(mixed(progress.seed, ORDER))
            self.order = iter(()) if loader.stream else self._drawing(self._begin_order)
            self._fill()  # the first batch's numbers now, also without workers: nobody else draws in between
        except BaseException:
            self.shut(at_once=True)
            raise

    def _drawing(self, call: Any) -> Any:
        """Call with the default generator giving the numbers of the epoch's order."""
        before = seeded_stream.set(self.order_stream)
        try:
            return call()
        finally:
            seeded_stream.reset(before)

    def _begin_order(self) -> Iterator[Any]:
        loader = self.loader
        if self.progress.order is not None:
            loader.stateful_sampler.load_state_dict(self.progress.order)
            return iter(loader.index_sampler)
        return begin_at(loader.index_sampler, self.progress.batches)

    # ---- tasks

    def _fill(self) -> None:
        """Ask for batches, as many ahead as workers and ``prefetch_factor`` allow."""
        room = self.workers * (self.loader.prefetch_factor or 0) or 1
        while not self.progress.finished and len(self.pending) < room and self._ask():
            pass

    def _ask(self) -> bool:
        """Ask for one more batch; False where there is none."""
        task = self._stream_task() if self.loader.stream else self._numbered_task()
        if task is None:
            return False
        self.number += 1
        worker = task.number % max(1, self.workers)
        if self.loader.stream:
            worker, self.turn = self.turn, (self.turn + 1) % len(self.skips)
        sampler = self.loader.stateful_sampler
        order = None if sampler is None else sampler.state_dict()
        self.pending.append(Pending(task.number, worker, self.position, order))
        self.crew.send(worker, task)
        return True

    def _stream_task(self) -> Task | None:
        if len(self.ended) == len(self.skips):
            return None
        while self.turn in self.ended:
            self.turn = (self.turn + 1) % len(self.skips)
        return Task(self.epoch, self.progress.seed, self.number, skip=self.skips[self.turn])

    def _numbered_task(self) -> Task | None:
        try:
            indices = self._drawing(self.order.__next__)
        except StopIteration:
            return None
        task = Task(self.epoch, self.progress.seed, self.number, self.position, indices)
        self.position += len(indices) if self.loader.batched else 1
        return task

    # ---- results

    def __iter__(self) -> Iteration:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def __next__(self) -> Any:
        if self.progress.finished:
            raise StopIteration
        self._check_alive()
        while self.pending or self._ask():
            pending, result = self._received()
            failed = isinstance(result, Failure)
            if failed and isinstance(result.error, End):
                self.ended.add(pending.worker)
                continue
            self.progress.count(pending, self.loader.stream)
            if self.workers:
                self._fill()
            if not failed:
                return pinned(result) if self.loader.pin_memory else result
            if result.final:
                self.shut(at_once=True)
            try:
                raise result.error
            finally:
                del result  # the traceback holds this frame
        self.progress.finished = True
        if not self.loader.persistent_workers:
            self.shut()
        raise StopIteration

    def _check_alive(self) -> None:
        if self.closing is not None and not self.closing.alive:
            raise WorkerError(message("DataLoader", "the workers of this iterator were ended", hint="iter(loader)"))
        if self.crew.epoch != self.epoch:
            raise WorkerError(message("DataLoader", "a later iterator has taken over the persistent workers"))

    def _received(self) -> tuple[Pending, Any]:
        """The next batch in order (or, without ``in_order``, the first that comes)."""
        try:
            while True:
                ready = self.pending if not self.loader.in_order else itertools.islice(self.pending, 1)
                first = next((p for p in ready if p.number in self.results), None)
                if first is not None:
                    self.pending.remove(first)
                    return first, self.results.pop(first.number)
                epoch, number, result = self.crew.receive(self.loader.timeout)
                if epoch == self.epoch:  # others were asked for by an epoch that was left early
                    self.results[number] = result
        except BaseException:  # a worker is gone, time is over, Ctrl-C: nobody will wait for the others
            self.shut(at_once=True)
            raise

    def shut(self, at_once: bool = False) -> None:
        """End the workers."""
        if self.closing is None:
            self.loader.end_workers()
        elif self.closing.detach() is not None:
            self.crew.close(at_once)
