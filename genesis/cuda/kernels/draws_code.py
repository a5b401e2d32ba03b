"""Random numbers in Triton's language: the words of Philox4x64-10 (`genesis.core.graph.generator`), what is made of them, and
normal numbers (`genesis.core.graph.normals`), of which each operation is rounded as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.core.graph.generator import BITS
from genesis.core.graph.normals import parts_of
from genesis.jit.lowering.triton_code import constant, type_of

BLOCKS = 256  # of four words, of a program
WORD = np.dtype(np.uint64)

_WORDS = """
import triton
import triton.language as tl


@triton.jit
def words(key, counter):
    zero = counter * 0
    a, b, c, d = counter, zero, zero, zero
    k, l = key + zero, zero
    x, y = tl.full((), 0xD2E7470EE14C6C93, tl.uint64), tl.full((), 0xCA5A826395121157, tl.uint64)
    for _ in tl.static_range(10):
        high, low = tl.umulhi(x + zero, a), x * a
        a, b, c, d = tl.umulhi(y + zero, c) ^ b ^ k, y * c, high ^ d ^ l, low
        k, l = k + tl.full((), 0x9E3779B97F4A7C15, tl.uint64), l + tl.full((), 0xBB67AE8584CAA73B, tl.uint64)
    return a, b, c, d


@triton.jit
def joined(a, b, c, d):
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def uniform(words):
    return (words >> {shift}).to(tl.int64).to(tl.{wide}) * {scale}

"""

_ONE_BY_ONE = """
@triton.jit
def kernel(out, n, {parameters}):
    {loads}
    block = tl.program_id(0) * {blocks} + tl.arange(0, {blocks})
    a, b, c, d = words(key, first + 1 + block.to(tl.uint64))
    at = tl.program_id(0) * {words} + tl.arange(0, {words})
    value = {made}
    {lines}
    tl.store(out + at, value.to(out.dtype.element_ty), mask=at < n)
"""

# two of two words, of which the second are half of all words behind the first: they begin amid a block
_IN_PAIRS = """
@triton.jit
def at_place(r, a, b, c, d):
    return tl.where(r == 0, a, tl.where(r == 1, b, tl.where(r == 2, c, d)))


@triton.jit
def pairs(u, v):
    bits = (1.0 - u).to(tl.{bits}, bitcast=True)
    e = (bits - {half}) & {mask}
    m = (bits - e).to(tl.{wide}, bitcast=True)
    s = {quotient}
    z = s * s
    squared = {logarithm} * s + e.to(tl.{wide}) * {step}
    radius = {root}
    t = v - 0.5
    z = t * t
    a = t * {sine}
    return (a * a - 1.0) * radius, {cosine} * a * radius


@triton.jit
def kernel(out, n, {parameters}):
    {loads}
    block = tl.program_id(0) * {blocks} + tl.arange(0, {blocks})
    counter = first + 1 + block.to(tl.uint64)
    a, b, c, d = words(key, counter)
    u = uniform(joined(a, b, c, d))
    half = n // 2 + n % 2
    r = half % 4
    counter += (half // 4).to(tl.uint64)
    a, b, c, d = words(key, counter)
    e, f, g, _ = words(key, counter + 1)
    second = joined(at_place(r, a, b, c, d), at_place(r, b, c, d, e), at_place(r, c, d, e, f), at_place(r, d, e, f, g))
    at = tl.program_id(0) * {words} + tl.arange(0, {words})
    x, y = pairs(u, uniform(second))
    value = x
    {lines}
    tl.store(out + at, value.to(out.dtype.element_ty), mask=at < half)
    value = y
    {lines}
    tl.store(out + half + at, value.to(out.dtype.element_ty), mask=at < n - half)
"""


def source_of(numbers: Any, parameters: list[str], loads: str, lines: str, normal: bool) -> str:
    """The kernel that stores what the lines make of a ``value``, which is a number in [0, 1) with as many digits as a dtype
    has, or a ``normal`` one; of words of 64 bits a word.
    """
    if numbers == WORD:
        numbers, made = np.dtype(np.float64), "joined(a, b, c, d)"
    else:
        made = "uniform(joined(a, b, c, d))"
    digits, wide = BITS[numbers.name], np.dtype(np.float64 if numbers == np.float64 else np.float32)
    known = {
        "shift": 64 - digits, "scale": constant(2.0**-digits, wide), "wide": type_of(wide), "blocks": BLOCKS,
        "words": 4 * BLOCKS, "parameters": ", ".join(parameters), "loads": loads or "pass", "made": made,
        "lines": "\n    ".join(lines.split("\n")), **(_of_pairs(wide) if normal else {}),
    }  # fmt: skip
    return (_WORDS + (_IN_PAIRS if normal else _ONE_BY_ONE)).format(**known).lstrip()


def _of_pairs(wide: Any) -> dict[str, Any]:
    known = parts_of(wide)
    short = wide == np.float32
    return {
        "bits": type_of(known.bits), "half": constant(known.half, known.bits),
        "mask": constant(-1 << known.digits, known.bits), "step": constant(known.step * 0.5**known.digits, wide),
        "quotient": "tl.div_rn(m - 1.0, m + 1.0)" if short else "(m - 1.0) / (m + 1.0)",
        "root": "tl.sqrt_rn(squared)" if short else "tl.sqrt(squared)",
        **{name: _horner(getattr(known, name), wide) for name in ("logarithm", "sine", "cosine")},
    }  # fmt: skip


def _horner(coefficients: tuple[float, ...], wide: Any) -> str:
    """A polynomial of z, the highest power first."""
    first, *rest = [constant(c, wide) for c in coefficients]
    text = first
    for c in rest:
        text = f"({text} * z + {c})"
    return text
