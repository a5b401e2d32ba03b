"""What a step does, for people: its phases with the lines that they come from, their time, and its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from genesis.base.text import Printed, Table, page
from genesis.jit.arguments import Var
from genesis.jit.lowering import pictures, trees
from genesis.jit.lowering.compiled import title_of
from genesis.jit.lowering.layouts import copy_as, size_of
from genesis.jit.lowering.listing import axes_of, listing
from genesis.jit.lowering.phases import Kernel, Phase, Stage, in_order
from genesis.jit.lowering.plan import Plan
from genesis.jit.lowering.step import Step
from genesis.jit.program import Call, Program
from genesis.kernels.llvm import native

HEAD = ("phase", "chunks", "along", "calls", "moved", "work", "time", "share", "lines", "why it is one")
ROUNDS = 15
_RIGHT = (0, 1, 4, 5, 6, 7)  # columns of numbers


class Entry(NamedTuple):
    """A phase: what it computes, how many bytes its operands have, operations with numbers, and seconds if measured."""

    phase: Phase
    ops: str
    lines: str
    moved: int
    work: int
    seconds: float | None


class Explanation(Printed):
    """The phases of a step, as text, and as a picture in notebooks.

    Attributes:
        entries: the phases in their order
        plan: where values lie
    """

    def __init__(self, program: Program, plan: Plan, seconds: Sequence[float] | None) -> None:
        self.program, self.plan = program, plan
        self.entries = [
            _entry(program, phase, None if seconds is None else seconds[i]) for i, phase in enumerate(plan.phases)
        ]

    @property
    def seconds(self) -> float | None:
        """Of all phases, if they were measured."""
        times = [entry.seconds for entry in self.entries if entry.seconds is not None]
        return sum(times) if times else None

    def _title(self) -> str:
        kernels = {stage.kernel.name for phase in self.plan.phases for stage in phase.stages}
        host = sum([not phase.stages and not phase.moves for phase in self.plan.phases])
        whole = "" if self.seconds is None else f", {pictures.time_text(self.seconds)}"
        return (
            f"{self.program.name}: {len(self.program.calls)} calls in {len(self.entries)} phases, {len(kernels)} kernels, "
            f"{host} left to the host, {pictures.bytes_text(self.plan.size)} of memory{whole}"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        whole = self.seconds or 1.0
        return [
            (
                str(i),
                str(entry.phase.chunks) if entry.phase.stages else entry.phase.moves or "host",
                _along(entry.phase),
                entry.ops,
                pictures.bytes_text(entry.moved),
                pictures.count_text(entry.work),
                "" if entry.seconds is None else pictures.time_text(entry.seconds),
                "" if entry.seconds is None else f"{entry.seconds / whole:.0%}",
                entry.lines,
                entry.phase.why,
            )
            for i, entry in enumerate(self.entries)
        ]

    def _table(self) -> Table:
        return Table(self._title(), HEAD, self._rows(), right=_RIGHT)

    def _text(self) -> str:
        rows = [HEAD, *self._rows()]
        widths = [min(48, max([len(row[k]) for row in rows])) for k in range(len(HEAD))]
        kept = [k for k in range(len(HEAD)) if any([row[k] for row in rows[1:]])]
        lines = [
            "  ".join([row[k].rjust(widths[k]) if k in _RIGHT else row[k].ljust(widths[k]) for k in kept]).rstrip()
            for row in rows
        ]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        return page(self._table()) + "".join([f"<figure>{svg}</figure>" for svg in self.pictures.values()])

    @property
    def kernels(self) -> dict[str, KernelWords]:
        """The kernels, by name: what each does as loops, in Python, as LLVM code, and as the processor's."""
        kernels = [stage.kernel for phase in self.plan.phases for stage in phase.stages]
        return {kernel.name: KernelWords(kernel) for kernel in kernels}

    @property
    def pictures(self) -> dict[str, str]:
        """As SVG: the memory over time; and where the phases were measured their times, and how near each of them is to
        what the fastest reach ("timeline", "roofline").
        """
        timed = {"timeline": pictures.timeline, "roofline": pictures.roofline} if self.seconds else {}
        return {"memory": pictures.memory(self.program, self.plan)} | {
            k: draw(self.entries) for k, draw in timed.items()
        }

    @property
    def svg(self) -> str:
        """The arena: time goes to the right (of phases, where they were measured), memory down; a value is a rectangle."""
        return pictures.memory(self.program, self.plan)


class KernelWords(Printed):
    """A kernel in all its words.

    Attributes:
        kernel: its data; ``kernel.python(arrays, chunk)`` runs it by Python, on flat NumPy arrays
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    @property
    def loops(self) -> str:
        """Its loops, as Python that runs (with the functions of `listing.functions`), of a kernel of many tensors those
        for one of them, and of a product of matrices those that its tiles stand for. An attention or a convolution is
        made of tiles, for which there is a generator of LLVM code, and no loops.
        """
        if self.kernel.nest is not None:
            return listing(self.kernel.nest, self.kernel.name)
        if self.kernel.listing is not None:
            return self.kernel.listing(self.kernel.name)
        maker = getattr(self.kernel.python, "__module__", "").rpartition(".")[2]
        return f"# {self.kernel.name}: tiles, written as LLVM code by genesis/jit/lowering/{maker or 'copies'}.py"

    @property
    def llvm(self) -> str:
        """Its code for LLVM."""
        return self.kernel.code

    @property
    def assembly(self) -> str:
        """Its code for this processor."""
        llvm: Any = native.binding()
        return str(native._machine(llvm).emit_assembly(llvm.parse_assembly(self.kernel.code)))

    def _text(self) -> str:
        return f"{self.loops}\n\n{self.llvm}\n; ---- for this processor\n{self.assembly}"


def explained(step: Step, seconds: Sequence[float] | None = None) -> Explanation:
    """See `Step.explain`."""
    return Explanation(step.program, step.plan, seconds)


def measured(
    step: Step, arrays: Sequence[Any], numbers: Sequence[float] = (), starts: Sequence[tuple[Any, int]] = ()
) -> Explanation:
    """A step explained, with the least times of its phases in some calls, on copies of arrays.

    Phases of one chunk are measured stage by stage.
    """
    phases: list[Phase] = []
    for phase in [phase for phase in step.plan.phases if phase.calls]:  # those that copy come anew
        serial = phase.stages if phase.chunks == 1 else ()
        phases += [replace(phase, stages=(stage,), calls=_calls_of(stage, phase)) for stage in serial] or [phase]
    single = Step(step.program, phases)
    copies = tuple([copy_as(array, var.spec) for array, var in zip(arrays, step.takes, strict=True)])
    times = [single._runner.timed(copies, numbers, starts) for _ in range(ROUNDS)]
    seconds = [0.0] * len(single.plan.phases)
    for (i, _), each in zip(in_order(single.plan.phases), zip(*times, strict=True), strict=True):
        seconds[i] += min(each)
    return Explanation(single.program, single.plan, seconds)


def _calls_of(stage: Stage, phase: Phase) -> tuple[Call, ...]:
    """The calls of a phase whose results a stage writes; all, if that can't be seen."""
    written = {stage.operands[k] for k in stage.kernel.writes}
    return tuple([call for call in phase.calls if written.intersection(call.outs)]) or phase.calls


def _along(phase: Phase) -> str:
    """The axis whose parts are the chunks: how long it is, and a part. (Tiles of matrices have two.)"""
    nests = [stage.kernel.nest for stage in phase.stages if stage.kernel.nest is not None and phase.chunks > 1]
    axes = [axis for nest in nests for axis in axes_of(nest.body) if axis.chunk is not None]
    rounds = [f"{phase.times} rounds"] if phase.times > 1 else []
    return ", ".join([*rounds, *dict.fromkeys([f"{axis.extent} by {axis.chunk}" for axis in axes])])


def _entry(program: Program, phase: Phase, seconds: float | None) -> Entry:
    operands = {var for stage in phase.stages for var in stage.operands}
    if not phase.stages:
        operands = {var for call in phase.calls for var in (*call.inputs, *call.outs)}
    calls = phase.calls
    sites = dict.fromkeys([call.site.short for call in calls if call.site is not None])
    return Entry(
        phase,
        title_of(calls),
        ", ".join([*sites][:3]) + (", ..." if len(sites) > 3 else ""),
        sum([size_of(var.spec) for var in operands]),
        sum([work_of(program, call) for call in calls]) if calls else 0,
        seconds,
    )


def work_of(program: Program, call: Call) -> int:
    """Operations with numbers: two for each product of two elements in products of matrices, attention (as without a
    mask) and convolutions, else one an element.
    """
    size, inputs = max([_elements(var) for var in call.outs]), list(call.inputs)
    if call.op in ("linear", "matmul", "bmm"):
        return 2 * size * inputs[0].spec.shape[-1]
    if call.op in ("matmul_tn", "matmul_tn.add"):
        return 2 * size * inputs[0].spec.shape[-2]
    if call.op == trees.OP:
        return 2 * size * sum([v.spec.shape[-2] for v in inputs[::2]])
    if call.op == "convolution":
        return 2 * size * math.prod(inputs[1].spec.shape[1:])
    if call.op.startswith("fused.scaled_dot_product_attention"):
        back = call.op.endswith(".backward")  # the gradient comes first; it makes five products, the forward two
        query, key = inputs[back : back + 2]
        return (10 if back else 4) * _elements(query) * key.spec.shape[-2]
    return max([size, *[_elements(var) for var in inputs if var.spec.device.type == "cpu"]])


def _elements(var: Var) -> int:
    return size_of(var.spec) // var.spec.dtype.itemsize
