"""Workers: what the loader asks of them, and two kinds, the calling thread and threads beside it."""

from __future__ import annotations

import copy
import os
import queue
import threading
import time
from collections import deque
from typing import Any, Protocol

from genesis.base.errors import WorkerError, message
from genesis.core.graph.generator import SeededStream, seeded_stream
from genesis.data.fetch import Fetcher, Job, Stopped, Task, WorkerInfo, worker_info


class Failure:
    """An exception in place of a batch; after a ``final`` one the worker is of no use."""

    __slots__ = ("error", "final")

    def __init__(self, error: BaseException, final: bool = False) -> None:
        self.error, self.final = error, final


class Crew(Protocol):
    """Workers of a loader. A result is (epoch, number of the batch, the batch or a `Failure`)."""

    epoch: int  # whose results are wanted

    def send(self, worker: int, task: Task) -> None: ...

    def receive(self, timeout: float) -> tuple[int, int, Any]: ...

    def close(self, at_once: bool = False) -> None: ...


class Caller:
    """No workers: a batch is loaded when it is received."""

    epoch = -1

    def __init__(self, job: Job) -> None:
        self.fetcher, self.tasks = Fetcher(job), deque[Task]()

    def send(self, worker: int, task: Task) -> None:
        self.tasks.append(task)

    def receive(self, timeout: float) -> tuple[int, int, Any]:
        task = self.tasks.popleft()
        return task.epoch, task.number, outcome(self.fetcher, task)

    def close(self, at_once: bool = False) -> None:
        self.tasks.clear()


def outcome(fetcher: Fetcher, task: Task) -> Any:
    try:
        return fetcher(task)
    except StopIteration as error:  # raised as it is, it would end the epoch in silence
        failure = RuntimeError("StopIteration was raised while loading")
        failure.__cause__, failure.__notes__ = error, error.__notes__
        return Failure(failure)
    except BaseException as error:
        return Failure(error)


class Threads:
    """Worker threads of this process. A stream is copied (shallowly) for each, other datasets are shared."""

    epoch = -1

    def __init__(self, job: Job, seed: int) -> None:
        self.owner, self.stopping = os.getpid(), threading.Event()
        self.inboxes: list[queue.SimpleQueue[Task | None]] = [queue.SimpleQueue() for _ in range(job.num_workers)]
        self.outbox: queue.SimpleQueue[tuple[int, int, Any]] = queue.SimpleQueue()
        self.threads = []
        for i, inbox in enumerate(self.inboxes):
            info = WorkerInfo(i, job.num_workers, seed + i, copy.copy(job.dataset) if job.stream else job.dataset)
            arguments = (job, info, inbox, self.outbox, self.stopping)
            # daemons: an example that takes its time must not keep the interpreter from ending
            self.threads.append(threading.Thread(target=_work, args=arguments, name=f"genesis-loader-{i}", daemon=True))
        try:
            for thread in self.threads:
                thread.start()
        except BaseException:  # the system has no more of them
            self.close(at_once=True)
            raise

    def send(self, worker: int, task: Task) -> None:
        self.inboxes[worker].put(task)

    def receive(self, timeout: float) -> tuple[int, int, Any]:
        try:
            return self.outbox.get(timeout=timeout or None)
        except queue.Empty:
            raise timed_out(timeout) from None

    def close(self, at_once: bool = False) -> None:
        if os.getpid() != self.owner:  # a forked child has no threads, and locks as they were
            return
        self.stopping.set()
        for inbox in self.inboxes:
            inbox.put(None)
        until = time.monotonic() + (0 if at_once else 1)
        for thread in self.threads:
            if thread.is_alive() and thread is not threading.current_thread():  # the collector may run anywhere
                thread.join(max(0, until - time.monotonic()))


def _work(job: Job, info: WorkerInfo, inbox: Any, outbox: Any, stopping: threading.Event) -> None:
    worker_info.set(info)
    fetcher = Fetcher(job, info)
    fetcher.stopped = stopping.is_set
    failed = initialized(job, info)
    while (task := inbox.get()) is not None and not stopping.is_set():
        result = failed or outcome(fetcher, task)
        if isinstance(result, Failure) and isinstance(result.error, Stopped):
            return
        outbox.put((task.epoch, task.number, result))
        del result, task


def initialized(job: Job, info: WorkerInfo) -> Failure | None:
    """Run ``worker_init_fn`` on random numbers of the worker's seed; what it raises is raised in place of batches."""
    seeded_stream.set(SeededStream(info.seed))
    if job.worker_init_fn is not None:
        try:
            job.worker_init_fn(info.id)
        except BaseException as error:
            error.add_note(f"DataLoader: worker_init_fn, worker {info.id}")
            return Failure(error, final=True)
    return None


def timed_out(timeout: float) -> WorkerError:
    return WorkerError(
        message("DataLoader", f"timed out after {timeout} seconds", hint="a larger timeout, or more workers")
    )
