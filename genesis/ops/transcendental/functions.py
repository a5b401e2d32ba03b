"""Special functions beyond those that are names of `genesis` itself; `genesis.special` lists all.

`bessel`, `incomplete_gamma` and `polynomials` compute them, in float64 and in NumPy alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, DTypeError, message
from genesis.core.call.kinds import binary, case, composite, unary
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.graph.tensor import Tensor
from genesis.ops.creation.sequences import arange
from genesis.ops.pointwise.choice import where
from genesis.ops.pointwise.elementwise import exp, log, square
from genesis.ops.pointwise.special import lgamma
from genesis.ops.transcendental import bessel, incomplete_gamma, polynomials

_positive = lambda t: [case(t.positive()), case(t.positive(2, 3)), case(t.positive(0, 3))]  # noqa: E731
_unit = lambda t: [case(t(low=0.1, high=0.9)), case(t(2, 3, low=0.01, high=0.99)), case(t(0, 3))]  # noqa: E731
_pairs = lambda t: [case(t.positive(2, 3), t.positive(2, 3)), case(t.positive(2, 1), t.positive(3))]  # noqa: E731


def _special(name: str, meaning: Any, doc: str, example: str, **options: Any) -> Any:
    return unary(
        f"special_{name}", meaning, doc, example, result="float", dtypes="fib", inplace=False,
        path=f"special.{name}", torch_name=f"special.{name}", **options,
    )  # fmt: skip


# ---- modified Bessel functions

i0 = unary("i0", bessel.i0, "Modified Bessel function of the first kind of order 0, $I_0$.",
    "[0., 1.] -> [1.0000, 1.2661]", vjp=lambda g, input: g * i1(input), result="float", dtypes="fib")  # fmt: skip
i0e = _special("i0e", bessel.i0e, "$e^{-|x|} I_0(x)$.", "[0., 1.] -> [1.0000, 0.4658]",
    vjp=lambda g, input, out: g * (i1e(input) - input.sgn() * out))  # fmt: skip


def _divided(y: Any, x: Any) -> Any:
    """I1(x) / x, or the same scaled, which is 1/2 at zero."""
    zero = x == 0
    return where(zero, 0.5, y / where(zero, 1.0, x))


i1 = _special("i1", bessel.i1, "Modified Bessel function of the first kind of order 1, $I_1$.",
    "[0., 1.] -> [0.0000, 0.5652]", vjp=lambda g, input, out: g * (i0(input) - _divided(out, input)))  # fmt: skip
i1e = _special("i1e", bessel.i1e, "$e^{-|x|} I_1(x)$.", "[0., 1.] -> [0.0000, 0.2079]",
    vjp=lambda g, input: _i1e_rule(g, input))  # fmt: skip


def _i1e_rule(g: Any, input: Any) -> Any:
    y = i1e(input)
    return g * (i0e(input) - input.sgn() * y - _divided(y, input))


_WITHOUT = {
    "modified_bessel_i0": (bessel.i0, "Modified Bessel function of the first kind, $I_0$.", "[0., 1.] -> [1.0000, 1.2661]"),
    "modified_bessel_i1": (bessel.i1, "Modified Bessel function of the first kind, $I_1$.", "[0., 1.] -> [0.0000, 0.5652]"),
    "modified_bessel_k0": (bessel.k0, "Modified Bessel function of the second kind, $K_0$.", "[1., 2.] -> [0.4210, 0.1139]"),
    "modified_bessel_k1": (bessel.k1, "Modified Bessel function of the second kind, $K_1$.", "[1., 2.] -> [0.6019, 0.1399]"),
    "scaled_modified_bessel_k0": (bessel.k0e, "$e^x K_0(x)$.", "[1., 2.] -> [1.1445, 0.8416]"),
    "scaled_modified_bessel_k1": (bessel.k1e, "$e^x K_1(x)$.", "[1., 2.] -> [1.6362, 1.0335]"),
    "bessel_j0": (bessel.j0, "Bessel function of the first kind, $J_0$.", "[0., 1.] -> [1.0000, 0.7652]"),
    "bessel_j1": (bessel.j1, "Bessel function of the first kind, $J_1$.", "[0., 1.] -> [0.0000, 0.4401]"),
    "bessel_y0": (bessel.y0, "Bessel function of the second kind, $Y_0$.", "[1., 2.] -> [0.0883, 0.5104]"),
    "bessel_y1": (bessel.y1, "Bessel function of the second kind, $Y_1$.", "[1., 2.] -> [-0.7812, -0.1070]"),
    "spherical_bessel_j0": (bessel.spherical_j0, "Spherical Bessel function, $\\sin(x) / x$.", "[0., 1.] -> [1.0000, 0.8415]"),
    "airy_ai": (bessel.airy_ai, "Airy's function $Ai$.", "[0., 1.] -> [0.3550, 0.1353]"),
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    name: _special(name, meaning, doc, example, samples=_positive) for name, (meaning, doc, example) in _WITHOUT.items()
}

# ---- the normal distribution, entropies


def _slope_of_erfcx(x: Any, value: Any) -> Any:
    """$2 x \\cdot erfcx(x) - 2 / \\sqrt{\\pi}$, from 10 on by its asymptotic series: little is left of the difference."""
    far = x > 10
    y = 0.5 / square(where(far, x, 10.0))
    series = 1.0
    for odd in (17, 15, 13, 11, 9, 7, 5, 3):
        series = 1 - odd * y * series
    return where(far, y * series, 1 - where(far, 0.0, x) * value * math.sqrt(math.pi)) * (-2 / math.sqrt(math.pi))


def _slope_of_log_ndtr(x: Any, value: Any) -> Any:
    """The density over the distribution function; their quotient by `erfcx` has no slope where that is infinite."""
    right = x > 1
    far = exp(where(right, -0.5 * x * x - value, 0.0)) * math.sqrt(0.5 / math.pi)
    return where(right, far, math.sqrt(2 / math.pi) / erfcx(where(right, 0.0, x) * -math.sqrt(0.5)))


erfcx = _special("erfcx", incomplete_gamma.erfcx, "Scaled complementary error function, $e^{x^2} erfc(x)$.",
    "[0., 1.] -> [1.0000, 0.4276]", vjp=lambda g, input, out: g * _slope_of_erfcx(input, out))  # fmt: skip
log_ndtr = _special("log_ndtr", incomplete_gamma.log_ndtr, "Logarithm of the standard normal's cumulative distribution.",
    "[0., -40.] -> [-6.9315e-01, -8.0461e+02]",
    vjp=lambda g, input, out: g * _slope_of_log_ndtr(input, out))  # fmt: skip
ndtri = _special("ndtri", incomplete_gamma.ndtri, "Inverse of the standard normal's cumulative distribution.",
    "[0.5, 0.1] -> [ 0.0000, -1.2816]", samples=_unit,
    vjp=lambda g, out: g * (math.sqrt(2 * math.pi) * exp(0.5 * out * out)))  # fmt: skip
entr = _special("entr", lambda x: np.where(x > 0, -x * np.log(np.where(x > 0, x, 1)), np.where(x == 0, 0.0, np.where(np.isnan(x), x, -np.inf))).astype(x.dtype),
    "$-x \\ln x$, zero of zero and -inf below.", "[0., 0.5] -> [0.0000, 0.3466]", samples=_positive,
    vjp=lambda g, input: g * (-log(input) - 1))  # fmt: skip

# ---- two operands


def _pair(name: str, meaning: Any, doc: str, example: str, path: str | None = None, **options: Any) -> Any:
    where_ = {"path": path, "torch_name": path, "inplace": False} if path else {}
    return binary(name, meaning, doc, example, result="float", dtypes="fib", **where_, **options)  # type: ignore[arg-type]


def _times_log1p(g: Any, x: Any, nowhere: Any) -> Any:
    """A gradient times $\\ln(1 + x)$: none where it is zero, and none where there is no logarithm."""
    return where(nowhere, 0.0, xlog1py(g, where(nowhere, 0.0, x)))


xlog1py = _pair(
    "special_xlog1py",
    lambda x, y: np.where(np.equal(x, 0) & ~np.isnan(y), 0, x * np.log1p(y)),
    "$x \\ln(1 + y)$, zero where $x$ is zero.",
    "[0., 2.], [0., 1.] -> [0.0000, 1.3863]",
    "special.xlog1py",
    samples=_pairs,
    vjp=(
        lambda g, input, other: _times_log1p(g, other, (input == 0) & (other <= -1)),
        lambda g, input, other: g * input / (other + 1),
    ),
)


zeta = _pair(
    "special_zeta",
    incomplete_gamma.zeta,
    "Hurwitz' zeta function, $\\sum_{k \\ge 0} (k + q)^{-s}$; nan for s below 1.",
    "[2., 3.], [1., 1.] -> [1.6449, 1.2021]",
    "special.zeta",
    samples=lambda t: [
        case(t.positive(2, 3).detach() + 1, t.positive(2, 3)),
        case(t.positive(3).detach() + 1, t.positive(2, 1)),
    ],
    vjp=(None, lambda g, input, other: g * (-input * zeta(input + 1, other))),
)


def _gamma_density(a: Any, x: Any) -> Any:
    return exp((a - 1) * log(x) - x - lgamma(a))


igamma = _pair(
    "igamma",
    incomplete_gamma.gammainc,
    "Regularised lower incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_0^x t^{a-1} e^{-t} dt$.",
    "[2., 2.], [1., 3.] -> [0.2642, 0.8009]",
    samples=lambda t: [
        case(t.positive(2, 3).detach(), t.positive(2, 3)),
        case(t.positive(2, 1).detach(), t.positive(3)),
    ],
    vjp=(None, lambda g, input, other: g * _gamma_density(input, other)),
)
igammac = _pair(
    "igammac",
    incomplete_gamma.gammaincc,
    "Regularised upper incomplete gamma function, $\\frac{1}{\\Gamma(a)} \\int_x^\\infty t^{a-1} e^{-t} dt$.",
    "[2., 2.], [1., 3.] -> [0.7358, 0.1991]",
    samples=lambda t: [
        case(t.positive(2, 3).detach(), t.positive(2, 3)),
        case(t.positive(2, 1).detach(), t.positive(3)),
    ],
    vjp=(None, lambda g, input, other: g * -_gamma_density(input, other)),
)

_POLYNOMIALS = {
    "chebyshev_polynomial_t": (polynomials.chebyshev_t, "Chebyshev polynomial of the first kind, $T_n(x)$", "[0.5, 2.], [2., 3.] -> [-0.5000, 26.0000]"),
    "chebyshev_polynomial_u": (polynomials.chebyshev_u, "Chebyshev polynomial of the second kind, $U_n(x)$", "[0.5, 2.], [2., 3.] -> [ 0., 56.]"),
    "chebyshev_polynomial_v": (polynomials.chebyshev_v, "Chebyshev polynomial of the third kind, $V_n(x)$", "[0.5, 2.], [2., 3.] -> [-1., 41.]"),
    "chebyshev_polynomial_w": (polynomials.chebyshev_w, "Chebyshev polynomial of the fourth kind, $W_n(x)$", "[0.5, 2.], [2., 3.] -> [ 1., 71.]"),
    "shifted_chebyshev_polynomial_t": (polynomials.shifted_t, "$T_n(2x - 1)$", "[0.75, 1.5], [2., 3.] -> [-0.5000, 26.0000]"),
    "shifted_chebyshev_polynomial_u": (polynomials.shifted_u, "$U_n(2x - 1)$", "[0.75, 1.5], [2., 3.] -> [ 0., 56.]"),
    "shifted_chebyshev_polynomial_v": (polynomials.shifted_v, "$V_n(2x - 1)$", "[0.75, 1.5], [2., 3.] -> [-1., 41.]"),
    "shifted_chebyshev_polynomial_w": (polynomials.shifted_w, "$W_n(2x - 1)$", "[0.75, 1.5], [2., 3.] -> [ 1., 71.]"),
    "hermite_polynomial_h": (polynomials.hermite_h, "Physicist's Hermite polynomial, $H_n(x)$", "[0.5, 2.], [2., 3.] -> [-1., 40.]"),
    "hermite_polynomial_he": (polynomials.hermite_he, "Probabilist's Hermite polynomial, $He_n(x)$", "[0.5, 2.], [2., 3.] -> [-0.7500,  2.0000]"),
    "laguerre_polynomial_l": (polynomials.laguerre_l, "Laguerre polynomial, $L_n(x)$", "[0.5, 2.], [2., 3.] -> [ 0.1250, -0.3333]"),
    "legendre_polynomial_p": (polynomials.legendre_p, "Legendre polynomial, $P_n(x)$", "[0.5, 2.], [2., 3.] -> [-0.1250, 17.0000]"),
}  # fmt: skip
_degrees = lambda t: [  # noqa: E731
    case(t(2, 3), t.int(2, 3, low=0, high=6).to(t.dtype)),
    case(t(3), t.int(3, low=-1, high=3).to(t.dtype)),
]
for _name, (_meaning, _doc, _example) in _POLYNOMIALS.items():
    FUNCTIONS[_name] = _pair(
        f"special_{_name}", _meaning, _doc + "; zero for negative n.", _example, f"special.{_name}", samples=_degrees
    )

# ---- compositions


@composite(dtypes="f", halves="wide", inplace=True, out=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function,
    $\\frac{p (p - 1)}{4} \\ln \\pi + \\sum_{j=1}^p \\ln \\Gamma(x + (1 - j) / 2)$.

    Raises:
        ValueError: ``p`` is below 1

    >>> import genesis
    >>> genesis.mvlgamma(genesis.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if isinstance(p, bool) or not isinstance(p, int) or p < 1:
        raise ArgumentValueError(message("mvlgamma", f"p must be an integer of at least 1, got {p!r}"))
    if input.is_complex():
        raise DTypeError(message("mvlgamma", f"the input must be floating, it is {input.dtype}"))
    shifts = arange(p, dtype=input.dtype, device=input.device) * -0.5
    return lgamma(input.unsqueeze(-1) + shifts).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


samples(mvlgamma, lambda t: [case(t.positive(2, 3) + 1, 2), case(t.positive() + 1, 1)])
wrong_inputs(
    mvlgamma,
    (lambda t: case(t(3), 0), ValueError, "mvlgamma: p must be an integer of at least 1, got 0"),
)

FUNCTIONS |= {
    "i0": i0, "i0e": i0e, "i1": i1, "i1e": i1e, "erfcx": erfcx, "log_ndtr": log_ndtr, "ndtri": ndtri, "entr": entr,
    "xlog1py": xlog1py, "zeta": zeta, "gammainc": igamma, "gammaincc": igammac, "multigammaln": mvlgamma,
}  # fmt: skip

__all__ = ["i0", "igamma", "igammac", "mvlgamma"]
