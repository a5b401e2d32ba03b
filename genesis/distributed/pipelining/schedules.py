"""Schedules: how the stages of a model go through the microbatches of a batch."""

from __future__ import annotations

from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.distributed.pipelining.actions import Action, each, in_rounds, one_forward_one_backward
from genesis.distributed.pipelining.runtime import Schedule
from genesis.distributed.pipelining.stage import PipelineStage


class PipelineScheduleSingle(Schedule):
    """A schedule of ranks that have one stage each.

    Args:
        stage: the one of this rank
        n_microbatches: into how many chunks a batch is divided
        loss_fn: ``loss_fn(output, target)`` of a microbatch, a number; without it there is no backward
        args_chunk_spec, kwargs_chunk_spec: along which dimension arguments are divided, the first one if not said; see
            `genesis.distributed.pipelining.microbatch.TensorChunkSpec`
        output_merge_spec: how results of microbatches become one
        scale_grads: the loss is the mean of those of all microbatches; without it the sum

    Raises:
        ValueError: another stage than the one that is this rank's, or no microbatch
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Any = None, args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None, output_merge_spec: Any = None, scale_grads: bool = True,
    ) -> None:  # fmt: skip
        if not isinstance(stage, PipelineStage):
            text = f"stage is {type(stage).__name__}, expected a PipelineStage"
            raise ArgumentError(
                message(type(self).__name__, text, hint="ScheduleInterleaved1F1B takes a list of stages")
            )
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        if stage.num_stages != stage.group_size:
            text = f"there are {stage.num_stages} stages and {stage.group_size} ranks, which have one each"
            raise ArgumentValueError(
                message(type(self).__name__, text, hint="ScheduleInterleaved1F1B, with several stages in a rank")
            )


class ScheduleGPipe(PipelineScheduleSingle):
    """All forwards, then all backwards: simple, and each stage keeps what all microbatches need in backward.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> dist.init_process_group()
    >>> stage = PipelineStage(genesis.nn.Linear(3, 1), 0, 1, "cpu")
    >>> schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=genesis.nn.functional.mse_loss)
    >>> losses = []
    >>> schedule.step(genesis.ones(4, 3), target=genesis.zeros(4, 1), losses=losses).shape, len(losses)
    (genesis.Size([4, 1]), 2)
    >>> print(schedule)
    ScheduleGPipe, stages: 1, ranks: 1, microbatches: 2
    rank 0  F0 F1 B0 B1
    >>> dist.destroy_process_group()

    Source: Y. Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2019.
    """

    def order(self, rank: int) -> list[Action]:
        microbatches = range(self.n_microbatches)
        return each("F", [rank], microbatches) + each("B", [rank], microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward in turn, as soon as the first backward can be: as fast as `ScheduleGPipe`, and a stage keeps what
    so many microbatches need as there are stages from it on.

    Source: D. Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, 2019.
    """

    def order(self, rank: int) -> list[Action]:
        microbatches = range(self.n_microbatches)
        return one_forward_one_backward(
            each("F", [rank], microbatches), each("B", [rank], microbatches), self.ranks - 1 - rank
        )


class PipelineScheduleMulti(Schedule):
    """A schedule of ranks that have several stages each.

    Args:
        stages: those of this rank, from the first to the last
        n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads: as
            `PipelineScheduleSingle` takes them
        backward_requires_autograd, defer_pp_recv: accepted for PyTorch's sake

    Raises:
        ValueError: other stages than those that are this rank's, or no microbatch
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Any = None, args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None, output_merge_spec: Any = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ) -> None:  # fmt: skip
        if (
            not isinstance(stages, list | tuple)
            or not stages
            or not all([isinstance(s, PipelineStage) for s in stages])
        ):
            raise ArgumentError(message(type(self).__name__, "expected a list of PipelineStage", hint="[stage]"))
        super().__init__(
            list(stages), n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches go through a stage before the next one: `ScheduleGPipe` with several stages in a rank.

    Source: J. Lamy-Poirier, Breadth-First Pipeline Parallelism, 2023.
    """

    def __init__(
        self, stages: list[PipelineStage], n_microbatches: int, loss_fn: Any = None, output_merge_spec: Any = None,
        scale_grads: bool = True, backward_requires_autograd: bool = True, defer_pp_recv: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, scale_grads)

    def order(self, rank: int) -> list[Action]:
        microbatches, stages = range(self.n_microbatches), self.stages_of(rank)
        return each("F", stages, microbatches) + each("B", stages[::-1], microbatches[::-1])


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """`Schedule1F1B` with several stages in a rank: ranks wait less, and send more.

    Microbatches go in rounds of about as many as there are ranks, each round through all stages of a rank; they must divide
    among the rounds.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B
    >>> dist.init_process_group()
    >>> stages = [PipelineStage(genesis.nn.Linear(2, 2), i, 3, "cpu") for i in range(3)]
    >>> schedule = ScheduleInterleaved1F1B(stages, 2, genesis.nn.functional.mse_loss)
    >>> print(schedule)
    ScheduleInterleaved1F1B, stages: 3, ranks: 1, microbatches: 2
    rank 0  0F0 1F0 2F0 2B0 0F1 1B0 1F1 0B0 2F1 2B1 1B1 0B1
    >>> out = schedule.step(genesis.ones(4, 2), target=genesis.zeros(4, 2))
    >>> dist.destroy_process_group()

    Source: D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021.
    """

    def order(self, rank: int) -> list[Action]:
        stages, per_round = self.stages_of(rank), self._per_round()
        return one_forward_one_backward(
            in_rounds("F", stages, self.n_microbatches, per_round),
            in_rounds("B", stages[::-1], self.n_microbatches, per_round),
            min((len(stages) - 1) * per_round + 2 * (self.ranks - 1 - rank), len(stages) * self.n_microbatches),
        )

    def _per_round(self) -> int:
        if self.num_stages % self.ranks:
            text = f"{self.num_stages} stages do not divide among {self.ranks} ranks"
            raise ArgumentValueError(message(type(self).__name__, text, hint="as many in each, or ScheduleLoopedBFS"))
        rounds = max(1, self.n_microbatches // self.ranks)
        if self.n_microbatches % rounds:
            text = f"{self.n_microbatches} microbatches do not divide among {rounds} rounds"
            raise ArgumentValueError(message(type(self).__name__, text, hint=f"a multiple of the {self.ranks} ranks"))
        return self.n_microbatches // rounds


def get_schedule_class(schedule_name: str) -> type[Schedule]:
    """The class of a schedule by its name, or by what follows "Schedule", however it is written.

    Raises:
        ValueError: there is none of that name

    >>> from genesis.distributed.pipelining.schedules import get_schedule_class
    >>> get_schedule_class("1f1b").__name__
    'Schedule1F1B'
    """
    known = {c.__name__.lower(): c for c in (ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B, ScheduleLoopedBFS)}
    name = schedule_name.lower()
    if name not in known and f"schedule{name}" not in known:
        text = f"there is no schedule {schedule_name!r}"
        raise ArgumentValueError(
            message("get_schedule_class", text, hint=", ".join([c.__name__ for c in known.values()]))
        )
    return known.get(name) or known[f"schedule{name}"]


explain_all(globals())
