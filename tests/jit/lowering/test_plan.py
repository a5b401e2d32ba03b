"""Memory of compiled steps: random programs, whose phases are kernels and calls of the host at random."""

from __future__ import annotations

import pytest
from by_elements import Stepped, phases

from genesis import jit
from genesis.jit.lowering.plan import size_of
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.testing import fuzz_traces

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def overlaps(plan):
    """The pairs of values of the arena that share bytes and live at the same time, but are not computed over each other."""
    values = [(var, plan.where[var].index, plan.lives[var]) for var in plan.lives if size_of(var.spec)]
    over = {
        (stage.operands[r], stage.operands[w])
        for phase in plan.phases
        for stage in phase.stages
        for r, w in stage.kernel.over
    }
    return [
        (a, b)
        for i, (a, at, life) in enumerate(values)
        for b, to, other in values[:i]
        if at < to + size_of(b.spec)
        and to < at + size_of(a.spec)
        and life.first <= other.last
        and other.first <= life.last
        and not (((a, b) in over and life.last == other.first) or ((b, a) in over and other.last == life.first))
    ]


@pytest.mark.parametrize("seed", range(60))
def test_random_steps_give_the_bits_of_calls(seed, monkeypatch):
    plans = []

    def stepped(graph):
        plan = graph.__dict__.get("_plan")
        if plan is None:
            step = Step(graph.program, phases(graph.program, seed))
            plans.append(step.plan)
            plan = graph.__dict__["_plan"] = Stepped(graph.program, step)
        return plan

    monkeypatch.setattr(jit.Graph, "plan", property(stepped))
    counts, wrong = fuzz_traces.check(1, seed)
    assert not wrong, counts
    for plan in plans:
        assert not overlaps(plan)
