"""Layers divided by columns and rows, and tensors that lie otherwise: values and gradients are those of one rank."""

from __future__ import annotations

import copy
import sys

import numpy as np
from together import compiled_step, examples, loss_of, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
import genesis.distributed.checkpoint as dcp
from genesis import nn, optim
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from genesis.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, parallelize_module

X, Y = examples(3, 2)
MESH = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
GRID = init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))


class Block(nn.Module):
    """Layers with norms around them, which all ranks have; the widths do not divide among two or four ranks."""

    def __init__(self, width=7, bias=True):
        super().__init__()
        genesis.manual_seed(0)
        self.norm, self.up, self.down = nn.LayerNorm(5), nn.Linear(5, width, bias), nn.Linear(width, 5, bias)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(x + self.down(genesis.tanh(self.up(self.norm(x)))))


PLANS = [
    {"up": ColwiseParallel(), "down": RowwiseParallel()},
    {"up": ColwiseParallel(output_layouts=Replicate()), "out": RowwiseParallel(input_layouts=Replicate())},
    {"up": ColwiseParallel(), "down": ColwiseParallel(input_layouts=Shard(-1), output_layouts=Replicate())},
    {"up": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1)), "down": RowwiseParallel()},
    {"o*": ColwiseParallel(output_layouts=Replicate())},
]


def made(plan, width=7, bias=True, mesh=MESH):
    plain, model = Block(width, bias).double(), Block(width, bias).double()
    for name, p in model.named_parameters():
        if rank and name.split(".")[0] in plan:  # those of rank 0 count
            p.detach().zero_()
    return plain, parallelize_module(model, mesh, plan)


def near(plain, model, note="", of=lambda p: p.detach()):
    for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
        got = of(q)
        got = got.full_tensor() if isinstance(got, DTensor) else got
        np.testing.assert_allclose(of(p).numpy(), got.numpy(), rtol=1e-10, atol=1e-12, err_msg=f"{note} {name}")


def trainings():
    for number, plan in enumerate(PLANS):
        for width, bias in ((7, True), (8, False)):
            plain, model = made(plan, width, bias)
            near(plain, model, number)
            x, y = X[0].clone().requires_grad_(), X[0].clone().requires_grad_()
            loss_of(plain, x, Y[0]).backward()
            loss_of(model, y, Y[0]).backward()
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-10, atol=1e-14)
            near(plain, model, number, lambda p: p.grad)
            a, b = optim.AdamW(plain.parameters(), 0.05), optim.AdamW(model.parameters(), 0.05)
            for x, y in zip(X, Y, strict=True):
                norm = step_of(plain, a, x, y, 0.1)
                np.testing.assert_allclose(step_of(model, b, x, y, 0.1), norm, rtol=1e-10)
                near(plain, model, number)


def parts():
    _, model = made(PLANS[0])
    up, down = model.up.weight, model.down.weight
    assert up.placements == model.up.bias.placements == (Shard(0),) and down.placements == (Shard(1),)
    begin, end = min(rank * -(-7 // size), 7), min((rank + 1) * -(-7 // size), 7)
    assert up.shape == (7, 5) and down.shape == (5, 7) and model.down.bias.shape == (5,)
    assert up.to_local().shape == (end - begin, 5) and down.to_local().shape == (5, end - begin)
    assert up.full_tensor().equal(Block().double().up.weight) and down.full_tensor().equal(Block().double().down.weight)
    genesis.manual_seed(0)
    first = nn.init.normal_(genesis.empty(5, 7).double())
    genesis.manual_seed(0)
    assert nn.init.normal_(down).full_tensor().equal(first)


def states():
    """An optimizer has this rank's parts, and takes the state of one that has whole ones."""
    plain, model = made(PLANS[0])
    a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(model.parameters(), 0.1)
    step_of(plain, a, X[0], Y[0])
    step_of(model, b, X[0], Y[0])
    moments = [state["exp_avg"] for state in b.state_dict()["state"].values()]
    assert [m.full_tensor().shape for m in moments if isinstance(m, DTensor)] == [(7, 5), (7,), (5, 7)]
    b = optim.Adam(model.parameters(), 0.1)
    b.load_state_dict(a.state_dict())
    step_of(plain, a, X[1], Y[1])
    step_of(model, b, X[1], Y[1])
    near(plain, model)


def snapshots(folder):
    """A snapshot and a state are those of the whole model, which any number of ranks can load."""
    plain, model = made(PLANS[0])
    b = optim.Adam(model.parameters(), 0.1)
    step_of(model, b, X[0], Y[0])
    step_of(plain, optim.Adam(plain.parameters(), 0.1), X[0], Y[0])
    dcp.save({"model": model.state_dict(), "optimizer": b.state_dict()}, checkpoint_id=folder)
    alone = Block().double()
    state = {"model": alone.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    alone.load_state_dict(state["model"])
    near(plain, alone)
    again = parallelize_module(Block().double(), MESH, PLANS[1])  # divided otherwise
    for given in (plain.state_dict(), model.state_dict()):
        for p in again.parameters():
            p.detach().zero_()
        again.load_state_dict(given)
        near(plain, again)
    same = {"model": parallelize_module(Block().double(), MESH, PLANS[0]).state_dict()}
    dcp.load(same, checkpoint_id=folder)
    assert all([isinstance(same["model"][name], DTensor) for name in ("up.weight", "down.weight")])
    assert same["model"]["down.weight"].full_tensor().equal(alone.down.weight.detach())


def second_order():
    plain, model = made(PLANS[0])
    for net in (plain, model):
        x = X[0].clone().requires_grad_()
        (g,) = genesis.autograd.grad(loss_of(net, x, Y[0]), x, create_graph=True)
        (g**2).sum().backward()
    near(plain, model, "second order", lambda p: p.grad)


def compiled():
    plain, model = made(PLANS[0], mesh=GRID["tp"])
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(model.parameters(), 0.1)
    step = compiled_step(model, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(x, y)
        near(plain, model, "compiled")
    assert "not compiled" not in step.explain(), step.explain()


def redistributed():
    x = genesis.arange(35.0).reshape(5, 7)
    lies = [[Shard(0)], [Shard(1)], [Shard(-1)], [Replicate()]]
    for one in lies:
        for other in lies:
            made = distribute_tensor(x * (rank == 0), MESH, one)
            moved = made.redistribute(MESH, other)
            assert isinstance(moved, DTensor) and moved.full_tensor().equal(x), (one, other)
            assert moved.placements == tuple(Shard(1) if p == Shard(-1) else p for p in other)
            assert DTensor.from_local(moved.to_local(), MESH, other).full_tensor().equal(x)
    leaf = distribute_tensor(x, MESH, [Shard(0)]).requires_grad_()
    (leaf.redistribute(placements=[Replicate()]) ** 2).sum().backward()
    assert leaf.grad.equal(2 * leaf.detach())
    divided = distribute_tensor(x, MESH, [Replicate()]).requires_grad_()
    (divided.redistribute(placements=[Shard(1)]) ** 2).sum().backward()
    assert divided.grad.full_tensor().equal(2 * x)
    for lie in ([Shard(0)], [Shard(1)], [Replicate()]):  # the whole one has the history of the parts
        leaf = distribute_tensor(x, MESH, lie).requires_grad_()
        whole = leaf.full_tensor()
        (whole**2).sum().backward()
        assert not isinstance(whole, DTensor) and leaf.grad.equal(2 * leaf.detach()), lie
        with genesis.no_grad():
            assert not leaf.full_tensor().requires_grad
    on_grid = distribute_tensor(x, GRID, [Replicate(), Shard(1)])
    assert on_grid.redistribute(placements=[Replicate(), Shard(0)]).full_tensor().equal(x)


def copies():
    """A model that is divided can be copied, as averages of weights do: the copy has parameters of its own."""
    plain, model = made(PLANS[0])
    copied = copy.deepcopy(model)
    with genesis.no_grad():
        for p in model.parameters():
            p.zero_()
    assert copied.up.weight.placements == (Shard(0),) and not model.up.weight.any()
    near(plain, copied, "copied")
    np.testing.assert_allclose(copied(X[0]).detach().numpy(), plain(X[0]).detach().numpy(), rtol=1e-10, atol=1e-12)


def what_is_refused():
    refused(
        NotImplementedError,
        "a LayerNorm, and layers that are divided so",
        lambda: parallelize_module(Block(), MESH, {"norm": ColwiseParallel()}),
    )
    refused(ValueError, "no layer 'middle'", lambda: parallelize_module(Block(), MESH, {"middle": ColwiseParallel()}))
    refused(TypeError, "expected a style", lambda: parallelize_module(Block(), MESH, {"up": 3}))
    refused(NotImplementedError, "a mesh of 2 dimensions", lambda: parallelize_module(Block(), GRID, PLANS[0]))
    refused(ValueError, "as many of both", lambda: PrepareModuleInput(input_layouts=Shard(0)))
    words = nn.Embedding(4, 4, max_norm=1.0)
    refused(NotImplementedError, "max_norm", lambda: parallelize_module(words, MESH, ColwiseParallel()))
    layer = parallelize_module(nn.Linear(4, 4), MESH, ColwiseParallel())
    refused(ValueError, "the layer is divided already", lambda: parallelize_module(layer, MESH, ColwiseParallel()))
    x = distribute_tensor(genesis.ones(4, 4), MESH, [Shard(1)])
    refused(NotImplementedError, "placements are", lambda: x.redistribute(placements=[Shard(2)]))


snapshots(sys.argv[1])
for check in (trainings, parts, states, second_order, compiled, redistributed, copies, what_is_refused):
    check()
    dist.barrier()
print(f"rank {rank} is done")
