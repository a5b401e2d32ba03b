"""LLVM code for sums of rows and of elements at places that may be named more than once, and for elements that are named."""

from __future__ import annotations

from genesis.kernels.llvm.nests import Code

POINTERS, SIZES = ("out", "index", "values"), ("count", "width")
TAKEN = ("x", "index", "out")
ALONG = ("outer", "size", "count", "inner")


def add_rows(lanes: int) -> str:
    """The function ``add_rows``: each of ``count`` rows of ``width`` values is added to the row of ``out`` that its index
    says, in their order.
    """
    code = Code(lanes)
    with code.loop("0", "%count", "1") as row:
        number = code.number("%index", row.index)
        out, values = code.at("%out", code.times(number, "%width")), code.at("%values", code.times(row.index, "%width"))
        whole = code.put(f"and i64 %width, -{lanes}")
        with code.loop("0", whole, str(lanes)) as column:
            total = code.plus(code.load(out, column.index), code.load(values, column.index))
            code.store(total, out, column.index)
        with code.loop(whole, "%width", "1") as column:
            to = code.at(out, column.index)
            a, b = (code.put(f"load float, ptr {p}, align 4") for p in (to, code.at(values, column.index)))
            code.lines.append(f"  store float {code.put(f'fadd float {a}, {b}')}, ptr {to}, align 4")
    return code.function("add_rows", POINTERS, SIZES)


def add_along() -> str:
    """The function ``add_along``: ``values[a, i, b]`` is added to ``out[a, index[a, i, b], b]``, a sum in float64. Both have
    ``inner`` elements behind the dimension of the index, which has ``size`` places and ``count`` values.
    """
    code = Code(1)
    with code.loop("0", "%outer", "1") as outer:
        first = code.times(outer.index, "%size")
        with code.loop("0", "%count", "1") as row:
            start = code.times(code.add(code.times(outer.index, "%count"), row.index), "%inner")
            with code.loop("0", "%inner", "1") as column:
                at = code.add(start, column.index)
                number = code.add(first, code.number("%index", at))
                to = code.at("%out", code.add(code.times(number, "%inner"), column.index), "double")
                value = code.put(f"load float, ptr {code.at('%values', at)}, align 4")
                wide = code.put(f"fpext float {value} to double")
                total = code.put(f"load double, ptr {to}, align 8")
                code.lines.append(f"  store double {code.put(f'fadd double {total}, {wide}')}, ptr {to}, align 8")
    return code.function("add_along", POINTERS, ALONG)


def take_along() -> str:
    """The function ``take_along``: ``out[a, i, b] = x[a, index[a, i, b], b]`` for ``a`` from ``first`` to ``last``."""
    code = Code(1)
    with code.loop("%first", "%last", "1") as outer:
        first = code.times(outer.index, "%size")
        with code.loop("0", "%count", "1") as row:
            start = code.times(code.add(code.times(outer.index, "%count"), row.index), "%inner")
            with code.loop("0", "%inner", "1") as column:
                at = code.add(start, column.index)
                number = code.add(first, code.number("%index", at))
                source = code.at("%x", code.add(code.times(number, "%inner"), column.index))
                value = code.put(f"load float, ptr {source}, align 4")
                code.lines.append(f"  store float {value}, ptr {code.at('%out', at)}, align 4")
    return code.function("take_along", TAKEN, ("first", "last", *ALONG[1:]))
