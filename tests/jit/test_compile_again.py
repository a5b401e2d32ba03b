"""Small gradients that nobody else has are written into the memory of those before."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.jit.compiling.again import Again
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


def made(width=4):
    genesis.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1)), genesis.randn(8, 3)
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def agains(compiled):
    return [thing for thing in compiled._recent[0].call.__globals__.values() if isinstance(thing, Again)]


def addresses(model):
    return [p.grad._array.ctypes.data for p in model.parameters()]


def test_nobody_has_them_and_nothing_is_made():
    model, step = made()
    other, eager = made()
    compiled, seen = genesis.compile(step), [0]
    for i in range(6):
        assert genesis.allclose(compiled(), eager())
        held = agains(compiled)[0].arrays
        if i > 1:
            assert addresses(model) == seen and [a.ctypes.data for a in held] == seen
        seen = addresses(model)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert genesis.allclose(p.grad, q.grad, atol=1e-6) and genesis.allclose(p, q, atol=1e-5)


@pytest.mark.parametrize(
    "take",
    [
        lambda p: p.grad,
        lambda p: p.grad.detach(),
        lambda p: p.grad[0],
        lambda p: p.grad.numpy(),
        lambda p: p.grad.numpy()[:1].T,
        lambda p: memoryview(p.grad.numpy()),
        lambda p: np.from_dlpack(p.grad),
    ],
)
@pytest.mark.parametrize("when", range(1, 5))
def test_what_somebody_has_stays_as_it_is(take, when):
    """At whichever call it is taken, and whatever it is."""
    model, step = made()
    compiled = genesis.compile(step)
    for _ in range(when):
        compiled()
    held = [take(p) for p in model.parameters()]
    before = [np.array(h if not isinstance(h, genesis.Tensor) else h.numpy()) for h in held]
    for _ in range(3):
        compiled()
    for h, b in zip(held, before, strict=True):
        assert np.array_equal(np.asarray(h if not isinstance(h, genesis.Tensor) else h.numpy()), b)
    assert all([p.grad is not h for p, h in zip(model.parameters(), held, strict=True)])


def test_a_gradient_is_a_new_tensor_in_each_call():
    """Its attributes, its references and the writes to it are those of one call."""
    model, step = made()
    compiled = genesis.compile(step)
    for _ in range(4):
        compiled()
    parameter = next(model.parameters())
    parameter.grad.note = "of this call"
    parameter.grad.mul_(2)
    seen = weakref.ref(parameter.grad)
    compiled()
    assert seen() is None and not hasattr(parameter.grad, "note") and parameter.grad._version == 0


@pytest.mark.parametrize("change", ["none", "another", "data"])
def test_gradients_of_another_hand(change):
    """What is in a leaf between two calls is not what the call before made."""
    model, step = made()
    other, eager = made()
    compiled = genesis.compile(step)
    for _ in range(6):
        for p in model.parameters():
            if change == "none":
                p.grad = None
            elif change == "another":
                p.grad = genesis.ones_like(p)
            elif p.grad is not None:
                p.grad.data = genesis.ones_like(p)
        assert genesis.allclose(compiled(), eager())
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert genesis.allclose(p.grad, q.grad, atol=1e-6)


def test_gradients_that_are_read_or_large_are_new():
    model, step = made()

    def reads():
        before = sum([p.grad.sum() for p in model.parameters()])
        step()
        return before

    step()
    compiled = genesis.compile(reads)
    compiled(), compiled()
    assert len(compiled._recent) == 1 and not agains(compiled)
    compiled = genesis.compile(made(100_000)[1])
    compiled()
    assert not agains(compiled)


def test_it_is_tried_ever_less_often_where_somebody_has_them():
    model, step = made()
    compiled, held, kept = genesis.compile(step), [], []
    for _ in range(40):
        compiled()
        kept.append(agains(compiled)[0].arrays)
        held.append([p.grad for p in model.parameters()])
    changes = [i for i in range(1, 40) if kept[i] is not kept[i - 1]]
    assert 3 <= len(changes) <= 6
