"""Hurwitz' zeta function, incomplete gamma functions and functions of the normal distribution, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.ops.pointwise import error_functions, gamma_functions
from genesis.ops.pointwise.gamma_functions import _BERNOULLI, lgamma
from genesis.ops.pointwise.pieces import in_float64, piecewise, polynomial, ratio

_STEPS = 12


def zeta(s: Any, q: Any) -> Any:
    """$\\sum_{k \\ge 0} (k + q)^{-s}$ by the Euler-Maclaurin formula (Johansson 2015, section 2); nan for s < 1, and for
    negative q where s is no integer, inf at the poles.
    """
    with np.errstate(all="ignore"):
        out = np.empty_like(np.add(s, q))  # laid out as the operands are
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    with np.errstate(all="ignore"):
        total, x = np.zeros(q.shape), q.copy()
        below = int(np.clip(np.ceil(-np.min(q, initial=0.0, where=np.isfinite(q))), 0, 10_000))
        for _ in range(below):  # up to numbers that are not negative
            low = x < 0
            total += np.where(low, np.where(low, x, 1.0) ** -s, 0.0)
            x = np.where(low, x + 1, x)
        for k in range(_STEPS):
            total += (x + k) ** -s
        y = x + _STEPS
        total += y ** (1 - s) / (s - 1) + 0.5 * y**-s
        factor, power = s.copy(), y ** (-s - 1)
        for j, bernoulli in enumerate(_BERNOULLI, 1):
            total += bernoulli / math.factorial(2 * j) * factor * power
            factor = factor * (s + 2 * j - 1) * (s + 2 * j)
            power = power / (y * y)
        pole = (q <= 0) & (q == np.floor(q))
        total = np.where(np.isposinf(q), 0.0, np.where(s == 1, np.inf, total))
        total = np.where(pole, np.inf, np.where((q < 0) & (s != np.floor(s)), np.nan, total))
        out[...] = np.where(s < 1, np.nan, total)
    return out


# ---- incomplete gamma functions

_STIRLING = gamma_functions._STIRLING
_LOG = [(-1) ** k / k for k in range(24, 1, -1)] + [0.0, 0.0]  # of m - ln(1 + m)


def _prefix(a: Any, x: Any) -> Any:
    """$x^a e^{-x} / \\Gamma(a + 1)$, without the cancellation that logarithms of large a would have."""
    small = a < 12
    low, high = np.where(small, a, 1.0), np.where(small, 12.0, a)
    m = (x - high) / high
    loss = np.where(np.abs(m) < 0.1, polynomial(np.clip(m, -0.1, 0.1), _LOG), m - np.log1p(m))
    series = polynomial(1 / (high * high), _STIRLING) / high
    far = np.exp(-high * loss - series) / np.sqrt(2 * math.pi * high)
    near = np.exp(low * np.log(x) - x - lgamma(low + 1))
    return np.where(small, near, far)


def _by_series(a: Any, x: Any) -> Any:
    """P, for x below a + 1 (Abramowitz and Stegun 6.5.29)."""
    term, total, n = np.ones_like(x), np.ones_like(x), 0
    while n < 20_000:
        n += 1
        term = term * (x / (a + n))
        total += term
        if not (term > 1e-17 * total).any():
            break
    return total * _prefix(a, x)


def _by_fraction(a: Any, x: Any) -> Any:
    """Q, for x from a + 1: a continued fraction (6.5.31) by Lentz' method."""
    b = x + 1 - a
    c, d = np.full_like(x, 1e300), 1 / b
    h, n = d.copy(), 0
    while n < 20_000:
        n += 1
        step = -n * (n - a)
        b = b + 2
        d = 1 / (step * d + b)
        c = b + step / c
        factor = c * d
        h = h * factor
        if not (np.abs(factor - 1) > 5e-16).any():  # two units of the last place: less may never come
            break
    return h * a * _prefix(a, x)


def _gamma(upper: bool) -> Any:
    def kernel(a: Any, x: Any) -> Any:
        a, x = np.broadcast_arrays(np.asarray(a), np.asarray(x))
        kind = np.result_type(a, x)
        a, x = np.array(a, np.float64), np.array(x, np.float64)
        inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
        with np.errstate(all="ignore"):
            out = np.where(
                (a < 0) | (x < 0) | np.isnan(a + x) | ((a == 0) & (x == 0)), np.nan, np.where(upper, 0.0, 1.0)
            )
            out = np.where((a > 0) & (x == 0), float(upper), out)
            out = np.where(np.isposinf(a) & (x >= 0), np.where(np.isinf(x), np.nan, float(upper)), out)
            series, fraction = inside & (x < a + 1), inside & (x >= a + 1)
            for where, formula, own in ((series, _by_series, False), (fraction, _by_fraction, True)):
                if where.any():
                    value = formula(a[where], x[where])
                    out[where] = value if own == upper else 1 - value
        return out.astype(kind)

    return kernel


gammainc, gammaincc = _gamma(False), _gamma(True)

# ---- the normal distribution


def _scaled_tail(a: Any) -> Any:
    """$e^{a^2} erfc(a)$ for a from 0.84."""
    e = error_functions
    near = lambda a: np.exp(ratio(a - 1.25, e._MIDDLE_P, e._MIDDLE_Q) - 0.8125) / a  # noqa: E731
    far = lambda a: np.exp(ratio(1 / a, e._FAR_P, e._FAR_Q) - 0.5625) / a  # noqa: E731
    return piecewise(a, a < 1.7, near, far)


def _erfcx(x: Any) -> Any:
    a = np.maximum(np.abs(x), error_functions._EDGE)
    tail = _scaled_tail(a)
    square = np.exp(x * x)
    middle = square * error_functions.erfc(np.clip(x, -1, 1))
    found = np.where(np.abs(x) < error_functions._EDGE, middle, np.where(x < 0, 2 * square - tail, tail))
    return np.where(np.isnan(x), np.nan, found)


erfcx = in_float64(_erfcx)


@in_float64
def log_ndtr(x: Any) -> Any:
    low = x < -1
    far = np.log(0.5 * _erfcx(np.where(low, -x, 1.0) * math.sqrt(0.5))) - 0.5 * x * x
    near = np.log1p(-0.5 * error_functions.erfc(np.where(low, 1.0, x) * math.sqrt(0.5)))
    return np.where(low, np.where(np.isneginf(x), -np.inf, far), near)


@in_float64
def ndtri(p: Any) -> Any:
    """In the middle by erfinv; in the tails Newton's steps for $\\ln \\Phi(x) = \\ln p$, which is nearly a parabola."""
    tail = np.where(p > 0.5, 1 - p, p)
    middle = math.sqrt(2) * error_functions.erfinv(np.clip(2 * p - 1, -0.9, 0.9))
    safe = np.clip(tail, 1e-320, 0.1)
    log = np.log(safe)
    x = -np.sqrt(np.maximum(-2 * log - np.log(4 * math.pi * -log), 1.0))
    for _ in range(6):
        slope = math.sqrt(2 / math.pi) / _erfcx(-x * math.sqrt(0.5))
        x = x - (log_ndtr(x) - log) / slope
    far = np.where(p > 0.5, -x, x)
    found = np.where(tail > 0.05, middle, far)
    found = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, found))
    return np.where((p < 0) | (p > 1) | np.isnan(p), np.nan, found)
