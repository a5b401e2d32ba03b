"""A part of a model that one rank computes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from genesis.autograd.gradients import backward
from genesis.base.device import as_device
from genesis.base.errors import ArgumentError, ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.base.pytree import tree_flatten
from genesis.core.call.refusal import explain_all
from genesis.core.graph.tensor import Tensor
from genesis.distributed.fsdp.sharding import FSDPModule
from genesis.distributed.groups import group_of
from genesis.nn.module import Module
from genesis.nn.parallel.distributed import DistributedDataParallel


class PipelineStage:
    """One of the stages that a model is divided into: a module that gets what the stage before it returns.

    What it returns may be a tensor, or a tuple or list, which become the arguments of the next stage; numbers, text and
    nested containers go along. Stage ``i`` belongs to rank ``i % size`` of the group. Where the module is a
    `DistributedDataParallel` or was given to `fully_shard` by groups of other ranks, gradients are combined once a step, in
    the backward of the last microbatch.

    Args:
        submodule: computes the stage; it is on ``device``
        stage_index, num_stages: which stage it is, of how many
        device: on which activations are received
        input_args, output_args: tensors, which may be on the meta device, that look like the arguments of a microbatch and
            its result; if they are given, others are refused
        output_grads, input_grads, get_mesh: accepted for PyTorch's sake
        group: the ranks; all of them by default

    Raises:
        ValueError: there is no such stage, or there are fewer stages than ranks
        NotImplementedError: ``dw_builder``

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> dist.init_process_group()
    >>> stage = PipelineStage(genesis.nn.Identity(), 0, 1, "cpu")
    >>> stage, ScheduleGPipe(stage, n_microbatches=2).step(genesis.arange(4))
    (<stage 0 of 1: Identity>, tensor([0, 1, 2, 3]))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: Any = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        self.group = group_of("PipelineStage", group)
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device = as_device(device)
        self.input_args, self.output_args = _tensors(input_args), _tensors(output_args)
        self._kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}  # of each microbatch: what came, what it became
        self._check(dw_builder)

    def _check(self, dw_builder: Any) -> None:
        name = "PipelineStage"
        if not isinstance(self.submod, Module):
            raise ArgumentError(message(name, f"submodule is {type(self.submod).__name__}, expected a module"))
        if not 0 <= self.stage_index < self.num_stages:
            text = f"stage_index is {self.stage_index}, and num_stages {self.num_stages}"
            raise ArgumentValueError(message(name, text, hint="a number from 0 to num_stages - 1"))
        if self.num_stages < self.group_size:
            text = f"there are {self.num_stages} stages and {self.group_size} ranks"
            raise ArgumentValueError(message(name, text, hint="a stage for each rank, or group= of fewer ranks"))
        if dw_builder is not None:
            raise UnsupportedError(message(name, "dw_builder is not there", hint="the backward of the module"))

    @property
    def is_first(self) -> bool:
        """Whether it gets the arguments of the schedule's step."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it has the loss."""
        return self.stage_index == self.num_stages - 1

    def __repr__(self) -> str:
        return f"<stage {self.stage_index} of {self.num_stages}: {type(self.submod).__name__}>"

    # ---- what schedules call

    def forward_one_chunk(self, chunk: int, args: Any, kwargs: dict[str, Any], trains: bool) -> Any:
        """The result for one microbatch, which is kept until its backward if the stage ``trains``."""
        with self.named(chunk, "forward"):
            _alike("arguments", args, self.input_args)
            with self._apart():
                output = self.submod(*args, **kwargs)
            _alike("results", output, self.output_args)
        if trains:
            self._kept[chunk] = _tensors(args), _tensors(output)
        return output

    def backward_one_chunk(self, chunk: int, seeds: list[Any], last: bool, loss: Tensor | None = None) -> list[Any]:
        """Gradients of the arguments for one microbatch, from those of its results, or from the loss.

        Args:
            seeds: a tensor, or None, for each tensor that was returned, or for the loss
            last: whether it is the last backward of the step
        """
        inputs, outputs = self._kept.pop(chunk)
        pairs = zip(outputs if loss is None else [loss], seeds, strict=True)
        used = [(y, g) for y, g in pairs if loss is not None or (g is not None and y.requires_grad)]
        with self.named(chunk, "backward"):
            self._combines(last)
            if used:
                backward([y for y, _ in used], [g for _, g in used])
        return [x.grad if x.is_leaf and x.requires_grad else None for x in inputs]

    def clear_runtime_states(self) -> None:
        """Forget what an interrupted step left."""
        self._kept.clear()

    @contextmanager
    def named(self, chunk: int, what: str) -> Iterator[None]:
        """Errors in here say in which stage they are."""
        try:
            yield
        except Exception as error:
            error.add_note(f"in the {what} of stage {self.stage_index} of {self.num_stages}, microbatch {chunk}")
            raise

    # ---- gradients that ranks with the same stage combine

    def _apart(self) -> Any:
        return self.submod.no_sync() if isinstance(self.submod, DistributedDataParallel) else nullcontext()

    def _combines(self, last: bool) -> None:
        """Whether the next backward combines gradients."""
        if isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(last)
        elif isinstance(self.submod, DistributedDataParallel) and last:
            self.submod.combine_in_next_backward()


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in tree_flatten(values)[0] if isinstance(x, Tensor)]


def _alike(what: str, values: Any, expected: list[Tensor]) -> None:
    """Refuse tensors that do not look as was said when the stage was made."""
    have = [(tuple(x.shape), x.dtype) for x in _tensors(values)] if expected else []
    if have != [(tuple(x.shape), x.dtype) for x in expected]:
        lines = [("expected", [x._spec() for x in expected]), ("got", [x._spec() for x in _tensors(values)])]
        text = f"{what} do not look as was said"
        raise ShapeError(message("PipelineStage", text, lines, "input_args and output_args of one microbatch, or None"))


explain_all(globals())
