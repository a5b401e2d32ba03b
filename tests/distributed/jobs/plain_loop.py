"""The loop of the guide, which says nothing of shards: prints the sha256 of parameters and of the optimizer's state."""

from __future__ import annotations

import hashlib

import genesis
import genesis.distributed as dist
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.nn.parallel import DistributedDataParallel

genesis.manual_seed(0)
dist.init_process_group()
data = TensorDataset(
    genesis.randn(42, 4), genesis.randn(42, 1)
)  # the last batches are smaller, the last rows come twice
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=3, sampler=sampler)
model = DistributedDataParallel(
    genesis.nn.Sequential(genesis.nn.Linear(4, 6), genesis.nn.Tanh(), genesis.nn.Linear(6, 1))
)
optimizer = genesis.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        genesis.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
if dist.get_rank() == 0:
    digest = hashlib.sha256()
    for p in model.parameters():
        for x in (p, *optimizer.state[p].values()):
            digest.update(genesis.as_tensor(x).detach().numpy().tobytes())
    print(f"{len(loader)} batches, digest {digest.hexdigest()}")
dist.barrier()
print(f"rank {dist.get_rank()} is done")
