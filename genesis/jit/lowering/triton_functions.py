"""Special functions in Triton's language: functions of their own beside a kernel that calls them.

They are the formulas of `genesis.ops.pointwise` and `genesis.ops.transcendental`, in float64 whatever is asked for, and
those of `libdevice` where it has them, which is in float64, too: the result is rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from genesis.jit.lowering import triton_activations
from genesis.ops.pointwise.gamma_functions import BERNOULLI
from genesis.ops.transcendental.bessel import K0, K1

_DIGAMMA = """
def _digamma_right(z):
    shift = tl.zeros_like(z)
    for _ in range(10):
        small = z < 10
        shift = tl.where(small, shift - 1 / z, shift)
        z = tl.where(small, z + 1, z)
    y = 1 / (z * z)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
    return libdevice.log(z) - 0.5 / z - series + shift


def digamma(given):
    x = given.to(tl.float64)
    below = x < 0
    value = _digamma_right(tl.where(below, 1 - x, x))
    value = tl.where(below, value - 3.141592653589793 / libdevice.tan(3.141592653589793 * (x - libdevice.rint(x))), value)
    value = tl.where(below & (x == libdevice.rint(x)), float('nan'), value)
    value = tl.where(x == 0, libdevice.copysign(tl.full((), float('inf'), tl.float64), -x), value)
    return value.to(given.dtype)
"""

# by the Euler-Maclaurin formula, as `polygamma` of NumPy arrays; s is a number of the program, or one of each element
_HURWITZ = (
    """
def _hurwitz(s, x, steps):
    total = tl.zeros_like(x)
    for k in range(steps):
        total += libdevice.pow(x + k, -s)
    q = x + steps
    total += libdevice.pow(q, 1 - s) / (s - 1) + 0.5 * libdevice.pow(q, -s)
    factor = s
    power = libdevice.pow(q, -s - 1)
    order = 1.0
"""
    + "".join(
        f"""    order = order / {(2 * j) * (2 * j - 1)}.0
    total += {bernoulli!r} * factor * order * power
    factor = factor * (s + {2 * j - 1}) * (s + {2 * j})
    power = power / (q * q)
"""
        for j, bernoulli in enumerate(BERNOULLI, 1)
    )
    + """    return total
"""
)

_POLYGAMMA = """
def polygamma(given, order):
    x = given.to(tl.float64)
    n = order.to(tl.int32)
    s = n + tl.full((), 1.0, tl.float64)
    below = tl.floor(x)
    negative = x < 0
    total = _hurwitz(s, tl.where(negative, x - below, x), n + 20)
    above = tl.where(x == below, 1.0, below + 1 - x)
    between = _hurwitz(s, above, n + 20) - _hurwitz(s, 1 - tl.where(negative, x, 0.0), n + 20)
    sign = tl.where(n % 2 == 1, tl.full((), 1.0, tl.float64), -1.0)
    total += tl.where(negative, sign * between, 0.0)
    factorial = tl.full((), 1.0, tl.float64)
    for k in range(1, n + 1):
        factorial = factorial * k
    value = sign * factorial * total
    value = tl.where(x == float('inf'), 0.0, tl.where(x == -float('inf'), float('nan'), value))
    return value.to(given.dtype)
"""

_IN_FLOAT64 = """
def {name}(given):
    return libdevice.{function}(given.to(tl.float64)).to(given.dtype)
"""

_I_SCALED = """
def _i_far(x, sign: tl.constexpr, order: tl.constexpr):
    term = tl.zeros_like(x) + 1.0
    total = term
    for k in range(1, 26):
        term = term * sign * (4.0 * order * order - (2 * k - 1) * (2 * k - 1)) / (8.0 * k * x)
        total += term
    return total / tl.sqrt(6.283185307179586 * x)


def i0e(given):
    x = tl.abs(given.to(tl.float64))
    near = libdevice.cyl_bessel_i0(tl.where(x < 25, x, 0.0)) * libdevice.exp(-x)
    far = _i_far(tl.where(x < 25, 25.0, x), -1, 0)
    return tl.where(x == float('inf'), 0.0, tl.where(x != x, x, tl.where(x < 25, near, far))).to(given.dtype)


def i1e(given):
    x = tl.abs(given.to(tl.float64))
    near = libdevice.cyl_bessel_i1(tl.where(x < 25, x, 0.0)) * libdevice.exp(-x)
    far = _i_far(tl.where(x < 25, 25.0, x), -1, 1)
    value = tl.where(x == float('inf'), 0.0, tl.where(x != x, x, tl.where(x < 25, near, far)))
    return libdevice.copysign(value, given.to(tl.float64)).to(given.dtype)
"""


def _horner(coefficients: Iterable[float]) -> str:
    first, *rest = coefficients
    text = repr(first)
    for c in rest:
        text = f"({text} * y + {c!r})"
    return text


_K = f"""
def _k_scaled(x, order: tl.constexpr):
    width = tl.sqrt(tl.minimum(1.0, 4.0 / x))
    total = tl.zeros_like(x) + 0.5
    for node in range(1, 37):
        u = node * 0.125 * width
        half = libdevice.sinh(0.5 * u)
        total += libdevice.exp(-2 * x * half * half) * libdevice.cosh(order * u)
    return total * (width * 0.125)


def _k0_near(x):
    y = 0.25 * x * x
    return {_horner(K0)} - (libdevice.log(0.5 * x) + 0.57721566490153286) * libdevice.cyl_bessel_i0(x)


def _k1_near(x):
    y = 0.25 * x * x
    return 1 / x + libdevice.log(0.5 * x) * libdevice.cyl_bessel_i1(x) - 0.25 * x * {_horner(K1)}


def _k_ends(x, value):
    value = tl.where(x == float('inf'), 0.0, value)
    return tl.where(x > 0, value, tl.where(x == 0, float('inf'), float('nan')))
"""
_K_KIND = """
def {name}(given):
    x = given.to(tl.float64)
    a = tl.minimum(tl.where(x > 0, x, 1.0), 1e300)
    near = _k{order}_near(tl.where(a < 1, a, 1.0)){near}
    far = _k_scaled(tl.where(a < 1, 1.0, a), {order}.0){far}
    return _k_ends(x, tl.where(a < 1, near, far)).to(given.dtype)
"""

_LOG_NDTR = """
def log_ndtr(given):
    x = given.to(tl.float64)
    low = x < -1
    far = libdevice.log(0.5 * libdevice.erfcx(tl.where(low, x, -1.0) * -0.7071067811865476)) - 0.5 * x * x
    near = libdevice.log1p(-0.5 * libdevice.erfc(tl.where(low, -1.0, x) * 0.7071067811865476))
    return tl.where(low, far, near).to(given.dtype)
"""

_LOGIT = """
def logit(given):
    x = given.to(tl.float64)
    return libdevice.log(x / (1 - x)).to(given.dtype)
"""

# numbers that are no places in a word shift everything out, as NumPy has it
_SHIFTS = """
def shifted_left(x, y):
    inside = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(inside, x << tl.where(inside, y, 0).to(x.dtype), 0).to(x.dtype)


def shifted_right(x, y):
    inside = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(inside, x >> tl.where(inside, y, 0).to(x.dtype), tl.where(x < 0, -1, 0)).to(x.dtype)
"""

_SPHERICAL = """
def spherical_j0(given):
    x = given.to(tl.float64)
    value = tl.where(x == 0, 1.0, libdevice.sin(x) / tl.where(x == 0, 1.0, x))
    return tl.where(tl.abs(x) == float('inf'), 0.0, value).to(given.dtype)
"""

# by the recurrences of three terms, as far as the highest degree of the block; zero below degree zero
_POLYNOMIAL = """
def {name}(given, degrees):
    x = {shifted}.to(tl.float64)
    n = libdevice.trunc(degrees.to(tl.float64)) + tl.zeros_like(x)
    x = x + tl.zeros_like(n)
    before = tl.zeros_like(n) + 1.0
    here = {first}
    reached = n <= 100000
    out = tl.where(n < 0, 0.0, tl.where(n == 0, before, here))
    out = tl.where(reached, out, float('nan'))
    most = tl.max(tl.where(reached, n, 0.0).to(tl.int32), 0)
    for k in range(1, most):
        after = {step}
        before = here
        here = after
        out = tl.where(n == k + 1, here, out)
    return out.to(given.dtype)
"""
_CHEBYSHEV = "2 * x * here - before"
_FIRSTS = {"t": "x", "u": "2 * x", "v": "2 * x - 1", "w": "2 * x + 1"}
_POLYNOMIALS = {
    **{f"chebyshev_{kind}": ("given", first, _CHEBYSHEV) for kind, first in _FIRSTS.items()},
    **{f"shifted_chebyshev_{kind}": ("(given * 2 - 1)", first, _CHEBYSHEV) for kind, first in _FIRSTS.items()},
    "hermite_h": ("given", "2 * x", "2 * (x * here - k * before)"),
    "hermite_he": ("given", "x", "x * here - k * before"),
    "laguerre_l": ("given", "1 - x", "((2 * k + 1 - x) * here - k * before) / (k + 1)"),
    "legendre_p": ("given", "x", "((2 * k + 1) * x * here - k * before) / (k + 1)"),
}
_BY_LIBRARY = {
    "i0": "cyl_bessel_i0", "i1": "cyl_bessel_i1", "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0",
    "bessel_y1": "y1", "scaled_erfc": "erfcx", "normal_quantile": "normcdfinv",
}  # fmt: skip
_SOURCES = [
    triton_activations.INSTRUCTIONS, triton_activations.SOURCE,
    _DIGAMMA, _HURWITZ, _POLYGAMMA, _I_SCALED, _K, _LOG_NDTR, _LOGIT, _SHIFTS, _SPHERICAL,
    *[_IN_FLOAT64.format(name=name, function=function) for name, function in _BY_LIBRARY.items()],
    *[
        _K_KIND.format(name=f"k{order}{'e' * scaled}", order=order, near=" * libdevice.exp(a)" if scaled else "",
                       far="" if scaled else " * libdevice.exp(-a)")
        for order in (0, 1) for scaled in (False, True)
    ],
    *[_POLYNOMIAL.format(name=name, shifted=shifted, first=first, step=step)
      for name, (shifted, first, step) in _POLYNOMIALS.items()],
]  # fmt: skip
_DEFINED = {
    re.match(r"def (\w+)", text)[1]: text.strip()  # type: ignore[index]
    for source in _SOURCES
    for text in re.split(r"\n\n\n", source.strip())
}

# the functions by the names of ops
CALLS: dict[str, Callable[..., str]] = {
    op: (lambda *args, name=name: f"{name}({', '.join(args)})")
    for op, name in {
        "digamma": "digamma", "polygamma_of": "polygamma", "logit": "logit", "i0": "i0", "special_modified_bessel_i0": "i0", "special_i1": "i1",
        "special_modified_bessel_i1": "i1", "special_i0e": "i0e", "special_i1e": "i1e",
        **{f"special_{name}": name for name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "log_ndtr")},
        "special_erfcx": "scaled_erfc", "special_ndtri": "normal_quantile", "special_spherical_bessel_j0": "spherical_j0",
        **{f"special_modified_bessel_k{n}": f"k{n}" for n in (0, 1)},
        **{f"special_scaled_modified_bessel_k{n}": f"k{n}e" for n in (0, 1)},
        **{f"special_{prefix}chebyshev_polynomial_{kind}": f"{prefix}chebyshev_{kind}"
           for kind in _FIRSTS for prefix in ("", "shifted_")},
        "special_hermite_polynomial_h": "hermite_h", "special_hermite_polynomial_he": "hermite_he",
        "special_laguerre_polynomial_l": "laguerre_l", "special_legendre_polynomial_p": "legendre_p",
    }.items()
}  # fmt: skip


def needed(lines: Iterable[str]) -> list[str]:
    """The functions that lines of code call, and those that these call, each as its lines."""
    called: dict[str, str] = {}
    texts = list(lines)
    while texts:
        for name in re.findall(r"(?<![\w.])(\w+)\(", texts.pop()):
            if name in _DEFINED and name not in called:
                called[name] = _DEFINED[name]
                texts.append(called[name])
    return [line for text in reversed(called.values()) for line in ("@triton.jit", *text.splitlines(), "", "")]
