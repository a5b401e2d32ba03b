"""Scalar functions in LLVM code: for each name that an `Expression` can have, what it writes.

The mathematics is that of the kernels of eager calls (`genesis.kernels.llvm.functions` and `activations`): in float64, also
of float32 numbers, whose results are then rounded once. (But for the gradient of gelu.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.kernels.llvm import activations, functions
from genesis.kernels.llvm.values import Code, Value, copysign, rint, select, sqrt, trunc

DType = np.dtype[Any]
_KINDS = {"?": "i1", "e": "half", "f": "float", "d": "double", "b": "i8", "B": "i8", "h": "i16", "i": "i32", "l": "i64",
          "q": "i64"}  # fmt: skip
SIZES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(message("compile", f"there is no machine code for {what}"))


def kind_of(dtype: DType) -> str:
    """LLVM's type for numbers of a dtype; bfloat16 numbers are their bits. (Those are the only ones of kind V here.)"""
    if dtype.kind == "V":
        return "i16"
    if dtype.char not in _KINDS:
        raise unsupported(dtype.name)
    return _KINDS[dtype.char]


# ---- conversions


def cast(x: Value, old: DType, new: DType) -> Value:
    """As NumPy converts."""
    if old == new:
        return x
    if old.kind == "V":
        return cast(_from_bfloat16(x), np.dtype(np.float32), new)
    if new.kind == "V":
        return _to_bfloat16(cast(x, old, np.dtype(np.float32)))
    if "e" in (old.char, new.char) and "f" not in (old.char, new.char):  # there are no other instructions
        between = np.dtype(np.float32)
        return cast(cast(x, old, between), between, new)
    code, kind = x.code, kind_of(new)
    if new.kind == "b":
        return ~x.equals(0)
    if old.kind in "biu":
        if new.kind == "f":
            how = "sitofp" if old.kind == "i" else "uitofp"
        else:
            a, b = old.itemsize * (old.kind != "b"), new.itemsize
            how = "trunc" if a > b else "bitcast" if a == b else "sext" if old.kind == "i" else "zext"
    elif new.kind == "f":
        how = "fpext" if old.itemsize < new.itemsize else "fptrunc"
    elif new.itemsize < 4:  # as C does, by way of an int
        return cast(cast(x, old, np.dtype(np.int32)), np.dtype(np.int32), new)
    else:
        how = "fptosi"
    return code.write(kind, f"{how} {code.vector(x.kind)} {x} to {code.vector(kind)}")


def _from_bfloat16(x: Value) -> Value:
    code = x.code
    wide = code.write("i32", f"zext {code.vector('i16')} {x} to {code.vector('i32')}")
    return (wide << 16).number()


def _to_bfloat16(x: Value) -> Value:
    """To the nearest, of two the even one; nan stays nan."""
    code, bits = x.code, x.bits()
    odd = code.write("i32", f"lshr {code.vector('i32')} {bits}, {code.constant(16, 'i32')}") & 1
    rounded = bits + (odd + 0x7FFF)
    rounded = select(x.equals(x), rounded, bits | (1 << 22))
    high = code.write("i32", f"lshr {code.vector('i32')} {rounded}, {code.constant(16, 'i32')}")
    return code.write("i16", f"trunc {code.vector('i32')} {high} to {code.vector('i16')}")


# ---- functions of numbers of one dtype


def _is_nan(x: Value) -> Value:
    return ~x.equals(x) if x.kind[0] != "i" else x ^ x if x.kind == "i1" else ~x.equals(x)


def _add(x: Value, y: Value) -> Value:
    return x | y if x.kind == "i1" else x + y


def _multiply(x: Value, y: Value) -> Value:
    return x & y if x.kind == "i1" else x * y


def _divide(x: Value, y: Value) -> Value:
    if x.kind[0] == "i":
        raise unsupported("divisions of integers")
    return x / y


def _negative(x: Value) -> Value:
    return 0 - x if x.kind[0] == "i" else -x


def _absolute(x: Value) -> Value:
    if x.kind == "i1":
        return x
    return select(x < 0, 0 - x, x) if x.kind[0] == "i" else abs(x)


def _sign(x: Value) -> Value:
    one = x.code.constant(1, x.kind)
    if x.kind[0] == "i":
        return select(x > 0, one, select(x < 0, -1, x))
    return select(x > 0.0, one, select(x < 0.0, -1.0, x))


def _largest(x: Value, y: Value) -> Value:
    if x.kind == "i1":
        return x | y
    return select((x >= y) | _is_nan(x), x, y) if x.kind[0] != "i" else select(x > y, x, y)


def _smallest(x: Value, y: Value) -> Value:
    if x.kind == "i1":
        return x & y
    return select((x <= y) | _is_nan(x), x, y) if x.kind[0] != "i" else select(x < y, x, y)


def _equal(x: Value, y: Value) -> Value:
    return ~(x ^ y) if x.kind == "i1" else x.equals(y)


def _rounded(name: str) -> Callable[[Value], Value]:
    return lambda x: x if x.kind[0] == "i" else x.code.call(f"llvm.{name}", x)


def _signbit(x: Value) -> Value:
    return (x.bits() if x.kind[0] != "i" else x) < 0


def _power(x: Value, y: Value) -> Value:
    """By the C library, a number at a time."""
    if x.kind != "double":
        raise unsupported("powers of integers")
    return functions.in_lanes("pow", y.equals(y) | ~y.equals(y), x, x, y)


def _in_library(name: str) -> Callable[[Value], Value]:
    return lambda x: functions.in_lanes(name, x.equals(x) | ~x.equals(x), x, x)


def _tanh(x: Value) -> Value:
    """x less what is left of it is exact near zero."""
    return select(abs(x) < 0.3, x - functions.tanh_rest(x), copysign(functions.tanh(abs(x)), x))


# name: what it writes for numbers of one kind
DIRECT: dict[str, Callable[..., Value]] = {
    "add": _add,
    "subtract": lambda x, y: x ^ y if x.kind == "i1" else x - y,
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "absolute": _absolute,
    "sign": _sign,
    "maximum": _largest,
    "minimum": _smallest,
    "sqrt": lambda x: sqrt(x),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "trunc": lambda x: x if x.kind[0] == "i" else trunc(x),
    "rint": lambda x: x if x.kind[0] == "i" else rint(x),
    "copysign": lambda x, y: copysign(x, y),
    "equal": _equal,
    "not_equal": lambda x, y: ~_equal(x, y),
    "less": lambda x, y: ~x & y if x.kind == "i1" else x < y,
    "less_equal": lambda x, y: ~x | y if x.kind == "i1" else x <= y,
    "greater": lambda x, y: x & ~y if x.kind == "i1" else x > y,
    "greater_equal": lambda x, y: x | ~y if x.kind == "i1" else x >= y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "invert": lambda x: ~x,
    "isnan": _is_nan,
    "signbit": _signbit,
    "conjugate": lambda x: x,
    **{name: getattr(activations, name) for name in ("relu", "gate", "leaky_relu", "leaky_relu_gradient", "hardsigmoid",
                                                     "hardsigmoid_gradient", "hardswish", "hardswish_gradient")},
    "frac": functions.frac,
}  # fmt: skip
FLOATING = {"divide", "sqrt", "copysign", "relu", "gate", "frac", "leaky_relu", "leaky_relu_gradient", "hardsigmoid",
            "hardsigmoid_gradient", "hardswish", "hardswish_gradient"}  # fmt: skip
# in float64: of float32 numbers the results are rounded once
WIDE: dict[str, Callable[..., Value]] = {
    **{
        name: getattr(functions, name)
        for name in ("exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "erf", "erfc", "erfinv",
                     "normal_cdf", "logit", "hypot", "fmod", "exp2", "tanh_rest", "rsqrt")
    },
    **{
        name: getattr(activations, name)
        for name in ("sigmoid", "log1pexp", "sigmoid_gradient", "tanh_gradient", "silu", "silu_gradient", "gelu",
                     "gelu_gradient", "gelu_tanh", "gelu_tanh_gradient", "elu", "elu_gradient", "celu", "celu_gradient")
    },
    "times_sigmoid": activations.silu,
    "tanh": _tanh,
    "power": _power,
    **{
        name: _in_library(c)
        for name, c in {"tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh",
                        "cosh": "cosh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
                        "lgamma": "lgamma"}.items()
    },
}  # fmt: skip


def supports(name: str, dtype: DType) -> bool:
    """Whether `applied` knows the function of numbers of this dtype."""
    if dtype.kind != "V" and dtype.char not in _KINDS:
        return False
    if name in ("cast", "where", "number", "uniform"):
        return True
    if dtype.kind == "u" or (dtype.itemsize == 2 and dtype.kind != "i"):
        return False
    if name in WIDE:
        return dtype.char in "fd"
    return name in DIRECT and (name not in FLOATING or dtype.kind == "f")


# those that ask the C library, lane by lane: LLVM passes masks of a power of two of lanes only
BY_LANES = frozenset({"sin", "cos", "fmod", "power", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh",
                      "arccosh", "arctanh", "lgamma"})  # fmt: skip


def applied(name: str, code: Code, dtype: DType, operands: list[Value]) -> Value:
    """A function of numbers that all have this dtype."""
    if not supports(name, dtype):
        raise unsupported(f"{name} of {dtype.name}")
    lanes = code.lanes
    if name in BY_LANES and (lanes == 1 or lanes & (lanes - 1)):
        operands = [_resized(x, lanes, 1 << max(lanes - 1, 1).bit_length()) for x in operands]
        return _resized(applied(name, code, dtype, operands), code.lanes, lanes)
    if name in WIDE and dtype.char == "f" and name != "gelu_gradient":
        short, code.short = code.short, True
        value = WIDE[name](*[x.wide() for x in operands]).narrow()
        code.short = short
        return value
    return WIDE[name](*operands) if name in WIDE else DIRECT[name](*operands)


def _resized(x: Value, old: int, new: int) -> Value:
    """Other lanes: the first ones, or more, which are those again."""
    code = x.code
    mask = ", ".join([f"i32 {i % old}" for i in range(new)])
    vector = f"<{old} x {x.kind}>"
    value = code.write(x.kind, f"shufflevector {vector} {x}, {vector} poison, <{new} x i32> <{mask}>")
    code.lanes = new
    return value


def chosen(condition: Value, x: Value, y: Value) -> Value:
    return select(condition, x, y)


def text_of(number: Any, dtype: DType) -> Any:
    """A number that `Code.constant` takes."""
    if dtype.kind == "V" or dtype.char == "e":
        return int(np.array(number).astype(dtype).view(np.int16)) if dtype.kind == "V" else float(number)
    return int(number) if dtype.kind in "biu" else float(number)


def constant(code: Code, number: Any, dtype: DType) -> Value:
    kind = kind_of(dtype)
    if kind == "half":
        return cast(code.constant(float(number), "float"), np.dtype(np.float32), dtype)
    return code.constant(text_of(number, dtype), kind)
