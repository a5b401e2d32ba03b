"""Sums of products."""

from __future__ import annotations

import builtins
from typing import Any

import genesis as _g
from genesis.array_api.dtypes import promoted
from genesis.array_api.manipulation import broadcast_arrays
from genesis.array_api.statistics import sum
from genesis.base.errors import ArgumentValueError, message
from genesis.core.graph.tensor import Tensor


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Products summed over axes of both."""
    return _g.tensordot(*promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot products along an axis, the first operand conjugated."""
    if not -builtins.min(x1.ndim, x2.ndim) <= axis < 0:
        raise ArgumentValueError(message("vecdot", f"axis must count from the end, within both operands, got {axis}"))
    if x1.shape[axis] != x2.shape[axis]:
        raise ArgumentValueError(
            message(
                "vecdot",
                f"sizes along axis {axis} differ, {x1.shape[axis]} and {x2.shape[axis]}",
                [("x1", x1._spec()), ("x2", x2._spec())],
            )
        )
    x1, x2 = broadcast_arrays(*promoted(x1, x2))
    return sum(x1.conj() * x2, axis=axis, dtype=x1.dtype)


__all__ = ["tensordot", "vecdot"]
