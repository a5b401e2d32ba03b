"""SiLU of float32 arrays, with the logistic function kept for its backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.memory import HOST, orders, strides_of_copy
from genesis.core.call.kernels import attach
from genesis.kernels.cpu.pointwise import silu_and_gate


@attach(
    "silu",
    np.ndarray,
    when=lambda x, *_: x.dtype == np.float32 and x.ndim > 0,
    infer=lambda input, *_: (input, (input, "input")),
)
def silu(input: Any, *_: Any) -> Any:
    """The kernel of `genesis.nn.functional.silu`."""
    strides = None if input.flags.c_contiguous else strides_of_copy(input.shape, HOST.strides(input))
    if strides is None:
        out, gate = silu_and_gate(input)
    else:  # in the order of memory
        order, back = orders(strides)
        out, gate = [x.transpose(back) for x in silu_and_gate(input.transpose(order))]
    return out, (gate, input)


@silu.backward
def _(g: Any, kept: Any, needs: Any) -> Any:
    s, x = kept
    gx = np.subtract(1, s)
    gx *= x
    gx += 1
    gx *= s
    gx *= g
    return (gx,)
