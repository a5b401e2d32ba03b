"""Attention without a mask of its own and without dropout, forward and backward, in 16 bits and float32; queries may share
heads of keys and values. Sums are in float32. The code is in `attention_code`; where cuDNN is installed, it is asked first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, laid_as
from genesis.core.call.fused import FUSED, RESULT
from genesis.core.call.generated import LateSignature
from genesis.core.call.halves import F32, HALVES
from genesis.core.call.kernels import attach
from genesis.core.call.kinds.others import FUSION
from genesis.core.call.op import Op
from genesis.cuda.arrays import MEMORY, CudaArray, empty, used
from genesis.cuda.kernels import attention_code as code
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.cuda.launch import interpreter
from genesis.cuda.launch.kernel import Launched, interpreted
from genesis.cuda.libraries import cudnn
from genesis.cuda.runtime.emulated_memory import Spaces
from genesis.cuda.runtime.emulated_queues import Span
from genesis.jit.lowering.triton_code import pointer_to

WIDEST = {2: 256, 4: 128}  # features of a head, by the bytes of one: sums of more do not fit the registers
Grid = tuple[int, int, int]
Strides = tuple[int, int, int]  # of batches, heads and rows; features are contiguous


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one call: (batches, heads, rows, features) of queries, heads that share keys, keys, and features of values."""

    batches: int
    heads: int
    group: int
    rows: int
    columns: int
    features: int
    values: int

    def sizes(self, name: str) -> tuple[int, int, int, int]:
        """Batches, heads, rows and features of an operand."""
        heads = self.heads // self.group if name in ("k", "v", "gk", "gv") else self.heads
        rows = self.columns if name in ("k", "v", "gk", "gv") else self.rows
        wide = {
            "total": 1,
            "delta": 1,
            "q": self.features,
            "k": self.features,
            "gq": self.features,
            "gk": self.features,
        }
        return self.batches, heads, rows, wide.get(name, self.values)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the kernels: its source, and its operands, those behind ``reads`` written."""

    name: str
    source: str
    operands: tuple[str, ...]
    reads: int


FORWARD = Part("forward", code.FORWARD, ("q", "k", "v", "out", "total"), 3)
DELTA = Part("delta", code.DELTA, ("out", "g", "delta"), 2)
KEYS = Part("keys", code.KEYS, ("q", "k", "v", "g", "total", "delta", "gk", "gv"), 6)
QUERIES = Part("queries", code.QUERIES, ("q", "k", "v", "g", "total", "delta", "gq"), 6)
ROWS = {"total", "delta"}  # without gaps; where batches, heads and rows of all others begin, the strides say


def power(n: int) -> int:
    return max(1 << (n - 1).bit_length(), 16)


def tile_of(part: Part, dtype: Any, wide: int) -> tuple[int, int, int]:
    """Rows, columns and warps of a program: by rule, so that all registers of a tile fit."""
    if dtype == F32:
        return (32, 32, 8 if part is KEYS else 4) if wide <= 64 else (16, 16, 4)
    if part is FORWARD:
        return (128, 64, 4) if wide <= 64 else (128, 64, 8) if wide <= 128 else (64, 32, 8)
    if part is KEYS:  # which has two sums
        return (64, 64, 8) if wide <= 64 else (32, 64, 8) if wide <= 128 else (32, 32, 8)
    return (64, 64, 4) if wide <= 64 else (64, 64, 8) if wide <= 128 else (32, 32, 8)


class Heads(Launched):
    """A kernel of attention for a dtype, with so many features of keys and values, causal or not."""

    def __init__(self, part: Part, dtype: Any, features: int, values: int, causal: bool) -> None:
        self.part, self.dtype, self.causal = part, dtype, causal
        d, e = power(features), power(values)
        self.m, self.n, self.warps = tile_of(part, dtype, max(d, e))
        self.step = self.n if part is KEYS else self.m
        inside = {"forward": "(columns[None, :] < N)", "queries": "(columns[None, :] < N)"}.get(
            part.name, "(rows[None, :] < M)"
        )
        if part is KEYS:
            inside = f"({inside} & (columns[:, None] < N))"
        before = "(rows[None, :] >= columns[:, None])" if part is KEYS else "(rows[:, None] >= columns[None, :])"
        self.source = (code.HEAD + part.source).lstrip().format(
            m=self.m, n=self.n, d=d, e=e, seen=f"{inside} & {before}" if causal else inside,
            last=f"tl.minimum(N, first + {self.m})" if causal else "N",
            begin=f"first // {self.m} * {self.m}" if causal else "0",
        )  # fmt: skip
        self.dtypes = tuple([F32 if name in ("total", "delta") else dtype for name in part.operands])
        pointers = tuple([pointer_to(d) for d in self.dtypes])
        count = 3 * sum([name not in ROWS for name in part.operands])
        if part is DELTA:
            self.signature, self.letters = (*pointers, *["i32"] * 3, *["i64"] * count), "QQQ" + "iii" + "q" * count
        else:
            self.signature = (*pointers, "fp64", *["i32"] * 6, *["i64"] * count)
            self.letters = "Q" * len(pointers) + "d" + "i" * 6 + "q" * count

    def values(self, addresses: Sequence[int], scale: float, shape: Shape, strides: Sequence[int]) -> tuple[Any, ...]:
        if self.part is DELTA:
            return (*addresses, shape.rows, shape.values, shape.heads, *strides)
        sizes = shape.heads, shape.group, shape.rows, shape.columns, shape.features, shape.values
        return (*addresses, scale, *sizes, *strides)

    def grid(self, shape: Shape) -> Grid:
        heads = shape.heads // shape.group if self.part is KEYS else shape.heads
        return -(-(shape.columns if self.part is KEYS else shape.rows) // self.step), shape.batches * heads, 1

    # ---- on the emulated device

    def _shape(self, grid: Grid, values: tuple[Any, ...]) -> Shape:
        first = len(self.dtypes)
        if self.part is DELTA:
            rows, wide, heads = values[first : first + 3]
            return Shape(grid[1] // heads, heads, 1, rows, 0, 0, wide)
        heads, group, rows, columns, features, wide = values[first + 1 : first + 7]
        each = heads // group if self.part is KEYS else heads
        return Shape(grid[1] // each, heads, group, rows, columns, features, wide)

    def _laid(self, grid: Grid, values: tuple[Any, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Shape and strides of each operand."""
        shape = self._shape(grid, values)
        strides = list(values[-3 * sum([name not in ROWS for name in self.part.operands]) :])
        laid = []
        for name in self.part.operands:
            sizes = shape.sizes(name)
            if name not in ROWS:
                steps, strides = (*strides[:3], 1), strides[3:]
            else:
                steps = (sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1)
            laid.append((sizes, steps))
        return laid

    def spans(self, grid: Grid, values: tuple[Any, ...]) -> list[Span]:
        laid = zip(self._laid(grid, values), self.dtypes, strict=True)
        counts = [
            (1 + sum([(n - 1) * s for n, s in zip(sizes, steps, strict=True)])) * d.itemsize
            for (sizes, steps), d in laid
        ]
        return [(values[i], count, i >= self.part.reads) for i, count in enumerate(counts)]

    def run(self, memory: Spaces, grid: Grid, values: tuple[Any, ...]) -> None:
        spans = self.spans(grid, values)
        arrays = [memory.array(a, d, n // d.itemsize) for (a, n, _), d in zip(spans, self.dtypes, strict=True)]
        laid = self._laid(grid, values)
        views = [
            np.lib.stride_tricks.as_strided(a, sizes, [s * a.itemsize for s in steps])
            for a, (sizes, steps) in zip(arrays, laid, strict=True)
        ]
        if interpreted():
            results = interpreter.run(self.source, grid, [*arrays, *values[len(arrays) :]])
            for i in range(self.part.reads, len(arrays)):  # between whose elements may be those of another
                sizes, steps = laid[i]
                strides = [s * views[i].itemsize for s in steps]
                views[i][...] = np.lib.stride_tricks.as_strided(results[i], sizes, strides)
            return
        scale = 0.0 if self.part is DELTA else values[len(arrays)]
        computed(
            self.part,
            dict(zip(self.part.operands, views, strict=True)),
            scale,
            self._shape(grid, values).group,
            self.causal,
        )


def computed(part: Part, x: dict[str, Any], scale: float, group: int, causal: bool) -> None:
    """What a kernel does, with NumPy."""
    if part is DELTA:
        x["delta"][...] = (x["out"].astype(F32) * x["g"].astype(F32)).sum(-1, keepdims=True)
        return
    q, k, v = (x[name].astype(F32) for name in "qkv")
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.swapaxes(-1, -2) * F32.type(scale)
    if causal:
        scores[..., ~np.tri(*scores.shape[-2:], dtype=np.bool_)] = -np.inf
    if part is FORWARD:
        total = np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True)) + scores.max(
            -1, keepdims=True
        )
        x["out"][...] = (np.exp(scores - total) @ v).astype(x["out"].dtype)
        x["total"][...] = total
        return
    g = x["g"].astype(F32)
    weights = np.exp(scores - x["total"])
    change = weights * (g @ v.swapaxes(-1, -2) - x["delta"])
    if part is QUERIES:
        x["gq"][...] = (change @ k * F32.type(scale)).astype(x["gq"].dtype)
        return
    for name, sums in (("gk", change.swapaxes(-1, -2) @ q * F32.type(scale)), ("gv", weights.swapaxes(-1, -2) @ g)):
        z, heads, rows, wide = sums.shape
        x[name][...] = sums.reshape(z, heads // group, group, rows, wide).sum(2).astype(x[name].dtype)


@functools.cache
def heads_of(part: Part, dtype: Any, features: int, values: int, causal: bool) -> Heads:
    return Heads(part, dtype, features, values, causal)


# ---- calls


def fits(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any,
         enable_gqa: bool) -> bool:  # fmt: skip
    if attn_mask is not None or dropout_p != 0 or not kernels_wanted():
        return False
    dtype = query.dtype
    if not (dtype == F32 or dtype in HALVES) or not dtype == key.dtype == value.dtype:
        return False
    if not query.ndim == key.ndim == value.ndim or query.ndim < 2 or 0 in (*query.shape, *key.shape, *value.shape):
        return False
    if query.shape[-1] != key.shape[-1] or key.shape[:-1] != value.shape[:-1]:
        return False
    if (
        max(query.shape[-1], value.shape[-1]) > WIDEST[dtype.itemsize]
        or max(query.size, key.size, value.size) >= 1 << 31
    ):
        return False
    shared = enable_gqa and query.ndim > 2
    if not shared:
        return bool(query.shape[:-2] == key.shape[:-2])
    return bool(query.shape[:-3] == key.shape[:-3] and query.shape[-3] % key.shape[-3] == 0)


def four(x: CudaArray) -> CudaArray:
    """Batches, heads, rows and contiguous features."""
    lead = x.shape[:-2]
    if x.strides[-1] != 1 or min(x.strides) < 0:
        x = MEMORY.copy(x)
    if len(lead) > 2:
        steps = x.strides[: len(lead) - 1]
        if not all([steps[i] == steps[i + 1] * lead[i + 1] for i in range(len(steps) - 1)]):
            x = MEMORY.copy(x)
    shape = (math.prod(lead[:-1]), lead[-1] if lead else 1, *x.shape[-2:])
    steps = (x.strides[-4] if len(lead) > 1 else 0, x.strides[-3] if lead else 0, *x.strides[-2:])
    return x.seen(0, shape, steps)


def _shape_of(q: CudaArray, k: CudaArray, v: CudaArray) -> Shape:
    batches, heads, rows, features = q.shape
    return Shape(batches, heads, heads // k.shape[1], rows, k.shape[2], features, v.shape[3])


def _start(part: Part, shape: Shape, causal: bool, scale: float, arrays: dict[str, CudaArray]) -> None:
    first = arrays[part.operands[1]]
    kernel = heads_of(part, first.dtype, power(shape.features), power(shape.values), causal)
    stream = used(*[arrays[name] for name in part.operands])
    strides = [s for name in part.operands if name not in ROWS for s in arrays[name].strides[:3]]
    values = kernel.values([arrays[name].address for name in part.operands], scale, shape, strides)
    kernel.start(first.on, stream.handle, kernel.grid(shape), values)


def _made_as(other: CudaArray, shape: tuple[int, ...]) -> CudaArray:
    return empty(other.on, shape, other.dtype, laid_as(other, shape))


def _infer(query: Spec, key: Spec, value: Spec, *_: Any) -> tuple[Spec, tuple[Any, ...]]:
    lead = query.shape[:-1]
    total = Spec((math.prod(lead[:-2]), lead[-2] if len(lead) > 1 else 1, lead[-1], 1), F32)
    shape = (*lead, value.shape[-1])
    out = Spec(shape, query.dtype, strides=laid_as(query, shape))
    return out, ("query", "key", "value", RESULT, total, "is_causal", "scale")


@attach("scaled_dot_product_attention", CudaArray, when=fits, infer=_infer)
def attention(query: CudaArray, key: CudaArray, value: CudaArray, attn_mask: None, dropout_p: float, is_causal: bool,
              scale: float | None, enable_gqa: bool) -> Any:  # fmt: skip
    """The kernel of `genesis.nn.functional.scaled_dot_product_attention`."""
    factor = _factor(query, scale)
    q, k, v = four(query), four(key), four(value)
    out = _made_as(query, (*query.shape[:-1], value.shape[-1]))
    total = MEMORY.empty((*q.shape[:3], 1), F32, query.device)
    if not cudnn.attended(q, k, v, four(out), total, factor, is_causal):
        arrays = {"q": q, "k": k, "v": v, "out": four(out), "total": total}
        _start(FORWARD, _shape_of(q, k, v), is_causal, factor, arrays)
    return out, (query, key, value, out, total, is_causal, scale)


def _factor(query: CudaArray, scale: float | None) -> float:
    return 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)


def _gradients_laid(kept: Any) -> list[Any]:
    return [*[laid_as(x, x.shape) for x in kept[:3]], None]


@attention.backward(reads=("query", "key", "value"), laid=_gradients_laid)
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    gradients = [_made_as(x, x.shape) for x in kept[:3]]
    attention_back(g, kept, gradients, needs)
    return (*gradients, None)


def attention_back(g: CudaArray, kept: Any, gradients: Sequence[CudaArray], needs: Sequence[bool]) -> None:
    """Compute the gradients of queries, keys and values."""
    query, key, value, out, total, causal, scale = kept
    factor, q, k, v, out, g = _factor(query, scale), *map(four, (query, key, value, out, g))
    gradients = [four(x) for x in gradients]
    if cudnn.attended_back((q, k, v, out, g, total), gradients, factor, causal):
        return
    shape, delta = _shape_of(q, k, v), MEMORY.empty(total.shape, F32, query.device)
    arrays = {"q": q, "k": k, "v": v, "g": g, "out": out, "total": total, "delta": delta}
    arrays |= dict(zip(("gq", "gk", "gv"), gradients, strict=True))
    _start(DELTA, shape, causal, factor, arrays)
    if needs[1] or needs[2]:
        _start(KEYS, shape, causal, factor, arrays)
    if needs[0]:
        _start(QUERIES, shape, causal, factor, arrays)


# ---- in programs: gradients that are parts of one array

BACK = "fused.scaled_dot_product_attention.CudaArray.backward"
JOINED = f"{BACK}.joined"
Parts = Sequence[tuple[int, tuple[int, ...]]]  # where each begins, and its strides, in elements


def _joined(g: CudaArray, kept: Any, wanted: Any, shape: tuple[int, ...], parts: Parts) -> CudaArray:
    out = MEMORY.empty(shape, g.dtype, g.device)
    gradients = [
        out.seen(begin * out.dtype.itemsize, x.shape, strides)
        for x, (begin, strides) in zip(kept[:3], parts, strict=True)
    ]
    attention_back(g, kept, gradients, (True, True, True))
    return out


def _infer_joined(g: Spec, kept: Any, wanted: Any, shape: tuple[int, ...], parts: Parts) -> list[Spec]:
    return [Spec(shape, g.dtype, g.device)]


_op = FUSED[JOINED] = Op(JOINED, FUSION, LateSignature(lambda: _joined), _joined, infer=_infer_joined)
_op.kernel, _op.tensors = lambda *args: (_joined(*args),), (0,)
