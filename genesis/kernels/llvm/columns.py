"""LLVM code for batch norm of float32 matrices (examples, channels): the functions of `channels`, a vector of channels at
a time.

Each lane computes what `channels` computes of a channel with one place, in the order of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from genesis.kernels.llvm.channels import BACKWARD, FORWARD, MOMENTS, NORMALIZED, SIZES
from genesis.kernels.llvm.nests import Code, Loop
from genesis.kernels.llvm.products import everywhere, numbered

Block = Callable[["Columns", str], None]


def moments(lanes: int) -> str:
    """The function ``moments``: the means of channels from ``first`` to ``last``, and behind those of all the variances."""

    def block(code: Columns, c: str) -> None:
        mean, variance = code.mean_and_variance(c)
        code.write(code.narrow(mean), "%moments", c)
        code.write(code.narrow(variance), "%moments", code.add("%channels", c))

    return _function("moments", lanes, block, MOMENTS)


def forward(lanes: int) -> str:
    """The function ``forward``: channels from ``first`` to ``last``, and what `moments` gives."""

    def block(code: Columns, c: str) -> None:
        mean, variance = code.mean_and_variance(c)
        code.write(code.narrow(mean), "%moments", c)
        code.write(code.narrow(variance), "%moments", code.add("%channels", c))
        eps = code.everywhere(code.put("load double, ptr %eps, align 8"))
        root = code.of_doubles("sqrt", code.wide_two("fadd", variance, eps))
        code.write(code.narrow(root), "%root", c)
        scale = code.wide_two("fdiv", code.doubled("1.0"), root)
        w, b = code.read("%weight", c), code.read("%bias", c)
        with code.examples(c) as example:
            row = code.narrow(code.wide_two("fmul", code.away(example.index, mean), scale))
            code.write(row, "%rows", example.index)
            code.write(code.fma(row, w, b), "%out", example.index)

    return _function("forward", lanes, block, FORWARD)


def normalized(lanes: int) -> str:
    """The function ``normalized``: channels less a mean, times a scale, plus a bias, all of which are given."""

    def block(code: Columns, c: str) -> None:
        mean, scale, bias = (code.read(f"%{name}", c) for name in ("mean", "scale", "bias"))
        with code.examples(c) as example:
            away = code.minus(code.read("%x", example.index), mean)
            code.write(code.fma(away, scale, bias), "%out", example.index)

    return _function("normalized", lanes, block, NORMALIZED)


def backward(lanes: int) -> str:
    """The function ``backward``: the gradient, and for each channel the sums of ``g rows`` and of ``g``."""

    def block(code: Columns, c: str) -> None:
        with code.examples(c, 2) as example:
            g, row = (code.wide(code.read(name, example.index)) for name in ("%g", "%rows"))
            along, total = example.values
            product = code.wide_two("fmul", g, row)
            example.next = [code.wide_two("fadd", along, product), code.wide_two("fadd", total, g)]
        along, total = example.values
        code.write(code.narrow(along), "%along", c)
        code.write(code.narrow(total), "%total", c)
        less = code.put(f"fneg {code.doubles} {code.mean(along)}")
        weight, root = (code.wide(code.read(name, c)) for name in ("%weight", "%root"))
        part, mean, scale = map(code.narrow, (less, code.mean(total), code.wide_two("fdiv", weight, root)))
        with code.examples(c) as example:
            away = code.minus(code.read("%g", example.index), mean)
            rest = code.fma(code.read("%rows", example.index), part, away)
            code.write(code.mul(rest, scale), "%gx", example.index)

    return _function("backward", lanes, block, BACKWARD)


def _function(name: str, lanes: int, block: Block, pointers: Sequence[str]) -> str:
    """``block(code, channel)`` for all vectors of channels; the last may have less."""
    code = Columns(lanes)
    with code.loop("%first", "%last", str(lanes)) as whole:
        block(code, whole.index)
    count = code.put("sub i64 %last, %first")
    rest = code.put(f"srem i64 {count}, {lanes}")
    some = code.put(f"zext i1 {code.put(f'icmp sgt i64 {rest}, 0')} to i64")
    start = code.put(f"sub i64 %last, {rest}")
    code.some = code.put(f"icmp slt <{lanes} x i64> {numbered(code)}, {everywhere(code, rest)}")
    with code.loop("0", some, "1"):
        block(code, start)
    return "\n".join([*code.declared, code.function(name, pointers, SIZES)])


class Columns(Code):
    """Code that goes through all examples of a vector of channels."""

    some: str | None = None  # which lanes are channels; None if all are

    @property
    def declared(self) -> list[str]:
        names = "sqrt", "fabs"
        return [f"declare {self.doubles} @llvm.{name}.v{self.lanes}f64({self.doubles})" for name in names]

    @contextmanager
    def examples(self, channel: str, sums: int = 0) -> Iterator[Loop]:
        """A loop over where the examples have the channel, with sums in float64 that begin with zero."""
        end = self.add(self.times("%channels", "%examples"), channel)
        with self.loop(channel, end, "%channels", ["zeroinitializer"] * sums, self.doubles) as example:
            yield example

    def read(self, base: str, index: str) -> str:
        if self.some is None:
            return self.load(base, index)
        at = f"ptr {self.at(base, index)}, i32 4, <{self.lanes} x i1> {self.some}, {self.vector} zeroinitializer"
        return self.put(f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0({at})")

    def write(self, value: str, base: str, index: str) -> None:
        if self.some is None:
            return self.store(value, base, index)
        at = f"{self.vector} {value}, ptr {self.at(base, index)}, i32 4, <{self.lanes} x i1> {self.some}"
        self.lines.append(f"  call void @llvm.masked.store.v{self.lanes}f32.p0({at})")

    def doubled(self, number: str) -> str:
        return f"<{', '.join([f'double {number}'] * self.lanes)}>"

    def of_doubles(self, name: str, x: str) -> str:
        return self.put(f"call {self.doubles} @llvm.{name}.v{self.lanes}f64({self.doubles} {x})")

    def away(self, at: str, mean: str) -> str:
        """How far numbers of x are from the mean."""
        return self.wide_two("fsub", self.wide(self.read("%x", at)), mean)

    def mean(self, total: str) -> str:
        return self.wide_two("fdiv", total, self.everywhere(self.put("sitofp i64 %count to double")))

    def mean_and_variance(self, channel: str) -> tuple[str, str]:
        """Of the numbers of x: sums are of differences from the first, see `channels`."""
        numbers, mask = self.wide(self.read("%x", channel)), f"<{self.lanes} x i1>"
        size = self.of_doubles("fabs", numbers)
        finite = self.put(f"fcmp one {self.doubles} {size}, {self.doubled('0x7FF0000000000000')}")
        first = self.put(f"select {mask} {finite}, {self.doubles} {numbers}, {self.doubles} zeroinitializer")
        with self.examples(channel, 2) as example:
            d = self.away(example.index, first)
            square = self.wide_two("fmul", d, d)
            example.next = [self.wide_two("fadd", s, x) for s, x in zip(example.values, (d, square), strict=True)]
        middle, spread = map(self.mean, example.values)
        rest = self.wide_two("fsub", spread, self.wide_two("fmul", middle, middle))
        below = self.put(f"fcmp olt {self.doubles} {rest}, zeroinitializer")
        variance = self.put(f"select {mask} {below}, {self.doubles} zeroinitializer, {self.doubles} {rest}")
        return self.wide_two("fadd", first, middle), variance
