"""Attention of few rows as a kernel, with a mask or without: a token that looks at the keys and values of those before it.

for chunks of heads:
    scores, of all rows:    dot products of the query with each key, as products of few rows are (`vectors`)
    for rows:
        the largest of what the mask leaves; exponentials, and their sum; weights
        for vectors of the result:    weights times rows of the values, added up in several sums

A row that sees nothing has no weights. Scores and sums are float32 numbers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.jit.lowering import vectors
from genesis.jit.lowering.layouts import same_layout
from genesis.jit.lowering.parts import Memory, Read
from genesis.jit.lowering.phases import Kernel, Stage
from genesis.jit.lowering.tiles import Product
from genesis.jit.program import Call
from genesis.kernels.llvm import loops
from genesis.kernels.llvm.nests import declarations

WORK = 1 << 13  # multiplications of a chunk
SUMS = 4  # of one element of the result
F32 = np.dtype(np.float32)
Array = np.ndarray[Any, Any]


def stage(memory: Memory, call: Call, factor: float) -> Stage | None:
    """The kernel of a call and its operands; None where there is none for it."""
    query, key, value, mask, _, causal, *_ = call.args
    out, weights, _ = call.outs
    if not same_layout(out.spec, Spec(out.spec.shape, out.spec.dtype)):
        return None
    if causal or query.spec.shape[-2] > vectors.FEW or any([v.spec.dtype != F32 for v in (query, key, value)]):
        return None
    shape = weights.spec.shape
    reads = [memory.read(v, memory.strides(v)) for v in (query, key, value)]
    reads += [] if mask is None else [memory.broadcast(mask, shape)]
    sizes = _Sizes(shape, query.spec.shape[-1], value.spec.shape[-1], reads, factor)
    if any([r.strides[-1] != 1 for r in reads[:3]]) or (reads[3:] and reads[3].strides[-1] not in (0, 1)):
        return None
    lanes = loops.width() // 4
    if not vectors.suits(sizes.scores(), lanes):
        return None
    name = "k" + hashlib.sha256(f"attention of rows {lanes} {sizes.told()}".encode()).hexdigest()[:16]
    kernel = Kernel(name, code(name, sizes, lanes), sizes.chunks, frozenset([3, 4]), python=oracle(sizes))
    return Stage(kernel, (*[r.root for r in reads[:3]], weights, out, *[r.root for r in reads[3:]]))


class _Sizes:
    """Sizes, and how the operands lie: query, key, value, and the mask if there is one."""

    def __init__(self, shape: Sequence[int], depth: int, width: int, reads: Sequence[Read], factor: float) -> None:
        *lead, self.rows, self.columns = shape
        self.lead, self.depth, self.width, self.reads, self.factor = tuple(lead), depth, width, list(reads), factor
        self.heads = math.prod(lead)
        self.each = max(1, min(self.heads, WORK // (self.rows * self.columns * (depth + width))))
        self.chunks = -(-self.heads // self.each)

    def told(self) -> tuple[Any, ...]:
        lying = [(r.offset, r.strides) for r in self.reads]
        return self.lead, self.rows, self.columns, self.depth, self.width, lying, self.factor

    def scores(self) -> Product:
        """Those of one head."""
        query, key = self.reads[:2]
        a, b = (0, query.strides[-2], 1), (0, 1, key.strides[-2])
        return Product(self.rows, self.columns, self.depth, a, b, (0, self.columns, 1), None, (), False)


def code(name: str, sizes: _Sizes, lanes: int) -> str:
    """The kernel of the operands query, key, value, weights, out, and the mask."""
    out = _Code(lanes, sizes)
    bases = [out.put(f"load ptr, ptr {out.at('%addresses', str(i), 'ptr')}") for i in range(5 + len(sizes.reads[3:]))]
    out.lines.append(f"  %sums = alloca [{sizes.rows * lanes} x {out.vector}], align 64")
    start = out.times("%chunk", str(sizes.each))
    stop = out.least(out.add(start, str(sizes.each)), str(sizes.heads))
    with out.loop(start, stop, "1") as head:
        out.head(bases, head.index)
    byte = f"<{lanes} x i8>"
    load = f"declare {byte} @llvm.masked.load.v{lanes}i8.p0(ptr, i32, <{lanes} x i1>, {byte})"
    body = "\n".join(out.lines)
    text = f"define void @{name}(ptr %addresses, i64 %chunk) #0 {{\nentry:\n{body}\n  ret void\n}}"
    return "\n".join([declarations(lanes), load, text, loops.attributes()])


class _Code(vectors.Dots):
    def __init__(self, lanes: int, sizes: _Sizes) -> None:
        super().__init__(lanes)
        self.sizes = sizes
        whole = sizes.columns - sizes.columns % lanes
        # (first, last, how many) columns of the vectors of a row: whole ones, and one that is not
        self.blocks = [(0, whole, lanes)] if whole else []
        self.blocks += [(whole, sizes.columns, sizes.columns - whole)] if whole < sizes.columns else []

    def head(self, bases: list[str], head: str) -> None:
        sizes, rest = self.sizes, head
        offsets = [str(r.offset) for r in sizes.reads]
        for axis in reversed(range(len(sizes.lead))):
            index, rest = self.divided(rest, sizes.lead[axis])
            steps = [r.strides[axis] for r in sizes.reads]
            offsets = [self.add(o, self.times(index, str(s))) if s else o for o, s in zip(offsets, steps, strict=True)]
        query, key, value = (self.at(base, o) for base, o in zip(bases, offsets[:3], strict=False))
        weights = self.at(bases[3], self.times(head, str(sizes.rows * sizes.columns)))
        out = self.at(bases[4], self.times(head, str(sizes.rows * sizes.width)))
        for first, last, count in self.blocks:
            with self.loop(str(first), str(last), str(count)) as block:
                self.columns(sizes.scores(), (query, key, weights, ""), block.index, count)
        for row in range(sizes.rows):
            own = self.at(weights, str(row * sizes.columns))
            mask = ""
            if sizes.reads[3:]:
                mask = self.at(bases[5], self.add(offsets[3], str(row * sizes.reads[3].strides[-2])), "i8")
            self.softmax(own, mask)
            self.weighted(own, value, self.at(out, str(row * sizes.width)))

    # ---- a row of weights

    def softmax(self, row: str, mask: str) -> None:
        """Scores become weights."""
        factor, none = self.constant(self.sizes.factor), self.constant(-math.inf)

        def scaled(values: list[str], at: str, count: int) -> list[str]:
            score = self.seen(self.mul(self.some_of(row, at, count), factor), mask, at, count)
            self.put_some(score, row, at, count)
            return [self.call("maxnum", values[0], score)]

        (most,) = self.through([none], scaled)
        largest = self.put(f"call float @llvm.vector.reduce.fmax.v{self.lanes}f32({self.vector} {most})")
        blind = self.put(f"fcmp oeq float {largest}, 0xFFF0000000000000")
        if mask:  # nothing is seen: any number is as good
            largest = self.put(f"select i1 {blind}, float 0.0, float {largest}")
        largest = self.of_number(largest)

        def powers(values: list[str], at: str, count: int) -> list[str]:
            score = self.some_of(row, at, count, -math.inf)
            power = self.where("oeq", score, none, self.constant(0.0), self.exp(self.minus(score, largest)))
            self.put_some(power, row, at, count)
            return [self.plus(values[0], power)]

        (sums,) = self.through([self.constant(0.0)], powers)
        name = f"@llvm.vector.reduce.fadd.v{self.lanes}f32"
        total = self.put(f"call reassoc float {name}(float 0.0, {self.vector} {sums})")
        if mask:
            empty = self.put(f"fcmp oeq float {total}, 0.0")
            total = self.put(f"select i1 {empty}, float 1.0, float {total}")
        inverse = self.of_number(self.put(f"fdiv float 1.0, {total}"))

        def divided(_: list[str], at: str, count: int) -> list[str]:
            self.put_some(self.mul(self.some_of(row, at, count), inverse), row, at, count)
            return []

        self.through([], divided)

    def through(self, begin: list[str], step: Callable[[list[str], str, int], list[str]]) -> list[str]:
        """Go through a row in vectors; ``step`` gives what is handed on."""
        values = begin
        for first, last, count in self.blocks:
            with self.loop(str(first), str(last), str(count), values) as block:
                block.next = step(block.values, block.index, count)
            values = block.values
        return values

    def seen(self, score: str, mask: str, at: str, count: int) -> str:
        """A score, or -inf where it is masked, or there is none."""
        none, byte = self.constant(-math.inf), f"<{self.lanes} x i8>"
        if count < self.lanes:
            score = self.put(f"select {self.mask(count)}, {self.vector} {score}, {self.vector} {none}")
        if not mask:
            return score
        if self.sizes.reads[3].strides[-1] == 0:
            one = self.put(f"load i8, ptr {mask}")
            first = self.put(f"insertelement {byte} poison, i8 {one}, i32 0")
            flags = self.put(f"shufflevector {byte} {first}, {byte} poison, <{self.lanes} x i32> zeroinitializer")
        else:
            where = self.at(mask, at, "i8")
            flags = self.put(
                f"call {byte} @llvm.masked.load.v{self.lanes}i8.p0(ptr {where}, i32 1, {self.mask(count)}, "
                f"{byte} zeroinitializer)"
            )
        holds = self.put(f"icmp ne {byte} {flags}, zeroinitializer")
        return self.put(f"select <{self.lanes} x i1> {holds}, {self.vector} {score}, {self.vector} {none}")

    def weighted(self, row: str, value: str, out: str) -> None:
        """The sum of the rows of the values, each times its weight."""
        sizes, step = self.sizes, self.sizes.reads[2].strides[-2]
        for at in range(0, sizes.width, self.lanes):
            column, count = self.at(value, str(at)), min(self.lanes, sizes.width - at)

            def term(j: str, total: str, column: str = column, count: int = count) -> str:
                return self.fma(self.spread(row, j), self.some_of(column, self.times(j, str(step)), count), total)

            done = sizes.columns - sizes.columns % SUMS
            with self.loop("0", str(done), str(SUMS), [self.constant(0.0)] * SUMS) as some:
                some.next = [term(self.add(some.index, str(j)), some.values[j]) for j in range(SUMS)]
            total = self.pairs(list(some.values))
            for j in range(done, sizes.columns):
                total = term(str(j), total)
            self.put_some(total, out, str(at), count)

    # ---- vectors that are not full

    def some_of(self, base: str, at: str, count: int, other: float = 0.0) -> str:
        """So many numbers, and others behind them."""
        if count == self.lanes:
            return self.load(base, at)
        name, where = f"@llvm.masked.load.v{self.lanes}f32.p0", self.at(base, at)
        behind = self.constant(other)
        return self.put(f"call {self.vector} {name}(ptr {where}, i32 4, {self.mask(count)}, {self.vector} {behind})")

    def put_some(self, value: str, base: str, at: str, count: int) -> None:
        self.keep(value, self.at(base, at), count)

    def of_number(self, x: str) -> str:
        """A number in all lanes."""
        first = self.put(f"insertelement {self.vector} poison, float {x}, i32 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.put(f"shufflevector {self.vector} {first}, {self.vector} poison, {zeros}")


def oracle(sizes: _Sizes) -> Callable[[list[Any], int], None]:
    """The same on flat arrays, a chunk at a time."""

    def run(arrays: list[Any], chunk: int) -> None:
        def seen(i: int, array: Array, shape: tuple[int, int]) -> Array:
            read = sizes.reads[i]
            strides = [s * array.itemsize for s in read.strides]
            whole = np.lib.stride_tricks.as_strided(array[read.offset :], (*sizes.lead, *shape), strides)
            return whole.reshape(-1, *shape)

        rows, columns = sizes.rows, sizes.columns
        shapes = (rows, sizes.depth), (columns, sizes.depth), (columns, sizes.width), (rows, columns)
        query, key, value = (seen(i, arrays[i], shapes[i]).astype(np.float64) for i in range(3))
        weights, out = arrays[3].reshape(-1, rows, columns), arrays[4].reshape(-1, rows, sizes.width)
        for head in range(chunk * sizes.each, min((chunk + 1) * sizes.each, sizes.heads)):
            scores = query[head] @ key[head].T * sizes.factor
            if sizes.reads[3:]:
                scores[~seen(3, arrays[5], shapes[3])[head]] = -np.inf
            most = scores.max(1, keepdims=True)
            power = np.exp(scores - np.where(np.isinf(most), 0, most) if sizes.reads[3:] else scores - most)
            sums = power.sum(1, keepdims=True)
            weights[head] = power / np.where(sums == 0, 1, sums)
            out[head] = weights[head] @ value[head]

    return run
