"""Functions that tests of several parts use."""

from __future__ import annotations

from genesis import Function


class Cube(Function):
    """Without rules of its own for forward mode and batches."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g
