"""Orthogonal polynomials on NumPy arrays, by their recurrences of three terms (Abramowitz and Stegun 22.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_MOST = 100_000  # degrees; above, and for nan, the value is nan
Step = Callable[[Any, Any, Any, int], Any]  # p_{k+1} of x, p_k, p_{k-1} and k


def _polynomial(first: Callable[[Any], Any], step: Step) -> Callable[[Any, Any], Any]:
    def kernel(x: Any, n: Any) -> Any:
        x, n = np.broadcast_arrays(np.asarray(x), np.asarray(n))
        kind = np.result_type(x, n)
        wide, degree = x.astype(np.float64), np.trunc(n.astype(np.float64))
        before, here = np.ones_like(wide), first(wide)
        out = np.where(degree < 0, 0.0, np.where(degree == 0, before, here))
        reached = degree <= _MOST  # not of nan
        out = np.where(reached, out, np.nan)
        for k in range(1, int(np.max(degree, initial=0.0, where=reached))):
            before, here = here, step(wide, here, before, k)
            out = np.where(degree == k + 1, here, out)
        return out.astype(kind)

    return kernel


def _shifted(kernel: Any) -> Any:
    return lambda x, n: kernel(2 * np.asarray(x) - 1, n)


def _chebyshev(x: Any, p: Any, q: Any, k: int) -> Any:
    return 2 * x * p - q


chebyshev_t = _polynomial(lambda x: x, _chebyshev)
chebyshev_u = _polynomial(lambda x: 2 * x, _chebyshev)
chebyshev_v = _polynomial(lambda x: 2 * x - 1, _chebyshev)
chebyshev_w = _polynomial(lambda x: 2 * x + 1, _chebyshev)
shifted_t, shifted_u, shifted_v, shifted_w = map(_shifted, (chebyshev_t, chebyshev_u, chebyshev_v, chebyshev_w))
hermite_h = _polynomial(lambda x: 2 * x, lambda x, p, q, k: 2 * (x * p - k * q))
hermite_he = _polynomial(lambda x: x, lambda x, p, q, k: x * p - k * q)
laguerre_l = _polynomial(lambda x: 1 - x, lambda x, p, q, k: ((2 * k + 1 - x) * p - k * q) / (k + 1))
legendre_p = _polynomial(lambda x: x, lambda x, p, q, k: ((2 * k + 1) * x * p - k * q) / (k + 1))
