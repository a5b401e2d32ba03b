"""The same loop over many tensors, as one kernel: a step of an optimizer is one phase for all parameters.

A table says what each chunk does: of which tensor, from which element to which. Large tensors are several chunks, small
ones are together in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from genesis.jit.lowering.emit_llvm import SOME, emitted
from genesis.jit.lowering.emit_python import run_some
from genesis.jit.lowering.loops import Nest
from genesis.jit.lowering.phases import Kernel
from genesis.kernels.llvm import loops

ELEMENTS = 1 << 14  # of a chunk


def pieces(sizes: Sequence[int], most: int = ELEMENTS) -> list[tuple[int, int, int, int]]:
    """Chunk, number of the tensor, start and stop of each piece.

    >>> pieces([5, 3, 40], most=16)
    [(0, 0, 0, 5), (0, 1, 0, 3), (0, 2, 0, 8), (1, 2, 8, 24), (2, 2, 24, 40)]
    """
    out, chunk, room = [], 0, most
    for i, size in enumerate(sizes):
        start = 0
        while start < size:
            if not room:
                chunk, room = chunk + 1, most
            stop = min(start + room, size)
            out.append((chunk, i, start, stop))
            room -= stop - start
            start = stop
    return out


def kernel(name: Callable[[str], str], nest: Nest, sizes: Sequence[int], width: int) -> Kernel:
    """A kernel whose operands are those of the loop for the first tensor, then for the second, and so on."""
    count, plan = len(nest.operands), pieces(sizes)
    loop = emitted(nest, "NAME", width, SOME, "internal ")
    inner = name(loop)
    loop = loop.replace("@NAME(", f"@{inner}(")
    outer = name(f"{inner} {plan}")
    chunks = 1 + max([chunk for chunk, *_ in plan], default=0)
    writes = frozenset([i * count + w for i in range(len(sizes)) for w in nest.writes])
    return Kernel(
        outer, f"{loop}\n{_code(outer, inner, plan, count)}{loops.attributes()}", chunks, writes, _over(nest, len(sizes)),
        _oracle(nest, plan, count), nest,
    )  # fmt: skip


def _over(nest: Nest, times: int) -> tuple[tuple[int, int], ...]:
    return tuple([(i * len(nest.operands) + r, i * len(nest.operands) + w) for i in range(times) for r, w in nest.over])


def _code(name: str, inner: str, plan: list[tuple[int, int, int, int]], count: int) -> str:
    rows = ", ".join([f"[3 x i64] [i64 {i * count}, i64 {start}, i64 {stop}]" for _, i, start, stop in plan])
    firsts = [0]
    for _, own in groupby(plan, key=lambda piece: piece[0]):
        firsts.append(firsts[-1] + len(list(own)))
    numbers = ", ".join([f"i64 {x}" for x in firsts])
    return f"""
@{name}_rows = internal constant [{len(plan)} x [3 x i64]] [{rows}]
@{name}_firsts = internal constant [{len(firsts)} x i64] [{numbers}]
define void @{name}(ptr %addresses, i64 %chunk) #0 {{
entry:
  %first.at = getelementptr i64, ptr @{name}_firsts, i64 %chunk
  %first = load i64, ptr %first.at
  %last.at = getelementptr i64, ptr %first.at, i64 1
  %last = load i64, ptr %last.at
  br label %piece
piece:
  %i = phi i64 [ %first, %entry ], [ %next, %piece ]
  %row = getelementptr [3 x i64], ptr @{name}_rows, i64 %i
  %operand = load i64, ptr %row
  %start.at = getelementptr i64, ptr %row, i64 1
  %start = load i64, ptr %start.at
  %stop.at = getelementptr i64, ptr %row, i64 2
  %stop = load i64, ptr %stop.at
  %own = getelementptr ptr, ptr %addresses, i64 %operand
  call void @{inner}(ptr %own, i64 %start, i64 %stop)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %piece, label %done
done:
  ret void
}}
"""


def _oracle(nest: Nest, plan: list[tuple[int, int, int, int]], count: int) -> Callable[[list[Any], int], None]:
    def run(operands: list[Any], chunk: int) -> None:
        for each, i, start, stop in plan:
            if each == chunk:
                run_some(nest, operands[i * count : (i + 1) * count], range(start, stop))

    return run
