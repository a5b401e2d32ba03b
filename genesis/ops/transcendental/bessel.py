"""Bessel's and Airy's functions on NumPy arrays, in float64.

Where a series has terms of one sign it is summed (Abramowitz and Stegun 9.6.10, .11, .13). J comes from Miller's backward
recurrence, normalised by $J_0 + 2 \\sum J_{2k} = 1$ (9.1.46), and Y from Neumann's expansions in J (9.1.88, .89); from 25
on both come from Hankel's asymptotic series (9.2.5 to 9.2.10). K from 1 on is
$\\int_0^\\infty e^{-x (\\cosh t - 1)} \\cosh \\nu t \\, dt$ by the trapezoidal rule, which converges exponentially there
(Trefethen and Weideman 2014, section 8). Airy's function is $K_{1/3}$ for large arguments, Hankel's series for large
negative ones (10.4.60), and between them a Taylor series of its differential equation about the next integer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.ops.pointwise.pieces import in_float64, piecewise, polynomial

_FAR = 25.0  # from where asymptotic series have their digits
_EULER = 0.57721566490153286


# ---- series of one sign


def _terms(order: int, count: int, weight: Any = lambda k: 1.0) -> list[float]:
    """Of $\\sum_k w_k y^k / (k! (k + order)!)$, the highest power first."""
    return [weight(k) / (math.factorial(k) * math.factorial(k + order)) for k in reversed(range(count))]


_I0, _I1 = _terms(0, 62), _terms(1, 62)
_HARMONIC = [0.0]
for _k in range(1, 40):
    _HARMONIC.append(_HARMONIC[-1] + 1 / _k)
K0 = _terms(0, 14, lambda k: _HARMONIC[k])
K1 = _terms(1, 14, lambda k: _HARMONIC[k] + _HARMONIC[k + 1] - 2 * _EULER)


def _hankel(order: int, count: int) -> list[float]:
    """$a_k(\\nu)$ of the asymptotic series, Abramowitz and Stegun 9.2.9 and 9.7.1."""
    coefficients, a = [1.0], 1.0
    for k in range(1, count):
        a *= (4.0 * order * order - (2 * k - 1) ** 2) / (8.0 * k)
        coefficients.append(a)
    return coefficients


_A = [_hankel(0, 26), _hankel(1, 26)]


# ---- I


def _i_far(order: int, x: Any) -> Any:
    """$e^{-x} I(x)$."""
    signed = [a * (-1) ** k for k, a in enumerate(_A[order])]
    return polynomial(1 / x, signed[::-1]) / np.sqrt(2 * math.pi * x)


def _i_near(order: int, x: Any) -> Any:
    y = polynomial(0.25 * x * x, (_I0, _I1)[order])
    return y * (0.5 * x) if order else y


def _exponential_i(order: int, scaled: bool) -> Any:
    @in_float64
    def kernel(x: Any) -> Any:
        a = np.abs(x)
        near = ~(a >= _FAR)
        if scaled:
            y = piecewise(a, near, lambda a: _i_near(order, a) * np.exp(-a), lambda a: _i_far(order, a))
            y = np.where(np.isinf(a), 0.0, y)
        else:
            y = piecewise(a, near, lambda a: _i_near(order, a), lambda a: _grown(_i_far(order, a), a))
        return np.copysign(y, x) if order else y

    return kernel


def _grown(y: Any, a: Any) -> Any:
    """$y e^a$, where the exponential alone may overflow."""
    half = np.exp(0.5 * a)
    return np.where(np.isinf(a), np.inf, y * half * half)


i0, i0e, i1, i1e = (_exponential_i(n, s) for n in (0, 1) for s in (False, True))


# ---- K


def _k_near(order: int, x: Any) -> Any:
    y, log = 0.25 * x * x, np.log(0.5 * x)
    if order:
        return 1 / x + log * _i_near(1, x) - 0.25 * x * polynomial(y, K1)
    return polynomial(y, K0) - (log + _EULER) * _i_near(0, x)


_NODES = np.arange(0, 4.6, 0.125)  # of the trapezoidal rule; at the last the integrand is below 1e-19


def _k_scaled(order: float, x: Any) -> Any:
    """$e^x K(x)$, x from 1. Nodes move together with $1 / \\sqrt x$, the width of the integrand."""
    width = np.sqrt(np.minimum(1.0, 4.0 / x))
    total = np.full_like(x, 0.5)
    for t in _NODES[1:]:
        u = t * width
        total += np.exp(-2 * x * np.sinh(0.5 * u) ** 2) * np.cosh(order * u)
    return total * (width * 0.125)


def _k(order: int, scaled: bool) -> Any:
    @in_float64
    def kernel(x: Any) -> Any:
        a = np.where(x > 0, x, 1.0)
        near = a < 1
        large = lambda a: _k_scaled(order, np.minimum(a, 1e300))  # noqa: E731
        if scaled:
            y = piecewise(a, near, lambda a: _k_near(order, a) * np.exp(a), large)
        else:
            y = piecewise(a, near, lambda a: _k_near(order, a), lambda a: large(a) * np.exp(-a))
        y = np.where(np.isposinf(x), 0.0, y)
        return np.where(x > 0, y, np.where(x == 0, np.inf, np.nan))

    return kernel


k0, k0e, k1, k1e = (_k(n, s) for n in (0, 1) for s in (False, True))


# ---- J and Y


def _miller(x: Any) -> tuple[Any, Any, Any, Any]:
    """J0, J1 and the sums of Neumann's expansions of Y0 and Y1, for x in (0, 25)."""
    start = 2 * int(0.5 * (float(x.max(initial=1.0, where=np.isfinite(x))) * 1.1 + 34)) + 2
    above, here = np.zeros_like(x), np.full_like(x, 1e-290)
    total, first, second = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for n in range(start, 0, -1):
        if n % 2 == 0:
            total += 2 * here
            first += here * (2.0 / n * (-1) ** (n // 2))
        elif n > 1:
            k = n // 2
            second += here * ((-1) ** k * n / (k * (k + 1.0)))
        above, here = here, here * (2 * n / x) - above
        big = np.abs(here) > 1e200
        if big.any():
            for part in (above, here, total, first, second):
                part[big] *= 1e-250
    total += here
    return here / total, above / total, first / total, second / total


def _miller_j(order: int, x: Any) -> Any:
    small = x < 1e-3
    safe = np.where(small, 1.0, x)
    y = _miller(safe)[order]
    series = x * (0.5 - x * x / 16) if order else 1 - 0.25 * x * x * (1 - x * x / 16)
    return np.where(small, series, y)


def _miller_y(order: int, x: Any) -> Any:
    small = x < 1e-3
    safe = np.where(small, 1.0, x)
    j0, j1, first, second = _miller(safe)
    log = np.log(0.5 * x) + _EULER
    if order:
        y = (2 / math.pi) * ((log - 1) * j1 - j0 / x - second)
        tiny = (2 / math.pi) * (log * 0.5 * x - 0.25 * x - 1 / x)
        return np.where(small, tiny, y)
    y = (2 / math.pi) * log * j0 - (4 / math.pi) * first
    return np.where(small, (2 / math.pi) * (log * (1 - 0.25 * x * x) + 0.25 * x * x), y)


def _wave(order: int, second: bool, x: Any) -> Any:
    """Hankel's asymptotic series, $\\sqrt{2 / \\pi x} (P \\cos \\chi - Q \\sin \\chi)$, of Y with sine and cosine."""
    a = _A[order]
    z = -1 / (x * x)
    p, q = polynomial(z, a[0::2][::-1]), polynomial(z, a[1::2][::-1]) / x
    sine, cosine = np.sin(x), np.cos(x)
    # chi = x - pi/4 or x - 3 pi/4
    s, c = (sine - cosine, sine + cosine) if not order else (-sine - cosine, sine - cosine)
    return (p * s + q * c if second else p * c - q * s) / np.sqrt(math.pi * x)


def _j(order: int) -> Any:
    @in_float64
    def kernel(x: Any) -> Any:
        a = np.abs(x)
        near = ~(a >= _FAR)
        y = piecewise(a, near, lambda a: _miller_j(order, a), lambda a: _wave(order, False, np.minimum(a, 1e300)))
        y = np.where(np.isinf(a), 0.0, y)
        return np.where(x < 0, -y, y) if order else y

    return kernel


def _y(order: int) -> Any:
    @in_float64
    def kernel(x: Any) -> Any:
        a = np.where(x > 0, x, 1.0)
        y = piecewise(
            a, ~(a >= _FAR), lambda a: _miller_y(order, a), lambda a: _wave(order, True, np.minimum(a, 1e300))
        )
        y = np.where(np.isposinf(x), 0.0, y)
        return np.where(x > 0, y, np.where(x == 0, -np.inf, np.nan))

    return kernel


j0, j1, y0, y1 = _j(0), _j(1), _y(0), _y(1)


@in_float64
def spherical_j0(x: Any) -> Any:
    a = np.where(x == 0, 1.0, x)
    y = np.where(np.isinf(a), 0.0, np.sin(np.where(np.isinf(a), 0.0, a)) / a)
    return np.where(x == 0, 1.0, y)


# ---- Airy

# Ai and its derivative at 2, 1, 0, -1, ..., to 17 digits (Abramowitz and Stegun, table 10.11, computed anew with mpmath)
_AIRY = (
    (0.03492413042327438, -0.05309038443365363),
    (0.13529241631288141, -0.1591474412967932),
    (0.3550280538878172, -0.2588194037928068),
    (0.5355608832923521, -0.01016056711664521),
    (0.22740742820168558, 0.618259020741691),
    (-0.37881429367765806, 0.3145837692165988),
    (-0.07026553294928951, -0.7906285753685813),
    (0.35076100902411433, 0.32719281855444315),
    (-0.3291451736298231, 0.3459354872813429),
    (0.18428083525050565, -0.7710081684101265),
    (-0.0527050503563862, 0.9355609381983065),
    (-0.022133721547341403, -0.9756639809263316),
    (0.04024123848644319, 0.99626504413279),
    (-0.008759589255702381, -1.0273278736645794),
)
_TOP = 2


def _airy_taylor(x: Any) -> Any:
    near = np.round(x)
    h = x - near
    table = np.array(_AIRY)[(_TOP - near).astype(int).clip(0, len(_AIRY) - 1)]
    before, a, b = np.zeros_like(x), table[..., 0], table[..., 1]
    total, power = a + b * h, h * h
    for k in range(24):
        before, a, b = a, b, (near * a + before) / ((k + 1) * (k + 2))
        total += b * power
        power = power * h
    return total


def _airy_right(x: Any) -> Any:
    zeta = 2 / 3 * x * np.sqrt(x)
    return np.sqrt(x / 3) / math.pi * _k_scaled(1 / 3, zeta) * np.exp(-zeta)


def _airy_left(x: Any) -> Any:
    """Abramowitz and Stegun 10.4.60."""
    a = -x
    zeta = 2 / 3 * a * np.sqrt(a)
    c = [1.0]
    for k in range(1, 16):
        c.append(c[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1)))
    z = -1 / (zeta * zeta)
    p, q = polynomial(z, c[0::2][::-1]), polynomial(z, c[1::2][::-1]) / zeta
    s, k = np.sin(zeta + math.pi / 4), np.cos(zeta + math.pi / 4)
    return (s * p - k * q) / (math.sqrt(math.pi) * np.sqrt(np.sqrt(a)))


@in_float64
def airy_ai(x: Any) -> Any:
    finite = np.where(np.isfinite(x), x, 0.0)
    y = piecewise(
        finite,
        finite > 2,
        lambda x: _airy_right(np.minimum(x, 1e5)),
        lambda x: piecewise(x, x >= -10.4, _airy_taylor, _airy_left),
    )
    return np.where(np.isnan(x), np.nan, np.where(np.isinf(x), 0.0, y))
