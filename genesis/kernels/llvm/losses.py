"""LLVM code for losses of class indices: means of rows of float32 logits, with sums in float64 and results rounded once; and
of log probabilities, each by itself.

A row gets its loss, its class and its share in the mean. What is left is done when all rows are there, and there it is
seen if a class is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from genesis.kernels.llvm import functions
from genesis.kernels.llvm.filled import Filled
from genesis.kernels.llvm.nests import declarations

SIZES = ("first", "last", "many", "inner", "ignored")
OF_LOGITS = ("g", "shares", "classes", "share", "gx")
OF_PICKED = ("g", "classes", "share", "gx")
GRADIENTS = ("first", "last", "many", "inner", "step")
IGNORED, OUTSIDE = -1, -2  # classes that do not count, and that of the first row where one is none


class Options(NamedTuple):
    """What is computed.

    Attributes:
        logits: whether the rows are logits, ``many`` numbers beside each other, of which the mean is wanted; else there are
            log probabilities in arrays (examples, ``many``, ``inner``)
        weighted: whether there are weights of classes
        keeps: whether the softmax of logits is wanted
    """

    logits: bool
    weighted: bool = False
    keeps: bool = False


def pointers(options: Options) -> list[str]:
    """Those of the functions of `forward`."""
    more = {"losses": options.logits, "weight": options.weighted, "shares": options.keeps}
    return ["x", "target", "classes", "share", "out", *[name for name, given in more.items() if given]]


def forward(lanes: int, options: Options) -> str:
    """The functions ``rows``, ``finish``, and ``whole``, which is one after the other."""
    of_rows, end, both = _Rows(lanes), _Rows(lanes), _Rows(lanes)
    of_rows.forward(options)
    end.finish(options)
    given = pointers(options)
    for name in ("rows", "finish"):
        both.invoke(name, [f"%{p}" for p in given], [f"%{i}" for i in SIZES])
    codes = {"rows": of_rows, "finish": end, "whole": both}
    parts = [code.definition(name, given, SIZES) for name, code in codes.items()]
    return "\n".join([declarations(lanes), *of_rows.declared, *parts])


def gradient(lanes: int, logits: bool) -> str:
    """The function ``gradient``: of logits from their softmax; or into zeros, of log probabilities."""
    code = _Rows(lanes)
    (code.gradient_of_logits if logits else code.gradient_of_picked)()
    return code.function("gradient", OF_LOGITS if logits else OF_PICKED, GRADIENTS)


class _Rows(Filled):
    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self._classes = self.row("%many")

    def forward(self, options: Options) -> None:
        with self.loop("%first", "%last", "1") as row:
            label = self.number("%target", row.index)
            counts = self.put(f"icmp ne i64 {label}, %ignored")
            inside = self.put(f"icmp ult i64 {label}, %many")
            own = self.choose(inside, label, "0", "i64")
            kept = self.choose(inside, label, str(OUTSIDE), "i64")
            self._put_class(self.choose(counts, kept, str(IGNORED), "i64"), row.index)
            weight = self.double("%weight", own) if options.weighted else "1.0"
            self.put_number(self.choose(counts, weight, "0.0"), "%share", row.index)
            if options.logits:
                loss = self._of_logits(row.index, own, options.keeps)
                self.keep(self.choose(counts, loss, "0.0"), "%losses", row.index)
            else:
                loss = self.put(f"fneg double {self.double('%x', self._picked(row.index, own))}")
                loss = self.of_two("fmul", loss, weight)
                self.put_number(self.choose(counts, loss, "0.0"), "%out", row.index)

    def _of_logits(self, row: str, own: str, keeps: bool) -> str:
        """Less the logarithm of the probability of a class."""
        start = self.times(row, "%many")
        x = self.at("%x", start)
        shares = self.at("%shares", start) if keeps else ""

        def larger(index: str, best: list[str]) -> list[str]:
            number = self.read(x, index, -math.inf)
            return [self.where("ogt", number, best[0], number, best[0])]

        def add(index: str, sums: list[str]) -> list[str]:
            d = self.wide_two("fsub", self.wide(self.read(x, index, -math.inf)), top)
            power = self.of(functions.exp, d)
            if keeps:
                self.write(self.narrow(power), shares, index)
            return [self.wide_two("fadd", sums[0], power)]

        def divide(index: str, _: list[str]) -> list[str]:
            power = self.wide(self.read(shares, index))
            self.write(self.narrow(self.wide_two("fmul", power, scale)), shares, index)
            return []

        best = self.along(self._classes, [self.constant(-math.inf)], self.vector, larger)[0]
        largest = self.put(f"call float @llvm.vector.reduce.fmax.v{self.lanes}f32({self.vector} {best})")
        largest = self.put(f"fpext float {largest} to double")
        top = self.everywhere(largest)
        total = self.everywhere(self.total(self.along(self._classes, ["zeroinitializer"], self.doubles, add)[0]))
        if keeps:
            scale = self.wide_two("fdiv", self.ones, total)
            self.along(self._classes, [], self.vector, divide)
        logarithm = self.first(self.of(functions.log, total))
        return self.of_two("fsub", logarithm, self.of_two("fsub", self.double(x, own), largest))

    def finish(self, options: Options) -> None:
        with self.loop("0", "%last", "1", ["0.0"] * 3, "double") as row:
            label = self.number("%classes", row.index)
            loss = self.take("%losses", row.index) if options.logits else "0.0"
            wrong = self.put(f"uitofp i1 {self.put(f'icmp eq i64 {label}, {OUTSIDE}')} to double")
            terms = loss, self.double("%share", row.index), wrong
            row.next = [self.of_two("fadd", a, b) for a, b in zip(row.values, terms, strict=True)]
        total, count, outside = row.values
        if options.logits:
            self.put_number(self.of_two("fdiv", total, count), "%out", "0")
        if options.keeps:
            some = self.choose(self.put(f"fcmp oeq double {count}, 0.0"), "1.0", count)
            with self.loop("0", "%last", "1") as row:
                share = self.of_two("fdiv", self.double("%share", row.index), some)
                self.put_number(share, "%share", row.index)
                label = self.number("%classes", row.index)
                counts = self.put(f"icmp ne i64 {label}, {IGNORED}")
                self._put_class(self.choose(counts, label, "0", "i64"), row.index)
        wrong = self.put(f"fcmp une double {outside}, 0.0")
        self._put_class(self.choose(wrong, str(OUTSIDE), self.number("%classes", "0"), "i64"), "0")

    # ---- gradients

    def gradient_of_logits(self) -> None:
        with self.loop("%first", "%last", "1") as row:
            start = self.times(row.index, "%many")
            shares, gx = self.at("%shares", start), self.at("%gx", start)
            g = self.double("%g", self.times(row.index, "%step"))
            own, share = self.number("%classes", row.index), self.double("%share", row.index)
            counts = self.put(f"fcmp une double {share}, 0.0")
            scale = self.of_two("fmul", share, g)
            scales = self.everywhere(scale)

            def give(index: str, _: list[str]) -> list[str]:
                value = self.wide_two("fmul", self.wide(self.read(shares, index)), scales)
                value = self.put(f"select i1 {counts}, {self.doubles} {value}, {self.doubles} zeroinitializer")
                self.write(self.narrow(value), gx, index)
                return []

            self.along(self._classes, [], self.vector, give)
            value = self.of_two("fmul", self.of_two("fsub", self.double(shares, own), "1.0"), scale)
            self.put_number(self.choose(counts, value, "0.0"), gx, own)

    def gradient_of_picked(self) -> None:
        with self.loop("%first", "%last", "1") as row:
            g, share = self.double("%g", self.times(row.index, "%step")), self.double("%share", row.index)
            own = self.number("%classes", row.index)
            counts = self.put(f"icmp sge i64 {own}, 0")
            value = self.put(f"fneg double {self.of_two('fmul', share, g)}")
            at = self._picked(row.index, self.choose(counts, own, "0", "i64"))
            self.put_number(self.choose(counts, value, "0.0"), "%gx", at)

    # ---- numbers

    def _put_class(self, label: str, row: str) -> None:
        self.lines.append(f"  store i64 {label}, ptr {self.at('%classes', row, 'i64')}, align 8")

    def _picked(self, row: str, label: str) -> str:
        """Where the log probability of a class is."""
        example, inside = (self.put(f"{what} i64 {row}, %inner") for what in ("udiv", "urem"))
        return self.add(self.times(self.add(self.times(example, "%many"), label), "%inner"), inside)
