"""Special functions of float32 arrays: formulas in float64 that have digits to spare where those for float64 results
have none.

The normal distribution function, of which GELU is made: for $y \\ge 0$ the tail is $\\Phi(-y) = e^{-y^2/2} q(y)$, where
q falls smoothly from 1/2. In $t = 1 / (1 + 0.3 y)$, $q / t$ is so close to a polynomial of degree 9 that the relative
error is 3.5e-9, a seventeenth of a unit in float32's last place. (The coefficients minimise the largest relative error
for y up to 15, by Lawson's iteration; beyond, $\\Phi(-y)$ is 0 in float32.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.core.call.kernels import attach
from genesis.kernels.cpu.pointwise import is_float32
from genesis.ops.pointwise import gamma_functions
from genesis.ops.pointwise.pieces import corrected, in_float64, polynomial

_FARTHEST = 40.0
_SLOPE = 0.3
_TAIL = (
    -0.02062865099785685,
    0.11246474058843371,
    -0.22828467295686886,
    0.19188315184791996,
    -0.07950906326237299,
    0.09620488043097715,
    0.07837223237930949,
    0.11023934612266424,
    0.11957131742812684,
    0.11968671668691083,
)


@attach("normal_cdf", np.ndarray, when=is_float32)
@in_float64
def normal_cdf(x: Any) -> Any:
    """The tail, or 1 less the tail: (x >= 0) - copysign(tail, x) needs no choice, which for random signs takes longer
    than all else.
    """
    y = np.abs(x)
    np.minimum(y, _FARTHEST, out=y)
    t = y * _SLOPE
    t += 1.0
    np.divide(1.0, t, out=t)
    tail = polynomial(t, _TAIL)
    tail *= t
    y *= y
    y *= -0.5
    tail *= np.exp(y, out=y)
    np.copysign(tail, x, out=tail)
    np.copysign(0.5, x, out=y)
    y += 0.5
    y -= tail
    return y


@attach("logit", np.ndarray, when=is_float32)
@in_float64
def logit(x: Any) -> Any:
    y = np.subtract(1.0, x)
    np.divide(x, y, out=y)
    return np.log(y, out=y)


_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)  # of 1 / x^2
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _right(x: Any) -> Any:
    """ln gamma for positive x, by Stirling's series at x + 4, which is right to 1e-11 there, and $x (x + 1) (x + 2) (x
    + 3)$.
    """
    y = x + 4.0
    product = x + 3.0
    product *= x
    product *= product + 2.0
    inverse = 1.0 / y
    rest = polynomial(inverse * inverse, _STIRLING)
    rest *= inverse
    rest += _HALF_LOG_TWO_PI - 0.5
    rest -= np.log(product, out=product)
    np.log(y, out=inverse)
    inverse -= 1.0
    y -= 0.5
    y *= inverse
    y += rest
    return y


def _right_with_zeros(x: Any) -> Any:
    """The same, and about the zeros at 1 and 2 the quotient that is exact there."""
    near = np.abs(x - 1.5)
    near -= 0.5
    return corrected(_right(x), x, np.abs(near, out=near) < 0.03, gamma_functions.between)


@attach("lgamma", np.ndarray, when=is_float32)
@in_float64
def lgamma(x: Any) -> Any:
    values = corrected(_right_with_zeros(x), x, x < 0, gamma_functions.left)
    return gamma_functions.with_poles(x, values)
