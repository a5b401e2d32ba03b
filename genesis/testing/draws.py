"""Check an op of kind ``random``: its numbers follow from the stream, in eager mode, in batches and in traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis.autograd.func.batches import vmap
from genesis.core.call.op import Case, Op
from genesis.core.graph.generator import Generator
from genesis.core.graph.tensor import Tensor
from genesis.jit.passes import optimized
from genesis.jit.tracer import trace
from genesis.ops.creation.create import zeros


def check_draw(op: Op, sample: Case) -> None:
    """The same seed gives the same numbers; a batch draws for all samples, or once; a replay draws what comes next."""
    stream = Generator()
    call = lambda: op.call(stream, *sample.args)  # noqa: E731
    again = lambda f: f() if stream.manual_seed(3) else None  # noqa: E731
    first = again(call)
    spec = op.infer(stream, *sample.args)  # type: ignore[misc]
    assert (first._array.shape, first._array.dtype) == (spec.shape, spec.dtype), (
        f"{op.name}: {first._spec()}, not {spec}"
    )
    following = [call() for _ in range(2)]
    _same(op, again(call), first, "the same seed")
    _check_samples(op, sample, stream, first)
    graph = again(lambda: trace(call)).verify()
    for one in (graph, optimized(graph).verify()):
        stream.manual_seed(3)
        for expected in (first, *following):
            _same(op, one.replay(), expected, "a replay")


def _check_samples(op: Op, sample: Case, stream: Generator, first: Tensor) -> None:
    """Inside `vmap`: one draw for all samples, a larger draw, or a refusal, as ``randomness`` says."""

    def each(_: Any) -> Any:
        return op.call(stream, *sample.args)

    stream.manual_seed(3)
    _same(
        op, vmap(each, randomness="same")(zeros(2)), first.expand(2, *first.shape), "the same numbers for all samples"
    )
    shape, *options = sample.args
    stream.manual_seed(3)
    larger = op.call(stream, (2, *shape), *options)
    stream.manual_seed(3)
    _same(op, vmap(each, randomness="different")(zeros(2)), larger, "other numbers for each sample")
    try:
        vmap(each)(zeros(2))
    except RuntimeError as error:
        assert "random numbers are drawn inside" in str(error), str(error)
    else:
        raise AssertionError(f"{op.name}: numbers are drawn inside vmap, which does not say for whom")


def _same(op: Op, result: Tensor, expected: Tensor, what: str) -> None:
    a, b = result.numpy(), expected.numpy()
    assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True), f"{op.name}: {what}: {a}, expected {b}"
