"""Parts of elementwise calls, and of those that only move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.spec import strides_of
from genesis.core.call import promotion
from genesis.core.call.op import Op
from genesis.core.call.scalars import BY_HAND, Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import Builder, Memory, Part, Unknown, in_order_of_memory, rule
from genesis.jit.lowering.scalar_code import DIRECT, WIDE
from genesis.jit.program import Call, op_of

# ops with kernels of their own, by their own name
OWN = {name for name in (*DIRECT, *WIDE) if not hasattr(np, name)} - {"relu_gradient"}


def elementwise(memory: Memory, call: Call) -> list[Part]:
    """As the meaning of the op says, in the dtypes of the op; axes in the order of the result's memory."""
    op, out = op_of(call), call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.along(in_order_of_memory(out))
    made.give(out, applied(op, made, memory, call.args))
    return [made.made()]


def applied(op: Op, made: Builder, memory: Memory, args: tuple[Any, ...]) -> Any:
    operands = [args[i] for i in op.tensors]
    kinds = promotion.compute_dtypes(op, [_kind(x, memory) for x in operands])
    given: list[Any] = list(args)
    for i, x, kind in zip(op.tensors, operands, kinds, strict=True):
        given[i] = _operand(x, kind, made)
    if any([isinstance(x, Var) for x in given]):
        raise Unknown("a number of the host that is an option")
    symbols = [given[i] for i in op.tensors]
    if op.name in OWN:
        return _called(op.name, symbols)
    meaning = BY_HAND.get(op.name, getattr(op.meaning, "__wrapped__", op.meaning))
    try:
        value = meaning(*given)
    except TypeError as error:
        raise Unknown(str(error)) from error
    return (
        value
        if isinstance(value, Symbol)
        else Symbol(Expression("number", (np.asarray(value).item(),), np.asarray(value).dtype))
    )


def _kind(x: Any, memory: Memory) -> Any:
    if isinstance(x, Var):
        return 1.0 if x in memory.numbers else x.spec
    return x


def _operand(x: Any, kind: Any, made: Builder) -> Any:
    if isinstance(x, Var):
        symbol = made.read(x)
        return symbol if kind is None else symbol.astype(kind)
    return x if x is None or kind is None else promotion.cast_operand(x, kind)[()]


def _called(name: str, symbols: list[Any]) -> Any:
    dtype = next(x.dtype for x in symbols if isinstance(x, Symbol))
    args = [x.expression if isinstance(x, Symbol) else Expression("number", (x.item(),), dtype) for x in symbols]
    return Symbol(Expression(name, tuple(args), dtype))


@rule("convert", "named", "without_gradient", "clone")
def convert(memory: Memory, call: Call) -> list[Part]:
    out = call.outs[0]
    made = Builder(memory, call, out.spec.shape)
    made.along(in_order_of_memory(out))
    made.give(out, made.read(call.args[0]))
    return [made.made()]


@rule("reshape", "view_shape")
def reshape(memory: Memory, call: Call) -> list[Part]:
    """One that takes a copy: in the order of the input's elements."""
    out, x = call.outs[0], call.args[0]
    made = Builder(memory, call, x.spec.shape)
    made.give(out, made.read(x), strides_of(x.spec.__class__(x.spec.shape, x.spec.dtype)))
    return [made.made()]


@rule("cat")
def cat(memory: Memory, call: Call) -> list[Part]:
    """Each operand is stored behind the one before."""
    out, parts, at = call.outs[0], [], 0
    operands, dim = call.args[0], call.args[1]
    strides = strides_of(out.spec)
    dim = dim % max(len(strides), 1)
    for x in operands:
        if x.spec.shape == (0,) and len(strides) != 1:
            continue
        made = Builder(memory, call, x.spec.shape)
        made.along(in_order_of_memory(out))
        made.give(out, made.read(x), strides, at * strides[dim], whole=len(operands) == 1)
        parts.append(made.made())
        at += x.spec.shape[dim]
    return parts


@rule("pad_dim")
def pad_dim(memory: Memory, call: Call) -> list[Part]:
    """The input at its offset, zeros before and behind it."""
    x, dim, start, size = call.args
    out, shape = call.outs[0], list(x.spec.shape)
    strides = strides_of(out.spec)
    dim = dim % len(shape)
    made = Builder(memory, call, shape)
    made.give(out, made.read(x), strides, start * strides[dim], whole=False)
    parts = [made.made()]
    end = start + shape[dim]
    for first, count in ((0, start), (end, size - end)):
        if count:
            made = Builder(memory, call, [*shape[:dim], count, *shape[dim + 1 :]])
            made.give(
                out, Symbol(Expression("number", (0,), out.spec.dtype)), strides, first * strides[dim], whole=False
            )
            parts.append(made.made())
    return parts


@rule("constant_pad_nd")
def constant_pad_nd(memory: Memory, call: Call) -> list[Part]:
    """All filled, then what stays of the input at its offset: parts of one result are stored in their order."""
    x, pads, value = call.args
    out, shape, own = call.outs[0], list(x.spec.shape), memory.strides(x)
    strides, to, source = strides_of(out.spec), 0, 0
    for i in range(len(pads) // 2):
        before, after, d = pads[2 * i], pads[2 * i + 1], len(shape) - 1 - i
        to += max(before, 0) * strides[d]
        source += max(-before, 0) * own[d]
        shape[d] = max(shape[d] + min(before, 0) + min(after, 0), 0)
    parts, whole = [], tuple(shape) == out.spec.shape
    if not whole:
        full = Builder(memory, call, out.spec.shape)
        full.give(out, Symbol(Expression("number", (value,), out.spec.dtype)), whole=False)
        parts.append(full.made())
    if 0 not in shape:
        inner = Builder(memory, call, shape)
        inner.give(out, inner.read(x, own, source), strides, to, whole=whole)
        parts.append(inner.made())
    return parts
