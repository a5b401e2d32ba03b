"""The parameters of a module once for each shard of a rank, whose gradients are added in the order of the tree.

A linear layer whose weight nothing else uses needs none: `SharedLinear` takes the rows of all shards, so that the weight
is read once, and adds the products that its gradient consists of while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.core.functions.function import Function
from genesis.core.graph import autocast
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.kernels.cpu import trees
from genesis.nn.linear import Linear
from genesis.nn.module import EVERY_MODULE
from genesis.nn.parallel.shard_rows import is_plain
from genesis.ops.products.linear import matmul_tn
from genesis.ops.products.matmul import as_rows, matmul


class ShardTensors:
    """What modules have in place of their parameters and buffers while they compute a shard, in one forward.

    Args:
        count: of shards; with one, modules have their own
    """

    def __init__(self, module: Any, count: int) -> None:
        self.count = count
        self.leaves: dict[int, Any] = {}  # by the parameter
        self.copies: dict[int, list[Any]] = {}  # by the buffer
        self.users: dict[int, int] = {}
        for _, each in module.named_modules(remove_duplicate=False):
            for parameter in each._parameters.values():
                self.users[id(parameter)] = self.users.get(id(parameter), 0) + 1

    def of(self, module: Any, shard: int) -> dict[str, Tensor]:
        """Tensors for the names of a module."""
        if self.count == 1:
            return {}
        out = {name: self._leaves(parameter)[shard] for name, parameter in module.named_parameters()}
        if module.training and shard:  # the first shard's are the module's
            out |= {name: self._copies(buffer)[shard] for name, buffer in module.named_buffers()}
        return out

    def _leaves(self, parameter: Any) -> Any:
        if id(parameter) not in self.leaves:
            self.leaves[id(parameter)] = Leaves.apply(parameter, self.count)
        return self.leaves[id(parameter)]

    def _copies(self, buffer: Any) -> list[Any]:
        if id(buffer) not in self.copies:
            self.copies[id(buffer)] = [buffer.clone() for _ in range(self.count)]
        return self.copies[id(buffer)]

    def none_for(self, module: Any) -> bool:
        """Whether a module is a linear layer that takes the rows of all shards."""
        if type(module) is not Linear or self.users[id(module.weight)] > 1 or not is_plain(module.weight):
            return False
        return module.weight.requires_grad and autocast.state() is None and grad_mode.get()


def has_hooks(module: Any) -> bool:
    """Whether a call of a module is more than its forward."""
    return module._hooks is not None or bool(EVERY_MODULE) or "forward" in module.__dict__


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


class SharedLinear(Function):
    """`linear` of the rows of so many shards, one shard after the other."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, weight: Any, bias: Any, x: Any, count: int) -> Any:
        ctx.save_for_backward(weight, x)
        ctx.count = count
        rows, shape = as_rows(x)._array, (*x._array.shape[:-1], weight._array.shape[0])
        return wrap(trees.products(rows, weight._array.T, count, None if bias is None else bias._array).reshape(shape))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        weight, x = ctx.saved_tensors
        _, of_bias, of_input, _ = ctx.needs_input_grad
        rows, others, count = as_rows(g), as_rows(x), ctx.count
        if grad_mode.get() or not (is_plain(g) and is_plain(x) and is_plain(weight)):
            parts = rows.chunk(count)
            bias = trees.tree_sum([part.sum(0) for part in parts]) if of_bias else None
            back = matmul(g, weight) if of_input else None
            return (
                trees.tree_sum([matmul_tn(*pair) for pair in zip(parts, others.chunk(count), strict=True)]),
                bias,
                back,
                None,
            )
        rows, others = rows._array, others._array
        bias = wrap(trees.sums_of_rows(rows, count)) if of_bias else None
        back = wrap(trees.products(rows, weight._array, count).reshape(x._array.shape)) if of_input else None
        return wrap(trees.sum_of_products(rows, others, count)), bias, back, None
