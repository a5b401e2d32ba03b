"""A `Sequential` whose linear layers take the rows of all shards: prints the sha256 of what it ends with, in several ways."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.utils.checkpoint import checkpoint

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


class Again(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(width, width), nn.GELU())

    def forward(self, x):
        return x + checkpoint(self.layer, x, use_reentrant=False)


ROWS = {"layers": 128, "few": 16, "narrow": 256, "many": 4096}  # of compiled steps of layers that take all rows


def network(how):
    if how in ROWS:
        layers = nn.Sequential(nn.Linear(300, 256, bias=False), nn.LeakyReLU())
        return nn.Sequential(nn.Linear(64, 300), nn.ReLU(), layers, nn.Linear(256, 3 if how == "narrow" else 10))
    norm = nn.LayerNorm(256) if how == "compiled" else nn.BatchNorm1d(256)
    inner = nn.Sequential(nn.Linear(300, 256, bias=False), nn.GELU())
    first = [nn.Linear(64, 300), nn.Dropout(0.3), nn.LayerNorm(300)]
    return nn.Sequential(*first, inner, norm, Again(256), nn.Dropout(0.1), nn.Linear(256, 10))


def trained(how):
    genesis.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(network(how), shards=4)
    optimizer = optim.Adam(model.parameters(), 0.01)
    rows = ROWS.get(how, 128)
    inputs, targets = genesis.randn(4, rows, 64), genesis.randint(0, 3 if how == "narrow" else 10, (4, rows))

    def step(x, y):
        optimizer.zero_grad()
        with genesis.autocast("cpu", dtype=genesis.bfloat16) if how == "autocast" else nullcontext():
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if how == "clipped":
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    run = genesis.compile(step) if how == "compiled" or how in ROWS else step
    for x, y in zip(inputs, targets, strict=True):
        run(x[rank::size], y[rank::size])
    return b"".join([value.numpy().tobytes() for value in model.state_dict().values()])


ways = [trained(how) for how in ("eager", "clipped", "autocast", "compiled", *ROWS)]
assert len(set(ways)) == len(ways)
if rank == 0:
    print(f"digest {hashlib.sha256(b''.join(ways)).hexdigest()}")
dist.barrier()
print(f"rank {rank} is done")
