"""The elementwise ops of activation functions: rectifiers, the logistic function and what is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.kinds import binary, case, unary
from genesis.ops.pointwise.choice import gate
from genesis.ops.pointwise.elementwise import square, tanh
from genesis.ops.pointwise.pieces import in_blocks, in_float64, ratio


def _relu(x: Any, out: Any = None) -> Any:
    return np.maximum(x, 0) if out is None else np.maximum(x, 0, out=out)


def _sigmoid(x: Any) -> Any:
    """NumPy computes complex ones by itself."""
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else _stable_sigmoid(x)


@in_float64
def _stable_sigmoid(x: Any) -> Any:
    """$1 / (1 + e^{-x})$ from zero on, below $e^x / (1 + e^x)$: the exponential is at most 1."""
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


sigmoid_gradient = binary(
    "sigmoid_gradient",
    lambda x, y: x * (y * (1 - y)),
    "$x y (1 - y)$; the gradient of `sigmoid`, whose value is y.",
    "[1., 1.], [0.5, 0.] -> [0.2500, 0.0000]",
    vjp=(lambda g, other: sigmoid_gradient(g, other), lambda g, input, other: g * input * (1 - 2 * other)),
    dtypes="fc",
    torch_name="",
    inplace=False,
    path="ops.pointwise.curves.sigmoid_gradient",
)
relu = unary("relu", _relu, "Rectifier, $\\max(x, 0)$, with slope 0 at 0.", "[-1., 2.] -> [0., 2.]",
    vjp=lambda g, out: gate(g, out), dtypes="fi", halves="exact")  # fmt: skip
sigmoid = unary("sigmoid", _sigmoid, "Logistic function, $1 / (1 + e^{-x})$.", "[0., 1.] -> [0.5000, 0.7311]",
    vjp=lambda g, out: sigmoid_gradient(g, out), result="float")  # fmt: skip


@in_float64
def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


log1pexp = unary("log1pexp", _softplus, "Stable $\\ln(1 + e^x)$.", "[0., 1.] -> [0.6931, 1.3133]",
    vjp=lambda g, input: g * sigmoid(input), dtypes="f", torch_name="", path="ops.pointwise.curves.log1pexp")  # fmt: skip

# Where the logarithm ends its slope does not: a loss of a probability that is 0 still says which way to go.
bounded_log = unary("bounded_log", lambda x: np.maximum(np.log(x), -100), "$\\max(\\ln x, -100)$, with slope $1 / \\max(x, 10^{-12})$.",
    "[0., 1.] -> [-100.,    0.]", vjp=lambda g, input: g / input.clamp(min=1e-12), dtypes="f", torch_name="",
    path="ops.pointwise.curves.bounded_log", inplace=False, samples=lambda t: [case(t.positive(2, 3))])  # fmt: skip

bounded_log1p = unary("bounded_log1p", lambda x: np.maximum(np.log1p(x), -100), "$\\max(\\ln(1 + x), -100)$, with slope $1 / \\max(1 + x, 10^{-12})$.",
    "[-1., 0.] -> [-100.,    0.]", vjp=lambda g, input: g / (input + 1).clamp(min=1e-12), dtypes="f", torch_name="",
    path="ops.pointwise.curves.bounded_log1p", inplace=False, samples=lambda t: [case(t.positive(2, 3))])  # fmt: skip


# (x - tanh x) / x^3, of x^2 in [0, 2.56]: to 4e-18
_REST_P = (1.2530146445147035e-06, 0.0003710136788725669, 0.023489195271290182, 0.3333333333333333)
_REST_Q = (1.2811595487128163e-06, 0.0003994075702505891, 0.027395313457406145, 0.4704675858138703, 1.0)


@in_blocks
def _tanh_rest(x: Any) -> Any:
    """Below 1.6 by a minimax quotient, since the difference of numbers that are about equal has no digits left."""
    square = np.minimum(x * x, 2.56)
    near = ratio(square, _REST_P, _REST_Q)
    near *= square
    near *= x
    return np.where(square < 2.56, near, x - np.tanh(x))


tanh_rest = unary("tanh_rest", _tanh_rest, "$x - \\tanh x$, exact near zero.", "[0., 1.] -> [0.0000, 0.2384]",
    vjp=lambda g, input: g * square(tanh(input)), dtypes="f", torch_name="", path="ops.pointwise.curves.tanh_rest")  # fmt: skip


@in_float64
def _silu(x: Any) -> Any:
    return x * (np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))))


def _silu_rule(g: Any, input: Any) -> Any:
    gate = sigmoid(input)
    return g * (gate + input * (gate * (1 - gate)))


times_sigmoid = unary("times_sigmoid", _silu, "$x \\sigma(x)$, rounded once.", "[0., 1.] -> [0.0000, 0.7311]",
    vjp=_silu_rule, dtypes="f", torch_name="", path="ops.pointwise.curves.times_sigmoid", inplace=False)  # fmt: skip


@in_float64
def _mish(x: Any) -> Any:
    """With $e^x$ the hyperbolic tangent is a quotient, $1 - 2 / (e^x (e^x + 2) + 2)$."""
    e = np.exp(np.minimum(x, 40.0))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _mish_rule(g: Any, input: Any) -> Any:
    slope = tanh(log1pexp(input))
    return g * (slope + input * ((1 - slope * slope) * sigmoid(input)))


times_tanh_log1pexp = unary(
    "times_tanh_log1pexp",
    _mish,
    "$x \\tanh(\\ln(1 + e^x))$, rounded once.",
    "[0., 1.] -> [0.0000, 0.8651]",
    vjp=_mish_rule,
    dtypes="f",
    torch_name="",
    path="ops.pointwise.curves.times_tanh_log1pexp",
    inplace=False,
)

__all__ = [
    "relu",
    "sigmoid",
]

FUNCTIONAL = [
    "sigmoid",
]
