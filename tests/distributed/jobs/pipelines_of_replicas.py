"""Pipelines of which there are two, each with half of the batch: stages that are replicas, or of which each rank has a part."""

from __future__ import annotations

import copy

import numpy as np
from together import rank, size

import genesis
from genesis import nn
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.fsdp import FullyShardedDataParallel, fully_shard
from genesis.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from genesis.nn.parallel import DistributedDataParallel

F = nn.functional
WIDTH, ROWS, MICROBATCHES = 6, 8, 4
mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("pp", "dp"))
PIPE, COPIES = mesh["pp"].get_group(), mesh["dp"].get_group()
stage_rank, copy_rank = PIPE.rank(), COPIES.rank()


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + self.two(self.one(x).tanh())


def replicated(module):
    return DistributedDataParallel(module, process_group=COPIES)


def sharded(module):
    for inner in (module.one, module.two, module):
        fully_shard(inner, mesh=mesh["dp"])
    return module


def kept_whole(module):
    return fully_shard(module, mesh=mesh["dp"], reshard_after_forward=False)


def wrapped(module):
    return FullyShardedDataParallel(module, process_group=COPIES, use_orig_params=True)


def gradients(module):
    parameters = dict(module.named_parameters())
    return {
        name.removeprefix("module."): getattr(p.grad, "full_tensor", lambda g=p.grad: g)()
        for name, p in parameters.items()
    }


genesis.manual_seed(1)
numbers = np.random.default_rng(2).standard_normal((2, 2 * ROWS, WIDTH))
x, y = (genesis.tensor(each) for each in numbers)
mine = slice(copy_rank * ROWS, (copy_rank + 1) * ROWS)
counted = []
for local in (1, 2):
    modules = [Part().double() for _ in range(local * (size // 2))]
    expected = copy.deepcopy(modules)
    F.mse_loss(nn.Sequential(*expected)(x), y).backward()
    for divided in (replicated, sharded, kept_whole, wrapped):
        own = {i: divided(copy.deepcopy(modules[i])) for i in range(stage_rank, len(modules), size // 2)}
        stages = [PipelineStage(module, i, len(modules), "cpu", group=PIPE) for i, module in own.items()]
        schedule = (
            Schedule1F1B(stages[0], MICROBATCHES, F.mse_loss)
            if local == 1
            else ScheduleInterleaved1F1B(stages, MICROBATCHES, F.mse_loss)
        )
        for _ in range(2):
            before = COPIES.calls.count
            schedule.step(*((x[mine],) if stage_rank == 0 else ()), target=y[mine])
            counted.append((divided.__name__, COPIES.calls.count - before))
            for i, module in own.items():
                for name, g in gradients(module).items():
                    g0 = dict(expected[i].named_parameters())[name.replace("_fsdp_wrapped_module.", "")].grad
                    np.testing.assert_allclose(
                        g.numpy(), g0.numpy(), rtol=1e-9, atol=1e-12, err_msg=f"{divided.__name__} {name}"
                    )
                module.zero_grad()
modules = [Part().double() for _ in range(size)]  # layers of which each rank has a part: both have the whole batch
expected = copy.deepcopy(modules)
F.mse_loss(nn.Sequential(*expected)(x), y).backward()
plan = {"one": ColwiseParallel(), "two": RowwiseParallel()}
own = {i: parallelize_module(modules[i], mesh["dp"], plan) for i in range(stage_rank, size, size // 2)}
stages = [PipelineStage(module, i, size, "cpu", group=PIPE) for i, module in own.items()]
ScheduleInterleaved1F1B(stages, MICROBATCHES, F.mse_loss).step(*((x,) if stage_rank == 0 else ()), target=y)
for i, module in own.items():
    for (name, g), p in zip(gradients(module).items(), expected[i].parameters(), strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
# one sum of each stage's gradients in a step, not one for each microbatch; the first step of a replica tells of an order, too
assert [n for name, n in counted if name == "replicated"][1::2] == [1, 2], counted
print(f"rank {rank} is done")
