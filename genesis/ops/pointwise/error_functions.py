"""The error function and its relatives on NumPy arrays, to about one unit of the last place of float64.

What is large in a result is exact, and what is rounded is small beside it: $erf(x) = x + x R(x^2)$ below 0.84, and
above $erfc(a) = e^{-a^2 - c} e^S / a$ with $|S| < 0.15$, as in the C libraries that came from Sun's. R and S are
minimax quotients for the ranges named beside them. erfinv: the starting value of M. Giles (2010), then Newton's method.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.ops.pointwise.pieces import in_float64, piecewise, polynomial, ratio

_EDGE = 0.84
# erf(x) / x - 1, of x^2 in [0, 0.72]: to 4e-18
_P = (
    -3.3054331895559862e-06,
    -9.981829737061702e-05,
    -0.006260502482294304,
    -0.03170047418217712,
    -0.32373946192998737,
    0.12837916709551256,
)
_Q = (0.00022248156227628498, 0.005986353131545409, 0.06967858848826157, 0.40806408303672725, 1.0)
# ln(a e^(a^2) erfc(a)) + 13/16, of a - 5/4 for a in [0.84, 1.7]: to 2e-17
_MIDDLE_P = (
    0.0028797558842788068,
    0.03422395189228346,
    0.17058168473471857,
    0.4436199291415957,
    0.5901801958703343,
    0.3334889774825599,
    0.035489889392084015,
)
_MIDDLE_Q = (
    0.011996417423911854,
    0.14246404484307534,
    0.7357311352700121,
    2.0796274904900005,
    3.340862118116039,
    2.851880377355437,
    1.0,
)
# ln(a e^(a^2) erfc(a)) + 9/16, of 1/a for a in [1.7, 28]: to 2e-18
_FAR_P = (
    -15.928112987343647,
    -117.60303426680035,
    -169.5036544170758,
    -130.86248351770246,
    -65.3155855133562,
    -22.58713412213338,
    -5.298928423437709,
    -0.8996724364373224,
    -0.07898808139855508,
    -0.009864942924885328,
)
_FAR_Q = (
    4.3895202198986105, 80.92106219971119, 307.3060386583053, 493.9272410723496, 472.4279038688331, 299.5376329108292,
    131.31902640200184, 40.514419325309916, 8.006947635809983, 1.0,
)  # fmt: skip


def _more(x: Any) -> Any:
    """erf(x) - x for |x| up to 0.84."""
    return x * ratio(x * x, _P, _Q)


def _tail(a: Any, x: Any, half: float) -> Any:
    """erfc(a) for a from 0.84, where $a^2 = half x^2$: x is split, so that the rounding of its square does not matter."""
    middle = a < 1.7
    coarse = np.trunc(x * 1048576.0)
    coarse /= 1048576.0
    fine = coarse - x
    fine *= coarse + x
    fine *= half
    fine += piecewise(
        a, middle, lambda a: ratio(a - 1.25, _MIDDLE_P, _MIDDLE_Q), lambda a: ratio(1.0 / a, _FAR_P, _FAR_Q)
    )
    coarse *= coarse
    coarse *= -half
    coarse -= np.where(middle, 0.8125, 0.5625)
    y = np.exp(coarse)
    quotient = y / a
    return quotient + (quotient * np.expm1(fine) + _remainder(y, quotient, a) / a)


def _remainder(y: Any, quotient: Any, a: Any) -> Any:
    """y - quotient * a, with both factors in two parts whose products are exact (Veltkamp and Dekker)."""
    (q, q_rest), (b, b_rest) = _halves(quotient), _halves(a)
    return ((y - q * b) - q * b_rest - q_rest * b) - q_rest * b_rest


def _halves(x: Any) -> tuple[Any, Any]:
    """A number as the sum of two with half as many digits."""
    big = x * 134217729.0
    high = big - (big - x)
    return high, x - high


def _erfc_far(x: Any) -> Any:
    a = np.minimum(np.abs(x), 28.0)
    tail = _tail(a, a, 1.0)
    return np.where(x < 0, 2.0 - tail, tail)


def _erf_far(x: Any) -> Any:
    a = np.minimum(np.abs(x), 6.0)  # from there 1
    return np.copysign(1.0 - _tail(a, a, 1.0), x)


def _cdf_far(x: Any) -> Any:
    a = np.minimum(np.abs(x), 39.0)
    tail = 0.5 * _tail(a * math.sqrt(0.5), a, 0.5)
    return np.where(x < 0, tail, 1.0 - tail)


def _cdf_near(x: Any) -> Any:
    a = x * math.sqrt(0.5)
    return 0.5 + 0.5 * (a + _more(a))


def _erfc_near(x: Any) -> Any:
    return np.where(x < 0.25, 1.0 - (x + _more(x)), 0.5 - ((x - 0.5) + _more(x)))


def _erf(x: Any) -> Any:
    return piecewise(x, np.abs(x) < _EDGE, lambda x: x + _more(x), _erf_far)


def _erfc(x: Any) -> Any:
    return piecewise(x, np.abs(x) < _EDGE, _erfc_near, _erfc_far)


@in_float64
def normal_cdf(x: Any) -> Any:
    """$erfc(-x / \\sqrt 2) / 2$, with the exponential of x itself: the quotient's rounding would be felt far below
    zero.
    """
    return piecewise(x, np.abs(x) < _EDGE * math.sqrt(2), _cdf_near, _cdf_far)


_GILES_NEAR = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_GILES_FAR = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


@in_float64
def erfinv(y: Any) -> Any:
    """Two steps of Newton's method; the residual is taken from the smaller of erf and erfc."""
    w = -np.log((1 - y) * (1 + y))
    x = y * piecewise(
        w, w < 5, lambda w: polynomial(w - 2.5, _GILES_NEAR), lambda w: polynomial(np.sqrt(w) - 3.0, _GILES_FAR)
    )
    small = np.abs(y) < 0.5
    for _ in range(2):
        residual = np.where(small, _erf(x) - y, np.sign(y) * ((1 - np.abs(y)) - _erfc(np.abs(x))))
        x = x - residual * (math.sqrt(math.pi) / 2) * np.exp(x * x)
    return np.where(np.abs(y) == 1, np.copysign(np.inf, y), x)


erf, erfc = in_float64(_erf), in_float64(_erfc)
