"""Transforms and traces leave nothing behind: no reference cycles, no open modes."""

from __future__ import annotations

import gc

import pytest

import genesis
from genesis import jit, nn
from genesis.core.graph import modes, switches
from genesis.func import functional_call, grad, hessian, jvp, vmap


def calls():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    params = {name: p.detach() for name, p in model.named_parameters()}
    x = genesis.randn(5, 3)
    optimizer = genesis.optim.AdamW(model.parameters())

    def step(v):
        optimizer.zero_grad()
        loss = model(v).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step(x)
    graph = jit.trace(step, x)
    one = lambda p, s: functional_call(model, p, (s,)).sum()  # noqa: E731
    return {
        "vmap of grad": lambda: vmap(grad(one), in_dims=(None, 0))(params, x),
        "hessian": lambda: hessian(lambda v: (v**3).sum())(x[0]),
        "jvp of grad": lambda: jvp(grad(lambda v: (v**3).sum()), (x,), (x,)),
        "backward of vmap": lambda: vmap(lambda s: model(s).sum())(x).sum().backward(),
        "trace": lambda: jit.trace(step, x),
        "replay": lambda: graph.replay(x),
    }


@pytest.mark.parametrize("name", calls())
def test_nothing_is_left_for_the_collector(name):
    call = calls()[name]
    for _ in range(80):  # the last 64 transforms are remembered by name
        call()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(200):
            call()
        assert len(gc.get_objects()) - before < 100  # one object for every call would be 200
    finally:
        gc.enable()


def broken(x):
    raise KeyError("half-way")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vmap(broken)(x),
        lambda x: jvp(broken, (x,), (x,)),
        lambda x: grad(broken)(x),
        lambda x: hessian(broken)(x),
        lambda x: vmap(vmap(broken))(x),
        lambda x: jit.trace(broken, x),
    ],
    ids=["vmap", "jvp", "grad", "hessian", "nested", "trace"],
)
def test_an_exception_leaves_no_mode_open(call):
    with pytest.raises(KeyError, match="half-way"):
        call(genesis.ones(3, 2))
    assert not switches.ACTIVE and not switches.LEVELS and modes.grad_mode.get()
    assert genesis.ones(2).add(1).tolist() == [2, 2]
