"""What a step on a GPU does, as text and as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from genesis.arrays.spec import Spec
from genesis.cuda.kernels.lowering import PROCESSORS
from genesis.jit.arguments import Var
from genesis.jit.lowering.compiled import title_of
from genesis.jit.program import Call


@dataclass(frozen=True, slots=True)
class Entry:
    """A launch, or a call of an op: what it computes, the bytes that it reads and writes, its multiplications and
    additions, if it is a product or a convolution, and how many programs a launch has.
    """

    title: str
    launch: bool
    read: int
    written: int
    flops: int
    why: str
    programs: int = 0

    def seconds(self, bandwidth: float, rate: float, processors: int) -> float:
        """How long it takes at least, if a processor has its share of the bandwidth and a program is one processor's."""
        share = min(self.programs / processors, 1.0) if self.launch else 1.0
        return max((self.read + self.written) / (bandwidth * share), self.flops / rate)


class Told:
    """The launches and calls of a step; printed, a table.

    Attributes:
        entries: in order
        arena: bytes of memory for what nothing outside sees
    """

    def __init__(self, step: Any) -> None:
        self.step = step
        self.entries = tuple([entry_of(step, phase) for phase in step.phases])
        self.arena = step.memory_plan.size

    @property
    def launches(self) -> int:
        """Kernels and calls: each of the latter is a launch, or more."""
        return len(self.step.phases)

    @property
    def moved(self) -> int:
        """Bytes that are read and written in all."""
        return sum([e.read + e.written for e in self.entries])

    @property
    def flops(self) -> int:
        return sum([e.flops for e in self.entries])

    def seconds(self, bandwidth: float, rate: float, processors: int = PROCESSORS) -> float:
        """How long it takes at least: each launch as long as its bytes, or its operations, whichever are longer."""
        return sum([e.seconds(bandwidth, rate, processors) for e in self.entries])

    def __str__(self) -> str:
        step = self.step
        state = step.why or ("one graph" if step.graphs else "recorded as a graph at the second call")
        lines = [
            f"{step.program.name} on {step.device}: {self.launches} launches, {self.moved / 1e6:.3f} MB, arena {self.arena} bytes; {state}"
        ]
        for e in self.entries:
            kind = "kernel" if e.launch else "call"
            lines.append(f"  {kind:6} {e.read / 1e6:9.3f} MB in {e.written / 1e6:9.3f} MB out  {e.title}  ({e.why})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def entry_of(step: Any, phase: Any) -> Entry:
    read: set[Var] = set()
    written: set[Var] = set()
    for stage in phase.stages:
        written |= {stage.operands[i] for i in stage.kernel.writes}
        read |= {v for i, v in enumerate(stage.operands) if i not in stage.kernel.writes}
    if not phase.stages:
        read, written = set(phase.calls[0].inputs), set(phase.calls[0].outs)
    flops = sum([operations(call) for call in phase.calls if len(call.inputs) > 1])
    launches: list[Any] = [stage.kernel for stage in phase.stages]
    programs = sum([launch.kernel.grid(launch.count)[0] for launch in launches])
    reads = _bytes(read) - _unread(phase.calls)
    return Entry(title_of(phase.calls), bool(phase.stages), reads, _bytes(written), flops, phase.why, programs)


def _unread(calls: Sequence[Call]) -> int:
    """Bytes of tables behind those that indices name."""
    read: dict[Var, int] = {}
    for call in calls:
        if call.op == "take_index":
            read[call.args[0]] = read.get(call.args[0], 0) + size_of(call.outs[0].spec)
    return sum([max(size_of(table.spec) - some, 0) for table, some in read.items()])


def _bytes(values: set[Var]) -> int:
    return sum([size_of(v.spec) for v in values])


def size_of(spec: Spec) -> int:
    """Bytes of the elements; what is expanded is there once."""
    strides = spec.strides or (1,) * len(spec.shape)
    return math.prod([n for n, s in zip(spec.shape, strides, strict=True) if s or not n]) * spec.dtype.itemsize


def operations(call: Call) -> int:
    """Multiplications and additions of a product of matrices or a convolution."""
    x, y, out = *[v.spec.shape for v in call.inputs[:2]], call.outs[0].spec.shape  # type: ignore[misc]
    if call.op in ("matmul", "matmul_tn", "linear"):
        return 2 * (math.prod(x[:-1]) if call.op == "matmul_tn" else x[-1]) * math.prod(out)
    if call.op == "convolution_weight":  # each place of the gradient, for each weight that made it
        return 2 * math.prod(y) * math.prod(out[1:])
    if call.op == "convolution":
        return 2 * math.prod(x if call.args[6] else out) * math.prod(y[1:])
    return 0
