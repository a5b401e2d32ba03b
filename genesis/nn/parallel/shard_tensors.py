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
from genesis.kernels.cpu.trees import products, sum_of_arrays, sum_of_products, tree_sum
from genesis.nn.linear import Linear
from genesis.nn.module import EVERY_MODULE
from genesis.ops.products.linear import linear, matmul_tn
from genesis.ops.products.matmul import as_rows, matmul

_F32 = np.dtype(np.float32)


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

    def none_for(self, module: Any, inputs: Sequence[Any]) -> bool:
        """Whether a module is a linear layer that takes the rows of all shards."""
        if type(module) is not Linear or has_hooks(module) or self.users[id(module.weight)] > 1:
            return False
        if not module.weight.requires_grad or autocast.state() is not None or not grad_mode.get():
            return False
        plain = all([isinstance(x, Tensor) and x.ndim > 1 and _is_plain(x) for x in inputs])
        return plain and _is_plain(module.weight) and len({x.shape for x in inputs}) == 1


def has_hooks(module: Any) -> bool:
    """Whether a call of a module is more than its forward."""
    return module._hooks is not None or bool(EVERY_MODULE) or "forward" in module.__dict__


def _is_plain(x: Tensor) -> bool:
    return x._array.__class__ is np.ndarray and x._array.dtype is _F32


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
        return tree_sum(grads)  # type: ignore[no-any-return]
    return wrap(sum_of_arrays(arrays))


class SharedLinear(Function):
    """`linear` of the rows of all shards."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, weight: Any, bias: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(weight, *inputs)
        ctx.has_bias = bias is not None
        if not all([_is_plain(x) for x in (weight, *inputs)]):
            return tuple([linear(x, weight, bias) for x in inputs])
        out = products([as_rows(x)._array for x in inputs], weight._array.T, None if bias is None else bias._array)
        return tuple([wrap(y).reshape(*x.shape[:-1], -1) for x, y in zip(inputs, out, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        weight, *inputs = ctx.saved_tensors
        _, of_bias, *of_inputs = ctx.needs_input_grad
        rows, others = [as_rows(g) for g in grads], [as_rows(x) for x in inputs]
        bias = tree_sum([g.sum(0) for g in rows]) if of_bias else None
        if grad_mode.get() or not all([_is_plain(x) for x in (*rows, *others, weight)]):
            back = [matmul(g, weight) for g in grads] if any(of_inputs) else [None] * len(grads)
            return tree_sum([matmul_tn(g, x) for g, x in zip(rows, others, strict=True)]), bias, *back
        back = [None] * len(grads)
        if any(of_inputs):
            back = products([g._array for g in rows], weight._array)
            back = [wrap(y).reshape(x.shape) for x, y in zip(inputs, back, strict=True)]
        return wrap(sum_of_products([g._array for g in rows], [x._array for x in others])), bias, *back
