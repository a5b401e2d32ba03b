"""Launches side by side: in the graph of a step of small launches those that the longest chain does not wait for are a branch
of their own, as the gradients of weights are beside those of activations.

    longest chain    x ------ y ------ gy ------ gx ----.      what each waits for is what it reads, and whose memory it writes
    other branch                        '-- gw -- gb ---'
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from genesis.cuda.runtime.devices import Device
from genesis.cuda.steps.told import entry_of
from genesis.jit.lowering.layouts import room_of

LAUNCH = 2e-6  # seconds of a launch that does little
LONG = 6e-6  # seconds of one that has the device for itself
BEGIN = -1  # what all launches come behind
MOST = 128  # launches of a step that is looked at
BANDWIDTH, RATE = 4e12, 3e13  # of an H200, bytes and operations a second


@dataclass(frozen=True, slots=True)
class Branches:
    """Which launches are of the other branch, and what each has to wait for of the one that it is not of: the last there."""

    side: frozenset[int] = frozenset()
    waits: dict[int, int] = field(default_factory=dict)


def branches(step: Any) -> Branches:
    """Those of a step."""
    if len(step.phases) > MOST:
        return Branches()
    needs, seconds = _needs(step), [_seconds(step, phase) for phase in step.phases]
    chain = _chain(needs, seconds)
    calls = {i for i, phase in enumerate(step.phases) if not phase.stages}
    side = {i for i, time in enumerate(seconds) if i not in chain | calls and time <= LAUNCH + LONG}
    while True:
        waits = _waits(needs, side, calls)
        alone = {i for i in side if not _has_company(i, side, waits, len(needs))}
        if not alone:
            return Branches(frozenset(side), waits)
        side -= alone


def _waits(needs: list[set[int]], side: set[int], calls: set[int]) -> dict[int, int]:
    """What launches wait for, and calls for all of the other branch: memory that this is done with may be used by them."""
    others = [{j for j in needed if (j in side) != (i in side)} for i, needed in enumerate(needs)]
    for i in calls:
        others[i] = {j for j in side if j < i}
    waits, known = {}, {True: BEGIN, False: BEGIN}  # by branch, what it waited for last
    for i, needed in enumerate(others):
        last = max(needed, default=BEGIN)
        if last > known[i in side]:
            waits[i] = known[i in side] = last
    return waits


def _has_company(number: int, side: set[int], waits: dict[int, int], count: int) -> bool:
    """Whether the longest chain goes on between what a launch of the other branch waits for, and what waits for it."""
    first = max([waits.get(i, BEGIN) for i in side if i <= number])
    last = min([i for i, needed in waits.items() if i not in side and needed >= number], default=count)
    return any([i not in side for i in range(first + 1, last)])


def _seconds(step: Any, phase: Any) -> float:
    return LAUNCH + entry_of(step, phase).seconds(BANDWIDTH, RATE, 132)


def _needs(step: Any) -> list[set[int]]:
    """For each launch those before it that write what it reads, or read or write what it writes."""
    phases, out = step.phases, []
    used = [_used(phase, step) for phase in phases]
    for i, (reads, writes) in enumerate(used):
        needed = set()
        for j in range(i):
            old_reads, old_writes = used[j]
            if (
                (not phases[i].stages and not phases[j].stages)
                or _meet(old_writes, reads)
                or _meet(old_writes, writes)
                or _meet(old_reads, writes)
            ):
                needed.add(j)
        out.append(needed)
    return out


Piece = tuple[Any, int, int]  # what memory, and where a piece of it begins and ends


def _used(phase: Any, step: Any) -> tuple[list[Piece], list[Piece]]:
    """What a launch reads and what it writes."""
    out: tuple[list[Piece], list[Piece]] = [], []
    for stage in phase.stages:
        for i, var in enumerate(stage.operands):
            out[i in stage.kernel.writes].append(_piece(var, step))
    for call in phase.calls if not phase.stages else ():
        for which, values in enumerate((call.inputs, call.outs)):
            out[which].extend([_piece(var, step) for var in values])
    return out


def _piece(var: Any, step: Any) -> Piece:
    region = step.program.regions.get(var)
    var = var if region is None else region.root
    where = step.memory_plan.where[var]
    if where.kind == "arena":
        return "arena", where.index, where.index + max(room_of(var.spec), 1)
    return (where.kind, where.index), 0, 1


def _meet(some: list[Piece], others: list[Piece]) -> bool:
    return any([a == b and begin < stop and start < end for a, begin, end in some for b, start, stop in others])


def _chain(needs: list[set[int]], seconds: list[float]) -> set[int]:
    """The launches of the longest chain."""
    behind, last = list(seconds), [-1] * len(needs)  # how long it takes from a launch on, and what comes after it
    for i in range(len(needs) - 1, -1, -1):
        for j in needs[i]:
            if seconds[j] + behind[i] > behind[j]:
                behind[j], last[j] = seconds[j] + behind[i], i
    at, out = max(range(len(needs)), key=behind.__getitem__, default=-1), set()
    while at >= 0:
        out.add(at)
        at = last[at]
    return out


class Forked:
    """The two streams of a recording, and an event for each launch that others wait for."""

    def __init__(self, branches: Branches, on: Device) -> None:
        self.branches, self.driver, self.main = branches, on.enter(), 0
        self.side, self.last = self.driver.stream(), max(branches.side)
        numbers = dict.fromkeys((BEGIN, *branches.waits.values(), self.last))
        self.events = {number: self.driver.event() for number in numbers}

    def begin(self, main: int) -> None:
        """From now on both are recorded."""
        self.main = main
        self.driver.event_record(self.events[BEGIN], main)
        self.driver.stream_wait(self.side, self.events[BEGIN])

    def stream_of(self, number: int) -> int:
        """The stream of a launch, behind what the launch needs of the other one."""
        stream = self._stream(number)
        if number in self.branches.waits:
            self.driver.stream_wait(stream, self.events[self.branches.waits[number]])
        return stream

    def done(self, number: int) -> None:
        """A launch is told to its stream."""
        if number in self.events:
            self.driver.event_record(self.events[number], self._stream(number))

    def over(self) -> None:
        """What is recorded from now on comes behind both."""
        self.driver.stream_wait(self.main, self.events[self.last])

    def close(self) -> None:
        """Nothing is recorded any more."""
        for event in self.events.values():
            self.driver.event_destroy(event)
        self.driver.stream_destroy(self.side)

    def _stream(self, number: int) -> int:
        return self.side if number in self.branches.side else self.main
