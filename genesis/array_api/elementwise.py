"""Functions of each element, of operands that are promoted to one dtype first."""

from __future__ import annotations

from typing import Any

import genesis as _g
from genesis.array_api.dtypes import on_promoted, promoted
from genesis.core.graph.tensor import Tensor

# What is the same once its operands are of one dtype
PROMOTED = (
    "add",
    "atan2",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "divide",
    "floor_divide",
    "hypot",
    "logaddexp",
    "matmul",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "pow",
    "remainder",
    "subtract",
)


globals().update({name: on_promoted(name) for name in PROMOTED})
equal, not_equal, greater, greater_equal, less, less_equal = (
    on_promoted(name) for name in ("eq", "ne", "gt", "ge", "lt", "le")
)
bitwise_invert = _g.bitwise_not


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Numbers limited to a range; the dtype stays."""
    return x.clone() if min is None and max is None else _g.clamp(*promoted(x, min, max)).to(x.dtype)


def round(x: Tensor, /) -> Tensor:
    """The nearest integers, halves to the even neighbour; of complex numbers, of both parts."""
    return _g.complex(_g.round(x.real), _g.round(x.imag)) if x.is_complex() else _g.round(x)


def sign(x: Tensor, /) -> Tensor:
    """Signs: -1, 0 or 1; of complex numbers z / |z|, and 0 of 0."""
    return _g.sgn(x)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of x1 where a condition holds, of x2 elsewhere."""
    return _g.where(condition, *promoted(x1, x2))


__all__ = [
    *PROMOTED,
    "bitwise_invert",
    "clip",
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "not_equal",
    "round",
    "sign",
    "where",
]
