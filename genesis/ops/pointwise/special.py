"""Special functions; `error_functions` and `gamma_functions` compute them, to double precision and in NumPy alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis.base.errors import ArgumentValueError, message
from genesis.core.call.op import samples, wrong_inputs
from genesis.core.call.kinds import case, composite, elementwise, unary
from genesis.arrays.protocol import Array
from genesis.core.call.refusal import explained
from genesis.core.call.writes import inplace
from genesis.core.graph.tensor import Tensor
from genesis.ops.pointwise import error_functions, gamma_functions
from genesis.ops.pointwise.choice import where
from genesis.ops.pointwise.elementwise import exp, square
from genesis.ops.pointwise.pieces import in_float64

_positive = lambda t: [case(t.positive()), case(t.positive(2, 3)), case(t.positive(0, 3))]  # noqa: E731
_inside = lambda t: [case(t(low=-0.9, high=0.9)), case(t(2, 3, low=-0.9, high=0.9))]  # noqa: E731
_SLOPE = 2 / math.sqrt(math.pi)

erf = unary(
    "erf",
    error_functions.erf,
    "Error function, $\\frac{2}{\\sqrt\\pi} \\int_0^x e^{-t^2} dt$.",
    "[0., 1.] -> [0.0000, 0.8427]",
    vjp=lambda g, input: g * (_SLOPE * exp(-(input * input))),
    result="float",
    dtypes="fib",
)
erfc = unary(
    "erfc",
    error_functions.erfc,
    "One minus the error function, accurate for large $x$.",
    "[0., 1.] -> [1.0000, 0.1573]",
    vjp=lambda g, input: g * (-_SLOPE * exp(-(input * input))),
    result="float",
    dtypes="fib",
)
normal_cdf = unary(
    "normal_cdf",
    error_functions.normal_cdf,
    "Cumulative distribution of the standard normal, $\\Phi(x) = erfc(-x / \\sqrt 2) / 2$.",
    "[0., 1.] -> [0.5000, 0.8413]",
    vjp=lambda g, input: g * (exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi))),
    result="float",
    dtypes="fib",
    torch_name="special.ndtr",
    path="ops.pointwise.special.normal_cdf",
    inplace=False,
)
erfinv = unary("erfinv", error_functions.erfinv, "Inverse of the error function.", "[0., 0.5] -> [0.0000, 0.4769]",
    vjp=lambda g, input: g * (math.sqrt(math.pi) / 2 * exp(square(erfinv(input)))), result="float", dtypes="fib", samples=_inside,
    autocast="float32:gpu")  # fmt: skip
lgamma = unary(
    "lgamma",
    gamma_functions.lgamma,
    "Logarithm of the absolute value of the gamma function.",
    "[1., 4.] -> [0.0000, 1.7918]",
    vjp=lambda g, input: g * digamma(input),
    result="float",
    dtypes="fib",
    samples=_positive,
)
digamma = unary("digamma", gamma_functions.digamma, "Derivative of ln gamma.", "[1., 2.] -> [-0.5772,  0.4228]",
    vjp=lambda g, input: g * polygamma_of(input, 1), result="float", dtypes="fib", samples=_positive)  # fmt: skip


def _check_order(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ArgumentValueError(message("polygamma", f"n must be an integer of at least 0, got {n!r}"))
    if n > 170:  # the sum has as many terms
        raise ArgumentValueError(message("polygamma", f"n must be at most 170, got {n}: its factorial is no float64"))
    return n


@elementwise(
    {"input": lambda g, input, n: g * polygamma(n + 1, input)},
    result="float",
    dtypes="fib",
    inplace=False,
    torch_name="",
)
def polygamma_of(input: Array, n: int) -> Any:
    """The derivative of order $n \\ge 1$ of `digamma`, with the tensor first.

    >>> import genesis
    >>> genesis.ops.pointwise.special.polygamma_of(genesis.tensor([1.0, 2.0]), 1)
    tensor([1.6449, 0.6449])
    """
    return gamma_functions.polygamma(input, n)


samples(polygamma_of, lambda t: [case(t.positive(2, 3), 1), case(t.positive(), 2), case(t.positive(0), 3)])


@composite(method=False, dtypes="f", out=True)
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


samples(polygamma, lambda t: [case(1, t.positive(2, 3)), case(0, t.positive(3)), case(4, t.positive())])


def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """The derivative of order ``n`` of `digamma`, see `genesis.polygamma`."""
    return polygamma(n, self)  # type: ignore[no-any-return]


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place form of `polygamma`: writes the result into this tensor and returns it."""
    return inplace("polygamma_", _polygamma_method, self, (n,), {})  # type: ignore[no-any-return]


Tensor.polygamma, Tensor.polygamma_ = explained(_polygamma_method, "polygamma"), explained(_polygamma_, "polygamma_")

wrong_inputs(polygamma, (lambda t: case(-1, t(2)), ValueError, "polygamma: n must be an integer of at least 0, got -1"))


@in_float64
def _logit(x: Any) -> Any:
    """About 1/2 by the quotient less one, whose numerator is exact: the logarithm is near its zero."""
    return np.where(np.abs(x - 0.5) < 0.15, np.log1p((2 * x - 1) / (1 - x)), np.log(x / (1 - x)))


def _logit_rule(g: Any, input: Any) -> Any:
    """Not a number where the logit is none; in [0, 1] what is taken of x is at most x."""
    return g / (input * (1 - where((input < 0) | (input > 1), math.nan, input)))


logit = unary("logit", _logit, "Inverse of the sigmoid, $\\ln(x / (1 - x))$.", "[0.5, 0.75] -> [0.0000, 1.0986]",
    vjp=_logit_rule, result="float", dtypes="fib",
    samples=lambda t: [case(t(low=0.1, high=0.9)), case(t(2, 3, low=0.1, high=0.9))])  # fmt: skip

_log_odds, _log_odds_ = logit, Tensor.logit_


def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    return _log_odds(input if eps is None else input.clamp(eps, 1 - eps), out=out)


def _logit_(self: Tensor, eps: float | None = None) -> Tensor:
    """In-place form of `logit`: writes the result into this tensor and returns it."""
    return _log_odds_(self if eps is None else self.clamp_(eps, 1 - eps))


logit.op, logit.__doc__ = (
    _log_odds.op,
    f"{_log_odds.__doc__}\nWith ``eps`` the elements are cut off at eps and 1 - eps first.\n",
)
logit, _logit_ = explained(logit), explained(_logit_, "logit_")
Tensor.logit, Tensor.logit_ = logit, _logit_

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "logit", "polygamma"]
