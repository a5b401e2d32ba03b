"""A `Sequential` of linear layers and of such as choose numbers: it takes the rows of all shards, shard after shard, whatever
their number.

Its weights are read once, by products of our own, and their gradients are added in the order of the tree while they are
in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Layer
from genesis.core.functions.function import Function
from genesis.core.graph import autocast
from genesis.core.graph.modes import grad_mode
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import tracer
from genesis.kernels.cpu import trees
from genesis.nn.activation import Hardshrink, Hardtanh, LeakyReLU, ReLU, ReLU6, Threshold
from genesis.nn.container import Sequential
from genesis.nn.flatten import Flatten, Unflatten
from genesis.nn.linear import Identity, Linear
from genesis.nn.module import EVERY_MODULE
from genesis.nn.parallel.shard_level import in_one_piece
from genesis.nn.parallel.shard_rows import apart, joined
from genesis.ops.products.linear import linear, matmul_tn
from genesis.ops.products.matmul import as_rows, matmul

_F32 = np.dtype(np.float32)
_FEW, _NARROW = 4, 4  # in compiled steps products of so few rows, or of less columns, add in another order
# whose numbers are chosen from their input's, or are one product of them, which is rounded once: each by itself
_EACH = frozenset({Hardshrink, Hardtanh, Identity, LeakyReLU, ReLU, ReLU6, Threshold})


def fits(module: Any, x: Any, rows: int) -> bool:
    """Whether a module is such a one, and its input a batch for it, of so many rows in a shard. It does not depend on the
    number of shards.
    """
    if type(module) is not Sequential or EVERY_MODULE or autocast.state() is not None:
        return False
    weights: list[Any] = []
    if x.ndim < 2 or not _fits(module, weights) or len(set(map(id, weights))) < len(weights) or not weights:
        return False
    if tracer.get() is None:
        return _is_plain(x)
    narrowest = min([min(weight.shape) for weight in weights])
    return not isinstance(x._array, Layer) and x._array.dtype == _F32 and rows > _FEW and narrowest >= _NARROW


def _fits(module: Any, weights: list[Any]) -> bool:
    if module._hooks is not None or "forward" in module.__dict__:
        return False
    if type(module) is Sequential:
        return all([_fits(each, weights) for each in module])
    if type(module) is Linear:
        weights.append(module.weight)
        return _is_plain(module.weight) and bool(module.weight.requires_grad)
    if type(module) is Flatten:
        return bool(module.start_dim > 0)
    return type(module) in _EACH or (type(module) is Unflatten and isinstance(module.dim, int) and module.dim > 0)


def _is_plain(x: Any) -> bool:
    """Whether it is a tensor of float32 numbers in memory."""
    return isinstance(x, Tensor) and x._array.__class__ is np.ndarray and x._array.dtype is _F32


def every_row(module: Any, x: Any, count: int) -> Any:
    """What it gives for the rows of so many shards, in the order that they had."""
    rows = x.shape[0]
    given = x.contiguous() if count == 1 else apart(x, count).reshape(rows, *x.shape[1:])
    out = _of_layers(module, given, count)
    return in_one_piece(out) if count == 1 else joined(out.reshape(count, rows // count, *out.shape[1:]), rows // count)


def _of_layers(module: Any, x: Any, count: int) -> Any:
    for each in module:
        if type(each) is Sequential:
            x = _of_layers(each, x, count)
        else:
            x = SharedLinear.apply(each.weight, each.bias, x, count) if type(each) is Linear else each(x)
    return x


class SharedLinear(Function):
    """`linear` of the rows of so many shards, one shard after the other."""

    amp_policy = "preserve"

    @staticmethod
    def forward(ctx: Any, weight: Any, bias: Any, x: Any, count: int) -> Any:
        ctx.save_for_backward(weight, x)
        ctx.count = count
        if not (_is_plain(x) and _is_plain(weight)):
            return linear(x, weight, bias)
        rows, shape = as_rows(x)._array, (*x._array.shape[:-1], weight._array.shape[0])
        return wrap(trees.products(rows, weight._array.T, count, None if bias is None else bias._array).reshape(shape))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        weight, x = ctx.saved_tensors
        _, of_bias, of_input, _ = ctx.needs_input_grad
        rows, others, count = as_rows(g), as_rows(x), ctx.count
        if grad_mode.get() or not (_is_plain(g) and _is_plain(x) and _is_plain(weight)):
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
