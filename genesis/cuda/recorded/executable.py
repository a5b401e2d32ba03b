"""A recorded graph that can be launched, and what must stay while it is there."""

from __future__ import annotations

from typing import Any

from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.streams import Stream

GONE = "graphs gone"


class Executable:
    """A graph of a device.

    Args:
        graph: the driver's handle, which is given up
        memory: where what was made while it was recorded has its place
        kept: other things that it reads or writes
    """

    def __init__(self, on: Device, graph: int, memory: Any, kept: Any) -> None:
        self.on, self.memory, self.kept = on, memory, kept
        gone, driver = on.keep(GONE, lambda _: []), on.enter()
        while gone:
            driver.executable_destroy(gone.pop())
        self.handle = driver.instantiate(graph)
        driver.graph_destroy(graph)

    def launch(self, stream: Stream) -> None:
        self.on.enter().launch_graph(self.handle, stream.handle)

    def __del__(self) -> None:  # finalizers call no driver
        if getattr(self, "handle", 0):
            self.on.keep(GONE, lambda _: []).append(self.handle)
