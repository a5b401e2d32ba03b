"""Kernels that copy a part of a value, of any layout, into a value of any layout."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.jit.lowering.phases import Kernel

CHUNK = 1 << 16  # bytes that a chunk copies at least
_WIDE = 64  # bytes at once, where both are beside each other


def copy_kernel(spec: Spec, offset: int, source: Sequence[int], target: Sequence[int]) -> Kernel:
    """The kernel of operands (from, to): elements of a spec, with strides in elements, and an offset in bytes of the
    first.
    """
    size = spec.dtype.itemsize
    loops = _merged([(n, s * size, t * size) for n, s, t in zip(spec.shape, source, target, strict=True) if n != 1])
    if 0 in spec.shape:
        loops = [(0, size, size)]
    if loops[-1:] and loops[-1][1:] == (size, size):  # whole pieces
        loops[-1] = loops[-1][0] * size, 1, 1
        size = 1
    count = loops[0][0] if loops else 1
    per = max(1, -(-CHUNK * count // max(1, math.prod(spec.shape) * spec.dtype.itemsize)))
    chunks = max(1, -(-count // per))
    text = _Text(size).text(loops, offset, per)
    name = "copy_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return Kernel(
        name,
        text.replace("@NAME", f"@{name}"),
        chunks,
        frozenset({1}),
        python=partial(_copied, spec, offset, tuple(source), tuple(target)),
    )


def _merged(loops: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Loops (count, steps of both in bytes), the innermost with the smallest steps, and two that go on in each other as one."""
    merged: list[tuple[int, int, int]] = []
    for n, s, t in sorted(loops, key=lambda loop: (-abs(loop[2]), -abs(loop[1]))):
        if merged and merged[-1][1] == n * s and merged[-1][2] == n * t:
            merged[-1] = merged[-1][0] * n, s, t
        else:
            merged.append((n, s, t))
    return merged


class _Text:
    """The lines of a kernel while they are written."""

    def __init__(self, size: int) -> None:
        self.lines: list[str] = []
        self.kind, self.align = f"i{size * 8}", min(size, 8)
        self.count = 0

    def text(self, loops: list[tuple[int, int, int]], offset: int, per: int) -> str:
        outer, *inner = loops or [(1, 0, 0)]
        n, s, t = outer
        self.lines += [
            "define void @NAME(ptr %addresses, i64 %chunk) {",
            "begin:",
            "  %from = load ptr, ptr %addresses",
            "  %to_at = getelementptr ptr, ptr %addresses, i64 1",
            "  %to = load ptr, ptr %to_at",
            f"  %first = mul i64 %chunk, {per}",
            f"  %rest = sub i64 {n}, %first",
            f"  %short = icmp slt i64 %rest, {per}",
            f"  %count = select i1 %short, i64 %rest, i64 {per}",
            f"  %from_skip = mul i64 %first, {s}",
            f"  %from_first = add i64 %from_skip, {offset}",
            f"  %to_first = mul i64 %first, {t}",
            "  %from0 = getelementptr i8, ptr %from, i64 %from_first",
            "  %to0 = getelementptr i8, ptr %to, i64 %to_first",
        ]
        self.loops([("%count", s, t), *[(str(m), a, b) for m, a, b in inner]], "%from0", "%to0", "begin")
        self.lines += ["  ret void", "}"]
        return "\n".join(self.lines) + "\n"

    def loops(self, loops: list[tuple[str, int, int]], source: str, target: str, before: str) -> str:
        """Nested loops; the name of the block behind them."""
        if not loops:
            return self.element(self.kind, self.align, source, target, before)
        (n, s, t), *inner = loops
        if (s, t) == (1, 1) and self.kind == "i8" and not inner:
            return self.piece(n, source, target, before)
        k = self.begin(n, before)
        a, b = self.at(source, f"%i{k}", s), self.at(target, f"%i{k}", t)
        return self.end(k, n, self.loops(inner, a, b, f"body{k}"), 1)

    def piece(self, n: str, source: str, target: str, before: str) -> str:
        """Bytes beside each other: many at once, then one by one."""
        self.count += 1
        whole = f"%whole{self.count}"
        self.lines.append(f"  {whole} = and i64 {n}, {-_WIDE}")
        k = self.begin(whole, before)
        a, b = self.at(source, f"%i{k}", 1), self.at(target, f"%i{k}", 1)
        middle = self.end(k, whole, self.element(f"<{_WIDE} x i8>", 1, a, b, f"body{k}"), _WIDE)
        k = self.begin(n, middle, whole)
        a, b = self.at(source, f"%i{k}", 1), self.at(target, f"%i{k}", 1)
        return self.end(k, n, self.element("i8", 1, a, b, f"body{k}"), 1)

    def begin(self, n: str, before: str, first: str = "0") -> int:
        self.count += 1
        k = self.count
        self.lines += [
            f"  br label %loop{k}",
            f"loop{k}:",
            f"  %i{k} = phi i64 [ {first}, %{before} ], [ %next{k}, %last{k} ]",
            f"  %more{k} = icmp slt i64 %i{k}, {n}",
            f"  br i1 %more{k}, label %body{k}, label %done{k}",
            f"body{k}:",
        ]
        return k

    def end(self, k: int, n: str, inside: str, step: int) -> str:
        self.lines += [
            f"  br label %last{k}",
            f"last{k}:",
            f"  %next{k} = add i64 %i{k}, {step}",
            f"  br label %loop{k}",
            f"done{k}:",
        ]
        return f"done{k}"

    def at(self, base: str, index: str, step: int) -> str:
        self.count += 1
        self.lines += [
            f"  %o{self.count} = mul i64 {index}, {step}",
            f"  %p{self.count} = getelementptr i8, ptr {base}, i64 %o{self.count}",
        ]
        return f"%p{self.count}"

    def element(self, kind: str, align: int, source: str, target: str, before: str) -> str:
        self.count += 1
        self.lines += [
            f"  %x{self.count} = load {kind}, ptr {source}, align {align}",
            f"  store {kind} %x{self.count}, ptr {target}, align {align}",
        ]
        return before


def _copied(
    spec: Spec, offset: int, source: tuple[int, ...], target: tuple[int, ...], operands: list[Any], chunk: int
) -> None:
    """The same on arrays, in one chunk."""
    size = spec.dtype.itemsize

    def part(array: Any, begin: int, strides: tuple[int, ...]) -> Any:
        flat = array.reshape(-1).view(np.uint8)
        return np.ndarray(spec.shape, spec.dtype, flat, begin, [s * size for s in strides])

    if chunk == 0 and 0 not in spec.shape:
        part(operands[1], 0, target)[...] = part(operands[0], offset, source)
