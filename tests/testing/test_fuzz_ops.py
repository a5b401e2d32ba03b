"""Ops on inputs of any layout, size, value and dtype are what they are in PyTorch; and the fuzzer finds what is not."""

from __future__ import annotations

import numpy as np
import pytest

from genesis.core.call.op import REGISTRY
from genesis.testing import fuzz_ops, fuzz_ops_calls

pytestmark = pytest.mark.parity


def explain(found):
    return "\n".join(f"seed {number}: {call}\n  -> {detail}" for number, call, detail in found)


def test_some_hundred_calls():
    counts, found = fuzz_ops.fuzz(pytest.importorskip("torch"), 400, seed=20_200)
    assert not found, explain(found)
    assert counts["equal"] > 200


@pytest.mark.slow
def test_thousands_of_calls():
    _, found = fuzz_ops.fuzz(pytest.importorskip("torch"), 6000)
    assert not found, explain(found)


def test_memory_is_laid_out_as_asked():
    array = np.arange(24).reshape(2, 3, 4)
    for layout in fuzz_ops_calls.LAYOUTS:
        memory = fuzz_ops_calls.laid_out(array, layout, fuzz_ops_calls.random.Random(0))
        found = memory.array(memory.root)
        assert found.shape == array.shape and (layout == "expanded" or np.array_equal(found, array))
        assert (min(found.strides) < 0) == (layout == "negative") and (0 in found.strides) == (layout == "expanded")


@pytest.mark.parametrize("name", ["mul", "cumsum", "conv2d"])
def test_what_is_wrong_in_a_layout_is_found(monkeypatch, name):
    torch = pytest.importorskip("torch")
    op = REGISTRY[name]
    right = op.call

    def careless(input, *args, **kwargs):
        if not input.is_contiguous():
            input = input.abs()
        return right(input, *args, **kwargs)

    monkeypatch.setattr(op, "call", careless)
    assert fuzz_ops.fuzz(torch, 60, only=name)[1]
