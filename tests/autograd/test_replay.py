"""Backward recorded, stepped through, run again and compared."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.autograd import diff, record


class Cube(Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        Cube.calls += 1
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


class Slightly(Function):
    """The identity, with a gradient that is off by a factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def test_steps_in_order_with_their_gradients():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    tape = record((Cube.apply(x) * 2).sum())
    assert [s.name for s in tape] == ["SumBackward", "MulBackward", "CubeBackward"]
    assert tape[2].grad_outputs[0].tolist() == [2, 2]
    assert tape[2].grad_inputs[0].tolist() == [6, 24]
    assert tape[2].norm == pytest.approx(math.hypot(6, 24))
    assert re.search(r"test_replay.py:\d+ in test_steps", str(tape[2].where))
    assert x.grad is None
    (Cube.apply(x) * 2).sum().backward()
    assert x.grad.tolist() == [6, 24]


def test_the_graph_is_kept_and_one_rule_runs_again():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x).sum()
    tape = record(y)
    Cube.calls = 0
    assert tape.replay(1)[0].tolist() == [3, 12]
    assert tape.replay(tape[1], genesis.tensor([0.0, 10.0]))[0].tolist() == [0, 120]
    assert Cube.calls == 2
    y.backward()
    with pytest.raises(RuntimeError, match="what CubeBackward saved was freed"):
        tape.replay(1)


def test_several_outputs():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 3 * h

    x = genesis.ones(1, requires_grad=True)
    _, second = Two.apply(x)
    tape = record((second * 5).sum())
    step = tape.at("TwoBackward")[0]
    assert [g.tolist() for g in step.grad_outputs] == [[0], [5]]
    assert tape.replay(step)[0].tolist() == [15]
    assert tape.replay(step, [genesis.ones(1), genesis.ones(1)])[0].tolist() == [5]


def test_break_on_a_condition():
    x = genesis.ones(1, requires_grad=True)
    y = x
    for _ in range(10):
        y = y * 10
    tape = record(y.sum(), until=lambda step: step.norm > 1e3)
    assert tape.stopped
    assert tape[-1].norm == pytest.approx(1e4)
    assert x.grad is None
    assert "stopped by the condition" in repr(tape)
    whole = record(y.sum(), until=lambda step: False)
    assert not whole.stopped
    assert whole.find(lambda s: s.norm > 1e3).index == tape[-1].index
    assert whole.find(lambda s: s.norm > 1e30) is None


def test_hooks_and_rules_that_differentiate_inside_do_not_disturb():
    class Inside(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            with genesis.enable_grad():
                z = genesis.tensor(ctx.saved_tensors[0].tolist(), requires_grad=True)
                (z * z).sum().backward()
            return g * z.grad

    x = genesis.tensor([3.0], requires_grad=True)
    tape = record(Inside.apply(x).sum())
    assert [s.name for s in tape] == ["SumBackward", "InsideBackward"]
    assert tape[-1].grad_inputs[0].tolist() == [6]


@pytest.mark.parametrize("place", [0, 57, 120, 199])
def test_a_seeded_divergence_is_located_exactly(place):
    x = genesis.tensor(np.linspace(0.1, 1, 5), requires_grad=True)

    def run(factor):
        y = x
        for i in range(200):
            y = Slightly.apply(y.sin() if i % 2 else y.cos(), factor if i == place else 1.0)
        return record(y.sum())

    assert diff(run(1.0), run(1.0)) is None
    found = diff(run(1.0), run(1.001))
    assert found.first.name == "SlightlyBackward"
    assert found.first.node._at >= 0
    ran = [s for s in run(1.001).at("SlightlyBackward")]
    assert found.index == ran[199 - place].index
    assert "differ by" in repr(found)
    assert found.error == pytest.approx(1e-3, rel=1e-2)


def test_precisions_agree_within_their_own_error():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    x = genesis.randn(4, 8)
    single = record(model(x).sum())
    double = record(model.double()(x.double()).sum())
    assert diff(single, double) is None
    assert diff(single, double, rtol=1e-12) is not None


def test_other_programs_and_bad_values():
    x = genesis.ones(2, requires_grad=True)
    found = diff(record(x.exp().sum()), record(x.sin().sum()))
    assert found.index == 1
    assert "the other run has SinBackward here" in found.reason
    assert "one run has 2 steps, the other 3" in diff(record(x.exp().sum()), record((x + 0).exp().sum())).reason
    zero = genesis.zeros(2, requires_grad=True)
    good, bad = record((x.sqrt()).sum()), record(zero.sqrt().sum())
    assert diff(good, bad).reason == "one run is finite where the other is not"
    assert not bad[-1].finite
    assert "NOT FINITE" in repr(bad[-1])


def test_time_by_line():
    x = genesis.ones(2, requires_grad=True)
    lines = record(x.exp().sum()).by_line()
    assert len(lines) == 1
    assert all(seconds > 0 for seconds in lines.values())


def test_wrong_arguments():
    with pytest.raises(TypeError, match="output must be a tensor, got int"):
        record(3)
    with pytest.raises(RuntimeError, match="does not require grad"):
        record(genesis.ones(1))
    with pytest.raises(RuntimeError, match="created implicitly only for one element"):
        record(genesis.ones(2, requires_grad=True) * 2)
    with pytest.raises(ValueError, match="records of 0 and 0 steps"):
        diff(record(genesis.ones(1, requires_grad=True)), record(genesis.ones(1, requires_grad=True)))
