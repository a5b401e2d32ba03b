"""Batch norm in evaluation: one pass, compiled and by NumPy, with the gradients of all that it is given."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.llvm import loops


@pytest.mark.parametrize("available", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("shape", [(4, 6), (3, 5, 17), (2, 3, 40, 41), (2, 3, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("plain", [False, True])
def test_results_and_gradients(shape, plain, available, monkeypatch):
    if not available:
        monkeypatch.setattr(loops, "available", lambda: False)
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, *shape)).astype(np.float32)
    mean, weight, bias = rng.standard_normal((3, shape[1])).astype(np.float32)
    variance = rng.uniform(0.5, 2, shape[1]).astype(np.float32)
    along, rest = (-1, *[1] * (len(shape) - 2)), (0, *range(2, len(shape)))
    root = np.sqrt(variance.astype(np.float64) + 1e-3)
    w, b = (np.ones(shape[1]), 0) if plain else (weight.astype(np.float64), bias.reshape(along))
    away, scale = x - mean.astype(np.float64).reshape(along), (w / root).reshape(along)
    total, moved = g.sum(rest, np.float64), (g * away).sum(rest)
    exact = [away * scale + b, g * scale, -total * w / root, -moved * w / root**3 / 2, moved / root, total]
    leaves = [genesis.from_numpy(p).requires_grad_() for p in (x, mean, variance, weight, bias)][: 3 if plain else 5]
    for layout in (lambda t: t, lambda t: t.transpose(0, 1).contiguous().transpose(0, 1)):
        given = [layout(leaves[0]), *leaves[1:]]
        out = F.batch_norm(*given, eps=1e-3)
        found = [out, *genesis.autograd.grad(out, leaves, layout(genesis.from_numpy(g)))]
        for mine, want in zip(found, exact, strict=False):
            np.testing.assert_allclose(mine.detach().numpy(), want, rtol=2e-6, atol=1e-6 * np.abs(want).max())


def test_second_derivatives_and_other_dtypes():
    x, mean, variance, w, b = (genesis.rand(*s, dtype=genesis.float64) + 0.5 for s in ((3, 2, 4), *[(2,)] * 4))
    leaves = [t.requires_grad_() for t in (x, mean, variance, w, b)]
    f = lambda *t: F.batch_norm(*t)  # noqa: E731
    assert genesis.autograd.gradcheck(f, leaves) and genesis.autograd.gradgradcheck(f, leaves)


def test_numbers_of_zero_keep_their_sign_without_a_bias():
    x = genesis.full((2, 3, 4), -0.0)
    out = F.batch_norm(x, genesis.zeros(3), genesis.ones(3))
    assert np.signbit(out.numpy()).all()
