"""Running sums, products, logarithms of sums and positions of extremes along a dimension.

A program has some rows and goes along them in blocks: a tree joins the elements of a block, and what came before is joined
to all of them. Floating sums and products are in float64 where operands have 64 bits, else in float32.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.core.call.halves import F32, HALVES
from genesis.core.call.op import REGISTRY
from genesis.cuda.arrays import MEMORY, CudaArray, used
from genesis.cuda.kernels.moves import contiguous
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to, type_of

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
BLOCK = 2048  # elements that a program has at once
ALONG = 64  # of these along the dimension, where it is not the last one
Grid = tuple[int, int, int]

_JOIN = {
    "cumsum": "    return x + y",
    "cumprod": "    return x * y",
    "logcumsumexp": """
    most = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    shift = tl.where((most == float("-inf")) | (most == float("inf")), 0.0, most)
    return tl.where(most == float("inf"), most, shift + tl.log(tl.exp(x - shift) + tl.exp(y - shift)))""".lstrip("\n"),
}
_START = {"cumsum": "0", "cumprod": "1", "logcumsumexp": "float('-inf')"}

_SCAN = """
import triton
import triton.language as tl


@triton.jit
def join(x, y):
{join}


@triton.jit
def kernel(x, out, rows, n, inner):
    row = tl.program_id(0).to(tl.int64) * {across} + tl.arange(0, {across})
    first = row // inner * inner * n + row % inner
    lane = tl.arange(0, {along})
    before = tl.zeros([{across}], tl.{wide}) + {start}
    for start in range(0, n, {along}):
        at = start + lane
        inside = (at[:, None] < n) & (row[None, :] < rows)
        to = first[None, :] + at[:, None].to(tl.int64) * inner
        value = tl.load(x + to, mask=inside, other={start}).to(tl.{wide})
        value = tl.where(inside, value, tl.zeros([{along}, {across}], tl.{wide}) + {start})
        value = join(tl.broadcast_to(before[None, :], [{along}, {across}]), tl.associative_scan(value, 0, join))
        tl.store(out + to, value.to(out.dtype.element_ty), mask=inside)
        before = tl.sum(tl.where(lane[:, None] == {along} - 1, value, 0), 0).to(tl.{wide})
""".lstrip()

_POSITION = """
import triton
import triton.language as tl


@triton.jit
def join(x, i, y, j):
    later = (y != y) | ((x == x) & (y {order} x))
    return tl.where(later, y, x), tl.where(later, j, i)


@triton.jit
def kernel(x, out, rows, n, inner):
    row = tl.program_id(0).to(tl.int64) * {across} + tl.arange(0, {across})
    first = row // inner * inner * n + row % inner
    lane = tl.arange(0, {along})
    best = tl.zeros([{across}], tl.{wide}) + {start}
    where = tl.zeros([{across}], tl.int32)
    for start in range(0, n, {along}):
        at = start + lane
        inside = (at[:, None] < n) & (row[None, :] < rows)
        to = first[None, :] + at[:, None].to(tl.int64) * inner
        value = tl.load(x + to, mask=inside, other=0).to(tl.{wide})
        value = tl.where(inside, value, tl.zeros([{along}, {across}], tl.{wide}) + {start})
        place = tl.broadcast_to(at[:, None], [{along}, {across}])
        value, place = tl.associative_scan((value, place), 0, join)
        shape: tl.constexpr = [{along}, {across}]
        value, place = join(tl.broadcast_to(best[None, :], shape), tl.broadcast_to(where[None, :], shape), value, place)
        tl.store(out + to, place.to(tl.int64), mask=inside)
        last = lane[:, None] == {along} - 1
        best = tl.sum(tl.where(last, value, 0), 0).to(tl.{wide})
        where = tl.sum(tl.where(last, place, 0), 0)
""".lstrip()


class Scan(Launched):
    """The kernel of an op: for numbers of a dtype, results of another, ``along`` elements of ``across`` rows at once."""

    def __init__(self, name: str, dtype: Any, out: Any, largest: bool, along: int, across: int) -> None:
        self.name, self.dtype, self.out, self.largest = name, dtype, out, largest
        sizes = {"along": along, "across": across, "wide": type_of(wide(name, dtype, out))}
        if name == "running_position":
            start = _limit(wide(name, dtype, out), largest)
            self.source = _POSITION.format(order=">=" if largest else "<=", start=start, **sizes)
        else:
            self.source = _SCAN.format(join=_JOIN[name], start=_START[name], **sizes)
        self.across = across
        self.signature = (pointer_to(dtype), pointer_to(out), "i64", "i32", "i64")
        self.letters = "QQqiq"

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        x, out, rows, n, _ = values
        return [(x, rows * n * self.dtype.itemsize, False), (out, rows * n * self.out.itemsize, True)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        rows, n, inner = values[2:]
        x = memory.array(values[0], self.dtype, rows * n)
        out = memory.array(values[1], self.out, rows * n)
        if interpreted():
            out[...] = interpreter.run(self.source, grid, [x, out, rows, n, inner])[1]
            return
        given = x.reshape(rows // inner, n, inner)
        rest = {"cumsum": (self.out,), "cumprod": (self.out,), "logcumsumexp": ()}.get(self.name, (self.largest,))
        with np.errstate(all="ignore"):
            out[...] = REGISTRY[self.name].meaning(given, 1, **_named(self.name, rest)).reshape(-1)


def _named(name: str, rest: tuple[Any, ...]) -> dict[str, Any]:
    return {} if not rest else {"largest": rest[0]} if name == "running_position" else {"dtype": rest[0]}


def wide(name: str, dtype: Any, out: Any) -> Any:
    """What is computed in."""
    if dtype in HALVES or dtype == F32:
        return F64 if out == F64 and name != "running_position" else F32
    if name == "running_position" or dtype == F64:
        return np.dtype(np.int32) if dtype.kind == "b" else dtype
    return out if out.kind == "f" else I64


def _limit(dtype: Any, largest: bool) -> str:
    if dtype.kind == "f":
        return "float('-inf')" if largest else "float('inf')"
    info = np.iinfo(dtype)
    return f"({info.min})" if largest else str(info.max)


@functools.cache
def scan(name: str, dtype: Any, out: Any, largest: bool, along: int, across: int) -> Scan:
    return Scan(name, dtype, out, largest, along, across)


def scanned(name: str, input: CudaArray, dim: int, dtype: Any, largest: bool = True) -> Any:
    if not input.ndim or input.dtype.kind in "cu" or dtype.kind in "cu" or input.shape[dim] >= 1 << 30:
        return NotImplemented
    if name == "logcumsumexp" and dtype in HALVES:
        return NotImplemented
    out = MEMORY.empty(input.shape, dtype, input.device)
    if not out.size:
        return out
    dim %= input.ndim
    x, n, inner = contiguous(input), input.shape[dim], math.prod(input.shape[dim + 1 :])
    along = min(max(1 << (n - 1).bit_length(), 2), BLOCK if inner == 1 else ALONG)
    kernel = scan(name, x.dtype, out.dtype, largest, along, max(BLOCK // along, 1))
    rows = x.size // n
    kernel.start(x.on, used(x, out).handle, (-(-rows // kernel.across), 1, 1), (x.address, out.address, rows, n, inner))
    return out


def cumsum(input: CudaArray, dim: int, dtype: Any = None) -> Any:
    return scanned("cumsum", input, dim, np.dtype(dtype))


def cumprod(input: CudaArray, dim: int, dtype: Any = None) -> Any:
    return scanned("cumprod", input, dim, np.dtype(dtype))


def logcumsumexp(input: CudaArray, dim: int) -> Any:
    return scanned("logcumsumexp", input, dim, input.dtype)


def running_position(input: CudaArray, dim: int, largest: bool) -> Any:
    return scanned("running_position", input, dim, I64, largest)


KERNELS = {"cumsum": cumsum, "cumprod": cumprod, "logcumsumexp": logcumsumexp, "running_position": running_position}
