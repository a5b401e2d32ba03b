"""Random numbers: none is what rounding made of it, none comes too often, and parameters that no distribution has are
refused.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY

HALVES = [genesis.float16, genesis.bfloat16]


@pytest.mark.parametrize("dtype", HALVES)
def test_uniform_numbers_of_16_bits_are_below_one(dtype):
    genesis.manual_seed(0)
    for x in (genesis.rand(200_000, dtype=dtype), genesis.zeros(200_000, dtype=dtype).uniform_()):
        assert x.max().item() < 1
        assert x.min().item() == 0
        assert abs(x.float().mean().item() - 0.5) < 0.005
    x = genesis.zeros(200_000, dtype=dtype).uniform_(1.0, 2.0)
    assert 1 <= x.min().item() <= x.max().item() < 2


@pytest.mark.parametrize("dtype", HALVES)
def test_small_probabilities_of_16_bits(dtype):
    genesis.manual_seed(0)
    assert genesis.bernoulli(genesis.full((400_000,), 2.0**-14, dtype=dtype)).sum().item() < 60  # 24 are expected


def test_large_ranges_of_integers_are_even():
    """The lower half of [0, 3 * 2**61) would come up 5/8 of the time if words were only divided."""
    genesis.manual_seed(0)
    top = 3 * 2**61
    x = genesis.randint(0, top, (40_000,)).numpy()
    assert 0 <= x.min() <= x.max() < top
    thirds = np.bincount((x // 2**61).astype(int), minlength=3) / len(x)
    assert np.abs(thirds - 1 / 3).max() < 0.01
    y = genesis.randint(-(2**63), 2**63 - 1, (1000,)).numpy()
    assert (y < 0).any()
    assert (y > 0).any()


WRONG = [
    ("uniform_", (2.0, 1.0), {}),
    ("uniform_", (), {"from_": 0.0, "to": -1.0}),
    ("normal_", (0.0, -1.0), {}),
    ("normal_", (), {"std": math.nan}),
    ("log_normal_", (0.0, 0.0), {}),
    ("exponential_", (0.0,), {}),
    ("exponential_", (), {"lambd": -1.0}),
    ("cauchy_", (0.0, 0.0), {}),
    ("geometric_", (0.0,), {}),
    ("geometric_", (1.0,), {}),
    ("bernoulli_", (1.5,), {}),
    ("bernoulli_", (-0.1,), {}),
    ("random_", (5, 5), {}),
    ("random_", (5, 2), {}),
    ("random_", (-1,), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), WRONG)
def test_parameters_of_fills(name, args, kwargs):
    x = genesis.zeros(3)
    with pytest.raises(RuntimeError, match=f"{name}: .* must"):
        getattr(x, name)(*args, **kwargs)
    assert x.tolist() == [0.0] * 3
    assert x._version == 0


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        w
        for w in WRONG
        if "from_" not in w[2] and not any(isinstance(v, float) and math.isnan(v) for v in w[2].values())
    ],
)
def test_pytorch_refuses_them_too(name, args, kwargs):
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError):
        getattr(torch.zeros(3), name)(*args, **kwargs)


def test_edges_that_are_allowed():
    assert genesis.zeros(3).normal_(2.0, 0.0).tolist() == [2.0] * 3
    assert genesis.zeros(3).uniform_(1.0, 1.0).tolist() == [1.0] * 3
    assert genesis.zeros(3).bernoulli_(1.0).tolist() == [1.0] * 3
    assert genesis.zeros(3).bernoulli_(genesis.tensor([0.0, 1.0, 0.0])).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [*HALVES, genesis.float32, genesis.float64])
def test_nan_to_num_gives_the_limits_of_the_dtype(dtype):
    x = genesis.tensor([math.nan, math.inf, -math.inf, 2.0], dtype=dtype)
    info = genesis.finfo(dtype)
    assert genesis.nan_to_num(x).tolist() == [0.0, info.max, info.min, 2.0]
    assert genesis.nan_to_num(x, 1.0, 3.0, 4.0).tolist() == [1.0, 3.0, 4.0, 2.0]
    assert genesis.nan_to_num(x).dtype is dtype


@pytest.mark.parametrize(("p", "want"), [(0.0, [1, 1, 1, 1]), (0.25, [0, 4 / 3, 4 / 3, 4 / 3]), (0.5, [0, 0, 2, 2])])
def test_dropout_keeps_exactly_the_numbers_from_p_on(p, want):
    class Quarters:
        def uniform(self, shape, kind):
            return np.arange(4, dtype=kind) / 4

    assert np.allclose(REGISTRY["random.dropout"].meaning(Quarters(), (4,), np.dtype(np.float64), p), want, rtol=1e-15)
