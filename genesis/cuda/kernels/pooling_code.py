"""The code of kernels that go through windows: sums of their elements, the largest ones, and the gradients of these.

A program makes a tile of the result: some rows, and some elements along the dimension that is innermost in memory, which are
read and written 16 bytes at once. Tables say for each element of a result along a spatial dimension which elements of that
dimension it is made of; they are read once for a row (or a column), so that no lane divides to know where it is.

A processor has few flags for conditions. Where a window has less elements than others, tables of largest elements name one twice,
which changes nothing; those of their gradients name a window, and a number that is that of none of its elements. Rows and
columns that are not there are computed as the last ones, and not written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from genesis.core.call.halves import F64, HALVES
from genesis.jit.lowering.triton_code import HEAD
from genesis.jit.lowering.triton_functions import needed

UNROLLED = 36  # taps whose code is written out; of more, loops go through the outer dimensions
SOURCES = {"sum": ("x",), "positions": ("x",), "largest": ("x",), "back": ("g", "which")}
RESULTS = {"sum": ("out",), "positions": ("at",), "largest": ("out", "which"), "back": ("out",)}


@dataclass(frozen=True, slots=True)
class Form:
    """A kernel.

    Attributes:
        kind: "sum"; "positions", of the largest among all elements; "largest" elements, and which of their window they are;
            "back", the sums of the gradients of windows whose largest element it is
        dtypes: of sources and results
        taps: elements of a window along each spatial dimension, or windows that an element is in
        axes: which dimension of a tile's elements each spatial dimension is; the last is its columns
        units: strides along the columns that are 0 or 1, and 2 for others, of sources and results
        weighted: whether elements have weights, by a table for each dimension
        whole: whether each result is made of as many; where a sum is not, tables have -1
        alike: whether sources lie alike, so that one knows where elements of all are
        scaled: "*" or "/", where sums are multiplied or divided by a number
        long: whether offsets need 64 bits
    """

    kind: str
    dtypes: tuple[Any, ...]
    taps: tuple[int, ...]
    axes: tuple[int, ...]
    units: tuple[int, ...]
    rank: int
    warps: int
    rows: int
    columns: int
    weighted: bool = False
    whole: bool = False
    alike: bool = True
    scaled: str = ""
    long: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        return (*SOURCES[self.kind], *RESULTS[self.kind])

    def lies_as(self, source: str) -> str:
        """The source whose elements are known to lie as those of this one."""
        return SOURCES[self.kind][0] if self.alike else source

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables of positions; then of weights, or of the part of a dimension in the number in a window."""
        dims, further = range(len(self.taps)), self.weighted or self.kind in ("largest", "back")
        return (*[f"table{d}" for d in dims], *([f"of{d}" for d in dims] if further else ()))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The integers that it is told."""
        strides = [f"{name}_{d}" for name in self.operands for d in range(self.rank)]
        return ("rows", *[f"s{d}" for d in range(self.rank)], *strides, *[f"size{d}" for d in range(len(self.taps))])

    @property
    def wide(self) -> str:
        return wide_of(self.dtypes[0])


def wide_of(dtype: Any) -> str:
    """What is computed in."""
    return "float64" if dtype == F64 else "float32" if dtype in HALVES or dtype.kind == "f" else "int64"


@functools.cache
def source(form: Form) -> str:
    body = _BODIES[form.kind](form)
    parameters = [*SOURCES[form.kind], *form.tables, *RESULTS[form.kind], *form.numbers, *["by"] * bool(form.scaled)]
    lines = [
        f"def kernel({', '.join(parameters)}):",
        *[f"    {line}" for line in [*_where(form), *_tables(form), *body]],
    ]
    return "\n".join([*HEAD, "", "", *needed(["\n".join(body)]), "@triton.jit", *lines, ""])


def _where(form: Form) -> list[str]:
    """Which elements a program has, and where those of its operands are but for the spatial dimensions of sources."""
    last, wide = form.rank - 1, ".to(tl.int64)" if form.long else ""
    lines = [
        f"pid = tl.program_id(0){wide}",
        f"across = tl.cdiv(s{last}, {form.columns})",
        f"row = (pid // across) * {form.rows} + tl.arange(0, {form.rows})[:, None]",
        f"c{last} = (pid % across) * {form.columns} + tl.arange(0, {form.columns})[None, :]",
        f"there = c{last} < s{last}",
        "inside = (row < rows) & there",
        "row = tl.minimum(row, rows - 1)",
    ]
    if last in form.axes:
        lines.append(f"c{last} = tl.minimum(c{last}, s{last} - 1)")
    for d in range(last - 1, 0, -1):
        lines += [f"c{d} = row % s{d}", f"row = row // s{d}"]
    lines += ["c0 = row"] * (last > 0)
    units = dict(zip(form.operands, form.units, strict=True))
    for name in form.operands:
        axes = [d for d in range(form.rank) if name in RESULTS[form.kind] or d not in form.axes]
        terms = [_times(f"c{d}", f"{name}_{d}", units[name] if d == last else 2) for d in axes]
        lines.append(f"{name}_at = {' + '.join(terms) or '0'}")
    return lines


def _times(count: str, stride: str, unit: int) -> str:
    return (f"{count} * 0", count, f"{count} * {stride}")[unit]


def _unrolled(form: Form) -> set[int]:
    """The spatial dimensions whose taps are written out: the last ones."""
    out: set[int] = set()
    for d in reversed(range(len(form.taps))):
        if math.prod([form.taps[i] for i in {*out, d}]) > UNROLLED:
            break
        out.add(d)
    return out


def _tables(form: Form) -> list[str]:
    """What tables say of taps that are written out."""
    return [
        line for d in sorted(_unrolled(form)) for k in range(form.taps[d]) for line in _tap(form, d, str(k), f"_{k}")
    ]


def _tap(form: Form, d: int, k: str, end: str) -> list[str]:
    """Of a tap along a spatial dimension where it is, also in sources, and what it is told about it."""
    axis = form.axes[d]
    at = f"{k} * s{axis} + c{axis}"
    lines = [f"p{d}{end} = tl.load(table{d} + {at})"]
    names = dict.fromkeys([form.lies_as(name) for name in SOURCES[form.kind]])
    lines += [f"{name}{d}{end} = p{d}{end} * {name}_{axis}" for name in names]
    if f"of{d}" in form.tables:
        lines.append(f"of{d}{end}_ = tl.load(of{d} + {at})")
    return lines


def _over_taps(form: Form, tap: Any) -> list[str]:
    """``tap(ends)`` for each tap of all dimensions: its lines, by the end that names have of each dimension."""
    unrolled, dims = _unrolled(form), len(form.taps)

    def nested(d: int, ends: tuple[str, ...]) -> list[str]:
        if d == dims:
            return tap(ends)  # type: ignore[no-any-return]
        if d in unrolled:
            return [line for k in range(form.taps[d]) for line in nested(d + 1, (*ends, f"_{k}"))]
        inner = [*_tap(form, d, f"k{d}", ""), *nested(d + 1, (*ends, ""))]
        return [f"for k{d} in range(0, {form.taps[d]}):", *[f"    {line}" for line in inner]]

    return nested(0, ())


def _read(form: Form, name: str, ends: Sequence[str]) -> str:
    """A source's element of a tap, of a sum 0 where there is none."""
    lies = form.lies_as(name)
    at = " + ".join([f"{lies}_at", *[f"{lies}{d}{end}" for d, end in enumerate(ends)]])
    known = f"(({' | '.join([f'p{d}{end}' for d, end in enumerate(ends)])}) >= 0)"
    masks = [*["there"] * (form.rank - 1 not in form.axes), *[known] * (form.kind == "sum" and not form.whole)]
    masked = f", mask={' & '.join(masks)}, other=0" if masks else ""
    return f"tl.load({name} + ({at}){masked})"


def _tile(form: Form, value: str, dtype: str) -> str:
    return f"tl.full([{form.rows}, {form.columns}], {value}, tl.{dtype})"


def _stored(name: str, value: str) -> str:
    return f"tl.store({name} + ({name}_at), {value}.to({name}.dtype.element_ty), mask=inside)"


def _sum(form: Form) -> list[str]:
    def tap(ends: Sequence[str]) -> list[str]:
        weights = "".join([f" * of{d}{end}_" for d, end in enumerate(ends)]) if form.weighted else ""
        return [f"total += {_read(form, 'x', ends)}.to(tl.{form.wide}){weights}"]

    by = f"by.to(tl.{form.wide})"
    given = {"": "total", "*": f"(total * {by})", "/": f"divided(total, {by})"}[form.scaled]
    return [f"total = {_tile(form, _nothing(form), form.wide)}", *_over_taps(form, tap), _stored("out", given)]


def _nothing(form: Form) -> str:
    """What a sum begins with: of all that are there the one that leaves a zero its sign."""
    return "-0.0" if form.whole and form.wide != "int64" else "0"


def _largest(form: Form) -> list[str]:
    """NaN is larger than any number, of several the last is taken, and of equals the first."""
    integers, among_all = form.wide == "int64", form.kind == "positions"
    least, nan = (str(-(1 << 63)), "") if integers else ("float('-inf')", " | (value != value)")
    size = "tl.int64" if form.long and among_all else "tl.int32"
    dims = range(len(form.taps))

    def number(ends: Sequence[str]) -> str:
        """The number of a tap in its window, or where it is among all elements."""
        if not among_all:
            return " + ".join([f"of{d}{end}_" for d, end in enumerate(ends)])
        factors = ["".join([f" * size{i}" for i in dims[d + 1 :]]) for d in dims]
        return " + ".join([f"p{d}{end}.to({size}){factors[d]}" for d, end in enumerate(ends)])

    def tap(ends: Sequence[str]) -> list[str]:
        return [
            f"value = {_read(form, 'x', ends)}.to(tl.{form.wide})",
            f"larger = (value > best){nan}",
            "best = tl.where(larger, value, best)",
            f"chosen = tl.where(larger, {number(ends)}, chosen)",
        ]

    lines = [line for d in dims if d not in _unrolled(form) for line in _tap(form, d, "0", "_0")]
    lines += [
        f"best = {_tile(form, least, form.wide)}",
        f"chosen = tl.zeros([{form.rows}, {form.columns}], {size}) + ({number(['_0'] * len(dims))})",
        *_over_taps(form, tap),
    ]
    return (
        [*lines, _stored("at", "chosen")] if among_all else [*lines, _stored("out", "best"), _stored("which", "chosen")]
    )


def _back(form: Form) -> list[str]:
    def tap(ends: Sequence[str]) -> list[str]:
        mine = " + ".join([f"of{d}{end}_" for d, end in enumerate(ends)])
        return [
            f"here = {_read(form, 'which', ends)}.to(tl.int32) == {mine}",
            f"total += tl.where(here, {_read(form, 'g', ends)}.to(tl.{form.wide}), 0)",
        ]

    return [f"total = {_tile(form, '0', form.wide)}", *_over_taps(form, tap), _stored("out", "total")]


_BODIES = {"sum": _sum, "positions": _largest, "largest": _largest, "back": _back}
