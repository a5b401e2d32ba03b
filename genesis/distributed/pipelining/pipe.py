"""A model in stages that were made of its program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.base.errors import ArgumentError, ArgumentValueError, message
from genesis.core.call.refusal import explain_all
from genesis.distributed.pipelining.splitting import SplitPoint, divided, recorded
from genesis.distributed.pipelining.stage import PipelineStage
from genesis.fx.graph import Graph
from genesis.fx.graph_module import GraphModule
from genesis.nn.module import Module


class PipeInfo(NamedTuple):
    """What stages of a model have in common."""

    graph: Graph
    num_stages: int
    has_loss_and_backward: bool = False


class Pipe(Module):
    """A model in stages; `pipeline` makes it. Called, it is the model.

    Its stages are ``split_gm.submod_0`` and so on; their parameters are those of the model, under the names there.
    """

    def __init__(self, whole: GraphModule) -> None:
        super().__init__()
        stages = divided(whole)
        self.num_stages, self.split_gm = len(stages), Module()
        self.__dict__["_graph"] = whole.graph
        for i, stage in enumerate(stages):
            setattr(self.split_gm, f"submod_{i}", stage)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """One stage after the other, here."""
        out = self.get_stage_module(0)(*args, **kwargs)
        for i in range(1, self.num_stages):
            out = self.get_stage_module(i)(*(out if isinstance(out, tuple) else (out,)))
        return out

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage.

        Raises:
            ValueError: there is no such stage
        """
        if not 0 <= stage_idx < self.num_stages:
            text = f"there is no stage {stage_idx} of {self.num_stages}"
            raise ArgumentValueError(message("get_stage_module", text))
        return getattr(self.split_gm, f"submod_{stage_idx}")  # type: ignore[no-any-return]

    def info(self) -> PipeInfo:
        """What `build_stage` has to know."""
        return PipeInfo(self.__dict__["_graph"], self.num_stages)

    def build_stage(self, stage_index: int, device: Any, group: Any = None) -> PipelineStage:
        """A stage of this rank, moved to a device."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def print_readable(self, print_output: bool = True) -> str:
        """The Python of all stages."""
        text = "\n".join([f"# stage {i}{self.get_stage_module(i).code}" for i in range(self.num_stages)])
        if print_output:
            print(text)
        return text


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any, group: Any = None
) -> PipelineStage:
    """A stage of this rank, of a module that was changed since `Pipe.get_stage_module` gave it: wrapped, say, or compiled.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.pipelining import SplitPoint, build_stage, pipeline
    >>> dist.init_process_group()
    >>> model = genesis.nn.Sequential(genesis.nn.Linear(2, 3), genesis.nn.Linear(3, 1))
    >>> pipe = pipeline(model, (genesis.ones(4, 2),), split_spec={"1": SplitPoint.BEGINNING})
    >>> build_stage(pipe.get_stage_module(1), 1, pipe.info(), "cpu")
    <stage 1 of 2: Stage1>
    >>> dist.destroy_process_group()
    """
    return PipelineStage(stage_module.to(device), stage_index, pipe_info.num_stages, device, group=group)


def pipeline(
    module: Module, mb_args: tuple[Any, ...], mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None, split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:  # fmt: skip
    """A model in stages: its forward is recorded by `genesis.fx`, and divided.

    Modules that no point lies in stay whole, and may do what they want; the program around them must not depend on values of
    tensors. Stages give on what later ones need. Arguments that are no tensors become part of the stages.

    Args:
        mb_args, mb_kwargs: arguments of a microbatch
        split_spec: names of modules at which a stage begins or ends; without them where the program calls `pipe_split`
        split_policy: gets the graph, and puts calls of `pipe_split` into it

    Raises:
        ValueError: names of modules that are not called; a parameter that two stages use
        TypeError: arguments that the model does not take; both ways to say where

    >>> import genesis
    >>> from genesis.distributed.pipelining import SplitPoint, pipeline
    >>> model = genesis.nn.Sequential(genesis.nn.Linear(2, 3), genesis.nn.ReLU(), genesis.nn.Linear(3, 1))
    >>> pipe = pipeline(model, (genesis.ones(4, 2),), split_spec={"2": SplitPoint.BEGINNING})
    >>> [list(pipe.get_stage_module(i).state_dict()) for i in range(pipe.num_stages)]
    [['0.weight', '0.bias'], ['2.weight', '2.bias']]
    """
    if split_spec is not None and split_policy is not None:
        raise ArgumentError(message("pipeline", "both split_spec and split_policy are given", hint="one of them"))
    if not isinstance(module, Module):
        raise ArgumentError(message("pipeline", f"expected a module, got {type(module).__name__}"))
    whole = recorded(module, tuple(mb_args), mb_kwargs or {}, split_spec or {})
    return Pipe(whole if split_policy is None else split_policy(whole))


explain_all(globals())
