"""What an elementwise op does to one element, as an expression that an emitter of code can read.

The meaning of an elementwise op is written in NumPy's functions on arrays. Run once on symbols instead, it *is* the
expression:

>>> from genesis.core.call.op import REGISTRY
>>> from genesis.core.call.scalars import rule
>>> print(rule(REGISTRY["rsqrt"], "float32"))
divide(1.0, sqrt(x0))

An expression is made of operands ``x0``, ``x1``, ..., numbers, ``where`` and `ufuncs
<https://numpy.org/doc/stable/reference/ufuncs.html>`_ by their names; `lowered` writes the less common ones with
others, so that `PRIMITIVES` is all an emitter has to know. Every expression has a dtype, and a ``cast`` where it
changes. The special functions stay what they are: an emitter calls a library for them. `evaluate` computes an
expression with NumPy; the tests compare it with the op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call import promotion
from genesis.core.call.op import REGISTRY, Op

SPECIAL = (
    *("erf", "erfc", "erfinv", "normal_cdf", "lgamma", "digamma", "polygamma_of"),
    *[
        "i0",
        "special_i0e",
        "special_i1",
        "special_i1e",
        "special_modified_bessel_i0",
        "special_modified_bessel_i1",
        "special_modified_bessel_k0",
        "special_modified_bessel_k1",
        "special_scaled_modified_bessel_k0",
        "special_scaled_modified_bessel_k1",
        "special_bessel_j0",
        "special_bessel_j1",
        "special_bessel_y0",
        "special_bessel_y1",
        "special_spherical_bessel_j0",
        "special_airy_ai",
        "special_erfcx",
        "special_log_ndtr",
        "special_ndtri",
        "special_zeta",
        "igamma",
        "igammac",
        "special_chebyshev_polynomial_t",
        "special_chebyshev_polynomial_u",
        "special_chebyshev_polynomial_v",
        "special_chebyshev_polynomial_w",
        "special_shifted_chebyshev_polynomial_t",
        "special_shifted_chebyshev_polynomial_u",
        "special_shifted_chebyshev_polynomial_v",
        "special_shifted_chebyshev_polynomial_w",
        "special_hermite_polynomial_h",
        "special_hermite_polynomial_he",
        "special_laguerre_polynomial_l",
        "special_legendre_polynomial_p",
    ],
)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One value: an operand (``name`` is "x", ``args`` its number), a number ("number"), or a function of other
    expressions.
    """

    name: str
    args: tuple[Any, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        if self.name == "x":
            return f"x{self.args[0]}"
        if self.name == "number":
            return repr(self.args[0])
        if self.name == "cast":
            return f"{self.dtype.name}({self.args[0]})"
        return f"{self.name}({', '.join(map(str, self.args))})"

    def walk(self) -> Iterator[Expression]:
        """This expression and all in it, those first that others need; each once."""
        seen: set[int] = set()
        stack: list[tuple[Expression, bool]] = [(self, False)]
        while stack:
            each, ready = stack.pop()
            if ready:
                yield each
            elif id(each) not in seen:
                seen.add(id(each))
                stack.append((each, True))
                stack += [(a, False) for a in reversed(each.args) if isinstance(a, Expression)]


class _Symbol:
    """Stands for an element: NumPy's functions and Python's operators on it make expressions."""

    shape, ndim, size = (), 0, 1

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.expression.dtype

    def astype(self, dtype: Any, **_: Any) -> _Symbol:
        kind = np.dtype(dtype)
        return self if kind == self.dtype else _Symbol(Expression("cast", (self.expression,), kind))

    def copy(self, *_: Any) -> _Symbol:
        return self

    @property
    def real(self) -> _Symbol:
        return self if self.dtype.kind != "c" else _Symbol(Expression("real", (self.expression,), _part(self.dtype)))

    @property
    def imag(self) -> _Symbol:
        return (
            _Symbol(_expressed(0, self.dtype))
            if self.dtype.kind != "c"
            else _Symbol(Expression("imag", (self.expression,), _part(self.dtype)))
        )

    def __bool__(self) -> bool:
        raise TypeError("an expression holds for every element: use np.where, not a branch of Python")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, dtype: Any = None, **options: Any) -> _Symbol:
        if method != "__call__" or options or ufunc.nout != 1:
            raise TypeError(f"{ufunc.__name__}.{method} is no function of one element")
        return _applied(ufunc, args, dtype)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, options: Any) -> Any:
        if function not in _FUNCTIONS:
            raise TypeError(
                f"numpy.{function.__name__} has no expression: write it with ufuncs, or add it to scalars._FUNCTIONS"
            )
        return _FUNCTIONS[function](*args, **options)


def _operator(ufunc: np.ufunc, swapped: bool = False) -> Callable[..., Any]:
    return lambda self, *others: ufunc(*others, self) if swapped else ufunc(self, *others)


_BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARED: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "neg": np.negative,
    "abs": np.absolute,
    "invert": np.invert,
}
for _name, _ufunc in _BINARY.items():
    setattr(_Symbol, f"__{_name}__", _operator(_ufunc))
    setattr(_Symbol, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _ufunc in _COMPARED.items():
    setattr(_Symbol, f"__{_name}__", _operator(_ufunc))


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}")


def _expressed(value: Any, dtype: np.dtype[Any] | None = None) -> Expression:
    """An expression for an argument; numbers take the dtype of what they are used with, as NumPy's promotion has it."""
    if isinstance(value, _Symbol):
        found = value.expression
        return found if dtype is None or found.dtype == dtype else Expression("cast", (found,), dtype)
    number = value.item() if isinstance(value, np.generic | np.ndarray) else value
    kind = np.asarray(value).dtype if dtype is None else dtype
    return Expression("number", (kind.type(number).item() if kind.kind in "fc" else number,), kind)


def _applied(ufunc: np.ufunc, args: Sequence[Any], dtype: Any = None) -> _Symbol:
    given = [
        a.dtype if isinstance(a, _Symbol) else a.dtype if isinstance(a, np.generic | np.ndarray) else type(a)
        for a in args
    ]
    asked: dict[str, Any] = {} if dtype is None else {"signature": (*[None] * len(args), np.dtype(dtype))}
    *computed, result = ufunc.resolve_dtypes((*given, None), **asked)
    return _Symbol(
        Expression(ufunc.__name__, tuple([_expressed(a, kind) for a, kind in zip(args, computed, strict=True)]), result)
    )


def _where(condition: Any, x: Any, y: Any) -> _Symbol:
    kinds = [v.dtype if isinstance(v, _Symbol | np.generic | np.ndarray) else v for v in (x, y)]
    dtype = np.result_type(*kinds)
    return _Symbol(Expression("where", (_expressed(condition), _expressed(x, dtype), _expressed(y, dtype)), dtype))


def _filled(value: Any) -> Callable[..., _Symbol]:
    return lambda like, *given, dtype=None, **_: _Symbol(
        _expressed(given[0] if value is None else value, np.dtype(dtype or like.dtype))
    )


def _angle(z: Any) -> Any:
    return np.arctan2(z.imag, z.real)


def _nan_to_num(
    x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    limits = np.finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return np.where(
        np.isnan(x),
        x.dtype.type(nan),
        np.where(x == math.inf, x.dtype.type(high), np.where(x == -math.inf, x.dtype.type(low), x)),
    )


def _sinc(x: Any) -> Any:
    y = np.where(x == 0, 1, np.pi * x)  # NumPy takes a tiny number in the place of 0, whose quotient is 1, too
    return np.where(x == 0, 1.0, np.sin(y) / y)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.angle: _angle,
    np.nan_to_num: _nan_to_num,
    np.sinc: _sinc,
    np.full_like: _filled(None),
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.real: lambda z: z.real,
    np.imag: lambda z: z.imag,
    np.round: lambda x, decimals=0: np.rint(x) if not decimals else np.rint(x * 10.0**decimals) / 10.0**decimals,
    np.isposinf: lambda x: x == math.inf if x.dtype.kind == "f" else x != x,
    np.isneginf: lambda x: x == -math.inf if x.dtype.kind == "f" else x != x,
    np.copy: lambda x: x,
}


# ---- by hand: meanings that work on whole arrays


def _special(name: str) -> Callable[..., Any]:
    return lambda *args: _Symbol(Expression(name, tuple([_expressed(a) for a in args]), args[0].dtype))


def _sigmoid(x: Any) -> Any:
    wide = x.astype(np.float64) if x.dtype == np.float32 else x
    return (1 / (1 + np.exp(-wide))).astype(x.dtype)


BY_HAND: dict[str, Callable[..., Any]] = {
    **{name: _special(name) for name in SPECIAL},
    # their checks for zeros among integers are the caller's
    "sigmoid": _sigmoid,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
}


def rule(op: Op, *operands: Any, **options: Any) -> Expression:
    """What an elementwise op computes for one element, from operands of these dtypes (one for all, or one each).

    They are converted as the op converts them: to the dtype that it computes in, and the result to the one that it
    gives.

    Args:
        options: values of parameters that are no tensors, where they have no default

    Raises:
        TypeError: the meaning of the op has no expression; it looks at whole arrays

    >>> from genesis.core.call.op import REGISTRY
    >>> print(rule(REGISTRY["square"], "float32"), rule(REGISTRY["exp"], "float16"))
    square(x0) float16(exp(float32(x0)))
    """
    assert op.kind.aligned and op.infer is not None
    kinds = [np.dtype(d) for d in (operands * len(op.tensors) if len(operands) == 1 else operands)]
    specs = [Spec((), kind) for kind in kinds]
    computed = promotion.compute_dtypes(op, specs)
    arguments: list[Any] = []
    for place, parameter in enumerate(op.signature.parameters.values()):
        if place in op.tensors:
            i = op.tensors.index(place)
            operand = _Symbol(Expression("x", (i,), kinds[i]))
            arguments.append(operand if computed[i] is None else operand.astype(computed[i]))
        else:
            arguments.append(options.get(parameter.name, parameter.default))
    meaning: Callable[..., Any] = BY_HAND.get(op.name, getattr(op.meaning, "__wrapped__", op.meaning))
    found = meaning(*arguments)
    found = found if isinstance(found, _Symbol) else _Symbol(_expressed(found))
    return found.astype(op.infer(*specs).dtype).expression


# ---- fewer functions

_LOWERED: dict[str, Callable[..., Any]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "positive": lambda x: x,
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "exp2": lambda x: np.exp(x * math.log(2)),
    "heaviside": lambda x, y: np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0).astype(x.dtype))),
    "logaddexp": lambda x, y: np.where(
        x == y, x + math.log(2), np.maximum(x, y) + np.log1p(np.exp(-np.absolute(x - y)))
    ),
    "logaddexp2": lambda x, y: np.where(
        x == y, x + 1, np.maximum(x, y) + np.log1p(np.exp(np.absolute(x - y) * -math.log(2))) * (1 / math.log(2))
    ),
    "fmax": lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.maximum(x, y))),
    "fmin": lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, np.minimum(x, y))),
    "isinf": lambda x: np.absolute(x) == math.inf,
    "isfinite": lambda x: np.absolute(x) < math.inf,
    "logical_and": lambda x, y: (x != 0) & (y != 0),
    "logical_or": lambda x, y: (x != 0) | (y != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
    "logical_not": lambda x: x == 0,
}
PRIMITIVES = frozenset(
    {
        "x",
        "number",
        "cast",
        "where",
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "remainder",
        "fmod",
        "power",
        "negative",
        "absolute",
        "sign",
        "maximum",
        "minimum",
        "exp",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "hypot",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
        "arctanh",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "copysign",
        "nextafter",
        "signbit",
        "isnan",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "left_shift",
        "right_shift",
        "conjugate",
        "real",
        "imag",
        *SPECIAL,
    }
)


def lowered(expression: Expression) -> Expression:
    """The same value by `PRIMITIVES` only. (Real dtypes; the last digits of ``exp2`` and ``logaddexp`` may differ.)

    >>> from genesis.core.call.op import REGISTRY
    >>> print(lowered(rule(REGISTRY["square"], "float32")))
    multiply(x0, x0)
    """
    done: dict[int, Expression] = {}
    for each in expression.walk():
        args = tuple([done[id(a)] if isinstance(a, Expression) else a for a in each.args])
        found = Expression(each.name, args, each.dtype)
        if each.name in _LOWERED:
            found = lowered(_LOWERED[each.name](*[_Symbol(a) for a in args]).astype(each.dtype).expression)
        done[id(each)] = found
    return done[id(expression)]


def evaluate(expression: Expression, *operands: Any) -> Any:
    """The value of an expression on arrays, computed by NumPy: what emitted code is compared with."""
    values: dict[int, Any] = {}
    for each in expression.walk():
        args = [values[id(a)] if isinstance(a, Expression) else a for a in each.args]
        values[id(each)] = _evaluated(each, args, operands)
    return values[id(expression)]


def _evaluated(each: Expression, args: list[Any], operands: Sequence[Any]) -> Any:
    if each.name == "x":
        return np.asarray(operands[args[0]], each.dtype)
    if each.name == "number":
        return np.asarray(args[0], each.dtype)[()]
    if each.name == "cast":
        return np.asarray(args[0]).astype(each.dtype)
    if each.name == "where":
        return np.where(*args)
    if each.name in SPECIAL:
        op = REGISTRY[each.name]
        rest = [np.asarray(a, each.dtype) if i in op.tensors else int(a) for i, a in enumerate(args) if i]
        return np.asarray(getattr(op.meaning, "__wrapped__", op.meaning)(np.asarray(args[0], each.dtype), *rest))
    return np.asarray(getattr(np, each.name)(*args))
