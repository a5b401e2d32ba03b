"""Kernels of products: one program makes a tile of the result, going through the inner dimension in steps.

Sums are in float32, also of 16-bit numbers, which the tensor cores multiply. float32 is multiplied in float32, float64 and
integers without such instructions in their own. Batches are the second dimension of the grid. A bias is added, and the
result is rounded, before it is stored.

A small product of float32 is bound by how soon numbers are there, not by how fast they are multiplied: it has small tiles, so
that all processors have one. Where both operands lie along what is summed, as those of a linear layer do, lanes go along that,
too, and their sums are added at the end: nothing has to be turned in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, F64, HALVES

INT64 = np.dtype(np.int64)
SMALL = 1 << 26  # multiplications of a small product, at most
LONGEST = 2048  # that is summed: what is longer is divided among programs by a library
SHORT = 128  # that is summed of both operands' rows: then wider tiles in shorter steps are as fast
PROGRAMS = 264  # of its tiles: two for each processor of an H100
WARPS = 4  # of all small ones, so that they may be one launch

_HEAD = ["import triton", "import triton.language as tl", "", ""]
_SOURCE = """
@triton.jit
def kernel(a, b, bias, c, M, N, K, am, ak, bk, bn, az, bz{parameters}):
    pid = tl.program_id(0)
    z = tl.program_id(1).to(tl.int64)
    wide = tl.cdiv(N, {n})
    m = (pid // wide) * {m} + tl.arange(0, {m})
    n = (pid % wide) * {n} + tl.arange(0, {n})
    k = tl.arange(0, {k})
    left = a + z * az + m[:, None] * {am} + k[None, :] * {ak}
    right = b + z * bz + k[:, None] * {bk} + n[None, :] * {bn}
    at = m[:, None] * N + n[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    {reads}
    total = tl.zeros([{m}, {n}], tl.{wide})
    for done in range(0, K, {k}):
        x = tl.load(left, mask=(m[:, None] < M) & (k[None, :] < K - done), other=0.0)
        y = tl.load(right, mask=(k[:, None] < K - done) & (n[None, :] < N), other=0.0)
        {multiplied}
        left += {k} * {ak}
        right += {k} * {bk}
    {added}
    {stored}
"""
_ALONG = """
@triton.jit
def kernel(a, b, bias, c, M, N, K, am, ak, bk, bn, az, bz{parameters}):
    pid = tl.program_id(0)
    z = tl.program_id(1).to(tl.int64)
    wide = tl.cdiv(N, {n})
    m = (pid // wide) * {m} + tl.arange(0, {m})
    n = (pid % wide) * {n} + tl.arange(0, {n})
    k = tl.arange(0, {k})
    left = a + z * az + m[:, None, None] * {am} + k[None, None, :]
    right = b + z * bz + n[None, :, None] * {bn} + k[None, None, :]
    at = m[:, None] * N + n[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    {reads}
    totals = tl.zeros([{m}, {n}, {k}], tl.float32)
    for done in tl.range(0, K, {k}, num_stages=3):
        x = tl.load(left + done, mask=(m[:, None, None] < M) & (k[None, None, :] < K - done), other=0.0)
        y = tl.load(right + done, mask=(n[None, :, None] < N) & (k[None, None, :] < K - done), other=0.0)
        totals += x * y
    total = tl.sum(totals, 2)
    {added}
    {stored}
"""
_ADDED = "total += tl.load(bias + n, mask=n < N, other=0.0).to(tl.{wide})[None, :]"
_STORED = "tl.store(c + z * M * N + at, total.to(c.dtype.element_ty), mask=inside)"
_DOT = 'total = tl.dot(x, y, total, input_precision="ieee")'
_SUM = "total += tl.sum(x[:, :, None].to(tl.{wide}) * y[None, :, :].to(tl.{wide}), 1)"


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and steps of a program."""

    m: int
    n: int
    k: int
    warps: int
    along: bool = False  # whether lanes go along what is summed


def small_tile(m: int, n: int, k: int, unit: tuple[bool, bool, bool, bool]) -> Tile | None:
    """The tile of a small product; None of one that is not small, that is long, or a vector's."""
    programs = -(-m // 16) * -(-n // 16)
    if m * n * k > SMALL or k > LONGEST or min(m, n) < 8:
        return None
    _, left, right, _ = unit
    if k <= 16 and programs <= PROGRAMS:
        return Tile(16, 16, 16, WARPS)
    if not left and not right and k <= SHORT and min(m, n) >= 32 and -(-m // 32) * -(-n // 32) <= PROGRAMS:
        return Tile(32, 32, 32, WARPS)
    if programs > PROGRAMS:
        return None
    if right:
        few = 4 * programs <= PROGRAMS and k > 64  # a fourth as high, so that there are four times as many
        return (Tile(4, 16, 128, WARPS, along=True) if few else Tile(16, 16, 64, WARPS, along=True)) if left else None
    return Tile(16, 16 if left else 32, 64, WARPS)


def tile_of(m: int, n: int, dtype: Any) -> Tile:
    """By rule: large ones where there are enough for all processors."""
    if wide_of(dtype) != F32:
        return Tile(16, 16, 16, 4)
    if dtype in HALVES:
        return Tile(128, 128, 64, 8) if m * n >= 1 << 20 else Tile(64, 64, 64, 4)
    return Tile(64, 64, 16, 8) if min(m, n) >= 64 else Tile(32, 32, 16, 4)


# what is tried for large products, see `tuning`: the first is that of the rule
TILES = {
    2: (Tile(128, 128, 64, 8), Tile(128, 256, 64, 8), Tile(256, 128, 64, 8), Tile(128, 64, 64, 4), Tile(64, 128, 64, 4),
        Tile(64, 64, 64, 4)),
    4: (Tile(64, 64, 16, 8), Tile(128, 64, 16, 8), Tile(64, 64, 32, 4), Tile(32, 32, 16, 4)),
}  # fmt: skip


def wide_of(dtype: Any) -> Any:
    """What is summed in; only float32 by instructions for products."""
    return F32 if dtype in HALVES or dtype == F32 else F64 if dtype == F64 else INT64


@dataclass(frozen=True, slots=True)
class Tail:
    """What is done with the elements of a product, `total`, which are `at` numbers of memory, as far as they are `inside`.

    Attributes:
        reads: what is read for that, which is asked for before anything is multiplied
        stored: whether they are stored themselves
        parameters: of the kernel, besides those of all products
    """

    functions: tuple[str, ...] = tuple(_HEAD)
    reads: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    stored: bool = True


def source_of(
    dtype: Any,
    tile: Tile,
    unit: tuple[bool, bool, bool, bool],
    biased: bool,
    tail: Tail = Tail(),  # noqa: B008
) -> str:
    """The kernel in Triton's language; ``unit`` are the strides that are 1: of the left operand, then of the right one."""
    steps = {name: "1" if one else name for name, one in zip(("am", "ak", "bk", "bn"), unit, strict=True)}
    wide = wide_of(dtype)
    multiplied = _DOT if wide == F32 else _SUM.format(wide=wide.name)
    added = _ADDED.format(wide=wide.name) if biased else ""
    stored = "\n".join([_STORED] * tail.stored + list(tail.lines)).strip()
    parameters = "".join([f", {name}" for name in tail.parameters])
    reads = "\n".join(tail.reads).strip()
    names = {
        "reads": reads,
        "added": added,
        "multiplied": multiplied,
        "wide": wide.name,
        "stored": stored,
        "parameters": parameters,
    }
    text = (_ALONG if tile.along else _SOURCE).format(m=tile.m, n=tile.n, k=tile.k, **steps, **names)
    return "\n".join([*tail.functions, text.lstrip()])
