"""Sums and maxima along the last dimensions of float32 arrays, by rules (`genesis.ops.spatial.tables`), as compiled loops.

Pooling, interpolation and borders of images are one call, of any size: of a small one NumPy's slices take ten times as
long as the work.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from genesis.base.threads import get_num_threads
from genesis.core.call.halves import F32
from genesis.kernels.cpu import memory
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.cpu.nests import Nest
from genesis.kernels.llvm import loops
from genesis.kernels.llvm import sums as code
from genesis.kernels.native import runtime
from genesis.ops.spatial import tables
from genesis.ops.spatial.tables import Rule, sizes_of

Rules, Sizes = tuple[Rule, ...], tuple[int, ...]


class _Table(NamedTuple):
    """A rule as loops take it."""

    n: int
    m: int
    positions: Any  # (taps, m)
    weights: Any


_NOTHING = _Table(0, 0, np.zeros((0, 0), np.int32), np.zeros((0, 0), F32))


class _Pass(NamedTuple):
    """What is done to images in one call."""

    run: Nest
    plan: Any  # a `PLAN` of the loops
    before: int  # elements of an image,
    after: int  # of the result,
    between: int  # and of what is between columns and rows
    shape: tuple[int, ...]  # of the result
    kept: Any  # what has to stay in memory


def take(x: Any, rules: Rules) -> bool:
    """Whether there are loops for such an array."""
    return x.dtype is F32 and x.size > 0 and loops.available() and _give_something(rules)


@functools.lru_cache(maxsize=256)
def _give_something(rules: Rules) -> bool:
    return all([min(sizes_of(rule)) > 0 for rule in rules])


def by_rules(x: Any, rules: Rules, back: bool = False, count: int = 1) -> Any:
    """Sums along the last dimensions, which have a rule each, divided by ``count``; with ``back`` the transpose."""
    return _passed(x, len(rules), _passes(rules, back, count, True, loops.width() // 4))


def along(x: Any, dim: int, rule: Rule, back: bool = False) -> Any:
    """Sums along a dimension by its rule."""
    behind = x.shape[dim + 1 :]
    return _passed(x, 1 + len(behind), _passes((rule,), back, 1, True, loops.width() // 4, behind))


def largest(x: Any, rules: Rules) -> Any:
    """The largest of what rules name along the last dimensions; nan if one is."""
    return _passed(x, len(rules), _passes(rules, False, 1, False, loops.width() // 4))


def _passed(x: Any, dims: int, passes: tuple[_Pass, ...]) -> Any:
    x, lead = memory.contiguous(x), x.shape[: x.ndim - dims]
    for run, plan, before, after, size, shape, _ in passes:
        many = x.size // before
        few = many * (before + after) < LARGE["elements"]
        out = (np if few else memory).empty((*lead, *shape), F32)
        slices = 1 if few or many * (before + after) < LARGE["for threads"] else min(many, 4 * get_num_threads())
        between = np.empty(slices * size, F32) if size else out
        given = x, between, out, plan
        if slices == 1:
            run.alone(*given, 0, many)
        else:
            addresses = [memory.address(a) for a in given]
            runtime.in_slices(run.of_addresses, addresses, many, (), slices, {1: 4 * size})
        x = out
    return x


@functools.lru_cache(maxsize=256)
def _passes(rules: Rules, back: bool, count: int, sums: bool, lanes: int, behind: Sizes = ()) -> tuple[_Pass, ...]:
    """The last two dimensions at once, and then each one before them; or one that has others ``behind`` it."""
    made = [_table(rule, back) for rule in rules]
    if behind:
        return (_pass(made[0], None, math.prod(behind), (made[0].m, *behind), count, sums, lanes),)
    shape = [table.n for table in made]
    passes: list[_Pass] = []
    for first in range(max(len(made) - 2, 0), -1, -1):
        last = first == max(len(made) - 2, 0)
        shape[first:] = [table.m for table in made[first:]]
        two = (None, *made)[-2:] if last else (made[first], None)
        inner = math.prod(shape[first + 1 :])
        passes.append(_pass(*two, inner, tuple(shape), count if not first else 1, sums, lanes))
    return tuple(passes)


def _pass(
    rows: _Table | None, columns: _Table | None, inner: int, shape: Sizes, count: int, sums: bool, lanes: int
) -> _Pass:
    """Columns, rows, or both of images; rows alone have so many columns."""
    high, rows_after = (rows.n, rows.m) if rows else (1, 1)
    wide, columns_after = (columns.n, columns.m) if columns else (inner, inner)
    row, column = (table or _NOTHING for table in (rows, columns))
    lanes = min(lanes, 1 << (columns_after.bit_length() - 1))
    kept = row, column, _counts(row.positions), _beside(column.positions, lanes)
    tables = row.positions, column.positions, row.weights, column.weights, *kept[2:]
    sizes = high, wide, rows_after, columns_after, -(-columns_after // lanes)
    plan = np.array([*sizes, count, *[memory.address(a) for a in tables]], np.int64)
    run = _loop(lanes, rows is not None, columns is not None, sums, count != 1)
    between = high * columns_after if rows and columns else 0
    return _Pass(run, plan, high * wide, rows_after * columns_after, between, shape, kept)


def _counts(positions: Any) -> Any:
    """How many taps elements have, at least one."""
    order = np.arange(1, len(positions) + 1)[:, None]
    return np.max(np.where(positions >= 0, order, 1), 0, initial=0).astype(np.int32)


def _beside(positions: Any, lanes: int) -> Any:
    """For each block of columns how many of its first taps name elements beside each other, and how many taps it has."""
    counts = []
    for start in range(0, positions.shape[1], lanes):
        block = positions[:, min(start, positions.shape[1] - lanes) :][:, :lanes]
        apart = ~((block >= 0).all(1) & (np.diff(block) == 1).all(1))
        counts.append((np.argmax([*apart, True]), _counts(block).max()))
    return np.array(counts, np.int32)


@functools.cache
def _loop(lanes: int, rows: bool, columns: bool, sums: bool, divided: bool) -> Nest:
    text = code.images(lanes, rows, columns, sums, divided)
    return Nest("images", text, len(code.POINTERS), len(code.SIZES))


@functools.lru_cache(maxsize=512)
def _table(rule: Rule, back: bool) -> _Table:
    positions, weights = tables.taps(rule, back)
    there = positions >= 0
    weights = np.where(there, 1.0 if weights is None else weights, 1.0).astype(F32)
    weights[~there.any(1), 0] = -1  # times the -0 that a sum begins with
    n, m = sizes_of(rule, back)
    return _Table(n, m, np.ascontiguousarray(positions.T, np.int32), np.ascontiguousarray(weights.T))
