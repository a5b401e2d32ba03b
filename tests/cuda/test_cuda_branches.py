"""Launches of a step side by side in its graph."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from kernels_of import emulated

import genesis
from genesis import nn
from genesis.cuda.runtime.errors import RaceError
from genesis.cuda.steps import step as step_of_devices
from genesis.cuda.steps.branches import Branches, branches
from genesis.kernels.llvm import loops
from genesis.nn import functional as F

pytestmark = pytest.mark.skipif(not loops.available(), reason="functions are compiled where there is llvmlite")


def trained(times=6, width=32):
    """Losses and parameters after some compiled steps, and the step."""
    genesis.manual_seed(0)
    sizes = [24, width, width, 10]
    layers = [each for n, m in pairwise(sizes) for each in (nn.Linear(n, m), nn.ReLU())]
    model = nn.Sequential(*layers[:-1]).to("cuda")
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.01)

    @genesis.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    x, y = genesis.randn(40, 24).to("cuda"), (genesis.arange(40) % 10).to("cuda")
    losses = [step(x, y).item() for _ in range(times)]
    return losses, [p.detach().cpu().numpy() for p in model.parameters()], step._recent[0].step


def test_gradients_of_weights_are_beside_those_of_activations(monkeypatch):
    """... with the same bits; what the longest chain does not wait for is the other branch."""
    with emulated():
        losses, parameters, step = trained()
    assert step.graphs == 1 and not step.why
    side = [{call.op for call in step.phases[i].calls} for i in sorted(step.branches.side)]
    assert side.count({"matmul_tn", "fused.adam_step"}) == 2 and side.count({"sum", "fused.adam_step"}) == 2
    assert str(step.explain()).count("  beside ") == 4
    monkeypatch.setattr(step_of_devices, "branches", lambda step: Branches())
    with emulated():
        expected = trained()
    assert losses == expected[0] and all(map(np.array_equal, parameters, expected[1]))


def test_every_wait_of_a_branch_is_needed(monkeypatch):
    """Without one of them the emulated device says that nothing orders two uses of the same memory."""
    with emulated():
        waits = trained()[2].branches.waits
    assert waits
    for number in waits:

        def without(step, number=number):
            made = branches(step)
            return replace(made, waits={i: j for i, j in made.waits.items() if i != number})

        monkeypatch.setattr(step_of_devices, "branches", without)
        with emulated(), pytest.raises(RaceError):
            trained()


def test_a_chain_has_no_branches():
    with emulated():
        run, x = genesis.compile(lambda x, w: F.relu(F.relu(x @ w) @ w).sum()), genesis.ones(16, 16, device="cuda")
        for _ in range(3):
            run(x, x)
        assert run._recent[0].step.branches.side == frozenset()


def forked(x, v, w):
    """Two chains, of which the shorter ends before another call."""
    long = ((x @ v).cumsum(0) @ v).cumsum(0)
    short = (x.sin() @ v).exp()
    return (long + short).cumsum(1) @ w


def test_calls_wait_for_the_other_branch():
    """Their memory may be what that is done with."""
    genesis.manual_seed(0)
    given = [genesis.randn(16, 16) * 0.1 for _ in range(3)]
    with emulated():
        run, there = genesis.compile(forked), [x.to("cuda") for x in given]
        for _ in range(4):
            out = run(*there)
        step = run._recent[0].step
        np.testing.assert_allclose(out.cpu(), forked(*given).numpy(), rtol=1e-4, atol=1e-5)
        assert step.graphs == 1 and not step.why
        side, waits = step.branches.side, step.branches.waits
        calls = [i for i, phase in enumerate(step.phases) if not phase.stages and any(j < i for j in side)]
        assert calls
        for i in calls:
            assert max(j for at, j in waits.items() if at <= i and at not in side) >= max(j for j in side if j < i)
