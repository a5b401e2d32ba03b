"""ZeroRedundancyOptimizer: the steps of several ranks are those of the optimizer itself, and each keeps its part of the state."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from together import compiled_step, examples, loss_of, mine, near, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.distributed.checkpoint import Snapshots
from genesis.distributed.optim import ZeroRedundancyOptimizer
from genesis.nn.parallel import DistributedDataParallel
from genesis.utils.checkpoint import checkpoint

X, Y = examples(4, 2)


def network(seed=0, width=8):
    genesis.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
    ).double()


def same(a, b, note=""):
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        assert p.equal(q), f"{note} {name}"


def training():
    """Against DistributedDataParallel with the optimizer itself: the same bits."""
    for optimizer_class, options in [
        (optim.SGD, {"lr": 0.1}),
        (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (optim.Adam, {"lr": 0.1}),
        (optim.AdamW, {"lr": 0.1, "amsgrad": True}),
    ]:
        for views in (False, True):
            plain, parted = DistributedDataParallel(network()), DistributedDataParallel(network())
            a = optimizer_class(plain.parameters(), **options)
            b = ZeroRedundancyOptimizer(parted.parameters(), optimizer_class, None, views, **options)
            for x, y in zip(X, Y, strict=True):
                for model, optimizer in ((plain, a), (parted, b)):
                    step_of(model, optimizer, mine(x), mine(y), 0.5)
                same(plain, parted, (optimizer_class.__name__, views))
            assert all(p.grad is not None for p in parted.parameters())


def large_ones_are_sent_from_their_memory():
    plain, parted = DistributedDataParallel(network(width=130)), DistributedDataParallel(network(width=130))
    a = optim.Adam(plain.parameters(), 0.01)
    b = ZeroRedundancyOptimizer(parted.parameters(), optim.Adam, lr=0.01)
    for x, y in zip(X, Y, strict=True):
        for model, optimizer in ((plain, a), (parted, b)):
            step_of(model, optimizer, mine(x), mine(y))
    same(plain, parted)


def share_of_the_state():
    model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(4 * size)])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam)
    model(genesis.ones(3, 32)).sum().backward()
    optimizer.step()
    held = sum(x.numel() for state in optimizer.state.values() for x in state.values() if isinstance(x, genesis.Tensor))
    share = 2 * sum(p.numel() for p in model.parameters()) / size  # two averages of each element
    assert share / 1.1 <= held <= 1.1 * share, (held, share)


def saved_and_loaded():
    plain, parted = network(), network()
    wrapped = DistributedDataParallel(parted)
    a = optim.Adam(plain.parameters(), 0.1)
    b = ZeroRedundancyOptimizer(wrapped.parameters(), optim.Adam, lr=0.1)
    for x, y in zip(X[:2], Y[:2], strict=True):
        step_of(plain, a, x, y)
        step_of(wrapped, b, mine(x), mine(y))
    if size > 1:
        refused(RuntimeError, "consolidate_state_dict(to=rank)", b.state_dict)
    last = size - 1
    b.consolidate_state_dict(to=last)
    states = [None]
    if rank == last:
        one, other = a.state_dict(), b.state_dict()
        assert one["param_groups"] == other["param_groups"] and list(one["state"]) == list(other["state"])
        for number, state in one["state"].items():
            assert list(state) == list(other["state"][number])
            for key, value in state.items():
                np.testing.assert_allclose(value.numpy(), other["state"][number][key].numpy(), rtol=1e-10, atol=1e-12)
        states = [other]
        optim.Adam(network().parameters(), 0.5).load_state_dict(other)  # of the optimizer itself, too
    elif size > 1:
        refused(RuntimeError, f"not at rank {rank}", b.state_dict)
    dist.broadcast_object_list(states, src=last)
    resumed = network()
    resumed.load_state_dict(parted.state_dict())
    wrapped_again = DistributedDataParallel(resumed)
    c = ZeroRedundancyOptimizer(wrapped_again.parameters(), optim.Adam, lr=0.7)
    c.load_state_dict(states[0])
    assert c.param_groups[0]["lr"] == 0.1 and set(c.state) == {p for p in c.param_groups[0]["params"] if c._mine(p)}
    for model, optimizer in ((wrapped, b), (wrapped_again, c)):
        optimizer.zero_grad()
        loss_of(model, mine(X[2]), mine(Y[2])).backward()
        optimizer.step()
    same(parted, resumed)


def in_snapshots():
    """Each rank writes the state of its parameters, and another number of them goes on from it."""
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)

    def made(optimizer_class, group=None):
        model = DistributedDataParallel(network(), process_group=group)
        return model, optimizer_class(model.parameters(), optim.Adam, group, lr=0.1)

    def steps(model, optimizer, begin, end, rows):
        for x, y in zip(X[begin:end], Y[begin:end], strict=True):
            step_of(model, optimizer, rows(x), rows(y))

    model, optimizer = made(ZeroRedundancyOptimizer)
    snapshots, state = Snapshots(folder[0]), {"model": model, "optimizer": optimizer}
    steps(model, optimizer, 0, 2, mine)
    snapshots.save(2, state)
    names = set(json.loads(Path(folder[0], "step-00000002", "manifest.json").read_text())["tensors"])
    assert {"optimizer.state.0.exp_avg", "optimizer.state.5.exp_avg_sq"} <= names
    steps(model, optimizer, 2, 4, mine)
    others = [(None, mine), *[(dist.new_group([each]), lambda x: x) for each in range(size)]]
    for group, rows in others:
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            continue
        again, its = made(ZeroRedundancyOptimizer, group)
        assert Snapshots(folder[0], group=group).resume({"model": again, "optimizer": its}) == 2
        steps(again, its, 2, 4, rows)
        near(model.module, again.module)
        if group is None:
            same(model, again)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder[0])


def groups_and_schedules():
    plain, parted = network(), network()
    wrapped = DistributedDataParallel(parted)
    a = optim.SGD(list(plain[0].parameters()), 0.1)
    b = ZeroRedundancyOptimizer(list(parted[0].parameters()), optim.SGD, lr=0.1)
    for optimizer, model in ((a, plain), (b, parted)):
        optimizer.add_param_group({"params": list(model[2:].parameters()), "lr": 0.02, "momentum": 0.9})
    plans = [optim.lr_scheduler.StepLR(each, 1, 0.5) for each in (a, b)]
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step_of(wrapped, b, mine(x), mine(y))
        for plan in plans:
            plan.step()
        near(plain, parted)
    assert [group["lr"] for group in a.param_groups] == [group["lr"] for group in b.param_groups]


def precision():
    """A scaler skips a step in all ranks, where a gradient overflows in one."""
    model = DistributedDataParallel(network().float())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.SGD, lr=0.1)
    scaler = genesis.amp.GradScaler("cpu", init_scale=4.0)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            loss = loss_of(model, mine(x).float(), mine(y).float())
        if i == 1 and rank == size - 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0
    said = [None] * size
    dist.all_gather_object(said, [p.detach() for p in model.parameters()])
    assert all(p.isfinite().all() and p.equal(q) for part in said for p, q in zip(part, said[0], strict=True))


def checkpoints():
    """Layers that are computed again in the backward: the same bits as without."""

    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return checkpoint(self.inner, x)

    plain, again = DistributedDataParallel(network()), DistributedDataParallel(Again())
    steps = [(m, ZeroRedundancyOptimizer(m.parameters(), optim.AdamW, lr=0.1)) for m in (plain, again)]
    for x, y in zip(X, Y, strict=True):
        for model, optimizer in steps:
            step_of(model, optimizer, mine(x), mine(y))
    same(plain.module, again.module.inner)


def accumulation_shared_and_frozen():
    def made():
        genesis.manual_seed(3)
        net = nn.Sequential(nn.Linear(5, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 2)).double()
        net[3].weight = net[1].weight
        return net

    plain, parted = made(), made()
    for net in (plain, parted):
        net[0].requires_grad_(False)
    wrapped = DistributedDataParallel(parted)
    a, b = optim.Adam(plain.parameters(), 0.1), ZeroRedundancyOptimizer(parted.parameters(), optim.Adam, lr=0.1)
    for start in (0, 2):
        a.zero_grad()
        b.zero_grad()
        for x, y in zip(X[start : start + 2], Y[start : start + 2], strict=True):
            loss_of(plain, x, y).backward()
        with wrapped.no_sync():
            loss_of(wrapped, mine(X[start]), mine(Y[start])).backward()
        loss_of(wrapped, mine(X[start + 1]), mine(Y[start + 1])).backward()
        a.step()
        b.step()
        near(plain, parted)
    assert parted[3].weight is parted[1].weight


def compiled():
    plain, parted = network(), network()
    wrapped = DistributedDataParallel(parted)
    a, b = optim.Adam(plain.parameters(), 0.1), ZeroRedundancyOptimizer(parted.parameters(), optim.Adam, lr=0.1)
    step = compiled_step(wrapped, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(mine(x), mine(y))
        near(plain, parted, "compiled")
        for group in (*a.param_groups, *b.param_groups):
            group["lr"] *= 0.5
    assert "not compiled" not in step.explain(), step.explain()


def a_closure():
    parted = network()
    wrapped = DistributedDataParallel(parted)
    optimizer = ZeroRedundancyOptimizer(parted.parameters(), optim.SGD, lr=0.1)
    before = loss_of(parted, X[0], Y[0]).item()

    def closure():
        optimizer.zero_grad()
        loss = loss_of(wrapped, mine(X[0]), mine(Y[0]))
        loss.backward()
        return loss

    assert isinstance(optimizer.step(closure), genesis.Tensor)
    assert loss_of(parted, X[0], Y[0]).item() < before


def what_is_refused():
    weights = list(network().parameters())
    refused(
        NotImplementedError,
        "overlap_with_ddp=False",
        lambda: ZeroRedundancyOptimizer(weights, optim.SGD, overlap_with_ddp=True),
    )
    refused(
        NotImplementedError, "looks at all parameters at once", lambda: ZeroRedundancyOptimizer(weights, optim.LBFGS)
    )
    refused(TypeError, "expected a class of optimizers", lambda: ZeroRedundancyOptimizer(weights, 3))
    refused(ValueError, "empty parameter list", lambda: ZeroRedundancyOptimizer([], optim.SGD))
    optimizer = ZeroRedundancyOptimizer(weights, optim.SGD)
    refused(
        ValueError,
        "does not fit",
        lambda: optimizer.load_state_dict(
            {"state": {99: {}}, "param_groups": optimizer.optim.state_dict()["param_groups"]}
        ),
    )
    weights[0].sum().backward()

    class Failing(optim.SGD):
        def step(self, closure=None):
            raise KeyError("half-way")

    failing = ZeroRedundancyOptimizer(weights, Failing)
    refused(KeyError, "half-way", failing.step)
    assert weights[0].grad is not None


checks = [
    training, large_ones_are_sent_from_their_memory, share_of_the_state, saved_and_loaded, in_snapshots, groups_and_schedules, precision,
    checkpoints, accumulation_shared_and_frozen, compiled, a_closure, what_is_refused,
]  # fmt: skip
for check in checks:
    check()
    dist.barrier()
print(f"rank {rank} is done")
