"""Scalar functions in Triton's language: for each name that an `Expression` can have, what it writes.

float32 is computed in float32, by the functions of `libdevice` where the hardware has none that is as good: division and
roots are rounded to nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.base.errors import UnsupportedError, message
from genesis.jit.lowering import triton_functions

DType = np.dtype[Any]
_TYPES = {
    "?": "int1", "b": "int8", "h": "int16", "i": "int32", "l": "int64", "q": "int64", "B": "uint8", "H": "uint16",
    "I": "uint32", "L": "uint64", "Q": "uint64", "e": "float16", "f": "float32", "d": "float64",
}  # fmt: skip
_POINTERS = {
    "int1": "i8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
}  # fmt: skip


def unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(message("cuda", f"there is no code of Triton for {what}"))


def type_of(dtype: DType) -> str:
    """Triton's type for numbers of a dtype."""
    name = "bfloat16" if dtype.name == "bfloat16" else _TYPES.get(dtype.char)
    if name is None:
        raise unsupported(dtype.name)
    return name


def pointer_to(dtype: DType) -> str:
    """What a signature says of an operand; flags are bytes in memory."""
    return "*" + _POINTERS[type_of(dtype)]


def constant(number: Any, dtype: DType) -> str:
    """A number as code: of its own type, so that Triton rounds it no other way."""
    kind = type_of(dtype)
    if dtype.kind == "b":
        return f"tl.full((), {int(bool(number))}, tl.int1)"
    if dtype.kind in "iu":
        return f"tl.full((), {int(number)}, tl.{kind})"
    value = float(number)
    text = repr(value) if math.isfinite(value) else f"float('{value}')"
    return f"tl.full((), {text}, tl.{kind})"


def cast(x: str, old: DType, new: DType) -> str:
    """As NumPy converts."""
    if old == new:
        return x
    if new.kind == "b":
        return f"({x} != 0)"
    if new.kind in "iu" and old.kind == "f" and new.itemsize < 4:  # as C does, by way of an int
        return f"{x}.to(tl.int32).to(tl.{type_of(new)})"
    return f"{x}.to(tl.{type_of(new)})"


# ---- functions

# float64 is rounded to nearest by what is there for all, and Triton has no other for it
HEAD = """
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def divided(x, y):
    if x.dtype == tl.float64:
        out = x / y
    else:
        out = tl.div_rn(x, y)
    return out


@triton.jit
def root(x):
    if x.dtype == tl.float64:
        out = tl.sqrt(x)
    else:
        out = tl.sqrt_rn(x)
    return out

""".strip("\n").splitlines()


def _infix(operator: str) -> Callable[..., str]:
    return lambda x, y: f"({x} {operator} {y})"


def _library(name: str) -> Callable[..., str]:
    return lambda *args: f"libdevice.{name}({', '.join(args)})"


def _with_exactness(name: str) -> Callable[..., str]:
    """A function of `triton_activations`."""
    return lambda x: f"{name}({x}, EXACT)"


def _with_slope(name: str) -> Callable[..., str]:
    return lambda g, x: f"({g} * {name}({x}, EXACT))"


def _extreme(name: str) -> Callable[..., str]:
    return lambda x, y: f"tl.{name}({x}, {y}, propagate_nan=tl.PropagateNan.ALL)"


def _sign(x: str) -> str:
    return f"tl.where({x} > 0, 1.0, tl.where({x} < 0, -1.0, {x})).to({x}.dtype)"


def _exp(x: str) -> str:
    return f"libdevice.exp({x})"


def _tanh_rest(x: str) -> str:
    """x - tanh(x), which is exact near zero where it is a series."""
    square = f"({x} * {x})"
    series = f"({x} * {square} * (0.3333333333333333 - {square} * (0.13333333333333333 - {square} * (0.05396825396825397 - {square} * 0.021869488536155203))))"
    return f"tl.where(tl.abs({x}) < 0.25, {series}, {x} - libdevice.tanh({x}))"


# of numbers, floating ones and integers
ANY: dict[str, Callable[..., str]] = {
    "add": _infix("+"),
    "subtract": _infix("-"),
    "multiply": _infix("*"),
    "negative": lambda x: f"(-{x})",
    "absolute": lambda x: f"tl.abs({x})",
    "maximum": _extreme("maximum"),
    "minimum": _extreme("minimum"),
    **{name: _infix(operator) for name, operator in {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=",
                                                     "greater": ">", "greater_equal": ">="}.items()},
    "conjugate": lambda x: x,
}  # fmt: skip
INTEGERS: dict[str, Callable[..., str]] = {
    "bitwise_and": _infix("&"),
    "bitwise_or": _infix("|"),
    "bitwise_xor": _infix("^"),
    "invert": lambda x: f"(~{x})",
    "sign": lambda x: f"tl.where({x} > 0, 1, tl.where({x} < 0, -1, 0)).to({x}.dtype)",
    "isnan": lambda x: f"({x} != {x})",
    "signbit": lambda x: f"({x} < 0)",
    "left_shift": lambda x, y: f"shifted_left({x}, {y})",
    "right_shift": lambda x, y: f"shifted_right({x}, {y})",
    **{name: lambda x: x for name in ("floor", "ceil", "trunc", "rint")},
    "maximum": lambda x, y: f"tl.maximum({x}, {y})",
    "minimum": lambda x, y: f"tl.minimum({x}, {y})",
}
FLAGS: dict[str, Callable[..., str]] = {
    "add": _infix("|"), "multiply": _infix("&"), "maximum": _infix("|"), "minimum": _infix("&"), "subtract": _infix("^"),
    "bitwise_and": _infix("&"), "bitwise_or": _infix("|"), "bitwise_xor": _infix("^"),
    "equal": lambda x, y: f"(({x} ^ {y}) == 0)", "not_equal": _infix("^"), "invert": lambda x: f"({x} == 0)",
    "absolute": lambda x: x, "isnan": lambda x: f"({x} != {x})",
}  # fmt: skip
FLOATS: dict[str, Callable[..., str]] = {
    "divide": lambda x, y: f"divided({x}, {y})",
    "sqrt": lambda x: f"root({x})",
    "sign": _sign,
    "isnan": lambda x: f"({x} != {x})",
    "signbit": lambda x: f"(libdevice.copysign(tl.full((), 1.0, {x}.dtype), {x}) < 0)",
    "floor": lambda x: f"tl.floor({x})",
    "ceil": lambda x: f"tl.ceil({x})",
    "exp": _exp,
    **{name: _library(c) for name, c in {
        "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos",
        "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
        "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv",
        "hypot": "hypot", "fmod": "fmod", "power": "pow", "exp2": "exp2", "copysign": "copysign",
        "trunc": "trunc", "rint": "rint", "arctan2": "atan2", "nextafter": "nextafter", "lgamma": "lgamma"}.items()},
    "relu": lambda x: f"tl.maximum({x}, 0.0, propagate_nan=tl.PropagateNan.ALL)",
    "gate": lambda x, y: f"tl.where({y} == 0, 0.0, {x})",
    **{name: _with_exactness(function) for name, function in {
        "sigmoid": "sigmoid", "silu": "silu", "times_sigmoid": "silu", "gelu": "gelu", "gelu_tanh": "gelu_tanh",
        "normal_cdf": "normal_share"}.items()},
    **{f"{name}_gradient": _with_slope(f"{name}_slope") for name in ("gelu", "gelu_tanh")},
    "rsqrt": lambda x: f"divided(tl.full((), 1.0, {x}.dtype), root({x}))",
    "log1pexp": lambda x: f"(tl.maximum({x}, 0.0, propagate_nan=tl.PropagateNan.ALL) + libdevice.log1p({_exp(f'-tl.abs({x})')}))",
    "sigmoid_gradient": lambda g, y: f"({g} * ({y} * (1.0 - {y})))",
    "tanh_gradient": lambda g, y: f"({g} * (1.0 - {y} * {y}))",
    "tanh_rest": _tanh_rest,
    "frac": lambda x: f"({x} - libdevice.trunc({x}))",
    **triton_functions.CALLS,
    "leaky_relu": lambda x, a: f"tl.where({x} > 0, {x}, {a} * {x})",
    "leaky_relu_gradient": lambda g, x, a: f"tl.where({x} > 0, {g}, {a} * {g})",
}  # fmt: skip


def supports(name: str, dtype: DType) -> bool:
    """Whether `applied` knows the function of numbers of this dtype."""
    if dtype.kind in "cV" or (dtype.kind == "f" and dtype.itemsize == 2) or dtype.char not in _TYPES:
        return False
    return name in _table(dtype)


def _table(dtype: DType) -> dict[str, Callable[..., str]]:
    if dtype.kind == "b":
        return FLAGS
    return {**ANY, **(FLOATS if dtype.kind == "f" else INTEGERS)}


def applied(name: str, dtype: DType, operands: list[str]) -> str:
    """The code for a function of numbers that all have this dtype."""
    if not supports(name, dtype):
        raise unsupported(f"{name} of {dtype.name}")
    return _table(dtype)[name](*operands)


def chosen(condition: str, x: str, y: str) -> str:
    return f"tl.where({condition}, {x}, {y})"
