"""Pipelines against the whole model on one rank, whose batches are divided likewise: losses and gradients, to the bit."""

from __future__ import annotations

import copy

import numpy as np
from together import rank, refused, size

import genesis
from genesis import nn
from genesis.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from genesis.distributed.pipelining.actions import each
from genesis.distributed.pipelining.microbatch import TensorChunkSpec, sum_reducer
from genesis.distributed.pipelining.schedules import PipelineScheduleMulti
from genesis.utils.checkpoint import checkpoint

F = nn.functional
WIDTH = 6
ALL = (ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B, ScheduleLoopedBFS)


class Block(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Kept(nn.Module):
    """Gives on a tensor without a gradient, a number, a text and nothing, besides what it computes."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, mask=None, more=None):
        if more is None:
            more = {"count": 0, "text": "a" * 2000, "none": None}
        mask = x.detach() > 0 if mask is None else mask
        x = self.block(x) * mask * (1 + more["count"])
        return x, mask, {**more, "count": more["count"] + 1}


class Checkpointed(Block):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


class Last(nn.Module):
    def forward(self, x, mask, more):
        return x


def seeded(make, count):
    genesis.manual_seed(3)
    return [make() for _ in range(count)]


def batch(rows, width=WIDTH):
    numbers = np.random.default_rng(5).standard_normal((2, rows, width)).astype(np.float32)
    return genesis.tensor(numbers[0]), genesis.tensor(numbers[1])


def whole(modules, x, y, n, loss_fn, scaled=True, turned=False):
    """Losses, results and gradients of all stages in a rank, a part of the batch after the other; ``turned``: the backward of
    the last part first, as sums of gradients depend on the order in the last bits.
    """
    modules = copy.deepcopy(modules)
    losses, outputs = [], []
    for xs, ys in zip(genesis.tensor_split(x, n), genesis.tensor_split(y, n), strict=True):
        args = (xs,)
        for module in modules:
            out = module(*args)
            args = out if isinstance(out, tuple) else (out,)
        losses.append(loss_fn(out, ys))
        outputs.append(out.detach())
    for loss in losses[::-1] if turned else losses:
        (loss / n if scaled else loss).backward()
    return losses, genesis.cat(outputs), [[p.grad for p in module.parameters()] for module in modules]


def scheduled(kind, modules, n, loss_fn, **options):
    """A schedule of this rank's stages, and their modules."""
    if kind in ALL[:2] and len(modules) != size:
        return None
    mine = {i: module for i, module in enumerate(modules) if i % size == rank}
    stages = [PipelineStage(module, i, len(modules), "cpu") for i, module in mine.items()]
    return kind(stages[0] if kind in ALL[:2] else stages, n, loss_fn, **options)


def step(schedule, x, y, **more):
    args = (x,) if 0 in schedule.stages else ()
    losses = []
    out = schedule.step(*args, target=y, losses=losses, **more)
    return losses, out


def same(a, b, what):
    assert (a is None) == (b is None), what
    if a is not None:
        assert a.dtype == b.dtype and np.array_equal(a.detach().float().numpy(), b.detach().float().numpy()), (
            what,
            a,
            b,
        )


def compared(schedule, modules, x, y, loss_fn, times=2, scaled=True):
    turned = type(schedule) is ScheduleLoopedBFS
    losses, outputs, gradients = whole(modules, x, y, schedule.n_microbatches, loss_fn, scaled, turned)
    for stage in schedule.stages.values():
        stage.submod.zero_grad()
    last = len(modules) - 1 in schedule.stages
    for _ in range(times):
        have, out = step(schedule, x, y)
        assert (out is not None) == last and len(have) == (schedule.n_microbatches if last else 0)
        if last:
            same(out, outputs, "results")
            for a, b in zip(have, losses, strict=True):
                same(a, b, "losses")
        for i, stage in schedule.stages.items():
            for p, g in zip(stage.submod.parameters(), gradients[i], strict=True):
                same(p.grad, g, f"{type(schedule).__name__}, stage {i}")
        for stage in schedule.stages.values():
            stage.submod.zero_grad()


def every_schedule():
    for kind in ALL:
        for local in (1, 2, 3):
            for n in (1, 2, 3, 4, 8):
                modules = seeded(Block, local * size)
                rounds = max(1, n // size)
                if kind is ScheduleInterleaved1F1B and n % rounds:
                    continue
                schedule = scheduled(kind, modules, n, F.mse_loss)
                if schedule is not None:
                    compared(schedule, modules, *batch(11), F.mse_loss)
                    order = [action for row in schedule.timetable() for action in row if action is not None]
                    assert sorted(order) == sorted({*order}) and len(order) == 2 * n * local * size


class OtherOrders(PipelineScheduleMulti):
    """Each rank has an order of its own."""

    def order(self, rank):
        turned = range(self.n_microbatches)[:: 1 if rank % 2 else -1]
        return each("F", self.stages_of(rank), turned) + each("B", self.stages_of(rank)[::-1], turned)


def orders_of_ones_own():
    modules = [module.double() for module in seeded(Block, 2 * size)]
    x, y = (t.double() for t in batch(8))
    losses, outputs, gradients = whole(modules, x, y, 4, F.mse_loss)
    schedule = scheduled(OtherOrders, modules, 4, F.mse_loss)
    have, out = step(schedule, x, y)
    if out is not None:
        same(out, outputs, "results")
        assert [a.item() for a in have] == [b.item() for b in losses]
    for i, stage in schedule.stages.items():
        for p, g in zip(stage.submod.parameters(), gradients[i], strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-10, atol=1e-13)


def sums():
    """``scale_grads=False``, and gradients that are there already."""
    modules = seeded(Block, size)
    x, y = batch(8)
    schedule = scheduled(Schedule1F1B, modules, 4, F.mse_loss, scale_grads=False)
    compared(schedule, modules, x, y, F.mse_loss, scaled=False)
    step(schedule, x, y)
    before = [p.grad.clone() for p in modules[rank].parameters()]
    step(schedule, x, y)
    for p, g in zip(modules[rank].parameters(), before, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), 2 * g.numpy(), rtol=1e-5, atol=1e-6)


def batches_of_other_sizes():
    """The last batch of an epoch is smaller, and evaluation has larger ones."""
    modules = seeded(Block, 2 * size)
    schedule = scheduled(ScheduleInterleaved1F1B, modules, 2, F.mse_loss)
    for rows in (8, 3, 20):
        compared(schedule, modules, *batch(rows), F.mse_loss, times=1)
    x, y = batch(30)
    losses, outputs, _ = whole(modules, x, y, 2, F.mse_loss)
    have = []
    out = schedule.eval(*((x,) if rank == 0 else ()), target=y, losses=have)
    assert all([p.grad is None for stage in schedule.stages.values() for p in stage.submod.parameters()])
    if 2 * size - 1 in schedule.stages:
        same(out, outputs, "eval")
        assert not out.requires_grad and [a.item() for a in have] == [b.item() for b in losses]
    out = schedule.eval(*((x,) if rank == 0 else ()))
    assert (out is not None) == (2 * size - 1 in schedule.stages)


def large_messages():
    """More than MPI sends before the other side asks for it: no rank may wait for another to receive."""
    for kind, local in ((ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2), (ScheduleLoopedBFS, 2)):
        modules = seeded(lambda: nn.Linear(512, 512), local * size)
        compared(scheduled(kind, modules, 4, F.mse_loss), modules, *batch(4 * 512, 512), F.mse_loss, times=1)


def modules_of_other_kinds():
    """Containers and compiled modules are stages, too."""
    modules = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2 * size)]
    compared(scheduled(ScheduleLoopedBFS, modules, 2, F.mse_loss), modules, *batch(6), F.mse_loss)
    compiled = [genesis.compile(module) for module in modules]
    schedule, (x, y) = scheduled(ScheduleLoopedBFS, compiled, 2, F.mse_loss), batch(6)
    _, _, gradients = whole(modules, x, y, 2, F.mse_loss, turned=True)
    for _ in range(3):
        step(schedule, x, y)
        for i in schedule.stages:
            for p, g in zip(modules[i].parameters(), gradients[i], strict=True):
                np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-5, atol=1e-6)
            modules[i].zero_grad()


def values_of_other_kinds():
    modules = [*seeded(Kept, 2 * size - 1), Last()]
    compared(scheduled(ScheduleLoopedBFS, modules, 2, F.mse_loss), modules, *batch(6), F.mse_loss)


def frozen_stages():
    modules = seeded(Block, 2 * size)
    for module in modules[:size]:
        module.requires_grad_(False)
    compared(scheduled(ScheduleInterleaved1F1B, modules, 2, F.mse_loss), modules, *batch(6), F.mse_loss)


def less_precision_and_less_memory():
    modules = seeded(Checkpointed, size)
    schedule = scheduled(Schedule1F1B, modules, 4, F.mse_loss)
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        compared(schedule, modules, *batch(8), F.mse_loss)
    modules = [module.to(genesis.bfloat16) for module in seeded(Block, size)]
    x, y = batch(8)
    compared(scheduled(ScheduleGPipe, modules, 2, F.mse_loss), modules, x.bfloat16(), y.bfloat16(), F.mse_loss)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, *, factor, on=True):  # columns are examples
        return self.lin(x.T).T * factor if on else x


def chunks_as_they_are_told():
    modules = seeded(Scaled, size)
    x, y = (t.reshape(3, -1) for t in batch(8))
    factor = genesis.arange(16.0)
    schedule = scheduled(
        ScheduleGPipe, modules, 2, lambda out, y, weight: ((out.T - y) ** 2 * weight).mean(),
        args_chunk_spec=TensorChunkSpec.from_tuple((1,)) if rank == 0 else None,
        kwargs_chunk_spec={"factor": TensorChunkSpec(0), "on": None}, output_merge_spec=TensorChunkSpec(1),
    )  # fmt: skip
    weight = genesis.linspace(0, 1, 16)[:, None]
    losses = []
    args = (x,) if rank == 0 else ()
    out = schedule.step(*args, factor=factor, on=True, target=y.T, losses=losses, loss_kwargs={"weight": weight})
    expected = x
    for module in modules:
        expected = module(expected, factor=factor)
    if rank == size - 1:
        np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-4)
        mean = ((expected.T - y.T) ** 2 * weight).mean().item()
        np.testing.assert_allclose(np.mean([loss.item() for loss in losses]), mean, rtol=1e-4)


class Counted(nn.Module):
    def forward(self, x):
        return {"out": x, "rows": len(x), "kind": "dict"}


def results_that_are_no_tensors():
    modules = [*seeded(Block, size - 1), Counted()]
    spec = {"out": TensorChunkSpec(0), "rows": sum_reducer, "kind": "same"}
    schedule = scheduled(ScheduleGPipe, modules, 3, None, output_merge_spec=spec)
    x, _ = batch(7)
    out = schedule.step(*((x,) if rank == 0 else ()))
    if rank == size - 1:
        assert out["rows"] == 7 and out["kind"] == "dict" and out["out"].shape == x.shape


def refusals():
    own = PipelineStage(nn.Identity(), rank, size, "cpu")
    refused(ValueError, "stage_index is 9", lambda: PipelineStage(nn.Identity(), 9, size, "cpu"))
    refused(ValueError, "n_microbatches is 0", lambda: ScheduleGPipe(own, 0))
    other = PipelineStage(nn.Identity(), (rank + 1) % (2 * size), 2 * size, "cpu")
    refused(ValueError, "are given", lambda: ScheduleLoopedBFS([other], 2))
    schedule = Schedule1F1B(own, 4, F.mse_loss)
    with genesis.no_grad():
        refused(RuntimeError, "eval", schedule.step)
    if size == 1:
        refused(
            ValueError, "divided into 4 chunks", lambda: schedule.step(genesis.ones(3, 1), target=genesis.ones(3, 1))
        )
        refused(ValueError, "there is no target", lambda: schedule.step(genesis.ones(4, 1)))
        told = PipelineStage(nn.Identity(), 0, 1, "cpu", input_args=genesis.empty(2, 1, device="meta"))
        refused(RuntimeError, "do not look as was said", lambda: ScheduleGPipe(told, 2).step(genesis.ones(4, 2)))
        broken = ScheduleGPipe(PipelineStage(nn.Linear(2, 2), 0, 1, "cpu"), 2)
        try:
            broken.step(genesis.ones(4, 3))
        except RuntimeError as error:
            assert "in the forward of stage 0 of 1, microbatch 0" in error.__notes__
        else:
            raise AssertionError


for check in (
    every_schedule, orders_of_ones_own, sums, batches_of_other_sizes, large_messages, modules_of_other_kinds, values_of_other_kinds, frozen_stages,
    less_precision_and_less_memory, chunks_as_they_are_told, results_that_are_no_tensors, refusals,
):  # fmt: skip
    check()
print(f"rank {rank} is done")
