"""Tensor parallelism, under the names of ``torch.distributed.tensor.parallel``: each rank has a part of the layers of a model,
and all compute the same loss of the same examples.

Two layers behind each other are divided by columns and by rows, and what is between them is a part, too; then one sum goes
between the ranks forward, and one backward. (Shoeybi and others, "Megatron-LM", 2019.)
"""

from __future__ import annotations

import abc
import fnmatch
import functools
from typing import Any

from genesis.base.errors import ArgumentError, ArgumentValueError, UnsupportedError, message
from genesis.core.call.refusal import explain_all
from genesis.distributed.device_mesh import DeviceMesh, mesh_of
from genesis.distributed.groups import group_of
from genesis.distributed.placements import Placement, Replicate, Shard
from genesis.distributed.sharded import Sharding
from genesis.distributed.tensor import distribute_tensor
from genesis.distributed.tensor.exchange import copied, divided, gathered, summed
from genesis.nn.functional import linear
from genesis.nn.linear import Linear
from genesis.nn.module import Module

_NAME = "parallelize_module"


class ParallelStyle(abc.ABC):
    """How a layer is divided among ranks.

    Args:
        input_layouts: how inputs lie, ``Replicate()`` or ``Shard(-1)``
        output_layouts: how the output is to lie
        use_local_output: accepted for PyTorch's sake, where it is True: outputs are ordinary tensors, this rank's part

    Raises:
        NotImplementedError: other layouts, or ``use_local_output=False``
    """

    _usual: tuple[Placement, Placement]

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.input_layouts, self.output_layouts = input_layouts or self._usual[0], output_layouts or self._usual[1]
        for what, given in (("input_layouts", self.input_layouts), ("output_layouts", self.output_layouts)):
            if given not in (Replicate(), Shard(-1)):
                text = f"{what} is {given}"
                raise UnsupportedError(message(type(self).__name__, text, hint="Replicate(), or Shard(-1)"))
        if not use_local_output:
            raise UnsupportedError(message(type(self).__name__, "outputs are this rank's part", hint="full_tensor()"))

    @abc.abstractmethod
    def divide(self, layer: Linear, mesh: DeviceMesh, src: int | None) -> None:
        """Leave this rank's part of the parameters."""

    @abc.abstractmethod
    def computed(self, layer: Linear, mesh: DeviceMesh, x: Any) -> Any:
        """The output of a layer that is divided."""


class ColwiseParallel(ParallelStyle):
    """Each rank has some of the outputs of a `Linear`, by default of an input that all have: rows of the weight and of the
    bias, which are columns of the matrix that the input is multiplied by.
    """

    _usual = Replicate(), Shard(-1)

    def divide(self, layer: Linear, mesh: DeviceMesh, src: int | None) -> None:
        """Leave this rank's rows."""
        for name, each in list(layer.named_parameters(recurse=False)):
            setattr(layer, name, distribute_tensor(each, mesh, [Shard(0)], src_data_rank=src))

    def computed(self, layer: Linear, mesh: DeviceMesh, x: Any) -> Any:
        """This rank's outputs."""
        if self.input_layouts == Shard(-1):
            x = gathered(x, Sharding(layer.in_features, mesh, x.ndim - 1))
        out = linear(copied(x, mesh.get_group().key), layer.weight, layer.bias)
        whole = self.output_layouts == Replicate()
        return gathered(out, Sharding(layer.out_features, mesh, out.ndim - 1)) if whole else out


class RowwiseParallel(ParallelStyle):
    """Each rank has some of the inputs of a `Linear`, by default those that a layer of `ColwiseParallel` gives: columns of
    the weight. Outputs are summed over the ranks, then the bias is added, which all have.
    """

    _usual = Shard(-1), Replicate()

    def divide(self, layer: Linear, mesh: DeviceMesh, src: int | None) -> None:
        """Leave this rank's columns."""
        layer.weight = distribute_tensor(layer.weight, mesh, [Shard(1)], src_data_rank=src)
        if layer.bias is not None:
            layer.bias = distribute_tensor(layer.bias, mesh, [Replicate()], src_data_rank=src)

    def computed(self, layer: Linear, mesh: DeviceMesh, x: Any) -> Any:
        """The sum of all ranks' terms, and the bias."""
        if self.input_layouts == Replicate():
            x = divided(x, Sharding(layer.in_features, mesh, x.ndim - 1))
        out = summed(linear(x, layer.weight), mesh.get_group().key)
        out = out if layer.bias is None else out + layer.bias
        part = self.output_layouts == Shard(-1)
        return divided(out, Sharding(layer.out_features, mesh, out.ndim - 1)) if part else out


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
        NotImplementedError: a layer that is no `Linear`, or a mesh of several dimensions
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
            _divide(name, layer, mesh, style, src_data_rank)
    return module


def _divide(name: str, layer: Any, mesh: DeviceMesh, style: ParallelStyle, src: int | None) -> None:
    if not isinstance(layer, Linear):
        text = f"{name or 'the module'} is a {type(layer).__name__}, and layers that are divided are Linear"
        raise UnsupportedError(message(_NAME, text, hint="fully_shard(module)"))
    if layer.weight._sharding is not None:
        raise ArgumentValueError(message(_NAME, f"{name or 'the module'} is divided already"))
    style.divide(layer, mesh, src)
    layer.forward = functools.partial(style.computed, layer, mesh)  # type: ignore[method-assign]


__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "parallelize_module"]

explain_all(globals())
