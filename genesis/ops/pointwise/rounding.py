"""Rounding and signs, whose derivative is zero; questions, whose result is bool."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.arrays.protocol import Array
from genesis.base import dtypes
from genesis.base.errors import UnsupportedError, message
from genesis.core.call.kinds import alias, binary, case, elementwise, unary
from genesis.core.call.op import samples
from genesis.ops.pointwise.choice import nothing, where


def _rounding(ufunc: Any) -> Any:
    return lambda x: x if x.dtype.kind in "iu" else ufunc(x)


def _signed(x: Any) -> Any:
    return x if x.dtype.kind == "b" else np.sign(x)


_off_grid = lambda t: [case(t(low=0.1, high=0.4)), case(t(2, 3, low=1.1, high=1.4)), case(t(0, 2))]  # noqa: E731


sign = unary("sign", _signed, "Sign: -1, 0 or 1.", "[3., 0., -2.] -> [ 1.,  0., -1.]", vjp=nothing, dtypes="fib")

sgn = unary("sgn", _signed, "Sign, of complex numbers $x / |x|$.", "[3., 0., -2.] -> [ 1.,  0., -1.]",
    vjp=lambda g, input, out: _sgn_rule(g, input, out), dtypes="fcib", holomorphic=False)  # fmt: skip


def _sgn_rule(g: Any, input: Any, out: Any) -> Any:
    """For complex z: the part of g across z, over |z| (real numbers: zero)."""
    if not input.is_complex():
        return nothing(g)
    size = abs(input)
    across = g - out * (g * out.conj()).real
    return where(size == 0, 0.0, across / where(size == 0, 1.0, size))


floor = unary(
    "floor",
    _rounding(np.floor),
    "Largest integer not above $x$.",
    "[1.5, -1.5] -> [ 1., -2.]",
    vjp=nothing,
    dtypes="fi",
    samples=_off_grid,
)

ceil = unary(
    "ceil",
    _rounding(np.ceil),
    "Smallest integer not below $x$.",
    "[1.5, -1.5] -> [ 2., -1.]",
    vjp=nothing,
    dtypes="fi",
    samples=_off_grid,
)

trunc = unary(
    "trunc",
    _rounding(np.trunc),
    "Integer part of $x$.",
    "[1.5, -1.5] -> [ 1., -1.]",
    vjp=nothing,
    dtypes="fi",
    samples=_off_grid,
)

frac = unary("frac", lambda x: x - np.trunc(x), "Fractional part, $x - trunc(x)$.", "[1.5, -1.5] -> [ 0.5000, "
                                                                                    "-0.5000]",
    vjp=lambda g: g, dtypes="f", samples=_off_grid)  # fmt: skip


@elementwise({"input": nothing}, dtypes="fi")
def round(input: Array, *, decimals: int = 0) -> Any:
    """Round to ``decimals`` digits, halves to the even neighbour (IEEE 754).

    Integers are returned as they are. The derivative is zero.

    Raises:
        NotImplementedError: ``decimals`` of integers

    >>> import genesis
    >>> genesis.round(genesis.tensor([0.5, 1.5, 2.25]), decimals=0)
    tensor([0., 2., 2.])
    """
    if input.dtype.kind not in "iu":
        return np.round(input, int(decimals))
    if decimals:
        problem = f"integers are rounded to no other digits, got decimals={decimals}"
        raise UnsupportedError(message("round", problem, hint="x.double()"))
    return input


samples(round, _off_grid)


copysign = binary("copysign", np.copysign, "The size of $x$ with the sign of $y$.", "[1., -2.], -1 -> [-1., -2.]",
    vjp=(lambda g, input, out: g * (sign(input) * sign(out)), nothing), result="float", dtypes="fib",
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
    vjp=(lambda g, input, other: where(input == other, 0.0, g), nothing),
)


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


def _real_of(operands: Any, want: str) -> Any:
    dtype = operands[0].dtype
    real = dtypes.from_numpy(dtype).to_real().np
    if want == "result":
        return real
    return [np.dtype(np.float32) if dtypes.from_numpy(dtype).itemsize == 2 and dtype.kind not in "iu" else dtype]


abs = unary(
    "abs", np.absolute, "Absolute value, $|x|$.", "[1., -2.] -> [1., 2.]",
    vjp=lambda g, input: g * sgn(input), result=_real_of, operators=["__abs__"], dtypes="fci", holomorphic=False,
    keeps_floats=True,
)  # fmt: skip


def _as_given(operands: Any, want: str) -> Any:
    """Limits are those of the dtype itself, also where others compute in float32."""
    return operands[0].dtype if want == "result" else [operands[0].dtype]


@elementwise({"input": lambda g, input: where(isfinite(input), g, 0.0)}, result=_as_given, dtypes="fcib")
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
    result = np.where(np.isnan(input), np.asarray(nan).astype(kind), input)
    return np.where(
        np.isposinf(input),
        np.asarray(high).astype(kind),
        np.where(np.isneginf(input), np.asarray(low).astype(kind), result),
    )


samples(nan_to_num, lambda t: [case(t(2, 3)), case(t(0)), case(t(), 1.0)])


heaviside = binary(
    "heaviside",
    lambda x, y: np.where(x, True, y) if x.dtype.kind == "b" else np.heaviside(x, y),
    "Step: 0 below zero, 1 above, $y$ at zero.",
    "[-1., 0., 2.], [0.5, 0.5, 0.5] -> [0.0000, 0.5000, 1.0000]",
    vjp=(nothing, lambda g, input: where(input == 0, g, 0.0)),
    dtypes="fib",
    second="values",
)

for _name, _call in [
    ("absolute", abs),
    ("fix", trunc),
]:
    globals()[_name] = alias(_name, _call, inplace=True)

__all__ = [
    name
    for name, value in list(globals().items())
    if name[0] != "_" and getattr(value, "__module__", None) == __name__ and (hasattr(value, "op") or name == "where")
]
