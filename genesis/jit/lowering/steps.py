"""Steps of optimizers as parts, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.scalars import Expression, Symbol
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import F64, Builder, Memory, Part, Unknown, in_order_of_memory, rule
from genesis.jit.program import Call


@rule("fused.adam_step")
def adam_step(memory: Memory, call: Call) -> list[Part]:
    """In the order of `genesis.kernels.llvm.steps.adam`, so with its bits."""
    param, grad, average, square, largest, *numbers = call.args
    dtype = param.spec.dtype
    if dtype.char not in "fd" or any([x.spec.dtype != dtype for x in (grad, average, square)]):
        raise Unknown("parameters of this dtype")
    made = Builder(memory, call, param.spec.shape)
    made.along(in_order_of_memory(call.outs[0]))
    p, g, m, v = (made.read(x) for x in (param, grad, average, square))
    given = [_number(made, x) for x in numbers]
    b1_rest, b2_rest = (1.0 - given[0]).astype(dtype), (1.0 - given[1]).astype(dtype)
    b2, root, eps, rate = (x.astype(dtype) for x in given[1:5])
    if numbers[5] is not None:
        p = p * given[5].astype(dtype)
    m = (g - m) * b1_rest + m
    v = v * b2 + g * g * b2_rest
    outs = [m, v]
    if largest is not None:
        v = np.maximum(made.read(largest), v)
        outs.append(v)
    values = [p + m / (np.sqrt(v) / root + eps) * rate, *outs]
    for out, value in zip(call.outs, values, strict=True):
        made.give(out, value)
    return [made.made()]


def _number(made: Builder, x: Any) -> Any:
    if isinstance(x, Var):
        return made.read(x)
    return Symbol(Expression("number", (0.0 if x is None else float(x),), F64))
