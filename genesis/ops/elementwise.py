"""Elementwise arithmetic and mathematics: one statement each.

An op's gradient rule gets ``g`` and, by name, what it needs (`core/call/op.py`). It is linear in ``g``, so the same
rule serves forward mode, and complex gradients follow by conjugation (`core/graph/node.py`).

Conventions at points without a derivative: abs'(0) = 0, sign' = 0, sqrt'(0) = inf; maximum and minimum share the
gradient evenly between equal operands; clamp has slope 1 on its edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.dispatch import public, write_out
from genesis.core.call.halves import wide
from genesis.core.call.kinds import alias, binary, case, composite, elementwise, fails, unary
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.call.views import inplace_method

# ---- arithmetic


def _no_bool(x: Any, y: Any) -> Any:
    return np.subtract(x, y)


_plus = binary(
    "add",
    np.add,
    "Sum, $x + y$.",
    "[1., 2.], 3 -> [4., 5.]",
    vjp=(lambda g: g, lambda g: g),
    operators=["__add__"],
    reflected="__radd__",
    commutes=True,
    inplace_operator="__iadd__",
    fails=fails(
        (lambda t: case(t(2, 3), t(4)), RuntimeError, "add: shapes cannot be broadcast together, sizes 3 and 4")
    ),
)
_minus = binary(
    "sub", np.subtract, "Difference, $x - y$.", "[1., 2.], 3 -> [-2., -1.]",
    vjp=(lambda g: g, lambda g: -g), dtypes="fci",
    operators=["__sub__"], reflected="__rsub__", inplace_operator="__isub__",
    fails=fails((lambda t: case(t.bool(2), t.bool(2)), RuntimeError, "sub: genesis.bool is not supported")),
)  # fmt: skip
mul = binary(
    "mul", np.multiply, "Product, $x y$.", "[1., 2.], 3 -> [3., 6.]",
    vjp=(lambda g, other: g * other, lambda g, input: g * input),
    operators=["__mul__"], reflected="__rmul__", commutes=True, inplace_operator="__imul__",
)  # fmt: skip
_quotient = binary(
    "div", np.true_divide, "Quotient, $x / y$; dividing by zero gives inf or nan.", "[1., 2.], 4 -> [0.2500, 0.5000]",
    vjp=(lambda g, other: g / other, lambda g, input, other: -(g * (input / other / other))), result="float",
    operators=["__truediv__"], reflected="__rtruediv__", inplace_operator="__itruediv__",
    samples=lambda t: [case(t(2, 3), t.positive(3)), case(t(), t.positive(2, 1)), case(t(0, 3), t.positive(3))],
)  # fmt: skip


def _times(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """``other * alpha`` in the dtype of the sum, so that a negative alpha does not wrap around in an unsigned one."""
    kind = dtypes.result_type(input, other)
    _check_factor(name, "alpha", alpha, kind)
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is not other.dtype:
        other = other.to(kind)
    if kind is dtypes.bool:
        return other if alpha else other & False
    return other * alpha


def _check_factor(name: str, title: str, factor: Any, kind: Any) -> None:
    """Refuse a number that the dtype of the result cannot hold."""
    wrong = (
        isinstance(factor, complex)
        if kind.is_floating_point
        else isinstance(factor, float | complex)
        if not kind.is_complex
        else False
    )
    if wrong:
        raise DTypeError(
            message(
                name,
                f"{title} is {factor}, the result is {kind}",
                hint=f"x.to({'genesis.complex64' if isinstance(factor, complex) else 'genesis.float32'})",
            )
        )


def _scaled(name: str, plain: Any, doc: str) -> Any:
    def scaled(input: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        if alpha.__class__ is not int and not isinstance(alpha, int | float | complex | np.number | Tensor):
            raise ArgumentError(message(name, f"alpha must be a number, got {type(alpha).__name__}"))
        result: Tensor = plain(input, other if alpha == 1 else _times(name, input, other, alpha))
        return result if out is None else write_out(name, result, out)

    scaled.__name__ = scaled.__qualname__ = name
    scaled.__module__ = __name__
    scaled.__doc__ = doc + plain.__doc__.partition(".")[2]
    scaled.op = plain.op  # type: ignore[attr-defined]
    plain.op.call = scaled
    setattr(Tensor, name, scaled)
    return scaled


add = _scaled("add", _plus, "Sum, $x + alpha y$.")
sub = _scaled("sub", _minus, "Difference, $x - alpha y$.")


def _floor_division(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iub" and np.any(np.equal(y, 0)):
        raise ZeroDivisionError("floor_divide: integer division by zero")
    return np.floor_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iub" and np.any(np.equal(y, 0)):
        raise ZeroDivisionError("remainder: integer division by zero")
    return np.remainder(x, y)


_apart = lambda t: [case(t(2, 3, low=1, high=9), t.positive(3)), case(t(), 0.7), case(t(0, 2), 2.0)]  # noqa: E731

floor_divide = binary(
    "floor_divide",
    _floor_division,
    "Quotient rounded towards minus infinity, $\\lfloor x / y \\rfloor$.",
    "[7., -7.], 2 -> [ 3., -4.]",
    vjp=(lambda g: g * 0, lambda g: g * 0),
    operators=["__floordiv__"],
    reflected="__rfloordiv__",
    inplace_operator="__ifloordiv__",
    dtypes="fi",
    samples=_apart,
)
remainder = binary(
    "remainder",
    _remainder,
    "Remainder with the sign of the divisor, $x - y \\lfloor x / y \\rfloor$.",
    "[7., -7.], 3 -> [1., 2.]",
    vjp=(lambda g: g, lambda g, input, other: -(g * floor_divide(input, other))),
    operators=["__mod__"],
    reflected="__rmod__",
    inplace_operator="__imod__",
    dtypes="fi",
    samples=_apart,
)
fmod = binary(
    "fmod", np.fmod, "Remainder with the sign of the dividend.", "[7., -7.], 3 -> [ 1., -1.]",
    vjp=(lambda g: g, lambda g, input, other: -(g * trunc(input / other))), dtypes="fi", samples=_apart,
)  # fmt: skip


@composite(dtypes="fi", inplace=True)
def divide(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Quotient, $x / y$, exact or rounded.

    Args:
        rounding_mode: None for the exact quotient, ``"floor"`` to round down, ``"trunc"`` to round towards zero

    Raises:
        ValueError: another rounding mode
        RuntimeError: shapes, dtypes or devices that do not fit

    >>> import genesis
    >>> genesis.divide(genesis.tensor([7., -7.]), 2, rounding_mode="trunc")
    tensor([ 3., -3.])
    """
    if rounding_mode is None:
        result = _quotient(input, other)
    elif rounding_mode == "floor":
        result = floor_divide(input, other)
    elif rounding_mode == "trunc":
        result = _truncated(input, other)
    else:
        raise ArgumentValueError(
            message("div", f"rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
        )
    return result if out is None else write_out("div", result, out)


samples(divide, lambda t: [case(t(2, 3), t.positive(3)), case(t(3), 2.0, rounding_mode="floor")])

wrong_inputs(divide, (lambda t: case(t(2), 2, rounding_mode="up"), ValueError, "rounding_mode must be None"))


def _truncated(input: Any, other: Any) -> Tensor:
    """The quotient rounded towards zero; integers are divided as such, numbers wrapped into their dtype."""
    kind = dtypes.result_type(input, other)
    if kind.is_floating_point or kind.is_complex:
        # a quotient rounded to 16 bits may be an integer that it is not
        return trunc(_quotient(wide(input), wide(other))).to(kind)
    x, y = (v.to(kind) if isinstance(v, Tensor) else wrap(np.asarray(v)).to(kind) for v in (input, other))
    return (x - fmod(x, y)) // y


div = true_divide = divide
Tensor.div = Tensor.true_divide = divide  # type: ignore[attr-defined]
Tensor.div_ = Tensor.true_divide_ = inplace_method(divide.op, "div_")  # type: ignore[attr-defined]


def _power(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu" and np.asarray(y).dtype.kind in "iu" and np.any(np.less(y, 0)):
        raise ArgumentValueError(message("pow", "integers to negative powers are not defined", hint="x.float() ** y"))
    return np.power(x, y)


def _power_rule(g: Any, input: Any, other: Any) -> Any:
    if not isinstance(other, Tensor):
        return g * 0.0 if other == 0 else g * 2 * input if other == 2 else g * (other * input ** (other - 1))
    return where(other == 0, 0.0, g * (other * pow(input, other - 1)))


pow = binary(
    "pow",
    _power,
    "Power, $x^y$.",
    "[1., 2., 3.], 2 -> [1., 4., 9.]",
    vjp=(
        _power_rule,
        lambda g, input, other, out: where(_is_zero(input) & _not_negative(other), 0.0, g * (out * log_of(input))),
    ),
    operators=["__pow__"],
    reflected="__rpow__",
    inplace_operator="__ipow__",
    dtypes="fci",
    samples=lambda t: [
        case(t.positive(2, 3), t.positive(3)),
        case(t(3), 2),
        case(t(3), 3.0),
        case(t.positive(3), -0.5),
        case(t(0, 2), 2.0),
    ],
    kernel=lambda x, y: (
        np.multiply(x, x) if type(y) is int and y == 2 else _power(x, y) if x.dtype.kind in "iu" else np.power(x, y)
    ),
    weak_scalars=True,
)


def _not_negative(x: Any) -> Any:
    return (x.real if isinstance(x, Tensor) else x) >= 0


def _is_zero(x: Any) -> Any:
    return x == 0


def log_of(x: Any) -> Any:
    return log(x) if isinstance(x, Tensor) else math.log(x) if x > 0 else float("nan") if x < 0 else float("-inf")


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


def _real_of(operands: Any, want: str) -> Any:
    dtype = operands[0].dtype
    real = dtypes.from_numpy(dtype).to_real().np
    if want == "result":
        return real
    return [np.dtype(np.float32) if dtypes.from_numpy(dtype).itemsize == 2 and dtype.kind not in "iu" else dtype]


abs = unary(
    "abs", np.absolute, "Absolute value, $|x|$.", "[1., -2.] -> [1., 2.]",
    vjp=lambda g, input: g * sgn(input), result=_real_of, operators=["__abs__"], dtypes="fci", holomorphic=False,
)  # fmt: skip
square = unary(
    "square", np.square, "Square, $x^2$.", "[1., -2.] -> [1., 4.]", vjp=lambda g, input: g * (2 * input), dtypes="fci"
)
reciprocal = unary(
    "reciprocal",
    np.reciprocal,
    "Reciprocal, $1 / x$.",
    "[1., -2.] -> [ 1.0000, -0.5000]",
    vjp=lambda g, out: -(g * (out * out)),
    result="float",
    samples=lambda t: [case(t.positive(2, 3)), case(t.positive(0))],
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
    autocast="float32",
)
exp2 = unary(
    "exp2",
    np.exp2,
    "Power of two, $2^x$.",
    "[0., 3.] -> [1., 8.]",
    vjp=lambda g, out: g * (out * _LN2),
    result="float",
    dtypes="fib",
)
expm1 = unary(
    "expm1",
    np.expm1,
    "Exponential minus one, $e^x - 1$, accurate near zero.",
    "[0., 1.] -> [0.0000, 1.7183]",
    vjp=lambda g, out: g * (out + 1),
    result="float",
    autocast="float32",
)
log = unary("log", np.log, "Natural logarithm, $\\ln x$.", "[1., 2.] -> [0.0000, 0.6931]",
    vjp=lambda g, input: g / input, result="float", samples=_positive, autocast="float32")  # fmt: skip
log2 = unary("log2", np.log2, "Logarithm to base two.", "[1., 8.] -> [0., 3.]",
    vjp=lambda g, input: g / (input * _LN2), result="float", samples=_positive, autocast="float32")  # fmt: skip
log10 = unary("log10", np.log10, "Logarithm to base ten.", "[1., 50.] -> [0.0000, 1.6990]",
    vjp=lambda g, input: g / (input * _LN10), result="float", samples=_positive, autocast="float32")  # fmt: skip
log1p = unary("log1p", np.log1p, "Logarithm of one plus $x$, accurate near zero.", "[0., 1.] -> [0.0000, 0.6931]",
    vjp=lambda g, input: g / (input + 1), result="float", samples=_positive, autocast="float32")  # fmt: skip
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
    autocast="float32",
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
    vjp=lambda g, out: g * (1 + out * out), result="float", samples=_inside, autocast="float32")  # fmt: skip
asin = unary("asin", np.arcsin, "Arc sine, in radians.", "[0., 1.] -> [0.0000, 1.5708]",
    vjp=lambda g, input: g * rsqrt(1 - input * input), result="float", samples=_inside, autocast="float32")  # fmt: skip
acos = unary("acos", np.arccos, "Arc cosine, in radians.", "[0., 1.] -> [1.5708, 0.0000]",
    vjp=lambda g, input: -(g * rsqrt(1 - input * input)), result="float", samples=_inside, autocast="float32")  # fmt: skip
atan = unary("atan", np.arctan, "Arc tangent, in radians.", "[0., 1.] -> [0.0000, 0.7854]",
    vjp=lambda g, input: g / (1 + input * input), result="float", samples=_inside)  # fmt: skip
sinh = unary("sinh", np.sinh, "Hyperbolic sine.", "[0., 1.] -> [0.0000, 1.1752]",
    vjp=lambda g, input: g * cosh(input), result="float", autocast="float32")  # fmt: skip
cosh = unary("cosh", np.cosh, "Hyperbolic cosine.", "[0., 1.] -> [1.0000, 1.5431]",
    vjp=lambda g, input: g * sinh(input), result="float", autocast="float32")  # fmt: skip
tanh = unary("tanh", np.tanh, "Hyperbolic tangent.", "[0., 1.] -> [0.0000, 0.7616]",
    vjp=lambda g, out: g * (1 - out * out), result="float")  # fmt: skip
asinh = unary("asinh", np.arcsinh, "Inverse hyperbolic sine.", "[0., 1.] -> [0.0000, 0.8814]",
    vjp=lambda g, input: g * rsqrt(input * input + 1), result="float")  # fmt: skip
acosh = unary("acosh", np.arccosh, "Inverse hyperbolic cosine.", "[1., 2.] -> [0.0000, 1.3170]",
    vjp=lambda g, input: g * (rsqrt(input - 1) * rsqrt(input + 1)), result="float", samples=_over_one)  # fmt: skip
atanh = unary("atanh", np.arctanh, "Inverse hyperbolic tangent.", "[0., 0.5] -> [0.0000, 0.5493]",
    vjp=lambda g, input: g / (1 - input * input), result="float", samples=_inside)  # fmt: skip


def _angle_of(y: Any, x: Any) -> Any:
    """NumPy's vector code for float32 is 3 units of the last place off."""
    return np.arctan2(y, x, dtype=np.float64).astype(np.float32) if y.dtype == np.float32 else np.arctan2(y, x)


atan2 = binary(
    "atan2",
    _angle_of,
    "Angle of the point $(y, x)$, in radians.",
    "[0., 1.], 1. -> [0.0000, 0.7854]",
    vjp=(
        lambda g, input, other: g * (other / (input * input + other * other)),
        lambda g, input, other: -(g * (input / (input * input + other * other))),
    ),
    result="float",
    dtypes="fib",
    samples=lambda t: [case(t.positive(2, 3), t.positive(3)), case(t.positive(), t.positive(2))],
)
hypot = binary("hypot", np.hypot, "Length of $(x, y)$, $\\sqrt{x^2 + y^2}$.", "[3., 5.], [4., 12.] -> [ 5., 13.]",
    vjp=(lambda g, input, out: g * (input / out), lambda g, other, out: g * (other / out)), result="float", dtypes="f")  # fmt: skip
deg2rad = unary("deg2rad", np.deg2rad, "Degrees to radians.", "[0., 180.] -> [0.0000, 3.1416]",
    vjp=lambda g: g * (math.pi / 180), result="float", dtypes="fib")  # fmt: skip
rad2deg = unary("rad2deg", np.rad2deg, "Radians to degrees.", "[0., 1.] -> [ 0.0000, 57.2958]",
    vjp=lambda g: g * (180 / math.pi), result="float", dtypes="fib")  # fmt: skip
sinc = unary("sinc", np.sinc, "Normalised sinc, $\\sin(\\pi x) / (\\pi x)$.", "[0., 0.5] -> [1.0000, 0.6366]",
    vjp=lambda g, input, out: g * where(input == 0, 0.0, (cos(input * math.pi) - out) / where(input == 0, 1.0, input)),
    result="float", dtypes="fib", samples=_positive)  # fmt: skip

# ---- rounding and signs: derivative zero


def _zero(g: Any) -> Any:
    return g * 0


def _rounding(ufunc: Any) -> Any:
    return lambda x: x if x.dtype.kind in "iu" else ufunc(x)


_off_grid = lambda t: [case(t(low=0.1, high=0.4)), case(t(2, 3, low=1.1, high=1.4)), case(t(0, 2))]  # noqa: E731

sign = unary(
    "sign", np.sign, "Sign: -1, 0 or 1.", "[3., 0., -2.] -> [ 1.,  0., -1.]", vjp=_zero, dtypes="fi", kernel=np.sign
)
sgn = unary("sgn", np.sign, "Sign, of complex numbers $x / |x|$.", "[3., 0., -2.] -> [ 1.,  0., -1.]",
    vjp=lambda g, input, out: _sgn_rule(g, input, out), dtypes="fci", holomorphic=False)  # fmt: skip


def _sgn_rule(g: Any, input: Any, out: Any) -> Any:
    """For complex z: the part of g across z, over |z| (real numbers: zero)."""
    if not input.is_complex():
        return g * 0
    size = abs(input)
    across = g - out * (g * out.conj()).real
    return where(size == 0, 0.0, across / where(size == 0, 1.0, size))


floor = unary(
    "floor",
    _rounding(np.floor),
    "Largest integer not above $x$.",
    "[1.5, -1.5] -> [ 1., -2.]",
    vjp=_zero,
    dtypes="fi",
    samples=_off_grid,
)
ceil = unary(
    "ceil",
    _rounding(np.ceil),
    "Smallest integer not below $x$.",
    "[1.5, -1.5] -> [ 2., -1.]",
    vjp=_zero,
    dtypes="fi",
    samples=_off_grid,
)
trunc = unary(
    "trunc",
    _rounding(np.trunc),
    "Integer part of $x$.",
    "[1.5, -1.5] -> [ 1., -1.]",
    vjp=_zero,
    dtypes="fi",
    samples=_off_grid,
)
frac = unary("frac", lambda x: x - np.trunc(x), "Fractional part, $x - trunc(x)$.", "[1.5, -1.5] -> [ 0.5000, "
                                                                                    "-0.5000]",
    vjp=lambda g: g, dtypes="f", samples=_off_grid)  # fmt: skip


@elementwise({"input": lambda g: g * 0}, dtypes="fi")
def round(input: Array, *, decimals: int = 0) -> Any:
    """Round to ``decimals`` digits, halves to the even neighbour (IEEE 754).

    Integers are returned as they are. The derivative is zero.

    >>> import genesis
    >>> genesis.round(genesis.tensor([0.5, 1.5, 2.25]), decimals=0)
    tensor([0., 2., 2.])
    """
    return input if input.dtype.kind in "iu" else np.round(input, int(decimals))


samples(round, _off_grid)


copysign = binary("copysign", np.copysign, "The size of $x$ with the sign of $y$.", "[1., -2.], -1 -> [-1., -2.]",
    vjp=(lambda g, input, out: g * (sign(input) * sign(out)), _zero), result="float", dtypes="fib",
    samples=lambda t: [case(t.positive(2, 3), t.positive(3)), case(t.positive(3), -2.0)])  # fmt: skip


def _unwidened(operands: Any, what: str) -> Any:
    """In the dtype of the result, 16-bit floats too: their next number is another one than that of float32."""
    dtype = dtypes.result_np_dtype([x for x in operands if x is not None])
    return dtype if what == "result" else [dtype] * len(operands)


nextafter = binary(
    "nextafter",
    np.nextafter,
    "The next number after $x$ towards $y$.",
    "[1.], [2.] -> [1.0000]",
    dtypes="f",
    result=_unwidened,
    vjp=(lambda g, input, other: where(input == other, 0.0, g), _zero),
)

# ---- choosing


def _shared(picked: Any, g: Any, mine: Any, its: Any) -> Any:
    """The gradient where an operand was picked, half of it where both are equal."""
    return g * where(mine == its, 0.5, picked.to(g.dtype))


maximum = binary(
    "maximum",
    np.maximum,
    "The larger of two, nan if either is.",
    "[1., 5.], [3., 2.] -> [3., 5.]",
    vjp=(
        lambda g, input, other: _shared(input > other, g, input, other),
        lambda g, input, other: _shared(other > input, g, input, other),
    ),
    dtypes="fib",
)
minimum = binary(
    "minimum",
    np.minimum,
    "The smaller of two, nan if either is.",
    "[1., 5.], [3., 2.] -> [1., 2.]",
    vjp=(
        lambda g, input, other: _shared(input < other, g, input, other),
        lambda g, input, other: _shared(other < input, g, input, other),
    ),
    dtypes="fib",
)
fmax = binary("fmax", np.fmax, "The larger of two, ignoring nan.", "[1., 5.], [3., 2.] -> [3., 5.]", dtypes="fib",
    vjp=(lambda g, input, other: g * ((input >= other) | (other != other)).to(g.dtype),
         lambda g, input, other: g * (1 - ((input >= other) | (other != other)).to(g.dtype))))  # fmt: skip
fmin = binary("fmin", np.fmin, "The smaller of two, ignoring nan.", "[1., 5.], [3., 2.] -> [1., 2.]", dtypes="fib",
    vjp=(lambda g, input, other: g * ((input <= other) | (other != other)).to(g.dtype),
         lambda g, input, other: g * (1 - ((input <= other) | (other != other)).to(g.dtype))))  # fmt: skip


def _where_dtypes(operands: Any, want: str) -> Any:
    dtype = dtypes.result_np_dtype(operands[1:])
    return dtype if want == "result" else [np.dtype(np.bool_), dtype, dtype]


@elementwise(
    {"input": lambda g, condition: where(condition, g, 0.0), "other": lambda g, condition: where(condition, 0.0, g)},
    result=_where_dtypes,
    dtypes="fcib",
    inplace=False,
    torch_name="where",
)
def select_where(condition: Array, input: Array, other: Array) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere; what `where` calls.

    >>> import genesis
    >>> genesis.ops.elementwise.select_where(genesis.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    return np.where(condition, input, other)


samples(
    select_where, lambda t: [case(t.bool(2, 3), t(3), t(2, 1)), case(t.bool(), t(), t()), case(t.bool(0), t(0), t(0))]
)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Elements of ``input`` where ``condition`` holds, of ``other`` elsewhere; alone, the indices where it holds.

    The three broadcast together; ``input`` and ``other`` may be numbers. The gradient goes to the chosen operand.

    Raises:
        RuntimeError: shapes that do not broadcast, or a condition that is not bool

    >>> import genesis
    >>> x = genesis.tensor([-1., 2.])
    >>> genesis.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)  # type: ignore[attr-defined]
    if not isinstance(condition, Tensor) or condition._array.dtype.kind != "b":
        kind = condition.dtype if isinstance(condition, Tensor) else type(condition).__name__
        raise DTypeError(message("where", f"the condition must be a bool tensor, got {kind}", hint="x != 0"))
    return select_where(condition, input, other)


Tensor.where = lambda self, condition, other: where(condition, self, other)  # type: ignore[attr-defined]


def _together(*operands: Any) -> Any:
    """Operands in the dtype that all of them promote to: one after the other, two of them may promote to less."""
    kind = dtypes.result_np_dtype([x._array if isinstance(x, Tensor) else x for x in operands if x is not None])
    return tuple([x.to(kind) if isinstance(x, Tensor) and x._array.dtype is not kind else x for x in operands])


@composite(dtypes="fi", inplace=True)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Limit to the range from ``min`` to ``max``, $\\min(\\max(x, min), max)$; either may be None, a number or a
    tensor.

    The slope is 1 inside and on the edges, 0 outside.

    Raises:
        ValueError: neither limit is given

    >>> import genesis
    >>> genesis.clamp(genesis.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentValueError(message("clamp", "at least one of min and max is needed"))
    result = input
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        result, min, max = _together(input, min, max)
    if min is not None:
        result = _clamp_min(result, min)
    if max is not None:
        result = _clamp_max(result, max)
    return result if out is None else write_out("clamp", result, out)


samples(clamp, lambda t: [case(t(2, 3), -0.5, 0.5), case(t(3), min=t(3)), case(t(3), max=0.3), case(t(0), 0, 1)])

wrong_inputs(clamp, (lambda t: case(t(3)), ValueError, "clamp: at least one of min and max is needed"))


_clamp_min = binary(
    "clamp_min",
    np.maximum,
    "No less than a limit, $\\max(x, y)$.",
    "[1., 5.], 3. -> [3., 5.]",
    dtypes="fi",
    vjp=(
        lambda g, input, other: g * (input >= other).to(g.dtype),
        lambda g, input, other: g * (input < other).to(g.dtype),
    ),
)
_clamp_max = binary(
    "clamp_max",
    np.minimum,
    "No more than a limit, $\\min(x, y)$.",
    "[1., 5.], 3. -> [1., 3.]",
    dtypes="fi",
    vjp=(
        lambda g, input, other: g * (input <= other).to(g.dtype),
        lambda g, input, other: g * (input > other).to(g.dtype),
    ),
)
clamp_min, clamp_max = _clamp_min, _clamp_max


@composite(dtypes="fci", inplace=True)
def float_power(input: Any, exponent: Any) -> Tensor:
    """Power, $x^y$, in double precision whatever the dtypes are.

    >>> import genesis
    >>> genesis.float_power(genesis.tensor([1, 2, 3]), -1)
    tensor([1.0000, 0.5000, 0.3333], dtype=genesis.float64)
    """
    wide = (
        dtypes.complex128
        if any(isinstance(v, complex) or (isinstance(v, Tensor) and v.is_complex()) for v in (input, exponent))
        else dtypes.float64
    )
    return pow(*[v.to(wide) if isinstance(v, Tensor) else wrap(np.asarray(v, wide.np)) for v in (input, exponent)])


samples(float_power, lambda t: [case(t.positive(2, 3), t(3)), case(t(3), 2), case(t.positive(3), -0.5), case(t(0), 1)])

# ---- blends


@composite(dtypes="fci", inplace=True)
def ldexp(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """A mantissa and an exponent put together, $x \\, 2^y$, rounded once; a power out of range by itself does no harm.

    Integers give a floating result, in the default dtype.

    >>> import genesis
    >>> genesis.ldexp(genesis.tensor([1., 1e-30]), genesis.tensor([-2, 200]))
    tensor([2.5000e-01, 1.6069e+30])
    """
    kind = dtypes.result_type(input, other)
    kind = kind if kind.is_floating_point or kind.is_complex else dtypes.get_default_dtype()
    if kind.is_complex:
        result = mul(input, pow(2.0, other))
    else:
        x, y = (
            v.to(dtypes.float64) if isinstance(v, Tensor) else wrap(np.asarray(v, np.float64)) for v in (input, other)
        )
        half = trunc(y * 0.5)
        result = (x * exp2(half) * exp2(y - half)).to(kind)
    return result if out is None else write_out("ldexp", result, out)


samples(
    ldexp, lambda t: [case(t(2, 3), t(3)), case(t(2, 1), t.int(3, low=0, high=4)), case(t(), t()), case(t(0), t(0))]
)


@composite(halves="wide", inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Linear interpolation, $x + w (end - x)$.

    >>> import genesis
    >>> genesis.lerp(genesis.tensor([0., 10.]), genesis.tensor([10., 20.]), 0.5)
    tensor([ 5., 15.])
    """
    return input + weight * (end - input)


samples(lerp, lambda t: [case(t(2, 3), t(3), 0.3), case(t(3), t(3), t(3))])


@composite(halves="wide", dtypes="fci", inplace=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Sum with a scaled product, $x + value \\cdot a b$.

    >>> import genesis
    >>> genesis.addcmul(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([3., 4.]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    if value != 1:
        _check_factor(
            "addcmul",
            "value",
            value,
            dtypes.promote_types(input.dtype, dtypes.promote_types(tensor1.dtype, tensor2.dtype)),
        )
    input, tensor1, tensor2 = _together(input, tensor1, tensor2)
    return input + (tensor1 * tensor2 if value == 1 else tensor1 * tensor2 * value)


samples(addcmul, lambda t: [case(t(2, 3), t(3), t(2, 1)), case(t(3), t(3), t(3), value=2)])


@composite(halves="wide", dtypes="fc", inplace=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Sum with a scaled quotient, $x + value \\cdot a / b$.

    >>> import genesis
    >>> genesis.addcdiv(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([2., 4.]), value=2)
    tensor([2., 2.])
    """
    input, tensor1, tensor2 = _together(input, tensor1, tensor2)
    return input + (tensor1 / tensor2 if value == 1 else tensor1 / tensor2 * value)


samples(addcdiv, lambda t: [case(t(2, 3), t(3), t.positive(2, 1)), case(t(3), t(3), t.positive(3), value=2)])


logaddexp = binary(
    "logaddexp",
    np.logaddexp,
    "Stable $\\ln(e^x + e^y)$.",
    "[0., 1.], [0., 2.] -> [0.6931, 2.3133]",
    dtypes="f",
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
xlogy = binary(
    "xlogy",
    lambda x, y: np.where(np.equal(x, 0) & ~np.isnan(y), 0, x * np.log(y)),
    "$x \\ln y$, zero where $x$ is zero.",
    "[0., 2.], [0., 1.] -> [0., 0.]",
    dtypes="fib",
    result="float",
    vjp=(
        lambda g, input, other: g * where(_is_zero(input), 0.0, log_of(other)),
        lambda g, input, other: g * (input / other),
    ),
    samples=lambda t: [case(t(2, 3), t.positive(3)), case(t(3), 2.0)],
)


def _as_given(operands: Any, want: str) -> Any:
    """Limits are those of the dtype itself, also where others compute in float32."""
    return operands[0].dtype if want == "result" else [operands[0].dtype]


@elementwise({"input": lambda g, input: where(isfinite(input), g, 0.0)}, result=_as_given, dtypes="fi")
def nan_to_num(input: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Replace nan, inf and -inf by numbers: ``nan``, and the largest and smallest of the dtype unless given.

    >>> import genesis
    >>> genesis.nan_to_num(genesis.tensor([float("nan"), 1.]), nan=5.0)
    tensor([5., 1.])
    """
    kind = input.dtype
    if kind.kind in "iub":
        return input.copy()
    if kind.kind == "c":
        return np.nan_to_num(input, nan=nan, posinf=posinf, neginf=neginf)
    info = dtypes.finfo(dtypes.from_numpy(kind))
    high, low = (info.max if posinf is None else posinf), (info.min if neginf is None else neginf)
    found = np.where(np.isnan(input), np.asarray(nan).astype(kind), input)
    return np.where(
        np.isposinf(input),
        np.asarray(high).astype(kind),
        np.where(np.isneginf(input), np.asarray(low).astype(kind), found),
    )


samples(nan_to_num, lambda t: [case(t(2, 3)), case(t(0)), case(t(), 1.0)])


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


angle = unary(
    "angle",
    np.angle,
    "Argument of a complex number in radians; for reals 0 or pi.",
    "[1., -1.] -> [0.0000, 3.1416]",
    result=lambda operands, want: _real_float(operands, want),
    dtypes="fci",
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
        return g * 0
    return g * (1j * input / (input * input.conj()).real)


# ---- questions: the result is bool

isnan = unary("isnan", np.isnan, "Whether an element is nan.", "[1., float('nan')] -> [False,  True]", result="bool")
isinf = unary(
    "isinf", np.isinf, "Whether an element is infinite.", "[1., float('inf')] -> [False,  True]", result="bool"
)
isfinite = unary(
    "isfinite",
    np.isfinite,
    "Whether an element is neither infinite nor nan.",
    "[1., float('inf')] -> [ True, False]",
    result="bool",
)
isposinf = unary(
    "isposinf",
    np.isposinf,
    "Whether an element is inf.",
    "[1., float('inf')] -> [False,  True]",
    result="bool",
    dtypes="fib",
)
isneginf = unary(
    "isneginf",
    np.isneginf,
    "Whether an element is -inf.",
    "[1., float('inf')] -> [False, False]",
    result="bool",
    dtypes="fib",
)
signbit = unary(
    "signbit",
    lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
    "Whether the sign bit is set.",
    "[1., -1.] -> [False,  True]",
    result="bool",
    dtypes="fib",
)
heaviside = binary(
    "heaviside",
    np.heaviside,
    "Step: 0 below zero, 1 above, $y$ at zero.",
    "[-1., 0., 2.], [0.5, 0.5, 0.5] -> [0.0000, 0.5000, 1.0000]",
    vjp=(_zero, lambda g, input: where(input == 0, g, 0.0)),
    dtypes="f",
)

for _name, _call, _inplace in [
    ("absolute", abs, True),
    ("negative", neg, True),
    ("multiply", mul, True),
    ("arcsin", asin, True),
    ("arccos", acos, True),
    ("arctan", atan, True),
    ("arcsinh", asinh, True),
    ("arccosh", acosh, True),
    ("arctanh", atanh, True),
    ("arctan2", atan2, True),
    ("fix", trunc, True),
    ("clip", clamp, True),
    ("subtract", sub, True),
]:
    globals()[_name] = alias(_name, _call, inplace=_inplace)

__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and (hasattr(value, "op") or name == "where") and name[0] != "_"
]
__all__ = [name for name in __all__ if name != "select_where"]
