"""The largest elements of windows without their places: these are found again where a gradient is wanted. Means of few
windows as products of matrices, and where llvmlite is, all sums by rules as loops (`sums`).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.blas import ALONE_MATRICES, one_thread
from genesis.base.threads import in_parallel
from genesis.core.call.halves import F32, F64
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import memory, sums
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops, windows
from genesis.ops.spatial.tables import sizes_of, steps, table


def _fits(input: Any, rules: Any) -> bool:
    return input.dtype in (F32, F64) and input.size > 0 and _are_slices(rules)


@functools.lru_cache(maxsize=256)
def _are_slices(rules: Any) -> bool:
    indices = [index for rule in rules for to, source, _ in steps(rule) for index in (to, source)]
    return all([isinstance(index, slice) for index in indices])


_FALSE = np.asarray(False)


def _over(x: Any, dim: int, rule: Any) -> Any:
    """The largest along a dimension."""
    before = (slice(None),) * dim
    out: Any = None
    for to, source, _ in steps(rule):
        part = x[(*before, source)]
        if out is None:
            shape = (*x.shape[:dim], sizes_of(rule)[1], *x.shape[dim + 1 :])
            out = memory.empty(shape, x.dtype)
            if part.shape == shape:
                np.copyto(out, part)
                continue
            out.fill(-np.inf)
        there = out[(*before, to)]
        np.maximum(there, part, out=there)
    return out


def _infer(input: Spec, rules: Any) -> Any:
    sizes = [sizes_of(rule)[1] for rule in rules]
    return Spec((*input.shape[: -len(rules)], *sizes), input.dtype), ("input", Spec((), np.dtype(bool)), "rules")


@attach("largest", np.ndarray, when=_fits, infer=_infer)
def largest(input: Any, rules: Any) -> Any:
    """The kernel of max pooling."""
    if _are_pairs(input, rules):
        return _of_pairs("pairs", np.ascontiguousarray(input)), (input, _FALSE, rules)  # its gradient knows of nan
    out = _largest(input, rules)
    return out, (input, _FALSE if _compiles(input, rules) else np.asarray(np.isnan(out).any()), rules)


def _largest(x: Any, rules: Any) -> Any:
    if sums.take(x, rules):
        return sums.largest(x, rules)
    out = x
    for i, rule in enumerate(reversed(rules)):
        out = _over(out, x.ndim - 1 - i, rule)
    return out


@largest.backward(reads=("input",))
def _(g: Any, kept: Any, needs: Any) -> Any:
    x, has_nan, rules = kept
    if _are_pairs(x, rules):
        return (_of_pairs("pairs_gradient", np.ascontiguousarray(x), np.ascontiguousarray(g)),)
    if _compiles(x, rules):
        return (_compiled(np.ascontiguousarray(g), np.ascontiguousarray(x), _positions(rules), len(rules)),)
    out = _largest(x, rules)
    gx = np.zeros(x.shape, x.dtype)
    if has_nan:
        _add_at(gx, g, REGISTRY["max_places"].kernel(x, rules), len(rules))
        return (gx,)
    apart = all([rule[0] == "windows" and rule[4] >= rule[3] and rule[6] == 1 for rule in rules])
    waiting = np.ones(out.shape, bool)  # of equals the first, in the order of the dimensions
    for each in itertools.product(*[steps(rule) for rule in rules]):
        to, source = (..., *[tap[0] for tap in each]), (..., *[tap[1] for tap in each])
        here = x[source] == out[to]
        here &= waiting[to]
        waiting[to] &= ~here
        if apart:
            np.copyto(gx[source], g[to], where=here)
        else:
            gx[source] += np.where(here, g[to], 0)
    return (gx,)


def _add_at(gx: Any, g: Any, positions: Any, dims: int) -> None:
    """Add gradients at places among the last dimensions."""
    flat, positions = gx.reshape(*gx.shape[:-dims], -1), positions.reshape(*positions.shape[:-dims], -1)
    rows = np.arange(positions.size // max(positions.shape[-1], 1)).reshape(*positions.shape[:-1], 1) * flat.shape[-1]
    np.add.at(flat.reshape(-1), (positions + rows).reshape(-1), g.reshape(-1))


# ---- means

FEW = 16  # windows of an image whose sums are one product of matrices
PART = 1 << 22  # multiplications from where threads divide it


def _few(input: Any, rules: Any, count: int) -> bool:
    return input.dtype in (F32, F64) and input.size > 0 and _are_few(rules)


@functools.lru_cache(maxsize=256)
def _are_few(rules: Any) -> bool:
    """Whether an image has few windows: each is a column of a matrix, most of whose numbers are zero. (What only moves elements
    keeps the sign of a zero.)
    """
    windows = math.prod([sizes_of(rule)[1] for rule in rules])
    summed = any([table(rule)[0].shape[1] > 1 for rule in rules])
    return summed and 0 < windows <= FEW and math.prod([rule[1] for rule in rules]) <= 1 << 10


def _infer_means(input: Spec, rules: Any, count: int) -> Any:
    return Spec(_shape_of_sums(input.shape, rules, False), input.dtype), ("input", "rules", "count")


def _shape_of_sums(shape: Any, rules: Any, back: bool) -> Any:
    return (*shape[: len(shape) - len(rules)], *[sizes_of(rule, back)[1] for rule in rules])


@attach("window_means", np.ndarray, when=_few, infer=_infer_means)
def window_means(input: Any, rules: Any, count: int) -> Any:
    """The kernel of average pooling to a few numbers."""
    return _sums(input, rules, count, False), (input, rules, count)


@window_means.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    return (_sums(g, *kept[1:], True),)


def _sums(x: Any, rules: Any, count: int, back: bool) -> Any:
    exact = count > 0 and count & (count - 1) == 0  # then weights that are divided give the same digits
    matrix = _sums_matrix(rules, x.dtype, count if exact else 1)
    matrix = matrix.T if back else matrix
    images = np.ascontiguousarray(x).reshape(-1, len(matrix))
    out = memory.empty(_shape_of_sums(x.shape, rules, back), x.dtype)
    rows = out.reshape(-1, matrix.shape[1])
    many = images.size * rows.shape[1]
    if many <= ALONE_MATRICES:
        np.matmul(images, matrix, out=rows)
    else:
        with one_thread():
            parts = None if many > PART else 1
            in_parallel(lambda some: np.matmul(images[some], matrix, out=rows[some]), len(images), parts)
    flat = out.reshape(-1)
    if not math.isfinite(np.dot(flat, flat)):  # a number that is not finite was multiplied by zeros, or all are large
        out = x
        for i, rule in enumerate(reversed(rules)):
            out = REGISTRY["mix"].kernel(out, out.ndim - 1 - i, rule, back)
        exact = False
    if count != 1 and not exact:
        out /= count
    return out


@functools.lru_cache(maxsize=64)
def _sums_matrix(rules: Any, dtype: Any, count: int) -> Any:
    """The weights of all elements of an image in its windows, divided by ``count``."""
    whole = np.ones((1, 1))
    for rule in rules:
        one = np.zeros((rule[1], sizes_of(rule)[1]))
        positions, weights = table(rule)
        windows, taps = np.nonzero(positions >= 0)
        np.add.at(one, (positions[windows, taps], windows), 1 if weights is None else weights[windows, taps])
        whole = np.kron(whole, one)
    return (whole / count).astype(dtype)


MANY = 1 << 11  # elements from where a product of matrices is faster for few windows


def _compiles_means(input: Any, rules: Any, count: int) -> bool:
    plain = count.__class__ is int and 0 < count < 1 << 31
    return plain and sums.take(input, rules) and (input.size < MANY or not _are_few(rules))


@attach(
    "window_means",
    np.ndarray,
    when=_compiles_means,
    infer=_infer_means,
    quiet=True,
)
def compiled_means(input: Any, rules: Any, count: int) -> Any:
    """The kernel of average pooling, interpolation and borders."""
    return sums.by_rules(input, rules, False, count), (input, rules, count)


@compiled_means.backward(reads=())
def _(g: Any, kept: Any, needs: Any) -> Any:
    return (sums.by_rules(g, kept[1], True, kept[2]),)


@attach("mix", np.ndarray, when=lambda input, dim, rule, back=False: sums.take(input, (rule,)))
def mix(input: Any, dim: int, rule: Any, back: bool = False) -> Any:
    return sums.along(input, dim, rule, back)


# ---- the gradient of the largest, compiled


def _compiles(x: Any, rules: Any) -> bool:
    return x.dtype is F32 and loops.available() and _positions(rules).shape[1] <= windows.MOST


@functools.lru_cache(maxsize=64)
def _positions(rules: Any) -> Any:
    """For each window the places of its elements in an image; one that is outside is the one before it, or the first: so
    the first of equals and the last nan stay those.
    """
    positions = np.zeros((1, 1), np.int64)
    for rule in rules:
        at = table(rule)[0]
        positions = np.where(
            (positions[:, None, :, None] < 0) | (at[:, None] < 0),
            -1,
            positions[:, None, :, None] * rule[1] + at[:, None],
        )
        positions = positions.reshape(positions.shape[0] * positions.shape[1], -1)
    there = positions >= 0
    before = np.maximum.accumulate(np.where(there, np.arange(positions.shape[1]), -1), 1)
    inside = np.maximum(before, np.argmax(there, 1)[:, None])
    return np.ascontiguousarray(np.take_along_axis(positions, inside, 1))


@functools.cache
def _loop(taps: int) -> Nest:
    code = windows.largest_gradient(taps)
    return Nest("largest_gradient", code, len(windows.POINTERS), len(windows.SIZES))


def _compiled(g: Any, x: Any, positions: Any, dims: int) -> Any:
    gx, size = memory.zeros(x.shape, F32), math.prod(x.shape[x.ndim - dims :])
    much = x.size >= LARGE["for threads"]  # else waking threads takes as long
    _loop(positions.shape[1])((x, g, gx, positions), x.size // size, (size, len(positions)), much)
    return gx


def _are_pairs(x: Any, rules: Any) -> bool:
    return x.dtype is F32 and _name_pairs(rules) and loops.available()


@functools.lru_cache(maxsize=256)
def _name_pairs(rules: Any) -> bool:
    """Whether windows are two rows and two columns beside each other, and all are whole."""
    whole = [rule == ("windows", rule[1], rule[1] // 2, 2, 2, 0, 1) and rule[1] % 2 == 0 for rule in rules]
    return len(rules) == 2 and all(whole)


@functools.cache
def _pairs_loop(name: str, columns: int) -> Nest:
    code, pointers = {
        "pairs": (windows.pairs, windows.PAIRS),
        "pairs_gradient": (windows.pairs_gradient, windows.PAIRS_GRADIENT),
    }[name]
    lanes = math.gcd(loops.width() // 4, columns)
    return Nest(name, code(lanes), len(pointers), len(windows.PAIRS_SIZES))


def _of_pairs(name: str, x: Any, *given: Any) -> Any:
    """The largest of windows, or given their gradients that of x."""
    *planes, high, wide = x.shape
    out = memory.empty(x.shape if given else (*planes, high // 2, wide // 2), F32)
    much = x.size >= LARGE["for threads"]
    _pairs_loop(name, wide // 2)((x, *given, out), x.size // wide // 2, (wide // 2,), much)
    return out
