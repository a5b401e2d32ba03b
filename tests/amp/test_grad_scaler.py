"""GradScaler against PyTorch's own, and its errors."""

from __future__ import annotations

import pytest

import genesis as torch
from genesis.amp import GradScaler


def run(lib, scaler, overflows):
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.1)
    out = []
    for overflow in overflows:
        optimizer.zero_grad()
        scaler.scale((w * (float("inf") if overflow else 1.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        out.append((scaler.get_scale(), [round(v, 6) for v in w.tolist()]))
    return out


def test_steps_are_skipped_and_the_scale_follows():
    found = run(torch, GradScaler(init_scale=4.0, growth_interval=2), [0, 0, 1, 0, 1, 0, 0])
    assert [scale for scale, _ in found] == [4, 8, 4, 4, 2, 2, 4]
    assert [w[0] for _, w in found] == pytest.approx([0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.5])


@pytest.mark.parity
def test_the_same_sequence_as_pytorch():
    reference = pytest.importorskip("torch")
    options = dict(init_scale=1024.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=3)
    pattern = [0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert run(torch, GradScaler("cpu", **options), pattern) == run(
        reference, reference.amp.GradScaler("cpu", **options), pattern
    )


def test_unscale_before_clipping_and_nests():
    w = torch.ones(2, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), GradScaler(init_scale=16.0)
    scaler.scale([w.sum()])[0].backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"GradScaler: unscale_\(\) was already called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"GradScaler: unscale_\(\) is called after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) was already called"):
        scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0, 0.0]


def test_state_and_misuse():
    scaler = GradScaler(init_scale=8.0, growth_interval=5)
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.get_scale() == 8.0
    with pytest.raises(RuntimeError, match="the state is empty"):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match=r"update\(\) without a step"):
        other.update()
    with pytest.raises(RuntimeError, match="closures are not supported"):
        other.step(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0), closure=lambda: 0)
    with pytest.raises(TypeError, match="growth_factor must be greater than 1"):
        GradScaler(growth_factor=1.0)
    off = GradScaler(enabled=False)
    loss = torch.ones(1)
    assert off.scale(loss) is loss and off.get_scale() == 1.0 and off.state_dict() == {}
