"""Normal numbers: the same bits everywhere, and right."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

import genesis
from genesis.core.graph import normals
from genesis.core.graph.normals import FLOAT64


def horner(coefficients, x):
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def pair(u1, u2):
    """The formula of `normals`, with Python's floats."""
    (bits,) = struct.unpack("<q", struct.pack("<d", 1.0 - u1))
    e = (bits - FLOAT64.half) >> FLOAT64.digits
    (m,) = struct.unpack("<d", struct.pack("<q", bits - (e << FLOAT64.digits)))
    s = (m - 1.0) / (m + 1.0)
    radius = math.sqrt(horner(FLOAT64.logarithm, s * s) * s + e * FLOAT64.step)
    t = u2 - 0.5
    a = t * horner(FLOAT64.sine, t * t)
    return (a * a - 1.0) * radius, horner(FLOAT64.cosine, t * t) * a * radius


def test_the_bits_are_those_of_the_formula():
    n = 1001
    genesis.manual_seed(3)
    drawn = genesis.randn(n, dtype=genesis.float64).tolist()
    half = (n + 1) // 2
    genesis.manual_seed(3)
    u = genesis.rand(2 * half, dtype=genesis.float64).tolist()
    pairs = [pair(u[i], u[half + i]) for i in range(half)]
    assert drawn == [x for x, _ in pairs] + [y for _, y in pairs][: n - half]


def test_the_bits_of_float32():
    """Digits that every machine gives: nothing in them is a function of a library."""
    genesis.manual_seed(3)
    assert [x.hex() for x in genesis.randn(4).tolist()] == [
        "-0x1.baa5920000000p+0",
        "0x1.f7bfdc0000000p-4",
        "0x1.911d0c0000000p+0",
        "-0x1.8c59880000000p-2",
    ]


@pytest.mark.parametrize(("dtype", "digits", "away"), [(np.float32, 24, 2.5e-6), (np.float64, 53, 5e-15)])
def test_they_are_box_and_mullers(dtype, digits, away):
    words = np.random.default_rng(0).integers(0, 2**64, (2, 3 * normals.PAIRS + 5), np.uint64, endpoint=False)
    words[:, :4] = [[0, 2**64 - 1, 0, 2**64 - 1], [0, 0, 2**64 - 1, 2**64 - 1]]
    out = np.empty(words.shape, dtype)
    normals.normals(words, out, digits)
    u1, u2 = (words >> np.uint64(64 - digits)).astype(np.longdouble) / 2**digits
    radius, angle = np.sqrt(-2 * np.log1p(-u1)), 2 * np.arccos(np.longdouble(-1)) * u2
    assert np.abs(out - radius * np.array([np.cos(angle), np.sin(angle)])).max() < away


def test_they_are_spread_as_normal_numbers():
    genesis.manual_seed(1)
    x = np.sort(genesis.randn(400_000, dtype=genesis.float64).numpy())
    law = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x[::40].tolist()])
    assert np.abs(law - np.arange(0, len(x), 40) / len(x)).max() < 1.63 / math.sqrt(len(x))  # 1 in 100 (Kolmogorov)
    y = genesis.randn(200_000).numpy()
    assert abs(np.corrcoef(y, np.roll(y, 1))[0, 1]) < 0.01
