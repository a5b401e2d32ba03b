"""Drawing random arrays, inside and outside of transforms.

A draw is a name in `DRAWS`, a shape, a dtype and numbers: nothing else, so that it can be a call in a traced graph, of
an op of kind
``random`` (`random_op`), whose first argument is the stream. Inside `vmap` the stream gives other numbers for each
sample, the same ones
for all, or refuses, as its ``randomness`` says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from genesis.arrays.batched import Batched
from genesis.arrays.spec import Spec
from genesis.base.errors import GraphError, message
from genesis.base.memory import too_large
from genesis.core.call.kinds.others import RANDOM
from genesis.core.call.op import REGISTRY, Op
from genesis.core.graph.generator import Generator
from genesis.core.graph.levels import levels
from genesis.core.graph.modes import LEVELS

# name -> (stream, shape, dtype, *options) -> NumPy array
DRAWS: dict[str, Callable[..., Any]] = {
    "uniform": lambda stream, shape, dtype: stream.uniform(shape, dtype).astype(dtype, copy=False),
    "normal": lambda stream, shape, dtype: stream.normal(shape, dtype).astype(dtype, copy=False),
    "integers": lambda stream, shape, dtype, low, high: stream.integers(low, high, shape).astype(dtype),
    "permutation": lambda stream, shape, dtype: np.argsort(
        stream.words(int(np.prod(shape))).reshape(shape), -1, kind="stable"
    ).astype(dtype),
}
# where draws are recorded instead of made: recorder(stream, name, shape, dtype, options) -> array
recorder: ContextVar[Callable[..., Any] | None] = ContextVar("genesis_draw_recorder", default=None)


@cache
def random_op(name: str) -> Op:
    """A draw as an op: ``random.uniform(stream, shape, dtype, *options)``."""

    def meaning(stream: Generator, shape: tuple[int, ...], dtype: Any, *options: Any) -> Any:
        return DRAWS[name](stream, shape, dtype, *options)

    def infer(stream: Any, shape: tuple[int, ...], dtype: Any, *options: Any) -> Spec:
        return Spec(tuple(shape), dtype)

    op = Op(f"random.{name}", RANDOM, inspect.signature(meaning), meaning, infer=infer)
    op.kernel = meaning
    return op


def op_named(name: str) -> Op | None:
    """The op of a call in a graph: one of the registry, or ``random.`` and the name of a draw; None if there is none."""
    room, _, draw = name.partition(".")
    return random_op(draw) if room == "random" and draw in DRAWS else REGISTRY.get(name)


def drawn(stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, *options: Any) -> Any:
    """An array of random numbers."""
    shape = tuple(shape)
    try:
        return _drawn(stream, name, shape, dtype, options)
    except MemoryError:
        raise too_large(name, shape, dtype, Spec(shape, dtype)) from None


def _drawn(stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, options: tuple[Any, ...]) -> Any:
    if not LEVELS and recorder.get() is None:
        return DRAWS[name](stream, shape, dtype, *options)
    batches = [level for level in levels() if level.size]
    for level in batches:
        if level.randomness == "error":
            raise GraphError(
                message(
                    name,
                    f"random numbers are drawn inside {level.name}",
                    hint='say what is meant: vmap(..., randomness="different") for other numbers in each sample, '
                    '"same" for the same ones',
                )
            )
    others = [level for level in batches if level.randomness == "different"]
    record = recorder.get()
    whole = (*[level.size for level in others], *shape)
    array = (
        DRAWS[name](stream, whole, dtype, *options) if record is None else record(stream, name, whole, dtype, options)
    )
    for level in others:
        array = Batched(array, True, level.size, level.number)
    return array
