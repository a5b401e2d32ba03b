"""Weights that a hook computes before each forward, in compiled models and steps: a call leaves them as one as it is would."""

from __future__ import annotations

import warnings

import pytest

import genesis
from genesis import nn, optim
from genesis.nn.utils import spectral_norm, weight_norm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    NORMS = [weight_norm, spectral_norm]


@pytest.fixture(params=NORMS, ids=["weight_norm", "spectral_norm"])
def model(request):
    genesis.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(request.param(nn.Linear(4, 8)), nn.ReLU(), request.param(nn.Linear(8, 1)))


def copied(model):
    """Another one with the same numbers."""
    other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        norm = weight_norm if hasattr(model[0], "weight_g") else spectral_norm
        other[0], other[2] = norm(other[0]), norm(other[2])
    other.load_state_dict(model.state_dict())
    return other


def same(model, other):
    for a, b in zip((model[0], model[2]), (other[0], other[2]), strict=True):
        genesis.testing.assert_close(a.weight.detach(), b.weight.detach())
        assert a.weight.requires_grad == b.weight.requires_grad
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        genesis.testing.assert_close(a, b)


def test_a_step_of_two_networks(model):
    def training(model):
        other, losses = nn.Linear(4, 4, bias=False), []
        genesis.nn.init.eye_(other.weight)
        optimizers = optim.SGD(model.parameters(), 0.1), optim.SGD(other.parameters(), 0.1)

        def step(x):
            y = other(x)
            optimizers[0].zero_grad()
            loss = (model(y.detach()) - model(x)).square().mean()
            loss.backward()
            optimizers[0].step()
            optimizers[1].zero_grad()
            loss = model(y).square().mean()
            loss.backward()
            optimizers[1].step()
            losses.append(loss.item())
            return loss

        return step, losses

    expected = copied(model)
    genesis.manual_seed(1)
    (step, losses), (as_it_is, others) = training(model), training(expected)
    step = genesis.compile(step)
    for _ in range(4):
        x = genesis.randn(8, 4)
        genesis.testing.assert_close(step(x).detach(), as_it_is(x).detach())
        same(model, expected)
    assert "1 graphs" in step.explain() and "not compiled" not in step.explain()
    assert losses == pytest.approx(others, rel=1e-5)


def test_a_model_in_an_ordinary_loop(model):
    expected = copied(model)
    fast = genesis.compile(model)
    for i in range(4):
        if i == 2:
            model.eval(), expected.eval()
        x = genesis.randn(8, 4)
        for net in (fast, expected):
            net.zero_grad()
            net(x).square().mean().backward()
        for a, b in zip(model.parameters(), expected.parameters(), strict=True):
            genesis.testing.assert_close(a.grad, b.grad)
        same(model, expected)
        with genesis.no_grad():
            for p, q in zip(model.parameters(), expected.parameters(), strict=True):
                p.sub_(p.grad, alpha=0.1)
                q.sub_(q.grad, alpha=0.1)
    x = genesis.randn(8, 4)
    fast(x), expected(x)  # gradients go through the weight that a call has left
    (a,) = genesis.autograd.grad(model[0].weight.sum(), list(model[0].parameters())[1:2])
    (b,) = genesis.autograd.grad(expected[0].weight.sum(), list(expected[0].parameters())[1:2])
    genesis.testing.assert_close(a, b)
    assert "not compiled" not in fast.explain()


def test_what_python_does_sees_the_weight_of_the_call(model):
    expected, count = copied(model), [0]

    def logging(model, log):
        def step(x):
            y = model(x).sum()
            log.append(model[0].weight.detach().square().sum().item())
            count[0] += 1
            return y

        return step

    logs = [], []
    step, as_it_is = genesis.compile(logging(model, logs[0])), logging(expected, logs[1])
    for _ in range(3):
        x = genesis.randn(8, 4)
        step(x), as_it_is(x)
        for net in (model, expected):
            with genesis.no_grad():
                for p in net.parameters():
                    p.mul_(1.25)
    assert logs[0] == pytest.approx(logs[1], rel=1e-5)
    assert "not compiled" not in step.explain()
