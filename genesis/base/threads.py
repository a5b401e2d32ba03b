"""Work for several threads: what NumPy does with one, on slices. (NumPy lets other threads run while it computes.)"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


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
    """Call ``work`` on slices that together are ``range(count)``, one for each thread; the first exception is raised."""
    threads = min(thread_count(), count)
    if threads < 2:
        work(slice(0, count))
        return
    ends = [count * i // threads for i in range(threads + 1)]
    for job in [_pool(os.getpid()).submit(work, slice(a, b)) for a, b in itertools.pairwise(ends)]:
        job.result()
