"""A program as one call on a GPU: `DeviceStep`.

The first call launches one kernel after the other, and notes what memory the calls between them ask for. The second
records the same launches as a graph, in memory that has its place from then on (see `genesis.cuda.memory.sequence`), and
from then on a call is:

    control block     numbers of the host, and where draws begin    one copy
    arguments         to where the graph reads them                 a copy each
    the graph                                                       one launch

Results are where the graph wrote them: two graphs take turns, and one is launched again when nobody has its results any
more (`genesis.cuda.steps.ready`). Parameters, and what else is captured, are read and written where they are. A step in
which the CPU computes something, and one of few launches and large arguments, stays as in the first call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from genesis.arrays.spec import Spec, strides_of
from genesis.cuda.kernels.padded import MOVED
from genesis.cuda.recorded.capture import capturing
from genesis.cuda.runtime import connection
from genesis.cuda.steps.apart import apart
from genesis.cuda.steps.halves import narrowed
from genesis.cuda.steps.inside import inside
from genesis.cuda.steps.joined import joined
from genesis.cuda.steps.losses import with_gradients
from genesis.cuda.steps.lowered import Lowered
from genesis.cuda.steps.ready import Ready
from genesis.cuda.steps.regions import phases_of
from genesis.cuda.steps.stages import copy_launch
from genesis.cuda.steps.together import at_the_end, behind_readers, together
from genesis.cuda.steps.work import Called
from genesis.jit.lowering.compiled import Where
from genesis.jit.lowering.layouts import is_dense
from genesis.jit.lowering.phases import Phase
from genesis.jit.lowering.plan import planned
from genesis.jit.lowering.step import Step
from genesis.jit.program import Program
from genesis.jit.storage import Region

LAUNCH = 10e-6  # seconds of the host for a launch, beside an H200


class DeviceStep(Step):
    """A program on a GPU; see `genesis.jit.lowering.step.Step`.

    Attributes:
        phases: what is launched or called, in order
        why: why there is no graph, if there is none
        graphs: how many were recorded, of those that take turns one
    """

    def __init__(self, program: Program, device: Any) -> None:
        self.program = program = apart(with_gradients(joined(narrowed(program))))
        self.device = device
        self._borders()
        self.compiled = None
        self.lowered = Lowered(program, device)
        every = (*self.takes, *[var for _, var in self.lowered.fed])
        self.memory_plan = planned(
            program,
            self._ordered(program),
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
        self.why, self.graphs = self._why_no_graph(), 0
        self.small = False  # a graph's results are in memory that it knows: nobody gives it other memory
        self._calls = {id(phase): Called(phase) for phase in self.phases if not phase.stages}
        self._ready: Ready | None = None

    def _ordered(self, program: Program) -> list[Phase]:
        """The phases, with those that may be one launch as one, in an order in which little is copied."""
        phases = together(phases_of(self.lowered), program)
        return behind_readers(at_the_end(phases, program), program, self.targets)

    def _why_no_graph(self) -> str:
        """Arguments that are so large that copying them to where a graph reads them takes longer than the host for launches."""
        given = [v.spec for v in self.takes[: self.arguments] if v.spec.device.type == "cuda"]
        copied = sum([2 * math.prod(spec.shape) * spec.dtype.itemsize for spec in given])
        if copied / MOVED <= len(self.phases) * LAUNCH:
            return ""
        return f"{copied >> 21} MB of arguments are read where they are, by {len(self.phases)} launches"

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
        ready, capture = self._ready, capturing()
        if capture is not None:
            return inside(self, ready, capture).run(list(arrays), numbers, starts)
        if ready is None or ready.on.driver is not connection.driver():
            ready = self._ready = Ready(self)
        return ready.run(list(arrays), numbers, starts)
