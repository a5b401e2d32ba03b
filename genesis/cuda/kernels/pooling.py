"""Sums and largest elements of windows, and the gradients of these, by one launch each: what a result is made of is gathered,
also by gradients, so nothing is sorted, and sums are in one order. The rules are those of `genesis.ops.spatial.tables`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.call.kernels import attach
from genesis.cuda.arrays import MEMORY, CudaArray, empty
from genesis.cuda.kernels.pooling_tiles import INT32, on_device, started
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.ops.spatial.tables import Rule, covering, sizes_of, table, taps

MOST = 1024  # elements of a window that a lane goes through
AT_ONCE = 64  # elements of all dimensions that are summed by one launch; more, a dimension after the other
INT64, UINT8 = np.dtype(np.int64), np.dtype(np.uint8)

# ---- sums


def _sum_tables(like: CudaArray, rules: Sequence[Rule], back: bool) -> tuple[list[CudaArray], tuple[int, ...], bool]:
    """The tables of rules, how many taps they have, and whether these have weights."""
    made = [taps(rule, back) for rule in rules]
    weighted = any([weights is not None for _, weights in made])
    wide = np.dtype(_wide(like))
    positions = [
        on_device(like, (rule, back), lambda p=p: p.T, INT32) for rule, (p, _) in zip(rules, made, strict=True)
    ]
    weights = [
        on_device(like, (rule, back, wide), lambda p=p, w=w: (np.ones(p.shape) if w is None else w).T, wide)
        for rule, (p, w) in zip(rules, made, strict=True)
        if weighted
    ]
    return [*positions, *weights], tuple([p.shape[1] for p, _ in made]), weighted


def _wide(x: CudaArray) -> str:
    if x.dtype in HALVES or x.dtype == F32:
        return "float32"
    return "float64" if x.dtype == F64 else "int64"


def mix(input: CudaArray, dim: int, rule: Any, back: bool = False) -> Any:
    _, weights = taps(rule, back)
    shape = (*input.shape[:dim], sizes_of(rule, back)[1], *input.shape[dim + 1 :])
    if not input.size or 0 in shape:
        return MEMORY.zeros(shape, input.dtype, input.device)
    integers = _wide(input) == "int64"
    if input.dtype.kind == "c" or min(input.strides) < 0 or (weights is not None and integers):
        return NotImplemented
    out = MEMORY.empty(shape, input.dtype, input.device)
    tables, counts, weighted = _sum_tables(input, [rule], back)
    started("sum", [input], [out], [dim % input.ndim], tables, counts, weighted)
    return out


# ---- the largest


def _window_tables(like: CudaArray, rules: Sequence[Rule], among_all: bool) -> list[CudaArray]:
    """The elements of windows along each dimension, and the first that there is: where it is, or which of the window."""
    made = [table(rule)[0] for rule in rules]
    positions = [on_device(like, (rule, False), lambda p=p: p.T, INT32) for rule, p in zip(rules, made, strict=True)]
    firsts = [
        on_device(like, (rule, "first", among_all), lambda p=p: _first(p, among_all), INT32)
        for rule, p in zip(rules, made, strict=True)
    ]
    return [*positions, *firsts]


def _first(positions: Any, among_all: bool) -> Any:
    first = np.argmax(positions >= 0, 1)
    return positions[np.arange(len(positions)), first] if among_all else first


def max_places(input: CudaArray, rules: Any) -> Any:
    shape = _pooled(input.shape, rules)
    if 0 in shape:
        return MEMORY.empty(shape, INT64, input.device)
    if not input.size or min(input.strides) < 0:
        return NotImplemented
    out = MEMORY.empty(shape, INT64, input.device)
    started("positions", [input], [out], _last(shape, rules), _window_tables(input, rules, True), _counts(rules))
    return out


def _pooled(shape: tuple[int, ...], rules: Sequence[Rule]) -> tuple[int, ...]:
    return (*shape[: -len(rules)], *[sizes_of(rule)[1] for rule in rules])


def _last(shape: tuple[int, ...], rules: Sequence[Rule]) -> range:
    return range(len(shape) - len(rules), len(shape))


@functools.lru_cache(512)
def _counts(rules: tuple[Rule, ...]) -> tuple[int, ...]:
    """How many elements windows have along each dimension."""
    return tuple([table(rule)[0].shape[1] for rule in rules])


def _in_order(shape: tuple[int, ...], like: Any) -> tuple[int, ...]:
    """The strides of an array without gaps whose dimensions are in the order of another's."""
    strides, step = [0] * len(shape), 1
    for d in reversed(memory_order(strides_of(like))):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def _fits(input: Any, rules: Any, *_: Any) -> bool:
    floats = input.dtype in (F32, F64) or input.dtype in HALVES
    return (
        kernels_wanted() and floats and len(rules) < 4 and input.size > 0 and 0 not in _pooled(input.shape, rules)
        and min(strides_of(input)) >= 0
    )  # fmt: skip


def _infer_largest(input: Spec, rules: Any) -> tuple[Spec, tuple[Any, ...]]:
    shape = _pooled(input.shape, rules)
    strides = _in_order(shape, input)
    return Spec(shape, input.dtype, strides=strides), ("input", Spec(shape, _numbers(rules), strides=strides), "rules")


def _numbers(rules: Any) -> Any:
    """The dtype of numbers of elements of a window."""
    return UINT8 if math.prod(_counts(rules)) <= 256 else INT32


@attach(
    "largest",
    CudaArray,
    when=lambda input, rules: _fits(input, rules) and math.prod(_counts(rules)) <= MOST,
    infer=_infer_largest,
)
def largest(input: CudaArray, rules: Any) -> Any:
    """The kernel of max pooling; it keeps which element of its window each is."""
    shape = _pooled(input.shape, rules)
    strides = _in_order(shape, input)
    out, which = (empty(input.on, shape, dtype, strides) for dtype in (input.dtype, _numbers(rules)))
    started("largest", [input], [out, which], _last(shape, rules), _window_tables(input, rules, False), _counts(rules))
    return out, (input, which, rules)


def _gradient_laid(kept: Any) -> list[Any]:
    return [_in_order(kept[0].shape, kept[0])]


@largest.backward(reads=(), laid=_gradient_laid)
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    input, which, rules = kept
    g = g if min(g.strides) >= 0 else MEMORY.copy(g)
    out = empty(input.on, input.shape, g.dtype, _in_order(input.shape, input))
    tables, counts = _covering_tables(g, rules)
    started("back", [g, which], [out], _last(input.shape, rules), tables, counts)
    return (out,)


def _covering_tables(like: CudaArray, rules: Sequence[Rule]) -> tuple[list[CudaArray], tuple[int, ...]]:
    """The windows that elements are in, and the part that each dimension has in their number there."""
    made, counts = [covering(rule) for rule in rules], _counts(tuple(rules))
    factors = [math.prod(counts[d + 1 :]) for d in range(len(rules))]
    windows = [
        on_device(like, (rule, "covering"), lambda p=p: p.T, INT32) for rule, (p, _) in zip(rules, made, strict=True)
    ]
    numbers = [
        on_device(like, (rule, "number", f), lambda n=n, f=f: n.T * f, INT32)
        for rule, (_, n), f in zip(rules, made, factors, strict=True)
    ]
    return [*windows, *numbers], tuple([p.shape[1] for p, _ in made])


# ---- means


def _infer_means(input: Spec, rules: Any, count: int) -> tuple[Spec, tuple[Any, ...]]:
    shape = _pooled(input.shape, rules)
    return Spec(shape, input.dtype, strides=_in_order(shape, input)), ("input", "rules", "count")


@attach("window_means", CudaArray, when=_fits, infer=_infer_means)
def window_means(input: CudaArray, rules: Any, count: int) -> Any:
    """The kernel of average pooling."""
    return _means(input, _pooled(input.shape, rules), input, rules, count, False), (input, rules, count)


@window_means.backward(reads=(), laid=_gradient_laid)
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    input, rules, count = kept
    g = g if min(g.strides) >= 0 else MEMORY.copy(g)
    return (_means(g, input.shape, input, rules, count, True),)


def _means(x: CudaArray, shape: tuple[int, ...], like: CudaArray, rules: Any, count: int, back: bool) -> CudaArray:
    dims, out = _last(shape, rules), empty(x.on, shape, x.dtype, _in_order(shape, like))
    tables, counts, weighted = _sum_tables(x, rules, back)
    if math.prod(counts) <= AT_ONCE or len(rules) == 1:
        started("sum", [x], [out], dims, tables, counts, weighted, count)
        return out
    for dim, rule in zip(reversed(dims[1:]), reversed(rules[1:]), strict=True):
        between = (*x.shape[:dim], shape[dim], *x.shape[dim + 1 :])
        partial = empty(x.on, between, np.dtype(_wide(x)), _in_order(between, like))
        tables, counts, weighted = _sum_tables(x, [rule], back)
        started("sum", [x], [partial], [dim], tables, counts, weighted)
        x = partial
    tables, counts, weighted = _sum_tables(x, rules[:1], back)
    started("sum", [x], [out], dims[:1], tables, counts, weighted, count)
    return out


KERNELS = {"mix": mix, "max_places": max_places}
