"""Attention as a kernel: the loops of `genesis.kernels.llvm.attention`, with sizes, strides and where the matrices of each
head begin as constants. A chunk is some heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.jit.arguments import Var
from genesis.jit.lowering.parts import Memory, Read, Unknown
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.program import Call
from genesis.kernels.cpu.attention import LEAST
from genesis.kernels.llvm import attention as loops_of
from genesis.kernels.llvm import loops, products
from genesis.kernels.llvm.nests import declarations

NAME = "fused.scaled_dot_product_attention"
CALLS = (NAME, f"{NAME}.backward")
WORK = 1 << 19  # multiplications of a chunk
ON_STACK = 1 << 15  # numbers of scratch memory
F32 = np.dtype(np.float32)
Array = np.ndarray[Any, Any]


def suits(call: Call) -> bool:
    """Whether two numbers of each row are kept, not the weights: as `genesis.kernels.cpu.attention` decides."""
    query, key = (call.args[1] if call.op.endswith(".backward") else call.args)[:2]
    return math.prod(query.spec.shape) * key.spec.shape[-2] >= LEAST


def stage(memory: Memory, call: Call, name: Callable[[str], str]) -> Stage:
    """The kernel of a call and its operands."""
    backward = call.op.endswith(".backward")
    if backward:
        g, (query, key, value, stats, _, causal), wanted = call.args
        if any([each is None for each in wanted[:3]]):
            raise Unknown("gradients of some of the operands")
        scale, matrices = None, (query, key, value, g)
    else:
        query, key, value, _, _, causal, scale, _ = call.args
        stats, matrices = call.outs[1], (query, key, value, call.outs[0])
    if any([v.spec.dtype != F32 for v in matrices]):
        raise Unknown("attention of this dtype")
    factor = [call.args[1][4]] if backward else []
    shape = _Shape(memory, matrices, causal)
    number = 1 / math.sqrt(shape.depth) if scale is None else scale
    others = (stats, *call.outs) if backward else call.outs[1:]
    operands = [r.root for r in shape.reads] + list(others) + factor
    writes = [5, 6, 7] if backward else [3, 4, 5]
    if shape.scratch > ON_STACK:
        writes.append(len(operands))
        operands.append(Var(Spec((shape.chunks * shape.scratch,), F32)))
    text = (_backward if backward else _forward)("NAME", shape, number)
    own = name(text)
    oracle = _python(shape, number, backward)
    return Stage(
        Kernel(own, text.replace("@NAME", f"@{own}"), shape.chunks, frozenset(writes), python=oracle), tuple(operands)
    )


class _Shape:
    """Sizes, and how the matrices of heads lie."""

    def __init__(self, memory: Memory, matrices: Sequence[Var], causal: bool) -> None:
        query, key, value = matrices[:3]
        self.lead, self.causal = query.spec.shape[:-2], bool(causal)
        self.rows, self.columns = query.spec.shape[-2], key.spec.shape[-2]
        self.depth, self.width = query.spec.shape[-1], value.spec.shape[-1]
        self.reads: list[Read] = [memory.read(v, memory.strides(v)) for v in matrices]
        self.heads = math.prod(self.lead)
        work = self.rows * self.columns * (self.depth + self.width)
        self.each = max(1, min(WORK // max(work, 1), self.heads))
        self.chunks = -(-self.heads // self.each)
        self.lanes = loops.width() // 4
        self.tile = (4, 3) if self.lanes == 8 else (8, 3)  # 16 registers, or 32
        self.panel = self.tile[1] * self.lanes
        self.scratch = loops_of.scratch(self.columns, self.depth, self.width, self.tile[0], self.panel)

    def offsets(self) -> Array:
        """Where the matrices of each head begin."""
        table = np.zeros((*self.lead, len(self.reads)), np.int64)
        for i, read in enumerate(self.reads):
            table[..., i] = read.offset
            for d, size in enumerate(self.lead):
                step = np.arange(size) * read.strides[d]
                table[..., i] += step.reshape(size, *[1] * (len(self.lead) - d - 1))
        return table.reshape(-1, len(self.reads))

    def integers(self) -> list[int]:
        up = lambda n, step: -(-n // step) * step  # noqa: E731
        sizes = [
            self.rows,
            self.columns,
            self.depth,
            self.width,
            up(self.columns, self.panel),
            up(self.rows, loops_of.ROWS),
        ]
        return [*sizes, int(self.causal), *[s for read in self.reads for s in read.strides[-2:]]]


def _library(which: str, shape: _Shape) -> str:
    """The loops, and what they call, under names of their own."""
    lanes, (rows, columns) = shape.lanes, shape.tile
    parts = [products.pack(lanes, columns, private=True), products.multiply(lanes, rows, columns, private=True)]
    text = "\n".join([*parts, getattr(loops_of, which)(lanes, rows, shape.panel)])
    for old in ("pack", "multiply", which):
        text = text.replace(f"@{old}(", f"@attention_{old}(")
    text = text.replace(f"define void @attention_{which}(", f"define internal void @attention_{which}(")
    return f"{declarations(lanes)}\n" + text.replace(") {\nentry:", ") #0 {\nentry:")


def _kernel(which: str, shape: _Shape, number: float, count: int, before: Sequence[str], given: Sequence[str]) -> str:
    """The kernel: ``given`` are the addresses that its loop takes; ``before`` is done first."""
    table = shape.offsets()
    bits = "0x" + np.float64(np.float32(number)).tobytes()[::-1].hex().upper()
    numbers = ", ".join([f"i64 {x}" for x in table.ravel()])
    pointers = [
        f"  %at{i} = getelementptr ptr, ptr %addresses, i64 {i}\n  %p{i} = load ptr, ptr %at{i}" for i in range(count)
    ]
    scratch = f"  %scratch = alloca [{shape.scratch} x float], align 64"
    if shape.scratch > ON_STACK:
        scratch = (
            f"  %at = getelementptr ptr, ptr %addresses, i64 {count}\n  %all = load ptr, ptr %at\n"
            f"  %mine = mul i64 %chunk, {shape.scratch}\n  %scratch = getelementptr float, ptr %all, i64 %mine"
        )
    call = ", ".join([*[f"ptr {p}" for p in given], "i64 %first", "i64 %last", *[f"i64 {x}" for x in shape.integers()]])
    lines = [
        f"@NAME_factor = internal constant float {bits}",
        f"@NAME_offsets = internal constant [{table.size} x i64] [{numbers}]",
        "define void @NAME(ptr %addresses, i64 %chunk) #0 {",
        "entry:",
        *pointers,
        scratch,
        f"  %first = mul i64 %chunk, {shape.each}",
        f"  %end = add i64 %first, {shape.each}",
        f"  %past = icmp slt i64 %end, {shape.heads}",
        f"  %last = select i1 %past, i64 %end, i64 {shape.heads}",
        *before,
        f"  call void @attention_{which}({call})",
        "  ret void\n}",
    ]
    return "\n".join([_library(which, shape), *lines, loops.attributes()])


def _forward(name: str, shape: _Shape, number: float) -> str:
    bits = "0x" + np.float64(np.float32(number)).tobytes()[::-1].hex().upper()
    keep = [
        "  %is_first = icmp eq i64 %chunk, 0\n  br i1 %is_first, label %keep, label %go\nkeep:",
        f"  store float {bits}, ptr %p5\n  br label %go\ngo:",
    ]
    given = ["%p0", "%p1", "%p2", f"@{name}_factor", f"@{name}_offsets", "%scratch", "%p3", "%p4"]
    return _kernel("forward", shape, number, 6, keep, given)


def _backward(name: str, shape: _Shape, number: float) -> str:
    """The gradients of keys and values are sums, which begin with zero."""
    clear = ["  %heads = sub i64 %last, %first"]
    for i, size in ((6, shape.columns * shape.depth), (7, shape.columns * shape.width)):
        clear += [
            f"  %from{i} = mul i64 %first, {size}\n  %clear{i} = getelementptr float, ptr %p{i}, i64 %from{i}",
            f"  %bytes{i} = mul i64 %heads, {4 * size}",
            f"  call void @llvm.memset.p0.i64(ptr %clear{i}, i8 0, i64 %bytes{i}, i1 false)",
        ]
    given = ["%p0", "%p1", "%p2", "%p8", f"@{name}_offsets", "%scratch", "%p4", "%p3", "%p5", "%p6", "%p7"]
    text = _kernel("backward", shape, number, 9, clear, given)
    return f"declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n{text}"


# ---- the same on arrays


def _python(shape: _Shape, number: float, backward: bool) -> Callable[[list[Any], int], None]:
    def run(arrays: list[Any], chunk: int) -> None:
        table, (rows, columns) = shape.offsets(), (shape.rows, shape.columns)
        sizes = [(rows, shape.depth), (columns, shape.depth), (columns, shape.width), (rows, shape.width)]

        def matrix(i: int, head: int) -> Array:
            strides = [s * 4 for s in shape.reads[i].strides[-2:]]
            return np.lib.stride_tricks.as_strided(arrays[i][table[head, i] :], sizes[i], strides)

        factor = float(arrays[8][0]) if backward else number
        seen = np.tri(rows, columns, dtype=bool) if shape.causal else np.ones((rows, columns), bool)
        for head in range(chunk * shape.each, min((chunk + 1) * shape.each, shape.heads)):
            q, k, v = (matrix(i, head).astype(np.float64) for i in range(3))
            scores = np.where(seen, q @ k.T * factor, -np.inf)
            most = scores.max(1, keepdims=True)
            power = np.exp(scores - most)
            sums = power.sum(1, keepdims=True)
            p = power / sums
            if not backward:
                matrix(3, head)[...] = p @ v
                arrays[4].reshape(-1, rows, 2)[head] = np.concatenate([most, 1 / sums], 1)
                arrays[5][0] = number
                continue
            g = matrix(3, head).astype(np.float64)
            slopes = g @ v.T
            change = p * (slopes - (slopes * p).sum(1, keepdims=True)) * factor
            arrays[5].reshape(-1, rows, shape.depth)[head] = change @ k
            arrays[6].reshape(-1, columns, shape.depth)[head] = change.T @ q
            arrays[7].reshape(-1, columns, shape.width)[head] = p.T @ g

    return run
