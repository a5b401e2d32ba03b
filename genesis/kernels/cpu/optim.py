"""One step of Adam on NumPy arrays, in place, in blocks that stay in the cache.

The composition in `genesis.ops.learning.update` goes over each array sixteen times; in blocks of 16,384 elements all passes but
the first find their data in the level-2 cache, and small parameters save the cost of sixteen calls through tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.kernels import attach

BLOCK = 16_384


def _fits(param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, *_: Any) -> bool:
    """One floating dtype and shape, contiguous, writable."""
    kind = param.dtype
    if (
        kind not in (np.float32, np.float64)
        or max_exp_avg_sq is not None
        or grad.dtype is not kind
        or grad.shape != param.shape
    ):
        return False
    return all(
        [
            a.dtype is kind and a.shape == param.shape and a.flags.c_contiguous and a.flags.writeable
            for a in (param, exp_avg, exp_avg_sq)
        ]
    )


@attach("adam_step", np.ndarray, when=_fits)
def adam_step(
    param: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    _: None,
    beta1: float,
    beta2: float,
    root: float,
    eps: float,
    rate: float,
    shrink: float | None,
) -> None:
    """The kernel of `genesis.ops.learning.update.adam_step`."""
    p, g, m, v = param.reshape(-1), grad.reshape(-1), exp_avg.reshape(-1), exp_avg_sq.reshape(-1)
    scratch = np.empty(min(BLOCK, p.size), p.dtype)
    scales = beta1, beta2, root, eps, rate, 1.0 if shrink is None else shrink
    if p.size <= BLOCK:
        _block(p, g, m, v, scratch, *scales)
        return
    for start in range(0, p.size, BLOCK):
        part = slice(start, start + BLOCK)
        _block(p[part], g[part], m[part], v[part], scratch[: min(BLOCK, p.size - start)], *scales)


def _block(
    p: Any, g: Any, m: Any, v: Any, t: Any, b1: float, b2: float, root: float, eps: float, rate: float, shrink: float
) -> None:
    if shrink != 1.0:
        np.multiply(p, shrink, p)
    np.subtract(g, m, t)
    np.multiply(t, 1 - b1, t)
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
    np.add(p, t, p)
