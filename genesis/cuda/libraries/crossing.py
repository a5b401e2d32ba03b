"""Arrays of a device to pinned memory of the host and back, on a stream of their own: neither the program nor other streams
wait, until one of them asks for what came (`Event.wait`).
"""

from __future__ import annotations

from typing import Any

from genesis.arrays.memory import Host
from genesis.cuda.arrays import CudaArray
from genesis.cuda.memory.pinned import block_of, pinned
from genesis.cuda.memory.sequence import crosses
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Event, Stream, current


class Crossing:
    """The way of contiguous arrays of one device to the host, and back."""

    def __init__(self, on: Device) -> None:
        self.on, self.stream = on, Stream(on.index)

    def room(self, shape: tuple[int, ...], dtype: Any) -> Host:
        """Pinned memory, of whatever it holds."""
        return pinned(shape, dtype)

    def out(self, array: CudaArray) -> tuple[Host, Event]:
        """Pinned memory for the elements, and when they are there: behind what the current stream was told until now."""
        crosses("a copy to the host")
        self.stream.wait_stream(current(self.on))
        host = pinned(array.shape, array.dtype)
        array.storage.used_on(self.stream)
        self.on.enter().copy_out(host.ctypes.data, array.address, array.nbytes, self.stream.handle)
        return host, self._told(host)

    def back(self, array: CudaArray, host: Host) -> Event:
        """Pinned memory into an array; the event says when it is there."""
        array.storage.used_on(self.stream)
        self.on.enter().copy_in(array.address, host.ctypes.data, array.nbytes, self.stream.handle)
        return self._told(host)

    def join(self, event: Event) -> None:
        """What the current stream of the device is told from now on begins after an event."""
        event.wait(current(self.on))

    def _told(self, host: Host) -> Event:
        block = block_of(host, self.on.driver)
        assert block is not None, "memory of a crossing is pinned"
        block.used_on(self.stream)
        return self.stream.record_event()

    def close(self) -> None:
        self.stream.synchronize()
