"""Compiled functions that use einops, whose caches are no effects."""

from __future__ import annotations

import pytest

pytest.importorskip("einops")

from einops import rearrange, reduce, repeat

import genesis
import genesis.interop
from genesis import nn

pytest.importorskip("llvmlite", reason="without it nothing is compiled")


class Heads(nn.Module):
    """Linear parts that are put together again."""

    def __init__(self):
        super().__init__()
        self.linear, self.heads = nn.Linear(6, 8), 2

    def forward(self, x):
        parts = rearrange(self.linear(x), "b (h d) -> b h d", h=self.heads)
        means = repeat(parts.mean(1), "b d -> b n d", n=self.heads)
        return reduce(parts * means, "b h d -> b d", "sum")


def test_a_model_with_einops_is_one_graph():
    genesis.manual_seed(0)
    model = Heads()
    compiled, x = genesis.compile(model), genesis.randn(3, 6)
    for _ in range(4):  # no warning: they are errors here
        model.zero_grad()
        compiled(x).square().sum().backward()
        gradient = model.linear.weight.grad
        model.zero_grad()
        expected = model(x)
        expected.square().sum().backward()
        assert genesis.allclose(compiled(x), expected) and genesis.allclose(gradient, model.linear.weight.grad)
    assert "2 graphs, 2 traces" in compiled.explain() or "1 graphs, 1 traces" in compiled.explain()
    model.heads = 4
    for _ in range(3):
        assert compiled(x).shape == (3, 2) and genesis.allclose(compiled(x), model(x))
