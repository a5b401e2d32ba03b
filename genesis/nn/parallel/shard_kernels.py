"""Kernels of composites on arrays of shards: the one that a shard has by itself, for one after the other, with its backward."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genesis.base.quiet import quietly
from genesis.core.call import fused
from genesis.core.call.fused import Fused, FusedNode, open_to_kernels
from genesis.core.call.halves import called
from genesis.core.call.op import REGISTRY, Op
from genesis.core.graph.boundary import lift_all
from genesis.core.graph.levels import check_at_home
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.node import recorded
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import WRITES
from genesis.nn.parallel.shard_arrays import Sharded, together
from genesis.nn.parallel.shard_level import apart


def call(entry: Fused, args: tuple[Any, ...]) -> Any:
    """The result of a composite some of whose tensors are those of shards, or NotImplemented."""
    given = lift_all([args[i] for i in entry.tensors])
    args = tuple([given[entry.tensors.index(i)] if i in entry.tensors else x for i, x in enumerate(args)])
    top = next(x._array for x in given if isinstance(x, Tensor) and isinstance(x._array, Sharded))
    check_at_home(top, entry.op.name)
    edges = tuple([None if x is None else x._node for x in given])
    recording = grad_mode.get() and any([edge is not None for edge in edges])
    of_shards = [[_own(x, i) if k in entry.tensors else x for k, x in enumerate(args)] for i in range(top.owner.count)]
    kernel = entry.choose(of_shards[0], recording)
    if kernel is None or kernel.written or not all([entry.choose(x, recording) is kernel for x in of_shards]):
        return NotImplemented
    compute = kernel.kernel if recording or kernel.alone is None else kernel.alone
    results = [quietly(compute, *arrays) for arrays in of_shards]
    pairs = [x if x.__class__ is tuple else (x, None) for x in results]
    out = wrap(together(top.owner, [np.asarray(array) for array, _ in pairs]))
    if recording:
        read = [args[i] for i in kernel.reads if args[i] is not None]
        kept = top.owner, [each for _, each in pairs]
        out._node = recorded(_node_of(kernel), edges, out._array, (read, kept, args))
    return out


def _own(x: Tensor | None, i: int) -> Any:
    array = None if x is None else x._array
    return array.arrays[i] if isinstance(array, Sharded) else array


class _Node(FusedNode):
    """The node of such a call."""

    __slots__ = ()

    def _pull(self, g: Any) -> Any:
        _, (owner, kept), args = self._saved if self._epoch is WRITES[0] else self._unpack()
        traced = tracer.get() if ACTIVE else None
        if traced is not None or not open_to_kernels(None) or grad_mode.get() or g._array.dtype != self._dtype:
            return self._composed(g, args)
        arrays = g._array.arrays if isinstance(g._array, Sharded) else [g._array] * owner.count
        needs = tuple([edge is not None for edge in self._edges])
        gradients = [self.fused.gradients(x, each, needs) for x, each in zip(arrays, kept, strict=True)]
        if any([x is NotImplemented for x in gradients]):
            return self._composed(g, args)
        return [None if x[0] is None else wrap(together(owner, x)) for x in zip(*gradients, strict=True)]


_nodes: dict[Fused, type[_Node]] = {}


def _node_of(kernel: Fused) -> type[_Node]:
    if kernel not in _nodes:
        plain = kernel.node
        _nodes[kernel] = type(plain.__name__, (_Node, plain), {"__slots__": ()})
    return _nodes[kernel]


fused.IN_LAYERS[Sharded] = call


# ---- composites that compute in one way what is memory, and in another what is not


def _apart(op: Op, *args: Any) -> Any:
    """The composite for one shard after the other."""
    top = next((x._array for x in args if isinstance(x, Tensor) and isinstance(x._array, Sharded)), None)
    return NotImplemented if top is None else apart(partial(called, op, op.call), (args,), {}, top.owner)


for _name in ("scatter_reduce",):
    _op = REGISTRY[_name]
    _op.call.__globals__["fused"] = partial(_apart, _op)
