"""Elementwise mathematics: one statement each; more in `arithmetic`, `rounding`, `choice`, `special` and `curves`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import DTypeError, message
from genesis.core.call.dispatch import public
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kinds import alias, binary, case, composite, unary
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise.arithmetic import _is_zero
from genesis.ops.pointwise.choice import nothing, where

neg = unary(
    "neg",
    np.negative,
    "Negation, $-x$.",
    "[1., -2.] -> [-1.,  2.]",
    vjp=lambda g: -g,
    dtypes="fci",
    operators=["__neg__"],
)


@composite(dtypes="fci", operators=["__pos__"])
def positive(input: Tensor) -> Tensor:
    """The same tensor.

    Raises:
        RuntimeError: of bool

    >>> import genesis
    >>> +genesis.tensor([1., -2.])
    tensor([ 1., -2.])
    """
    if input.dtype is dtypes.bool:
        raise DTypeError(
            message("positive", f"{input.dtype} is not supported, it takes floating, complex, integer tensors")
        )
    return input


samples(positive, lambda t: [case(t(2, 3)), case(t())])

wrong_inputs(positive, (lambda t: case(t.bool(2)), RuntimeError, "positive: genesis.bool is not supported"))


def _counted(operands: Any, what: str) -> Any:
    """Bools are integers, 16-bit floats are computed in float32."""
    dtype = operands[0].dtype
    dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    return dtype if what == "result" else [F32 if dtype in HALVES else dtype]


square = unary(
    "square", np.square, "Square, $x^2$; of bools an integer.", "[1., -2.] -> [1., 4.]",
    vjp=lambda g, input: g * (2 * input), dtypes="fcib", result=_counted, autocast="float32:gpu", keeps_floats=True,
)  # fmt: skip
reciprocal = unary(
    "reciprocal",
    lambda x: 1 / x,  # of complex numbers np.reciprocal has other infinities than the quotient
    "Reciprocal, $1 / x$.",
    "[1., -2.] -> [ 1.0000, -0.5000]",
    vjp=lambda g, out: -(g * (out * out)),
    result="float",
    samples=lambda t: [case(t.positive(2, 3)), case(t.positive(0))],
    autocast="float32:gpu",
)  # noqa: E501

# ---- exponentials, logarithms and powers

_positive = lambda t: [case(t.positive()), case(t.positive(2, 3)), case(t.positive(0, 3))]  # noqa: E731
_LN2, _LN10 = math.log(2.0), math.log(10.0)

exp = unary(
    "exp",
    np.exp,
    "Exponential, $e^x$.",
    "[0., 1.] -> [1.0000, 2.7183]",
    vjp=lambda g, out: g * out,
    result="float",
    autocast="float32:gpu",
)
exp2 = unary(
    "exp2",
    lambda x: np.exp(x * _LN2) if x.dtype.kind == "c" else np.exp2(x),
    "Power of two, $2^x$.",
    "[0., 3.] -> [1., 8.]",
    vjp=lambda g, out: g * (out * _LN2),
    result="float",
)
expm1 = unary(
    "expm1",
    np.expm1,
    "Exponential minus one, $e^x - 1$, accurate near zero.",
    "[0., 1.] -> [0.0000, 1.7183]",
    vjp=lambda g, input: g * exp(input),  # of the value + 1 nothing is left where that is near -1
    result="float",
    autocast="float32:gpu",
)
log = unary("log", np.log, "Natural logarithm, $\\ln x$.", "[1., 2.] -> [0.0000, 0.6931]",
    vjp=lambda g, input: g / input, result="float", samples=_positive, autocast="float32:gpu")  # fmt: skip
log2 = unary("log2", np.log2, "Logarithm to base two.", "[1., 8.] -> [0., 3.]",
    vjp=lambda g, input: g / (input * _LN2), result="float", samples=_positive, autocast="float32:gpu")  # fmt: skip
log10 = unary("log10", np.log10, "Logarithm to base ten.", "[1., 50.] -> [0.0000, 1.6990]",
    vjp=lambda g, input: g / (input * _LN10), result="float", samples=_positive, autocast="float32:gpu")  # fmt: skip
log1p = unary("log1p", np.log1p, "Logarithm of one plus $x$, accurate near zero.", "[0., 1.] -> [0.0000, 0.6931]",
    vjp=lambda g, input: g / (input + 1), result="float", samples=_positive, autocast="float32:gpu")  # fmt: skip
sqrt = unary(
    "sqrt",
    np.sqrt,
    "Square root.",
    "[4., 9.] -> [2., 3.]",
    vjp=lambda g, out: g / (2 * out),
    result="float",
    samples=_positive,
)
rsqrt = unary(
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    "Reciprocal square root, $1 / \\sqrt x$.",
    "[4., 16.] -> [0.5000, 0.2500]",
    vjp=lambda g, out: g * (-0.5 * (out * out * out)),
    result="float",
    samples=_positive,
    autocast="float32:gpu",
)

# ---- trigonometry

_inside = lambda t: [case(t(low=-0.9, high=0.9)), case(t(2, 3, low=-0.9, high=0.9)), case(t(0, low=0, high=0.5))]  # noqa: E731
_over_one = lambda t: [case(t(low=1.2, high=3)), case(t(2, 3, low=1.2, high=3)), case(t(0))]  # noqa: E731

sin = unary(
    "sin",
    np.sin,
    "Sine, of radians.",
    "[0., 1.] -> [0.0000, 0.8415]",
    vjp=lambda g, input: g * cos(input),
    result="float",
)
cos = unary(
    "cos",
    np.cos,
    "Cosine, of radians.",
    "[0., 1.] -> [1.0000, 0.5403]",
    vjp=lambda g, input: -(g * sin(input)),
    result="float",
)
tan = unary("tan", np.tan, "Tangent, of radians.", "[0., 1.] -> [0.0000, 1.5574]",
    vjp=lambda g, out: g * (1 + out * out), result="float", samples=_inside, autocast="float32:gpu")  # fmt: skip
asin = unary("asin", np.arcsin, "Arc sine, in radians.", "[0., 1.] -> [0.0000, 1.5708]",
    vjp=lambda g, input: g * rsqrt(1 - input * input), result="float", samples=_inside, autocast="float32:gpu")  # fmt: skip
acos = unary("acos", np.arccos, "Arc cosine, in radians.", "[0., 1.] -> [1.5708, 0.0000]",
    vjp=lambda g, input: -(g * rsqrt(1 - input * input)), result="float", samples=_inside, autocast="float32:gpu")  # fmt: skip
atan = unary("atan", np.arctan, "Arc tangent, in radians.", "[0., 1.] -> [0.0000, 0.7854]",
    vjp=lambda g, input: g / (1 + input * input), result="float", samples=_inside)  # fmt: skip
sinh = unary("sinh", np.sinh, "Hyperbolic sine.", "[0., 1.] -> [0.0000, 1.1752]",
    vjp=lambda g, input: g * cosh(input), result="float", autocast="float32:gpu")  # fmt: skip
cosh = unary("cosh", np.cosh, "Hyperbolic cosine.", "[0., 1.] -> [1.0000, 1.5431]",
    vjp=lambda g, input: g * sinh(input), result="float", autocast="float32:gpu")  # fmt: skip
# (1 - y) (1 + y): where y is near 1, 1 - y * y loses the digits that the product rounds off, up to all of them
tanh_gradient = binary("tanh_gradient", lambda x, y: x * ((1 - y) * (1 + y)), "$x (1 - y^2)$; the gradient of `tanh`, whose value is y.",
    "[1., 1.], [0., 1.] -> [1., 0.]", vjp=(lambda g, other: tanh_gradient(g, other), lambda g, input, other: g * input * (-2 * other)),
    torch_name="", inplace=False, path="ops.pointwise.elementwise.tanh_gradient")  # fmt: skip
tanh = unary("tanh", np.tanh, "Hyperbolic tangent.", "[0., 1.] -> [0.0000, 0.7616]",
    vjp=lambda g, out: tanh_gradient(g, out), result="float")  # fmt: skip
asinh = unary("asinh", np.arcsinh, "Inverse hyperbolic sine.", "[0., 1.] -> [0.0000, 0.8814]",
    vjp=lambda g, input: g * rsqrt(input * input + 1), result="float")  # fmt: skip
acosh = unary("acosh", np.arccosh, "Inverse hyperbolic cosine.", "[1., 2.] -> [0.0000, 1.3170]",
    vjp=lambda g, input: g * (rsqrt(input - 1) * rsqrt(input + 1)), result="float", samples=_over_one)  # fmt: skip
atanh = unary("atanh", np.arctanh, "Inverse hyperbolic tangent.", "[0., 0.5] -> [0.0000, 0.5493]",
    vjp=lambda g, input: g / (1 - input * input), result="float", samples=_inside)  # fmt: skip


def _angle_of(y: Any, x: Any) -> Any:
    """NumPy's vector code for float32 is 3 units of the last place off."""
    return np.arctan2(y, x, dtype=np.float64).astype(np.float32) if y.dtype == np.float32 else np.arctan2(y, x)


def _over_squares(part: Any, y: Any, x: Any) -> Any:
    """A coordinate over $y^2 + x^2$: a slope of the angle. Where that is zero the slope is zero, and has slope zero."""
    squares = y * y + x * x
    origin = squares == 0
    return where(origin, 0.0, part / where(origin, 1.0, squares))


atan2 = binary(
    "atan2",
    _angle_of,
    "Angle of the point $(y, x)$, in radians.",
    "[0., 1.], 1. -> [0.0000, 0.7854]",
    vjp=(
        lambda g, input, other: g * _over_squares(other, input, other),
        lambda g, input, other: -(g * _over_squares(input, input, other)),
    ),
    result="float",
    dtypes="fib",
    samples=lambda t: [case(t.positive(2, 3), t.positive(3)), case(t.positive(), t.positive(2))],
)
hypot = binary("hypot", np.hypot, "Length of $(x, y)$, $\\sqrt{x^2 + y^2}$.", "[3., 5.], [4., 12.] -> [ 5., 13.]",
    vjp=(lambda g, input, out: g * (input / out), lambda g, other, out: g * (other / out)), result="float", dtypes="f")  # fmt: skip
deg2rad = unary("deg2rad", lambda x: x * (math.pi / 180), "Degrees to radians.", "[0., 180.] -> [0.0000, 3.1416]",
    vjp=lambda g: g * (math.pi / 180), result="float", dtypes="fib")  # fmt: skip
rad2deg = unary("rad2deg", lambda x: x * (180 / math.pi), "Radians to degrees.", "[0., 1.] -> [ 0.0000, 57.2958]",
    vjp=lambda g: g * (180 / math.pi), result="float", dtypes="fib")  # fmt: skip


def _slope_of_sinc(x: Any) -> Any:
    """$(\\cos \\pi x - sinc(x)) / x$, near zero by its series, where the difference has no digits left."""
    near = x.abs() < 0.08
    t = square(where(near, x, 0.0) * math.pi)
    series = where(near, x, 0.0) * (-(math.pi**2) / 3) * (1 - t / 10 * (1 - t / 28 * (1 - t / 54 * (1 - t / 88))))
    return where(near, series, (cos(x * math.pi) - sinc(x)) / where(near, 1.0, x))


sinc = unary("sinc", np.sinc, "Normalised sinc, $\\sin(\\pi x) / (\\pi x)$.", "[0., 0.5] -> [1.0000, 0.6366]",
    vjp=lambda g, input: g * _slope_of_sinc(input),
    result="float", samples=_positive)  # fmt: skip


# ---- blends


def log_of_sum(x: Any, y: Any) -> Any:
    """$\\ln(e^x + e^y)$ of arrays; of complex ones the exponential of the larger real part is taken out."""
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    ahead = np.real(x) >= np.real(y)
    low, high = np.where(ahead, y, x), np.where(ahead, x, y)
    apart = np.exp(np.where(np.equal(low, high), 0, low - high))  # inf - inf would be nan
    return np.where(np.isneginf(np.real(low)), high, high + np.log1p(apart))


logaddexp = binary(
    "logaddexp",
    log_of_sum,
    "Stable $\\ln(e^x + e^y)$.",
    "[0., 1.], [0., 2.] -> [0.6931, 2.3133]",
    dtypes="fc",
    result="float",
    vjp=(
        lambda g, input, other: g * public("sigmoid")(input - other),
        lambda g, input, other: g * public("sigmoid")(other - input),
    ),
)
logaddexp2 = binary(
    "logaddexp2",
    np.logaddexp2,
    "Stable $\\log_2(2^x + 2^y)$.",
    "[0., 1.], [0., 1.] -> [1., 2.]",
    dtypes="f",
    result="float",
    vjp=(
        lambda g, input, other: g * public("sigmoid")((input - other) * _LN2),
        lambda g, input, other: g * public("sigmoid")((other - input) * _LN2),
    ),
)


def _times_log(g: Any, x: Any, nowhere: Any) -> Any:
    """A gradient times $\\ln x$: none where it is zero, whatever x is there, and none where there is no logarithm."""
    return where(nowhere, 0.0, xlogy(g, where(nowhere, 1.0, x)))


xlogy = binary(
    "xlogy",
    lambda x, y: np.where(np.equal(x, 0) & ~np.isnan(y), 0, x * np.log(y)),
    "$x \\ln y$, zero where $x$ is zero.",
    "[0., 2.], [0., 1.] -> [0., 0.]",
    dtypes="fib",
    result="float",
    vjp=(
        lambda g, input, other: _times_log(g, other, _is_zero(input) & (other <= 0)),
        lambda g, input, other: g * (input / other),
    ),
    samples=lambda t: [case(t(2, 3), t.positive(3)), case(t(3), 2.0)],
)


# ---- complex numbers

conj_physical = unary(
    "conj_physical",
    np.conj,
    "Complex conjugate, in new memory.",
    "[1., 2.] -> [1., 2.]",
    vjp=lambda g: g.conj(),
    holomorphic=False,
)


@composite(dtypes="fcib")
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; of a real tensor the same tensor.

    >>> import genesis
    >>> genesis.conj(genesis.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conj_physical(input) if input.is_complex() else input


samples(conj, lambda t: [case(t(2, 3)), case(t())])


def _angle(z: Any) -> Any:
    """Of -0.0 it is 0, as of 0."""
    return np.angle(z if z.dtype.kind == "c" else z + 0.0)


angle = unary(
    "angle",
    _angle,
    "Argument of a complex number in radians; for reals 0 or pi.",
    "[1., -1.] -> [0.0000, 3.1416]",
    result=lambda operands, want: _real_float(operands, want),
    dtypes="fcib",
    holomorphic=False,
    vjp=lambda g, input: _angle_rule(g, input),
)


def _real_float(operands: Any, want: str) -> Any:
    dtype = operands[0].dtype
    if dtype.kind in "iub":
        dtype = dtypes.get_default_dtype().np
    return dtypes.from_numpy(dtype).to_real().np if want == "result" else [dtype]


def _angle_rule(g: Any, input: Any) -> Any:
    if not input.is_complex():
        return nothing(g)
    return g * (1j * input / (input * input.conj()).real)


for _name, _call in [
    ("negative", neg),
    ("arcsin", asin),
    ("arccos", acos),
    ("arctan", atan),
    ("arcsinh", asinh),
    ("arccosh", acosh),
    ("arctanh", atanh),
    ("arctan2", atan2),
]:
    globals()[_name] = alias(_name, _call, inplace=True)

__all__ = [
    name
    for name, value in list(globals().items())
    if name[0] != "_" and getattr(value, "__module__", None) == __name__ and (hasattr(value, "op") or name == "where")
]
