"""LLVM code for what is combined at places that may be named more than once: rows and elements, their sums, products and
extremes; and for rows and elements that are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from genesis.kernels.llvm.nests import Code

POINTERS, SIZES = ("out", "index", "values"), ("count", "width")
TAKEN = ("x", "index", "out")
ALONG = ("outer", "size", "count", "inner")


def combine_rows(lanes: int, what: str) -> str:
    """The function ``combine_rows``: each of ``count`` rows of ``width`` values is combined with the row of ``out`` that its
    index says, in their order: ``fadd``, ``fmul``, or the larger ("ogt") or smaller ("olt") of both, nan the most of all.
    """
    code = Code(lanes)
    with code.loop("0", "%count", "1") as row:
        number = code.number("%index", row.index)
        out, values = code.at("%out", code.times(number, "%width")), code.at("%values", code.times(row.index, "%width"))
        whole = code.put(f"and i64 %width, -{lanes}")
        with code.loop("0", whole, str(lanes)) as column:
            both = code.load(out, column.index), code.load(values, column.index)
            code.store(_combined(code, what, *both, code.vector, f"<{lanes} x i1>"), out, column.index)
        with code.loop(whole, "%width", "1") as column:
            _combine_one(code, what, code.at(out, column.index), code.at(values, column.index))
    return code.function("combine_rows", POINTERS, SIZES)


def combine_along(what: str) -> str:
    """The function ``combine_along``: ``values[a, i, b]`` is combined with ``out[a, index[a, i, b], b]``, see `combine_rows`."""
    code = Code(1)
    with _named(code, "0", "%outer") as (at, number):
        _combine_one(code, what, code.at("%out", number), code.at("%values", at))
    return code.function("combine_along", POINTERS, ALONG)


def add_along() -> str:
    """The function ``add_along``: ``values[a, i, b]`` is added to ``out[a, index[a, i, b], b]``, a sum in float64. Both have
    ``inner`` elements behind the dimension of the index, which has ``size`` places and ``count`` values.
    """
    code = Code(1)
    with _named(code, "0", "%outer") as (at, number):
        to = code.at("%out", number, "double")
        total = code.put(f"load double, ptr {to}, align 8")
        total = code.put(f"fadd double {total}, {code.double('%values', at)}")
        code.lines.append(f"  store double {total}, ptr {to}, align 8")
    return code.function("add_along", POINTERS, ALONG)


def take_along(kind: str) -> str:
    """The function ``take_along``: ``out[a, i, b] = x[a, index[a, i, b], b]`` for ``a`` from ``first`` to ``last``, of elements
    of one size (``i32``). Where an index is none, it takes the first, and ``wrong`` is larger than before.
    """
    code = Code(1)
    seen = code.put("alloca i64, align 8")
    code.lines.append(f"  store i64 0, ptr {seen}, align 8")
    with code.loop("%first", "%last", "1") as outer:
        start = code.times(outer.index, "%size")
        with code.loop("0", "%count", "1") as row:
            begin = code.times(code.add(code.times(outer.index, "%count"), row.index), "%inner")
            with code.loop("0", "%inner", "1") as column:
                at = code.add(begin, column.index)
                number = code.number("%index", at)
                outside = code.put(f"icmp uge i64 {number}, %size")
                so_far = code.put(f"load i64, ptr {seen}, align 8")
                more = code.put(f"or i64 {so_far}, {code.put(f'zext i1 {outside} to i64')}")
                code.lines.append(f"  store i64 {more}, ptr {seen}, align 8")
                number = code.add(start, code.put(f"select i1 {outside}, i64 0, i64 {number}"))
                source = code.at("%x", code.add(code.times(number, "%inner"), column.index), kind)
                value = code.put(f"load {kind}, ptr {source}, align 1")
                code.lines.append(f"  store {kind} {value}, ptr {code.at('%out', at, kind)}, align 1")
    code.put(f"atomicrmw add ptr %wrong, i64 {code.put(f'load i64, ptr {seen}, align 8')} seq_cst")
    return code.function("take_along", (*TAKEN, "wrong"), ("first", "last", *ALONG[1:]))


def take_rows(lanes: int) -> str:
    """The function ``take_rows``: ``out[i] = x[index[i]]``, of rows of ``width`` numbers, from ``first`` to ``last``."""
    code = Code(lanes)
    with code.loop("%first", "%last", "1") as row:
        source = code.at("%x", code.times(code.number("%index", row.index), "%width"))
        out = code.at("%out", code.times(row.index, "%width"))
        whole = code.put(f"and i64 %width, -{lanes}")
        with code.loop("0", whole, str(lanes)) as column:
            code.store(code.load(source, column.index), out, column.index)
        with code.loop(whole, "%width", "1") as column:
            value = code.put(f"load float, ptr {code.at(source, column.index)}, align 4")
            code.lines.append(f"  store float {value}, ptr {code.at(out, column.index)}, align 4")
    return code.function("take_rows", TAKEN, ("first", "last", "width"))


@contextmanager
def _named(code: Code, first: str, last: str) -> Iterator[tuple[str, str]]:
    """All elements of an index along a dimension: where one is, and where what it names is."""
    with code.loop(first, last, "1") as outer:
        start = code.times(outer.index, "%size")
        with code.loop("0", "%count", "1") as row:
            begin = code.times(code.add(code.times(outer.index, "%count"), row.index), "%inner")
            with code.loop("0", "%inner", "1") as column:
                at = code.add(begin, column.index)
                number = code.add(start, code.number("%index", at))
                yield at, code.add(code.times(number, "%inner"), column.index)


def _combine_one(code: Code, what: str, out: str, value: str) -> None:
    a, b = (code.put(f"load float, ptr {p}, align 4") for p in (out, value))
    code.lines.append(f"  store float {_combined(code, what, a, b, 'float', 'i1')}, ptr {out}, align 4")


def _combined(code: Code, what: str, a: str, b: str, kind: str, test: str) -> str:
    if what in ("fadd", "fmul"):
        return code.put(f"{what} {kind} {a}, {b}")
    more = code.put(f"select {test} {code.put(f'fcmp {what} {kind} {b}, {a}')}, {kind} {b}, {kind} {a}")
    return code.put(f"select {test} {code.put(f'fcmp uno {kind} {b}, {b}')}, {kind} {b}, {kind} {more}")
