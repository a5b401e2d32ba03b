"""Pipelines in which something is wrong, by name: what is said of it goes to stderr."""

from __future__ import annotations

import sys
import time
from datetime import timedelta

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.device_mesh import init_device_mesh
from genesis.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from genesis.distributed.tensor import distribute_tensor

case = sys.argv[1]
dist.init_process_group(timeout=timedelta(seconds=2 if case == "hang" else 60))
rank = dist.get_rank()


class Fails(nn.Module):
    def forward(self, x):
        if case == "exception" and rank == 1 and (x == 6).any():
            raise KeyError("no such thing")
        if case == "hang" and rank == 1:
            time.sleep(6)
        return distribute_tensor(x, mesh["tp"]) if case == "dtensor" else x * 1


mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("pp", "tp"))
kind = ScheduleGPipe if case == "schedule" and rank == 1 else Schedule1F1B
stage = PipelineStage(Fails(), rank, 2, "cpu")
schedule = kind(stage, 3 if case == "count" and rank == 1 else 4, nn.functional.mse_loss)
x = genesis.arange(8.0).requires_grad_()
run = schedule.eval if case == "eval" and rank == 1 else schedule.step
run(*((x,) if rank == 0 else ()), target=None if case == "target" else x.detach())
