"""The CRC-32 of much memory, by products of polynomials that processors have: five times as fast as tables.

A message is taken as a polynomial modulo that of the CRC, so a block may be added to one that lies ``d`` bits behind it if
it is multiplied by $x^d$ modulo that polynomial. (Gopal and others, "Fast CRC Computation for Generic Polynomials Using
PCLMULQDQ Instruction", Intel 2009.) What is left is one block with the same CRC as all of it, of which zlib takes that.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.kernels.llvm import native

_POLYNOMIAL = 0x104C11DB7
_VECTORS = 8  # of a block: as many products are on their way at once
_ONES = 0xFFFFFFFF  # with which zlib begins a CRC whose register is 0


def crc32(data: Any, value: int = 0) -> int:
    """`zlib.crc32` of contiguous bytes.

    >>> crc32(b"123456789") == zlib.crc32(b"123456789")
    True
    """
    memory, (fold, size) = np.frombuffer(data, np.uint8), _fold()
    count = memory.size // size if size else 0
    if fold is None or count < 2:
        return zlib.crc32(data, value)
    state = memory[:size].copy()
    state[:4] ^= np.frombuffer((value ^ _ONES).to_bytes(4, "little"), np.uint8)
    fold(memory.ctypes.data + size, state.ctypes.data, count - 1)
    return zlib.crc32(memory[count * size :].data, zlib.crc32(state.data, _ONES))


@functools.cache
def _fold() -> tuple[Callable[[int, int, int], None] | None, int]:
    """What adds blocks to a state, and the bytes of one; None where the processor has no such products."""
    host = native.host()
    if host is None or not host.has("pclmul"):
        return None, 0
    lanes = 4 if host.has("vpclmulqdq") and host.has("avx512f") else 1
    return native.nest("crc_fold", code(lanes), 2, 1), _VECTORS * 16 * lanes


def code(lanes: int) -> str:
    """The function ``crc_fold`` of blocks, a state and the number of blocks, with vectors of so many times 128 bits."""
    kind = f"<{2 * lanes} x i64>"
    name = "@llvm.x86.pclmulqdq" + ("" if lanes == 1 else f".{128 * lanes}")
    distance, size = 128 * lanes * _VECTORS, 16 * lanes
    factors = ", ".join([f"i64 {_power(distance + 32)}, i64 {_power(distance - 32)}"] * lanes)
    every = range(_VECTORS)
    before = [
        f"  %s{i} = getelementptr i8, ptr %state, i64 {i * size}\n  %a{i} = load {kind}, ptr %s{i}, align 1"
        for i in every
    ]
    values = [f"  %v{i} = phi {kind} [ %a{i}, %entry ], [ %n{i}, %body ]" for i in every]
    added = [
        f"""\
  %p{i} = getelementptr i8, ptr %at, i64 {i * size}
  %d{i} = load {kind}, ptr %p{i}, align 1
  %l{i} = call {kind} {name}({kind} %v{i}, {kind} <{factors}>, i8 0)
  %h{i} = call {kind} {name}({kind} %v{i}, {kind} <{factors}>, i8 17)
  %x{i} = xor {kind} %l{i}, %h{i}
  %n{i} = xor {kind} %x{i}, %d{i}"""
        for i in every
    ]
    after = [f"  store {kind} %v{i}, ptr %s{i}, align 1" for i in every]
    return "\n".join([
        f"declare {kind} {name}({kind}, {kind}, i8 immarg)",
        "define void @crc_fold(ptr %data, ptr %state, i64 %count) {\nentry:", *before, "  br label %loop\nloop:",
        "  %k = phi i64 [ 0, %entry ], [ %next, %body ]", *values,
        "  %more = icmp slt i64 %k, %count\n  br i1 %more, label %body, label %end\nbody:",
        f"  %offset = mul i64 %k, {size * _VECTORS}\n  %at = getelementptr i8, ptr %data, i64 %offset", *added,
        "  %next = add i64 %k, 1\n  br label %loop\nend:", *after, "  ret void\n}",
    ])  # fmt: skip


def _power(n: int) -> int:
    """$x^n$ modulo the polynomial, its bits in the order in which a CRC has them, times $x$."""
    value = 1
    for _ in range(n):
        value <<= 1
        value ^= _POLYNOMIAL if value >> 32 else 0
    return int(f"{value:032b}"[::-1], 2) << 1
