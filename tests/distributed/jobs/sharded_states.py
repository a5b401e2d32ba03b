"""States of sharded modules and of their optimizers: saved in parts, loaded by sharded and by plain ones."""

from __future__ import annotations

import sys

import numpy as np

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp
from genesis import nn, optim
from genesis.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from genesis.distributed.fsdp import fully_shard

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
X = genesis.tensor(np.random.default_rng(0).standard_normal((3, 12, 5)))


def network(seed=0):
    genesis.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()


def sharded(net):
    fully_shard(net[0])
    return fully_shard(net)


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def whole(p):
    return p.detach() if p._sharding is None else p.full_tensor()


def near(a, b):
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(whole(p).numpy(), whole(q).numpy(), rtol=1e-10, atol=1e-12)


def trained():
    """A plain network and a sharded one after two steps, each with its optimizer."""
    plain, model = network(), sharded(network())
    a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(model.parameters(), 0.1)
    for x in X[:2]:
        step(plain, a, x)
        step(model, b, x)
    return plain, a, model, b


def goes_on(plain, a, model, b):
    step(plain, a, X[2])
    step(model, b, X[2])
    near(plain, model)


def snapshots(folder):
    plain, a, model, b = trained()
    kept = dcp.Snapshots(folder)
    kept.save(2, {"model": model, "optimizer": b}, now=True)
    kept.wait()
    dist.barrier()
    again = sharded(network(seed=1))
    c = optim.Adam(again.parameters(), 0.7)
    assert dcp.Snapshots(folder).resume({"model": again, "optimizer": c}) == 2
    near(plain, again)
    goes_on(plain, a, again, c)


def saved_as_a_dict(folder):
    plain, _, model, _ = trained()
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    dist.barrier()
    again = sharded(network(seed=1))
    state = {"model": again.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    again.load_state_dict(state["model"])
    near(plain, again)
    one = network(seed=1)  # the plain module reads the same snapshot
    dcp.load({"model": one}, checkpoint_id=folder)
    near(plain, one)


def whole_states():
    plain, a, model, b = trained()
    options = StateDictOptions(full_state_dict=True)
    state, moments = get_model_state_dict(model, options=options), get_optimizer_state_dict(model, b, options=options)
    expected = get_optimizer_state_dict(plain, a)
    for name, value in plain.state_dict().items():
        np.testing.assert_allclose(state[name].numpy(), value.numpy(), rtol=1e-10, atol=1e-12)
        for key, moment in expected["state"][name].items():
            np.testing.assert_allclose(moments["state"][name][key].numpy(), moment.numpy(), rtol=1e-10, atol=1e-12)
    again = sharded(network(seed=1))
    c = optim.Adam(again.parameters(), 0.7)
    set_model_state_dict(again, state)
    set_optimizer_state_dict(again, c, moments)
    goes_on(plain, a, again, c)
    own = get_optimizer_state_dict(model, b)["state"]["0.weight"]["exp_avg"]
    assert own.shape[0] == model[0].weight._sharding.rows


def what_looks_at_the_whole_is_refused():
    model = sharded(network())
    for kind in (optim.LBFGS, optim.Adafactor, optim.Muon):
        try:
            kind([model[0].weight])
        except NotImplementedError as error:
            assert "looks at parameters as a whole" in str(error)
        else:
            raise AssertionError(kind)


snapshots(sys.argv[1] + "/a")
saved_as_a_dict(sys.argv[1] + "/b")
whole_states()
what_looks_at_the_whole_is_refused()
dist.barrier()
print(f"rank {rank} is done")
