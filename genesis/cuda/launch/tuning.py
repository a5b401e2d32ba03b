"""Which of several ways to do the same is the fastest on this GPU: tried once, kept beside machine code, and used from then on.

``GENESIS_CUDA_TUNE`` says for what:

    not set   large products of compiled steps: the algorithm of cuBLASLt
    1         all large products: cuBLASLt's algorithm, or the tile where that is not there
    0         nothing is tried, and nothing that is kept is used

A program that wants the same bits each time (`genesis.use_deterministic_algorithms`) has nothing tried for it either: which
way is the fastest may change from one run to the next. What is tried computes the result, again and again; while a graph is
recorded nothing is.
"""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from genesis.base.deterministic import switches
from genesis.cuda.memory.sequence import taking
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime.connection import driver
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.errors import StickyError
from genesis.cuda.runtime.streams import Event, current
from genesis.kernels.llvm import objects

ASKED = os.environ.get("GENESIS_CUDA_TUNE", "")
LARGE = 1 << 27  # products of numbers from which a tile is looked for: smaller ones take as long as a launch
ROUNDS, RUNS = 7, 3  # in which all ways take turns, and how often each is started in one
LONG, FEWER = 0.5, 3  # milliseconds from which a way is started once in a round, and of how many rounds
MARGIN = 0.98  # of the first way's time, from which another is faster
_known: dict[Hashable, int | None] = {}
tried = {"ways": 0, "kept": 0}  # how many were measured, and how often a choice was there, in this process


class _Thread(threading.local):  # no context variable: kernels are run in contexts of their own
    step: bool | None = None  # whether the step that does it has the fastest way; None outside of steps


_here = _Thread()


@contextmanager
def of_step(fastest: bool) -> Iterator[None]:
    """What is done inside is a part of a compiled step, which is done many times, in one way (`wanted_in_steps`)."""
    before, _here.step = _here.step, fastest
    try:
        yield
    finally:
        _here.step = before


def wanted_in_steps() -> bool:
    """Whether a step that is first called now has the fastest way: it keeps to that, as graphs ask for the same memory each
    time that they are recorded.
    """
    return (ASKED == "1" or (ASKED != "0" and not driver().emulated)) and not switches.wanted


def wanted(in_steps: bool = False) -> bool:
    """Whether the fastest way is to be used.

    Args:
        in_steps: also where the variable is not set, if a compiled step of a GPU does it
    """
    if in_steps and _here.step is not None:
        return _here.step
    return ASKED == "1" and not switches.wanted


def choice(on: Device, key: tuple[Any, ...], ways: Sequence[Callable[[], Any]]) -> int | None:
    """The number of the fastest way: the one that is known of this kind of GPU, or that is found out now; None: neither."""
    whole = on.driver.device_name(on.index), *key
    if whole not in _known:
        name = objects.name_of(*map(repr, whole), suffix=objects.CHOICE)
        kept = objects.load(name)
        if kept is not None and int(kept) < len(ways):
            tried["kept"] += 1
            _known[whole] = int(kept)
        elif capturing() is None and not on.enter().is_capturing(current(on).handle):
            _known[whole] = number = fastest(on, ways)
            if number is not None:
                objects.save(name, str(number).encode())
        else:
            return None
    return _known[whole]


def fastest(on: Device, ways: Sequence[Callable[[], Any]]) -> int | None:
    """The number of the way that takes the least time, the first one where no other is faster by more than what such times are
    apart anyway; those that this GPU refuses are left out.
    """
    able = []
    with taking(None):
        for number, way in enumerate(ways):
            try:
                way()
            except StickyError:
                raise
            except Exception:  # more shared memory than there is, say, in the words of a library or of the driver
                continue
            able.append(number)
        times = dict(zip(able, measured(on, [ways[number] for number in able]), strict=True))
    if not times:
        return None
    best = min(times, key=lambda number: times[number])
    return 0 if 0 in times and times[best] > MARGIN * times[0] else best


def measured(on: Device, ways: Sequence[Callable[[], Any]]) -> list[float]:
    """Milliseconds of each way. They take turns, as clocks and heat change meanwhile."""
    tried["ways"] += len(ways)
    if max(_timed(on, ways, 1, 1), default=0.0) > LONG:
        return _timed(on, ways, FEWER, 1)
    return _timed(on, ways, ROUNDS, RUNS)


def _timed(on: Device, ways: Sequence[Callable[[], Any]], count: int, runs: int) -> list[float]:
    """The median of some rounds."""
    rounds = [[(Event(enable_timing=True), Event(enable_timing=True)) for _ in ways] for _ in range(count)]
    stream = current(on)
    for events in rounds:
        for way, (begin, end) in zip(ways, events, strict=True):
            begin.record(stream)
            for _ in range(runs):
                way()
            end.record(stream)
    stream.synchronize()
    return [statistics.median([begin.elapsed_time(end) for begin, end in each]) for each in zip(*rounds, strict=True)]
