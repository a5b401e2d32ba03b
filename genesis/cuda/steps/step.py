"""A program as one call on a GPU: `DeviceStep`.

The first call launches one kernel after the other, and notes what memory the calls between them ask for. The second
records the same launches as a graph, in memory that has its place from then on (see `genesis.cuda.memory.sequence`), and
from then on a call is:

    control block     numbers of the host, and where draws begin    one copy
    arguments         to where the graph reads them                 a copy each
    the graph                                                       one launch
    results           to memory of their own                        a copy each

Parameters, and what else is captured, are read and written where they are. A step in which the CPU computes something
stays as in the first call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import GraphError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.kernels.draws import Draw
from genesis.cuda.launch.several import several
from genesis.cuda.memory.allocator import allocator
from genesis.cuda.memory.sequence import Sequence as Memory
from genesis.cuda.memory.sequence import crosses, taking
from genesis.cuda.recorded.control import Control
from genesis.cuda.recorded.executable import Executable
from genesis.cuda.runtime import connection
from genesis.cuda.runtime.errors import CudaError, StickyError
from genesis.cuda.runtime.streams import Stream, current
from genesis.cuda.steps.halves import narrowed
from genesis.cuda.steps.regions import Lowered, copy_launch
from genesis.cuda.steps.together import together
from genesis.jit.arguments import Var
from genesis.jit.lowering.compiled import Where
from genesis.jit.lowering.layouts import dense, is_dense
from genesis.jit.lowering.phases import Phase
from genesis.jit.lowering.plan import planned
from genesis.jit.lowering.step import Step
from genesis.jit.program import Program, op_of
from genesis.jit.replay import Plan as Replay
from genesis.jit.storage import Region

RECORDINGS = 8  # graphs of a step whose captured tensors move: then it stays without


class DeviceStep(Step):
    """A program on a GPU; see `genesis.jit.lowering.step.Step`.

    Attributes:
        phases: what is launched or called, in order
        why: why there is no graph, if there is none
        graphs: how many were recorded
    """

    def __init__(self, program: Program, device: Any) -> None:
        self.program = program = narrowed(program)
        self.device = device
        self._borders()
        self.compiled = None
        self.lowered = Lowered(program, device)
        every = (*self.takes, *[var for _, var in self.lowered.fed])
        self.memory_plan = planned(
            program,
            together(self.lowered.phases, program),
            every,
            self.returns,
            self.targets,
            copy_launch,
            may_fail=False,
        )
        self.passed = self._passed_on()
        copied = {Where("result", i) for i in self.passed}
        self.phases = tuple([p for p in self.memory_plan.phases if not self._gives(p, copied)])
        self.written = set(self.targets.values())
        self.arguments = len(program.arguments)
        self.why, self.graphs = "", 0
        self.small = False  # a graph's results are copied to memory that it does not know
        self._calls = {id(phase): _Called(phase) for phase in self.phases if not phase.stages}
        self._ready: _Ready | None = None

    def _passed_on(self) -> dict[int, int]:
        """The results that are arrays of calls as they are, by index, with their number among these: nothing copies them."""
        out: dict[int, int] = {}
        for i, var in enumerate(self.returns):
            region = self.program.regions.get(var) or Region(var, 0, strides_of(var.spec))
            where, root = self.memory_plan.where.get(region.root), region.root.spec
            seen = Spec(var.spec.shape, var.spec.dtype, var.spec.device, region.strides)
            whole = math.prod(seen.shape) == math.prod(root.shape) and seen.dtype == root.dtype and not region.offset
            if where is not None and where.kind == "host" and whole and is_dense(root) and is_dense(seen):
                out |= {i: where.index} if where.index not in out.values() else {}
        return out

    def _gives(self, phase: Phase, targets: set[Where]) -> bool:
        """Whether a phase is the copy to one of these."""
        return any([self.memory_plan.where[v] in targets for stage in phase.stages for v in stage.operands[1:2]])

    def explain(self, arrays: Any = None, numbers: Any = (), starts: Any = ()) -> Any:
        """What the step does: its launches, what they read and write, its memory, and whether it is one graph."""
        from genesis.cuda.steps.told import Told

        return Told(self)

    def run(
        self, arrays: Sequence[Any], numbers: Sequence[float] = (), starts: Sequence[tuple[Any, int]] = ()
    ) -> Sequence[Any]:
        """See `genesis.jit.lowering.step.Step.run`."""
        ready = self._ready
        if ready is None or ready.on.driver is not connection.driver():
            ready = self._ready = _Ready(self)
        return ready.run(list(arrays), numbers, starts)


class _Called:
    """A call of an op as in eager mode, prepared for it."""

    def __init__(self, phase: Phase) -> None:
        (self.call,) = phase.calls
        self.inputs = tuple(dict.fromkeys(self.call.inputs))
        self.replay = Replay(Program("call", (self.call,), self.inputs, results=self.call.outs))

    def run(self, given: Sequence[Any]) -> list[CudaArray]:
        """The arrays of its results, laid out as their specs say, in memory of their own."""
        with no_grad():
            values = self.replay.run(list(given), [])
        owners = {x._array.storage for x in given if isinstance(getattr(x, "_array", None), CudaArray)}
        return [own(values[self.replay.slots[v]]._array, v.spec, owners) for v in self.call.outs]


def own(array: Any, spec: Spec, owners: set[Any]) -> CudaArray:
    """An array with the strides of a spec that shares no memory with others."""
    if array.strides == strides_of(spec) and array.storage not in owners:
        return array  # type: ignore[no-any-return]
    out = made(spec, array.device)
    MEMORY.assign(out, array)
    return out


def made(spec: Spec, device: Any) -> CudaArray:
    """A new array of a spec, without gaps."""
    out = MEMORY.empty(spec.shape, spec.dtype, device)
    out.strides = strides_of(dense(spec))
    return out


class _Ready:
    """A step with its memory on a device, and its graph."""

    def __init__(self, step: DeviceStep) -> None:
        self.step, program, lowered = step, step.program, step.lowered
        self.control = Control(
            step.device, len(program.numbers), [(s.index, s.offset) for _, s in lowered.draws.values()]
        )
        self.draws = {var: self.control.draw(i) for i, var in enumerate(lowered.draws)}
        self.on = self.control.array.on
        self.arena = MEMORY.empty((max(step.memory_plan.size, 1),), np.dtype(np.uint8), step.device)
        self.constants = [MEMORY.from_host(np.ascontiguousarray(a), step.device) for _, a in program.constants]
        self.fed = [made(var.spec, step.device) for _, var in lowered.fed]
        self.staged: dict[int, CudaArray] = {}  # what the graph reads in the place of arguments
        self.results: list[CudaArray] = []
        self.fixed: tuple[int, ...] = ()  # addresses of all other arrays that the graph knows
        self.numbers: Sequence[float] = ()
        self.memory: Memory | None = None
        self.graph: Executable | None = None
        self.stream: Stream | None = None

    # ---- a call

    def run(self, arrays: list[Any], numbers: Sequence[float], starts: Sequence[tuple[Any, int]]) -> Sequence[Any]:
        stream = self._stream(arrays)
        self.numbers = numbers
        self.control.write(stream, numbers, starts)
        self._feed(arrays, starts)
        staged = [] if self.step.why else self._stage(arrays)
        if self.step.why:
            return self._directly(arrays)
        if self.graph is not None:
            self.graph.launch(stream)
        elif self.memory is None or not self._record(staged, stream):
            self._first(staged)
        return self._delivered(arrays)

    def _stream(self, arrays: list[Any]) -> Stream:
        """The current stream, behind that of the last call: both use the same memory."""
        stream = current(self.on)
        if self.stream is not None and self.stream is not stream:
            stream.wait_stream(self.stream)
        self.stream = stream
        mine = (self.control.array, self.arena, *self.constants, *self.fed, *self.staged.values(), *self.results)
        used(*mine, *[a for a in arrays if isinstance(a, CudaArray)])
        if self.graph is not None:
            self.graph.memory.used_on(stream)
        return stream

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

    def _directly(self, arrays: list[Any]) -> list[CudaArray]:
        """One launch after the other, where the arrays are."""
        takes = list(arrays)
        for i in self._overlapping(takes):
            takes[i] = _without_gaps(takes[i], self.step.takes[i].spec)
        results = [made(v.spec, self.step.device) for v in self.step.returns]
        self._work(takes, results)
        return results

    # ---- with a graph

    def _stage(self, arrays: list[Any]) -> list[Any]:
        """The arrays that the graph reads and writes; another graph, if some of them are not where they were."""
        step = self.step
        fixed = tuple([a.address for a in arrays[step.arguments :]])
        if fixed != self.fixed:
            if self.graph is not None and self.step.graphs >= RECORDINGS:
                step.why = "captured tensors, or gradients, are elsewhere again and again"
            self.graph = self.memory = None
            through = {*range(step.arguments), *self._overlapping(arrays)}
            self.staged = {
                i: made(step.takes[i].spec, step.device) for i in sorted(through) if isinstance(arrays[i], CudaArray)
            }
            self.results = [made(v.spec, step.device) for v in step.returns]
            self.fixed = fixed
        elif not self.results and not self.staged:
            self.staged = {
                i: made(v.spec, step.device)
                for i, v in enumerate(step.takes[: step.arguments])
                if isinstance(arrays[i], CudaArray)
            }
            self.results = [made(v.spec, step.device) for v in step.returns]
        out = list(arrays)
        for i, there in self.staged.items():
            MEMORY.assign(there, arrays[i])
            out[i] = there
        return out

    def _first(self, staged: list[Any]) -> None:
        """A call without a graph, that notes what memory is asked for."""
        memory = Memory(allocator(self.on))
        with taking(memory):
            self._work(staged, self.results)
        if memory.crossed:
            self.step.why = f"the CPU has a part in {memory.crossed}"
        else:
            self.memory = memory

    def _record(self, staged: list[Any], stream: Stream) -> bool:
        """Record the same as a graph, and launch it; whether that could be done."""
        assert self.memory is not None
        planned_memory = self.memory.planned()
        driver = self.on.enter()
        driver.begin_capture(stream.handle)
        try:
            with taking(planned_memory):
                self._work(staged, self.results)
            graph = driver.end_capture(stream.handle)
        except StickyError:
            raise
        except CudaError as error:
            self._stopped(driver, stream)
            self.step.why = str(error).splitlines()[0]
            return False
        except BaseException:
            self._stopped(driver, stream)
            raise
        self.graph = Executable(self.on, graph, planned_memory, [a for a in staged if isinstance(a, CudaArray)])
        self.step.graphs += 1
        self.graph.launch(stream)
        return True

    def _stopped(self, driver: Any, stream: Stream) -> None:
        """Nothing is recorded any more."""
        with suppress(CudaError):
            driver.graph_destroy(driver.end_capture(stream.handle))

    def _delivered(self, arrays: list[Any]) -> list[CudaArray]:
        """The results in memory of their own; what was written to goes back."""
        step = self.step
        for i, there in self.staged.items():
            if step.takes[i] in step.written:
                MEMORY.assign(arrays[i], there)
        return [_copied(result) for result in self.results]

    def _overlapping(self, arrays: list[Any]) -> set[int]:
        """Arrays that are read, and overlap one that is written to.

        Raises:
            GraphError: two that are written to overlap
        """
        step, out = self.step, set[int]()
        writes = [i for i, v in enumerate(step.takes) if v in step.written]
        for i, array in enumerate(arrays):
            others = [j for j in writes if j != i and isinstance(array, CudaArray) and share(array, arrays[j])]
            if others and i in writes:
                shape = [("one of them", array.shape)]
                raise GraphError(message("compile", "two tensors that are written to overlap", shape))
            out |= {i} if others else set()
        return out

    # ---- the work

    def _work(self, takes: list[Any], results: list[CudaArray]) -> None:
        """All launches and calls, in order."""
        hosts: dict[int, CudaArray] = {}
        bases: dict[str, Any] = {
            "outside": [*takes, *self.fed],
            "result": results,
            "constant": self.constants,
            "host": hosts,
        }
        stream = current(self.on).handle
        last, passed = self._last_uses(), {host: i for i, host in self.step.passed.items()}
        for number, phase in enumerate(self.step.phases):
            if len(phase.stages) > 1:
                self._together(phase, bases, stream)
            for stage in phase.stages if len(phase.stages) == 1 else ():
                kernel: Any = stage.kernel
                addresses = [self._address(var, bases) for var in stage.operands]
                if isinstance(kernel.kernel, Draw):
                    draw: Draw = kernel.kernel
                    draw.draw(self.on, stream, addresses[0], kernel.count, self.draws[stage.operands[0]])
                else:
                    kernel.kernel.launch(self.on, stream, addresses, kernel.count)
            if not phase.stages:
                called = self.step._calls[id(phase)]
                given = [self._value(var, bases) for var in called.inputs]
                outs = called.run(given)
                del given
                for var, array in zip(called.call.outs, outs, strict=True):
                    index = self.step.memory_plan.where[var].index
                    hosts[index] = array
                    if index in passed:
                        results[passed[index]] = self._as_result(passed[index], array)
                del outs
            for index in last.get(number, ()):
                hosts.pop(index, None)

    def _together(self, phase: Phase, bases: dict[str, Any], stream: int) -> None:
        """One launch of a loop over many tensors."""
        launches: list[Any] = [stage.kernel for stage in phase.stages]
        addresses = [[self._address(var, bases) for var in stage.operands] for stage in phase.stages]
        kernel = several(launches[0].kernel, len(launches))
        kernel.launch(self.on, stream, addresses, [launch.count for launch in launches])

    def _as_result(self, index: int, array: CudaArray) -> CudaArray:
        """The array of a call with the shape of the result that it is."""
        spec = self.step.returns[index].spec
        return CudaArray(array.storage, array.address, tuple(spec.shape), spec.dtype, strides_of(dense(spec)))

    def _last_uses(self) -> dict[int, list[int]]:
        """The results of calls that are over after each phase."""
        where, regions, last = self.step.memory_plan.where, self.step.program.regions, dict[int, int]()
        for number, phase in enumerate(self.step.phases):
            used_here = [v for stage in phase.stages for v in stage.operands]
            used_here += [v for call in phase.calls for v in (*call.inputs, *call.outs)] if not phase.stages else []
            roots = [regions[v].root if v in regions else v for v in used_here]
            last |= {where[v].index: number for v in roots if v in where and where[v].kind == "host"}
        out: dict[int, list[int]] = {}
        for index, number in last.items():
            out.setdefault(number, []).append(index)
        return out

    def _address(self, var: Var, bases: dict[str, Any]) -> int:
        where: Where = self.step.memory_plan.where[var]
        if where.kind == "arena":
            return int(self.arena.address) + where.index
        if where.kind == "number":
            return self.control.number(where.index)
        return int(bases[where.kind][where.index].address) + where.offset

    def _value(self, var: Var, bases: dict[str, Any]) -> Any:
        """A value as a tensor on its memory, for a call."""
        region = self.step.program.regions.get(var) or Region(var, 0, strides_of(var.spec))
        where: Where = self.step.memory_plan.where[region.root]
        if where.kind == "number":
            return self._number(where.index)
        array = self.arena if where.kind == "arena" else bases[where.kind][where.index]
        address = self._address(region.root, bases) + region.offset
        return wrap(CudaArray(array.storage, address, tuple(var.spec.shape), var.spec.dtype, region.strides))

    def _number(self, index: int) -> float:
        """A number of the host that an op is called with: that of this call."""
        if self.memory is not None:
            raise CudaError(message("cuda", "an op is called with a number of the host"))
        crosses("a number that an op is called with")
        return float(self.numbers[index])


def _without_gaps(array: CudaArray, spec: Spec) -> CudaArray:
    """A copy laid out as `made` does."""
    out = made(spec, array.device)
    MEMORY.assign(out, array)
    return out


def _copied(array: CudaArray) -> CudaArray:
    """A copy of what `made` gave: it has no gaps, whatever the order of its dimensions."""
    on = array.storage.on
    out = empty(on, array.shape, array.dtype, array.strides)
    count = array.nbytes
    if count:
        on.enter().copy(out.address, array.address, count, used(out, array).handle)
    return out


def share(a: CudaArray, b: CudaArray) -> bool:
    """Whether two arrays may have a byte in common."""
    (low, high), (begin, end) = a.extent(), b.extent()
    return a.address + low < b.address + end and b.address + begin < a.address + high
