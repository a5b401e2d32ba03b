"""One training on any number of ranks, killed or not: prints the sha256 of all that it ends with."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import genesis
import genesis.distributed as dist
from genesis import nn, optim
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.distributed.checkpoint import Snapshots, parts
from genesis.nn.parallel import DistributedDataParallel

SHARDS, BATCH, STEPS, EVERY, KILLS = 4, 16, 40, 3, 20
folder, how = sys.argv[1], sys.argv[2]
killed = Path(folder + ".kills")  # a line for each death
deaths = killed.read_text().splitlines() if killed.exists() else []
PLACES = ("start", "beginning", "step", "barrier", "save", "commit")
step = 0


class Death:
    """Where one of the ranks kills itself, another place in each attempt."""

    def __init__(self, size: int) -> None:
        chance = random.Random(1000 + len(deaths))
        self.victim, self.place, self.after = chance.randrange(size), chance.choice(PLACES), chance.randrange(1, 6)
        self.armed = how == "killed" and len(deaths) < KILLS and self.victim == int(os.environ["RANK"])

    def at(self, place: str, steps: int = 100) -> None:
        """Die here, if it is the place and the time."""
        if self.armed and place == self.place and steps >= self.after:
            with killed.open("a") as file:
                file.write(f"{step}\n")
            os.kill(os.getpid(), signal.SIGKILL)


death = Death(int(os.environ.get("WORLD_SIZE", "1")))
death.at("start")
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
death.at("beginning")


class Network(nn.Module):
    """With all that depends on how a batch is divided: random numbers, statistics, a shared weight."""

    def __init__(self):
        super().__init__()
        norm = nn.LayerNorm(12) if how == "compiled" else nn.BatchNorm1d(12)
        self.first, self.norm, self.second = nn.Linear(6, 12), norm, nn.Linear(12, 12)
        self.last = nn.Linear(12, 3)

    def forward(self, x):
        x = nn.functional.dropout(self.norm(self.first(x)).relu(), 0.3, self.training)
        return self.last(self.second(self.second(x).tanh()))


genesis.manual_seed(1)
data = TensorDataset(genesis.randn(96, 6), genesis.randint(0, 3, (96,)), genesis.arange(96))
loader = DataLoader(data, batch_size=BATCH // size, sampler=DistributedSampler(data), drop_last=True)
model = DistributedDataParallel(Network(), shards=SHARDS, bucket_cap_mb=0.0005)
optimizer = optim.Adam(model.parameters(), 0.01)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
state = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader, "seen": []}
snapshots = Snapshots(folder, EVERY)
step = began = snapshots.resume(state)
if deaths:  # at most so many steps are computed again
    assert began >= int(deaths[-1]) - EVERY, (began, deaths[-1])


def dying(place, call):
    def wrapped(*args, **kwargs):
        death.at(place, step - began)
        return call(*args, **kwargs)

    return wrapped


os.fsync, os.replace = dying("save", os.fsync), dying("commit", os.replace)


def train(x, y):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    death.at("step", step - began)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


if how == "compiled":
    train = genesis.compile(train)
while step < STEPS:
    loader.sampler.set_epoch(step // len(loader))
    for x, y, numbers in loader:
        train(x, y)
        scheduler.step()
        step += 1
        if death.armed and death.place == "barrier" and step - began == death.after:
            time.sleep(0.1)  # the others wait by now
        death.at("barrier", step - began)
        of_all = [None] * size
        dist.all_gather_object(of_all, numbers.tolist())
        state["seen"].append(sorted(n for each in of_all for n in each))
        snapshots.save(step, state)
        if step == STEPS:
            break
snapshots.wait()
for epoch in range(STEPS * BATCH // 96):  # no sample twice or never
    assert sorted(sum(state["seen"][epoch * 6 : epoch * 6 + 6], [])) == list(range(96))
if rank == 0:
    _, pieces = parts.described(state)
    weights = {
        name: hashlib.sha256(piece.host().tobytes()).hexdigest()
        for name, piece in sorted(pieces.items())
        if not name.startswith("loader")
    }
    total = hashlib.sha256(json.dumps(weights).encode()).hexdigest()
    print(f"began {began} digest {total} of {len(weights)}")
dist.barrier()
print(f"rank {rank} is done")
