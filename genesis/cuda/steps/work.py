"""All that a step on a GPU does, in order: launches of kernels, and calls of ops as in eager mode, in the memory of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, strides_of
from genesis.base.errors import GraphError, message
from genesis.core.graph.modes import no_grad
from genesis.core.graph.tensor import wrap
from genesis.cuda.arrays import MEMORY, CudaArray
from genesis.cuda.kernels.draws import Draw
from genesis.cuda.kernels.padded import gaps, padded
from genesis.cuda.launch import mixed
from genesis.cuda.launch.tuning import of_step, wanted_in_steps
from genesis.cuda.memory.sequence import Sequence as Memory
from genesis.cuda.memory.sequence import crosses
from genesis.cuda.recorded.control import Control
from genesis.cuda.runtime.errors import CudaError
from genesis.cuda.runtime.streams import current
from genesis.cuda.steps.apart import is_apart
from genesis.jit.arguments import Var
from genesis.jit.lowering.compiled import Where
from genesis.jit.lowering.layouts import dense
from genesis.jit.lowering.phases import Phase
from genesis.jit.program import Program
from genesis.jit.replay import Plan as Replay
from genesis.jit.storage import Region


class Called:
    """A call of an op as in eager mode, prepared for it."""

    def __init__(self, phase: Phase) -> None:
        (self.call,) = phase.calls
        self.inputs = tuple(dict.fromkeys(self.call.inputs))
        self.replay = Replay(Program("call", (self.call,), self.inputs, results=self.call.outs))
        self.apart = any([is_apart(v.spec) for v in self.call.outs])
        self.fastest: bool | None = None  # as it was wanted in the first call

    def run(self, given: Sequence[Any]) -> list[CudaArray]:
        """The arrays of its results, laid out as their specs say, in memory of their own."""
        if self.fastest is None:
            self.fastest = wanted_in_steps()
        with no_grad(), gaps(self.apart), of_step(self.fastest):
            values = self.replay.run(list(given), [])
        owners = {x._array.storage for x in given if isinstance(getattr(x, "_array", None), CudaArray)}
        return [own(values[self.replay.slots[v]]._array, v.spec, owners) for v in self.call.outs]


def own(array: Any, spec: Spec, owners: set[Any]) -> CudaArray:
    """An array with the strides of a spec that shares no memory with others."""
    if array.strides == strides_of(spec) and array.storage not in owners:
        return array  # type: ignore[no-any-return]
    out = padded(spec.shape, spec.dtype, array.device) if is_apart(spec) else made(spec, array.device)
    MEMORY.assign(out, array)
    return out


def made(spec: Spec, device: Any) -> CudaArray:
    """A new array of a spec, without gaps."""
    return MEMORY.empty_in_order(spec.shape, spec.dtype, device, strides_of(dense(spec)))


class Work:
    """What a step does, with its memory on a device.

    Args:
        constants: those of its program, if they are there already
    """

    def __init__(self, step: Any, constants: list[CudaArray] | None = None) -> None:
        self.step, program, lowered = step, step.program, step.lowered
        self.control = Control(
            step.device, len(program.numbers), [(s.index, s.offset) for _, s in lowered.draws.values()]
        )
        self.draws = {var: self.control.draw(i) for i, var in enumerate(lowered.draws)}
        self.on = self.control.array.on
        self.arena = MEMORY.empty((max(step.memory_plan.size, 1),), np.dtype(np.uint8), step.device)
        there = [a for _, a in program.constants] if constants is None else []
        self.constants = constants or [MEMORY.from_host(np.ascontiguousarray(a), step.device) for a in there]
        self.fed = [made(var.spec, step.device) for _, var in lowered.fed]
        self.numbers: Sequence[float] = ()
        self.memory: Memory | None = None  # what the calls ask for, when that is known

    def directly(self, arrays: list[Any]) -> list[CudaArray]:
        """Do it where the arrays are, one launch after the other; returns its results."""
        takes = list(arrays)
        for i in self.overlapping(takes):
            takes[i] = _without_gaps(takes[i], self.step.takes[i].spec)
        results = self.results()
        self.work(takes, results)
        return results

    def results(self) -> list[CudaArray]:
        """New arrays for its results."""
        return [made(v.spec, self.step.device) for v in self.step.returns]

    def work(self, takes: list[Any], results: list[CudaArray]) -> None:
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
        """One launch of a loop over many tensors, or of kernels that do not wait for each other."""
        launches: list[Any] = [stage.kernel for stage in phase.stages]
        kernels, counts = [launch.kernel for launch in launches], [launch.count for launch in launches]
        addresses = [[self._address(var, bases) for var in stage.operands] for stage in phase.stages]
        mixed.launch(self.on, stream, kernels, addresses, counts)

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

    def overlapping(self, arrays: list[Any]) -> set[int]:
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


def _without_gaps(array: CudaArray, spec: Spec) -> CudaArray:
    """A copy laid out as `made` does."""
    out = made(spec, array.device)
    MEMORY.assign(out, array)
    return out


def share(a: CudaArray, b: CudaArray) -> bool:
    """Whether two arrays may have a byte in common."""
    (low, high), (begin, end) = a.extent(), b.extent()
    return a.address + low < b.address + end and b.address + begin < a.address + high
