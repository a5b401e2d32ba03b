"""Modules that register buffers, parameters and other modules while they are called, compiled: a graph does it at each call."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn


class Bias(nn.Module):
    """Keeps what it computes of the largest size it was called with."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", None, persistent=False)
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if self.bias is None or self.bias.shape[0] < x.shape[0]:
            self.register_buffer("bias", genesis.arange(x.shape[0]).float().unsqueeze(1), persistent=False)
        return self.layer(x) + self.bias[: x.shape[0]]


class Unnamed(Bias):
    """The same of a buffer that is not there before."""

    def __init__(self):
        super().__init__()
        del self.bias

    def forward(self, x):
        if not hasattr(self, "bias"):
            self.register_buffer("bias", None, persistent=False)
        return super().forward(x)


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", genesis.zeros(4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.register_buffer("mean", 0.9 * self.mean + 0.1 * x.mean(0))
        return self.layer(x) + self.mean


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if not hasattr(self, "scale"):
            self.register_parameter("scale", nn.Parameter(genesis.full((4,), 2.0)))
        return self.layer(x) * self.scale


class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if not hasattr(self, "more"):
            self.add_module("more", nn.Linear(4, 4))
        return self.layer(x) + self.more(x)


def _trained(kind, compiled):
    genesis.manual_seed(0)
    model = kind()
    called = genesis.compile(model) if compiled == "model" else model

    def step(x):
        loss = called(x).square().sum()
        loss.backward()
        return loss

    step = genesis.compile(step) if compiled == "step" else step
    losses = [float(step(genesis.arange(4.0 * n).reshape(n, 4) / 10)) for n in (2, 2, 3, 2, 2)]
    state = {**model.state_dict(), **dict(model.named_buffers())}
    return losses, {n: p.grad for n, p in model.named_parameters()}, state


@pytest.mark.parametrize("compiled", ["model", "step"])
@pytest.mark.parametrize("kind", [Bias, Unnamed, Mean, Scaled, Grown])
def test_what_a_call_registers_is_what_it_is_without_compilation(kind, compiled):
    losses, gradients, state = _trained(kind, compiled)
    expected, wanted, held = _trained(kind, None)
    assert losses == pytest.approx(expected, rel=1e-5)
    assert gradients.keys() == wanted.keys() and state.keys() == held.keys()
    for name, value in wanted.items():
        genesis.testing.assert_close(gradients[name], value)
    for name, value in held.items():
        genesis.testing.assert_close(state[name], value)
