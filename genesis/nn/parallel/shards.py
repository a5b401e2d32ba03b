"""Batches in a fixed number of logical shards, so that a training ends in the same bits whatever the number of ranks.

A model on ``n`` ranks with ``s`` shards computes as one on ``s`` ranks would: row ``i`` of the whole batch is of shard
``i % s``, as `genesis.data.DistributedSampler` gives rows to ranks. A rank computes ``s / n`` shards, each with its own random
numbers, and gradients are added in one tree, whose lower part is within ranks: for four shards ``(g0 + g2) + (g1 + g3)``. A sum
of two does not depend on their order, so a node of the graph that is used twice is a node of the tree.

A rank computes its shards at once where that gives the bits of one after the other: `nn/parallel/shard_ops.py` says how.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genesis.autograd.func.stateless import functional_call
from genesis.base.errors import ArgumentValueError, ShapeError, UnsupportedError, message
from genesis.base.late import Late
from genesis.base.pytree import tree_flatten, tree_map, tree_unflatten
from genesis.core.call.fused import open_to_kernels
from genesis.core.graph.generator import default_generator, seeded_stream
from genesis.core.graph.levels import opened
from genesis.core.graph.parameter import Buffer, Parameter
from genesis.core.graph.tensor import Tensor
from genesis.nn.module import EVERY_MODULE
from genesis.nn.parallel import shard_kernels, shard_ops  # noqa: F401, they enter how arrays of shards are computed with
from genesis.nn.parallel.shard_arrays import Sharded
from genesis.nn.parallel.shard_layers import every_row, fits
from genesis.nn.parallel.shard_level import ShardLevel, in_one_piece, into, out_of, parameter, without_stream
from genesis.nn.parallel.shard_rows import apart, joined, rows_of, shown
from genesis.nn.parallel.shard_tensors import ShardTensors

_calls = Late("genesis.distributed.collectives")
_NAME = "DistributedDataParallel"
_ROOM = 1 << 48  # blocks of random numbers between the streams of two shards


class Shards:
    """What runs a module on the shards of a rank.

    Args:
        count: of all ranks together

    Attributes:
        reason: why shards were computed one after the other; None where they are computed at once

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
        self.reason: str | None = None
        self.known: dict[bool, str | None] = {}  # in training, or not: the reason that was seen

    def __call__(self, module: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the module gives for the rows of this rank.

        Raises:
            RuntimeError: rows that do not divide, outputs that have none
        """
        leaves, structure = tree_flatten((inputs, kwargs))
        rows = next((x.shape[0] for x in leaves if isinstance(x, Tensor) and x.ndim), 0)
        if not rows or rows % self.here:
            text = f"a batch of {rows} rows does not divide into {self.here} shards"
            raise ShapeError(message(_NAME, text, hint="drop_last=True in the loader, or another batch_size"))
        if len(leaves) == 1 and fits(module, leaves[0], rows // self.here):
            return every_row(module, leaves[0], self.here)
        forward = _Forward(self, module)
        outputs = forward.at_once(leaves, structure, rows) if self.here > 1 else NotImplemented
        if outputs is NotImplemented:
            try:
                outputs = forward.one_by_one(leaves, structure, rows)
            except Exception:
                self.known.clear()  # it was no reason: the next call may be right
                raise
        forward.end()
        return outputs

    def refusal(self, module: Any, leaves: list[Any]) -> str | None:
        """Why shards are not to be computed at once, as far as that is known before."""
        if not open_to_kernels(None) or seeded_stream.get() is not None:
            return "a trace, a transform or another mode is open"
        if EVERY_MODULE or any([each._hooks is not None for each in module.modules()]):
            return "modules have hooks"
        if not all([_is_plain(x) for x in [*leaves, *module.parameters(), *module.buffers()]]):
            return "tensors are not in the memory of the CPU, or of a class of their own"
        return self.known.get(module.training)


def _is_plain(x: Any) -> bool:
    return not isinstance(x, Tensor) or (x._array.__class__ is np.ndarray and type(x) in (Tensor, Parameter, Buffer))


class _Forward:
    """One call of a module, for all shards of a rank."""

    def __init__(self, shards: Shards, module: Any) -> None:
        self.shards, self.module, self.count = shards, module, shards.here
        self.key, self.start = default_generator.key_and_block()
        self.begins = [self.start + (shards.rank + shards.ranks * i) * _ROOM for i in range(self.count)]
        self.at = list(self.begins)  # where the random numbers of each shard are

    def at_once(self, leaves: list[Any], structure: Any, rows: int) -> Any:
        """What the module gives for the rows of all shards, computed together; NotImplemented where that cannot be."""
        shards, training = self.shards, self.module.training
        shards.reason = shards.refusal(self.module, leaves)
        if shards.reason is not None:
            return NotImplemented
        level = ShardLevel(self.count, self.key, list(self.begins))
        try:
            with opened(level), without_stream():
                outputs = tree_map(partial(out_of, owner=level), self._of_level(leaves, structure, rows, level))
            result = tree_map(partial(joined, rows=rows // self.count), outputs)
        except Exception as error:  # one after the other they may be computed, or that raises an error of its own
            shards.reason = shards.known[training] = f"{type(error).__name__}: {error}"
            return NotImplemented
        self.at, shards.known[training] = level.at, None
        return result

    def _of_level(self, leaves: list[Any], structure: Any, rows: int, level: ShardLevel) -> Any:
        module, own = self.module, {}
        for p in module.parameters():
            own[id(p)] = parameter(p, level)
        tensors = {name: own[id(p)] for name, p in module.named_parameters()}
        buffers = {}
        if module.training not in self.shards.known:  # they may be written to
            buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        given = [into(apart(x, level.count), level) if _has_rows(x, rows) else x for x in leaves]
        args, named = tree_unflatten(given, structure)
        outputs = functional_call(module, tensors | buffers, args, named)
        if any([x._version for x in (tensors | buffers).values()]):
            raise UnsupportedError(message(_NAME, "forward writes to parameters or buffers"))
        if any([_is_sharded(x) for each in module.modules() for x in each.__dict__.values()]):
            raise UnsupportedError(message(_NAME, "forward keeps tensors in modules"))
        return outputs

    def one_by_one(self, leaves: list[Any], structure: Any, rows: int) -> Any:
        """The same, one shard after the other."""
        tensors = ShardTensors(self.count)
        outputs = []
        for i in range(self.count):
            args, named = tree_unflatten(
                [rows_of(x, i, self.count) if _has_rows(x, rows) else x for x in leaves], structure
            )
            default_generator.move_to(self.key, self.at[i])
            own = tensors.of(self.module, i)
            outputs.append(functional_call(self.module, own, args, named) if own else self.module(*args, **named))
            self.at[i] = default_generator.key_and_block()[1]
        outputs = [tree_map(in_one_piece, each) for each in outputs]
        if self.count == 1:
            return outputs[0]
        return tree_map(lambda *each: joined(shown(each), rows // self.count), *outputs)

    def end(self) -> None:
        """Go on with random numbers behind those of all shards."""
        drawn = max([at - begin for at, begin in zip(self.at, self.begins, strict=True)])
        default_generator.move_to(self.key, self.start + drawn)


def _has_rows(x: Any, rows: int) -> bool:
    return isinstance(x, Tensor) and bool(x.ndim) and bool(x.shape[0] == rows)


def _is_sharded(x: Any) -> bool:
    if x.__class__ is list or x.__class__ is tuple:
        return any([_is_sharded(each) for each in x])
    return isinstance(x, Tensor) and isinstance(x._array, Sharded)


# ---- sums over ranks


def sum_of_ranks(memory: Any, group: Any) -> Any:
    """Begin to add all ranks' memory in the order of the tree, in place; it has as many elements for each rank."""
    start = partial(group.engine.sum_in_tree, memory)
    return _calls.run("sum_in_tree", group, (memory.shape, memory.dtype), start, None, True)
