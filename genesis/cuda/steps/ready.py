"""Calls of a step on a GPU: the first does its work and notes what memory it asks for, the others launch graphs of it.

A graph writes its results where it always does. So there are two, which take turns: what a call gave stays as it is while
the next call's graph writes to other memory, and a graph is launched again when nobody has its results any more. Results
that somebody keeps for longer are copied from then on.

Arguments are copied to where the graphs read them. After calls enough in which they were in the same memory, as a batch is
that is written there each time, other graphs read them where they are, until they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import eq, is_
from sys import getrefcount
from typing import Any

import numpy as np

from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.launch.noted import noting
from genesis.cuda.launch.workers import prepare
from genesis.cuda.memory.allocator import allocator
from genesis.cuda.memory.sequence import Sequence as Memory
from genesis.cuda.memory.sequence import taking
from genesis.cuda.recorded.executable import Executable
from genesis.cuda.recorded.zeros import zeros_first
from genesis.cuda.runtime.errors import CudaError, RaceError, StickyError
from genesis.cuda.runtime.streams import Stream, current
from genesis.cuda.steps.work import Work, made
from genesis.jit.program import op_of

TURNS = 2  # graphs
STAYS = 16  # calls with arguments in the same memory, behind which they are read there
RECORDINGS = 8  # graphs of a step whose captured tensors move: then it stays without


class _Recorded:
    """A graph, and the results that it writes: each call of it gives the same arrays."""

    def __init__(self, graph: Executable, results: list[CudaArray]) -> None:
        self.graph, self.results = graph, results
        self.storages = [result.storage for result in results]  # which views of the results have, too
        self.counted = [*results, *self.storages]
        self.alone = self._counts()

    def _counts(self) -> list[int]:
        return list(map(getrefcount, self.counted))

    def is_free(self) -> bool:
        """Whether nobody has a result."""
        return self._counts() == self.alone

    def kept(self) -> set[int]:
        """The results that somebody has."""
        others = [i for i, (now, alone) in enumerate(zip(self._counts(), self.alone, strict=True)) if now != alone]
        return {i % len(self.results) for i in others}

    def wait(self, stream: Stream) -> None:
        """Let a stream come after what others did with the results."""
        for_others = [storage for storage in self.storages if storage.block.foreign]
        if for_others:  # also where the stream is not the one that they were made on
            others: set[Any] = {other for storage in for_others for other in (storage.stream, *storage.block.foreign)}
            for other in others:
                stream.wait_stream(other)


class Ready(Work):
    """A step with its memory on a device, and its graphs."""

    def __init__(self, step: Any) -> None:
        super().__init__(step)
        self.staged: dict[int, CudaArray] = {}  # what the graphs read in the place of arguments
        self.here: dict[int, tuple[int, Any]] = {}  # those that they read where they are: addresses and strides
        self.given: list[int] = []  # the addresses of the arguments of the last call
        self.stayed = 0  # calls in which they were the same; below 0: they were not, once
        self.fixed: tuple[int, ...] | None = None  # addresses of all other arrays that they know
        self.known: list[Any] | None = None  # these arrays in the last call, if that launched a graph
        self.graphs: list[_Recorded] = []  # the one that was launched last is the last
        self.copied: set[int] = set()  # results that are copied
        self.stream: Stream | None = None
        self.prepared = False
        on_device = all([v.spec.device.type == "cuda" for v in step.takes])
        self.same = eq if on_device else _same  # arrays of a device are equal if they are the same ones

    # ---- a call

    def run(self, arrays: list[Any], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]) -> Sequence[Any]:
        step, stream = self.step, current(self.on)
        captured = arrays[step.arguments :]
        again = self.known is not None and stream is self.stream and self.same(captured, self.known)
        if self.stayed >= 0 and not step.why:
            again = self._watch(arrays, stream) and again
        if not again:
            self._uses(stream, arrays)
        self.numbers = numbers
        self.control.write(stream, numbers, starts)
        if self.fed:
            self._feed(arrays, starts)
        if not again and not step.why:
            self._settle(arrays)
        if step.why:
            self._prepare(arrays)
            return self.directly(arrays)
        staged = self._stage(arrays, stream)
        results = self._launched(staged, stream) if self.memory is not None else None
        if results is None:
            results = self._first(staged)
        self.known = captured if self.graphs else None
        for i, there in self.staged.items():
            if step.takes[i] in step.written:
                MEMORY.assign(arrays[i], there)
        return results

    def _uses(self, stream: Stream, arrays: list[Any]) -> None:
        """Let the current stream use all memory, behind that of the last call: both use the same."""
        if self.stream is not None and self.stream is not stream:
            stream.wait_stream(self.stream)
        self.stream = stream
        results = [result for recorded in self.graphs for result in recorded.results]
        mine = (self.control.array, self.arena, *self.constants, *self.fed, *self.staged.values(), *results)
        used(*mine, *[a for a in arrays if isinstance(a, CudaArray)])
        for recorded in self.graphs:
            recorded.graph.memory.used_on(stream)

    def _feed(self, arrays: list[Any], starts: Sequence[tuple[Any, int]]) -> None:
        """What the CPU draws, and arguments of the host, to the device."""
        for (source, _), target in zip(self.step.lowered.fed, self.fed, strict=True):
            if isinstance(source, int):
                MEMORY.assign(target, MEMORY.from_host(arrays[source], target.device))
                continue
            at, *options = source.args
            generator, start = starts[at.index]
            generator._position(start + at.offset)
            drawn = np.asarray(op_of(source).kernel(generator, *options))
            MEMORY.assign(target, MEMORY.from_host(drawn, target.device))

    # ---- with a graph

    def _settle(self, arrays: list[Any]) -> None:
        """Other graphs, if captured arrays are not where they were."""
        step = self.step
        fixed = tuple([a.address for a in arrays[step.arguments :]])
        if fixed == self.fixed:
            return
        if self.graphs and step.graphs >= RECORDINGS:
            step.why = "captured tensors, or gradients, are elsewhere again and again"
        self.graphs, self.memory, self.here, self.given = [], None, {}, []
        through = {*range(step.arguments), *(self.overlapping(arrays) if fixed else ())}
        self.staged = {
            i: made(step.takes[i].spec, step.device) for i in sorted(through) if isinstance(arrays[i], CudaArray)
        }
        self.fixed = fixed

    def _watch(self, arrays: list[Any], stream: Stream) -> bool:
        """See whether arguments stay in the same memory; False if the graphs are others from now on."""
        if self.here:
            for i, lying in self.here.items():
                array = arrays[i]
                if (array.address, array.strides) != lying:
                    break
                if array.storage.stream is not stream:
                    array.storage.used_on(stream)
            else:
                return True
            self.staged |= {i: made(self.step.takes[i].spec, self.step.device) for i in self.here}
            self.here, self.graphs, self.stayed = {}, [], -1
            return False
        now = [x.address for x in arrays[: self.step.arguments] if isinstance(x, CudaArray)]
        self.stayed = self.stayed + 1 if now == self.given or not self.given else -1
        self.given = now
        return self.stayed < STAYS or not self._read_there(arrays)

    def _read_there(self, arrays: list[Any]) -> bool:
        """Let other graphs read arguments where they are, those that nothing is written to; False if there are none."""
        step, others = self.step, self.overlapping(arrays)
        for i, there in list(self.staged.items()):
            stays = i < step.arguments and i not in others and step.takes[i] not in step.written
            if stays and arrays[i].strides == there.strides:
                self.here[i] = arrays[i].address, arrays[i].strides
                del self.staged[i]
        self.graphs, self.stayed = ([], 0) if self.here else (self.graphs, -1)
        return bool(self.here)

    def _stage(self, arrays: list[Any], stream: Stream) -> list[Any]:
        """The arrays that the graphs read and write, with the arguments in them."""
        if not self.staged:
            return arrays
        out = list(arrays)
        for i, there in self.staged.items():
            given, out[i] = arrays[i], there
            if given.strides == there.strides:  # without gaps, as that is
                _copy(there, given, stream)
            else:
                MEMORY.assign(there, given)
        return out

    def _first(self, staged: list[Any]) -> list[CudaArray]:
        """A call without a graph, that notes what memory is asked for."""
        memory, results = Memory(allocator(self.on)), self.results()
        self._prepare(staged)
        with taking(memory):
            self.work(staged, results)
        memory.over()
        if memory.crossed:
            self.step.why = f"the CPU has a part in {memory.crossed}"
        else:
            self.memory = memory
        return results

    def _prepare(self, takes: list[Any]) -> None:
        """Compile and build at once, by all processors, what the first call wants and would wait for one after the other."""
        if self.prepared or self.on.driver.emulated:
            return
        self.prepared = True
        with noting(self.on) as notes:
            self.work(list(takes), self.results())
        prepare(notes)

    def _launched(self, staged: list[Any], stream: Stream) -> list[CudaArray] | None:
        """The results of a graph whose last ones nobody has; None if nothing can be recorded."""
        recorded = self._free() or self._record(staged, stream)
        if recorded is None:
            return None
        recorded.wait(stream)
        recorded.graph.launch(stream)
        self.graphs.append(recorded)
        results = list(recorded.results)
        for i in self.copied:
            results[i] = _copied(results[i], stream)
        return results

    def _free(self) -> _Recorded | None:
        """A graph that can be launched, taken out."""
        for i, recorded in enumerate(self.graphs):
            if recorded.is_free():
                return self.graphs.pop(i)
        if len(self.graphs) == TURNS:
            self.copied |= self.graphs.pop(0).kept()
        return None

    def _record(self, staged: list[Any], stream: Stream) -> _Recorded | None:
        """Record the same as another graph; None if that cannot be done."""
        assert self.memory is not None
        memory, results = self.memory.planned(), self.results()
        driver = self.on.enter()
        driver.begin_capture(stream.handle)
        try:
            with taking(memory):
                self.work(staged, results)
            graph = driver.end_capture(stream.handle)
        except StickyError:
            raise
        except CudaError as error:
            self._stopped(driver, stream)
            if isinstance(error, RaceError):
                raise
            self.step.why = str(error).splitlines()[0]
            return None
        except BaseException:
            self._stopped(driver, stream)
            raise
        self.step.graphs += not self.graphs and not self.here
        kept = [a for i, a in enumerate(staged) if isinstance(a, CudaArray) and i not in self.here]
        shared = memory.over()
        zeros_first(driver, graph, shared.block.address, shared.front)
        return _Recorded(Executable(self.on, graph, shared, kept), results)

    def _stopped(self, driver: Any, stream: Stream) -> None:
        """Nothing is recorded any more."""
        with suppress(CudaError):
            driver.graph_destroy(driver.end_capture(stream.handle))


def _same(arrays: list[Any], others: list[Any]) -> bool:
    """Whether two lists are of the same arrays, of NumPy, too."""
    return all(map(is_, arrays, others))


def _copy(target: CudaArray, source: CudaArray, stream: Stream) -> None:
    """As the bytes lie there: both are without gaps, and alike."""
    for storage in (target.storage, source.storage):
        if storage.stream is not stream:
            storage.used_on(stream)
    if target.address != source.address and (count := target.nbytes):
        target.storage.on.enter().copy(target.address, source.address, count, stream.handle)


def _copied(array: CudaArray, stream: Stream) -> CudaArray:
    """A copy of what `made` gave: it has no gaps, whatever the order of its dimensions."""
    out = empty(array.storage.on, array.shape, array.dtype, array.strides)
    _copy(out, array, stream)
    return out
