"""A network that does not fit one rank's memory, trained by several: each keeps its part of everything.

    genesis run -n 2 examples/sharded_training.py

Each rank may hold 32 MB (a limit that is made here, `Limit`). Parameters, gradients and the two averages of Adam are 34;
so a rank alone gives up, and two with `fully_shard` have room for their halves and the layers that they compute with.
"""

import tracemalloc

from tqdm import tqdm

import genesis as torch
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.fsdp import fully_shard

LIMIT, STEPS, BATCH, WIDTH, DEPTH = 32e6, 20, 64, 512, 8


class Limit:
    """Says no when this rank holds more than it may: what NumPy and Python keep is counted."""

    def __enter__(self):
        tracemalloc.start()
        return self

    def check(self):
        self.peak = tracemalloc.get_traced_memory()[1]
        if self.peak > LIMIT:
            raise MemoryError(f"a rank may hold {LIMIT / 1e6:.0f} MB, and needs {self.peak / 1e6:.0f}")

    def __exit__(self, *_):
        tracemalloc.stop()


class Layer(nn.Module):
    """x + relu(W x + b) / 2."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.relu(self.linear(x)) / 2


def main():
    dist.init_process_group()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    with Limit() as limit:
        layers = [fully_shard(Layer()) for _ in range(DEPTH)]  # one at a time is whole
        model = fully_shard(nn.Sequential(*layers))
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        torch.manual_seed(rank)  # each rank has examples of its own, to be learned by heart
        x, y = torch.randn(2, BATCH // ranks, WIDTH)
        for step in tqdm(range(1, STEPS + 1), disable=None if rank == 0 else True, leave=False):
            loss = (model(x) - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            limit.check()
            dist.all_reduce(mean := loss.detach().clone(), dist.ReduceOp.AVG)
            if rank == 0 and step % 10 == 0:
                tqdm.write(f"step {step}  loss {float(mean):.3f}  norm of the gradient {float(norm):.3f}")
    if rank == 0:
        print(
            f"{ranks} ranks trained {sum(p.numel() for p in model.parameters()):,} parameters",
            end="",
        )
        print(f" with at most {limit.peak / 1e6:.0f} MB each")


if __name__ == "__main__":
    try:
        main()
    except MemoryError as error:
        print(f"{dist.get_world_size()} rank: {error}; try: genesis run -n 2")
