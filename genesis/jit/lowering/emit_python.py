"""Loops run by Python over NumPy arrays: what machine code is compared with, and where a kernel can be debugged.

An axis of vectors is taken whole, as an array of counts; the others are loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.core.call.scalar_lowering import PRIMITIVES, evaluate
from genesis.core.call.scalars import Expression
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    Affine,
    Axis,
    For,
    Load,
    Nest,
    Statement,
    Store,
    Total,
    Value,
    arguments,
    neutral,
)

Array = np.ndarray[Any, Any]


def interpreted(nest: Nest) -> Callable[[list[Array], int], None]:
    """The kernel as a function of flat arrays, an operand each, and the number of the chunk."""
    return lambda operands, chunk: run_some(nest, operands, chunk)


def run_some(nest: Nest, operands: list[Array], chunk: Any) -> None:
    """Run one chunk; of a loop that is told where to begin and to end the range is what stands for the chunk."""
    with np.errstate(all="ignore"):
        _block(nest.body, operands, {CHUNK: chunk}, {})


def _block(body: tuple[Statement, ...], operands: list[Array], counts: dict[Axis, Any], totals: dict[Any, Any]) -> None:
    stores: list[tuple[Store, Any]] = []
    known: dict[Any, Any] = {}
    for each in body:
        if isinstance(each, For):
            _loop(each, operands, counts, totals)
            known = {}
        else:
            stores.append((each, _value(each.value, operands, counts, totals, known)))
    for store, value in stores:
        target = operands[store.operand]
        target[_where(store.at, counts)] = value


def _loop(loop: For, operands: list[Array], counts: dict[Axis, Any], totals: dict[Any, Any]) -> None:
    collected: list[list[Any]] = [[] for _ in loop.totals]
    for now in _rounds(loop, counts):
        _block(loop.body, operands, now, totals)
        for total, seen in zip(loop.totals, collected, strict=True):
            value = np.asarray(_value(total.value, operands, now, totals, {}))
            if loop.vector:  # a lane for each count, also where they are all the same
                value = np.broadcast_to(value, np.shape(now[loop.axes[-1]]))
            seen.append(_joined(total, value) if loop.vector else value)
    for total, seen in zip(loop.totals, collected, strict=True):
        totals[total] = _joined(total, np.stack(seen)) if seen else _joined(total, np.zeros(0, total.dtype))


def _joined(total: Total, values: Array) -> Any:
    ufunc = getattr(np, total.op)
    if not values.shape[0]:
        return np.asarray(neutral(total)).astype(total.dtype)
    return ufunc.reduce(values, axis=0, dtype=total.dtype)


def _rounds(loop: For, counts: dict[Axis, Any]) -> Iterator[dict[Axis, Any]]:
    ranges = [_range(axis, counts[CHUNK]) for axis in loop.axes]
    if loop.vector:
        ranges[-1] = [np.asarray(ranges[-1], np.int64)]
    for now in product(*ranges):
        yield {**counts, **dict(zip(loop.axes, now, strict=True))}


def _range(axis: Axis, chunk: Any) -> Any:
    if axis.extent == CALLED:
        return chunk
    if axis.chunk is None:
        return range(axis.extent)
    return range(chunk * axis.chunk, min((chunk + 1) * axis.chunk, axis.extent))


def _where(at: Affine, counts: dict[Axis, Any]) -> Any:
    return at.constant + sum([counts[axis] * stride for axis, stride in at.steps])


def _value(value: Value, operands: list[Array], counts: dict[Axis, Any], totals: Any, known: dict[Any, Any]) -> Any:
    if value not in known:
        if isinstance(value, Total):
            known[value] = totals[value]
        elif isinstance(value, Load):
            known[value] = operands[value.operand][_where(value.at, counts)].astype(value.dtype)
        else:
            given = [_value(a, operands, counts, totals, known) for a in arguments(value)]
            known[value] = _computed(value, given)
    return known[value]


def _computed(value: Expression, given: list[Any]) -> Any:
    if value.name in PRIMITIVES:
        kinds = [a.dtype for a in arguments(value)]
        leaves = tuple([Expression("x", (i,), kind) for i, kind in enumerate(kinds)])
        return evaluate(Expression(value.name, leaves or value.args, value.dtype), *given)
    meaning = REGISTRY[value.name].meaning
    return np.asarray(getattr(meaning, "__wrapped__", meaning)(*[np.asarray(x) for x in given]))
