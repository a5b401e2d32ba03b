"""Memory of compiled steps: random programs, whose phases are kernels and calls of the host at random."""

from __future__ import annotations

import pytest
from by_elements import Stepped, overlaps, phases

from genesis import jit
from genesis.jit.lowering.step import Step
from genesis.kernels.llvm import loops
from genesis.testing import fuzz_traces

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


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
