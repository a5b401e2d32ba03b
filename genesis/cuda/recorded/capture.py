"""What a thread records now: which pool its memory is from, and where its draws find their places in streams."""

from __future__ import annotations

import threading
from typing import Any

from genesis.base.errors import message
from genesis.cuda.memory.allocator import DEFAULT, Allocator, allocator
from genesis.cuda.recorded.control import Control
from genesis.cuda.recorded.executable import Executable
from genesis.cuda.runtime.devices import Device
from genesis.cuda.runtime.errors import CaptureError
from genesis.cuda.runtime.streams import Stream, current

DRAWS = 1024  # of a graph
_thread = threading.local()


class Capture:
    """The recording of what a stream is told, from `begin` to `end`.

    Args:
        pool: the number of the pool that its memory is from
    """

    def __init__(self, on: Device, pool: int) -> None:
        self.on, self.pool, self.stream = on, pool, current(on)
        self.memory: Allocator = allocator(on)
        self.control = Control(self.stream.device, 0, [], DRAWS)
        self.streams: list[Any] = []  # generators that are drawn from
        self.blocks: list[int] = []  # how many blocks of each
        self.before: dict[Any, int] = {}  # where those were that compiled calls move on
        self.kept: list[Any] = [self.control]  # what must stay while the graph is there
        self.memory.keep_pool(pool)

    def begin(self) -> None:
        if capturing() is not None:
            raise CaptureError(message("cuda", "a graph is being recorded in this thread already"))
        self.memory.collect()
        driver = self.on.enter()
        driver.begin_capture(self.stream.handle)
        driver.relax(True)
        _thread.capture, self.memory.pool.number = self, self.pool

    def end(self) -> Executable:
        """The graph; also where something went wrong, after which there is none."""
        self._stop()
        graph = self.on.enter().end_capture(self.stream.handle)
        return Executable(self.on, graph, None, self.kept)

    def abandon(self) -> None:
        """Nothing is recorded any more, and nothing is kept of it."""
        self._stop()
        driver = self.on.enter()
        driver.graph_destroy(driver.end_capture(self.stream.handle))

    def _stop(self) -> None:
        _thread.capture, self.memory.pool.number = None, DEFAULT
        self.on.enter().relax(False)
        for generator, block in self.before.items():
            generator._position(block)

    # ---- random numbers

    def draw(self, stream: Any, count: int) -> int:
        """The address where a draw of so many numbers finds its key and its block."""
        address = self._draw(stream, 0)
        self.blocks[self.streams.index(stream)] += -(-count // 4)
        return address

    def draws_of_call(self, offsets: list[tuple[Any, int]], moved: list[tuple[tuple[Any, int], int]]) -> list[int]:
        """Such addresses for the draws of a compiled call, which moves its generators on itself.

        Args:
            offsets: of each draw the generator, and how many blocks it is behind the beginning of the call
            moved: of each generator, and where it was before the call, how many blocks the call takes
        """
        addresses = [self._draw(stream, offset) for stream, offset in offsets]
        for (stream, start), blocks in moved:
            self.before.setdefault(stream, start)
            self.blocks[self._which(stream)] += blocks
        return addresses

    def _draw(self, stream: Any, offset: int) -> int:
        """The address of a draw that is so many blocks behind those of this stream until now."""
        if len(self.control.draws) == DRAWS:
            raise CaptureError(message("cuda", f"a graph draws more than {DRAWS} times"))
        which = self._which(stream)
        self.control.draws.append((which, self.blocks[which] + offset))
        return self.control.draw(len(self.control.draws) - 1)

    def _which(self, stream: Any) -> int:
        if stream not in self.streams:
            self.streams.append(stream)
            self.blocks.append(0)
        return self.streams.index(stream)

    def drawn(self, stream: Stream) -> None:
        """Before a launch: draws begin where the generators are now, which move on."""
        starts = [(generator, generator._block) for generator in self.streams]
        self.control.write(stream, (), starts)
        for (generator, start), blocks in zip(starts, self.blocks, strict=True):
            generator._position(start + blocks)


def capturing() -> Capture | None:
    """What this thread records now, by `CUDAGraph` or `graph`; None if nothing."""
    return getattr(_thread, "capture", None)
