"""States of sharded modules and of their optimizers: saved in parts, loaded by sharded and by plain ones."""

from __future__ import annotations

import sys

import numpy as np
from together import refused

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp
from genesis import nn, optim
from genesis.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _init_optim_state,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from genesis.distributed.fsdp import fully_shard
from genesis.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

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
        np.testing.assert_allclose(whole(p).detach().numpy(), whole(q).detach().numpy(), rtol=1e-10, atol=1e-12)


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
    assert own.to_local().shape[0] == model[0].weight._sharding.rows


def tensors_in_parts():
    """As PyTorch's programs make a state of whole tensors one of rows, and give it to a model without memory."""
    plain, a, model, b = trained()
    whole_state, whole_moments = {k: v.full_tensor() for k, v in model.state_dict().items()}, b.state_dict()["state"]
    with genesis.device("meta"):
        empty = network()
    again = sharded(empty)
    rows = {}
    for name, known in again.state_dict().items():
        assert isinstance(known, DTensor) and known.placements == (Shard(0),) and known.device_mesh.size() == size
        given = whole_state[name] if rank == 0 else whole_state[name] * 0  # what rank 0 has counts
        rows[name] = nn.Parameter(distribute_tensor(given, known.device_mesh, known.placements))
        assert isinstance(rows[name], nn.Parameter) and isinstance(rows[name], DTensor)
    again.load_state_dict(rows, assign=True)
    near(plain, again)
    assert all(again.get_parameter(name) is p for name, p in rows.items())
    c = optim.Adam(again.parameters(), 0.1)
    _init_optim_state(c)
    near(plain, again)  # the first step changed nothing
    state = c.state_dict()
    for number, values in state["state"].items():
        for key, value in values.items():
            known = whole_moments[number][key]
            if isinstance(value, DTensor):
                known = distribute_tensor(known.full_tensor(), value.device_mesh, value.placements)
            values[key] = known
    c.load_state_dict(state)
    assert c.param_groups[0]["lr"] == 0.1
    goes_on(plain, a, again, c)
    x = again[0].weight.to_local().detach().clone()
    made = DTensor.from_local(x, again[0].weight.device_mesh, [Shard(0)])
    assert made.full_tensor().equal(again[0].weight.full_tensor()) and made.to_local().equal(x)
    refused(NotImplementedError, "each dimension along one", lambda: distribute_tensor(x, None, [Shard(2)]))
    refused(NotImplementedError, "not made terms", lambda: distribute_tensor(x, None, [Partial()]))
    parameter = nn.Parameter(x)
    refused(NotImplementedError, "each dimension along one", lambda: distribute_tensor(parameter, None, [Shard(2)]))
    refused(NotImplementedError, "not made terms", lambda: distribute_tensor(parameter, None, [Partial()]))
    refused(ValueError, "one for each", lambda: distribute_tensor(parameter, None, [Replicate(), Shard(0)]))
    assert distribute_tensor(made, None, [Shard(0)]) is made
    refused(ValueError, "redistribute", lambda: distribute_tensor(made, None, [Replicate()]))
    refused(ValueError, "redistribute", lambda: DTensor.from_local(made, None, [Shard(0)]))
    if size > 1:
        uneven = genesis.ones(1 if rank == 0 else 2)
        refused(ValueError, f"divides {2 * size - 1} into", lambda: DTensor.from_local(uneven, None, [Shard(0)]))


def states_of_rank_0():
    """They leave the devices at one rank, which gives them to all; a model without memory takes them."""
    plain, a, model, b = trained()
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, broadcast_from_rank0=True)
    state, moments = get_model_state_dict(model, options=options), get_optimizer_state_dict(model, b, options=options)
    assert (state == {} and moments == {}) is (rank > 0)
    with genesis.device("meta"):
        again = network()
    again = sharded(again)
    set_model_state_dict(again, state, options=options)
    c = optim.Adam(again.parameters(), 0.7)
    set_optimizer_state_dict(again, c, moments, options=options)
    goes_on(plain, a, again, c)


def assigned_parameters():
    """A parameter that is assigned is that of the module from then on, for an optimizer, too."""
    plain, model = network(), sharded(network(seed=1))
    for name in ("0.weight", "0.bias", "2.weight", "2.bias"):
        at, p = model.get_parameter(name)._sharding, plain.get_parameter(name).detach()
        layer, _, last = name.partition(".")
        setattr(model[int(layer)], last, nn.Parameter(p[at.begin : at.end].clone()))
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
    for x in X[:2]:
        step(plain, a, x)
        step(model, b, x)
    near(plain, model)


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
tensors_in_parts()
states_of_rank_0()
assigned_parameters()
what_looks_at_the_whole_is_refused()
dist.barrier()
print(f"rank {rank} is done")
