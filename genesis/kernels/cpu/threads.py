"""Work for several threads: what NumPy does with one, on slices. (NumPy lets other threads run while it computes.)"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_PARTS = 4  # slices for each thread: one that is woken late, or has a slower processor, takes fewer


def thread_count() -> int:
    """The processors this process may use, or ``OMP_NUM_THREADS`` if that is less."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(asked))) if asked.isdigit() else available


@functools.cache
def _pool(pid: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # 5 ms

    return ThreadPoolExecutor(thread_count(), "genesis")


def in_parallel(work: Callable[[slice], Any], count: int) -> None:
    """Call ``work`` on slices that together are ``range(count)``; this thread and others each take the next one. An exception of any is raised when all have ended."""
    threads = min(thread_count(), count)
    if threads < 2:
        work(slice(0, count))
        return
    parts = min(count, threads * _PARTS)
    slices = iter([slice(count * i // parts, count * (i + 1) // parts) for i in range(parts)])  # a step of it is one that threads cannot divide

    def take() -> None:
        for part in slices:
            work(part)

    others: list[Future[None]] = []
    with contextlib.suppress(RuntimeError):  # at the end of the program no threads can be had
        others += [_pool(os.getpid()).submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        failures = [other.exception() for other in others]  # waits for all: none may work on when the caller goes on
    for failure in failures:
        if failure is not None:
            raise failure
