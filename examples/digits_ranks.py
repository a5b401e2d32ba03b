"""train_digits.py in as many processes as are started; one file serves a laptop and a cluster.

python examples/digits_ranks.py
genesis run -n 2 examples/digits_ranks.py
"""

from tqdm import tqdm

import genesis as torch
import genesis.distributed as dist
from genesis import nn
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.datasets import digits
from genesis.nn.parallel import DistributedDataParallel

dist.init_process_group()  # a process that nobody launched is a world of one
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()
data = TensorDataset(*digits("train"))
sampler = DistributedSampler(data)  # other examples in each rank
loader = DataLoader(data, batch_size=64 // ranks, sampler=sampler)
images, labels = digits("test")

for epoch in tqdm(range(10), disable=None if rank == 0 else True, leave=False):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # gradients are the means over all ranks
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(images).argmax(1) == labels).float().mean()
    if rank == 0:
        tqdm.write(f"epoch {epoch + 1:2d}  loss {loss.item():.3f}  held-out accuracy {accuracy:.1%}")
print(f"rank {rank} of {ranks} has weights of norm {nn.utils.parameters_to_vector(model.parameters()).norm():.4f}")
