"""Which stream work goes to."""

from __future__ import annotations

from typing import Any

from genesis.cuda.runtime.devices import device_at, index_of
from genesis.cuda.runtime.streams import Event, Stream, current, default, set_current


class StreamContext:
    """Inside a ``with``, work goes to a stream, and "cuda" stands for its device; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        return None if self.stream is None else self.stream.__enter__()

    def __exit__(self, *caught: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*caught)


def stream(stream: Stream | None) -> StreamContext:
    """Inside a ``with``, work goes to this stream."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work for a device goes to.

    Raises:
        RuntimeError: there is no GPU
    """
    return current(device_at(index_of(device)))


def default_stream(device: Any = None) -> Stream:
    """The stream that work for a device goes to where nobody says another one."""
    return default(device_at(index_of(device)))


def set_stream(stream: Stream | None) -> None:
    """From now on this thread's work goes to this stream."""
    if stream is not None:
        set_current(stream)


def is_current_stream_capturing() -> bool:
    """Whether the current stream's work is being recorded."""
    on = device_at()
    return on.enter().is_capturing(current(on).handle)


__all__ = [
    "Event", "Stream", "StreamContext", "current_stream", "default_stream", "is_current_stream_capturing", "set_stream", "stream",
]  # fmt: skip
