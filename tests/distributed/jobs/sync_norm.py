"""Batch norm over the batches of all ranks: as one process's with all of them, values, gradients, statistics, bits of all ranks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import genesis
import genesis.distributed as dist
from genesis import nn

warnings.simplefilter("error")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


def rows(who, counts, *rest):
    return genesis.tensor(np.random.default_rng([who, 7]).standard_normal((counts[who], *rest)) * 3 + 100)


def beside_one_process(counts, rest, **options):
    """Two steps and an evaluation; each rank has so many rows of its own."""
    everybody = genesis.cat([rows(who, counts, *rest) for who in range(size)])
    begin = sum(counts[:rank])
    ours = slice(begin, begin + counts[rank])
    plain = nn.BatchNorm1d(rest[0], dtype=genesis.float64, **options)
    shared = nn.SyncBatchNorm(rest[0], dtype=genesis.float64, **options)
    x, own = everybody.requires_grad_(), rows(rank, counts, *rest).requires_grad_()
    for _ in range(2):
        want, got = plain(x), shared(own)
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy()[ours], rtol=1e-9, atol=1e-9)
        want.sin().sum().backward()
        got.sin().sum().backward()
        np.testing.assert_allclose(own.grad.numpy(), x.grad.numpy()[ours], rtol=1e-8, atol=1e-10)
    for p, q in zip(plain.parameters(), shared.parameters(), strict=True):
        mine = q.grad.clone()
        dist.all_reduce(mine)
        np.testing.assert_allclose(mine.numpy(), p.grad.numpy(), rtol=1e-9)
    for (name, p), q in zip(plain.named_buffers(), shared.buffers(), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-12, err_msg=name)
        everywhere = [genesis.empty_like(q) for _ in range(size)]
        dist.all_gather(everywhere, q)
        assert all(genesis.equal(q, each) for each in everywhere), name
    if shared.running_mean is not None:  # else each rank's own rows, as in PyTorch
        want, got = plain.eval()(x), shared.eval()(own)
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy()[ours], rtol=1e-9, atol=1e-9)


even, uneven, with_none = [4] * size, [2 + who for who in range(size)], [3 * (who > 0) for who in range(size)]
for counts in (even, uneven, with_none, [1] * size):
    if sum(counts) > 1:
        beside_one_process(counts, (3, 5))
        beside_one_process(counts, (3, 5), momentum=None)
        beside_one_process(counts, (2, 4), affine=False, track_running_stats=False) if min(counts) else None
if size > 1:
    with pytest.raises(ValueError, match="more than 1 value of each channel in training, got 0 in all ranks together"):
        nn.SyncBatchNorm(3)(genesis.zeros(0, 3))

# images, 16-bit floats, whose statistics are those of float32
norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(2)))
half = norm(genesis.randn(3, 2, 4, 4).bfloat16())
assert half.dtype == genesis.bfloat16 and norm[0].running_mean.dtype == genesis.float32

# in DistributedDataParallel, and as one compiled step: as one process with all rows
genesis.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.SyncBatchNorm(4), nn.ReLU(), nn.Linear(4, 1)).double()
alone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1)).double()
alone.load_state_dict(net.state_dict())
everybody = genesis.cat([rows(who, even, 3) for who in range(size)])
ours = everybody[4 * rank : 4 * rank + 4]
model = nn.parallel.DistributedDataParallel(net)
for p in model, alone:
    p.train()


def training(model, x):
    optimizer = genesis.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


for step, one in ((training(model, ours), training(alone, everybody)),
                  (genesis.compile(training(model, ours)), training(alone, everybody))):  # fmt: skip
    for _ in range(5):
        step()
        one()
    for (name, p), q in zip(alone.state_dict().items(), net.state_dict().values(), strict=True):
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-7, atol=1e-12, err_msg=name)

# a group of some ranks
if size > 2:
    some = dist.new_group([0, 1])
    if rank < 2:
        own, other = rows(rank, even, 3), rows(1 - rank, even, 3)
        want = nn.BatchNorm1d(3).double()(genesis.cat([own, other]))[:4]
        np.testing.assert_allclose(nn.SyncBatchNorm(3, process_group=some).double()(own).detach().numpy(),
                                   want.detach().numpy(), rtol=1e-9, atol=1e-9)  # fmt: skip
    else:
        with pytest.raises(RuntimeError, match="not in the group"):
            nn.SyncBatchNorm(3, process_group=some)(genesis.zeros(2, 3))

print(f"rank {rank} is done")
