"""Hurwitz' zeta function, incomplete gamma functions and functions of the normal distribution, in float64."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.ops.pointwise import error_functions, gamma_functions
from genesis.ops.pointwise.gamma_functions import BERNOULLI, lgamma
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
        for j, bernoulli in enumerate(BERNOULLI, 1):
            total += bernoulli / math.factorial(2 * j) * factor * power
            factor = factor * (s + 2 * j - 1) * (s + 2 * j)
            power = power / (y * y)
        total = np.where(np.isposinf(s), np.where(q > 1, 0.0, np.where(q == 1, 1.0, np.inf)), total)
        pole = (q <= 0) & (q == np.floor(q))
        total = np.where(np.isposinf(q), 0.0, np.where(s == 1, np.inf, total))
        total = np.where(np.isnan(s) | np.isnan(q), np.nan, total)
        total = np.where(pole, np.inf, np.where((q < 0) & (s != np.floor(s)), np.nan, total))
        out[...] = np.where(s < 1, np.nan, total)
    return out


# ---- incomplete gamma functions (regions after Gautschi 1979, "A computational procedure for incomplete gamma
# functions", with Temme's expansion for large parameters, DLMF 8.12)

_STIRLING = gamma_functions._STIRLING
_ATANH = [1 / k for k in range(39, 1, -2)]  # of (atanh(r) / r - 1) / r^2, by powers of r^2
_LARGE = 1000.0  # from here on x near a is Temme's
_NEAR = 0.3


def _loss(a: Any, x: Any) -> Any:
    """$m - \\ln(1 + m)$ for $m = (x - a) / a$: near 0 by the series of $2 \\operatorname{atanh}(r) = \\ln(1 + m)$."""
    m = (x - a) / a
    near = (m > -0.5) & (m < 1)
    safe = np.where(near, m, 0.0)
    r = safe / (2 + safe)
    small = r * (safe - 2 * r * r * polynomial(r * r, _ATANH))
    return np.where(near, small, m - np.log(x / a))


def _factorial(a: Any) -> Any:
    """$\\Gamma(a + 1)$ for a in [0, 12): shifted down to [1, 2), where its logarithm is small."""
    rest = a - np.floor(a)
    product = np.exp(lgamma(1 + rest))
    for k in range(1, 12):
        product = np.where(rest + k <= a, product * (rest + k), product)
    return product


def _prefix(a: Any, x: Any) -> Any:
    """$x^a e^{-x} / \\Gamma(a + 1)$, without the cancellation that logarithms of large a would have."""
    small = a < 12
    low, high = np.where(small, a, 1.0), np.where(small, 12.0, a)
    series = polynomial(1 / (high * high), _STIRLING) / high
    far = np.exp(-high * _loss(high, x) - series) / np.sqrt(2 * math.pi * high)
    x = np.minimum(x, 1e4)  # zero beyond
    half = np.exp(-0.5 * x)  # twice, since the power may be large where all of it is too small
    return np.where(small, np.power(x, low) * half / _factorial(low) * half, far)


def _by_series(a: Any, x: Any) -> Any:
    """P (Abramowitz and Stegun 6.5.29)."""
    term, total, n = np.ones_like(x), np.ones_like(x), 0
    while n < 20_000:
        n += 1
        term = term * (x / (a + n))
        total += term
        if not (term > 1e-17 * total).any():
            break
    return total * _prefix(a, x)


def _by_fraction(a: Any, x: Any) -> Any:
    """Q: the continued fraction of DLMF 8.9.2, for x from max(a, 1.1). From behind, where errors shrink; the number of
    terms is that after which more change nothing.
    """
    n = int(110 / x.min() + 3.2 * math.sqrt(min(x.max(), 1300.0)) + 20)
    fraction = x - a + (2 * n + 1)
    for k in range(n, 0, -1):
        fraction = x - a + (2 * k - 1) - k * (k - a) / fraction
    return a * _prefix(a, x) / fraction


def _log_factorial(a: Any) -> Any:
    """$\\ln \\Gamma(1 + a)$ to its last places as a goes to 0 (6.1.33)."""
    small = a < 0.5
    safe = np.where(small, a, 0.0)
    k = np.arange(28.0, 1.0, -1.0)
    terms = [*((-1) ** k / k * zeta(k, np.full_like(k, 2.0))), 1 - np.euler_gamma, 0.0]
    return np.where(small, polynomial(safe, terms) - np.log1p(safe), lgamma(1 + a))


def _by_small(a: Any, x: Any) -> Any:
    """Q for small a and x: what $x^a / \\Gamma(1 + a)$ lacks of 1, and the rest of the alternating series of P."""
    log = a * np.log(x) - _log_factorial(a)
    term, total = np.ones_like(x), np.zeros_like(x)
    for n in range(1, 25):
        term = term * (-x / n)
        total += term / (a + n)
    return -np.expm1(log) - a * np.exp(log) * total


@functools.cache
def _temme() -> list[list[float]]:
    """Coefficients of $C_k(\\eta)$, k = 0..4, highest power first (DLMF 8.12.11 to 8.12.14)."""
    from fractions import Fraction

    terms, orders = 24, 5
    alpha = [Fraction(0), Fraction(1)]
    for n in range(2, terms + 2 * orders + 3):
        crossed = sum((n + 1 - j) * alpha[j] * alpha[n + 1 - j] for j in range(2, n))
        alpha.append((alpha[n - 1] - crossed) / (n + 1))
    first = [Fraction(-1, 3), *((n + 2) * alpha[n + 2] for n in range(1, terms + 2 * orders))]
    rows, stirling = (
        [first],
        [Fraction(1), Fraction(1, 12), Fraction(1, 288), Fraction(-139, 51840), Fraction(-571, 2488320)],
    )
    for k in range(1, orders):
        above = rows[-1]
        rows.append([(-1) ** k * stirling[k] * first[n] + (n + 2) * above[n + 2] for n in range(len(above) - 2)])
    return [[float(v) for v in row[terms::-1]] for row in rows]


def _by_temme(a: Any, x: Any, upper: bool) -> Any:
    """Both, uniformly in x near a large a (DLMF 8.12.3, 8.12.4 and 8.12.7)."""
    loss = _loss(a, x)
    eta = np.copysign(np.sqrt(2 * loss), x - a)
    rest = np.zeros_like(x)
    for row in reversed(_temme()):
        rest = rest / a + polynomial(eta, row)
    rest = np.exp(-a * loss) / np.sqrt(2 * math.pi * a) * rest
    sign = 1.0 if upper else -1.0
    return 0.5 * error_functions.erfc(sign * eta * np.sqrt(0.5 * a)) + sign * rest


def _regions(a: Any, x: Any, upper: bool) -> Any:
    """Each place by what converges there: the smaller of P and Q first, and the other one from it."""
    out = np.empty_like(x)
    temme = (a >= _LARGE) & (np.abs(x - a) < _NEAR * a)
    small = _is_small(a, x)
    fraction = ~temme & ~small & (x > 1.1) & (x >= a)
    series = ~temme & ~fraction & ~(small & upper)
    if temme.any():
        out[temme] = _by_temme(a[temme], x[temme], upper)
    small &= upper & ~temme
    for where, formula, own in ((series, _by_series, False), (fraction, _by_fraction, True), (small, _by_small, True)):
        if where.any():
            value = formula(a[where], x[where])
            out[where] = value if own == upper else 1 - value
    return np.minimum(out, 1.0)


def _is_small(a: Any, x: Any) -> Any:
    """Where x is up to 1.1 and Q is nearer to 0 than P."""
    edge = np.where(x < 0.5, -0.4 / np.log(np.minimum(x, 0.5)), 1.1 * x)
    return (x <= 1.1) & (a <= edge)


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
            out[inside] = _regions(a[inside], x[inside], upper)
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
    result = np.where(np.abs(x) < error_functions._EDGE, middle, np.where(x < 0, 2 * square - tail, tail))
    return np.where(np.isnan(x), np.nan, result)


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
    result = np.where(tail > 0.05, middle, far)
    result = np.where(p == 0, -np.inf, np.where(p == 1, np.inf, result))
    return np.where((p < 0) | (p > 1) | np.isnan(p), np.nan, result)
