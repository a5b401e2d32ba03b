"""Elementwise ops: arithmetic, comparison, logic, functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import UnsupportedError, message
from genesis.onnx.builder import Builder, Value, lowers
from genesis.onnx.tracing import Dim

BOOL = np.dtype(bool)

SAME_NAME = {  # functions of one tensor of the result's dtype
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "clone": "Identity", "conj_physical": "Identity", "log1pexp": "Softplus",
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div",
}  # fmt: skip
EXACT_INTEGERS = {"ceil": "Identity", "floor": "Identity", "round": "Identity", "trunc": "Identity"}


def _declare(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, *args: Any) -> str:
        kind = b.out.dtype
        if name in EXACT_INTEGERS and kind.kind in "iub":
            return b.operand(args[0], kind)
        return b.node(operator, *[b.operand(x, kind) for x in args])


for _name, _operator in SAME_NAME.items():
    _declare(_name, _operator)


def both(b: Builder, x: Any, y: Any) -> tuple[str, str, np.dtype[Any]]:
    """Two operands in the dtype in which they are compared."""
    kind = np.result_type(*[v.dtype if isinstance(v, Value) else 0 if isinstance(v, Dim) else v for v in (x, y)])
    return b.operand(x, kind), b.operand(y, kind), kind


def _compares(name: str, operator: str, negated: bool = False) -> None:
    @lowers(name)
    def _(b: Builder, x: Any, y: Any) -> str:
        left, right, kind = both(b, x, y)
        if kind == BOOL and operator != "Equal":
            left, right = (b.node("Cast", v, to=b.code(np.int32)) for v in (left, right))
        out = b.node(operator, left, right)
        return b.node("Not", out) if negated else out


for _name, _operator, _negated in (
    ("eq", "Equal", False), ("ne", "Equal", True), ("gt", "Greater", False), ("ge", "GreaterOrEqual", False),
    ("lt", "Less", False), ("le", "LessOrEqual", False),
):  # fmt: skip
    _compares(_name, _operator, _negated)


def _logical(name: str, operator: str, bits: str | None) -> None:
    @lowers(name)
    def _(b: Builder, *args: Any) -> str:
        kind = b.out.dtype if bits else BOOL
        return b.node(operator if kind == BOOL else bits, *[b.operand(x, kind) for x in args])


for _name in ("and", "or", "xor", "not"):
    _logical(f"logical_{_name}", _name.capitalize(), None)
    _logical(f"bitwise_{_name}", _name.capitalize(), f"Bitwise{_name.capitalize()}")


# ---- larger and smaller


@lowers("maximum", "clamp_min")
def _max(b: Builder, x: Any, y: Any) -> str:
    return b.node("Max", *[b.operand(v, b.out.dtype) for v in (x, y)])


@lowers("minimum", "clamp_max")
def _min(b: Builder, x: Any, y: Any) -> str:
    return b.node("Min", *[b.operand(v, b.out.dtype) for v in (x, y)])


def _ignoring_nan(name: str, operator: str) -> None:
    @lowers(name)
    def _(b: Builder, x: Any, y: Any) -> str:
        left, right = (b.operand(v, b.out.dtype) for v in (x, y))
        if b.out.dtype.kind in "iub":
            return b.node(operator, left, right)
        both_ = b.node(operator, left, right)
        both_ = b.node("Where", b.node("IsNaN", left), right, both_)
        return b.node("Where", b.node("IsNaN", right), left, both_)


_ignoring_nan("fmax", "Max")
_ignoring_nan("fmin", "Min")


@lowers("select_where")
def _where(b: Builder, condition: Any, x: Any, y: Any) -> str:
    kind = b.out.dtype
    return b.node("Where", b.operand(condition, BOOL), b.operand(x, kind), b.operand(y, kind))


@lowers("gate")
def _gate(b: Builder, x: Any, y: Any) -> str:
    kind = b.out.dtype
    zero = b.node("Equal", b.operand(y, kind), b.constant(0, kind))
    return b.node("Where", zero, b.constant(0, kind), b.operand(x, kind))


# ---- whole numbers, remainders, powers


@lowers("trunc")
def _trunc(b: Builder, x: Any) -> str:
    kind = b.out.dtype
    if kind.kind in "iub":
        return b.operand(x, kind)
    return b.node("Mul", b.node("Sign", x), b.node("Floor", b.node("Abs", x)))


@lowers("frac")
def _frac(b: Builder, x: Any) -> str:
    return b.node("Sub", x, _trunc(b, x))


@lowers("round")
def _round(b: Builder, x: Any, decimals: int = 0) -> str:
    kind = b.out.dtype
    if kind.kind in "iub":
        return b.operand(x, kind)
    if not decimals:
        return b.node("Round", x)
    factor = b.constant(10.0**decimals, kind)
    return b.node("Div", b.node("Round", b.node("Mul", x, factor)), factor)


@lowers("floor_divide")
def _floor_divide(b: Builder, x: Any, y: Any) -> str:
    kind = b.out.dtype
    left, right = b.operand(x, kind), b.operand(y, kind)
    if kind.kind not in "iu":
        return b.node("Floor", b.node("Div", left, right))
    rest = b.node("Mod", left, right)  # with the sign of the divisor: what is left divides exactly
    return b.node("Div", b.node("Sub", left, rest), right)


@lowers("remainder")
def _remainder(b: Builder, x: Any, y: Any) -> str:
    kind = b.out.dtype
    left, right = b.operand(x, kind), b.operand(y, kind)
    if kind.kind in "iu":
        return b.node("Mod", left, right)
    return b.node("Sub", left, b.node("Mul", right, b.node("Floor", b.node("Div", left, right))))


@lowers("fmod")
def _fmod(b: Builder, x: Any, y: Any) -> str:
    return b.node("Mod", *[b.operand(v, b.out.dtype) for v in (x, y)], fmod=1)


@lowers("pow")
def _pow(b: Builder, x: Any, y: Any) -> str:
    return b.node("Pow", *[b.operand(v, b.out.dtype) for v in (x, y)])


@lowers("square")
def _square(b: Builder, x: Value) -> str:
    return b.node("Mul", x, x)


# ---- functions


def _one(b: Builder) -> str:
    return b.constant(1, b.out.dtype)


def _float(b: Builder, x: Any) -> str:
    return b.operand(x, b.out.dtype)


def _times(b: Builder, x: Any, factor: float) -> str:
    return b.node("Mul", _float(b, x) if isinstance(x, Value) else x, b.constant(factor, b.out.dtype))


@lowers("rsqrt")
def _rsqrt(b: Builder, x: Value) -> str:
    return b.node("Reciprocal", b.node("Sqrt", _float(b, x)))


@lowers("exp2")
def _exp2(b: Builder, x: Value) -> str:
    return b.node("Pow", b.constant(2, b.out.dtype), _float(b, x))


@lowers("expm1")
def _expm1(b: Builder, x: Value) -> str:
    """Near zero $2 t / (1 - t)$ with $t = tanh(x / 2)$, which loses no digits there."""
    given = _float(b, x)
    t = b.node("Tanh", _times(b, given, 0.5))
    near = b.node("Div", b.node("Add", t, t), b.node("Sub", _one(b), t))
    small = b.node("Less", b.node("Abs", given), _one(b))
    return b.node("Where", small, near, b.node("Sub", b.node("Exp", given), _one(b)))


@lowers("log1p")
def _log1p(b: Builder, x: Value) -> str:
    """$x ln(u) / (u - 1)$ with $u = 1 + x$: the error of the sum is divided out (Kahan)."""
    given = _float(b, x)
    u = b.node("Add", given, _one(b))
    difference = b.node("Sub", u, _one(b))
    exact = b.node("Or", b.node("Equal", difference, b.constant(0, b.out.dtype)), b.node("IsInf", u))
    divisor = b.node("Where", exact, _one(b), difference)
    log = b.node("Log", u)
    scaled = b.node("Div", b.node("Mul", log, given), divisor)
    infinite = b.node("IsInf", u)
    return b.node("Where", infinite, u, b.node("Where", exact, given, scaled))


@lowers("log2")
def _log2(b: Builder, x: Value) -> str:
    return _times(b, b.node("Log", _float(b, x)), 1 / math.log(2))


@lowers("log10")
def _log10(b: Builder, x: Value) -> str:
    return _times(b, b.node("Log", _float(b, x)), 1 / math.log(10))


@lowers("bounded_log")
def _bounded_log(b: Builder, x: Value) -> str:
    return b.node("Max", b.node("Log", x), b.constant(-100, b.out.dtype))


@lowers("bounded_log1p")
def _bounded_log1p(b: Builder, x: Value) -> str:
    return b.node("Max", _log1p(b, x), b.constant(-100, b.out.dtype))


@lowers("erfc")
def _erfc(b: Builder, x: Value) -> str:
    return b.node("Sub", _one(b), b.node("Erf", _float(b, x)))


@lowers("normal_cdf")
def _normal_cdf(b: Builder, x: Value) -> str:
    return _times(b, b.node("Add", _one(b), b.node("Erf", _times(b, x, math.sqrt(0.5)))), 0.5)


@lowers("times_sigmoid")
def _times_sigmoid(b: Builder, x: Value) -> str:
    return b.node("Mul", x, b.node("Sigmoid", x))


@lowers("times_tanh_log1pexp")
def _times_tanh(b: Builder, x: Value) -> str:
    return b.node("Mul", x, b.node("Tanh", b.node("Softplus", x)))


@lowers("tanh_rest")
def _tanh_rest(b: Builder, x: Value) -> str:
    return b.node("Sub", x, b.node("Tanh", x))


@lowers("deg2rad")
def _deg2rad(b: Builder, x: Value) -> str:
    return _times(b, x, math.pi / 180)


@lowers("rad2deg")
def _rad2deg(b: Builder, x: Value) -> str:
    return _times(b, x, 180 / math.pi)


@lowers("logit")
def _logit(b: Builder, x: Value) -> str:
    given = _float(b, x)
    return b.node("Log", b.node("Div", given, b.node("Sub", _one(b), given)))


@lowers("hypot")
def _hypot(b: Builder, x: Any, y: Any) -> str:
    left, right = _float(b, x), _float(b, y)
    return b.node("Sqrt", b.node("Add", b.node("Mul", left, left), b.node("Mul", right, right)))


@lowers("logaddexp")
def _logaddexp(b: Builder, x: Any, y: Any) -> str:
    left, right = _float(b, x), _float(b, y)
    rest = b.node("Softplus", b.node("Neg", b.node("Abs", b.node("Sub", left, right))))
    return b.node("Add", b.node("Max", left, right), rest)


@lowers("xlogy")
def _xlogy(b: Builder, x: Any, y: Any) -> str:
    left, right = _float(b, x), _float(b, y)
    zero = b.constant(0, b.out.dtype)
    nothing = b.node("And", b.node("Equal", left, zero), b.node("Not", b.node("IsNaN", right)))
    return b.node("Where", nothing, zero, b.node("Mul", left, b.node("Log", right)))


# ---- what kind of number


def _kinds(name: str, **attributes: int) -> None:
    @lowers(name)
    def _(b: Builder, x: Value) -> str:
        if not x.floating:
            return b.node("Not", b.node("Equal", x, x)) if x.dtype == BOOL else b.node("Less", x, x)
        return b.node("IsNaN" if name == "isnan" else "IsInf", x, **attributes)


_kinds("isnan")
_kinds("isinf")
_kinds("isposinf", detect_negative=0)
_kinds("isneginf", detect_positive=0)


@lowers("isfinite")
def _isfinite(b: Builder, x: Value) -> str:
    if not x.floating:
        return b.node("Equal", x, x)
    return b.node("Not", b.node("Or", b.node("IsNaN", x), b.node("IsInf", x)))


@lowers("nan_to_num")
def _nan_to_num(
    b: Builder, x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> str:
    if not x.floating:
        return b.node("Identity", x)
    limits = dtypes.finfo(dtypes.from_numpy(x.dtype))
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    out = b.node("Where", b.node("IsNaN", x), b.constant(nan, x.dtype), x)
    out = b.node("Where", b.node("IsInf", x, detect_negative=0), b.constant(high, x.dtype), out)
    return b.node("Where", b.node("IsInf", x, detect_positive=0), b.constant(low, x.dtype), out)


# ---- conversions


@lowers("convert")
def _convert(b: Builder, x: Value, dtype: Any) -> str:
    if b.out.dtype.kind == "c":
        raise UnsupportedError(message("export", "complex numbers have no operators in ONNX"))
    return b.cast(x, b.out.dtype)


@lowers("named", "without_gradient", "transfer")
def _same(b: Builder, x: Value, *_: Any) -> str:
    return x.name
