"""Sums and largest elements of windows, and the gradients of these, by one launch each: what a result is made of is gathered,
also by gradients, so nothing is sorted, and sums are in one order. The rules are those of `genesis.ops.spatial.tables`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec, memory_order, strides_of
from genesis.core.call.halves import F32, F64, HALVES
from genesis.core.call.kernels import attach
from genesis.cuda.arrays import MEMORY, CudaArray, empty
from genesis.cuda.kernels.moves import forward
from genesis.cuda.kernels.pooling_code import wide_of
from genesis.cuda.kernels.pooling_tiles import INT32, Tables, started, taps_of
from genesis.cuda.kernels.signatures import KNOWN
from genesis.cuda.kernels.wanted import kernels_wanted
from genesis.ops.spatial.tables import Rule, covering, sizes_of, table, taps, transposed

MOST = 1024  # elements of a window that a lane goes through
AT_ONCE = 64  # elements of all dimensions that are summed by one launch; more, a dimension after the other
INT64, UINT8 = np.dtype(np.int64), np.dtype(np.uint8)

# ---- sums


def _sum_tables(rules: tuple[Rule, ...], back: bool) -> Tables:
    made = [_taps(rule, back) for rule in rules]
    weighted = any([weights is not None for _, weights in made])
    weights = [(np.ones(p.shape) if w is None else w).T for p, w in made] if weighted else []
    return Tables([p.T for p, _ in made], weights, weighted, all([p.min() >= 0 for p, _ in made]))


@functools.lru_cache(512)
def _taps(rule: Rule, back: bool) -> Any:
    """Positions and weights; back, what a window takes of one element twice, as at a border, is taken once, and what it takes
    nothing of not at all.
    """
    positions, weights = table(rule)
    if not back or weights is None or positions.shape[1] != 2:
        return taps(rule, back)
    twice = positions[:, 0] == positions[:, 1]
    weights = np.where(twice[:, None], weights.sum(1, keepdims=True) * [1, 0], weights)
    return transposed(np.where(weights == 0, -1, positions), weights, rule[1])


def mix(input: CudaArray, dim: int, rule: Any, back: bool = False) -> Any:
    _, weights = taps(rule, back)
    shape = (*input.shape[:dim], sizes_of(rule, back)[1], *input.shape[dim + 1 :])
    if not input.size or 0 in shape:
        return MEMORY.zeros(shape, input.dtype, input.device)
    integers = wide_of(input.dtype) == "int64"
    if input.dtype.kind == "c" or min(input.strides) < 0 or (weights is not None and integers):
        return NotImplemented
    out = MEMORY.empty(shape, input.dtype, input.device)
    _sum(input, out, (dim % input.ndim,), (rule,), back)
    return out


def _sum(
    x: CudaArray, out: CudaArray, dims: tuple[int, ...], rules: tuple[Rule, ...], back: bool, count: int = 1
) -> None:
    by = taps_of(x, (rules, back), lambda: _sum_tables(rules, back))
    started("sum", (x,), (out,), dims, by, count)


# ---- the largest


NOTHING = -1 << 16  # the number of an element in windows that do not have it


def _window_tables(rules: tuple[Rule, ...], numbered: bool) -> Tables:
    """The elements of windows along each dimension, and the part of each dimension in their numbers. For one that there is
    not the nearest is named, again.
    """
    made, factors = [_elements(rule) for rule in rules], _factors(rules)
    told = [n.T * f for (_, n), f in zip(made, factors, strict=True)] if numbered else []
    return Tables([p.T for p, _ in made], told)


def _elements(rule: Rule) -> tuple[Any, Any]:
    positions, _ = table(rule)
    known = positions >= 0
    first, last = np.argmax(known, 1), positions.shape[1] - 1 - np.argmax(known[:, ::-1], 1)
    numbers = np.clip(np.arange(positions.shape[1]), first[:, None], last[:, None])
    return np.take_along_axis(positions, numbers, 1), numbers


def _factors(rules: tuple[Rule, ...]) -> list[int]:
    counts = _counts(rules)
    return [math.prod(counts[d + 1 :]) for d in range(len(counts))]


def _covering_tables(rules: tuple[Rule, ...]) -> Tables:
    """The windows that elements are in, and the part that each dimension has in their number there."""
    made, factors = [covering(rule) for rule in rules], _factors(rules)
    positions = [np.where(p < 0, np.maximum(p[:, :1], 0), p).T for p, _ in made]
    return Tables(positions, [np.where(p < 0, NOTHING, n * f).T for (p, n), f in zip(made, factors, strict=True)])


def max_places(input: CudaArray, rules: Any) -> Any:
    shape = _pooled(input.shape, rules)
    if 0 in shape:
        return MEMORY.empty(shape, INT64, input.device)
    if not input.size or min(input.strides) < 0:
        return NotImplemented
    out = MEMORY.empty(shape, INT64, input.device)
    by = taps_of(input, (rules, "positions"), lambda: _window_tables(rules, False))
    started("positions", (input,), (out,), _last(shape, rules), by)
    return out


@functools.lru_cache(KNOWN)
def _pooled(shape: tuple[int, ...], rules: tuple[Rule, ...]) -> tuple[int, ...]:
    return (*shape[: -len(rules)], *[sizes_of(rule)[1] for rule in rules])


def _last(shape: tuple[int, ...], rules: tuple[Rule, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape) - len(rules), len(shape)))


@functools.lru_cache(512)
def _counts(rules: tuple[Rule, ...]) -> tuple[int, ...]:
    """How many elements windows have along each dimension."""
    return tuple([table(rule)[0].shape[1] for rule in rules])


def _in_order(shape: tuple[int, ...], like: Any) -> tuple[int, ...]:
    """The strides of an array without gaps whose dimensions are in the order of another's."""
    return _ordered(shape, tuple(strides_of(like)))


@functools.lru_cache(KNOWN)
def _ordered(shape: tuple[int, ...], like: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [0] * len(shape), 1
    for d in reversed(memory_order(like)):
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
    by = taps_of(input, (rules, "largest"), lambda: _window_tables(rules, True))
    started("largest", (input,), (out, which), _last(shape, rules), by)
    return out, (input, which, rules)


def _gradient_laid(kept: Any) -> list[Any]:
    return [_in_order(kept[0].shape, kept[0])]


@largest.backward(reads=(), laid=_gradient_laid)
def _(g: CudaArray, kept: Any, needs: Any) -> Any:
    input, which, rules = kept
    g = forward(g)
    out = empty(input.on, input.shape, g.dtype, _in_order(input.shape, input))
    by = taps_of(g, (rules, "covering"), lambda: _covering_tables(rules))
    started("back", (g, which), (out,), _last(input.shape, rules), by)
    return (out,)


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
    g = forward(g)
    return (_means(g, input.shape, input, rules, count, True),)


def _means(x: CudaArray, shape: tuple[int, ...], like: CudaArray, rules: Any, count: int, back: bool) -> CudaArray:
    dims, out = _last(shape, rules), empty(x.on, shape, x.dtype, _in_order(shape, like))
    if math.prod([_taps(rule, back)[0].shape[1] for rule in rules]) <= AT_ONCE:
        _sum(x, out, dims, rules, back, count)
        return out
    for dim, rule in zip(reversed(dims[1:]), reversed(rules[1:]), strict=True):
        between = (*x.shape[:dim], shape[dim], *x.shape[dim + 1 :])
        partial = empty(x.on, between, np.dtype(wide_of(x.dtype)), _in_order(between, like))
        _sum(x, partial, (dim,), (rule,), back)
        x = partial
    _sum(x, out, dims[:1], rules[:1], back, count)
    return out


KERNELS = {"mix": mix, "max_places": max_places}
