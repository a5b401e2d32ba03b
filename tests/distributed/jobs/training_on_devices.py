"""Modules on a GPU, an emulated one of each rank, trained by several ranks: through a stand-in of NCCL, and without it by
way of the host; the steps are those of the same ranks on the CPU.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from together import compiled_step, examples, loss_of, mine, near, rank, refused, size, step_of

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.cuda.libraries import loading, nccl
from genesis.cuda.runtime.connection import using
from genesis.cuda.runtime.emulated import Emulated
from genesis.distributed.by_host import Staged
from genesis.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from genesis.distributed.optim import ZeroRedundancyOptimizer
from genesis.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
from genesis.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parents[2] / "cuda"))
from library_stand_ins import Nccl

X, Y = examples(3, 2)


def network(seed=0):
    genesis.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).double()


def there(x):
    return mine(x).to("cuda")


def on_the_host(model):
    """The same model on the CPU, to compare its parameters."""
    same = network()
    same.load_state_dict({name: x.cpu() for name, x in model.state_dict().items()})
    return same


def parallel_training():
    for cap, set_to_none in [(25, True), (1e-4, True), (3e-4, False)]:
        plain, model = network(), network(seed=rank).to("cuda")  # of other ranks other parameters, at first
        parallel = DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=cap)
        near(plain, on_the_host(model), "shared")
        a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(parallel.parameters(), 0.1)
        for x, y in zip(X, Y, strict=True):
            step_of(plain, a, x, y, set_to_none=set_to_none)
            step_of(parallel, b, mine(x), there(y), set_to_none=set_to_none)  # ``device_ids`` moves the inputs
            near(plain, on_the_host(model), cap)
        if size > 1:
            buckets = parallel._buckets.buckets
            assert (len(buckets) > 1) == (cap < 1)
            for bucket in buckets:
                for n in bucket.numbers:
                    assert parallel._buckets.parameters[n].grad._array.base is bucket.memory


def transfers_beside_backward(kind):
    """Backward never waits for what is on its way, and begins what it can."""
    model = network().to("cuda")
    parallel = DistributedDataParallel(model, bucket_cap_mb=1e-4)
    loss_of(parallel, there(X[0]), there(Y[0])).backward()  # after which buckets follow the order of gradients
    done, join, came = [], kind.join, parallel._buckets.came

    def joined(self):
        done.append("join")
        join(self)

    def counted(number, parameter):
        came(number, parameter)
        done.append("gradient")

    kind.join, parallel._buckets.came = joined, counted
    try:
        loss_of(parallel, there(X[0]), there(Y[0])).backward()
    finally:
        kind.join = join
    gradients, buckets = len(list(model.parameters())), len(parallel._buckets.buckets)
    assert buckets > 1 and done == ["gradient"] * gradients + ["join"] * buckets, done


def accumulation_and_what_is_kept():
    plain, model = network(), network().to("cuda")
    parallel = DistributedDataParallel(model, bucket_cap_mb=1e-4)
    for x, y in zip(X, Y, strict=True):
        loss_of(plain, x, y).backward()
    with parallel.no_sync():
        for x, y in zip(X[:2], Y[:2], strict=True):
            loss_of(parallel, there(x), there(y)).backward()
    loss_of(parallel, there(X[2]), there(Y[2])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.cpu().numpy())
    kept = [p.grad for p in model.parameters()]  # what a program holds is not written over
    before = [g.clone() for g in kept]
    parallel.zero_grad()
    loss_of(parallel, there(X[0]), there(Y[0])).backward()
    assert all(g.equal(b) for g, b in zip(kept, before, strict=True))


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList([nn.Linear(5, 2) for _ in range(size + 1)])

    def forward(self, x, which):
        return self.branches[which](x)


def unused_parameters_and_fewer_steps():
    genesis.manual_seed(0)
    model, x = Choice().double().to("cuda"), X[0].to("cuda")
    parallel = DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=1e-4)
    for _ in range(3):
        parallel.zero_grad()
        parallel(x, rank).sum().backward()  # each rank another branch, nobody the last
        for branch in model.branches[:size]:
            np.testing.assert_allclose(branch.weight.grad.cpu().numpy(), np.tile(X[0].sum(0).numpy() / size, (2, 1)))
        assert model.branches[size].weight.grad is None
    layer = nn.Linear(5, 2).double().to("cuda")
    parallel = DistributedDataParallel(layer)
    with parallel.join():
        for _ in range(1 + rank):
            parallel.zero_grad()
            parallel(x).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.cpu().numpy(), np.tile(X[0].sum(0).numpy() / size, (2, 1)))


def buffers_and_halves():
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3)).double().to("cuda")
    with genesis.no_grad():
        model[1].running_mean += rank
    parallel = DistributedDataParallel(model)
    assert model[1].running_mean.tolist() == [0, 0, 0]
    parallel(there(X[0]))
    parallel.eval()(there(X[1]))  # which makes the buffers those of rank 0
    means = [None] * size
    dist.all_gather_object(means, model[1].running_mean.cpu())
    assert all(m.equal(means[0]) for m in means)
    layer = nn.Linear(5, 2).bfloat16().to("cuda")
    parallel = DistributedDataParallel(layer)
    parallel(genesis.full((4, 5), float(rank), dtype=genesis.bfloat16, device="cuda")).sum().backward()
    assert (layer.weight.grad == 4 * (size - 1) / 2).all().item() and layer.weight.grad.dtype == genesis.bfloat16


def compiled():
    plain, model = network(), network().to("cuda")
    parallel = DistributedDataParallel(model)
    a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(parallel.parameters(), 0.1)
    step = compiled_step(parallel, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(there(x), there(y))
        near(plain, on_the_host(model))


def wrong():
    layer = nn.Linear(2, 2).to("cuda")
    refused(ValueError, "the module is on cuda:0", lambda: DistributedDataParallel(layer, device_ids=[0, 1]))
    refused(ValueError, "the module is on cpu", lambda: DistributedDataParallel(nn.Linear(2, 2), device_ids=[0]))
    refused(NotImplementedError, "shards are summed on the CPU", lambda: DistributedDataParallel(layer, shards=4))
    parallel = DistributedDataParallel(layer)
    refused(RuntimeError, "no gradient came for weight", lambda: (parallel(genesis.ones(1, 2, device="cuda")),
                                                                  layer.bias.sum().backward()))  # fmt: skip
    refused(RuntimeError, "integers have no mean",
            lambda: dist.all_reduce(genesis.ones(2, dtype=genesis.int64, device="cuda"), dist.ReduceOp.AVG))  # fmt: skip


def other_orders_of_waiting():
    """A rank that waits in another group brings its transfers of this one forward."""
    other = dist.new_group(range(size))
    x = genesis.full((3,), float(rank), device="cuda")
    work = dist.all_reduce(x, async_op=True)
    if rank:
        work.wait()
    y = genesis.ones(2)
    dist.all_reduce(y, group=other)
    work.wait()
    assert x.tolist() == [size * (size - 1) / 2] * 3 and y.tolist() == [size] * 2


# ---- parameters and states in parts


def rows(width=9):
    """Rows that do not divide among the ranks."""
    genesis.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width + 2), nn.ReLU(), nn.Linear(width + 2, 2)
    ).double()


def sharded(net, **options):
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(net, **options)


def same_as_whole(plain, model, note="", rtol=1e-10):
    for (name, p), q in zip(plain.named_parameters(), model.parameters(), strict=True):
        assert q.device.type == "cuda"
        whole = q.full_tensor().detach().cpu().numpy()
        np.testing.assert_allclose(p.detach().numpy(), whole, rtol=rtol, atol=rtol, err_msg=f"{note} {name}")


def sharded_training():
    for options in ({}, {"reshard_after_forward": False}):
        for width in (9, 200):  # the second travels alone
            plain, model = rows(width), sharded(rows(width).to("cuda"), **options)
            a, b = optim.AdamW(plain.parameters(), 0.01), optim.AdamW(model.parameters(), 0.01)
            for x, y in zip(X, Y, strict=True):
                norm = step_of(plain, a, x, y, 0.5)
                np.testing.assert_allclose(step_of(model, b, there(x), there(y), 0.5), norm, rtol=1e-10)
                same_as_whole(plain, model, (options, width))
    for name, q in model.state_dict().items():
        assert q.full_tensor().cpu().equal(model.get_parameter(name).full_tensor().cpu())
    again = sharded(rows(width).to("cuda"))
    again.load_state_dict({name: p.detach() for name, p in plain.state_dict().items()})  # whole ones, of the CPU
    same_as_whole(plain, again)


def sharded_in_other_forms():
    plain, model = rows(), sharded(rows().to("cuda"))
    for x, y in zip(X, Y, strict=True):
        loss_of(plain, x, y).backward()
    model.set_requires_gradient_sync(False)
    for x, y in zip(X[:2], Y[:2], strict=True):
        loss_of(model, there(x), there(y)).backward()
    model.set_requires_gradient_sync(True)
    loss_of(model, there(X[2]), there(Y[2])).backward()
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.full_tensor().cpu().numpy(), rtol=1e-10)
    half = sharded(rows().to("cuda"))
    half.set_gradient_divide_factor(1.0)
    half[0].set_gradient_divide_factor(2.0 * size)
    loss_of(half, there(X[0]), there(Y[0])).backward()
    plain.zero_grad()
    loss_of(plain, X[0], Y[0]).backward()
    g = half[0].weight.grad.full_tensor().cpu().numpy()
    np.testing.assert_allclose(2 * g, plain[0].weight.grad.numpy(), rtol=1e-10)
    policy = MixedPrecisionPolicy(param_dtype=genesis.float32, reduce_dtype=genesis.float32)
    plain, narrow = rows(), sharded(rows().to("cuda"), mp_policy=policy)
    loss_of(plain, X[0], Y[0]).backward()
    loss_of(narrow, there(X[0]), there(Y[0])).backward()
    for p, q in zip(plain.parameters(), narrow.parameters(), strict=True):
        assert q.dtype == q.grad.dtype == genesis.float64
        np.testing.assert_allclose(p.grad.numpy(), q.grad.full_tensor().cpu().numpy(), rtol=1e-4, atol=1e-5)
    later = sharded(rows()).to("cuda")  # divided on the CPU, and moved
    plain = rows()
    a, b = optim.SGD(plain.parameters(), 0.1), optim.SGD(later.parameters(), 0.1)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step_of(later, b, there(x), there(y))
    same_as_whole(plain, later)


def sharded_and_compiled():
    plain, model = rows(), sharded(rows().to("cuda"))
    a, b = optim.Adam(plain.parameters(), 0.1), optim.Adam(model.parameters(), 0.1)
    step = compiled_step(model, b)
    for x, y in zip(X, Y, strict=True):
        step_of(plain, a, x, y)
        step(there(x), there(y))
        same_as_whole(plain, model)


def states_in_parts():
    for views in (False, True):
        for width in (9, 200):
            plain, model = rows(width), rows(width).to("cuda")
            parallel = DistributedDataParallel(model)
            a = optim.Adam(plain.parameters(), 0.1)
            b = ZeroRedundancyOptimizer(parallel.parameters(), optim.Adam, None, views, lr=0.1)
            for x, y in zip(X, Y, strict=True):
                step_of(plain, a, x, y)
                step_of(parallel, b, there(x), there(y))
            for p, q in zip(plain.parameters(), model.parameters(), strict=True):
                np.testing.assert_allclose(p.detach().numpy(), q.detach().cpu().numpy(), rtol=1e-8, atol=1e-10)
    b.consolidate_state_dict(to=0)
    if rank == 0:
        assert len(b.state_dict()["state"]) == len(list(model.parameters()))


def stages():
    """What stages send lies on the GPU on both sides."""
    genesis.manual_seed(0)
    layers = nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 2)
    parts = [layer.double() for layer in layers]
    plain = copy.deepcopy(parts)
    loss_of(nn.Sequential(*plain), X[0], Y[0]).backward()
    own = [PipelineStage(parts[i].to("cuda"), i, len(parts), "cuda") for i in range(rank, len(parts), size)]
    schedule = ScheduleInterleaved1F1B(own, size, lambda out, y: ((out - y) ** 2).mean())
    out = schedule.step(*([X[0].to("cuda")] if rank == 0 else []), target=Y[0].to("cuda"))
    assert out is None or out.device.type == "cuda"
    for stage in own:
        for p, q in zip(stage.submod.parameters(), plain[stage.stage_index].parameters(), strict=True):
            assert p.grad.device.type == "cuda"
            np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-12)


def check(kind):
    stages()
    parallel_training()
    if size > 1:
        transfers_beside_backward(kind)
        unused_parameters_and_fewer_steps()
        buffers_and_halves()
        wrong()
    accumulation_and_what_is_kept()
    other_orders_of_waiting()
    compiled()
    sharded_training()
    sharded_in_other_forms()
    states_in_parts()


comm = MPI.COMM_WORLD.Dup()
with using(Emulated(1)) as driver:
    check(Staged)
    sharded_and_compiled()  # (the stand-in of NCCL is Python that writes: a compiled call is none of such)
    dist.destroy_process_group()
    with loading.standing_in(nccl=Nccl(driver, comm.allgather)):
        dist.init_process_group("nccl")
        check(nccl.Transfer)
        dist.destroy_process_group()
print(f"rank {rank} is done", flush=True)
