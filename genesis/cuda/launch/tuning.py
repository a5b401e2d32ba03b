"""Which of several ways to do the same is the fastest on this GPU: tried once where ``GENESIS_CUDA_TUNE=1`` asks for it.

A choice among tiles is kept beside machine code, and used from then on by every process, with or without that; cuBLASLt is
asked anew in each process. While a graph is recorded nothing is tried. What is tried computes the result, again and again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from genesis.cuda.memory.sequence import taking
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.errors import CudaError, StickyError
from genesis.cuda.runtime.streams import Event, current
from genesis.kernels.llvm import objects

LARGE = 1 << 27  # products of numbers from which a choice is looked for: smaller ones take as long as a launch
ROUNDS = 5
_known: dict[Hashable, int | None] = {}
tried = {"ways": 0, "kept": 0}  # how many were measured, and how often a choice was there, in this process


def wanted() -> bool:
    """Whether something may be tried now."""
    return os.environ.get("GENESIS_CUDA_TUNE") == "1" and capturing() is None


def choice(on: Device, key: tuple[Any, ...], ways: Sequence[Callable[[], Any]]) -> int | None:
    """The number of the fastest way: the one that is known of this kind of GPU, or that is found out now; None: neither."""
    whole = on.driver.device_name(on.index), *key
    if whole not in _known:
        name = objects.name_of(*map(repr, whole), suffix=objects.CHOICE)
        kept = objects.load(name)
        if kept is not None and int(kept) < len(ways):
            tried["kept"] += 1
            _known[whole] = int(kept)
        elif wanted():
            _known[whole] = number = fastest(on, ways)
            objects.save(name, b"" if number is None else str(number).encode())
        else:
            return None
    return _known[whole]


def fastest(on: Device, ways: Sequence[Callable[[], Any]]) -> int | None:
    """The number of the way that takes the least time; those that this GPU refuses are left out."""
    times = {}
    with taking(None):
        for number, way in enumerate(ways):
            try:
                times[number] = measured(on, way)
            except StickyError:
                raise
            except CudaError:  # more shared memory than there is, say
                continue
    return min(times, key=lambda number: times[number]) if times else None


def measured(on: Device, way: Callable[[], Any]) -> float:
    """Milliseconds of some rounds, behind one that loads what is needed."""
    tried["ways"] += 1
    way()
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    begin.record(current(on))
    for _ in range(ROUNDS):
        way()
    end.record(current(on))
    end.synchronize()
    return begin.elapsed_time(end)
