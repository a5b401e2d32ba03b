"""LLVM code for batch norm of float32 arrays (examples, channels, places): sums and differences from the mean in float64.

All numbers of a channel are looked at twice before those of the next: they stay in the cache. Sums are of differences
from the first number of the channel: it is at most $\\sqrt{n}$ deviations away from the mean of n, so that the variance
loses no more digits than float64 has to spare. Places that are no whole vector at
the end of a row are computed with some before them again, and counted once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.kernels.llvm.nests import Code

SIZES = ("first", "last", "examples", "channels", "size", "whole", "rest", "count")
MOMENTS = ("x", "moments")
FORWARD = ("x", "weight", "bias", "rows", "out", "root", "moments", "eps")
NORMALIZED = ("x", "mean", "scale", "bias", "out")
MOVED = ("mean", "variance", "moments", "by")
BACKWARD = ("g", "rows", "weight", "root", "gx", "along", "total")

Body = Callable[[str, str | None, Sequence[str]], Sequence[str]]


def moments(lanes: int) -> str:
    """The function ``moments``: the means of channels from ``first`` to ``last``, and behind those of all the variances."""
    code = Channels(lanes)
    with code.loop("%first", "%last", "1") as channel:
        mean, variance = code.mean_and_variance(channel.index)
        code.put_number(mean, "%moments", channel.index)
        code.put_number(variance, "%moments", code.add("%channels", channel.index))
    return code.function("moments", MOMENTS, SIZES)


def moved() -> str:
    """The function ``moved``: means and variances that ran along, a step towards those of a batch. ``by`` has the part that
    they keep, the part of the batch, and what makes its variance unbiased; each result is rounded.
    """
    code = Code(1)
    keep, part, unbiased = (code.load("%by", str(i)) for i in range(3))
    with code.loop("%first", "%last", "1") as channel:
        c = channel.index
        mean, variance = code.load("%moments", c), code.load("%moments", code.add(c, "%last"))
        steps = (("%mean", mean), ("%variance", code.mul(variance, unbiased)))
        new = [code.plus(code.mul(code.load(old, c), keep), code.mul(of_batch, part)) for old, of_batch in steps]
        code.store(new[0], "%mean", c)
        code.store(new[1], "%variance", c)
    return code.function("moved", MOVED, ("first", "last"))


def forward(lanes: int) -> str:
    """The function ``forward``: channels from ``first`` to ``last``, and what `moments` gives."""
    code = Channels(lanes)
    with code.loop("%first", "%last", "1") as channel:
        c = channel.index
        middle, variance = code.mean_and_variance(c)
        mean = code.everywhere(middle)
        code.put_number(middle, "%moments", c)
        code.put_number(variance, "%moments", code.add("%channels", c))
        eps = code.put("load double, ptr %eps, align 8")
        spread = code.put(f"fadd double {variance}, {eps}")
        root = code.put(f"call double @llvm.sqrt.f64(double {spread})")
        code.put_number(root, "%root", c)
        factor = code.put(f"fdiv double 1.0, {root}")
        scale, w, b = code.everywhere(factor), code.spread("%weight", c), code.spread("%bias", c)

        def write(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            row = code.narrow(code.wide_two("fmul", code.away(at, mean), scale))
            code.store(row, "%rows", at)
            code.store(code.fma(row, w, b), "%out", at)
            return []

        code.through(c, write, [])
    return code.function("forward", FORWARD, SIZES)


def normalized(lanes: int) -> str:
    """The function ``normalized``: channels less a mean, times a scale, plus a bias, all of which are given."""
    code = Channels(lanes)
    with code.loop("%first", "%last", "1") as channel:
        mean, scale, bias = (code.spread(f"%{name}", channel.index) for name in ("mean", "scale", "bias"))

        def write(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            code.store(code.fma(code.minus(code.load("%x", at), mean), scale, bias), "%out", at)
            return []

        code.through(channel.index, write, [])
    return code.function("normalized", NORMALIZED, SIZES)


def backward(lanes: int) -> str:
    """The function ``backward``: the gradient, and for each channel the sums of ``g rows`` and of ``g``."""
    code, fresh = Channels(lanes), "zeroinitializer"
    with code.loop("%first", "%last", "1") as channel:
        c = channel.index

        def add(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            g, row = code.wide(code.load("%g", at)), code.wide(code.load("%rows", at))
            return [code.counted("fadd", s[0], code.wide_two("fmul", g, row), new), code.counted("fadd", s[1], g, new)]

        along, total = code.through(c, add, [fresh, fresh])
        code.put_number(code.total(along), "%along", c)
        code.put_number(code.total(total), "%total", c)
        less = code.put(f"fneg double {code.mean(along)}")
        factor = code.put(f"fdiv double {code.double('%weight', c)}, {code.double('%root', c)}")
        part, mean, scale = (code.narrow(code.everywhere(x)) for x in (less, code.mean(total), factor))

        def write(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            rest = code.fma(code.load("%rows", at), part, code.minus(code.load("%g", at), mean))
            code.store(code.mul(rest, scale), "%gx", at)
            return []

        code.through(c, write, [])
    return code.function("backward", BACKWARD, SIZES)


class Channels(Code):
    """Code that goes through all places of a channel."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self.step = self.times("%channels", "%size")
        self.end = self.put(f"sub i64 %size, {lanes}")
        ids = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"
        numbers = f"<{lanes} x i64>"
        first = self.put(f"insertelement {numbers} poison, i64 {self.put('sub i64 %size, %whole')}, i32 0")
        rest = self.put(f"shufflevector {numbers} {first}, {numbers} poison, <{lanes} x i32> zeroinitializer")
        behind = self.put(f"sub {numbers} <{', '.join([f'i64 {lanes}'] * lanes)}>, {rest}")
        self.new = self.put(f"icmp sge {numbers} {ids}, {behind}")  # in the last vector of a row: not counted before

    def through(self, channel: str, body: Body, carried: Sequence[str]) -> Sequence[str]:
        """``body(at, new, values)`` for all vectors of places; what it gives is carried to the next. ``new`` says which
        lanes are, None all.
        """
        with self.loop("0", "%examples", "1", carried, self.doubles) as example:
            example.next = list(self.vectors(self.start(channel, example.index), body, example.values))
        return example.values

    def start(self, channel: str, example: str) -> str:
        """Where the numbers of a channel of an example begin."""
        return self.add(self.times(channel, "%size"), self.times(example, self.step))

    def vectors(self, start: str, body: Body, carried: Sequence[str]) -> Sequence[str]:
        """`through` the ``size`` numbers from ``start``."""
        with self.loop("0", "%whole", str(self.lanes), carried, self.doubles) as vector:
            vector.next = list(body(self.add(start, vector.index), None, vector.values))
        with self.loop("0", "%rest", "1", vector.values, self.doubles) as last:
            last.next = list(body(self.add(start, self.end), self.new, last.values))
        return last.values

    def counted(self, what: str, total: str, x: str, new: str | None) -> str:
        if new is not None:
            x = self.put(f"select <{self.lanes} x i1> {new}, {self.doubles} {x}, {self.doubles} zeroinitializer")
        return self.wide_two(what, total, x)

    def away(self, at: str, mean: str) -> str:
        """How far numbers of x are from the mean."""
        return self.wide_two("fsub", self.wide(self.load("%x", at)), mean)

    def mean_and_variance(self, channel: str) -> tuple[str, str]:
        """Of the numbers of x."""
        number = self.double("%x", self.start(channel, "0"))
        size = self.put(f"call double @llvm.fabs.f64(double {number})")
        finite = self.put(f"fcmp one double {size}, 0x7FF0000000000000")
        first = self.put(f"select i1 {finite}, double {number}, double 0.0")
        origin = self.everywhere(first)

        def add(at: str, new: str | None, s: Sequence[str]) -> list[str]:
            d = self.away(at, origin)
            square = self.wide_two("fmul", d, d)
            return [self.counted("fadd", s[0], d, new), self.counted("fadd", s[1], square, new)]

        total, squares = self.through(channel, add, ["zeroinitializer"] * 2)
        middle, spread = self.mean(total), self.mean(squares)
        rest = self.put(f"fsub double {spread}, {self.put(f'fmul double {middle}, {middle}')}")
        below = self.put(f"fcmp olt double {rest}, 0.0")
        return self.put(f"fadd double {first}, {middle}"), self.put(f"select i1 {below}, double 0.0, double {rest}")

    def mean(self, sums: str) -> str:
        return self.put(f"fdiv double {self.total(sums)}, {self.put('sitofp i64 %count to double')}")
