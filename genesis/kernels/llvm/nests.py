"""Nests of loops over vectors of float32 numbers, as LLVM code.

>>> from genesis.kernels.llvm.nests import Code
>>> code = Code(lanes=4)
>>> with code.loop("0", "%n", "4") as i:
...     code.store(code.plus(code.load("%x", i.index), code.load("%y", i.index)), "%out", i.index)
>>> text = code.function("add", ["x", "y", "out"], ["n"])
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

LOG2E, LN2_HIGH, LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
# (e^r - 1 - r) / r^2 for |r| up to ln 2 / 2, with the least error relative to e^r, which is 3.1e-9
EXP = (1.38145995531e-3, 8.36871687526e-3, 4.16683880310e-2, 1.66665206318e-1, 4.99999934478e-1)
# (tanh x - x) / x^3 of x^2, up to 0.625 (Cephes)
TANH = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
ESTIMATE = "@llvm.x86.avx512.rcp14.ps.512"  # of reciprocals
ROUND = 12582912.0  # 1.5 * 2^23: added to a small float32, its last bits are the integer next to it


# of a loop that begins where a line of the cache does: `ALIGNMENT` says it, once in a module
ALIGNED, ALIGNMENT = (
    "!0",
    """!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.align", i32 64}""",
)


class Code:
    """LLVM instructions one after the other; methods give the names of their results."""

    def __init__(self, lanes: int) -> None:
        self.lines: list[str] = []
        self.lanes, self.vector, self.numbers = lanes, f"<{lanes} x float>", f"<{lanes} x i32>"
        self.doubles = f"<{lanes} x double>"
        self.count, self.block = 0, "entry"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def put(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    # ---- integers, memory

    def add(self, a: str, b: str) -> str:
        return self.put(f"add i64 {a}, {b}")

    def times(self, a: str, b: str) -> str:
        return self.put(f"mul i64 {a}, {b}")

    def least(self, a: str, b: str) -> str:
        return self.put(f"select i1 {self.put(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def at(self, base: str, index: str, kind: str = "float") -> str:
        return self.put(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def number(self, base: str, index: str) -> str:
        return self.put(f"load i64, ptr {self.at(base, index, 'i64')}")

    def load(self, base: str, index: str) -> str:
        return self.put(f"load {self.vector}, ptr {self.at(base, index)}, align 4")

    def store(self, value: str, base: str, index: str) -> None:
        at = self.at(base, index)
        self.lines.append(f"  store {self.vector} {value}, ptr {at}, align 4")

    def prefetch(self, base: str, index: str, writes: bool = False, level: int = 3) -> None:
        """Ask for memory that is read, or written to, some time later: into the cache next to the core, or, with a ``level``
        of 2, the one after it.
        """
        at = self.at(base, index)
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, i32 {int(writes)}, i32 {level}, i32 1)")

    def spread(self, base: str, index: str) -> str:
        """One number in all lanes."""
        one = self.put(f"load float, ptr {self.at(base, index)}, align 4")
        first = self.put(f"insertelement {self.vector} poison, float {one}, i32 0")
        return self.put(
            f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def mask(self, count: int) -> str:
        """The first so many lanes."""
        bits = ", ".join(["i1 true" if i < count else "i1 false" for i in range(self.lanes)])
        return f"<{self.lanes} x i1> <{bits}>"

    # ---- vectors

    def constant(self, x: float) -> str:
        rounded = struct.unpack("f", struct.pack("f", x))[0]
        text = "0x" + struct.pack(">d", rounded).hex().upper()
        return f"<{', '.join([f'float {text}'] * self.lanes)}>"

    def two(self, what: str, a: str, b: str) -> str:
        return self.put(f"{what} {self.vector} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.two("fmul", a, b)

    def plus(self, a: str, b: str) -> str:
        return self.two("fadd", a, b)

    def minus(self, a: str, b: str) -> str:
        return self.two("fsub", a, b)

    def call(self, what: str, *args: str) -> str:
        given = ", ".join(f"{self.vector} {a}" for a in args)
        return self.put(f"call {self.vector} @llvm.{what}.v{self.lanes}f32({given})")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("fmuladd", a, b, c)

    def added(self, x: str, y: str, total: str) -> str:
        """A product added to a sum of products."""
        return self.fma(x, y, total)

    def where(self, test: str, a: str, b: str, x: str, y: str) -> str:
        """``x`` where the comparison of ``a`` and ``b`` holds, else ``y``."""
        holds = self.put(f"fcmp {test} {self.vector} {a}, {b}")
        return self.put(f"select <{self.lanes} x i1> {holds}, {self.vector} {x}, {self.vector} {y}")

    def turned(self, rows: Sequence[str]) -> list[str]:
        """The columns of a square of as many vectors as each has lanes: in each step two exchange parts of twice the size."""
        lanes, apart, out = self.lanes, 1, list(rows)
        while apart < lanes:
            low = [p if not p & apart else lanes + p - apart for p in range(lanes)]
            high = [p + apart if not p & apart else lanes + p for p in range(lanes)]
            for i in range(lanes):
                if not i & apart:
                    pair = out[i], out[i + apart]
                    out[i], out[i + apart] = (self._shuffled(*pair, order) for order in (low, high))
            apart *= 2
        return out

    def _shuffled(self, a: str, b: str, order: Sequence[int]) -> str:
        indices = ", ".join([f"i32 {i}" for i in order])
        return self.put(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> <{indices}>")

    # ---- float64

    def wide(self, x: str) -> str:
        return self.put(f"fpext {self.vector} {x} to {self.doubles}")

    def narrow(self, x: str) -> str:
        return self.put(f"fptrunc {self.doubles} {x} to {self.vector}")

    def wide_two(self, what: str, a: str, b: str) -> str:
        return self.put(f"{what} {self.doubles} {a}, {b}")

    def everywhere(self, x: str) -> str:
        """A float64 number in all lanes."""
        first = self.put(f"insertelement {self.doubles} poison, double {x}, i32 0")
        return self.put(
            f"shufflevector {self.doubles} {first}, {self.doubles} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def total(self, x: str) -> str:
        """The sum of the float64 numbers in all lanes."""
        name = f"@llvm.vector.reduce.fadd.v{self.lanes}f64"
        return self.put(f"call reassoc double {name}(double 0.0, {self.doubles} {x})")

    def double(self, base: str, index: str) -> str:
        """A float32 number in memory, in float64."""
        return self.put(f"fpext float {self.put(f'load float, ptr {self.at(base, index)}, align 4')} to double")

    def put_number(self, x: str, base: str, index: str) -> None:
        """Write a float64 number to memory, as float32."""
        at = self.at(base, index)
        self.lines.append(f"  store float {self.put(f'fptrunc double {x} to float')}, ptr {at}, align 4")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        total = self.constant(coefficients[0])
        for c in coefficients[1:]:
            total = self.fma(total, x, self.constant(c))
        return total

    def complement(self, x: str) -> str:
        return self.minus(self.constant(1.0), x)

    def powers(self, x: str) -> tuple[str, str]:
        """$2^n$ and p with $e^x = 2^n (1 + p)$, for x from -87 to 88, and of the nearer one beyond; NaN stays NaN."""
        for test, bound in (("ogt", 88.0), ("olt", -87.0)):
            limit = self.constant(bound)
            x = self.where(test, x, limit, limit, x)
        shifted = self.fma(x, self.constant(LOG2E), self.constant(ROUND))
        n = self.minus(shifted, self.constant(ROUND))
        r = self.fma(n, self.constant(-LN2_HIGH), x)
        r = self.fma(n, self.constant(-LN2_LOW), r)
        bits = self.put(f"bitcast {self.vector} {shifted} to {self.numbers}")
        power = self.put(f"shl {self.numbers} {bits}, <{', '.join(['i32 23'] * self.lanes)}>")
        power = self.put(f"add {self.numbers} {power}, <{', '.join([f'i32 {127 << 23}'] * self.lanes)}>")
        power = self.put(f"bitcast {self.numbers} {power} to {self.vector}")
        return power, self.fma(self.polynomial(r, EXP), self.mul(r, r), r)

    def exp(self, x: str) -> str:
        power, p = self.powers(x)
        return self.fma(power, p, power)

    def estimate(self, x: str) -> str:
        """About 1 / x, of numbers from 1 to 2^126: to divide a vector of 16 takes as long as 10 to 32 products, so with
        AVX-512 it is 14 bits of it.
        """
        if self.lanes != 16:
            return self.two("fdiv", self.constant(1.0), x)
        return self.put(f"call {self.vector} {ESTIMATE}({self.vector} {x}, {self.vector} zeroinitializer, i16 -1)")

    def reciprocal(self, x: str) -> str:
        """1 / x of numbers from 1 to 2^126, to 0.6 ulp: about r it is r + r (1 - r x)."""
        r = self.estimate(x)
        if self.lanes != 16:
            return r
        return self.fma(self.fma(self.put(f"fneg {self.vector} {x}"), r, self.constant(1.0)), r, r)

    def sigmoid(self, x: str) -> str:
        """$y = 1 / (1 + e^{-x})$: from about y a step of Newton's method, as $1 - y - e^{-x} y$ shows what is missing."""
        power, p = self.powers(self.put(f"fneg {self.vector} {x}"))
        y = self.estimate(self.fma(power, p, self.plus(power, self.constant(1.0))))
        scaled = self.mul(power, y)
        rest = self.minus(self.complement(scaled), y)
        return self.fma(self.fma(self.put(f"fneg {self.vector} {scaled}"), p, rest), y, y)

    def tanh(self, x: str) -> str:
        """$1 - 2 / (e^{2|x|} + 1)$ with the sign of x, and a polynomial near zero."""
        size, one = self.call("fabs", x), self.constant(1.0)
        power, p = self.powers(self.plus(size, size))
        share = self.reciprocal(self.fma(power, p, self.plus(power, one)))
        large = self.fma(share, self.constant(-2.0), one)
        square = self.mul(size, size)
        small = self.fma(self.mul(self.polynomial(square, TANH), square), size, size)
        return self.call("copysign", self.where("olt", size, self.constant(0.625), small, large), x)

    # ---- loops

    @contextmanager
    def loop(
        self, start: str, stop: str, step: str, carried: Sequence[str] = (), kind: str | None = None, mark: str = ""
    ) -> Iterator[Loop]:
        """From ``start``, while a whole ``step`` fits below ``stop``; vectors, of this ``kind``, that a round hands to
        the next. A ``mark`` is what the compiler is told of the loop (`ALIGNED`).
        """
        self.count += 1
        tag, before = f"l{self.count}", self.block
        self.lines.append(f"  br label %{tag}\n{tag}:")
        head = len(self.lines)
        loop = Loop(self.name(), [self.name() for _ in carried])
        end = self.add(loop.index, step)
        fits = self.put(f"icmp sle i64 {end}, {stop}")
        self.lines.append(f"  br i1 {fits}, label %{tag}.body, label %{tag}.end\n{tag}.body:")
        self.block = f"{tag}.body"
        yield loop
        phis = [f"  {loop.index} = phi i64 [ {start}, %{before} ], [ {end}, %{self.block} ]"]
        for name, first, last in zip(loop.values, carried, loop.next or carried, strict=True):
            phis.append(f"  {name} = phi {kind or self.vector} [ {first}, %{before} ], [ {last}, %{self.block} ]")
        self.lines[head:head] = phis
        self.lines.append(f"  br label %{tag}{mark and f', !llvm.loop {mark}'}\n{tag}.end:")
        self.block = f"{tag}.end"

    def function(self, name: str, pointers: Sequence[str], integers: Sequence[str]) -> str:
        """A module with this function."""
        return "\n".join([declarations(self.lanes), self.definition(name, pointers, integers)])

    def definition(self, name: str, pointers: Sequence[str], integers: Sequence[str], private: bool = False) -> str:
        """This function; if it is ``private``, for others of its module."""
        parameters = ", ".join([f"ptr noalias %{p}" for p in pointers] + [f"i64 %{i}" for i in integers])
        linkage = "internal " if private else ""
        return "\n".join([f"define {linkage}void @{name}({parameters}) {{\nentry:", *self.lines, "  ret void\n}"])

    def invoke(self, name: str, pointers: Sequence[str], integers: Sequence[str]) -> None:
        """Call another function of the module."""
        given = ", ".join([f"ptr {p}" for p in pointers] + [f"i64 {i}" for i in integers])
        self.lines.append(f"  call void @{name}({given})")


def declarations(lanes: int) -> str:
    """What a module has to say of the functions of LLVM that `Code` calls."""
    vector, doubles = f"<{lanes} x float>", f"<{lanes} x double>"
    heads = [
        f"declare {vector} @llvm.{what}.v{lanes}f32({', '.join([vector] * count)})"
        for what, count in {"fmuladd": 3, "fabs": 1, "copysign": 2, "maxnum": 2, "floor": 1, "rint": 1}.items()
    ]
    heads.append(f"declare float @llvm.vector.reduce.fmax.v{lanes}f32({vector})")
    heads.append(f"declare double @llvm.vector.reduce.fadd.v{lanes}f64(double, {doubles})")
    heads.append("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    heads.append("declare double @llvm.sqrt.f64(double)\ndeclare double @llvm.fabs.f64(double)")
    heads.append(f"declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {vector})")
    heads += [f"declare {vector} {ESTIMATE}({vector}, {vector}, i16)"] if lanes == 16 else []
    mask, addresses = f"<{lanes} x i1>", f"<{lanes} x ptr>"
    heads.append(f"declare void @llvm.masked.store.v{lanes}f32.p0({vector}, ptr, i32, {mask})")
    heads.append(f"declare {vector} @llvm.masked.load.v{lanes}f32.p0(ptr, i32, {mask}, {vector})")
    heads.append(f"declare {vector} @llvm.masked.gather.v{lanes}f32.v{lanes}p0({addresses}, i32, {mask}, {vector})")
    return "\n".join(heads)


@dataclass
class Loop:
    index: str
    values: list[str]  # what is carried, in this round
    next: list[str] | None = None  # and for the next
