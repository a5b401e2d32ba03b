"""How many threads a computation may use, and workers that take slices of its work. (NumPy lets other threads run while
it computes.)

The calling thread works, too. It waits for slices that a worker has begun, never for a worker that has not come: on a
busy machine it does all of the work itself. Workers sleep when there is nothing to do; nobody waits actively.

Each thread begins with slices of its own, the same ones for the same work: what it wrote is still in the cache of its
processor when the next operation reads it. Then it takes what others have not begun.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from genesis.base.dtypes import is_integer
from genesis.base.errors import ArgumentError, ArgumentValueError, message

_PARTS = 4  # slices for each thread: one that is woken late, or has a slower processor, takes fewer


def _default() -> int:
    """The processors this process may use, or what ``OMP_NUM_THREADS`` or ``OPENBLAS_NUM_THREADS`` say if that is less."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = [os.environ.get(name, "") for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")]
    return max(1, min([available, *[int(n) for n in asked if n.isdigit()]]))


_number = threading.local()  # of this worker
_counts = {"threads": _default(), "interop": 1}
followers: list[Callable[[int], None]] = []  # who is told of another number of threads


def get_num_threads() -> int:
    """The most threads that one operation uses.

    >>> import genesis
    >>> genesis.get_num_threads() >= 1
    True
    """
    return _counts["threads"]


def set_num_threads(num: int) -> None:
    """Let one operation use at most ``num`` threads, in the whole process; small ones use one anyway.

    At first it is the number of processors this process may use, or the environment variable ``OMP_NUM_THREADS`` or
    ``OPENBLAS_NUM_THREADS`` if that is less.

    Raises:
        TypeError, ValueError: ``num`` is not a positive integer

    >>> import genesis
    >>> before = genesis.get_num_threads()
    >>> genesis.set_num_threads(1); genesis.get_num_threads()
    1
    >>> genesis.set_num_threads(before)
    """
    count = _positive("set_num_threads", num)
    if count >= 1 << 31:
        raise ArgumentValueError(message("set_num_threads", f"more threads than there can be: {count}"))
    _counts["threads"] = count
    for follower in followers:
        follower(_counts["threads"])


def get_num_interop_threads() -> int:
    """The number given to `set_num_interop_threads`, or 1.

    >>> import genesis
    >>> genesis.get_num_interop_threads()
    1
    """
    return _counts["interop"]


def set_num_interop_threads(num: int) -> None:
    """Accepted for PyTorch's sake: operations run one after the other, in the thread that calls them."""
    _counts["interop"] = _positive("set_num_interop_threads", num)


def _positive(name: str, num: Any) -> int:
    if not is_integer(num):
        raise ArgumentError(message(name, f"expected an integer, got {type(num).__name__}"))
    if num.__index__() < 1:
        raise ArgumentValueError(message(name, f"expected a positive number of threads, got {num}"))
    return int(num.__index__())


@functools.cache
def _workers(pid: int, count: int) -> SimpleQueue[Callable[[], Any]]:
    """The queue of so many workers of this process; they sleep until something is put into it."""
    jobs: SimpleQueue[Callable[[], Any]] = SimpleQueue()

    def run(number: int) -> None:
        _number.of_worker = number
        while True:
            jobs.get()()

    for i in range(count):
        threading.Thread(target=run, args=(i + 1,), name=f"genesis-{i}", daemon=True).start()
    return jobs


class _Slices:
    """Work in slices; whoever comes takes the next one of its own, then the last one of whoever has most left."""

    def __init__(self, work: Callable[[slice], Any], count: int, parts: int, threads: int) -> None:
        self.work, self.count, self.parts = work, count, parts
        self.left = [list(range(parts * i // threads, parts * (i + 1) // threads)) for i in range(threads)]
        self.ended = 0
        self.failures: list[BaseException] = []
        self.guard, self.all_ended = threading.Lock(), threading.Lock()
        self.all_ended.acquire()

    def next(self) -> int | None:
        own = self.left[getattr(_number, "of_worker", 0) % len(self.left)]
        if own:
            return own.pop(0)
        most = max(self.left, key=len)
        return most.pop() if most else None

    def take(self) -> None:
        while True:
            with self.guard:
                i = self.next()
            if i is None:
                return
            try:
                self.work(slice(self.count * i // self.parts, self.count * (i + 1) // self.parts))
            except BaseException as error:
                self.failures.append(error)
            with self.guard:
                self.ended += 1
                if self.ended == self.parts:
                    self.all_ended.release()


def in_parallel(work: Callable[[slice], Any], count: int, parts: int | None = None) -> None:
    """Call ``work`` on slices that together are ``range(count)``; this thread and others each take the next one. An
    exception of any is raised when all have ended.
    """
    threads = min(get_num_threads(), count, count if parts is None else parts)
    if threads < 2:
        work(slice(0, count))
        return
    slices = _Slices(work, count, min(count, threads * _PARTS) if parts is None else parts, threads)
    jobs = _workers(os.getpid(), threads - 1)
    for _ in range(threads - 1):
        jobs.put(functools.partial(copy_context().run, slices.take))
    try:
        slices.take()
    finally:
        slices.all_ended.acquire()  # none may work on when the caller goes on
    if slices.failures:
        raise slices.failures[0]
