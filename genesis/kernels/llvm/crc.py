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
_LINE = 64  # bytes of a cache line, which is written as a whole


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


def copy(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any], value: int = 0) -> int:
    """Copy bytes to memory that nobody reads soon, past the caches; the `crc32` of them.

    That takes as long as the copy: each byte is read once, and what was in the target is not read before it is written.

    >>> target = np.zeros(9, np.uint8)
    >>> copy(target, np.frombuffer(b"123456789", np.uint8)) == zlib.crc32(target.data)
    True
    """
    fold, size = _fold(copies=True)
    begin = min(-target.ctypes.data % _LINE, source.size)
    count = (source.size - begin) // size if size else 0
    if fold is None or count < 2:
        target[:] = source
        return zlib.crc32(target.data, value)
    first, end = begin + size, begin + count * size
    for part in (slice(first), slice(end, None)):
        target[part] = source[part]
    state = target[begin:first].copy()
    state[:4] ^= np.frombuffer((zlib.crc32(target[:begin].data, value) ^ _ONES).to_bytes(4, "little"), np.uint8)
    fold(source.ctypes.data + first, state.ctypes.data, target.ctypes.data + first, count - 1)
    return zlib.crc32(target[end:].data, zlib.crc32(state.data, _ONES))


def is_fast() -> bool:
    """Whether the processor has such products: a CRC takes no longer than reading the memory."""
    return _lanes() > 0


@functools.cache
def _lanes() -> int:
    """How many times 128 bits are multiplied at once."""
    host = native.host()
    if host is None or not host.has("pclmul"):
        return 0
    return 4 if host.has("vpclmulqdq") and host.has("avx512f") else 1


@functools.cache
def _fold(copies: bool = False) -> tuple[Callable[..., None] | None, int]:
    """What adds blocks to a state, and with ``copies`` copies them as well, and the bytes of one; None where the processor has
    no such products.
    """
    lanes = _lanes()
    return (native.nest("crc_fold", code(lanes, copies), 2 + copies, 1), _VECTORS * 16 * lanes) if lanes else (None, 0)


def code(lanes: int, copies: bool = False) -> str:
    """The function ``crc_fold`` of blocks, a state, with ``copies`` the memory to copy them to, and the number of blocks;
    with vectors of so many times 128 bits.
    """
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
    if copies:
        added = [
            f"""\
{each}
  %c{i} = getelementptr i8, ptr %to, i64 {i * size}
  store {kind} %d{i}, ptr %c{i}, align {size}, !nontemporal !0"""
            for i, each in enumerate(added)
        ]
    after = [f"  store {kind} %v{i}, ptr %s{i}, align 1" for i in every]
    target, to = (", ptr %target", "  %to = getelementptr i8, ptr %target, i64 %offset") if copies else ("", "")
    return "\n".join([
        f"declare {kind} {name}({kind}, {kind}, i8 immarg)",
        f"define void @crc_fold(ptr %data, ptr %state{target}, i64 %count) {{\nentry:", *before, "  br label %loop\nloop:",
        "  %k = phi i64 [ 0, %entry ], [ %next, %body ]", *values,
        "  %more = icmp slt i64 %k, %count\n  br i1 %more, label %body, label %end\nbody:",
        f"  %offset = mul i64 %k, {size * _VECTORS}\n  %at = getelementptr i8, ptr %data, i64 %offset", to, *added,
        "  %next = add i64 %k, 1\n  br label %loop\nend:", *after,
        "  fence seq_cst" if copies else "",  # what goes past the caches is seen by other threads
        "  ret void\n}\n!0 = !{i32 1}",
    ])  # fmt: skip


def _power(n: int) -> int:
    """$x^n$ modulo the polynomial, its bits in the order in which a CRC has them, times $x$."""
    value = 1
    for _ in range(n):
        value <<= 1
        value ^= _POLYNOMIAL if value >> 32 else 0
    return int(f"{value:032b}"[::-1], 2) << 1
