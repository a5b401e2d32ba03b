"""What an elementwise op does to one element, as an expression that an emitter of code can read.

The meaning of an elementwise op is written in NumPy's functions on arrays. Run once on symbols instead, it *is* the
expression:

>>> from genesis.core.call.op import REGISTRY
>>> from genesis.core.call.scalars import rule
>>> print(rule(REGISTRY["rsqrt"], "float32"))
divide(1.0, sqrt(x0))

An expression is made of operands ``x0``, ``x1``, ..., numbers, ``where`` and `ufuncs
<https://numpy.org/doc/stable/reference/ufuncs.html>`_ by their names; `lowered` writes the less common ones with
others (`core/call/scalar_lowering.py`). Every expression has a dtype, and a ``cast`` where it changes. The special
functions stay what they are: an emitter calls a library for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.core.call import promotion
from genesis.core.call.op import Op

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


class Symbol:
    """Stands for an element: NumPy's functions and Python's operators on it make expressions."""

    shape, ndim, size = (), 0, 1

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.expression.dtype

    def astype(self, dtype: Any, **_: Any) -> Symbol:
        kind = np.dtype(dtype)
        return self if kind == self.dtype else Symbol(Expression("cast", (self.expression,), kind))

    def copy(self, *_: Any) -> Symbol:
        return self

    @property
    def real(self) -> Symbol:
        return self if self.dtype.kind != "c" else Symbol(Expression("real", (self.expression,), _part(self.dtype)))

    @property
    def imag(self) -> Symbol:
        return (
            Symbol(_expressed(0, self.dtype))
            if self.dtype.kind != "c"
            else Symbol(Expression("imag", (self.expression,), _part(self.dtype)))
        )

    def __bool__(self) -> bool:
        raise TypeError("an expression holds for every element: use np.where, not a branch of Python")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, dtype: Any = None, **options: Any) -> Symbol:
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
    setattr(Symbol, f"__{_name}__", _operator(_ufunc))
    setattr(Symbol, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _ufunc in _COMPARED.items():
    setattr(Symbol, f"__{_name}__", _operator(_ufunc))


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"f{dtype.itemsize // 2}")


def _expressed(value: Any, dtype: np.dtype[Any] | None = None) -> Expression:
    """An expression for an argument; numbers take the dtype of what they are used with, as NumPy's promotion has it."""
    if isinstance(value, Symbol):
        inner = value.expression
        return inner if dtype is None or inner.dtype == dtype else Expression("cast", (inner,), dtype)
    number = value.item() if isinstance(value, np.generic | np.ndarray) else value
    kind = np.asarray(value).dtype if dtype is None else dtype
    return Expression("number", (kind.type(number).item() if kind.kind in "fc" else number,), kind)


def _applied(ufunc: np.ufunc, args: Sequence[Any], dtype: Any = None) -> Symbol:
    given = [
        a.dtype if isinstance(a, Symbol) else a.dtype if isinstance(a, np.generic | np.ndarray) else type(a)
        for a in args
    ]
    asked: dict[str, Any] = {} if dtype is None else {"signature": (*[None] * len(args), np.dtype(dtype))}
    *computed, result = ufunc.resolve_dtypes((*given, None), **asked)
    return Symbol(
        Expression(ufunc.__name__, tuple([_expressed(a, kind) for a, kind in zip(args, computed, strict=True)]), result)
    )


def _where(condition: Any, x: Any, y: Any) -> Symbol:
    kinds = [v.dtype if isinstance(v, Symbol | np.generic | np.ndarray) else v for v in (x, y)]
    dtype = np.result_type(*kinds)
    return Symbol(Expression("where", (_expressed(condition), _expressed(x, dtype), _expressed(y, dtype)), dtype))


def _filled(value: Any) -> Callable[..., Symbol]:
    return lambda like, *given, dtype=None, **_: Symbol(
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
    def call(x: Any, *others: Any) -> Symbol:  # a number besides has its dtype
        return Symbol(Expression(name, tuple([_expressed(a, x.dtype) for a in (x, *others)]), x.dtype))

    return call


def _sigmoid(x: Any) -> Any:
    wide = x.astype(np.float64) if x.dtype == np.float32 else x
    return (1 / (1 + np.exp(-wide))).astype(x.dtype)


BY_HAND: dict[str, Callable[..., Any]] = {
    **{name: _special(name) for name in SPECIAL},
    # their checks for zeros among integers are the caller's
    "sigmoid": _sigmoid,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
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
    for index, parameter in enumerate(op.signature.parameters.values()):
        if index in op.tensors:
            i = op.tensors.index(index)
            operand = Symbol(Expression("x", (i,), kinds[i]))
            arguments.append(operand if computed[i] is None else operand.astype(computed[i]))
        else:
            arguments.append(options.get(parameter.name, parameter.default))
    meaning: Callable[..., Any] = BY_HAND.get(op.name, getattr(op.meaning, "__wrapped__", op.meaning))
    result = meaning(*arguments)
    result = result if isinstance(result, Symbol) else Symbol(_expressed(result))
    return result.astype(op.infer(*specs).dtype).expression
