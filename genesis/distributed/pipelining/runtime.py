"""What all schedules do: a batch is divided, each rank does its list of actions, and results are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, message
from genesis.core.call.refusal import explain_all
from genesis.core.graph.modes import grad_mode, no_grad
from genesis.distributed.pipelining.actions import Action, drawn, timetable
from genesis.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks, split_into_chunks
from genesis.distributed.pipelining.stage import PipelineStage
from genesis.distributed.pipelining.transfers import Transfers
from genesis.ops.creation.create import full_like


class Schedule(ABC):
    """A batch in microbatches, and the order in which the stages of each rank compute them.

    A schedule of one's own is a subclass with an `order`; `timetable` shows what comes of it, and refuses ranks that wait
    for each other.
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Any, args_chunk_spec: Any, kwargs_chunk_spec: Any,
        output_merge_spec: Any, scale_grads: bool,
    ) -> None:  # fmt: skip
        first = stages[0]
        self.group, self.ranks, self.num_stages = first.group, first.group_size, first.num_stages
        self.stages = {stage.stage_index: stage for stage in stages}
        self.n_microbatches, self.loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._specs, self._merge_spec = (args_chunk_spec, kwargs_chunk_spec), output_merge_spec
        self._check(stages)
        self._own = self.order(first.group_rank)
        self.timetable()  # ranks do not wait for each other for ever
        self._agreed = False

    def _check(self, stages: list[PipelineStage]) -> None:
        name = type(self).__name__
        if not isinstance(self.n_microbatches, int) or self.n_microbatches < 1:
            raise ArgumentValueError(message(name, f"n_microbatches is {self.n_microbatches}, expected at least 1"))
        if self.loss_fn is not None and not callable(self.loss_fn):
            raise ArgumentError(message(name, f"loss_fn is {type(self.loss_fn).__name__}, expected a function"))
        if len({(id(stage.group), stage.num_stages) for stage in stages}) > 1:
            raise ArgumentValueError(message(name, "stages are of several groups or models", hint="one for all"))
        have, expected = [stage.stage_index for stage in stages], self.stages_of(stages[0].group_rank)
        if have != expected:
            text = f"the stages of rank {stages[0].group_rank} are {expected}, and {have} are given"
            raise ArgumentValueError(message(name, text, hint="stage i in rank i % ranks, from the first to the last"))

    # ---- what is done when

    @abstractmethod
    def order(self, rank: int) -> list[Action]:
        """What a rank does, one after the other."""

    def stages_of(self, rank: int) -> list[int]:
        """The stages that a rank has."""
        return list(range(rank, self.num_stages, self.ranks))

    def timetable(self) -> list[list[Action | None]]:
        """For each rank what it does in each unit of time, None where it waits, if all actions took as long."""
        return timetable([self.order(rank) for rank in range(self.ranks)], self.num_stages - 1)

    def __str__(self) -> str:
        counts = f"stages: {self.num_stages}, ranks: {self.ranks}, microbatches: {self.n_microbatches}"
        return f"{type(self).__name__}, {counts}\n{drawn(self.timetable(), self.num_stages == self.ranks)}"

    # ---- a step

    def step(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None, return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Forward and (if there is a ``loss_fn``) backward of a batch; all ranks call it. Gradients are added to ``.grad``.

        Args:
            args: of the first stage; other ranks give none
            target: what the last stage's results are compared with, in chunks along the first dimension
            losses: becomes the list of all microbatches' losses in the rank of the last stage
            return_outputs: join the results there, and return them
            loss_kwargs: further arguments of ``loss_fn``, in chunks
            kwargs: of the stages of this rank, in chunks

        Raises:
            RuntimeError: gradients are off; ranks have other schedules
            ValueError: a batch that is too small; no target for the loss
        """
        if self.loss_fn is not None and not grad_mode.get():
            raise GraphError(message("step", "gradients are off, and backward needs them", hint="eval(...)"))
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs, self.loss_fn is not None)

    def eval(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None, return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Forward of a batch without gradients, and losses, if there is a target; else as `step`. All ranks call it."""
        with no_grad():
            return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs, False)

    def _run(
        self, args: Any, kwargs: Any, target: Any, losses: Any, return_outputs: bool, loss_kwargs: Any, trains: bool
    ) -> Any:
        self._agree()
        step = _Step(self, args, kwargs, target, loss_kwargs, trains)
        try:
            for action in self._own:
                if action.kind == "F":
                    step.forward(*action)
                elif trains:
                    step.backward(*action)
            step.transfers.finish()
        finally:
            for stage in self.stages.values():
                stage.clear_runtime_states()
        if self.num_stages - 1 not in self.stages:
            return None
        if losses is not None:
            losses[:] = step.in_order(step.losses)
        with no_grad():
            return merge_chunks(step.in_order(step.outputs), self._merge_spec) if return_outputs else None

    def _agree(self) -> None:
        """Before the first step: all ranks have this schedule."""
        if not self._agreed:
            said = f"of {self.num_stages} stages and {self.n_microbatches} microbatches"
            self.group.calls.meet(*self.group.calls.begin(type(self).__name__, (None, None, said)))
            self._agreed = True


class _Step:
    """One batch on its way through the stages of this rank."""

    def __init__(self, schedule: Schedule, args: Any, kwargs: Any, target: Any, loss_kwargs: Any, trains: bool) -> None:
        n = schedule.n_microbatches
        self.schedule, self.trains = schedule, trains
        self.args, self.kwargs = split_args_kwargs_into_chunks(args, kwargs, n, *schedule._specs)
        self.targets = None if target is None else split_into_chunks(target, n)
        self.loss_kwargs = split_into_chunks(loss_kwargs or {}, n, name="loss_kwargs")
        self.transfers = Transfers(schedule.group, [i % schedule.ranks for i in range(schedule.num_stages)], trains)
        self.outputs: dict[int, Any] = {}
        self.losses: dict[int, Any] = {}
        self.left = dict.fromkeys(schedule.stages, n)  # backwards of each stage

    def in_order(self, of_microbatches: dict[int, Any]) -> list[Any]:
        return [of_microbatches[i] for i in sorted(of_microbatches)]

    def forward(self, index: int, kind: str, microbatch: int) -> None:
        stage = self.schedule.stages[index]
        args = self.args[microbatch] if stage.is_first else self._received("activations", stage, microbatch)
        args = tuple(args) if isinstance(args, tuple | list) else (args,)
        output = stage.forward_one_chunk(microbatch, args, self.kwargs[microbatch], self.trains)
        if not stage.is_last:
            with stage.named(microbatch, "result"):
                self.transfers.send(output, "activations", index + 1, microbatch)
            return
        self.outputs[microbatch] = output
        if self.schedule.loss_fn is not None and (self.trains or self.targets is not None):
            with stage.named(microbatch, "loss"):
                self.losses[microbatch] = self._loss(output, microbatch)

    def _loss(self, output: Any, microbatch: int) -> Any:
        if self.targets is None:
            text = "the last stage has a loss, and there is no target"
            raise ArgumentValueError(
                message("step", text, hint="step(target=...) in the rank of the last stage, or eval()")
            )
        return self.schedule.loss_fn(output, self.targets[microbatch], **self.loss_kwargs[microbatch])

    def backward(self, index: int, kind: str, microbatch: int) -> None:
        stage = self.schedule.stages[index]
        self.left[index] -= 1
        loss = self.losses[microbatch] if stage.is_last else None
        seeds = [self._seed(loss)] if stage.is_last else self._received("gradients", stage, microbatch)
        gradients = stage.backward_one_chunk(microbatch, seeds, not self.left[index], loss)
        if not stage.is_first:
            self.transfers.send(gradients, "gradients", index - 1, microbatch)

    def _seed(self, loss: Any) -> Any:
        """What backward of a loss begins with: its share of the loss of the batch."""
        if not self.schedule.scale_grads or loss.numel() != 1:
            return None
        return full_like(loss, 1 / self.schedule.n_microbatches)

    def _received(self, kind: str, stage: PipelineStage, microbatch: int) -> Any:
        with stage.named(microbatch, f"{kind} for the {'forward' if kind == 'activations' else 'backward'}"):
            return self.transfers.receive(kind, stage.stage_index, microbatch, stage.device)


explain_all(globals())
