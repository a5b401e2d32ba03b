"""The streams and events of the emulated device: queues of work that run when somebody waits for them, or asks a
fourth time whether they are done.

While a graph is being recorded, work goes to the graph instead; another stream joins by waiting for an event of one that
does so.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from genesis.cuda.runtime.clocks import Clocks
from genesis.cuda.runtime.emulated_memory import Outside

IN_VAIN = 3  # questions whether something is done that are answered with no
QUEUE = 256  # pieces of work after which a queue runs, so that memory does not grow with what nobody waits for

Span = tuple[int, int, bool]  # an address, a number of bytes, whether they are written
Fail = Callable[[str, str], Exception]  # the error of a name, in a call


@dataclass(slots=True)
class Work:
    """One piece of work of a stream: what it does, when its queue comes to it, and the bytes that it uses."""

    what: str
    run: Callable[[], None]
    spans: Sequence[Span] = ()
    event: int | None = None  # that it records
    after: tuple[int, int] | None = None  # an event, and which of its records has to be done before
    zeros: bool = False  # whether it writes nothing else


@dataclass(slots=True)
class Recording:
    """Work that is recorded, and what of it comes before what."""

    work: list[Work] = field(default_factory=list)
    clocks: Clocks = field(default_factory=Clocks)


@dataclass(slots=True)
class Queue:
    device: int
    waiting: deque[Work] = field(default_factory=deque)
    graph: Recording | None = None
    asked: int = 0  # how often whether it is done, in vain


@dataclass(slots=True)
class Recorded:
    """How often an event was recorded, where last, and how many of these are done."""

    timing: bool
    records: int = 0
    done: int = 0
    stream: int = 0
    at: float = 0.0
    asked: int = 0  # how often whether it is done, in vain


class Queues:
    """All streams and events; ``fail`` makes the errors."""

    def __init__(self, fail: Fail) -> None:
        self.fail = fail
        self.clocks = Clocks()
        self.handles = itertools.count(1)
        self.events: dict[int, Recorded] = {}
        self._queues: dict[int, Queue] = {}
        self._time = 0.0

    # ---- streams

    def new(self, device: int) -> int:
        made = next(self.handles)
        self._queues[made] = Queue(device)
        return made

    def at(self, stream: int, call: str) -> Queue:
        if stream not in self._queues:
            raise self.fail("CUDA_ERROR_INVALID_HANDLE", call)
        return self._queues[stream]

    @property
    def capturing(self) -> bool:
        return any([queue.graph is not None for queue in self._queues.values()])

    def submit(self, stream: int, work: Work) -> None:
        queue = self.at(stream, work.what)
        clocks = self.clocks if queue.graph is None else queue.graph.clocks
        clocks.submitted(stream)
        for start, count, writes in work.spans:
            clocks.used(stream, start, count, writes, work.what)
        if queue.graph is not None:
            queue.graph.work.append(work)
            return
        queue.waiting.append(work)
        if len(queue.waiting) > QUEUE:
            self.drain(stream)

    def drain(self, stream: int, until: Callable[[], bool] | None = None) -> None:
        """Run a queue, and of others what it waits for."""
        waiting = self._queues[stream].waiting
        while waiting and not (until is not None and until()):
            work = waiting[0]
            if work.after is not None:
                self.finish(*work.after)
            if waiting and waiting[0] is work:
                waiting.popleft()
                self._run(work)

    def drain_all(self) -> None:
        for stream in list(self._queues):
            self.drain(stream)
        self.clocks.host_waited_for_all()

    def is_empty(self, stream: int) -> bool:
        """Whether a stream has done all; asked again and again, it has at last."""
        queue = self._queues[stream]
        queue.asked = queue.asked + 1 if queue.waiting else 0
        if queue.asked > IN_VAIN:
            self.drain(stream)
        return not queue.waiting

    def is_done(self, event: int) -> bool:
        """Whether an event has come; asked again and again, it has at last."""
        known = self.events[event]
        known.asked = known.asked + 1 if known.done < known.records else 0
        if known.asked > IN_VAIN:
            self.finish(event)
        return known.done == known.records

    def destroy(self, stream: int) -> None:
        self.drain(stream)
        del self._queues[stream]

    def _run(self, work: Work) -> None:
        self._time += 0.001
        try:
            work.run()
        except Outside:
            raise self.fail("CUDA_ERROR_ILLEGAL_ADDRESS", work.what) from None
        if work.event is not None and work.event in self.events:
            self.events[work.event].done += 1
            self.events[work.event].at = self._time

    # ---- events

    def new_event(self, timing: bool) -> int:
        made = next(self.handles)
        self.events[made] = Recorded(timing)
        return made

    def finish(self, event: int, records: int | None = None) -> None:
        """Run what an event, or its record of a number, stands for."""
        known = self.events.get(event)
        if known is not None:
            wanted = known.records if records is None else records
            if known.done < wanted and known.stream in self._queues:
                self.drain(known.stream, lambda: known.done >= wanted)

    def record(self, event: int, stream: int) -> None:
        queue, known = self.at(stream, "event_record"), self.events[event]
        if queue.graph is not None:
            known.stream = stream
            queue.graph.clocks.recorded(event, stream)
            return
        self.finish(event)  # records of one event are done in their order
        known.records, known.stream = known.records + 1, stream
        self.clocks.recorded(event, stream)
        queue.waiting.append(Work("event_record", lambda: None, event=event))

    def wait(self, stream: int, event: int) -> None:
        known, queue = self.events[event], self.at(stream, "stream_wait")
        origin = self._queues.get(known.stream)
        if origin is not None and origin.graph is not None and queue.graph is None:
            queue.graph = origin.graph
        if queue.graph is not None:
            queue.graph.clocks.waited(stream, event)
        elif known.records:
            self.clocks.waited(stream, event)
            queue.waiting.append(Work("stream_wait", lambda: None, after=(event, known.records)))

    # ---- graphs

    def begin(self, stream: int) -> None:
        self.at(stream, "begin_capture").graph = Recording()

    def end(self, stream: int) -> list[Work]:
        graph = self.at(stream, "end_capture").graph
        if graph is None:
            raise self.fail("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "end_capture")
        joined = True
        for other, queue in self._queues.items():
            if queue.graph is graph:
                queue.graph = None
                joined = joined and graph.clocks.is_behind(stream, other)
        if not joined:
            raise self.fail("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "end_capture")
        return graph.work
