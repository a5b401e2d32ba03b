"""Draws: arrays of random numbers, from a stream that is the op's first argument.

So a draw is a call like any other, of an op with a name: it is recorded in traces, where the stream stands for a position
in the numbers of one of the program's streams, and it can be intercepted and replaced. Inside `vmap` the stream gives
other numbers for each sample, the same ones for all, or refuses, as its ``randomness`` says: a draw has no operands
that could differ, so this is decided where it is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from genesis.arrays.spec import Spec
from genesis.base.device import CPU, MEMORIES
from genesis.base.errors import GraphError, message
from genesis.base.memory import too_large
from genesis.core.call import dispatch
from genesis.core.call.generated import LateSignature
from genesis.core.call.kind import Kind
from genesis.core.call.kinds.declare import finish
from genesis.core.call.op import REGISTRY, Op, Samples, case, prepare_record, public_function
from genesis.core.graph.boundary import add_batch
from genesis.core.graph.generator import Generator
from genesis.core.graph.levels import Level, levels
from genesis.core.graph.switches import ACTIVE, LEVELS
from genesis.core.graph.tensor import Tensor, wrap


class Random(Kind):
    """Draws from a stream."""

    draws = True
    repeatable = False


RANDOM = Random("random")


def random(name: str, samples: Samples | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the op ``random.name``; the decorated function is its NumPy meaning.

    Its parameters begin with ``stream, shape, dtype``: a `Generator`, and what the result is to be; what the meaning
    gives is converted to the dtype. ``samples`` leave the stream out.
    """

    def declare(meaning: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(meaning)
        def kernel(stream: Generator, shape: tuple[int, ...], dtype: Any, *options: Any) -> Any:
            out = meaning(stream, shape, dtype, *options)
            made = out.__class__ is np.ndarray and out.dtype is dtype
            return out if made else np.asarray(out).astype(dtype, copy=False)

        op = Op(
            f"random.{name}", RANDOM, LateSignature(lambda: meaning), kernel, infer=_infer, samples=samples or _some
        )
        op.dtypes, op.torch_name = "", ""
        op.kernel, op.run = kernel, run
        prepare_record(op)
        op.call = public_function(op, "    return run(_op, ARGS)\n", {"run": run})
        return finish(op, method=False)

    return declare


def _some(t: Any) -> list[Any]:
    return [case((2, 3), np.dtype(np.float32)), case((), np.dtype(np.float64)), case((0, 2), np.dtype(np.float16))]


def _infer(stream: Any, shape: tuple[int, ...], dtype: Any, *options: Any) -> Spec:
    return Spec(tuple(shape), dtype)


def run(op: Op, args: tuple[Any, ...]) -> Tensor:
    """Call a draw: of the numbers of all samples at once, inside of `vmap`."""
    stream, shape, *options = args
    try:
        if not ACTIVE and not LEVELS:
            return wrap(op.kernel(stream, tuple(shape), *options))
        for level in levels():
            if level.draw is not None:
                return level.draw(op, stream, tuple(shape), options)  # type: ignore[no-any-return]
        batches = _batches(op)
        array = dispatch.run(op, (stream, (*[level.size for level in batches], *shape), *options))._array
    except MemoryError:
        raise too_large(op.name, tuple(shape), options[0], Spec(tuple(shape), options[0])) from None
    for level in batches:
        array = add_batch(array, 0, level.number, level.size)
    return wrap(array)


def _batches(op: Op) -> list[Level]:
    """The open levels whose samples get numbers of their own, the outermost first."""
    batches = [level for level in levels() if level.size]
    for level in batches:
        if level.randomness == "error":
            raise GraphError(
                message(
                    op.name,
                    f"random numbers are drawn inside {level.name}",
                    hint='say what is meant: vmap(..., randomness="different") for other numbers in each sample, '
                    '"same" for the same ones',
                )
            )
    return [level for level in batches if level.randomness == "different"]


def drawn(stream: Generator, name: str, shape: tuple[int, ...], dtype: Any, *options: Any, device: Any = CPU) -> Any:
    """The array of a draw, by its name: the same numbers on every device."""
    op = REGISTRY["random." + name]
    if not ACTIVE and not LEVELS and device is CPU:  # 1 us less than `run`
        try:
            return op.kernel(stream, tuple(shape), dtype, *options)
        except MemoryError:
            raise too_large(op.name, tuple(shape), dtype, Spec(tuple(shape), dtype)) from None
    if not ACTIVE and not LEVELS:
        there = MEMORIES[device.type].drawn(stream, name, tuple(shape), dtype, device, *options)
        if there is not None:
            return there
    out = run(op, (stream, tuple(shape), dtype, *options))
    return out._array if device == CPU else REGISTRY["transfer"].call(out, device, CPU)._array
