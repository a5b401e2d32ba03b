"""One step of Adam on NumPy arrays, in place, in blocks that stay in the cache.

The composition in `genesis.optim.adam` goes over each array sixteen times; in blocks of 16,384 elements all passes but the
first find their data in the level-2 cache, and small parameters save the cost of sixteen calls through tensors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.core.quiet import quietly

BLOCK = 16_384


def fits(*arrays: Any) -> bool:
    """Whether the kernel can take these arrays: NumPy, one floating dtype, contiguous, writable."""
    kind = arrays[0].dtype
    if kind != np.float32 and kind != np.float64:
        return False
    return all(a.__class__ is np.ndarray and a.dtype is kind and a.flags.c_contiguous and a.flags.writeable for a in arrays)


def adam_step(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, step: int, lr: float, betas: tuple[float, float], eps: float, shrink: float) -> None:
    """$p \\leftarrow shrink \\cdot p$, then Adam's update with both averages corrected for ``step``."""
    p, g, m, v = param.reshape(-1), grad.reshape(-1), exp_avg.reshape(-1), exp_avg_sq.reshape(-1)
    scratch = np.empty(min(BLOCK, p.size), p.dtype)
    scales = betas[0], betas[1], math.sqrt(1 - betas[1] ** step), eps, lr / (1 - betas[0] ** step), shrink
    if p.size <= BLOCK:
        quietly(_block, p, g, m, v, scratch, *scales)  # where warnings are errors, one would leave half a step behind
        return
    for start in range(0, p.size, BLOCK):
        part = slice(start, start + BLOCK)
        quietly(_block, p[part], g[part], m[part], v[part], scratch[: min(BLOCK, p.size - start)], *scales)


def _block(p: Any, g: Any, m: Any, v: Any, t: Any, b1: float, b2: float, root: float, eps: float, rate: float, shrink: float) -> None:
    if shrink != 1.0:
        np.multiply(p, shrink, p)
    np.multiply(m, b1, m)
    np.multiply(g, 1 - b1, t)
    np.add(m, t, m)
    np.multiply(v, b2, v)
    np.multiply(g, g, t)
    np.multiply(t, 1 - b2, t)
    np.add(v, t, v)
    np.sqrt(v, t)
    np.divide(t, root, t)
    np.add(t, eps, t)
    np.divide(m, t, t)
    np.multiply(t, rate, t)
    np.subtract(p, t, p)
