"""LLVM code for attention of few rows of float32 numbers, one row after the other, in float64; the weights are kept."""

from __future__ import annotations

from genesis.kernels.llvm import functions
from genesis.kernels.llvm.filled import Filled
from genesis.kernels.llvm.nests import declarations

POINTERS = ("query", "key", "value", "factor", "scores", "weights", "out")
SIZES = ("first", "last", "rows", "columns", "size", "wide", "causal")


def attention(lanes: int) -> str:
    """The function ``attention``: rows from ``first`` to ``last`` of all heads, which have ``rows`` rows and ``columns`` keys,
    of ``size`` numbers, and values of ``wide`` numbers. Of ``scores`` there are ``columns``, and a vector more.
    """
    code = Filled(lanes)
    along, across = code.row("%size"), code.row("%wide")
    factor = code.put("load double, ptr %factor, align 8")
    lowest, bits = "0xFFF0000000000000", f"-{lanes}"
    everywhere_lowest = f"<{', '.join([f'double {lowest}'] * lanes)}>"
    with code.loop("%first", "%last", "1") as row:
        head, line = (code.put(f"{what} i64 {row.index}, %rows") for what in ("udiv", "urem"))
        seen = code.put(f"select i1 {code.put('icmp ne i64 %causal, 0')}, i64 {code.add(line, '1')}, i64 %columns")
        seen = code.least(seen, "%columns")
        query = code.at("%query", code.times(row.index, "%size"))
        start = code.times(head, "%columns")
        weights = code.at("%weights", code.times(row.index, "%columns"))
        with code.loop("0", seen, "1", [lowest], "double") as column:
            key = code.at("%key", code.times(code.add(start, column.index), "%size"))

            def products(index: str, sums: list[str]) -> list[str]:
                both = (code.wide(code.read(base, index)) for base in (query, key))
                return [code.wide_two("fadd", sums[0], code.wide_two("fmul", *both))]

            score = code.total(code.along(along, ["zeroinitializer"], code.doubles, products)[0])
            score = code.of_two("fmul", score, factor)
            code.keep(score, "%scores", column.index)
            larger = code.put(f"fcmp ogt double {score}, {column.values[0]}")
            column.next = [code.choose(larger, score, column.values[0])]
        top = code.everywhere(column.values[0])
        code.store_doubles(everywhere_lowest, "%scores", seen)
        stop = code.put(f"and i64 {code.add(seen, str(lanes - 1))}, {bits}")
        with code.loop("0", stop, str(lanes), ["zeroinitializer"], code.doubles) as part:
            power = code.of(functions.exp, code.wide_two("fsub", code.load_doubles("%scores", part.index), top))
            code.store_doubles(power, "%scores", part.index)
            part.next = [code.wide_two("fadd", part.values[0], power)]
        scale = code.of_two("fdiv", "1.0", code.total(part.values[0]))
        with code.loop("0", "%columns", "1") as column:
            inside = code.put(f"icmp slt i64 {column.index}, {seen}")
            weight = code.of_two("fmul", code.take("%scores", code.choose(inside, column.index, "0", "i64")), scale)
            code.keep(weight, "%scores", column.index)
            code.put_number(code.choose(inside, weight, "0.0"), weights, column.index)
        out = code.at("%out", code.times(row.index, "%wide"))

        def mean(index: str, _: list[str]) -> list[str]:
            with code.loop("0", seen, "1", ["zeroinitializer"], code.doubles) as column:
                value = code.at("%value", code.times(code.add(start, column.index), "%wide"))
                weight = code.everywhere(code.take("%scores", column.index))
                product = code.wide_two("fmul", code.wide(code.read(value, index)), weight)
                column.next = [code.wide_two("fadd", column.values[0], product)]
            code.write(code.narrow(column.values[0]), out, index)
            return []

        code.along(across, [], code.vector, mean)
    return "\n".join([declarations(lanes), *code.declared, code.definition("attention", POINTERS, SIZES)])
