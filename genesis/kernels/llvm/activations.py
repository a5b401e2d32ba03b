"""Activations of neural networks and their gradients on `Value`s in float64, as accurate as `functions`; some take float32."""

from __future__ import annotations

import math

from genesis.kernels.llvm.functions import (
    SLOPE,
    exp,
    exp_parts,
    expm1,
    limited,
    log1p,
    normal_cdf,
    polynomial,
    scaled,
)
from genesis.kernels.llvm.nests import EXP, LN2_HIGH, LN2_LOW, ROUND
from genesis.kernels.llvm.tables import SHORT_TAIL
from genesis.kernels.llvm.values import Value, copysign, fma, least, most, select


def relu(x: Value) -> Value:
    return select(x <= 0.0, 0.0, x)


def gate(x: Value, y: Value) -> Value:
    return select(y.equals(0.0), 0.0, x)


def sigmoid(x: Value) -> Value:
    """With $m = e^{-|x|}$ the larger of m and $x \\ge 0$, over 1 + m."""
    if x.code.short:
        return 1.0 / (exp(-x) + 1.0)
    m = exp(-abs(x))
    return select(x < 0.0, m, 1.0 + 0.0 * m) / (m + 1.0)


def silu(x: Value) -> Value:
    if x.code.short:
        y = x * sigmoid(x)
    else:
        z = limited(x)
        n, p = exp_parts(-abs(z))
        m = scaled(p + 1.0, n)
        y = select(x < 0.0, scaled(fma(z, p, z) / (m + 1.0), n), x / (m + 1.0))
    return select(x.equals(-math.inf), math.nan, y)


def silu_gradient(g: Value, x: Value) -> Value:
    s = sigmoid(x)
    return g * s * fma(_near(x, 1e3), 1.0 - s, 1.0)


def _near(x: Value, bound: float) -> Value:
    """x, or the bound that it is beyond, where the function has its limit."""
    return most(least(x, bound), -bound)


def sigmoid_gradient(g: Value, out: Value) -> Value:
    return g * (out * (1.0 - out))


def tanh_gradient(g: Value, out: Value) -> Value:
    return g * fma(-out, out, 1.0)


def log1pexp(x: Value) -> Value:
    y = log1p(exp(-abs(x)))
    return y + select(x > 0.0, x, y.code.constant(0.0))


def gelu(x: Value) -> Value:
    return select(x.equals(-math.inf), math.nan, x * normal_cdf(x))


def gelu_gradient(g: Value, x: Value) -> Value:
    if x.kind == "float":
        return _gelu_gradient_of_float32(g, x)
    y = _near(x, 40.0)
    return g * fma(y, exp(y * y * -0.5) * (1 / math.sqrt(2 * math.pi)), normal_cdf(x))


_FAR = 13.0  # beyond, the density of the normal distribution is next to nothing


def _gelu_gradient_of_float32(g: Value, x: Value) -> Value:
    """In float32: a gradient is a factor of sums, to which its last digits do not matter."""
    y = least(abs(x), _FAR)
    t = 1.0 / fma(y, SLOPE, 1.0)
    power = select(abs(x) >= _FAR, 0.0, _exp_of_float32(y * y * -0.5))
    tail = t * polynomial(t, SHORT_TAIL) * power
    below = select(x > 0.0, 1.0 - tail, tail)
    return g * fma(copysign(y, x), power * (1 / math.sqrt(2 * math.pi)), below)


def _exp_of_float32(x: Value) -> Value:
    """Of numbers from -87 to 0."""
    n = fma(x, 1 / math.log(2), ROUND)
    whole = n - ROUND
    r = fma(whole, -LN2_LOW, fma(whole, -LN2_HIGH, x))
    y = fma(polynomial(r, EXP), r * r, r + 1.0)
    return (y.bits() + (n.bits() << 23)).number()


_GELU = 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715


def gelu_tanh(x: Value) -> Value:
    y = x * sigmoid(x * fma(x * x, _GELU[1], _GELU[0]))
    return select(x.equals(-math.inf), math.nan, y)


def gelu_tanh_gradient(g: Value, x: Value) -> Value:
    x = _near(x, 40.0)
    z = x * x
    s = sigmoid(x * fma(z, _GELU[1], _GELU[0]))
    slope = x * fma(z, 3 * _GELU[1], _GELU[0])
    return g * s * fma(slope, 1.0 - s, 1.0)


def leaky_relu(x: Value, slope: Value) -> Value:
    return select(x > 0.0, x, x * slope)


def leaky_relu_gradient(g: Value, x: Value, slope: Value) -> Value:
    return select(x > 0.0, g, g * slope)


def elu(x: Value, alpha: Value) -> Value:
    return select(x > 0.0, x, alpha * expm1(x))


def elu_gradient(g: Value, x: Value, alpha: Value) -> Value:
    return select(x > 0.0, g, g * (alpha * exp(x)))


def celu(x: Value, alpha: Value) -> Value:
    return select(x > 0.0, x, alpha * expm1(x / alpha))


def celu_gradient(g: Value, x: Value, alpha: Value) -> Value:
    return select(x > 0.0, g, g * exp(x / alpha))


def _ramp(x: Value) -> Value:
    """x + 3 between 0 and 6."""
    return least(most(x + 3.0, 0.0), 6.0)


def _outside(x: Value) -> Value:
    y = x + 3.0
    return (y <= 0.0) | (y >= 6.0)


def hardsigmoid(x: Value) -> Value:
    return _ramp(x) / 6.0


def hardsigmoid_gradient(g: Value, x: Value) -> Value:
    return select(_outside(x), 0.0, g / 6.0)


def hardswish(x: Value) -> Value:
    return x * (_ramp(x) / 6.0)


def hardswish_gradient(g: Value, x: Value) -> Value:
    return g * (_ramp(x) / 6.0) + select(_outside(x), 0.0, x * (g / 6.0))
