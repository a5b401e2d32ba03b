"""One program for PyTorch and for Genesis: what its schedules are, losses, results and gradients, into a file of this rank.

pipelines_of_pytorch.py torch|genesis folder
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

name, folder = sys.argv[1:]
torch = importlib.import_module(name)
dist = importlib.import_module(f"{name}.distributed")
pipelining = importlib.import_module(f"{name}.distributed.pipelining")
nn = torch.nn
WIDTH = 5

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


class Stage(nn.Module):
    def __init__(self, index):
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)
        numbers = np.random.default_rng(index)
        with torch.no_grad():
            self.lin.weight.copy_(torch.tensor(numbers.standard_normal((WIDTH, WIDTH)).astype(np.float32)))
            self.lin.bias.copy_(torch.tensor(numbers.standard_normal(WIDTH).astype(np.float32)))

    def forward(self, x, shift=None):
        x = torch.tanh(self.lin(x))
        return x if shift is None else x + shift


kept = {}
for kind, local, n in (
    ("ScheduleGPipe", 1, 3), ("Schedule1F1B", 1, 4), ("ScheduleInterleaved1F1B", 2, 4), ("ScheduleInterleaved1F1B", 3, 6),
    ("ScheduleLoopedBFS", 2, 3),
):  # fmt: skip
    modules = {i: Stage(i) for i in range(rank, local * size, size)}
    stages = [pipelining.PipelineStage(m, i, local * size, torch.device("cpu")) for i, m in modules.items()]
    several = local > 1
    schedule = getattr(pipelining, kind)(stages if several else stages[0], n, loss_fn=nn.functional.mse_loss)
    numbers = np.random.default_rng(9).standard_normal((2, 12, WIDTH)).astype(np.float32)
    x, y, shift = (torch.tensor(each) for each in (*numbers, numbers[1]))
    losses = []
    out = schedule.step(*((x,) if rank == 0 else ()), target=y, losses=losses, shift=shift)
    key = f"{kind} {local} {n}"  # copies: an eval of PyTorch divides gradients once more
    for i, m in modules.items():
        kept[f"{key} weight {i}"], kept[f"{key} bias {i}"] = (
            m.lin.weight.grad.numpy().copy(),
            m.lin.bias.grad.numpy().copy(),
        )
    if rank == size - 1:
        kept[f"{key} out"] = out.detach().numpy()
        kept[f"{key} losses"] = np.array([loss.item() for loss in losses])
    else:
        assert out is None and losses == []
    evaluated = schedule.eval(*((x,) if rank == 0 else ()), target=y, losses=losses, shift=shift)
    if rank == size - 1:
        kept[f"{key} eval"] = evaluated.detach().numpy()
    if several:
        order = (
            schedule.order(rank) if name == "genesis" else [a for a in schedule.pipeline_order[rank] if a is not None]
        )
        kept[f"{key} order"] = np.array([str(action) for action in order])
np.savez(Path(folder) / f"{name}{rank}.npz", **kept)
dist.destroy_process_group()
print(f"rank {rank} is done", flush=True)
