"""The first numbers of rows in order, by few launches: all of rows that fit into one program, and a few of longer ones.

    whole     a row, sorted by one program                                                        1 launch
    few       the least of each group of a long row; the groups whose least are the first ones    2 launches
              hold all that is looked for, and are sorted

What is compared are 64-bit integers as in `sorts`, of which no two are equal: so the first ``k`` numbers lie in at most
``k`` groups, which are those of the ``k`` first among the groups' least, and equals keep their order.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from genesis.core.call.halves import HALVES
from genesis.cuda.kernels.lowering import Launch
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

I64 = np.dtype(np.int64)
TILE = 2048  # numbers that one program sorts
PAIRS = 1024  # numbers of short rows that one program sorts
MOST = 4096  # least numbers of groups, and numbers of groups that are looked at
LANES = 256  # groups of a program, whose numbers lie so far apart
GROUPS = 8, 16, 32, 64, 128, 256  # numbers of a group
FEWEST = 16  # that are put in order where fewer are wanted: one machine code does for all of these
LOW = (1 << 32) - 1
LAST = (1 << 31) - 1
END = (1 << 63) - 1  # what comes last
Grid = tuple[int, int, int]

_HEAD = """
import triton
import triton.language as tl


@triton.jit
def both(v, at):
    {key}
    return ({sign}key.to(tl.int64) << 32) | at.to(tl.int64)


@triton.jit
def kernel({parameters}):
""".lstrip()
_FLOAT = f"""v = v.to(tl.float32)
    v = tl.where(v == 0, 0.0, v)
    key = v.to(tl.int32, bitcast=True)
    key = tl.where(key < 0, key ^ {LAST}, key)
    key = tl.where(v != v, {LAST}, key)"""
_WHOLE = f"""
    row = tl.program_id(0).to(tl.int64) * {{rows}} + tl.arange(0, {{rows}})[:, None]
    lane = tl.arange(0, {{tile}})[None, :]
    inside = (row < rows) & (lane < n)
    y = tl.where(inside, both(tl.load(x + row * n + lane, mask=inside, other=0), lane), {END})
    y = {{first}}
    place = tl.arange(0, {{many}})[None, :]
    tl.store(out + row * count + place, y & {LOW}, mask=(row < rows) & (place < count))
"""
_LEAST = f"""
    tile = tl.program_id(0) % tiles
    row = (tl.program_id(0) // tiles).to(tl.int64)
    lane = tl.arange(0, {{lanes}})
    at = tile * {{span}} + lane
    least = tl.full([{{lanes}}], {END}, tl.int64)
    for _ in tl.static_range({{group}}):
        inside = at < n
        y = both(tl.load(x + row * n + at, mask=inside, other=0), at)
        least = tl.minimum(least, tl.where(inside, y, {END}))
        at += {{lanes}}
    tl.store(out + (row * tiles + tile) * {{lanes}} + lane, least)
"""
_AMONG = f"""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, {{tile}})
    y = tl.load(least + row * groups + lane, mask=lane < groups, other={END})
    y = ~tl.topk(~y, {{many}})
    at = (y & {LOW}).to(tl.int32)
    at = at // {{span}} * {{span}} + at % {{lanes}}
    at = at[:, None] + tl.arange(0, {{group}})[None, :] * {{lanes}}
    inside = (y != {END})[:, None] & (at < n)
    y = tl.where(inside, both(tl.load(x + row * n + at, mask=inside, other=0), at), {END})
    y = ~tl.topk(tl.reshape(~y, [{{many}} * {{group}}]), {{many}})
    place = tl.arange(0, {{many}})
    tl.store(out + row * count + place, y & {LOW}, mask=place < count)
"""


def is_float(dtype: Any) -> bool:
    return dtype.kind == "f" or dtype in HALVES


def _source(dtype: Any, down: bool, parameters: str, text: str, **names: Any) -> str:
    key = _FLOAT if is_float(dtype) else "key = v.to(tl.int32)"
    return _HEAD.format(key=key, sign="~" if down else "", parameters=parameters) + text.lstrip("\n").format(**names)


def _both(x: Any, down: bool) -> Any:
    """The same integers with NumPy, of rows."""
    if is_float(x.dtype):
        v = x.astype(np.float32)
        bits = np.where(v == 0, np.float32(0), v).view(np.int32)
        key = np.where(np.isnan(v), np.int32(LAST), np.where(bits < 0, bits ^ np.int32(LAST), bits))
    else:
        key = x.astype(np.int32)
    key = (~key if down else key).astype(np.int64)
    return (key << 32) | np.arange(x.shape[1])


class OfRows(Launched):
    """Something about rows of numbers: reads some arrays, and writes the last one."""

    dtypes: tuple[Any, ...]

    def shapes(self, numbers: tuple[int, ...]) -> list[tuple[int, int]]:
        """Of the arrays, by the numbers that are parameters."""
        raise NotImplementedError

    def meaning(self, *arrays: Any) -> None:
        """The same with NumPy."""
        raise NotImplementedError

    def _arrays(self, values: tuple[Any, ...]) -> list[tuple[int, Any, tuple[int, int]]]:
        count = len(self.dtypes)
        return [*zip(values[:count], self.dtypes, self.shapes(values[count:]), strict=True)]

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        arrays = self._arrays(values)
        return [(at, m * n * d.itemsize, i == len(arrays) - 1) for i, (at, d, (m, n)) in enumerate(arrays)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        arrays = [memory.array(at, d, m * n).reshape(m, n) for at, d, (m, n) in self._arrays(values)]
        if interpreted():
            given = [a.reshape(-1) for a in arrays]
            result = interpreter.run(self.source, grid, [*given, *values[len(arrays) :]])[len(arrays) - 1]
            arrays[-1][...] = np.reshape(result, arrays[-1].shape)  # type: ignore[arg-type]
        else:
            self.meaning(*arrays)


class Whole(OfRows):
    """The positions of the first numbers of rows that one program sorts, each or some of them."""

    letters = "QQiii"

    def __init__(self, dtype: Any, down: bool, tile: int, many: int) -> None:
        self.down, self.dtypes = down, (dtype, I64)
        self.rows = max(PAIRS // tile, 1)
        first = "tl.sort(y, dim=1)" if many == tile else f"~tl.topk(~y, {many}, dim=1)"
        self.source = _source(dtype, down, "x, out, n, count, rows", _WHOLE, tile=tile, many=many, rows=self.rows, first=first)  # fmt: skip
        self.signature, self.warps = (pointer_to(dtype), "*i64", *["i32"] * 3), 8 if tile > 512 else 4
        self.free = frozenset({3, 4})

    def shapes(self, numbers: tuple[int, ...]) -> list[tuple[int, int]]:
        n, count, rows = numbers
        return [(rows, n), (rows, count)]

    def meaning(self, x: Any, out: Any) -> None:
        out[...] = np.sort(_both(x, self.down), 1)[:, : out.shape[1]] & LOW


class Least(OfRows):
    """The least of each group of a row: of numbers `LANES` apart."""

    def __init__(self, dtype: Any, down: bool, group: int, lanes: int) -> None:
        self.down, self.group, self.lanes, self.dtypes = down, group, lanes, (dtype, I64)
        self.source = _source(
            dtype, down, "x, out, n, tiles, rows", _LEAST, group=group, lanes=lanes, span=group * lanes
        )
        self.signature, self.letters = (pointer_to(dtype), "*i64", *["i32"] * 3), "QQiii"
        self.free = frozenset({3, 4})

    def shapes(self, numbers: tuple[int, ...]) -> list[tuple[int, int]]:
        n, tiles, rows = numbers
        return [(rows, n), (rows, tiles * self.lanes)]

    def meaning(self, x: Any, out: Any) -> None:
        rows, n = x.shape
        whole = np.full((rows, out.shape[1] * self.group), END)
        whole[:, :n] = _both(x, self.down)
        out[...] = whole.reshape(rows, -1, self.group, self.lanes).min(2).reshape(out.shape)


class Among(OfRows):
    """The positions of the first numbers of rows, from the least of their groups."""

    def __init__(self, dtype: Any, down: bool, group: int, lanes: int, tile: int, many: int) -> None:
        self.down, self.dtypes = down, (dtype, I64, I64)
        self.source = _source(
            dtype, down, "x, least, out, n, groups, count, rows", _AMONG,
            group=group, lanes=lanes, span=group * lanes, tile=tile, many=many,
        )  # fmt: skip
        self.signature, self.letters, self.warps = (pointer_to(dtype), "*i64", "*i64", *["i32"] * 4), "QQQiiii", 8
        self.free = frozenset({4, 5, 6})

    def shapes(self, numbers: tuple[int, ...]) -> list[tuple[int, int]]:
        n, groups, count, rows = numbers
        return [(rows, n), (rows, groups), (rows, count)]

    def meaning(self, x: Any, least: Any, out: Any) -> None:
        out[...] = np.sort(_both(x, self.down), 1)[:, : out.shape[1]] & LOW


whole, least, among = functools.cache(Whole), functools.cache(Least), functools.cache(Among)


def power(n: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(n - 1, 0).bit_length()


def launches_for(dtype: Any, rows: int, n: int, down: bool, count: int) -> tuple[list[Launch], int] | None:
    """The launches that give the positions of the first ``count`` numbers of rows, whose arrays are the input, the result
    and integers between them, and how many integers these are; None of 64 bits, and of many.
    """
    if dtype.itemsize > 4 or rows > LAST:  # numbers that kernels are told have 32 bits
        return None
    if n <= TILE:
        tile = max(power(n), 2)
        kernel = whole(dtype, down, tile, min(max(power(count), FEWEST), tile))
        return [(kernel, (-(-rows // kernel.rows), 1, 1), (0, 1), (n, count, rows))], 0
    return _of_few(dtype, rows, n, down, count)


def _of_few(dtype: Any, rows: int, n: int, down: bool, count: int) -> tuple[list[Launch], int] | None:
    many = max(power(count), FEWEST)
    tiles = [-(-n // (group * LANES)) for group in GROUPS]
    width, group, tile = min([(power(t * LANES) + many * g, g, t) for g, t in zip(GROUPS, tiles, strict=True)])
    groups = tile * LANES
    if max(width - many * group, many * group) > MOST or many > groups:
        return None
    first = least(dtype, down, group, LANES), (rows * tile, 1, 1), (0, 2), (n, tile, rows)
    second = (
        among(dtype, down, group, LANES, width - many * group, many),
        (rows, 1, 1),
        (0, 2, 1),
        (n, groups, count, rows),
    )
    return [first, second], rows * groups
