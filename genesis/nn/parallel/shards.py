"""Batches in a fixed number of logical shards, so that a training ends in the same bits whatever the number of ranks.

A model on ``n`` ranks with ``s`` shards computes as one on ``s`` ranks would: row ``i`` of the whole batch is of shard
``i % s``, as `genesis.data.DistributedSampler` gives rows to ranks. A rank computes ``s / n`` shards one after the other, each
with its own random numbers, and gradients are added in one tree, whose lower part is within ranks: for four shards
``(g0 + g2) + (g1 + g3)``. A sum of two does not depend on their order, so a node of the graph that is used twice is a
node of the tree.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from genesis.autograd.func.stateless import functional_call
from genesis.base.errors import ArgumentValueError, ShapeError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.graph.generator import default_generator
from genesis.core.graph.tensor import Tensor
from genesis.nn.container import Sequential
from genesis.nn.parallel.shard_rows import Rows, joined, rows_of, takes_all
from genesis.nn.parallel.shard_tensors import ShardTensors, SharedLinear, has_hooks

_calls, _collectives = Late("genesis.distributed.collectives"), Late("genesis.distributed.nn.ops")
_NAME = "DistributedDataParallel"
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
        forward = _Forward(self, module)
        if kwargs or len(inputs) != 1 or not isinstance(inputs[0], Tensor):
            of_shards = [[rows_of(x, rows, i, self.here) for x in leaves] for i in range(self.here)]
            outputs = [forward.call(module, i, *tree_unflatten(x, structure)) for i, x in enumerate(of_shards)]
        else:
            outputs = forward.layer(module, Rows.of_batch(inputs[0], rows, self.here)).batch(rows // self.here)
        forward.end()
        if isinstance(outputs, Tensor):
            return outputs
        return outputs[0] if self.here == 1 else tree_map(lambda *each: joined(each, rows // self.here), *outputs)


class _Forward:
    """One call of a module, for all shards of a rank."""

    def __init__(self, shards: Shards, module: Any) -> None:
        self.count, (self.key, start) = shards.here, default_generator.key_and_block()
        self.begins = [start + (shards.rank + shards.ranks * i) * _ROOM for i in range(shards.here)]
        self.at, self.start = list(self.begins), start  # where the random numbers of each shard are
        self.tensors = ShardTensors(module, shards.here)

    def layer(self, module: Any, x: Rows) -> Rows:
        """What a module, or one within it, gives for its only argument; a `Sequential` is computed layer by layer."""
        plain = not has_hooks(module)
        if plain and type(module) is Sequential:
            for each in module:
                x = self.layer(each, x)
            return x
        if plain and self.tensors.none_for(module) and x.whole is not None:
            return Rows(
                self.count, whole=SharedLinear.apply(module.weight, module.bias, x.whole, self.count), shared=False
            )
        if plain and x.is_whole and takes_all(module):
            return Rows(self.count, whole=module(x.whole))
        return Rows(self.count, [self.call(module, i, (part,), {}) for i, part in enumerate(x.parts)])

    def call(self, module: Any, i: int, args: Any, named: Any) -> Any:
        """What a module gives for one shard."""
        default_generator.move_to(self.key, self.at[i])
        tensors = self.tensors.of(module, i)
        out = functional_call(module, tensors, args, named) if tensors else module(*args, **named)
        self.at[i] = default_generator.key_and_block()[1]
        return out

    def end(self) -> None:
        """Go on with random numbers behind those of all shards."""
        drawn = max([at - begin for at, begin in zip(self.at, self.begins, strict=True)])
        default_generator.move_to(self.key, self.start + drawn)


# ---- sums over ranks


def sum_of_ranks(memory: Any, group: Any) -> Any:
    """Begin to add all ranks' memory in the order of the tree, in place; it has as many elements for each rank."""
    start = partial(group.engine.sum_in_tree, memory)
    return _calls.run("sum_in_tree", group, (memory.shape, memory.dtype), start, None, True)


def sum_in_graph(g: Tensor, size: int, key: str | None) -> Tensor:
    """The mean over ranks as a node of a trace, added in the order of the tree."""
    return _collectives.sum_in_tree(g, key) * (1 / size)  # type: ignore[no-any-return]
