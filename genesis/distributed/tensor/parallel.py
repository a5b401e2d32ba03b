"""Tensor parallelism, under the names of ``torch.distributed.tensor.parallel``: each rank has a part of the layers of a model,
and all compute the same loss of the same examples.

Two layers behind each other are divided by columns and by rows, and what is between them is a part, too; then one sum goes
between the ranks forward, and one backward. (Shoeybi and others, "Megatron-LM", 2019.)
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, GenesisError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.tensor.styles import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)
from genesis.nn.module import Module

_NAME = "parallelize_module"


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Divide layers of a module among the ranks of a mesh, in place; returns the module.

    Outputs and gradients are those of the module as it was: all ranks give it the same examples, and have the same loss.
    Gradients of layers that are not divided are the same in all ranks, as they are. `full_tensor` of a parameter is all of it.

    Args:
        device_mesh: of one dimension; all ranks by default
        parallelize_plan: a `ParallelStyle`, if the module is a layer; or one for each name, in which ``*`` stands for any
            part of it
        src_data_rank: the rank whose values count; None: all have the same

    Raises:
        NotImplementedError: a layer that its style does not divide, or a mesh of several dimensions
        ValueError: a name that no layer has

    >>> import genesis, genesis.distributed as dist
    >>> dist.init_process_group()
    >>> net = genesis.nn.Sequential(genesis.nn.Linear(2, 4), genesis.nn.ReLU(), genesis.nn.Linear(4, 1))
    >>> before = net(genesis.ones(1, 2))
    >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    >>> net = parallelize_module(net, dist.init_device_mesh("cpu", (1,)), plan)
    >>> genesis.allclose(net(genesis.ones(1, 2)), before)
    True
    >>> dist.destroy_process_group()
    """
    mesh = mesh_of(group_of(_NAME, None) if device_mesh is None else device_mesh)
    if mesh.ndim != 1:
        raise UnsupportedError(message(_NAME, f"a mesh of {mesh.ndim} dimensions", hint='mesh["tp"], one of them'))
    plan = {"": parallelize_plan} if isinstance(parallelize_plan, ParallelStyle) else parallelize_plan
    if not isinstance(plan, dict) or not all([isinstance(style, ParallelStyle) for style in plan.values()]):
        raise ArgumentError(message(_NAME, "expected a style, or a dict of them", hint='{"layer": ColwiseParallel()}'))
    for pattern, style in plan.items():
        layers = [(name, each) for name, each in module.named_modules() if fnmatch.fnmatchcase(name, pattern)]
        if not layers:
            raise ArgumentValueError(message(_NAME, f"the module has no layer {pattern!r}"))
        for name, layer in layers:
            try:
                style.src_data_rank = src_data_rank
                style._apply(layer, mesh)
            except GenesisError as error:
                error.add_note(f"of the layer {name!r}")
                raise
    return module


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside, `cross_entropy` of a `DTensor` whose classes are divided among the ranks is computed in parts; as it is outside.

    >>> with loss_parallel():
    ...     pass
    """
    yield


__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip

explain_all(globals())
