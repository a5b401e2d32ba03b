"""Loops run by Python over NumPy arrays: what machine code is compared with, and where a kernel can be debugged.

An axis of vectors is taken whole, as an array of counts; the others are loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from genesis.core.call.op import REGISTRY
from genesis.core.call.scalar_lowering import PRIMITIVES, evaluate
from genesis.core.call.scalars import Expression
from genesis.core.graph.generator import Generator
from genesis.jit.lowering.loops import (
    CALLED,
    CHUNK,
    Affine,
    Axis,
    Count,
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
    stores: list[tuple[Store, Any, Any]] = []
    known: dict[Any, Any] = {}
    for each in body:
        if isinstance(each, For):
            _loop(each, operands, counts, totals)
            known = {}
        else:
            index = 0 if each.index is None else _value(each.index, operands, counts, totals, known) * each.step
            stores.append((each, index, _value(each.value, operands, counts, totals, known)))
    for store, index, value in stores:
        target, where = operands[store.operand], _where(store.at, counts) + index
        if store.adds:
            np.add.at(target, where, value)
        else:
            target[where] = value


def _loop(loop: For, operands: list[Array], counts: dict[Axis, Any], totals: dict[Any, Any]) -> None:
    collected: list[list[Any]] = [[] for _ in loop.totals]
    for now in _rounds(loop, counts):
        _block(loop.body, operands, now, totals)
        for total, seen in zip(loop.totals, collected, strict=True):
            inside = now if loop.beside is None else {**now, loop.beside: np.arange(loop.beside.extent)}
            value = np.asarray(_value(total.value, operands, inside, totals, {}))
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
            more = 0
            if value.index is not None:
                more = _value(value.index, operands, counts, totals, known) * value.step
            known[value] = operands[value.operand][_where(value.at, counts) + more].astype(value.dtype)
        elif isinstance(value, Count):
            known[value] = np.asarray(_where(value.at, counts), value.dtype)
        else:
            given = [_value(a, operands, counts, totals, known) for a in arguments(value)]
            known[value] = _computed(value, given)
    return known[value]


def _computed(value: Expression, given: list[Any]) -> Any:
    if value.name == "uniform":
        return uniform(*given, value.args[-1])
    if value.name in PRIMITIVES:
        kinds = [a.dtype for a in arguments(value)]
        leaves = tuple([Expression("x", (i,), kind) for i, kind in enumerate(kinds)])
        return evaluate(Expression(value.name, leaves or value.args, value.dtype), *given)
    if value.name in _CURVES:
        with np.errstate(all="ignore"):
            return np.asarray(_CURVES[value.name](*[np.asarray(x, np.float64) for x in given])).astype(value.dtype)
    meaning = REGISTRY[value.name].meaning
    return np.asarray(getattr(meaning, "__wrapped__", meaning)(*[np.asarray(x) for x in given]))


def uniform(key: Any, low: Any, high: Any, count: Any, before: Any, bits: int) -> Any:
    """Numbers in [0, 1) of a stream: of the words ``before + count`` behind the position that has the words ``low`` and
    ``high``.
    """
    words = np.asarray(count) + before
    first, last = (int(f()) // 4 if words.size else 0 for f in (words.min, words.max))
    position = (int(high) % 2**64 << 64) + int(low) % 2**64 + first
    stream = Generator().move_to(int(key) % 2**64, position)
    kind = np.float64 if bits == 53 else np.float32
    drawn = stream.words(4 * (last - first + 1))[words - 4 * first]
    return (drawn >> np.uint64(64 - bits)).astype(kind) * kind(2.0**-bits)


# ---- functions that are no ops, in float64


def _meaning(name: str, x: Any) -> Any:
    meaning = REGISTRY[name].meaning
    return getattr(meaning, "__wrapped__", meaning)(x)


def _gate(x: Any) -> Any:
    return _meaning("sigmoid", x)


def _curve(x: Any) -> Any:
    return 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def _curve_slope(x: Any) -> Any:
    return 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


def _density(x: Any) -> Any:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


_CURVES: dict[str, Callable[..., Any]] = {
    "gelu": lambda x: x * _meaning("normal_cdf", x),
    "gelu_gradient": lambda g, x: g * (_meaning("normal_cdf", x) + x * _density(x)),
    "gelu_tanh": lambda x: x * _gate(_curve(x)),
    "gelu_tanh_gradient": lambda g, x: g * _gate(_curve(x)) * (1 + x * _curve_slope(x) * (1 - _gate(_curve(x)))),
    "silu": lambda x: x * _gate(x),
    "times_sigmoid": lambda x: x * _gate(x),
    "silu_gradient": lambda g, x: g * _gate(x) * (1 + x * (1 - _gate(x))),
    "elu": lambda x, a: np.where(x > 0, x, a * np.expm1(x)),
    "elu_gradient": lambda g, x, a: np.where(x > 0, g, g * a * np.exp(x)),
    "celu": lambda x, a: np.where(x > 0, x, a * np.expm1(x / a)),
    "celu_gradient": lambda g, x, a: np.where(x > 0, g, g * np.exp(x / a)),
    "leaky_relu": lambda x, a: np.where(x > 0, x, a * x),
    "leaky_relu_gradient": lambda g, x, a: np.where(x > 0, g, a * g),
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid_gradient": lambda g, x: np.where(np.abs(x) < 3, g / 6, 0),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardswish_gradient": lambda g, x: g * np.clip(x + 3, 0, 6) / 6 + np.where(np.abs(x) < 3, g * x / 6, 0),
}
