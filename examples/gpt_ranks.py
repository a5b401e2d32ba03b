"""The small GPT of gpt_text.py, trained by several processes.

    python examples/gpt_ranks.py [picture.svg]
    genesis run -n 2 examples/gpt_ranks.py [picture.svg]

With a file name, one step is drawn into it: where each rank computed, and what was on its way meanwhile.
"""

import sys

from gpt_text import BATCH, GPT, STEPS, TEXT, encoded
from tqdm import tqdm

import genesis as torch
import genesis.distributed as dist
from genesis.data import DataLoader, DistributedSampler, TensorDataset
from genesis.nn import functional as F
from genesis.nn.parallel import DistributedDataParallel
from genesis.profiler import export_ranks, profile

dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
windows = encoded(TEXT * 3).unfold(0, STEPS + 1, 1)  # (places in the text, STEPS + 1)
data = TensorDataset(windows[:, :-1], windows[:, 1:])
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=BATCH // ranks, sampler=sampler, drop_last=True)
model = DistributedDataParallel(GPT(), bucket_cap_mb=0.2)  # small buckets: something is on its way early
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)


def train_step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
    return loss.detach()


for epoch in tqdm(range(5), disable=None if rank == 0 else True, leave=False):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = train_step(x, y)
    dist.all_reduce(loss, dist.ReduceOp.AVG)  # of the last batch, of all ranks
    if rank == 0:
        tqdm.write(f"epoch {epoch + 1}  loss {loss.item():.3f}")
if len(sys.argv) > 1:
    dist.barrier()  # all begin at once
    with profile() as step:
        train_step(x, y)
    export_ranks(step, sys.argv[1])  # all ranks call it
if rank == 0:
    print(model.module.write("the old tree", 60))
