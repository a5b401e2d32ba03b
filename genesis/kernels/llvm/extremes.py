"""LLVM code for where running maxima and minima of float32 numbers were last reached; a nan is reached wherever it is.

The position is carried as a float64 number, beside the extreme so far.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code, declarations

POINTERS, SIZES = ("x", "out"), ("first", "last", "length", "inner")
STARTS = {"oge": "0xFFF0000000000000", "ole": "0x7FF0000000000000"}  # maxima begin at -inf
ROWS = 8  # as many at a time: each waits for the one before


def of_rows(test: str) -> str:
    """The function ``positions`` along rows that are contiguous (``inner`` is 1), eight of them at a time."""
    code = Code(1)
    with code.loop("%first", "%last", str(ROWS)) as rows:
        _along(code, test, [code.times(code.add(rows.index, str(i)), "%length") for i in range(ROWS)])
    rest = code.put("sub i64 %last, %first")
    done = code.add("%first", code.put(f"and i64 {rest}, -{ROWS}"))
    with code.loop(done, "%last", "1") as row:
        _along(code, test, [code.times(row.index, "%length")])
    return code.function("positions", POINTERS, SIZES)


def _along(code: Code, test: str, starts: list[str]) -> None:
    with code.loop("0", "%length", "1", [STARTS[test], "0.0"] * len(starts), "double") as step:
        here, step.next = code.put(f"sitofp i64 {step.index} to double"), []
        for i, start in enumerate(starts):
            best, position = step.values[2 * i : 2 * i + 2]
            at = code.add(start, step.index)
            x = code.double("%x", at)
            reached = code.put(
                f"or i1 {code.put(f'fcmp {test} double {x}, {best}')}, {code.put(f'fcmp uno double {x}, {x}')}"
            )
            step.next.append(code.put(f"select i1 {reached}, double {x}, double {best}"))
            step.next.append(code.put(f"select i1 {reached}, double {here}, double {position}"))
            number = code.put(f"fptosi double {step.next[-1]} to i64")
            code.lines.append(f"  store i64 {number}, ptr {code.at('%out', at, 'i64')}, align 8")


def of_columns(test: str, lanes: int) -> str:
    """The function ``positions`` along a dimension before others: of ``length`` rows of ``inner`` columns, ``last`` times."""
    many, one = _columns(test, lanes, "many"), _columns(test, 1, "one")
    code = Code(1)
    with code.loop("%first", "%last", "1") as block:
        start = code.times(block.index, code.times("%length", "%inner"))
        whole = code.put(f"and i64 %inner, -{lanes}")
        x, out = code.at("%x", start), code.at("%out", start, "i64")
        code.invoke("many", (x, out), ("0", whole, "%length", "%inner"))
        code.invoke("one", (x, out), (whole, "%inner", "%length", "%inner"))
    return "\n".join([declarations(1), many, one, code.definition("positions", POINTERS, SIZES)])


def _columns(test: str, lanes: int, name: str) -> str:
    code = Code(lanes)
    kind = code.doubles
    begin = [f"<{', '.join([f'double {start}'] * lanes)}>" for start in (STARTS[test], "0.0")]
    with (
        code.loop("%first", "%last", str(lanes)) as column,
        code.loop("0", "%length", "1", begin, kind) as step,
    ):
        best, position = step.values
        here = code.everywhere(code.put(f"sitofp i64 {step.index} to double"))
        at = code.add(code.times(step.index, "%inner"), column.index)
        x = code.wide(code.load("%x", at))
        reached = code.put(
            f"or <{lanes} x i1> {code.put(f'fcmp {test} {kind} {x}, {best}')}, {code.put(f'fcmp uno {kind} {x}, {x}')}"
        )
        step.next = [
            code.put(f"select <{lanes} x i1> {reached}, {kind} {new}, {kind} {old}")
            for new, old in ((x, best), (here, position))
        ]
        numbers = code.put(f"fptosi {kind} {step.next[1]} to <{lanes} x i64>")
        code.lines.append(f"  store <{lanes} x i64> {numbers}, ptr {code.at('%out', at, 'i64')}, align 8")
    return code.definition(name, POINTERS, SIZES, private=True)
