"""Whether short work is done by several threads: that is measured, some calls in one way and some in the other.

To wake a worker takes as long as tens of thousands of numbers, and one that the system takes off its processor in the
middle of a chunk is waited for. What is faster so depends on the work, on the machine, and on what else it does; and no
result does, for the bits are the same for any number of threads. Medians are compared: behind a pause of the program single
calls take many times as long as the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Entry = tuple[int, int, int]  # what runs a table: its address, what it is called with first, and the number of threads

BLOCK, UNUSED = 10, 2  # calls in one way, first by all; the first of them are not counted, for workers may be asleep
CALLS = 500  # from one measurement to the next
LONG, LATER = 1e-3, 20_000  # seconds from which threads are taken to pay, and for how many calls


class Pace:
    """The way in which calls of one step are run now.

    Attributes:
        alone: by one thread
        left: calls until it is measured again
        long: seconds of a call from which threads are taken to pay
    """

    __slots__ = ("alone", "left", "long", "threads", "times", "tried")

    def __init__(self, long: float = LONG) -> None:
        self.threads, self.long = 0, long
        self.begin(1)

    def begin(self, threads: int) -> None:
        """Measure anew, if there are several threads."""
        self.threads, self.tried = threads, 0
        self.times: dict[bool, list[float]] = {True: [], False: []}
        self.alone, self.left = False, 0 if threads > 1 else 1 << 60

    def entry(self, workers: Entry) -> Entry:
        """What runs the table of the next call."""
        return (*workers[:2], self.of(workers[2]))

    def of(self, threads: int) -> int:
        """By how many threads the next call is run, if there are so many."""
        if threads != self.threads:
            self.begin(threads)
        if self.left <= 0:
            self.alone = self.tried >= BLOCK
        return 1 if self.alone else threads

    def timed(self, enter: Callable[[int], int], at: int) -> int:
        """A call that is measured: what ``enter`` gives."""
        begun = time.perf_counter()
        refused = enter(at)
        self.took(time.perf_counter() - begun)
        return refused

    def took(self, seconds: float) -> None:
        """So long took a call in the way that it is run now."""
        times = self.times[self.alone]
        if self.tried % BLOCK >= UNUSED:
            times.append(seconds)
        self.tried += 1
        if len(times) > 1 and min(times) > self.long:
            self.begin(self.threads)
            self.alone, self.left = False, LATER
        elif self.tried == 2 * BLOCK:
            alone, together = (sorted(self.times[way])[(BLOCK - UNUSED) // 2] for way in (True, False))
            self.begin(self.threads)
            self.alone, self.left = alone < together, CALLS
