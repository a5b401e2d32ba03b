"""Activations of NumPy arrays: a block of elements at a time, in float64, over memory that is used again."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.ops.pointwise.pieces import BLOCK, corrected, in_float64


def is_float32(x: Any) -> bool:
    return x.dtype is F32


def is_float64(x: Any) -> bool:
    return x.dtype is F64


def _exp_below(x: Any) -> Any:
    """$e^{-|x|}$."""
    y = np.abs(x)
    np.negative(y, out=y)
    return np.exp(y, out=y)


@attach("sigmoid", np.ndarray, when=is_float64)
@in_float64
def sigmoid(x: Any) -> Any:
    """With $m = e^{-|x|}$ and $a = \\max(m, x \\ge 0)$, $a - a m / (1 + m)$: what is taken off is small where a is not
    exact.
    """
    m = _exp_below(x)
    a = (x >= 0).astype(F64)
    np.maximum(a, m, out=a)
    part = m + 1.0
    np.divide(m, part, out=part)
    part *= a
    a -= part
    return a


def _gate(x: Any) -> Any:
    """The sigmoid of float32 numbers: their exponentials are finite in float64, or the reciprocals 0 in float32."""
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1.0
    return np.divide(1.0, y, out=y)


attach("sigmoid", np.ndarray, in_float64(_gate), when=is_float32)


@attach("log1pexp", np.ndarray)
@in_float64
def log1pexp(x: Any) -> Any:
    e = _exp_below(x)
    np.log1p(e, out=e)
    e += np.maximum(x, 0.0)
    return e


_NEAR_ZERO = 1e-3  # up to here x - tanh x has fewer than 24 digits in float64, and x^3 / 3 - 2 x^5 / 15 is as good


@attach("tanh_rest", np.ndarray, when=is_float32)
@in_float64
def tanh_rest(x: Any) -> Any:
    y = np.tanh(x)
    np.subtract(x, y, out=y)
    return corrected(y, x, np.abs(x) < _NEAR_ZERO, lambda x: x * x * x * (1 / 3 - x * x * (2 / 15)))


@attach("times_tanh_log1pexp", np.ndarray, when=is_float32)
@in_float64
def mish_of_float32(x: Any) -> Any:
    e = np.minimum(x, 40.0)
    np.exp(e, out=e)
    n = e + 2.0
    n *= e
    np.add(n, 2.0, out=e)
    n /= e
    n *= x
    return n


_LOW = -20.0  # below, x e^x less a billionth is better than a quotient


@attach("times_tanh_log1pexp", np.ndarray, when=is_float64)
@in_float64
def mish(x: Any) -> Any:
    """$x / (q + (1 - q / (1 + 2 q)))$ with $q = e^{-x}$: what is rounded more than once is small beside q."""
    q = np.exp(np.minimum(-x, 709.0))
    return corrected(
        x / (q + (1.0 - q / (1.0 + 2.0 * q))), x, x < _LOW, lambda x: _less(x * np.exp(x), 0.5 * np.exp(x))
    )


@attach("times_sigmoid", np.ndarray, when=is_float64)
@in_float64
def silu(x: Any) -> Any:
    return corrected(x / (1.0 + np.exp(np.minimum(-x, 709.0))), x, x < _LOW, lambda x: _less(x * np.exp(x), np.exp(x)))


def _less(x: Any, part: Any) -> Any:
    return x - x * part


@attach("times_sigmoid", np.ndarray, when=is_float32)
@in_float64
def silu_of_float32(x: Any) -> Any:
    y = _gate(x)
    y *= x
    return y


def silu_and_gate(x: Any) -> tuple[Any, Any]:
    """x times its sigmoid, and the sigmoid, of a float32 array in the order of its elements."""
    out, gate = np.empty(x.shape, F32), np.empty(x.shape, F32)
    source, products, gates = x.reshape(-1), out.reshape(-1), gate.reshape(-1)
    for i in range(0, x.size, BLOCK):
        part = slice(i, i + BLOCK)
        wide = source[part].astype(F64)
        values = _gate(wide)
        gates[part] = values
        wide *= values
        products[part] = wide
    return out, gate
