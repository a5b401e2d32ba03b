"""Activations in Triton's language, with few instructions of each element: as many as are done while memory is read.

In float32 they take the hardware's powers of two and reciprocals, which are right to one or two units of the last place, and
nothing branches. The share of GELU, the normal distribution at x, is ``exp(-x^2 / 2) P(t)`` for ``x < 0``, where
``t = 1 / (1 + p |x|)`` and P is a polynomial that was fitted to `scipy.special.erfcx`: to 3.2e-8 of the value, however far
out. What it is for ``x > 0`` follows from that.

An exponent has the bits that its rounding leaves. Where results have more than 16 bits the rest of it is a factor besides:
lines of a kernel say that with ``EXACT``, the last argument of each of these functions. For 16 bits a shorter polynomial does,
which is right to 1.2e-5, a hundredth of the last bit of float16.
"""

from __future__ import annotations

import math

import numpy as np

_P, _P_OF_16_BITS = 0.35, 0.32
_TERMS_OF_16_BITS = (0.1276897, 0.12682826, 0.12305064, 0.049615745, 0.13958402, -0.066773848)
_TERMS = (
    0.13962141,
    0.13986187,
    0.11983287,
    0.10550799,
    -0.02310981,
    0.15917413,
    -0.25571424,
    0.14397168,
    -0.029145928,
)
_DENSITY = 1 / math.sqrt(2 * math.pi)
_SCALE = 2 * math.sqrt(2 / math.pi)  # gelu(x) is about x sigmoid(_SCALE x + _CUBE x^3)
_CUBE = _SCALE * 0.044715
_BITS = math.log2(math.e)
_ROOT = math.sqrt(0.5 * _BITS)  # exp(-x^2 / 2) is 2^-(_ROOT x)^2
_FAR, _SMALL = 40.0, 110.0  # where the normal distribution, and exp(-x), are 0 in float32

# by names that Triton's interpreter, which knows no instructions of a GPU, has others for
INSTRUCTIONS = """
def power_of_two(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


def reciprocal(x):
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


def stays_narrow(x):
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=2)
"""


def _of_float32(number: float) -> str:
    """A number as one of float32, and the rest of it."""
    near = float(np.float32(number))
    return f"{near!r}, {number - near!r}"


def _polynomial(terms: tuple[float, ...]) -> str:
    *rest, last = terms
    text = repr(last)
    for term in reversed(rest):
        text = f"({text} * t + {term!r})"
    return f"{text} * t"


SOURCE = f"""
def _least(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


def _power(x, factor: tl.constexpr, rest: tl.constexpr, exact: tl.constexpr):
    exponent = x * factor
    power = power_of_two(exponent)
    if exact:
        power += power * ((tl.fma(x, factor, -exponent) + x * rest) * {math.log(2)!r})
    return power


def _tail_and_bell(x, exact: tl.constexpr):
    if exact:
        far = _least(tl.abs(x), {_FAR!r})
        square = far * far
        bell = _power(square, {_of_float32(-0.5 * _BITS)}, exact)
        bell -= bell * (0.5 * tl.fma(far, far, -square))
        t = reciprocal({_P!r} * far + 1.0)
        tail = {_polynomial(_TERMS)}
    else:
        far = tl.abs(x) * {_ROOT!r}
        bell = power_of_two(-far * far)
        t = reciprocal({_P_OF_16_BITS / _ROOT!r} * far + 1.0)
        tail = {_polynomial(_TERMS_OF_16_BITS)}
    return tail, bell


def normal_share(x, exact: tl.constexpr):
    if x.dtype == tl.float64:
        share = libdevice.normcdf(x)
    else:
        tail, bell = _tail_and_bell(x, exact)
        share = tl.where(x > 0, 1.0 - tail * bell, tail * bell)
    return share


def gelu(x, exact: tl.constexpr):
    return x * normal_share(x, exact)


def gelu_slope(x, exact: tl.constexpr):
    if x.dtype == tl.float64:
        slope = libdevice.normcdf(x) + x * {_DENSITY!r} * libdevice.exp(-0.5 * x * x)
    else:
        tail, bell = _tail_and_bell(x, exact)
        slope = bell * (tail - {_DENSITY!r} * tl.abs(x))
        slope = tl.where(x > 0, 1.0 - slope, slope)
    return slope


def sigmoid(x, exact: tl.constexpr):
    if x.dtype == tl.float64:
        share = 1.0 / (1.0 + libdevice.exp(-x))
    else:
        power = _power(_least(tl.abs(x), {_SMALL!r}), {_of_float32(-_BITS)}, exact)
        share = reciprocal(1.0 + power)
        share = tl.where(x > 0, share, share * power)
    return share


def silu(x, exact: tl.constexpr):
    return x * sigmoid(x, exact)


def gelu_tanh(x, exact: tl.constexpr):
    return x * sigmoid(x * ({_SCALE!r} + {_CUBE!r} * x * x), exact)


def gelu_tanh_slope(x, exact: tl.constexpr):
    square = x * x
    gate = sigmoid(x * ({_SCALE!r} + {_CUBE!r} * square), exact)
    return gate + x * gate * (1.0 - gate) * ({_SCALE!r} + {3 * _CUBE!r} * square)
"""
