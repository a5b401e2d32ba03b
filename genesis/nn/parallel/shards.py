"""Batches in a fixed number of logical shards, so that a training ends in the same bits whatever the number of ranks.

A model on ``n`` ranks with ``s`` shards computes as one on ``s`` ranks would: row ``i`` of the whole batch is of shard
``i % s``, as `genesis.data.DistributedSampler` gives rows to ranks. A rank computes ``s / n`` shards one after the other, each
with its own random numbers, and gradients are added in one tree, whose lower part is within ranks: for four shards
``(g0 + g2) + (g1 + g3)``. A sum of two does not depend on their order, so a node of the graph that is used twice is a
node of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.autograd.func.stateless import functional_call
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.functions.function import Function
from genesis.core.graph.generator import default_generator
from genesis.core.graph.tensor import Tensor, wrap
from genesis.kernels.cpu import memory as room
from genesis.ops.shapes.join import stack

_processes, _collectives = Late("genesis.distributed"), Late("genesis.distributed.nn.ops")
_NAME = "DistributedDataParallel"
_PART = 1 << 14  # elements that are added at a time
_ROOM = 1 << 48  # blocks of random numbers between the streams of two shards


class Shards:
    """What runs a module on the shards of a rank.

    Args:
        count: of all ranks together

    Raises:
        ValueError: no power of two, or not as many for each rank
    """

    def __init__(self, count: int, group: Any) -> None:
        self.rank, self.ranks, self.count = group.rank(), group.size(), count
        if not isinstance(count, int) or count < 1 or count & (count - 1):
            raise ArgumentValueError(message(_NAME, f"shards is {count!r}, expected a power of two", hint="shards=4"))
        if count % self.ranks:
            text = f"{count} shards do not divide among {self.ranks} ranks"
            raise ArgumentValueError(message(_NAME, text, hint="as many ranks as a power of two, and shards for each"))
        self.here = count // self.ranks

    def __call__(self, module: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the module gives for the rows of this rank, computed shard by shard.

        Raises:
            RuntimeError: rows that do not divide, outputs that have none
        """
        leaves, structure = tree_flatten((inputs, kwargs))
        rows = next((x.shape[0] for x in leaves if isinstance(x, Tensor) and x.ndim), 0)
        if not rows or rows % self.here:
            text = f"a batch of {rows} rows does not divide into {self.here} shards"
            raise ShapeError(message(_NAME, text, hint="drop_last=True in the loader, or another batch_size"))
        tensors = self._tensors(module)
        (key, start), blocks = default_generator.key_and_block(), 0
        outputs = []
        for i in range(self.here):
            begin = start + (self.rank + self.ranks * i) * _ROOM
            default_generator.move_to(key, begin)
            args, named = tree_unflatten([_rows(x, rows, i, self.here) for x in leaves], structure)
            outputs.append(functional_call(module, tensors[i], args, named) if tensors else module(*args, **named))
            blocks = max(blocks, default_generator.key_and_block()[1] - begin)
        default_generator.move_to(key, start + blocks)
        return outputs[0] if self.here == 1 else tree_map(lambda *each: _joined(each, rows // self.here), *outputs)

    def _tensors(self, module: Any) -> list[dict[str, Tensor]]:
        """For each shard its places in the trees of gradients, and buffers: those of the first are the module's."""
        if self.here == 1:
            return []
        out: list[dict[str, Tensor]] = [{} for _ in range(self.here)]
        for name, parameter in module.named_parameters():
            for i, leaf in enumerate(_Leaves.apply(parameter, self.here)):
                out[i][name] = leaf
        if module.training:
            for name, buffer in module.named_buffers():
                for each in out[1:]:
                    each[name] = buffer.clone()
        return out


class _Leaves(Function):
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
    return wrap(_sum_of_arrays(arrays))


def _sum_of_arrays(arrays: Sequence[Any]) -> Any:
    """`tree_sum` of contiguous arrays, a part at a time, which stays in the cache, into memory that is used again."""
    first = arrays[0]
    if first.nbytes < room.LARGE:
        return tree_sum(arrays)
    out, flat = room.empty(first.shape, first.dtype), [x.reshape(-1) for x in arrays]
    whole, between = out.reshape(-1), np.empty((len(arrays), _PART), first.dtype)
    for begin in range(0, first.size, _PART):
        _tree_into(whole[begin : begin + _PART], [x[begin : begin + _PART] for x in flat], between)
    return out


def _tree_into(out: Any, parts: Sequence[Any], between: Any) -> None:
    """`tree_sum` into ``out``, with memory for what is added on the way."""
    if len(parts) == 2:
        np.add(*parts, out=out)
        return
    other = between[0][: out.size]
    _tree_into(out, parts[::2], between[1:])
    _tree_into(other, parts[1::2], between[1:])
    np.add(out, other, out=out)


def _rows(x: Any, rows: int, i: int, count: int) -> Any:
    """The rows of one shard, of a tensor that has those of the batch."""
    return x[i::count] if isinstance(x, Tensor) and x.ndim and x.shape[0] == rows and count > 1 else x


def _joined(parts: Sequence[Any], rows: int) -> Any:
    """The rows of all shards in the order that they had, the mean of numbers, and of others those of the first."""
    first = parts[0]
    if not isinstance(first, Tensor):
        return first
    if not first.ndim:
        return stack(list(parts)).mean()  # type: ignore[attr-defined]
    if first.shape[0] != rows:
        text = f"an output is {first._spec()}, and its shard has {rows} rows"
        raise ShapeError(message(_NAME, text, hint="outputs whose first dimension is the batch's; or shards=None"))
    return stack(list(parts), 1).reshape(rows * len(parts), *first.shape[1:])  # type: ignore[attr-defined]


# ---- sums over ranks


class TreeSum:
    """The sum of all ranks' memory, in place: each rank adds one part of it in the order of the tree.

    Two ranks do not need it: a sum of two has one order. The memory has as many elements for each rank.
    """

    def __init__(self, memory: Any, group: Any) -> None:
        self.memory, self.group = memory.reshape(group.size(), -1), group
        self.came = room.empty(self.memory.shape, memory.dtype)
        self.work = _processes.all_to_all_single(wrap(self.came), wrap(self.memory), group=group, async_op=True)

    def is_completed(self) -> bool:
        """Brings it forward."""
        return bool(self.work.is_completed())

    def wait(self) -> None:
        """Until the sum is there."""
        self.work.wait()
        _processes.all_gather_into_tensor(wrap(self.memory), wrap(_sum_of_arrays(list(self.came))), self.group)


def tree_sum(parts: Sequence[Any]) -> Any:
    """The sum of a power of two of values, in the order of the tree.

    >>> tree_sum([1, 2, 3, 4]) == (1 + 3) + (2 + 4)
    True
    """
    return parts[0] if len(parts) == 1 else tree_sum(parts[::2]) + tree_sum(parts[1::2])


def sum_in_graph(g: Tensor, size: int, key: str | None) -> Tensor:
    """The mean over ranks as nodes of a trace, added in the order of the tree."""
    every = _collectives.all_gather_stacked(g, key)
    return tree_sum([every[i] for i in range(size)]) * (1 / size)  # type: ignore[no-any-return]
