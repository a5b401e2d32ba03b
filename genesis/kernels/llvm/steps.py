"""Steps of optimizers, one element at a time: what they read and write passes through the processor once."""

from __future__ import annotations

from typing import Any

from genesis.kernels.llvm.values import Value, sqrt


def adam(
    p: Value, g: Value, m: Value, v: Value,
    b1_rest: Value, b2: Value, b2_rest: Value, root: Value, eps: Value, rate: Value, shrink: Value,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The parameter and both averages after a step; in the order of `genesis.kernels.cpu.optim`, so with its bits."""
    p = p * shrink
    m = (g - m) * b1_rest + m
    v = v * b2 + g * g * b2_rest
    return p + m / (sqrt(v) / root + eps) * rate, m, v
