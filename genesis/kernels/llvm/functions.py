"""exp, log, sin, erf and their relatives on `Value`s in float64: at most 2 units of the last place from the exact
result, or where the result is rounded to float32 (`Code.short`) correctly rounded but for few.

The schemes are the classical ones: the argument is reduced by a multiple of ln 2 or pi/2 that is known to more digits
than float64 has (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980), a polynomial does the
rest, and what rounding took off is carried along where it would be felt. nan, infinities, zeros with their signs and
subnormal numbers come out as IEEE 754 has them. For angles beyond 2^30 a lane asks the C library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from genesis.kernels.llvm import tables
from genesis.kernels.llvm.values import Value, copysign, fma, least, most, select, sqrt, trunc

_MAGIC = 1.5 * 2**52  # added to a whole number, leaves it in the lowest bits
_LN2, _LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
_SQRT_HALF = math.sqrt(0.5)


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the highest power first."""
    y = fma(x, coefficients[0], coefficients[1])
    for c in coefficients[2:]:
        y = fma(y, x, c)
    return y


def _table(x: Value, name: str) -> Sequence[float]:
    return getattr(tables, ("SHORT_" if x.code.short else "") + name)  # type: ignore[no-any-return]


# ---- exponentials


def exp_parts(x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """n and p with $e^{x + low} = 2^n (1 + p)$, for |x| up to 800; n still has `_MAGIC` in it."""
    n = fma(x, 1 / _LN2, _MAGIC)
    whole = n - _MAGIC
    r = fma(whole, -_LN2, x)
    if not x.code.short:
        r = fma(whole, -_LN2_LOW, r)
    if low is not None:
        r = r + low
    return n, fma(r * r, polynomial(r, _table(x, "EXP")), r)


def scaled(y: Value, n: Value) -> Value:
    """2^n y for |y| about 1: in two steps, as 2^n need not be a number where the product is."""
    bits = n.bits()
    if y.code.short:
        return y * ((bits << 52) + (1023 << 52)).number()
    half = (bits << 12) >> 13  # without the bits of _MAGIC's exponent
    other = ((bits << 12) >> 12) - half
    return y * ((half + 1023) << 52).number() * ((other + 1023) << 52).number()


def limited(x: Value, unit: float = _LN2) -> Value:
    """x, but not so large that 2^n is beyond the reach of `scaled`: at the ends that is 0, and inf."""
    low, high = (-1023 * unit, 1024 * unit) if x.code.short else (-1154 * unit, 1154 * unit)
    return most(least(x, high), low)


def exp(x: Value) -> Value:
    n, p = exp_parts(limited(x))
    return scaled(p + 1.0, n)


def exp2(x: Value) -> Value:
    x = limited(x, 1.0)
    n = x + _MAGIC
    f = x - (n - _MAGIC)
    r = f * _LN2
    low = None if x.code.short else fma(f, _LN2, -r) + f * _LN2_LOW
    p = fma(r * r, polynomial(r, _table(x, "EXP")), r)
    return scaled((p if low is None else p + low) + 1.0, n)


def expm1(x: Value) -> Value:
    """$2^n p + (2^n - 1)$."""
    n, p = exp_parts(most(least(x, 709.0), -50.0))
    power = ((n.bits() << 52) + (1023 << 52)).number()
    y = fma(power, p, power - 1.0)
    return select(x > 709.0, exp(x), select(abs(x) < 1e-300, x, y))


# ---- logarithms


def _split(x: Value) -> tuple[Value, Value]:
    """k and m with $x = 2^k m$ and m in $[\\sqrt{1/2}, \\sqrt 2)$, for positive numbers."""
    extra: Value | None = None
    if not x.code.short:
        small = x < 2.0**-1022
        x = select(small, x * 2.0**54, x)
        extra = select(small, -54.0, x.code.constant(0.0))
    bits = x.bits() + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    k = ((bits >> 52) + 0x4338000000000000).number() - (_MAGIC + 1023)
    m = ((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).number()
    return (k if extra is None else k + extra), m


def _with_ends(x: Value, value: Value) -> Value:
    """-inf of zero, nan below, inf of inf."""
    value = select(x > 0.0, value, select(x.equals(0.0), -math.inf, x.code.constant(math.nan)))
    return select(x.equals(math.inf), x, value)


def _log_parts(x: Value) -> tuple[Value, Value, Value]:
    """k, f and c with $\\ln x = k \\ln 2 + f - c$."""
    k, m = _split(x)
    f = m - 1.0
    half = f * f * 0.5
    if x.code.short:
        return k, f, half - half * f * 2.0 * polynomial(f, tables.SHORT_LOG)
    s = f / (f + 2.0)
    z = s * s
    return k, f, half - s * (half + z * polynomial(z, tables.LOG))


def log(x: Value) -> Value:
    k, f, c = _log_parts(x)
    return _with_ends(x, fma(k, _LN2, f - fma(k, -_LN2_LOW, c) if not x.code.short else f - c))


def _log_of_base(x: Value, unit: float, unit_low: float, ln2: float, ln2_low: float) -> Value:
    """ln x times a unit, which has two parts: the product of f is exact."""
    k, f, c = _log_parts(x)
    if x.code.short:
        return _with_ends(x, fma(k, ln2, (f - c) * unit))
    d = f - c
    rest = (f - d) - c
    high = d * unit
    low = fma(d, unit, -high) + fma(rest, unit, d * unit_low)
    top = fma(k, ln2, high)
    back = fma(k, ln2, -top) + high
    return _with_ends(x, top + (back + fma(k, ln2_low, low)))


def log2(x: Value) -> Value:
    return _log_of_base(x, 1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0)


def log10(x: Value) -> Value:
    return _log_of_base(x, 0.4342944819032518, 1.098319650216765e-17, 0.30102999566398120, -2.8037281277851704e-18)


def log1p(x: Value) -> Value:
    """ln(1 + x) with the part of x that 1 + x has lost: $\\ln u + (x - (u - 1)) / u$."""
    u = x + 1.0
    lost = select(abs(x) < 1.0, x - (u - 1.0), 1.0 - (u - x))
    y = log(u) + select(abs(u) < math.inf, lost / most(u, 2.0**-60), x.code.constant(0.0))  # of -1 nothing is lost
    return select(abs(x) < 1e-18, x, y)


# ---- angles

_PI_HALVES = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_FARTHEST = 2.0**30


def _angle(x: Value) -> tuple[Value, Value, Value]:
    """n, r and a small s with $x = n \\pi / 2 + r + s$; n still has `_MAGIC` in it."""
    n = fma(x, 2 / math.pi, _MAGIC)
    whole = n - _MAGIC
    a = fma(whole, -_PI_HALVES[0], x)  # exact: the product's last digits are above those of 1
    b = whole * _PI_HALVES[1]
    r = a - b
    # what the subtraction and the product lost, and the third part
    s = ((a - r) - b) - fma(whole, _PI_HALVES[2], fma(whole, _PI_HALVES[1], -b))
    return n, r, s


def _sine(r: Value, s: Value) -> Value:
    z = r * r
    return r + fma(r * z, polynomial(z, _table(r, "SIN")), s)


def _cosine(r: Value, s: Value) -> Value:
    z = r * r
    half = z * 0.5
    top = 1.0 - half
    if r.code.short:
        return fma(z * z, polynomial(z, tables.SHORT_COS), top)
    return top + (((1.0 - top) - half) + fma(z * z, polynomial(z, tables.COS), -(r * s)))


def _wave(x: Value, shift: int) -> Value:
    """sin(x + shift pi / 2)."""
    n, r, s = _angle(x)
    quarter = n.bits() + shift if shift else n.bits()
    odd = (quarter & 1).equals(1)
    y = select(odd, _cosine(r, s), _sine(r, s))
    return (y.bits() ^ ((quarter & 2) << 62)).number()


def sin(x: Value) -> Value:
    return _or_far("sin", x, select(abs(x) < 1e-150, x, _wave(x, 0)))


def cos(x: Value) -> Value:
    return _or_far("cos", x, _wave(x, 1))


def _or_far(name: str, x: Value, near: Value) -> Value:
    """The C library's answer for lanes beyond `_FARTHEST`."""
    return in_lanes(name, abs(x) > _FARTHEST, near, x)


def in_lanes(name: str, where: Value, near: Value, *operands: Value) -> Value:
    """What was found, and in lanes where ``where`` holds what the C library says."""
    code = near.code
    code.declared[name] = f"declare double @{name}({', '.join(['double'] * len(operands))})"
    lanes = f"{name}_lanes{code.lanes}"
    code.declared[lanes] = _lanes(name, len(operands), code.lanes)
    label, vector = code.name()[1:], code.vector("double")
    before = code.block
    code.lines.append(f"br i1 {where.any()}, label %{label}far, label %{label}near")
    code.mark(f"{label}far")
    given = ", ".join([f"{vector} {x}" for x in (near, *operands)])
    far = code.write("double", f"call {vector} @{lanes}({code.vector('i1')} {where}, {given})")
    code.lines.append(f"br label %{label}near")
    code.mark(f"{label}near")
    return code.write("double", f"phi {vector} [ {near}, %{before} ], [ {far}, %{label}far ]")


def _lanes(name: str, operands: int, lanes: int) -> str:
    numbers = range(operands)
    vector = f"<{lanes} x double>"
    given = ", ".join([f"{vector} %x{i}" for i in numbers])
    taken = "\n".join([f"  %e{i} = extractelement {vector} %x{i}, i64 %k" for i in numbers])
    return f"""
define internal {vector} @{name}_lanes{lanes}(<{lanes} x i1> %where, {vector} %found, {given}) noinline #0 {{
entry:
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %next, %end ]
  %y = phi {vector} [ %found, %entry ], [ %new, %end ]
  %wanted = extractelement <{lanes} x i1> %where, i64 %k
  br i1 %wanted, label %ask, label %end
ask:
{taken}
  %answer = call double @{name}({", ".join([f"double %e{i}" for i in numbers])})
  %put = insertelement {vector} %y, double %answer, i64 %k
  br label %end
end:
  %new = phi {vector} [ %y, %test ], [ %put, %ask ]
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %test, label %done
done:
  ret {vector} %new
}}"""


# ---- error functions

_NEAR = 0.84
SLOPE = 0.3
_SLOPE = SLOPE, 1.1102230246251566e-17  # and what is missing
_SLOPE_OF_ERFC = 0.4242640687119285, 4.304810798395957e-18


def _inverse(d: Value) -> Value:
    """1 / d for results in float32: Newton's step costs less than a division in float64."""
    t = (1.0 / d.narrow()).wide()
    return t * fma(-d, t, 2.0)


def _tail(y: Value, square: float, scale: float, slope: tuple[float, float]) -> Value:
    """$scale e^{-square y^2} q(t)$ with $t = 1 / (1 + slope y)$, for y that is not negative."""
    bend, bend_low = slope
    if y.code.short:
        t = _inverse(fma(y, bend, 1.0))
        n, p = exp_parts(most(y * y * -square, -200.0))
        q = t * scale * polynomial(t, tables.SHORT_TAIL)
        return scaled(fma(q, p, q), n)
    d = fma(y, bend, 1.0)
    t = 1.0 / d
    t_low = t * (fma(-d, t, 1.0) - t * fma(y, bend_low, fma(y, bend, 1.0 - d)))  # d has been rounded, too
    power = y * y * -square
    low = fma(y * y, -square, -power) - fma(y, y, -(y * y)) * square
    n, p = exp_parts(power, low)
    u = (t - 0.5) + t_low
    *rest, first, last = tables.TAIL
    inner = polynomial(u, rest)
    line = fma(inner, u, first)
    q = fma(line, u, last)
    q_low = fma(line, u, last - q) + fma(fma(inner, u, first - line) + tables.TAIL_REST[0], u, tables.TAIL_REST[1])
    whole = q * t
    whole_low = fma(q, t, -whole) + fma(q_low, t, t_low * q)
    return scaled(fma(whole, p, whole_low) * scale + whole * scale, n)


def normal_cdf(x: Value) -> Value:
    """The tail below zero, 1 less the tail from zero on."""
    y = abs(x)
    tail = _tail(least(y, 40.0), 0.5, 1.0, _SLOPE)
    return select(x > 0.0, 1.0 - tail, tail)


def erfc(x: Value) -> Value:
    tail = _tail(least(abs(x), 28.0), 1.0, 2.0, _SLOPE_OF_ERFC)
    return select(x > 0.0, tail, 2.0 - tail)


def erf(x: Value) -> Value:
    a = abs(x)
    z = least(x * x, 0.72)
    near = fma(x, polynomial(z, _table(x, "ERF")), x)
    far = copysign(1.0 - _tail(least(a, 6.0), 1.0, 2.0, _SLOPE_OF_ERFC), x)
    return select(a < _NEAR, near, far)


# ---- others


def logit(x: Value) -> Value:
    w = 1.0 - x
    u = x / w
    y = log(u)
    if x.code.short:
        return y
    rest = fma(-u, w, x) - u * ((1.0 - w) - x)
    return select((x > 0.0) & (x < 1.0), y + rest / x, y)


def tanh(x: Value) -> Value:
    """Of numbers that are not near zero."""
    return copysign(1.0 - 2.0 / (exp(abs(x) * 2.0) + 1.0), x)


_TANH_P = (1.2530146445147035e-06, 0.0003710136788725669, 0.023489195271290182, 0.3333333333333333)
_TANH_Q = (1.2811595487128163e-06, 0.0003994075702505891, 0.027395313457406145, 0.4704675858138703, 1.0)


def tanh_rest(x: Value) -> Value:
    """x - tanh x."""
    z = x * x
    if x.code.short:
        near = x * z * polynomial(z, tables.SHORT_TANH)
        return select(z < 0.31, near, x - tanh(x))
    cube = x * z
    rest = fma(x, z, -cube) + x * fma(x, x, -z)
    quotient = polynomial(z, _TANH_P) / polynomial(z, _TANH_Q)  # as in `genesis.ops.pointwise.curves`
    near = copysign(fma(cube, quotient, rest * quotient), x)
    return select(z < 2.56, near, x - tanh(x))


def erfinv(y: Value) -> Value:
    """By polynomials of $w = -\\ln(1 - y^2)$ and of its root, as M. Giles (2010) has them; float64 takes a step of
    Newton's method from there, with what is left of the smaller of erf and erfc.
    """
    a = abs(y)
    w = -log((1.0 - y) * (1.0 + y))
    near = polynomial(w, tables.SHORT_INVERSE_NEAR)
    far = polynomial(sqrt(least(w, 38.0)), tables.SHORT_INVERSE_FAR)
    x = a * select(w < 6.0, near, far)
    if not y.code.short:
        left = select(a < 0.5, a - erf(x), erfc(x) - (1.0 - a))
        x = fma(left * (math.sqrt(math.pi) / 2), exp(x * x), x)
    return copysign(select(a.equals(1.0), math.inf, x), y)


def rsqrt(x: Value) -> Value:
    return 1.0 / sqrt(x)


def frac(x: Value) -> Value:
    return x - trunc(x)


def hypot(x: Value, y: Value) -> Value:
    a, b = abs(x), abs(y)
    if x.code.short:
        root = sqrt(fma(a, a, b * b))
    else:
        high = select(a > b, a, b)
        one = x.code.constant(1.0)
        scale = select(high > 2.0**500, 2.0**-600, select(high < 2.0**-500, 2.0**600, one))
        a, b = a * scale, b * scale
        root = sqrt(fma(a, a, b * b)) * select(high > 2.0**500, 2.0**600, select(high < 2.0**-500, 2.0**-600, one))
    return select(abs(x).equals(math.inf) | abs(y).equals(math.inf), math.inf, root)


def fmod(x: Value, y: Value) -> Value:
    """$x - n y$ with n the quotient cut off: exact where n is a number, as it is below 2^52; a quotient that was
    rounded up to n is made good. Elsewhere a lane asks the C library.
    """
    a, b = abs(x), abs(y)
    n = trunc(a / b)
    r = fma(-n, b, a)
    r = select(r < 0.0, r + b, r)
    r = copysign(select(r >= b, r - b, r), x)
    return in_lanes("fmod", ~((n < 2.0**52) & (b < math.inf)), r, x, y)
