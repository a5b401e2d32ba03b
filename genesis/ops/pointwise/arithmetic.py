"""Arithmetic: sums, products, quotients and their remainders, powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base import dtypes
from genesis.base.errors import ArgumentError, ArgumentValueError, DomainError, DTypeError, message
from genesis.core.call.dispatch import public
from genesis.core.call.older import older_forms
from genesis.core.call.out import write_out
from genesis.core.call.halves import wide
from genesis.core.call.kinds import alias, binary, case, composite, fails
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.inplace_methods import inplace_method
from genesis.core.graph.tensor import Tensor, wrap
from genesis.core.graph.tracing import HostNumber
from genesis.ops.pointwise.choice import nothing, together, where
from genesis.ops.pointwise.rounding import trunc


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
Tensor.__rdiv__ = Tensor.__rtruediv__


def _with_factor(name: str, plain: Any, input: Any, other: Any, alpha: Any) -> Any:
    """A sum with ``other * alpha`` in the dtype of the sum, so that a negative alpha does not wrap around in an unsigned
    one; of 16-bit floats both are rounded once.
    """
    kind = dtypes.result_type(input, other)
    _check_factor(name, "alpha", alpha, kind)
    if isinstance(input, Tensor) and isinstance(other, Tensor) and input.dtype is not other.dtype:
        other = other.to(kind)
    if kind.itemsize == 2 and kind.is_floating_point:
        return plain(wide(input), wide(other) * wide(alpha)).to(kind)
    if kind is dtypes.bool:
        return plain(input, other if alpha else other & False)
    return plain(input, other * alpha)


def _is_one(factor: Any) -> bool:
    """Whether nothing is to be multiplied; a number of the host may be another at the next replay."""
    return factor.__class__ is not HostNumber and bool(factor == 1)


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
        result: Tensor = plain(input, other) if _is_one(alpha) else _with_factor(name, plain, input, other, alpha)
        return result if out is None else write_out(name, result, out)

    scaled.__name__ = scaled.__qualname__ = name
    scaled.__module__ = __name__
    scaled.__doc__ = doc + plain.__doc__.partition(".")[2]
    scaled.op = plain.op  # type: ignore[attr-defined]
    return older_forms("alpha")(scaled)


add = _scaled("add", _plus, "Sum, $x + alpha y$.")

sub = _scaled("sub", _minus, "Difference, $x - alpha y$.")


def _refuse_zeros(name: str, x: Any, y: Any) -> None:
    if x.dtype.kind in "iub" and np.equal(y, 0).any():
        raise DomainError(message(name, "integers are divided by zero", hint="x.double()"))


def _floor_division(x: Any, y: Any) -> Any:
    _refuse_zeros("floor_divide", x, y)
    return np.floor_divide(x, y)


def _remainder(x: Any, y: Any) -> Any:
    _refuse_zeros("remainder", x, y)
    return np.remainder(x, y)


def _fmod(x: Any, y: Any) -> Any:
    _refuse_zeros("fmod", x, y)
    return np.fmod(x, y)


_apart = lambda t: [case(t(2, 3, low=1, high=9), t.positive(3)), case(t(), 0.7), case(t(0, 2), 2.0)]  # noqa: E731


floor_divide = binary(
    "floor_divide",
    _floor_division,
    "Quotient rounded towards minus infinity, $\\lfloor x / y \\rfloor$.",
    "[7., -7.], 2 -> [ 3., -4.]",
    vjp=(nothing, nothing),
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
    "fmod", _fmod, "Remainder with the sign of the dividend.", "[7., -7.], 3 -> [ 1., -1.]",
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


def _not_negative(x: Any) -> Any:
    return (x.real if isinstance(x, Tensor) else x) >= 0


def _is_zero(x: Any) -> Any:
    return x == 0


def log_of(x: Any) -> Any:
    return (
        public("log")(x)
        if isinstance(x, Tensor)
        else math.log(x)
        if x > 0
        else float("nan")
        if x < 0
        else float("-inf")
    )


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
    second="exponent",
    autocast="float32:gpu",
)


@composite(dtypes="fci", inplace=True, out=True)
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


_ALL_POWERS = 4400  # of two, what brings the smallest float64 number to infinity is less


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
        x, y = (v.to(kind) if isinstance(v, Tensor) else v for v in (input, other))
        result = mul(x, pow(2.0, y))
    else:
        x, y = (
            v.to(dtypes.float64) if isinstance(v, Tensor) else wrap(np.asarray(v, np.float64)) for v in (input, other)
        )
        y = y.clamp(-_ALL_POWERS, _ALL_POWERS)  # half of an infinite one is no less
        half = trunc(y * 0.5)
        exp2 = public("exp2")
        result = (x * exp2(half) * exp2(y - half)).to(kind)
    return result if out is None else write_out("ldexp", result, out)


samples(
    ldexp, lambda t: [case(t(2, 3), t(3)), case(t(2, 1), t.int(3, low=0, high=4)), case(t(), t()), case(t(0), t(0))]
)


@composite(halves="wide", inplace=True, out=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Linear interpolation, $x + w (end - x)$, from the end that is nearer: with a weight of 1 it is ``end`` itself.

    >>> import genesis
    >>> genesis.lerp(genesis.tensor([0., 10.]), genesis.tensor([10., 20.]), 0.5)
    tensor([ 5., 15.])
    """
    if isinstance(weight, Tensor):
        far = weight.abs() >= 0.5
        return where(far, end, input) + where(far, weight - 1, weight) * (end - input)
    start, step = (end, weight - 1) if abs(weight) >= 0.5 else (input, weight)
    return start + step * (end - input)


samples(lerp, lambda t: [case(t(2, 3), t(3), 0.3), case(t(3), t(3), t(3))])


@older_forms("value")
@composite(halves="wide", dtypes="fci", inplace=True, out=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Sum with a scaled product, $x + value \\cdot a b$.

    >>> import genesis
    >>> genesis.addcmul(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([3., 4.]), value=0.5)
    tensor([2.5000, 5.0000])
    """
    plain = value.__class__ is float and input._array.dtype.kind == "f"
    if not plain and not _is_one(value):
        _check_factor(
            "addcmul",
            "value",
            value,
            dtypes.promote_types(input.dtype, dtypes.promote_types(tensor1.dtype, tensor2.dtype)),
        )
    input, tensor1, tensor2 = together(input, tensor1, tensor2)
    return input + (tensor1 * tensor2 if _is_one(value) else tensor1 * tensor2 * value)


samples(addcmul, lambda t: [case(t(2, 3), t(3), t(2, 1)), case(t(3), t(3), t(3), value=2)])


@older_forms("value")
@composite(halves="wide", dtypes="fc", inplace=True, out=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Sum with a scaled quotient, $x + value \\cdot a / b$.

    >>> import genesis
    >>> genesis.addcdiv(genesis.ones(2), genesis.tensor([1., 2.]), genesis.tensor([2., 4.]), value=2)
    tensor([2., 2.])
    """
    input, tensor1, tensor2 = together(input, tensor1, tensor2)
    return input + (tensor1 / tensor2 if _is_one(value) else tensor1 / tensor2 * value)


samples(addcdiv, lambda t: [case(t(2, 3), t(3), t.positive(2, 1)), case(t(3), t(3), t.positive(3), value=2)])


Tensor.div = Tensor.true_divide = divide  # type: ignore[attr-defined]
Tensor.div_ = Tensor.true_divide_ = inplace_method(divide.op, "div_")  # type: ignore[attr-defined]


for _name, _call in [
    ("multiply", mul),
    ("subtract", sub),
]:
    globals()[_name] = alias(_name, _call, inplace=True)

__all__ = [
    name
    for name, value in list(globals().items())
    if name[0] != "_" and getattr(value, "__module__", None) == __name__ and (hasattr(value, "op") or name == "where")
]
