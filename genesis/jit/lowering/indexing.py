"""Calls that say with numbers which elements they mean: rows of tables, and sums into them.

Numbers that are no index of the dimension are an error: machine code is made where they were checked before (`ranges`, or
``check_range`` on the host), or are constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from genesis.arrays.spec import contiguous_strides, strides_of
from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.loops import Affine, Axis, For, Load, Nest, Store
from genesis.jit.lowering.parts import Builder, Memory, Part, Read, Unknown, rule
from genesis.jit.program import Call

SUMS = ("place", "scatter_sum")
AT = ("at",)  # the key of an index array for the first dimension
LANES = 64  # columns of a chunk


@rule("take_index")
def take_index(memory: Memory, call: Call) -> list[Part]:
    x, index, key = call.args
    if tuple(key) != AT or index is None:
        raise Unknown("an index of this kind")
    wraps = memory.wraps(index, x.spec.shape[0])
    shape, ndim, own = call.outs[0].spec.shape, len(index.spec.shape), memory.strides(x)
    made = Builder(memory, call, shape)
    rows = made.read(index, [*memory.strides(index), *[0] * (len(shape) - ndim)])
    rows = np.where(rows < 0, rows + x.spec.shape[0], rows) if wraps else rows
    made.give(call.outs[0], made.taken(x, [*[0] * ndim, *own[1:]], rows, own[0]))
    return [made.made()]


@rule("gather_at")
def gather_at(memory: Memory, call: Call) -> list[Part]:
    x, dim, index, *_ = call.args
    ndim = len(x.spec.shape)
    if not ndim or len(index.spec.shape) != ndim:
        raise Unknown("an index of no dimensions")
    dim %= ndim
    memory.check(index, x.spec.shape[dim])
    own = list(memory.strides(x))
    made = Builder(memory, call, index.spec.shape)
    which = made.read(index)
    made.give(call.outs[0], made.taken(x, [0 if d == dim else s for d, s in enumerate(own)], which, own[dim]))
    return [made.made()]


@rule("place", "put")
def put(memory: Memory, call: Call) -> list[Part]:
    """Zeros or a copy, then the value where slices say."""
    if call.op == "place":
        value, index, _, key = call.args
        before = None
    else:
        before, value, index, key = call.args
    if index is not None:
        raise Unknown("an index of this kind")
    out = call.outs[0]
    strides = strides_of(out.spec)
    one = np.empty(1, out.spec.dtype)
    size = one.itemsize
    ghost = np.lib.stride_tricks.as_strided(one, out.spec.shape, [s * size for s in strides], writeable=False)
    # only addresses are computed; without an ellipsis one element would be a number, at an address of its own
    view = ghost[key if Ellipsis in key else (*key, ...)]
    offset = (view.__array_interface__["data"][0] - one.__array_interface__["data"][0]) // size
    if (offset, view.shape, view.strides) == (0, ghost.shape, ghost.strides):  # all of it
        every = Builder(memory, call, out.spec.shape)
        every.give(out, every.read(value))
        return [every.made()]
    whole = Builder(memory, call, out.spec.shape)
    zero = Symbol(Expression("number", (0,), out.spec.dtype))
    whole.give(out, zero if before is None else whole.read(before), whole=False)
    some = Builder(memory, call, view.shape)
    some.give(out, some.read(value), [s // size for s in view.strides], offset, whole=False)
    return [whole.made(), some.made()]


# ---- sums into rows


def sums(memory: Memory, call: Call) -> tuple[Nest, list[Var]]:
    """``place`` of an index array, and ``scatter_sum``: zeros, to which elements are added in their order.

    Chunks have columns of their own: which rows an element is added to is not known before.
    """
    if call.op == "place":
        x, index, shape, key = call.args
        if tuple(key) != AT or index is None or not index.spec.shape:
            raise Unknown("an index of this kind")
        extents, ndim = x.spec.shape, len(index.spec.shape)
        dim, of_index = 0, list(range(ndim))
        strides = contiguous_strides(tuple(shape))
        index_strides, target = [*memory.strides(index), *[0] * (len(extents) - ndim)], [*[0] * ndim, *strides[1:]]
    else:
        x, shape, dim, index, *_ = call.args
        if not index.spec.shape:
            raise Unknown("an index of no dimensions")
        extents = index.spec.shape
        dim, of_index = dim % len(shape), [dim % len(shape)]
        strides = contiguous_strides(tuple(shape))
        index_strides = list(memory.strides(index))
        target = [0 if d == dim else s for d, s in enumerate(strides)]
    memory.check(index, shape[dim])
    out = call.outs[0]
    if strides_of(out.spec) != strides or out.spec.dtype.itemsize < 4:
        raise Unknown("a result of this dtype or layout")
    last = len(extents) - 1
    columns = last not in of_index and out.spec.shape[-1] == extents[last]
    axes = [Axis(n, LANES if columns and d == last and n > LANES else None) for d, n in enumerate(extents)]
    where, value = memory.read(index, index_strides), memory.read(x, memory.strides(x))
    operands = list(dict.fromkeys([value.root, where.root, out]))
    kinds = {value.root: value.dtype, where.root: where.dtype, out: out.spec.dtype}

    def load(read: Read) -> Load:
        return Load(operands.index(read.root), _affine(axes, read.strides, read.offset), read.dtype)

    count, to = math.prod(shape), operands.index(out)
    rows = (Axis(count // max(extents[last], 1)), axes[last]) if columns else (Axis(count),)
    clear = Store(
        to, _affine(rows, (extents[last], 1) if columns else (1,)), Expression("number", (0,), out.spec.dtype)
    )
    number = Expression("cast", (load(where),), np.dtype(np.int64))
    add = Store(to, _affine(axes, target), load(value), number, strides[dim], adds=True)
    order = [*of_index, *[d for d in range(len(extents)) if d not in of_index]]
    body = (
        For(rows, (clear,), vector=True),
        For(tuple([axes[d] for d in order]), (add,), vector=len(order) > len(of_index)),
    )
    chunks = -(-extents[last] // LANES) if axes[last].chunk else 1
    return Nest(tuple([kinds[v] for v in operands]), body, chunks), operands


def _affine(axes: Sequence[Axis], strides: Sequence[int], offset: int = 0) -> Affine:
    return Affine(offset, tuple([(axis, s) for axis, s in zip(axes, strides, strict=True) if s]))
