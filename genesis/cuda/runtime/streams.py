"""Streams and events: work of one stream is done in order, work of several in any, unless an event says otherwise.

All work goes to streams that wait for nothing but what they are told to: the driver's default stream, which others wait
for and no graph can hold, is not used.
"""

from __future__ import annotations

import threading
from typing import Any

from genesis.base.device import device as DeviceName  # noqa: N812
from genesis.base.errors import ArgumentError, message
from genesis.cuda.runtime.devices import Device, current_index, device_at, index_of
from genesis.cuda.runtime.devices import set_current as set_current_index
from genesis.cuda.runtime.reports import checked

MOST = 32  # streams of a device and priority: then they are used again


class _Thread(threading.local):
    def __init__(self) -> None:
        self.streams: dict[Device, Stream] = {}  # those that its work goes to, where they are not the default ones
        self.stack: list[tuple[int, Stream]] = []  # the index of the device and the stream before each block


_thread = _Thread()


class Stream:
    """A queue of work of a device.

    Args:
        device: of which device; None: the current one
        priority: below 0 for work that goes before that of other streams

    >>> import genesis
    >>> if genesis.cuda.is_available():
    ...     s = genesis.cuda.Stream()
    ...     s.synchronize()

    Raises:
        RuntimeError: there is no GPU
    """

    __slots__ = ("handle", "on", "priority")

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.on = device_at(index_of(device))
        self.priority = priority
        self.handle = self.on.keep("streams", _Streams).next(priority)

    @property
    def device(self) -> DeviceName:
        return DeviceName("cuda", self.on.index)

    @property
    def device_index(self) -> int:
        return self.on.index

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return self.handle

    def synchronize(self) -> None:
        """Wait until everything that it was told is done.

        Raises:
            IndexError: a kernel met an index that is none
        """
        self.on.enter().stream_synchronize(self.handle)
        checked(self.on)

    def query(self) -> bool:
        """Whether everything that it was told is done."""
        return self.on.enter().stream_query(self.handle)

    def wait_event(self, event: Event) -> None:
        """What it is told from now on begins after an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What it is told from now on begins after what another was told until now."""
        if stream.handle != self.handle:
            self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """An event for what it was told until now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.handle == other.handle and self.on is other.on

    def __hash__(self) -> int:
        return hash((self.on.index, self.handle))

    def __enter__(self) -> Stream:
        _thread.stack.append((current_index(), current(self.on)))
        set_current_index(self.on.index)
        set_current(self)
        return self

    def __exit__(self, *_: object) -> None:
        index, before = _thread.stack.pop()
        set_current(before)
        set_current_index(index)

    def __repr__(self) -> str:
        return f"<genesis.cuda.Stream device=cuda:{self.on.index} cuda_stream={self.handle:#x}>"


class _Streams:
    """The streams of a device."""

    def __init__(self, on: Device) -> None:
        self.on = on
        self.handles: dict[int, list[int]] = {}
        self.turns: dict[int, int] = {}
        self.lock = threading.Lock()

    def next(self, priority: int) -> int:
        with self.lock:
            handles, turn = self.handles.setdefault(priority, []), self.turns.get(priority, 0)
            self.turns[priority] = turn + 1
            if len(handles) < MOST:
                handles.append(self.on.enter().stream(priority))
            return handles[turn % MOST]


class Event:
    """A point in the work of a stream, for others to wait for.

    Args:
        enable_timing: so that `elapsed_time` can be asked
        blocking, interprocess: accepted, without an effect
    """

    __slots__ = ("_handle", "on", "timing")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.timing = enable_timing
        self.on: Device | None = None
        self._handle = 0

    def record(self, stream: Stream | None = None) -> None:
        """Let it stand for what a stream, or the current one, was told until now."""
        stream = current() if stream is None else stream
        if self.on is None:
            self.on = stream.on
            _destroy_gone(self.on)
            self._handle = self.on.enter().event(self.timing)
        if self.on is not stream.on:
            raise ArgumentError(message("Event.record", f"it is of {self.on}, the stream of {stream.on}"))
        self.on.enter().event_record(self._handle, stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """What a stream, or the current one, is told from now on begins after it."""
        stream = current() if stream is None else stream
        if self.on is not None:
            stream.on.enter().stream_wait(stream.handle, self._handle)

    def query(self) -> bool:
        """Whether everything that it stands for is done."""
        return self.on is None or self.on.enter().event_query(self._handle)

    def synchronize(self) -> None:
        """Wait until everything that it stands for is done."""
        if self.on is not None:
            self.on.enter().event_synchronize(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another.

        Raises:
            TypeError: one of them is without timing, or was not recorded
        """
        if not (self.timing and end_event.timing) or self.on is None or end_event.on is None:
            raise ArgumentError(message("Event.elapsed_time", "both events must be recorded, with enable_timing=True"))
        return self.on.enter().elapsed(self._handle, end_event._handle)

    @property
    def cuda_event(self) -> int:
        """The driver's handle."""
        return self._handle

    def __del__(self) -> None:
        if getattr(self, "_handle", 0) and self.on is not None:
            self.on.keep("events gone", lambda _: []).append(self._handle)

    def __repr__(self) -> str:
        return "<genesis.cuda.Event uninitialized>" if self.on is None else f"<genesis.cuda.Event {self._handle:#x}>"


def _destroy_gone(on: Device) -> None:
    """Destroy the events that nobody has any more: finalizers call no driver."""
    gone = on.keep("events gone", lambda _: [])
    while gone:
        on.enter().event_destroy(gone.pop())


def default(on: Device) -> Stream:
    """The stream of a device that work goes to where nobody says another one."""
    return on.keep("default stream", lambda on: Stream(on.index))


def current(on: Device | None = None) -> Stream:
    """The stream that this thread's work goes to, of a device or the current one."""
    on = device_at() if on is None else on
    return _thread.streams.get(on) or on.kept.get("default stream") or default(on)


def set_current(stream: Stream) -> None:
    _thread.streams[stream.on] = stream
