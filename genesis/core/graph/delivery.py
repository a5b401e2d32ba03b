"""The last step of a backward: gradients of leaves go into `.grad`, all or none."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import starmap
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.arrays.memory import DeviceArray, memory_of
from genesis.arrays.protocol import level_of
from genesis.arrays.spec import memory_order, strides_in_order
from genesis.base.errors import DeviceError, GraphError, message
from genesis.base.locks import process_lock
from genesis.base.quiet import unnamed
from genesis.core.graph.node import FREED, AccumulateGrad, Edge, Node, Output
from genesis.core.graph.site import site_here
from genesis.core.graph.switches import ACTIVE
from genesis.core.graph.tracing import tracer
from genesis.core.graph.version import INFERENCE, SHARED, count_write

if TYPE_CHECKING:
    from genesis.core.graph.tensor import Tensor


_delivering = process_lock()  # one thread at a time reads and writes `.grad`


_set_grad: Callable[..., None] = AccumulateGrad.__dict__["_grad"].__set__


def deliver(gradients: Sequence[tuple[AccumulateGrad, Tensor, bool]], create_graph: bool) -> None:
    """``.grad += g`` for these leaves, in place where nothing is recorded; a new ``.grad`` is memory that nobody else
    holds: a copy, where others may hold ``g`` (then the third is True, or it is marked as shared), or where it does not lie
    in memory as the leaf does.

    All that is to be written is worked out first. The writes are calls of C functions, made by one call in C, so
    neither an error nor Ctrl-C (which Python looks for between its own instructions) comes between them.
    """
    plain = not ACTIVE and not create_graph
    with _delivering:
        site = site_here() if gradients and gradients[0][0]._grad is not None else None  # one for all sums in place
        writes: list[tuple[Any, ...]] = []
        append, array = writes.append, np.ndarray
        for node, g, held in gradients:
            if (
                plain
                and node._grad is None
                and g._node is None
                and (
                    not node._virtual and g._array.flags.c_contiguous
                    if g._array.__class__ is array
                    else _at_home(node, g)
                )
            ):
                if held or g._counter is SHARED or (node._hooks is not None and node._hooks.tensor):
                    g = g._apart()  # noqa: PLW2901
                append((_set_grad, node, g))
            else:
                writes += _writes_of(node, g._shared() if held else g, create_graph, site)
        if len(writes) == 1:
            operator.call(*writes[0])
        else:
            deque(starmap(operator.call, writes), 0)
        if create_graph:
            _without_owners([node for node, _, _ in gradients])


def _at_home(node: AccumulateGrad, g: Tensor) -> bool:
    """Whether a gradient lies in the memory of the device where its leaf is, as that does."""
    tensor, array = node.tensor(), g._array
    if tensor is None or not isinstance(array, DeviceArray) or tensor._array.__class__ is not array.__class__:
        return False
    memory = memory_of(array)
    return tensor._array.device is array.device and memory.strides(tensor._array) == memory.strides(array)


def _laid_out(node: AccumulateGrad, g: Tensor) -> Tensor:
    """The first gradient of a leaf with the strides of that, in row-major order where that has gaps: programs look at
    gradients as at the leaf, by ``p.grad.view(-1)``.
    """
    tensor = node.tensor()
    if tensor is None or tensor.is_sparse or g.is_sparse or tensor.shape != g.shape:
        return g
    rows = list(range(g.ndim))
    order = memory_order(tensor.stride())
    if not _same(g.shape, tensor.stride(), strides_in_order(g.shape, order)):
        order = rows
    if _same(g.shape, g.stride(), strides_in_order(g.shape, order)):
        return g
    if order == rows:
        return g.contiguous()
    return g.permute(order).contiguous().permute([order.index(d) for d in range(len(order))])


def _same(shape: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether elements lie at the same places with both strides."""
    return all([n <= 1 or s == t for n, s, t in zip(shape, a, b, strict=True)])


def _writes_of(
    node: AccumulateGrad, g: Tensor, create_graph: bool, site: tuple[CodeType | None, int] | None
) -> list[tuple[Any, ...]]:
    """The calls that put one gradient into its leaf."""
    if g._array.__class__ is not np.ndarray or node._virtual:
        _check_device(node, g)
        _check_layers(node, g)
    before = node.grad
    if before is not None and ACTIVE and tracer.get() is not None:
        tracer.get().grad_adds(node)
    if before is None:
        laid = _laid_out(node, g)
        if laid is not g:
            g = laid if tracer.get() is None else tracer.get().first_gradient(node, laid)
            return node.writes_of(g)
        held = g._counter is SHARED or (node._hooks is not None and bool(node._hooks.tensor))
        if held and g._node is None:
            g._counter = SHARED
            g._own_memory()
            held = False
        g = g.clone() if held else g
        if ACTIVE and tracer.get() is not None:
            g = tracer.get().first_gradient(node, g)
        return node.writes_of(g)
    if create_graph or before._node is not None:
        return node.writes_of(before + g)
    if before.is_sparse and not g.is_sparse:
        return node.writes_of(g + before)
    return _inplace_sum(before, g, site)


def _inplace_sum(x: Tensor, y: Tensor, site: tuple[CodeType | None, int] | None) -> list[tuple[Any, ...]]:
    """The calls that add ``y`` to ``x`` in place: one where both are NumPy's and nothing watches."""
    if (
        ACTIVE
        or x._array.__class__ is not np.ndarray
        or y._array.__class__ is not np.ndarray
        or x._counter is INFERENCE
    ):
        return [(copy_context().run, x.add_, y)]
    if x._counter is SHARED:
        x._own_memory()
    if (
        not x._array.flags.writeable
        or x._array.shape != y._array.shape
        or x._array.dtype.kind not in "fcV"
        or x._array.dtype is not y._array.dtype
    ):
        return [(copy_context().run, x.add_, y)]
    count_write(x._shared_counter(), "add_", site)
    return [(np.add, x._array, y._array, x._array)]


def _without_owners(leaves: Sequence[AccumulateGrad]) -> None:
    """Graphs of recorded gradients keep aliases of the leaves whose ``.grad`` they are: the leaves themselves would keep
    all of it alive for ever.
    """
    owners = {id(t): t for t in (node.tensor() for node in leaves) if t is not None and t._retained is not None}
    ahead: list[Edge] = [t._retained._node for t in owners.values()]  # type: ignore[union-attr]
    seen: set[Node] = set()
    while ahead:
        edge = ahead.pop()
        node = edge.node if edge.__class__ is Output else edge
        if node is None or node in seen:
            continue
        seen.add(node)
        ahead.extend(node._edges)
        if node._saved is not FREED and any(id(v) in owners for v in node._saved):
            node._saved = tuple([v._alias(v._node) if id(v) in owners else v for v in node._saved])


def _check_device(node: AccumulateGrad, g: Tensor) -> None:
    """A gradient on another device than its leaf: a rule made it there."""
    tensor = node.tensor()
    if tensor is not None and tensor.device != g.device:
        raise DeviceError(
            message(
                "backward",
                f"the gradient of a leaf is on {g.device}, the tensor on {tensor.device}",
                operands=[("leaf", tensor._spec())],
                hint="a backward on the way made it on another device; genesis.autograd.record(loss) shows each "
                "node's gradients",
            )
        )


def _check_layers(node: AccumulateGrad, g: Tensor) -> None:
    """A gradient from inside a transform for the ``.grad`` of a leaf that is outside of it."""
    tensor = node.tensor()
    if tensor is not None and level_of(g._array) > level_of(tensor._array):
        raise GraphError(
            message(
                "backward",
                "inside vmap or jvp, the gradient of a leaf from outside cannot go into its .grad",
                operands=[("leaf", tensor._spec()), ("gradient", f"{g._spec()}, {g._array.described()}")],
                hint="return genesis.autograd.grad(loss, w) from the function, or use genesis.func.grad; or call "
                "backward() on the result of the transform",
            )
        )


deliver = unnamed(deliver)  # it adds
