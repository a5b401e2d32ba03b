"""Rows of any length as compiled loops: attention of few, variances, and statistics that run along."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.autograd import grad
from genesis.kernels.llvm import loops
from genesis.ops.learning import norm
from genesis.testing.kernels import meanings_only

pytestmark = pytest.mark.skipif(not loops.available(), reason="the loops need llvmlite")
rng = np.random.default_rng(0)


def numbers(*shape, requires_grad=False, dtype=np.float32):
    return genesis.tensor(rng.normal(size=shape).astype(dtype), requires_grad=requires_grad)


SHAPES = {
    "few keys": ((2, 5, 16), (2, 7, 16), (2, 7, 9)),
    "heads": ((1, 2, 5, 17), (1, 2, 5, 17), (1, 2, 5, 17)),
    "more keys than a vector has lanes": ((3, 4), (37, 4), (37, 33)),
    "one number": ((2, 1, 1), (2, 1, 1), (2, 1, 1)),
    "less keys than rows": ((6, 3), (2, 3), (2, 20)),
}


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_few_rows(shapes, causal):
    inputs = [numbers(*shape, requires_grad=True) for shape in SHAPES[shapes]]
    out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
    gradients = grad(out.square().sum(), inputs)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    with meanings_only():
        want = F.scaled_dot_product_attention(*wide, is_causal=causal)
        wanted = grad(want.square().sum(), wide)
    np.testing.assert_allclose(out.detach().numpy(), want.detach().numpy(), rtol=1e-6, atol=2e-7)
    for a, b in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-5)


def test_attention_has_the_layout_of_its_query_and_nan_where_a_row_has_it():
    query = numbers(2, 3, 4, 8).transpose(1, 2)
    key, value = numbers(2, 4, 3, 8), numbers(2, 4, 3, 8)
    out = F.scaled_dot_product_attention(query, key, value)
    assert out.stride() == query.stride()
    assert out.equal(F.scaled_dot_product_attention(query.contiguous(), key, value))
    query = query.contiguous()
    query[0, 1, 2, 3] = np.nan
    blind = F.scaled_dot_product_attention(query, key, value).isnan()
    assert blind[0, 1, 2].all() and blind.sum() == 8


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("correction", [0, 1, 1.5])
def test_variances_are_rounded_once(name, correction):
    for shape, dim in (((10, 16), 1), ((10, 19), None), ((3, 4, 9), (1, 2)), ((4, 1), 1), ((6,), 0), ((300, 1000), 1)):
        x = genesis.tensor((100 + rng.normal(size=shape)).astype(np.float32))
        for keepdim in (False, True):
            options = {"correction": correction, "keepdim": keepdim}
            spread = getattr(genesis, name)(x, dim, **options)
            want = getattr(genesis, name)(x.double(), dim, **options)
            assert spread.shape == want.shape
            np.testing.assert_allclose(spread.numpy(), want.numpy(), rtol=1e-7, atol=0)
    assert not getattr(genesis, name)(genesis.full((3, 5), 0.1), 1).any()
    assert getattr(genesis, name)(genesis.tensor([1.0, np.inf, 2.0]), correction=correction).isnan()


@pytest.mark.parametrize("shape", [(10, 16), (4, 3, 8, 8), (5, 70)])
def test_running_statistics_have_the_bits_of_numpy(shape, monkeypatch):
    x, results = numbers(*shape), []
    for moves in (norm.MOVES, norm.MOVES[:1]):
        monkeypatch.setattr(norm, "MOVES", moves)
        mean, var = genesis.zeros(shape[1]), genesis.ones(shape[1])
        for _ in range(3):
            F.batch_norm(x, mean, var, training=True, momentum=0.3)
        results.append((mean.numpy().tobytes(), var.numpy().tobytes()))
    assert len(norm.MOVES) == 1 and results[0] == results[1]
    whole, strided = genesis.zeros(2 * shape[1]), genesis.zeros(2 * shape[1])[::2]
    F.batch_norm(x, strided, whole[: shape[1]], training=True, momentum=0.3)
    assert strided.numpy().any() and not whole[shape[1] :].any()
