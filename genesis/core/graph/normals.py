"""Normal numbers from uniform ones (G. Box and M. Muller, "A note on the generation of random normal deviates", 1958),
the same bits on every machine.

Logarithms and cosines of NumPy round in another way from one processor to the next, and those of a GPU in a third. Here
only sums, products, quotients and square roots are taken, each rounded to nearest, in an order that is said:

    1 - u1 = 2^e m with m in [1/sqrt(2), sqrt(2)),  s = (m - 1) / (m + 1),  r = sqrt(s L(s^2) + e (-2 ln 2))
    t = u2 - 1/2,  a = t S(t^2) = sqrt(2) sin(pi t),  b = C(t^2) = -sqrt(2) cos(pi t)
    r cos(2 pi u2) = r (a^2 - 1),  r sin(2 pi u2) = r (a b)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# makes an array of a shape, which has so many numbers, from a key and a block of a stream on
Maker = Callable[[tuple[int, ...], int, int, int], Array]
PAIRS = 16384  # at a time, so that what is computed on the way stays in a processor's cache


@dataclass(frozen=True, slots=True)
class Parts:
    """What belongs to a kind of floats: its polynomials (of least error, as `scripts/minimax` finds them), the highest
    power first, and how its bits are divided.

    Attributes:
        logarithm: L, -2 ln((1 + s) / (1 - s)) / s of s^2
        sine, cosine: S, sqrt(2) sin(pi t) / t, and C, -sqrt(2) cos(pi t), of t^2
        step: -2 ln 2
        bits: integers as wide
        digits: binary ones behind the first
        half: the bits of 1 / sqrt(2)
    """

    logarithm: tuple[float, ...]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    step: float
    bits: Any
    digits: int
    half: int


FLOAT32 = Parts(
    (-0.5985130071640015, -0.7994958758354187, -1.333336353302002, -4.0),
    (0.109686940908432, -0.8460420966148376, 3.6063432693481445, -7.3082451820373535, 4.442883014678955),
    (0.034502167254686356, -0.3322518765926361, 1.8882750272750854, -5.73988151550293, 6.9788641929626465,
     -1.4142135381698608),
    -1.3862943649291992, np.dtype(np.int32), 23, 0x3F3504F3,
)  # fmt: skip
FLOAT64 = Parts(
    (-0.29621059670519373, -0.3062488753295589, -0.3636727018670591, -0.4444439397655587, -0.5714285752269239,
     -0.7999999999859777, -1.333333333333353, -4.0),
    (1.0881987450224574e-06, -3.097578185880142e-05, 0.0006594473439888108, -0.010423362743594445, 0.11617182688030435,
     -0.8474880248116888, 3.6064765714706315, -7.308249499995438, 4.442882938158366),
    (-5.868408860693584e-06, 0.00014787947664783848, -0.002728804665619617, 0.036496452057846455, -0.3328077687713815,
     1.8883467170302786, -5.739885734946355, 6.978864199638876, -1.4142135623730951),
    -1.3862943611198906, np.dtype(np.int64), 52, 0x3FE6A09E667F3BCD,
)  # fmt: skip


def parts_of(dtype: Any) -> Parts:
    return FLOAT64 if dtype == np.float64 else FLOAT32


def maker(dtype: Any) -> Maker | None:
    """What makes normal numbers without words in memory, if anything does (`genesis.kernels.cpu.draws` takes its place)."""
    return None


def uniform_maker(dtype: Any, drops: bool = False) -> Callable[..., Array] | None:
    """The same for numbers in [0, 1), and for factors of a dropout, which it is told the probability of."""
    return None


def normals(words: Array, out: Array, digits: int) -> None:
    """Write two rows of normal numbers, made of the first binary digits of two rows of 64-bit words."""
    for begin in range(0, words.shape[1], PAIRS):
        piece = slice(begin, begin + PAIRS)
        u = (words[:, piece] >> np.uint64(64 - digits)).astype(out.dtype)
        u *= out.dtype.type(0.5**digits)
        _some(u, out[:, piece])


def _some(u: Array, out: Array) -> None:
    known, coefficients = parts_of(u.dtype), _table(u.dtype)
    bits = (1 - u[0]).view(known.bits)
    e = bits - known.half
    e &= -1 << known.digits  # shifted
    bits -= e
    m = bits.view(u.dtype)
    s = m - 1
    m += 1
    s /= m
    t = u[1] - 0.5
    squares = np.empty((3, len(s)), u.dtype)
    np.multiply(s, s, squares[0])
    np.multiply(t, t, squares[1])
    squares[2] = squares[1]
    sums = (
        coefficients[0] * squares
    )  # all three at once, as far as the longest goes: fewer calls, each over more numbers
    for row in coefficients[1:-1]:
        sums += row
        sums *= squares
    sums += coefficients[-1]
    radius, a, b = sums
    radius *= s
    t *= a
    b *= t
    np.multiply(e, known.step * 0.5**known.digits, s, casting="unsafe", dtype=u.dtype)
    radius += s
    np.sqrt(radius, radius)
    t *= t
    t -= 1
    np.multiply(t, radius, out[0])
    np.multiply(b, radius, out[1])


@functools.cache
def _table(dtype: Any) -> list[Array]:
    """The coefficients of all three polynomials, by power, in columns."""
    known = parts_of(dtype)
    most = len(known.cosine)
    rows = [(*[0.0] * (most - len(row)), *row) for row in (known.logarithm, known.sine, known.cosine)]
    return [np.array(column, dtype)[:, None] for column in zip(*rows, strict=True)]
