"""Reductions of what a mask keeps: what is left of nothing, and normalisations against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis import masked

KEPT = genesis.tensor([[True, False, True], [False, False, False]])


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float16])
def test_what_is_left_of_nothing(dtype):
    x = genesis.tensor([[1.0, 9.0, 3.0], [1.0, 2.0, 3.0]], dtype=dtype)
    found = {name: getattr(masked, name)(x, 1, mask=KEPT).tolist() for name in ("sum", "prod", "amax", "amin")}
    assert found == {"sum": [4, 0], "prod": [3, 1], "amax": [3, -math.inf], "amin": [1, math.inf]}
    for name in ("mean", "var", "std", "median"):
        first, second = getattr(masked, name)(x, 1, mask=KEPT).tolist()
        assert math.isnan(second)
        assert first == pytest.approx({"mean": 2, "var": 2, "std": math.sqrt(2), "median": 1}[name], rel=1e-3)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
def test_normalisations_of_what_is_kept(name):
    x, kept = genesis.tensor([1.0, 50.0, 3.0], requires_grad=True), genesis.tensor([True, False, True])
    y = getattr(masked, name)(x, 0, mask=kept)
    alone = getattr(genesis.nn.functional, name)(x.detach()[kept], 0)
    assert y[kept].tolist() == alone.tolist()
    assert y[1].item() == (-math.inf if name == "log_softmax" else 0)
    (g,) = genesis.autograd.grad(y[0], x)
    assert g[1].item() == 0
    assert np.isfinite(g.numpy()).all()


def test_a_mask_may_be_smaller_and_not_larger():
    assert masked.sum(genesis.ones(2, 3), mask=genesis.tensor([True, False, True])).item() == 4
    for call in (masked.softmax, masked.cumsum):
        with pytest.raises(IndexError, match="the mask has 2 dimensions, the input 1"):
            call(genesis.ones(3), 0, mask=KEPT)
