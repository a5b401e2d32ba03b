"""The whole stack in a second: data, a network with a custom gradient, training, saving, loading."""

from __future__ import annotations

import genesis as torch
from genesis import nn


class Double(torch.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_train_save_load(tmp_path):
    x = torch.randn(128, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    for _ in range(150):
        loss = nn.functional.cross_entropy(Double.apply(model(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(loss) < 0.2
    torch.save(model.state_dict(), tmp_path / "m.safetensors")
    other = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    other.load_state_dict(torch.load(tmp_path / "m.safetensors"))
    assert torch.equal(other(x), model(x))
