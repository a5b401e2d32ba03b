"""The gamma function's logarithm and its derivatives on NumPy arrays, in float64.

lgamma: $(x - 1)(x - 2) R(x)$ between 3/4 and 3, so that its zeros at 1 and 2 are exact; Stirling's series from 12;
    between them
the recurrence. Below zero it has two zeros in each unit interval up to -18, from which it is reckoned there: |gamma| is
1 at a zero.
digamma: the same about its positive zero, else the recurrence and the asymptotic series (Abramowitz and Stegun 6.3.18).
polygamma: the Hurwitz zeta function. All R are minimax quotients, to 1e-17.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.ops.pointwise.pieces import in_float64, piecewise, polynomial, ratio

# R(x) = ln gamma(x) / ((x - 1)(x - 2)) is c + s T(s), with s = x - 1 for x in [0.75, 1.25]
_ONE = 0.5772156649015329
_ONE_P = (
    -3.109648393199119e-05,
    -0.014922905552565745,
    -0.14609286229147295,
    -0.45715370172975206,
    -0.5693273406423814,
    -0.24525136852258037,
)
_ONE_Q = (0.02808392824944201, 0.3719393552318688, 1.6551377701406254, 3.2674361285593227, 2.9551786433338076, 1.0)
# R(x) - 11/32, of x - 1.25 for x in [1.25, 3]
_TWO_P = (
    -1.065989326497495e-07,
    -0.00022098443117658448,
    -0.005120326299765381,
    -0.03279912625111254,
    -0.06134118862364237,
    0.0527944400659143,
    0.2519339348615465,
    0.18036646091633685,
)
_TWO_Q = (
    0.0006794993307963147,
    0.021398487886756988,
    0.21901165578169052,
    0.9999386882551472,
    2.244683416449477,
    2.4200304041050553,
    1.0,
)
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)  # of 1 / x^2
# Zeros of ln |gamma| below -2, less the nearest integer, each as two numbers: on [-2.5, -2], [-3, -2.5], [-3.5, -3],
# ...
_ZEROS = np.array((
    (-0.45702473822080064, 1.843554041574456e-17), (0.2523173532725874, -2.04688991691325e-17),
    (-0.14358088834998006, 3.862806401714152e-18), (0.04470571514140207, 8.223977942582053e-19),
    (-0.03936183974053688, 3.2731379225891636e-18), (0.008455359439952277, 8.231751957350036e-19),
    (-0.008218168322593521, -5.582665915956405e-19), (0.0013925199191243706, -7.090441230646531e-20),
    (-0.0013852944531550972, -2.6295731811446077e-20), (0.0001984921093623021, 6.263909978492175e-21),
    (-0.00019833340732475162, 1.1820573401560963e-20), (2.4802904179335845e-05, 3.15397713595963e-22),
    (-2.48002706819597e-05, 1.0083974251164085e-21), (2.7557490225318057e-06, -6.500300408654724e-23),
    (-2.7557148226503463e-06, -5.624459871432079e-23), (2.7557337083353163e-07, 1.4502658434955713e-23),
    (-2.755730136466002e-07, -2.4472526783403563e-23), (2.5052109918476226e-08, -6.807394864189793e-25),
    (-2.5052106852407546e-08, 1.2924868620853802e-24), (2.087675709796081e-09, -8.658839215884982e-26),
    (-2.087675687777539e-09, -4.849684877236172e-26), (1.6059043843534355e-10, 6.465141936497467e-27),
    (-1.6059043830108875e-10, 7.046449983196074e-27), (1.147074559808161e-11, -7.830340218001236e-28),
    (-1.147074559737784e-11, 4.194056116105366e-28), (7.647163731835846e-13, -3.8035184915187745e-29),
    (-7.647163731803788e-13, 4.886154187641447e-29), (4.779477332388026e-14, -9.319923331229129e-31),
    (-4.779477332386745e-14, -1.811833433216651e-30), (2.8114572543455435e-15, -8.713180440266469e-32),
    (-2.811457254345498e-15, -2.2878206410005478e-32), (1.5619206968586233e-16, 9.139764076937634e-33),
))  # fmt: skip
_LOWEST = -18.0  # below, no float64 is near a zero
_LONG = np.longdouble  # where NumPy has no longer format than float64, errors about the zeros are up to 6 units
_PI = 4 * np.arctan(_LONG(1))


def _series(x: Any) -> Any:
    """What Stirling's formula leaves out."""
    return polynomial(1 / (x * x), _STIRLING) / x


def between(x: Any) -> Any:
    """ln gamma for x in [0.75, 3)."""
    low = x < 1.25
    r = piecewise(
        x, low, lambda x: (x - 1) * ratio(x - 1, _ONE_P, _ONE_Q), lambda x: ratio(x - 1.25, _TWO_P, _TWO_Q)
    ).astype(_LONG)
    r += np.where(low, _ONE, 0.34375)
    return (r * (x - 1) * (x - 2) + 0.0).astype(np.float64)  # no -0


def _shifted_down(x: Any) -> Any:
    """ln gamma for x in [3, 12), by that of x less an integer."""
    product = np.ones_like(x)
    for _ in range(9):
        high = x >= 3
        x = np.where(high, x - 1, x)
        product = np.where(high, product * x, product)
    return between(x) + np.log(product)


def _stirling(x: Any) -> Any:
    return (x - 0.5) * (np.log(x) - 1) + (_series(x) + (0.5 * math.log(2 * math.pi) - 0.5))


def _right(x: Any) -> Any:
    """ln gamma for x from 0.75."""
    return piecewise(x, x < 3, between, lambda x: piecewise(x, x < 12, _shifted_down, _stirling))


def _about_zero(x: Any) -> Any:
    """ln |gamma| for x in (-2, 0.75), by that of x plus an integer."""
    product = np.ones_like(x, _LONG)
    for _ in range(3):
        low = x < 0.75
        product = np.where(low, product * x, product)
        x = np.where(low, x + 1, x)
    return (between(x) - np.log(np.abs(product))).astype(np.float64)


def _from_zeros(x: Any) -> Any:
    """ln |gamma| for x in [-18, -2], the difference to its value 0 at the zero $x_0$ next to it, in the longest format
    that there is.

    By the reflection formula that is $\\ln |\\sin \\pi x_0 / \\sin \\pi x| + \\ln gamma(1 - x_0) - \\ln gamma(1 - x)$.
    Both parts are written with $d = x - x_0$, which is exact.
    """
    near = np.where(x > -2.68, -2.0, np.round(x))
    u = (x - near).astype(_LONG)
    which = (-2 * near).astype(np.int64) - np.where(u < 0, 4, 5)
    high, low = _ZEROS[which].T
    d = (u - high) - low
    sine = np.sin(_PI * u)
    grown = -2 * np.sin(_PI / 2 * (1 - np.abs(u + high + low))) * np.sin(_PI / 2 * d) / sine
    reflected = np.where(
        grown > -0.5, np.log1p(np.maximum(grown, -0.5)), np.log(np.abs(np.sin(_PI * (high + low.astype(_LONG))) / sine))
    )
    powers = _about_zeros()[:, which]
    total = powers[0]
    for c in powers[1:]:
        total = total * d + c
    return (reflected + total * d).astype(np.float64)


@functools.cache
def _about_zeros() -> Any:
    """Taylor coefficients of $\\ln gamma(y_0) - \\ln gamma(y_0 - d)$ for $y_0 = 1 - x_0$ and each zero, the highest
    power first.
    """
    numbers = np.arange(4, 4 + len(_ZEROS))
    y = 1 + (numbers + 1) // 2 - _ZEROS[:, 0].astype(_LONG) - _ZEROS[:, 1]
    higher = [polygamma(y.astype(np.float64), k - 1) * ((-1) ** (k + 1) / math.factorial(k)) for k in range(20, 1, -1)]
    return np.array([*higher, _digamma_right(y)])


def _reflected(x: Any) -> Any:
    sine = np.abs(np.sin(_PI * (x - np.round(x))))
    return (np.log(_PI / sine) - _stirling(1 - x.astype(_LONG))).astype(np.float64)


def left(x: Any) -> Any:
    """ln |gamma| for x below 0.75."""
    return piecewise(x, x > -2, _about_zero, lambda x: piecewise(x, x >= _LOWEST, _from_zeros, _reflected))


def with_poles(x: Any, values: Any) -> Any:
    """inf at integers that are not positive, and at both ends."""
    if not (x.min(initial=1.0) > 0 and x.max(initial=1.0) < math.inf):  # nan is neither
        values[((x <= 0) & (x == np.round(x))) | np.isinf(x)] = np.inf
    return values


@in_float64
def lgamma(x: Any) -> Any:
    return with_poles(x, piecewise(x, ~(x < 0.75), _right, left))


def _digamma_right(z: Any) -> Any:
    """digamma of numbers that are not negative."""
    shift = np.zeros_like(z)
    for _ in range(10):
        small = z < 10
        shift = np.where(small, shift - 1 / z, shift)
        z = np.where(small, z + 1, z)
    y = 1 / (z * z)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
    return np.log(z) - 0.5 / z - series + shift


def digamma(x: Any) -> Any:
    work = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        reflect = work < 0
        value = _digamma_right(np.where(reflect, 1 - work, work))
        value = np.where(reflect, value - math.pi / np.tan(math.pi * (work - np.round(work))), value)
        value = np.where(reflect & (work == np.round(work)), np.nan, value)
        value = np.where(work == 0, np.copysign(np.inf, -work), value)
    return value.astype(np.asarray(x).dtype)


# B2, B4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _hurwitz(s: int, x: Any) -> Any:
    """$\\zeta(s, x) = \\sum_{k \\ge 0} (x + k)^{-s}$ for $x \\ge 0$, by the Euler-Maclaurin formula (Johansson 2015,
    section 2).
    """
    steps = 19 + s
    total = np.zeros_like(x)
    for k in range(steps):
        total += (x + k) ** -s
    q = x + steps
    total += q ** (1 - s) / (s - 1) + 0.5 * q**-s
    factor, power = float(s), q ** (-s - 1)
    for j, bernoulli in enumerate(BERNOULLI, 1):
        total += bernoulli * factor / math.factorial(2 * j) * power
        factor *= (s + 2 * j - 1) * (s + 2 * j)
        power = power / (q * q)
    return total


def polygamma(x: Any, n: int) -> Any:
    """$(-1)^{n+1} n! \\zeta(n + 1, x)$; the terms of a negative x are those of three arguments that are not negative."""
    work = np.asarray(x, dtype=np.float64)
    s, below = n + 1, np.floor(work)
    with np.errstate(all="ignore"):
        negative = work < 0
        total = _hurwitz(s, np.where(negative, work - below, work))
        if negative.any():
            above = np.where(work == below, 1.0, below + 1 - work)
            between = _hurwitz(s, above) - _hurwitz(s, 1 - work)  # from x up to zero, with the signs turned
            total += np.where(negative, (-1) ** s * between, 0.0)
        value = (-1) ** (n + 1) * math.factorial(n) * total
        value = np.where(np.isposinf(work), 0.0, np.where(np.isneginf(work), np.nan, value))
    return value.astype(np.asarray(x).dtype)
