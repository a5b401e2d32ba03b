"""The parameters of a module once for each shard of a rank, whose gradients are added in the order of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.core.functions.function import Function
from genesis.core.graph.tensor import Tensor, wrap
from genesis.kernels.cpu import trees


class ShardTensors:
    """What a module has in place of its parameters and buffers while it computes one shard after the other.

    Args:
        count: of shards; with one, it has its own
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.leaves: dict[int, Any] = {}  # by the parameter
        self.copies: dict[int, list[Any]] = {}  # by the buffer

    def of(self, module: Any, shard: int) -> dict[str, Tensor]:
        """Tensors for the names of a module."""
        if self.count == 1:
            return {}
        out = {name: self._leaves(parameter)[shard] for name, parameter in module.named_parameters()}
        if module.training:  # copies of what they are before the first shard, whose are the module's
            copies = {name: self._copies(buffer)[shard] for name, buffer in module.named_buffers()}
            out |= copies if shard else {}
        return out

    def _leaves(self, parameter: Any) -> Any:
        if id(parameter) not in self.leaves:
            self.leaves[id(parameter)] = Leaves.apply(parameter, self.count)
        return self.leaves[id(parameter)]

    def _copies(self, buffer: Any) -> list[Any]:
        if id(buffer) not in self.copies:
            self.copies[id(buffer)] = [buffer.clone() for _ in range(self.count)]
        return self.copies[id(buffer)]


class Leaves(Function):
    """A parameter once for each shard of this rank; their gradients are added in the order of the tree."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, parameter: Any, count: int) -> Any:
        return tuple([parameter.view_as(parameter) for _ in range(count)])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _sum_of(grads), None


def _sum_of(grads: Sequence[Tensor]) -> Tensor:
    arrays = [g._array for g in grads]
    first = arrays[0]
    plain = all([x.__class__ is np.ndarray and x.dtype is first.dtype and x.flags.c_contiguous for x in arrays])
    if not plain or first.dtype.kind != "f" or any([g._node is not None for g in grads]):
        return trees.tree_sum(grads)  # type: ignore[no-any-return]
    return wrap(trees.sum_of_arrays(arrays))
