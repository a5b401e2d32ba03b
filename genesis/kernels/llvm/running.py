"""LLVM code for running sums and products of float32 numbers, in float64, one after the other as NumPy has them; and for
products of rows.
"""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code, declarations

POINTERS, SIZES = ("x", "out"), ("first", "last", "length", "inner")
STARTS = {"fadd": "0x8000000000000000", "fmul": "0x3FF0000000000000"}  # -0 + x and 1 x are x, to the bit
ROWS, COLUMNS = 8, 32  # as many sums at a time: each waits for the one before
PARTS = 4  # vectors of a row that are multiplied at a time


def of_rows(what: str) -> str:
    """The function ``running`` along rows that are contiguous (``inner`` is 1), eight of them at a time."""
    code = Code(1)
    with code.loop("%first", "%last", str(ROWS)) as rows:
        _along(code, what, [code.times(code.add(rows.index, str(i)), "%length") for i in range(ROWS)])
    rest = code.put("sub i64 %last, %first")
    done = code.add("%first", code.put(f"and i64 {rest}, -{ROWS}"))
    with code.loop(done, "%last", "1") as row:
        _along(code, what, [code.times(row.index, "%length")])
    return code.function("running", POINTERS, SIZES)


def _along(code: Code, what: str, starts: list[str]) -> None:
    with code.loop("0", "%length", "1", [STARTS[what]] * len(starts), "double") as step:
        totals = []
        for start, total in zip(starts, step.values, strict=True):
            at = code.add(start, step.index)
            totals.append(code.put(f"{what} double {total}, {code.double('%x', at)}"))
            code.put_number(totals[-1], "%out", at)
        step.next = totals


def of_columns(what: str) -> str:
    """The function ``running`` along a dimension before others: of ``length`` rows of ``inner`` columns, ``last`` times."""
    many, one = _columns(what, COLUMNS, "many"), _columns(what, 1, "one")
    code = Code(1)
    with code.loop("%first", "%last", "1") as block:
        start = code.times(block.index, code.times("%length", "%inner"))
        whole = code.put(f"and i64 %inner, -{COLUMNS}")
        x, out = code.at("%x", start), code.at("%out", start)
        code.invoke("many", (x, out), ("0", whole, "%length", "%inner"))
        code.invoke("one", (x, out), (whole, "%inner", "%length", "%inner"))
    return "\n".join([declarations(1), many, one, code.definition("running", POINTERS, SIZES)])


def _columns(what: str, lanes: int, name: str) -> str:
    code = Code(lanes)
    begin = f"<{', '.join([f'double {STARTS[what]}'] * lanes)}>"
    with (
        code.loop("%first", "%last", str(lanes)) as column,
        code.loop("0", "%length", "1", [begin], code.doubles) as step,
    ):
        at = code.add(code.times(step.index, "%inner"), column.index)
        total = code.wide_two(what, step.values[0], code.wide(code.load("%x", at)))
        code.store(code.narrow(total), "%out", at)
        step.next = [total]
    return code.definition(name, POINTERS, SIZES, private=True)


def product_of_rows(lanes: int) -> str:
    """The function ``product``: those of rows of ``length`` numbers that are contiguous, in float32; `PARTS` vectors at a
    time.
    """
    code = Code(lanes)
    one = code.constant(1.0)
    whole, vectors = (code.put(f"and i64 %length, -{n}") for n in (PARTS * lanes, lanes))
    with code.loop("%first", "%last", "1") as row:
        x = code.at("%x", code.times(row.index, "%length"))
        with code.loop("0", whole, str(PARTS * lanes), [one] * PARTS) as step:
            step.next = [
                code.mul(value, code.load(x, code.add(step.index, str(i * lanes))))
                for i, value in enumerate(step.values)
            ]
        parts = step.values
        while len(parts) > 1:
            parts = [code.mul(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        with code.loop(whole, vectors, str(lanes), parts) as step:
            step.next = [code.mul(step.values[0], code.load(x, step.index))]
        numbers = [code.put(f"extractelement {code.vector} {step.values[0]}, i32 {i}") for i in range(lanes)]
        while len(numbers) > 1:
            numbers = [code.put(f"fmul float {a}, {b}") for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        with code.loop(vectors, "%length", "1", numbers, "float") as step:
            number = code.put(f"load float, ptr {code.at(x, step.index)}, align 4")
            step.next = [code.put(f"fmul float {step.values[0]}, {number}")]
        code.lines.append(f"  store float {step.values[0]}, ptr {code.at('%out', row.index)}, align 4")
    return code.function("product", POINTERS, SIZES)
