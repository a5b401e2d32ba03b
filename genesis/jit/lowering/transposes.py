"""Matrices of float32 numbers laid out the other way, in squares that are turned around in registers.

for chunks: (matrix of a batch, some rows)
    for squares of lanes x lanes:   load rows, exchange halves, quarters, ... with each other, store columns
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.jit.lowering.phases import Kernel
from genesis.kernels.llvm import loops
from genesis.kernels.llvm.nests import Code

ELEMENTS = 1 << 14  # of a chunk


def kernel(
    name: str, rows: int, columns: int, offset: int, step: int, batch: tuple[tuple[int, int, int], ...]
) -> Kernel:
    """``out[j, i] = x[offset + i * step + j]`` for so many rows and columns; of a batch each axis has a size and the steps
    in both.
    """
    lanes = loops.width() // 4
    count, blocks = math.prod([n for n, *_ in batch]), -(-rows // lanes)
    each = max(1, ELEMENTS // (lanes * columns))
    units = count * blocks
    code = Code(lanes)
    x, out = (code.put(f"load ptr, ptr {code.at('%addresses', str(i), 'ptr')}") for i in range(2))
    start = code.times("%chunk", str(each))
    with code.loop(start, code.least(code.add(start, str(each)), str(units)), "1") as unit:
        block, rest = code.put(f"urem i64 {unit.index}, {blocks}"), code.put(f"udiv i64 {unit.index}, {blocks}")
        first = code.times(block, str(lanes))
        source, target = code.add(code.times(first, str(step)), str(offset)), first
        for n, a, b in reversed(batch):
            index, rest = code.put(f"urem i64 {rest}, {n}"), code.put(f"udiv i64 {rest}, {n}")
            source, target = code.add(source, code.times(index, str(a))), code.add(target, code.times(index, str(b)))
        high = code.least(code.put(f"sub i64 {rows}, {first}"), str(lanes))
        with code.loop("0", str(-(-columns // lanes)), "1") as square:
            column = code.times(square.index, str(lanes))
            wide = code.least(code.put(f"sub i64 {columns}, {column}"), str(lanes))
            begin = code.at(x, code.add(source, column))
            end = code.at(out, code.add(target, code.times(column, str(rows))))
            code.invoke(f"transpose{lanes}", [begin, end], [str(step), high, wide, str(rows)])
    body = "\n".join(code.lines)
    head = f"define void @{name}(ptr %addresses, i64 %chunk) #0 {{\nentry:"
    text = f"{square_of(lanes)}\n{head}\n{body}\n  ret void\n}}\n{loops.attributes()}"
    oracle = _python(rows, columns, offset, step, batch, each, units)
    return Kernel(name, text, -(-units // each), frozenset([1]), python=oracle)


def square_of(lanes: int) -> str:
    """The function that turns a square around, of which only ``high`` rows and ``wide`` columns are there. One that is
    whole has no masks: with AVX2 it takes a processor long to write a part of a vector, and NEON has no instructions for it.
    """
    code = Code(lanes)
    mask, square = f"<{lanes} x i1>", str(lanes * lanes)
    whole = code.put(f"icmp eq i64 {code.times('%high', '%wide')}, {square}")
    with code.loop("0", code.put(f"zext i1 {whole} to i64"), "1"):
        rows = [code.load("%x", code.times("%step", str(i))) for i in range(lanes)]
        for j, row in enumerate(code.turned(rows)):
            code.store(row, "%out", code.times("%next", str(j)))
    with code.loop(code.put(f"zext i1 {whole} to i64"), "1", "1"):
        _turn_some(code, mask)
    text = code.definition(f"transpose{lanes}", ["x", "out"], ["step", "high", "wide", "next"], private=True)
    declared = (
        f"declare {code.vector} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {mask}, {code.vector})\n"
        f"declare void @llvm.masked.store.v{lanes}f32.p0({code.vector}, ptr, i32, {mask})\n"
    )
    return declared + text.replace(") {\nentry:", ") #0 {\nentry:")


def _turn_some(code: Code, mask: str) -> None:
    """A square that is not whole."""
    lanes = code.lanes
    inside = [_below(code, size) for size in ("%wide", "%high")]
    rows = []
    for i in range(lanes):
        there = code.put(f"icmp sgt i64 %high, {i}")
        some = code.put(f"select i1 {there}, {mask} {inside[0]}, {mask} zeroinitializer")
        at = code.at("%x", code.times("%step", str(i)))
        name = f"@llvm.masked.load.v{lanes}f32.p0"
        rows.append(
            code.put(f"call {code.vector} {name}(ptr {at}, i32 4, {mask} {some}, {code.vector} zeroinitializer)")
        )
    for j, row in enumerate(code.turned(rows)):
        there = code.put(f"icmp sgt i64 %wide, {j}")
        some = code.put(f"select i1 {there}, {mask} {inside[1]}, {mask} zeroinitializer")
        at = code.at("%out", code.times("%next", str(j)))
        name = f"@llvm.masked.store.v{lanes}f32.p0"
        code.lines.append(f"  call void {name}({code.vector} {row}, ptr {at}, i32 4, {mask} {some})")


def _below(code: Code, size: str) -> str:
    """Which lanes are below a size."""
    longs = f"<{code.lanes} x i64>"
    one = code.put(f"insertelement {longs} poison, i64 {size}, i32 0")
    every = code.put(f"shufflevector {longs} {one}, {longs} poison, <{code.lanes} x i32> zeroinitializer")
    numbers = ", ".join([f"i64 {i}" for i in range(code.lanes)])
    return code.put(f"icmp slt {longs} <{numbers}>, {every}")


def _python(
    rows: int, columns: int, offset: int, step: int, batch: tuple[tuple[int, int, int], ...], each: int, units: int
) -> Callable[[list[Any], int], None]:
    lanes = loops.width() // 4
    blocks = -(-rows // lanes)

    def run(arrays: list[Any], chunk: int) -> None:
        for unit in range(chunk * each, min((chunk + 1) * each, units)):
            matrix, block = divmod(unit, blocks)
            which = np.unravel_index(matrix, [n for n, *_ in batch]) if batch else ()
            source = offset + sum(int(i) * a for i, (_, a, _) in zip(which, batch, strict=True))
            target = sum(int(i) * b for i, (_, _, b) in zip(which, batch, strict=True))
            for i in range(block * lanes, min((block + 1) * lanes, rows)):
                arrays[1][target + i : target + i + (columns - 1) * rows + 1 : rows] = arrays[0][
                    source + i * step : source + i * step + columns
                ]

    return run
