"""DistributedDataParallel: the steps of several ranks are those of one process with the whole batch."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
from together import compiled_step, examples, loss_of, mine, near, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.distributed.algorithms.ddp_comm_hooks import default_hooks
from genesis.nn.parallel import DistributedDataParallel, graph_buckets
from genesis.profiler import export_ranks, profile
from genesis.profiler.ranks import COLOURS, spans_of
from genesis.utils.checkpoint import checkpoint

X, Y = examples(3, 2)


def network(seed=0):
    genesis.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).double()


def training():
    for cap, set_to_none, options in [
        (25, True, {}),
        (1e-4, True, {}),
        (3e-4, False, {}),
        (1e-4, True, {"static_graph": True}),
    ]:
        plain, model = network(), network(seed=rank)  # of other ranks other parameters, at first
        parallel = DistributedDataParallel(model, bucket_cap_mb=cap, **options)
        near(plain, model, "shared")
        assert list(parallel.state_dict()) == [f"module.{name}" for name in plain.state_dict()]
        a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(parallel.parameters(), 0.1)
        for x, y in zip(X, Y, strict=True):
            step_of(plain, a, x, y, 0.5, set_to_none)
            step_of(parallel, b, mine(x), mine(y), 0.5, set_to_none)
            near(plain, model, cap)
        if size > 1:
            buckets = parallel._buckets.buckets
            assert (len(buckets) > 1) == (cap < 1)
            for bucket in buckets:
                for at, n in enumerate(bucket.numbers):
                    assert np.shares_memory(parallel._buckets.parameters[n].grad._array, bucket.view(at))


def accumulation():
    plain, model = network(), network()
    parallel = DistributedDataParallel(model, bucket_cap_mb=1e-4)
    for x, y in zip(X, Y, strict=True):
        loss_of(plain, x, y).backward()
    with parallel.no_sync():
        for x, y in zip(X[:2], Y[:2], strict=True):
            loss_of(parallel, mine(x), mine(y)).backward()
    loss_of(parallel, mine(X[2]), mine(Y[2])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy())
    kept = [p.grad for p in model.parameters()]  # what a program holds is not written over
    before = [g.clone() for g in kept]
    parallel.zero_grad()
    loss_of(parallel, mine(X[0]), mine(Y[0])).backward()
    assert all(g.equal(b) for g, b in zip(kept, before, strict=True))


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([nn.Linear(5, 2) for _ in range(size + 1)])

    def forward(self, x, which):
        return self.branches[which](x)


def two_models():
    """A discriminator that is frozen for the generator's steps, as in a GAN."""

    def trained(parallel):
        genesis.manual_seed(0)
        models = [nn.Linear(5, 2).double(), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)).double()]
        made, judge = [DistributedDataParallel(m) for m in models] if parallel else models
        first, second = (optim.SGD(m.parameters(), 0.5) for m in (made, judge))
        for x, y in zip(X, Y, strict=True):
            x, y = (mine(x), mine(y)) if parallel else (x, y)
            second.zero_grad()
            fake = made(x)
            both = judge(genesis.cat([y, fake.detach()]))
            (both[len(y) :].exp().mean() + (-both[: len(y)]).exp().mean()).backward()
            second.step()
            first.zero_grad()
            judge.requires_grad_(False)
            (-judge(fake)).exp().mean().backward()
            judge.requires_grad_(True)
            first.step()
        return models

    for ours, whole in zip(trained(True), trained(False), strict=True):
        near(ours, whole)


def unused():
    genesis.manual_seed(0)
    model = Choice().double()
    parallel = DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=1e-4)
    for _ in range(3):
        parallel.zero_grad()
        parallel(X[0], rank).sum().backward()  # each rank another branch, nobody the last
        for branch in model.branches[:size]:
            np.testing.assert_allclose(branch.weight.grad.numpy(), np.tile(X[0].sum(0).numpy() / size, (2, 1)))
        assert model.branches[size].weight.grad is None
    if size > 1:
        strict = DistributedDataParallel(Choice().double())
        refused(
            RuntimeError,
            "no gradient came for branches.1.weight, branches.1.bias",
            lambda: strict(X[0], 0).sum().backward(),
        )


def buffers():
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)).double()
    model[1].running_mean += rank
    parallel = DistributedDataParallel(model)
    assert model[1].running_mean.tolist() == [0, 0, 0]
    parallel(mine(X[0]))
    means = [None] * size
    parallel(mine(X[1]))
    parallel.eval()(mine(X[1]))  # which makes the buffers those of rank 0
    dist.all_gather_object(means, model[1].running_mean)
    assert all(m.equal(means[0]) for m in means)
    assert int(model[1].num_batches_tracked) == 2


def precision_and_checkpoints():
    plain, model = network(), network()

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return checkpoint(self.inner, x)

    parallel = DistributedDataParallel(Checkpointed(), bucket_cap_mb=1e-4)
    loss_of(plain, X[0], Y[0]).backward()
    loss_of(parallel, mine(X[0]), mine(Y[0])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy())
    half = DistributedDataParallel(network().to(genesis.bfloat16))
    half(mine(X[0]).to(genesis.bfloat16)).sum().backward()
    assert half.module[0].weight.grad.dtype == genesis.bfloat16
    single = DistributedDataParallel(network().float())
    optimizer, scaler = optim.SGD(single.parameters(), 0.1), genesis.amp.GradScaler("cpu")
    for _ in range(2):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16):
            loss = loss_of(single, mine(X[0]).float(), mine(Y[0]).float())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    parts = [None] * size
    dist.all_gather_object(parts, single.module[0].weight.detach())
    assert all(part.equal(parts[0]) for part in parts)


def picture_of_a_step():
    """The profile of each rank has what it computed, what it sent and where it waited; together they are a picture."""
    parallel = DistributedDataParallel(network(), bucket_cap_mb=1e-4)
    loss_of(parallel, mine(X[0]), mine(Y[0])).backward()
    with profile() as p:
        loss_of(parallel, mine(X[0]), mine(Y[0])).backward()
    spans = spans_of(p.events(), 0.0)
    assert spans["forward"] and spans["backward"] and bool(spans["transfers"]) == (size > 1)
    sums = [e for e in p.events() if e.category == "communication" and e.name == "all_reduce"]
    assert len(sums) == (len(parallel._buckets.buckets) if size > 1 else 0)
    path = Path(tempfile.gettempdir(), f"genesis-step-{os.getppid()}.svg")
    export_ranks(p, path)
    if rank == 0:
        drawn = path.read_text()
        path.unlink()
        assert all(f">rank {each}</text>" in drawn for each in range(size)) and f"One step of {size} ranks" in drawn
        assert drawn.count(COLOURS["transfers"]) >= 1 + size * (size > 1)


def compiled():
    plain, model = network(), network()
    parallel = DistributedDataParallel(model)
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(parallel.parameters(), 0.1)
    step = compiled_step(parallel, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(mine(x), mine(y))
        near(plain, model, "compiled")

    @genesis.compile(fullgraph=True)
    def another(net, x, y):
        b.zero_grad()
        (loss_of(net, x, y) * (1 if net is parallel else 2)).backward()
        b.step()

    step_of(plain, a, X[0], Y[0])
    another(parallel, mine(X[0]), mine(Y[0]))
    near(plain, model, "asked for in a function and given to it")


def compiled_with_few_sums():
    """Small gradients are summed together, large ones by themselves, to the bits of one sum for each."""

    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.ModuleList([nn.Linear(5, 5) for _ in range(6)])
            self.large, self.back = nn.Linear(5, 9000), nn.Linear(9000, 5)  # 360 KB each
            self.double()
            self.scale = nn.Parameter(genesis.ones(5))  # of another dtype

        def forward(self, x):
            for layer in self.first:
                x = layer(x).tanh()
            return self.back(self.large(x).relu()) * self.scale.double()

    def ended(compiles, alone=graph_buckets._ALONE):
        genesis.manual_seed(0)
        model, graph_buckets._ALONE = Many(), alone
        parallel = DistributedDataParallel(model)
        b = optim.SGD(parallel.parameters(), 1e-3, momentum=0.9)
        step = compiled_step(parallel, b) if compiles else lambda x, y: step_of(parallel, b, x, y)
        for x, y in zip(*genesis.tensor(np.random.default_rng(0).standard_normal((2, 3, size * 4, 5))), strict=True):
            before = last_call()
            step(mine(x), mine(y))
        return model, last_call() - before

    (joined, few), (eager, _), (single, many) = ended(True), ended(False), ended(True, 0)
    for p, q, each in zip(joined.parameters(), single.parameters(), eager.parameters(), strict=True):
        assert size > 2 or (
            genesis.equal(p, q) and genesis.equal(p.grad, q.grad)
        )  # else MPI chooses an order by the size
        assert genesis.allclose(p, q, rtol=1e-5) and genesis.allclose(p, each, rtol=1e-5)  # the scale is of float32
    assert (few, many) == ((4, len(list(joined.parameters()))) if size > 1 else (0, 0))


def last_call():
    last = dist.GroupMember.WORLD.calls.last
    return last[-1].number if last else 0


def compiled_in_all_ways():
    """What is compiled ends where the same steps do as they are."""

    def kept(model, b, x, y):
        b.zero_grad(set_to_none=False)
        loss_of(model, x, y).backward()

    def clipped(model, b, x, y):
        b.zero_grad()
        loss_of(model, x, y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    def accumulated(model, b, x, y):
        b.zero_grad()
        with model.no_sync():
            loss_of(model, x / 2, y).backward()
        loss_of(model, x, y).backward()

    def twice(model, b, x, y):
        b.zero_grad()
        checkpoint(model, x, use_reentrant=False).square().mean().backward()

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner = nn.Linear(5, 5).double(), network()
            self.second = nn.Linear(5, 5).double()
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.inner(self.second(self.first(x).tanh()))

    def ended(make, gradients, compiles, said=(), **options):
        genesis.manual_seed(0)
        model = make()
        parallel = DistributedDataParallel(model, **options)
        b = optim.SGD(parallel.parameters(), 0.1, momentum=0.9)

        def step(x, y):
            gradients(parallel, b, x, y)
            b.step()

        step = genesis.compile(step) if compiles else step
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for x, y in zip(X, Y, strict=True):
                step(mine(x), mine(y))
        assert [words for words in said if words not in str([w.message for w in heard])] == []
        assert compiles or not heard
        assert bool(heard) == bool(said)
        return model

    for make, gradients, options in [
        (network, kept, {}),
        (network, clipped, {}),
        (network, accumulated, {}),
        (network, twice, {}),
        (Shared, clipped, {}),
        (network, clipped, {"static_graph": True}),
    ]:
        ways = [ended(make, gradients, compiles, **options) for compiles in (False, True)]
        near(*ways, gradients.__name__)
        for p, q in zip(*[model.parameters() for model in ways], strict=True):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy())
    if size == 1:
        return

    class Own(Choice):  # each rank another branch, and so another graph
        def __init__(self):
            super().__init__()
            self.double()

        def forward(self, x):
            return self.branches[rank](x)

    why = "which parameters are used in which rank (find_unused_parameters) is no part of a graph"
    near(*[ended(Own, clipped, c, [why] * c, find_unused_parameters=True) for c in (False, True)])
    why = "which other ranks may have used"
    near(*[ended(Own, clipped, c, [why] * c, static_graph=True) for c in (False, True)])
    strict = DistributedDataParallel(Own())
    step = compiled_step(strict, optim.SGD(strict.parameters(), 0.1))
    refused(RuntimeError, "no gradient came for branches.", lambda: step(mine(X[0]), mine(Y[0])))


def hooks():
    """Functions of a program that combine gradients."""
    plain = network()

    def trained(hook, state=None, steps=3):
        model = network()
        parallel = DistributedDataParallel(model, bucket_cap_mb=1e-4)
        if hook is not None:
            parallel.register_comm_hook(state, hook)
        optimizer = optim.SGD(parallel.parameters(), 0.1)
        for x, y in zip(X[:steps], Y, strict=False):
            step_of(parallel, optimizer, mine(x), mine(y), 0.5)
        return model

    a = optim.SGD(plain.parameters(), 0.1)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y, 0.5)
    seen = []

    def own(state, bucket):
        assert state == "state" and len(bucket.parameters()) == len(bucket.gradients())
        assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
        seen.append((bucket.index(), bucket.is_last()))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: [done.value()[0] / size])

    near(plain, trained(default_hooks.allreduce_hook), "all_reduce")
    near(plain, trained(own, "state"), "own")
    ends = [at + 1 for at, (_, last) in enumerate(seen) if last]
    steps = [seen[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    assert len(steps) == 3 and ends[-1] == len(seen)
    assert all([index for index, _ in step] == list(range(len(step))) and len(step) > 1 for step in steps)
    for hook in (default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook):
        for p, q in zip(plain.parameters(), trained(hook, dist.group.WORLD).parameters(), strict=True):
            assert not genesis.equal(p, q) and genesis.allclose(p, q, atol=2e-2)
    narrow = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    near(trained(default_hooks.bf16_compress_hook), trained(narrow), "the wrapper")

    parallel = DistributedDataParallel(network())
    refused(TypeError, "hook is int, expected a function", lambda: parallel.register_comm_hook(None, 3))
    parallel.register_comm_hook(None, lambda state, bucket: dist.futures.Future(lambda: True, lambda: genesis.ones(1)))
    refused(RuntimeError, "there is a hook already", lambda: parallel.register_comm_hook(None, own))
    loss = loss_of(parallel, X[0], Y[0])
    refused(TypeError, "the hook's future gives f32[1], expected the", loss.backward)
    model = network()
    parallel = DistributedDataParallel(model)
    parallel.register_comm_hook(None, default_hooks.allreduce_hook)
    step, b = compiled_step(parallel, optim.SGD(parallel.parameters(), 0.1)), optim.SGD(plain.parameters(), 0.1)
    plain.load_state_dict(model.state_dict())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for x, y in zip(X, Y, strict=True):
            step_of(plain, b, x, y)
            step(mine(x), mine(y))
            near(plain, model, "compiled, with a hook")
    assert "it runs as it is: DistributedDataParallel: gradients of a trace are nodes" in str(said[0].message)
    sharded = DistributedDataParallel(network(), shards=4) if 4 % size == 0 else None
    if sharded is not None:
        refused(NotImplementedError, "added in one tree", lambda: sharded.register_comm_hook(None, own))


def samplers():
    data = TensorDataset(genesis.arange(4 * size))
    sampler = DistributedSampler(data)
    seen = [None] * size
    dist.all_gather_object(
        seen, [int(i) for (batch,) in DataLoader(data, batch_size=2, sampler=sampler) for i in batch]
    )
    assert sorted(sum(seen, [])) == list(range(4 * size)) and all(len(part) == 4 for part in seen)


def what_is_refused():
    refused(TypeError, "expected a module, got int", lambda: DistributedDataParallel(3))
    refused(ValueError, "no parameter of the module requires grad", lambda: DistributedDataParallel(nn.ReLU()))
    refused(ValueError, "and the module is on cpu", lambda: DistributedDataParallel(network(), device_ids=[0]))
    if size == 1:
        return
    parallel = DistributedDataParallel(network())
    loss = loss_of(parallel, X[0], Y[0])
    refused(NotImplementedError, "create_graph=True", lambda: loss.backward(create_graph=True))
    embedding = DistributedDataParallel(nn.Embedding(4, 2, sparse=True))
    refused(
        NotImplementedError,
        "sparse gradients are not combined",
        lambda: embedding(genesis.tensor([1])).sum().backward(),
    )


checks = [
    training,
    accumulation,
    two_models,
    unused,
    buffers,
    precision_and_checkpoints,
    picture_of_a_step,
    compiled,
    compiled_with_few_sums,
    compiled_in_all_ways,
    hooks,
    samplers,
    what_is_refused,
]
for check in checks:
    check()
    dist.barrier()
print(f"rank {rank} is done")
