"""Steps of optimizers as parts, element by element."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.loops import DType
from genesis.jit.lowering.parts import F64, Builder, Memory, Part, Unknown, formula, in_order_of_memory, rule
from genesis.jit.program import Call


@rule("fused.adam_step")
def adam_step(memory: Memory, call: Call) -> list[Part]:
    """One step of Adam: every parameter has the same formulas."""
    *tensors, largest = call.args[:5]
    numbers, dtype = call.args[5:], tensors[0].spec.dtype
    if dtype.char not in "fd" or any([x.spec.dtype != dtype for x in tensors]):
        raise Unknown("parameters of this dtype")
    made = Builder(memory, call, tensors[0].spec.shape)
    made.along(in_order_of_memory(call.outs[0]))
    for x in (*tensors, *([] if largest is None else [largest]), *[x for x in numbers if isinstance(x, Var)]):
        made.read(x)
    known = tuple(["read" if isinstance(x, Var) else x for x in numbers])
    for out, value in zip(call.outs, _formulas(dtype, largest is not None, known), strict=True):
        made.give_formula(out, value)
    return [made.made()]


@functools.cache
def _formulas(dtype: DType, maximum: bool, numbers: tuple[float | str | None, ...]) -> tuple[Expression, ...]:
    """The parameter, both averages and, if it is kept, the largest one, after a step; in the order of
    `genesis.kernels.llvm.steps.adam`, so with its bits. The numbers are those that are known, or are read.
    """
    tensors: list[Any] = [Symbol(Expression("x", (i,), dtype)) for i in range(4 + maximum)]
    p, g, m, v, *more = tensors
    given: list[Any] = []
    for i, x in enumerate(numbers):
        before = len(tensors) + numbers[:i].count("read")
        given.append(Symbol(Expression("x", (before,), F64) if x == "read" else Expression("number", (x or 0.0,), F64)))
    beta1, beta2, root, eps, rate, shrink = given
    if numbers[5] is not None:
        p = p * shrink.astype(dtype)
    m = (g - m) * (1.0 - beta1).astype(dtype) + m
    v = v * beta2.astype(dtype) + g * g * (1.0 - beta2).astype(dtype)
    size = np.maximum(more[0], v) if maximum else v
    p = p + m / (np.sqrt(size) / root.astype(dtype) + eps.astype(dtype)) * rate.astype(dtype)
    return tuple([formula(x, dtype) for x in ((p, m, v, size) if maximum else (p, m, v))])
