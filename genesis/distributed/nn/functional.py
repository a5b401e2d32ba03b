"""Collectives that give new tensors and are recorded, under the names of ``torch.distributed.nn.functional``.

Each is linear in the tensors of all ranks, and its gradient is another: that of a loss which is the sum of the losses of
all ranks. So all ranks must go backward through it, as they went forward. In a trace each is a node; `vmap` and forward
mode pass through, if they are open in all ranks alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.base.errors import ArgumentError, message
from genesis.core.graph.tensor import Tensor
from genesis.distributed.collectives import root_of, split_sizes
from genesis.distributed.groups import group_of
from genesis.distributed.nn import ops
from genesis.distributed.reductions import ReduceOp, op_named
from genesis.ops.shapes.join import cat, stack


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The combination of the tensors of all ranks. SUM and AVG have a gradient: the same of the gradients.

    >>> import genesis, genesis.distributed as dist
    >>> from genesis.distributed.nn.functional import all_reduce
    >>> dist.init_process_group()
    >>> x = genesis.ones(2, requires_grad=True)
    >>> all_reduce(x).sum().backward(); x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    return ops.all_reduce(tensor, op_named("all_reduce", op), _key("all_reduce", group))


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of one rank; its gradient is the sum of those of all ranks, at that rank."""
    return ops.broadcast_from(
        tensor, root_of("broadcast", group_of("broadcast", group), src, None, "src"), _key("broadcast", group)
    )


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The combination of the tensors of all ranks at one rank, zeros at the others; the gradient of SUM and AVG is the
    gradient at that rank.
    """
    root = root_of("reduce", group_of("reduce", group), dst, None, "dst")
    return ops.reduce_to(tensor, root, op_named("reduce", op), _key("reduce", group))


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks; the gradient of each is the sum of what all ranks have for it."""
    return ops.all_gather_stacked(tensor, _key("all_gather", group)).unbind(0)


def reduce_scatter(output: Any, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The combination of everybody's tensor for this rank, of a list with one for each; ``output`` is not looked at."""
    stacked = _stacked("reduce_scatter", input_list, group)
    return ops.reduce_scatter_stacked(stacked, op_named("reduce_scatter", op), _key("reduce_scatter", group))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks at one rank, zeros at the others."""
    root = root_of("gather", group_of("gather", group), dst, None, "dst")
    return ops.gather_to(tensor, root, _key("gather", group)).unbind(0)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor for this rank in the list of one rank; the lists of the others say what the tensors look like."""
    root = root_of("scatter", group_of("scatter", group), src, None, "src")
    return ops.scatter_from(_stacked("scatter", tensors, group), root, _key("scatter", group))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Each rank sends a block of ``input`` to each; what comes, one behind the other. ``output`` says how many rows come,
    its elements are not looked at.
    """
    size = group_of("all_to_all_single", group).engine.size
    received = split_sizes("all_to_all_single", tuple(output.shape), output_split_sizes, size, "output")
    sent = split_sizes("all_to_all_single", tuple(input.shape), input_split_sizes, size, "input")
    return ops.exchange(input, tuple(sent), tuple(received), _key("all_to_all_single", group))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Each rank sends a tensor to each; those that come, which look like those of ``output_tensor_list``."""
    sent = cat([each.reshape(-1) for each in input_tensor_list])
    sizes = tuple([each.numel() for each in output_tensor_list])
    came = ops.exchange(sent, tuple([each.numel() for each in input_tensor_list]), sizes, _key("all_to_all", group))
    parts = came.split(sizes)
    return tuple([part.reshape(each.shape) for part, each in zip(parts, output_tensor_list, strict=True)])


def _key(name: str, group: Any) -> str | None:
    members = group_of(name, group)
    return None if group is None else members.key


def _stacked(name: str, tensors: Any, group: Any) -> Tensor:
    size = group_of(name, group).engine.size
    if not isinstance(tensors, list | tuple) or len(tensors) != size:
        have = len(tensors) if isinstance(tensors, list | tuple) else type(tensors).__name__
        raise ArgumentError(message(name, f"expected a list of {size} tensors, got {have}"))
    return stack(list(tensors))
