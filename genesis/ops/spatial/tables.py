"""Which elements of a dimension go into which element of a result, and by how much.

Interpolation, average pooling, padding by reflection: all of them are sums along one dimension, $y_i = \\sum_j a_{ij}
x_j$ with few $a_{ij}$ that are not zero. A *rule* says which, as a tuple of a name and numbers; `steps` makes of it what
is to be done.

==============================================  =====================================================================
rule                                            $y_i$
==============================================  =====================================================================
``("windows", n, m, size, stride, p, d)``       sum of the i-th of m windows, with padding p and dilation d
``("cells", n, m)``                             mean of the i-th of m nearly equal parts that cover n elements
``("spans", n, m)``                             the same parts, to take a maximum of
``("reflect", n, before, after)``               continued as in a mirror at the last element; "replicate", "circular"
``("nearest", n, m, scale)``                    the element at the place of i, rounded down; "nearest-exact": to the nearest
``("linear", n, m, corners, scale, smooth)``    between two neighbours, or with ``smooth`` a mean over all that i covers
``("cubic", n, m, corners, scale, smooth)``     the same of four neighbours (Keys 1981)
==============================================  =====================================================================
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Rule = tuple[Any, ...]
Table = tuple[Any, Any]  # places (m, taps), -1 where there is none, and their weights or None


def sizes_of(rule: Rule, back: bool = False) -> tuple[int, int]:
    """From how many elements to how many."""
    n, m = rule[1], rule[1] + rule[2] + rule[3] if rule[0] in _BORDERS else rule[2]
    return (m, n) if back else (n, m)


@functools.lru_cache(maxsize=512)
def table(rule: Rule) -> Table:
    """The places and weights of a rule."""
    positions, weights = _RULES[rule[0]](rule[0], *rule[1:])
    return np.asarray(positions, np.int64), weights


def taps(rule: Rule, back: bool = False) -> Table:
    """The places and weights of a rule, or with ``back`` of the transpose."""
    positions, weights = table(rule)
    return transposed(positions, weights, rule[1]) if back else (positions, weights)


@functools.lru_cache(maxsize=512)
def covering(rule: Rule) -> Table:
    """The windows that each element is in, and which of their elements it is."""
    positions, _ = table(rule)
    return transposed(positions, np.broadcast_to(np.arange(positions.shape[1]), positions.shape), rule[1])


@functools.lru_cache(maxsize=512)
def steps(rule: Rule, back: bool = False) -> tuple[tuple[Any, Any, Any], ...]:
    """What to add to what: ``y[to] += weight * x[source]``, with slices where these will do; ``weight`` None is 1.

    With ``back`` it is the transpose. A step names no element of y twice; the first names all that have any.
    """
    positions, weights = taps(rule, back)
    result = []
    for t in range(positions.shape[1]):
        to = np.flatnonzero(positions[:, t] >= 0)
        if len(to):
            weight = None if weights is None else weights[to, t]
            result.append(
                (_slice(to), _slice(positions[to, t]), None if weight is None or (weight == 1).all() else weight)
            )
    return tuple(result)


def _slice(positions: Any) -> Any:
    """Places with equal steps as a slice."""
    if len(positions) == 1:
        return slice(int(positions[0]), int(positions[0]) + 1)
    step = int(positions[1] - positions[0])
    if step > 0 and (np.diff(positions) == step).all():
        return slice(int(positions[0]), int(positions[-1]) + 1, step)
    return positions


def transposed(positions: Any, weights: Any, n: int) -> Table:
    """The same the other way: for each of n elements what it goes into, and by how much."""
    rows, taps = np.nonzero(positions >= 0)
    columns = positions[rows, taps]
    order = np.argsort(columns, kind="stable")
    rows, taps, columns = rows[order], taps[order], columns[order]
    many = np.bincount(columns, minlength=n)
    rank = np.arange(len(columns)) - np.repeat(np.cumsum(many) - many, many)
    out = np.full((n, max(many.max(initial=0), 1)), -1, np.int64)
    out[columns, rank] = rows
    if weights is None:
        return out, None
    factors = np.zeros(out.shape)
    factors[columns, rank] = weights[rows, taps]
    return out, factors


# ---- rules


def _windows(name: str, n: int, m: int, size: int, stride: int, padding: int, dilation: int) -> Table:
    positions = np.arange(m)[:, None] * stride - padding + np.arange(size) * dilation
    return np.where((positions >= 0) & (positions < n), positions, -1), None


def _spans(name: str, n: int, m: int) -> Table:
    start, stop = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
    positions = start[:, None] + np.arange(max((stop - start).max(initial=0), 1))
    return np.where(positions < stop[:, None], positions, -1), None


def _cells(name: str, n: int, m: int) -> Table:
    positions, _ = _spans(name, n, m)
    return positions, np.broadcast_to(1 / np.maximum((positions >= 0).sum(1, keepdims=True), 1), positions.shape)


def _border(name: str, n: int, before: int, after: int) -> Table:
    i = np.arange(-before, n + after)
    if name == "reflect":
        i = np.abs(i)
        i = np.where(i >= n, 2 * (n - 1) - i, i)
    return (np.clip(i, 0, n - 1) if name == "replicate" else i % max(n, 1))[:, None], None


_BORDERS = ("reflect", "replicate", "circular")


@functools.lru_cache(maxsize=256)
def border(rule: Rule) -> tuple[tuple[int, int], ...] | None:
    """Of a rule of borders, which element each one of the border is; None for other rules."""
    if rule[0] not in _BORDERS:
        return None
    name, n, before, after = rule
    source = _border(name, n, before, after)[0][:, 0].tolist()
    return tuple([(j, source[j]) for j in (*range(before), *range(before + n, before + n + after))])


@functools.lru_cache(maxsize=256)
def border_in_pieces(rule: Rule) -> tuple[tuple[slice, slice], ...]:
    """The same as what is copied at once: where to, and of which elements, forwards, backwards or one for all."""
    *_, before, after = rule
    copied, pieces = border(rule) or (), []
    for first, count in ((0, before), (before, after)):
        if count:
            to, start = copied[first]
            step = copied[first + 1][1] - start if count > 1 else 1
            stop = start + count * step if step else start + 1
            pieces.append((slice(to, to + count), slice(start, stop if stop >= 0 else None, step or 1)))
    return tuple(pieces)


def _nearest(name: str, n: int, m: int, scale: float | None) -> Table:
    step = np.float32(n / m if scale is None else 1 / scale)  # as exact as PyTorch's, so that ties fall alike
    at = np.arange(m, dtype=np.float32)
    at = np.floor((at + np.float32(0.5)) * step) if name == "nearest-exact" else np.floor(at * step)
    return np.minimum(at.astype(np.int64), n - 1)[:, None], None


def _step(n: int, m: int, corners: bool, scale: float | None) -> float:
    if corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return n / m if scale is None else 1 / scale


def _middle(m: int, corners: bool, step: float) -> Any:
    """Where the middles of results are among the inputs."""
    return np.arange(m) * step if corners else (np.arange(m) + 0.5) * step - 0.5


def _linear(name: str, n: int, m: int, corners: bool, scale: float | None, smooth: bool) -> Table:
    step = _step(n, m, corners, scale)
    if smooth:
        return _smoothed(n, m, step, 1, lambda x: np.maximum(1 - np.abs(x), 0))
    if n == m:
        return np.arange(n)[:, None], None
    at = np.maximum(_middle(m, corners, step), 0)
    low = np.minimum(np.floor(at).astype(np.int64), n - 1)
    share = np.minimum(np.maximum(at - low, 0), 1)
    return np.stack([low, np.minimum(low + 1, n - 1)], 1), np.stack([1 - share, share], 1)


def cubic(x: Any, a: float) -> Any:
    """Keys' kernel: a cubic spline through its points whose slope there is set by ``a``."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _cubic(name: str, n: int, m: int, corners: bool, scale: float | None, smooth: bool) -> Table:
    step = _step(n, m, corners, scale)
    if smooth:
        return _smoothed(n, m, step, 2, lambda x: cubic(x, -0.5))
    at = _middle(m, corners, step)
    low = np.floor(at).astype(np.int64)
    offsets = np.arange(-1, 3)
    weights = cubic((at - low)[:, None] - offsets, -0.75)
    return np.clip(low[:, None] + offsets, 0, n - 1), weights


def _smoothed(n: int, m: int, step: float, reach: int, kernel: Callable[[Any], Any]) -> Table:
    """Means weighted by a kernel that is as wide as what a result covers, so that nothing is skipped."""
    if n == m:
        return np.arange(n)[:, None], None
    wide = max(step, 1.0)
    middle = (np.arange(m) + 0.5) * step
    start = np.maximum((middle - reach * wide + 0.5).astype(np.int64), 0)
    stop = np.minimum((middle + reach * wide + 0.5).astype(np.int64), n)
    positions = start[:, None] + np.arange(max(int((stop - start).max(initial=1)), 1))
    weights = np.where(positions < stop[:, None], kernel((positions - middle[:, None] + 0.5) / wide), 0.0)
    total = weights.sum(1, keepdims=True)
    return np.where(positions < stop[:, None], positions, -1), weights / np.where(total == 0, 1.0, total)


_RULES: dict[str, Callable[..., Table]] = {
    "windows": _windows,
    "spans": _spans,
    "cells": _cells,
    **dict.fromkeys(_BORDERS, _border),
    "nearest": _nearest,
    "nearest-exact": _nearest,
    "linear": _linear,
    "cubic": _cubic,
}


def windows_along(n: int, size: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows a pooling has along a dimension; the last begins inside of the input or the padding before it."""
    left = n + 2 * padding - dilation * (size - 1) - 1
    count = (math.ceil(left / stride) if ceil_mode else left // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= n + padding else count
