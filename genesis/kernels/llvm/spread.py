"""LLVM code for variances and deviations of rows of float32 numbers, in float64: the mean first, then the squares of what is
left without it.
"""

from __future__ import annotations

from genesis.kernels.llvm.filled import Filled
from genesis.kernels.llvm.nests import declarations

POINTERS, SIZES = ("x", "divisor", "out"), ("first", "last", "length")


def of_rows(lanes: int, root: bool) -> str:
    """The function ``spread`` of rows from ``first`` to ``last``: what the sum of squares is divided by is given."""
    code = Filled(lanes)
    numbers, divisor = code.row("%length"), code.put("load double, ptr %divisor, align 8")
    count = code.put("sitofp i64 %length to double")
    with code.loop("%first", "%last", "1") as row:
        x = code.at("%x", code.times(row.index, "%length"))

        def add(index: str, sums: list[str]) -> list[str]:
            return [code.wide_two("fadd", sums[0], code.wide(code.read(x, index)))]

        total = code.total(code.along(numbers, ["zeroinitializer"], code.doubles, add)[0])
        mean = code.everywhere(code.of_two("fdiv", total, count))

        def add_squares(index: str, sums: list[str]) -> list[str]:
            away = code.wide_two("fsub", code.wide(code.read(x, index)), mean)
            if code.inside is not None:
                away = code.put(
                    f"select {code.some} {code.inside}, {code.doubles} {away}, {code.doubles} zeroinitializer"
                )
            return [code.wide_two("fadd", sums[0], code.wide_two("fmul", away, away))]

        squares = code.total(code.along(numbers, ["zeroinitializer"], code.doubles, add_squares)[0])
        spread = code.of_two("fdiv", squares, divisor)
        code.put_number(code.put(f"call double @llvm.sqrt.f64(double {spread})") if root else spread, "%out", row.index)
    return "\n".join([declarations(lanes), code.definition("spread", POINTERS, SIZES)])
