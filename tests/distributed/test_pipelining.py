"""Pipelines: schedules as tables, models that are divided by their program, and what several ranks do with them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
from ranks import JOBS, job, needs_mpi, passes

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.pipelining import (
    Pipe,
    PipelineStage,
    ScheduleInterleaved1F1B,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)
from genesis.distributed.pipelining.actions import Action, drawn, each, timetable
from genesis.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

F = nn.functional


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        if x.sum().item() == 1e9:  # no tracer could follow
            return x
        x = x + self.inner(x).tanh()
        return x if mask is None else x * mask


class Net(nn.Module):
    """What it computes first is used again at the end, and so is an argument; an option decides."""

    def __init__(self, layers=3):
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([Layer() for _ in range(layers)])
        self.register_buffer("shift", genesis.arange(4.0))
        self.scale, self.head = nn.Parameter(genesis.ones(4)), nn.Linear(4, 5)

    def forward(self, text, mask=None, *, twice=False, options=(1, 2)):
        first = x = self.words(text) + self.shift
        for layer in self.layers:
            x = layer(x, mask)
        if twice:
            x = x * options[1]
        return self.head(x * self.scale + first), x.shape[0]


@pytest.fixture
def world():
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def in_order(pipe, *args, **kwargs):
    return [build_stage(pipe.get_stage_module(i), i, pipe.info(), "cpu") for i in range(pipe.num_stages)]


def test_a_divided_model_is_the_model(world):
    genesis.manual_seed(0)
    model, text, mask = Net(), genesis.arange(6).reshape(6, 1) % 5, genesis.rand(6, 1, 4)
    points = {"layers.1": SplitPoint.BEGINNING, "layers.2": SplitPoint.END}
    pipe = pipeline(model, (text[:2],), {"mask": mask[:2], "twice": True}, points)
    assert pipe.num_stages == 3 and isinstance(pipe, Pipe)
    expected = model(text, mask, twice=True)
    out = pipe(text, mask=mask, twice=True)
    assert genesis.equal(out[0], expected[0]) and out[1] == 6
    assert {
        k: v for i in range(3) for k, v in pipe.get_stage_module(i).state_dict().items()
    }.keys() == model.state_dict().keys()
    assert [*pipe.get_stage_module(1).state_dict()] == [
        f"layers.{i}.inner.{p}" for i in (1, 2) for p in ("weight", "bias")
    ]
    assert all(
        [
            p is dict(model.named_parameters())[n]
            for i in range(3)
            for n, p in pipe.get_stage_module(i).named_parameters()
        ]
    )
    with pytest.raises(ValueError, match="twice"):
        pipe(text, mask=mask, twice=False)


def test_its_stages_train_as_the_model_does(world):
    genesis.manual_seed(0)
    model, text, target = Net(), genesis.arange(6).reshape(6, 1) % 5, genesis.arange(6) % 5
    pipe = pipeline(model, (text[:2],), split_spec={f"layers.{i}": SplitPoint.BEGINNING for i in range(3)})
    losses = []

    def loss_fn(out, y):
        return F.cross_entropy(out[0].flatten(0, 1), y)

    ScheduleInterleaved1F1B(in_order(pipe), 3, loss_fn).step(text, target=target, losses=losses, return_outputs=False)
    have = [p.grad for p in model.parameters()]
    model.zero_grad()
    for i in range(3):
        loss = loss_fn(model(text[2 * i : 2 * i + 2]), target[2 * i : 2 * i + 2])
        (loss / 3).backward()
        assert loss.item() == losses[i].item()
    for g, p in zip(have, model.parameters(), strict=True):
        np.testing.assert_allclose(g.numpy(), p.grad.numpy(), rtol=1e-6, atol=1e-7)


class Marked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, *more, **named):
        x = self.a(x)
        pipe_split()
        x = genesis.relu(x)
        pipe_split()
        return {"out": self.b(x), "same": x}


def test_stages_begin_where_the_program_says():
    model, x = Marked(), genesis.rand(3, 2)
    pipe = pipeline(model, (x,))
    assert [type(pipe.get_stage_module(i)).__name__ for i in range(pipe.num_stages)] == ["Stage0", "Stage1", "Stage2"]
    for name, value in model(x).items():
        assert genesis.equal(pipe(x)[name], value)
    assert "relu" in pipe.print_readable(False).partition("# stage 1")[2].partition("# stage 2")[0]


def test_a_function_says_where_stages_begin():
    def before_each_linear(whole):
        for node in [*whole.graph.nodes][2:]:
            if node.op == "call_module":
                with whole.graph.inserting_before(node):
                    whole.graph.call_function(pipe_split)
        return whole

    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    pipe = pipeline(model, (genesis.ones(1, 2),), split_policy=before_each_linear)
    assert pipe.num_stages == 4 and genesis.equal(pipe(genesis.ones(1, 2)), model(genesis.ones(1, 2)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(2, 2), nn.Linear(2, 2)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.two(self.one(x))


def test_what_cannot_be_divided_is_refused():
    x = genesis.ones(1, 2)
    with pytest.raises(ValueError, match=r"stages \[0, 1\] use the parameter two.weight"):
        pipeline(Tied(), (x,), split_spec={"two": SplitPoint.BEGINNING})
    with pytest.raises(ValueError, match="does not call layer"):
        pipeline(Tied(), (x,), split_spec={"layer": SplitPoint.BEGINNING})
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        pipeline(Tied(), ())
    with pytest.raises(TypeError, match="both"):
        pipeline(Tied(), (x,), split_spec={}, split_policy=lambda whole: whole)
    with pytest.raises(ValueError, match="no stage 3 of 1"):
        pipeline(Tied(), (x,)).get_stage_module(3)


class LastFirst(PipelineScheduleMulti):
    """The last microbatch first, or (``wrong``) backwards before forwards."""

    wrong = False

    def order(self, rank):
        actions = each("F", self.stages_of(rank), range(self.n_microbatches)[::-1])
        actions += each("B", self.stages_of(rank)[::-1], range(self.n_microbatches))
        return actions[::-1] if self.wrong else actions


class Wrong(LastFirst):
    wrong = True


def test_a_schedule_of_ones_own(world):
    stages = [PipelineStage(nn.Linear(2, 2), i, 2, "cpu") for i in range(2)]
    schedule, x = LastFirst(stages, 2, F.mse_loss), genesis.rand(4, 2)
    assert str(schedule).endswith("\nrank 0  0F1 0F0 1F1 1F0 1B0 1B1 0B0 0B1")
    losses = []
    out = schedule.step(x, target=x, losses=losses)
    expected = stages[1].submod(stages[0].submod(x))
    assert genesis.allclose(out, expected) and losses[1].item() == F.mse_loss(out[2:], x[2:]).item()
    with pytest.raises(ValueError, match=r"ranks wait for each other, before \[0B1\]"):
        Wrong(stages, 2)


def test_ranks_that_wait_for_each_other_are_no_schedule():
    with pytest.raises(ValueError, match=r"before \[0B0, 1F0\]"):
        timetable([[Action(0, "B", 0), Action(0, "F", 0)], [Action(1, "F", 0)]], 1)


def test_a_table_of_who_does_what_when():
    rows = timetable([[Action(0, "F", 0), Action(0, "B", 0)], [Action(1, "F", 0), Action(1, "B", 0)]], 1)
    assert drawn(rows, True) == "rank 0  F0 .  .  B0\nrank 1  .  F0 B0 ."
    assert drawn(rows, False).splitlines()[1] == "rank 1  .   1F0 1B0 ."


def test_schedules_have_names():
    assert get_schedule_class("Interleaved1F1B") is ScheduleInterleaved1F1B
    with pytest.raises(ValueError, match="'wave'.*\n.*ScheduleGPipe"):
        get_schedule_class("wave")


def test_stages_come_in_the_order_of_the_model(world):
    stages = [PipelineStage(nn.Identity(), i, 2, "cpu") for i in (1, 0)]
    with pytest.raises(ValueError, match=r"the stages of rank 0 are \[0, 1\], and \[1, 0\] are given"):
        ScheduleInterleaved1F1B(stages, 2)


@needs_mpi
@pytest.mark.parametrize(
    "ranks", [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_pipelines_compute_what_one_rank_does(ranks):
    passes(ranks, "pipelines.py")


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_stages_of_which_there_are_replicas_or_shards(ranks):
    passes(ranks, "pipelines_of_replicas.py")


SAID = {
    "exception": (
        r"KeyError: 'no such thing'\nin the forward of stage 1 of 2, microbatch 3\n",
        r"rank 0: recv .* gradients from stage 1, microbatch 3 pipelines_wrong.py:\d+, rank 1: ended by KeyError: 'no such",
        r"in the gradients for the backward of stage 0 of 2, microbatch 3\n",
    ),
    "hang": (
        r"rank 0: recv .* from stage 1, microbatch 0 .*, rank 1: pipelines_wrong.py:\d+, after Schedule1F1B of 2 ",
    ),
    "schedule": (
        r"mismatch at call \d: rank 0: Schedule1F1B of 2 stages and 4 microbatches .*, rank 1: ScheduleGPipe of 2",
    ),
    "count": (r"rank 1: Schedule1F1B of 2 stages and 3 microbatches",),
    "dtensor": (r"a stage gives a DTensor(.*\n)*in the result of stage 0 of 2, microbatch 0",),
    "eval": (r"stage 0 is in step\(\), stage 1 in eval\(\)",),
    "target": (r"there is no target\n(.*\n)*in the loss of stage 1 of 2, microbatch 0",),
}


@needs_mpi
@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c == "exception" else pytest.mark.slow) for c in SAID])
def test_what_is_wrong_is_said_with_its_stage(case):
    done = job(2, "pipelines_wrong.py", case)
    assert done.returncode != 0
    for pattern in SAID[case]:
        assert re.search(pattern, done.stderr), done.stdout + done.stderr


@needs_mpi
@pytest.mark.parity
@pytest.mark.slow
def test_schedules_losses_and_gradients_are_those_of_pytorch(tmp_path):
    pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    script = str(JOBS / "pipelines_of_pytorch.py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, script, "torch", str(tmp_path)]
    running = [subprocess.Popen(command, env={**address, "RANK": str(rank)}) for rank in range(2)]
    assert [each.wait(300) for each in running] == [0, 0]
    passes(2, "pipelines_of_pytorch.py", "genesis", str(tmp_path))
    for rank in range(2):
        theirs, ours = (np.load(tmp_path / f"{name}{rank}.npz") for name in ("torch", "genesis"))
        assert theirs.files == ours.files
        for key in theirs.files:
            if key.endswith("order"):
                assert theirs[key].tolist() == ours[key].tolist(), key
            else:
                np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-4, atol=1e-6, err_msg=key)
