"""Where the time of a program goes, under the names of ``torch.profiler``: ops, nodes of backward, named blocks, steps.

    with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler("log")) as p:
        for batch in loader:
            with record_function("forward"):
                ...
            p.step()
    print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

Ops run by the kernels that they run by without a profile, each call some microseconds later; of compiled steps the phases
are events, with how many threads may work at each. Watched is the thread that
opened the profile; blocks are noted in every thread. `genesis.autograd.profile` is the small form, by line of the
program.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from enum import Enum

from genesis.profiler.events import Event as Event
from genesis.profiler.events import record_function
from genesis.profiler.ranks import export_ranks as export_ranks
from genesis.profiler.recording import profile
from genesis.profiler.schedules import ProfilerAction, schedule
from genesis.profiler.totals import Average as Average
from genesis.profiler.totals import Averages as Averages


class ProfilerActivity(Enum):
    """What PyTorch can watch; here the CPU."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched here."""
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For ``on_trace_ready``: each trace becomes a file in a folder, named as the plugin of TensorBoard looks for them."""

    def save(done: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        done.export_chrome_trace(os.path.join(dir_name, name))

    return save


__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
