"""Special functions, to double precision and in NumPy alone.

erf and erfc follow W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969);
lgamma uses Lanczos' approximation (g = 7, n = 9) with the reflection formula; digamma the recurrence and its
asymptotic series (Abramowitz and Stegun 6.3.18); polygamma the Hurwitz zeta function; erfinv the starting value of M. Giles (2010) and Newton's method.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.core.kinds import case, composite, elementwise, fails, unary
from genesis.arrays.protocol import Array
from genesis.core.tensor import Tensor
from genesis.ops.elementwise import exp

_SMALL_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3)
_SMALL_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
    8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_MIDDLE_Q = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
_LARGE_P = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1, 1.60837851487422766e-2,
    6.58749161529837803e-4,
)  # fmt: skip
_LARGE_Q = (
    1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3,
)  # fmt: skip


def _ratio(x: Any, p: tuple[float, ...], q: tuple[float, ...]) -> Any:
    top, bottom = np.full_like(x, p[0]), np.full_like(x, q[0])
    for a in p[1:]:
        top = top * x + a
    for b in q[1:]:
        bottom = bottom * x + b
    return top / bottom


def _erfc_scale(a: Any) -> Any:
    """$e^{a^2} erfc(a)$ for a > 0.46875."""
    scale = _ratio(a, _MIDDLE_P, _MIDDLE_Q)
    far = a > 4.0
    if far.any():
        b = np.where(far, a, 5.0)
        z = 1.0 / (b * b)
        scale = np.where(far, (1 / math.sqrt(math.pi) - z * _ratio(z, _LARGE_P, _LARGE_Q)) / b, scale)
    return scale


def _exp_of_square(a: Any, factor: float = 1.0) -> Any:
    """$e^{-c a^2}$ for a > 0; a is split so that the rounding of its square does not matter."""
    coarse = np.trunc(np.minimum(a, 45.0) * 16.0) / 16.0
    rest = (a - coarse) * (a + coarse)
    return np.exp(-factor * coarse * coarse) * np.exp(-factor * rest)


def _erfc_tail(a: Any) -> Any:
    """erfc for a > 0.46875."""
    return _exp_of_square(a) * _erfc_scale(a)


def _erf(x: Any) -> Any:
    x = np.asarray(x)
    work = x.astype(np.float64)
    a = np.abs(work)
    small = work * _ratio(np.minimum(a, 0.5) ** 2, _SMALL_P, _SMALL_Q)
    if not (a > 0.46875).any():
        return small.astype(x.dtype)
    b = np.clip(a, 0.46875, 30.0)
    return np.where(a <= 0.46875, small, np.where(np.isnan(work), work, np.copysign(1.0 - _erfc_tail(b), work))).astype(x.dtype)


def _erfc(x: Any) -> Any:
    x = np.asarray(x)
    work = x.astype(np.float64)
    a = np.abs(work)
    tail = _erfc_tail(np.clip(a, 0.46875, 30.0))
    large = np.where(work > 0, tail, 2.0 - tail)
    small = 1.0 - work * _ratio(np.minimum(a, 0.5) ** 2, _SMALL_P, _SMALL_Q)
    return np.where(np.isnan(work), work, np.where(a <= 0.46875, small, large)).astype(x.dtype)


def _normal_cdf(x: Any) -> Any:
    """$erfc(-x / \\sqrt 2) / 2$, with the exponential of x itself: the quotient's rounding would be felt far below zero."""
    x = np.asarray(x)
    work = x.astype(np.float64)
    a = np.abs(work) / math.sqrt(2)
    tail = 0.5 * _exp_of_square(np.abs(work), 0.5) * _erfc_scale(np.clip(a, 0.46875, 32.0))
    small = 0.5 + 0.5 * np.sign(work) * a * _ratio(np.minimum(a, 0.5) ** 2, _SMALL_P, _SMALL_Q)
    value = np.where(a <= 0.46875, small, np.where(work > 0, 1.0 - tail, tail))
    return np.where(np.isnan(work), work, value).astype(x.dtype)


def _erfinv(y: Any) -> Any:
    y = np.asarray(y)
    work = np.clip(y.astype(np.float64), -1, 1)
    with np.errstate(all="ignore"):
        w = -np.log((1 - work) * (1 + work))
        near = w - 2.5
        p = np.full_like(w, 2.81022636e-08)
        for c in (3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941):
            p = p * near + c
        far = np.sqrt(w) - 3.0
        q = np.full_like(w, -0.000200214257)
        for c in (0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682):
            q = q * far + c
        x = np.where(w < 5, p, q) * work
        for _ in range(2):  # Newton; the residual is taken from the smaller of erf and erfc
            residual = np.where(np.abs(work) < 0.5, _erf(x) - work, np.sign(work) * (1 - np.abs(work) - _erfc(np.abs(x))))
            x = x - residual * (math.sqrt(math.pi) / 2) * np.exp(x * x)
        x = np.where(np.abs(work) == 1, np.copysign(np.inf, work), x)
    return np.where(np.abs(y) > 1, np.nan, np.where(np.isnan(y), np.nan, x)).astype(y.dtype)


_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _lgamma_positive(x: Any) -> Any:
    """ln gamma for x >= 0.5; series about 1 and 2 are not needed at the tolerance of float64 tests."""
    z = x - 1
    total = np.full_like(z, _LANCZOS[0])
    for i, c in enumerate(_LANCZOS[1:], 1):
        total = total + c / (z + i)
    t = z + 7.5
    return 0.5 * math.log(2 * math.pi) + (z + 0.5) * np.log(t) - t + np.log(total)


def _lgamma(x: Any) -> Any:
    work = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        right = _lgamma_positive(np.where(work < 0.5, 1 - work, work))
        left = math.log(math.pi) - np.log(np.abs(np.sin(math.pi * (work - np.round(work))))) - right
        value = np.where(work < 0.5, left, right)
        value = np.where((work == 1) | (work == 2), 0.0, value)
    return np.where(np.isinf(work), np.inf, value).astype(np.asarray(x).dtype)


def _digamma(x: Any) -> Any:
    work = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        reflect = work < 0
        z = np.where(reflect, 1 - work, work)
        shift = np.zeros_like(z)
        for _ in range(10):
            small = z < 10
            shift = np.where(small, shift - 1 / z, shift)
            z = np.where(small, z + 1, z)
        y = 1 / (z * z)
        series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
        value = np.log(z) - 0.5 / z - series + shift
        value = np.where(reflect, value - math.pi / np.tan(math.pi * (work - np.round(work))), value)
        value = np.where(reflect & (work == np.round(work)), np.nan, value)
        value = np.where(work == 0, np.copysign(np.inf, -work), value)
    return value.astype(np.asarray(x).dtype)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)  # B2, B4, ...


def _hurwitz(s: int, x: Any) -> Any:
    """$\\zeta(s, x) = \\sum_{k \\ge 0} (x + k)^{-s}$ for $x \\ge 0$, by the Euler-Maclaurin formula (Johansson 2015, section 2)."""
    steps = 19 + s
    total = np.zeros_like(x)
    for k in range(steps):
        total += (x + k) ** -s
    q = x + steps
    total += q ** (1 - s) / (s - 1) + 0.5 * q**-s
    factor, power = float(s), q ** (-s - 1)
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        total += bernoulli * factor / math.factorial(2 * j) * power
        factor *= (s + 2 * j - 1) * (s + 2 * j)
        power = power / (q * q)
    return total


def _polygamma(x: Any, n: int) -> Any:
    """$(-1)^{n+1} n! \\zeta(n + 1, x)$; the terms of a negative x are those of three arguments that are not negative."""
    work = np.asarray(x, dtype=np.float64)
    s, below = n + 1, np.floor(work)
    with np.errstate(all="ignore"):
        negative = work < 0
        total = _hurwitz(s, np.where(negative, work - below, work))
        if negative.any():
            above = np.where(work == below, 1.0, below + 1 - work)
            between = _hurwitz(s, above) - _hurwitz(s, 1 - work)  # from x up to zero, with the signs turned
            total += np.where(negative, (-1) ** s * between, 0.0)
        value = (-1) ** (n + 1) * math.factorial(n) * total
        value = np.where(np.isposinf(work), 0.0, np.where(np.isneginf(work), np.nan, value))
    return value.astype(np.asarray(x).dtype)


_positive = lambda t: [case(t.positive()), case(t.positive(2, 3)), case(t.positive(0, 3))]  # noqa: E731
_inside = lambda t: [case(t(low=-0.9, high=0.9)), case(t(2, 3, low=-0.9, high=0.9))]  # noqa: E731
_SLOPE = 2 / math.sqrt(math.pi)

erf = unary("erf", _erf, "Error function, $\\frac{2}{\\sqrt\\pi} \\int_0^x e^{-t^2} dt$.", "[0., 1.] -> [0.0000, 0.8427]",
    vjp=lambda g, input: g * (_SLOPE * exp(-(input * input))), result="float", dtypes="fib")  # fmt: skip
erfc = unary("erfc", _erfc, "One minus the error function, accurate for large $x$.", "[0., 1.] -> [1.0000, 0.1573]",
    vjp=lambda g, input: g * (-_SLOPE * exp(-(input * input))), result="float", dtypes="fib")  # fmt: skip
normal_cdf = unary("normal_cdf", _normal_cdf, "Cumulative distribution of the standard normal, $\\Phi(x) = erfc(-x / \\sqrt 2) / 2$.",
    "[0., 1.] -> [0.5000, 0.8413]", vjp=lambda g, input: g * (exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi))), result="float", dtypes="fib",
    torch_name="special.ndtr", path="ops.special.normal_cdf", inplace=False)  # fmt: skip
erfinv = unary("erfinv", _erfinv, "Inverse of the error function.", "[0., 0.5] -> [0.0000, 0.4769]",
    vjp=lambda g, out: g * (math.sqrt(math.pi) / 2 * exp(out * out)), result="float", dtypes="fib", samples=_inside)  # fmt: skip
lgamma = unary("lgamma", _lgamma, "Logarithm of the absolute value of the gamma function.", "[1., 4.] -> [0.0000, 1.7918]",
    vjp=lambda g, input: g * digamma(input), result="float", dtypes="fib", samples=_positive)  # fmt: skip
digamma = unary("digamma", _digamma, "Derivative of ln gamma.", "[1., 2.] -> [-0.5772,  0.4228]",
    vjp=lambda g, input: g * polygamma_of(input, 1), result="float", dtypes="fib", samples=_positive)  # fmt: skip


def _check_order(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ArgumentValueError(message("polygamma", f"n must be an integer of at least 0, got {n!r}"))
    if n > 170:  # the sum has as many terms
        raise ArgumentValueError(message("polygamma", f"n must be at most 170, got {n}: its factorial is no float64"))
    return n


@elementwise({"input": lambda g, input, n: g * polygamma(n + 1, input)}, result="float", dtypes="fib", inplace=False, torch_name="",
             samples=lambda t: [case(t.positive(2, 3), 1), case(t.positive(), 2), case(t.positive(0), 3)])  # fmt: skip
def polygamma_of(input: Array, n: int) -> Any:
    """The derivative of order $n \\ge 1$ of `digamma`, with the tensor first.

    >>> import genesis
    >>> genesis.ops.special.polygamma_of(genesis.tensor([1.0, 2.0]), 1)
    tensor([1.6449, 0.6449])
    """
    return _polygamma(input, n)


@composite(method=False, dtypes="f", samples=lambda t: [case(1, t.positive(2, 3)), case(0, t.positive(3)), case(4, t.positive())],
           fails=fails((lambda t: case(-1, t(2)), ValueError, "polygamma: n must be an integer of at least 0, got -1")))  # fmt: skip
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order $n$ of `digamma`, $\\psi^{(n)}(x) = (-1)^{n+1} n! \\, \\zeta(n + 1, x)$.

    Element by element, computed in float64; integers give the default floating dtype. NaN far below -10000.

    Raises:
        ValueError: ``n`` is negative or no integer

    >>> import genesis
    >>> genesis.polygamma(1, genesis.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    return polygamma_of(input, n) if _check_order(n) else digamma(input)


def _logit_rule(g: Any, input: Any) -> Any:
    return g / (input * (1 - input))


logit = unary("logit", lambda x: np.log(x / (1 - x)), "Inverse of the sigmoid, $\\ln(x / (1 - x))$.", "[0.5, 0.75] -> [0.0000, 1.0986]",
    vjp=_logit_rule, result="float", dtypes="fib",
    samples=lambda t: [case(t(low=0.1, high=0.9)), case(t(2, 3, low=0.1, high=0.9))])  # fmt: skip

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "logit", "polygamma"]
