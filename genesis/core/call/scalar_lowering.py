"""Scalar expressions of few functions: `lowered` writes the less common ones with others, so that `PRIMITIVES` is all
that an emitter of code has to know.

`evaluate` computes an expression with NumPy; the tests compare it with the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.core.call.scalars import SPECIAL, Expression, Symbol

_LOWERED: dict[str, Callable[..., Any]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "positive": lambda x: x,
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "heaviside": lambda x, y: np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0).astype(x.dtype))),
    "logaddexp": lambda x, y: np.where(
        x == y, x + math.log(2), np.maximum(x, y) + np.log1p(np.exp(-np.absolute(x - y)))
    ),
    "logaddexp2": lambda x, y: np.where(
        x == y, x + 1, np.maximum(x, y) + np.log1p(np.exp2(-np.absolute(x - y))) * (1 / math.log(2))
    ),
    "fmax": lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y))),
    "fmin": lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.minimum(x, y))),
    "isinf": lambda x: np.absolute(x) == math.inf,
    "isfinite": lambda x: np.absolute(x) < math.inf,
    "logical_and": lambda x, y: (x != 0) & (y != 0),
    "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
    "logical_not": lambda x: x == 0,
}
PRIMITIVES = frozenset(
    {
        "x",
        "number",
        "cast",
        "where",
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "fmod",
        "power",
        "negative",
        "absolute",
        "sign",
        "maximum",
        "minimum",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "hypot",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
        "arctanh",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "copysign",
        "nextafter",
        "signbit",
        "isnan",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "left_shift",
        "right_shift",
        "conjugate",
        "real",
        "imag",
        *SPECIAL,
    }
)


def lowered(expression: Expression) -> Expression:
    """The same value by `PRIMITIVES` only. (Real dtypes; the last digits of ``logaddexp`` may differ.)

    >>> from genesis.core.call.op import REGISTRY
    >>> from genesis.core.call.scalars import rule
    >>> print(lowered(rule(REGISTRY["square"], "float32")))
    multiply(x0, x0)
    """
    done: dict[int, Expression] = {}
    for each in expression.walk():
        args = tuple([done[id(a)] if isinstance(a, Expression) else a for a in each.args])
        simpler = Expression(each.name, args, each.dtype)
        if each.name in _LOWERED:
            simpler = lowered(_LOWERED[each.name](*[Symbol(a) for a in args]).astype(each.dtype).expression)
        done[id(each)] = simpler
    return done[id(expression)]


def evaluate(expression: Expression, *operands: Any) -> Any:
    """The value of an expression on arrays, computed by NumPy: what emitted code is compared with."""
    values: dict[int, Any] = {}
    for each in expression.walk():
        args = [values[id(a)] if isinstance(a, Expression) else a for a in each.args]
        values[id(each)] = _evaluated(each, args, operands)
    return values[id(expression)]


def _evaluated(each: Expression, args: list[Any], operands: Sequence[Any]) -> Any:
    if each.name == "x":
        return np.asarray(operands[args[0]], each.dtype)
    if each.name == "number":
        return np.asarray(args[0], each.dtype)[()]
    if each.name == "cast":
        return np.asarray(args[0]).astype(each.dtype)
    if each.name == "where":
        return np.where(*args)
    if each.name in SPECIAL:
        op = REGISTRY[each.name]
        rest = [np.asarray(a, each.dtype) if i in op.tensors else int(a) for i, a in enumerate(args) if i]
        return np.asarray(getattr(op.meaning, "__wrapped__", op.meaning)(np.asarray(args[0], each.dtype), *rest))
    return np.asarray(getattr(np, each.name)(*args))
