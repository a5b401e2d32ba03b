"""A call of a step while the program records a graph of its own (`genesis.cuda.graph`): its launches become part of that.

A step's own graphs are not: what they read from the host is written there again before each call, by a copy, and in the
program's graph that copy would read what later calls write. So here all launches are told one after the other, in memory
of the recording. Draws begin where the generators are at each replay, as those of eager calls do; numbers of the host are
those of the recording, and the graph itself writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack
from typing import Any

from genesis.base.errors import message
from genesis.cuda.arrays import CudaArray, used
from genesis.cuda.recorded.capture import Capture
from genesis.cuda.recorded.control import WORD
from genesis.cuda.runtime.errors import CaptureError
from genesis.cuda.runtime.streams import current
from genesis.cuda.steps.ready import Ready
from genesis.cuda.steps.work import Work


class Inside(Work):
    """A call of a step that is recorded with what is around it.

    Args:
        ready: the step as it was called before
    """

    def __init__(self, ready: Ready, capture: Capture) -> None:
        super().__init__(ready.step, ready.constants)
        self.capture = capture
        capture.kept.append(self.constants)

    def run(self, arrays: list[Any], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]) -> list[CudaArray]:
        """The arrays of its results, which each replay writes."""
        used(self.control.array, self.arena, *self.constants, *[a for a in arrays if isinstance(a, CudaArray)])
        self.numbers = numbers
        self._write_numbers()
        self._draws(starts)
        return self.directly(arrays)

    def _write_numbers(self) -> None:
        driver, stream = self.on.enter(), current(self.on).handle
        for i, number in enumerate(self.numbers):
            for half, bits in enumerate(unpack("<II", pack("<d", number))):
                driver.fill(self.control.number(i) + half * WORD // 2, bits, WORD // 2, 1, stream)

    def _draws(self, starts: Sequence[tuple[Any, int]]) -> None:
        """Where draws find their places, in the control block of the recording."""
        drawn, generators = self.step.lowered.draws, [generator for generator, _ in starts]
        offsets = [(generators[stream.index], stream.offset) for _, stream in drawn.values()]
        addresses = self.capture.draws_of_call(offsets, list(zip(starts, self.step.program.streams, strict=True)))
        self.draws = dict(zip(drawn, addresses, strict=True))


def inside(step: Any, ready: Ready | None, capture: Capture) -> Inside:
    """What a call of a step is while a graph is recorded.

    Raises:
        RuntimeError: it was never called before; or no graph can hold it
    """
    name = step.program.name
    if ready is None:
        text = f"{name} is computed for the first time, while a graph is recorded"
        raise CaptureError(message("compile", text, hint="call it with such arguments before"))
    if step.program.counts:
        text = f"a graph would have the learning rate and the number of steps of its recording of {name}"
        raise CaptureError(message("compile", text, hint="call it outside of the graph: it is one launch already"))
    if step.lowered.fed:
        text = f"the CPU has a part in each call of {name}: it draws numbers, or has arguments there"
        raise CaptureError(message("compile", text, hint="call it outside of the graph"))
    return Inside(ready, capture)
