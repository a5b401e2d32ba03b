"""What happens before what: vector clocks of streams and of the program, and the uses of memory that they order.

A clock says of each actor, a stream or the program (`HOST`), how much of what it did is known to be done. What a stream
is told comes after everything that the program knows then; an event carries the clock of its stream to who waits for it.
Two uses of the same bytes, one of them a write, of which neither comes before the other, are an error: on a GPU the
result would depend on which is faster. (L. Lamport, "Time, clocks, and the ordering of events in a distributed system",
CACM 1978; C. Flanagan, S. Freund, "FastTrack", PLDI 2009.)
"""

from __future__ import annotations

from dataclasses import dataclass

from genesis.base.errors import message
from genesis.cuda.runtime.errors import RaceError

HOST = 0  # the program; streams have other numbers
PAGE = 1 << 16  # uses are kept by pages of so many bytes

Clock = dict[int, int]


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes that somebody reads or writes, at a time of its own clock."""

    start: int
    stop: int
    writes: bool
    actor: int
    time: int
    what: str

    def overlaps(self, other: Use) -> bool:
        return self.start < other.stop and other.start < self.stop

    def covers(self, other: Use) -> bool:
        return self.start <= other.start and other.stop <= self.stop

    def __str__(self) -> str:
        who = "the program" if self.actor == HOST else f"stream {self.actor}"
        return f"{self.what} {'writes' if self.writes else 'reads'} {self.stop - self.start} bytes on {who}"


class Clocks:
    """The clocks of a device, and who used its memory."""

    def __init__(self) -> None:
        self.clocks: dict[int, Clock] = {HOST: {HOST: 1}}
        self.events: dict[int, Clock] = {}
        self.pages: dict[int, list[Use]] = {}

    # ---- order

    def submitted(self, stream: int) -> None:
        """The program tells a stream to do something."""
        clock = self.clocks.setdefault(stream, {})
        _join(clock, self.clocks[HOST])
        clock[stream] = clock.get(stream, 0) + 1
        host = self.clocks[HOST]
        host[HOST] += 1

    def recorded(self, event: int, stream: int) -> None:
        self.events[event] = dict(self.clocks.setdefault(stream, {}))

    def waited(self, stream: int, event: int) -> None:
        _join(self.clocks.setdefault(stream, {}), self.events.get(event, {}))

    def is_behind(self, stream: int, other: int) -> bool:
        """Whether a stream comes behind all that another was told."""
        mine = self.clocks.get(stream, {})
        return all([mine.get(actor, 0) >= time for actor, time in self.clocks.get(other, {}).items() if actor != HOST])

    def host_waited(self, stream: int) -> None:
        _join(self.clocks[HOST], self.clocks.get(stream, {}))

    def host_waited_for_event(self, event: int) -> None:
        _join(self.clocks[HOST], self.events.get(event, {}))

    def host_waited_for_all(self) -> None:
        for clock in list(self.clocks.values()):
            _join(self.clocks[HOST], clock)

    # ---- uses

    def used(self, actor: int, start: int, count: int, writes: bool, what: str) -> None:
        """Somebody reads or writes memory now.

        Raises:
            RaceError: another use of it is not ordered with this one
        """
        if not count:
            return
        clock = self.clocks[actor]
        use = Use(start, start + count, writes, actor, clock[actor], what)
        for page in range(start // PAGE, (start + count - 1) // PAGE + 1):
            self.pages[page] = [*self._kept(page, use, clock), use]

    def _kept(self, page: int, use: Use, clock: Clock) -> list[Use]:
        """The uses of a page that a later one can still be in conflict with."""
        kept, known = [], self.clocks[HOST]
        for old in self.pages.get(page, ()):
            if known.get(old.actor, 0) >= old.time:
                continue  # all that is told to streams from now on comes after what the program knows
            if old.overlaps(use):
                ordered = clock.get(old.actor, 0) >= old.time
                if (old.writes or use.writes) and not ordered:
                    raise RaceError(_conflict(old, use))
                if ordered and use.covers(old) and (use.writes or not old.writes):
                    continue  # whoever comes after this use comes after that one
            kept.append(old)
        return kept

    def forgotten(self, start: int, count: int) -> None:
        """Memory that the driver took back, after it had waited for everything."""
        for page in range(start // PAGE, (start + count - 1) // PAGE + 1):
            left = [u for u in self.pages.get(page, ()) if u.start < start or u.stop > start + count]
            self.pages[page] = left


def _join(clock: Clock, other: Clock) -> None:
    for actor, time in other.items():
        if clock.get(actor, 0) < time:
            clock[actor] = time


def _conflict(old: Use, new: Use) -> str:
    shared = min(old.stop, new.stop) - max(old.start, new.start)
    return message(
        "cuda",
        f"nothing says which of two uses of the same {shared} bytes comes first",
        operands=[("first", old), ("then", new)],
        hint="stream.wait_stream(other), an event, tensor.record_stream(stream), or synchronize()",
    )
