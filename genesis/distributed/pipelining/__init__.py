"""``torch.distributed.pipelining``: a model in stages, each in a rank, through which the parts of a batch go.

`stage`      a part of a model                 `schedules` `runtime`   who computes what when; a step
`actions`    the lists of it, and tables       `transfers`             what stages send each other
`microbatch` batches in chunks                 `pipe` `splitting`      stages made of a model's program
"""

from __future__ import annotations

from genesis.distributed.pipelining.pipe import Pipe, build_stage, pipeline
from genesis.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from genesis.distributed.pipelining.splitting import SplitPoint, pipe_split
from genesis.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS",
    "SplitPoint", "build_stage", "pipe_split", "pipeline",
]  # fmt: skip
