"""Batch norm in training, compiled and by NumPy: matrices, images, and channels with one place, beside float64."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import compiled
from genesis.kernels.llvm import loops

SHAPES = [(5, 1), (3, 7), (10, 16), (64, 33), (1000, 20), (5, 8, 1), (2, 17, 1, 1), (4, 3, 17), (3, 5, 4, 4), (6, 2, 3)]


@pytest.mark.parametrize("available", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_and_gradients(shape, plain, available, monkeypatch):
    if not available:
        monkeypatch.setattr(loops, "available", lambda: False)
    rng = np.random.default_rng(0)
    along, rest, many = (1, -1, *[1] * (len(shape) - 2)), (0, *range(2, len(shape))), shape[1]
    middle = 100 * rng.standard_normal(many).reshape(along)
    x, g = ((3 * rng.standard_normal(shape) + c).astype(np.float32) for c in (middle, 0))
    weight, bias = rng.standard_normal((2, many)).astype(np.float32)
    mean, count = x.mean(rest, np.float64, keepdims=True), x.size // many
    variance = ((x - mean) ** 2).mean(rest)
    root = np.sqrt(variance + 1e-3).reshape(along)
    rows = (x - mean) / root
    w, b = (1.0, 0.0) if plain else (weight.astype(np.float64).reshape(along), bias.reshape(along))
    moved, total = ((g * rows).sum(rest), g.sum(rest, np.float64))
    gx = (g - (rows * moved.reshape(along) + total.reshape(along)) / count) * w / root
    running = 0.1 * mean.ravel(), 0.9 + 0.1 * variance * count / (count - 1)
    exact = [rows * w + b, *running, gx, moved, total]
    leaves = [genesis.from_numpy(p).requires_grad_() for p in (x, weight, bias)][: 1 if plain else 3]
    for layout in (lambda t: t, lambda t: t.transpose(0, 1).contiguous().transpose(0, 1)):
        moving = genesis.zeros(many), genesis.ones(many)
        out = F.batch_norm(layout(leaves[0]), *moving, *leaves[1:], training=True, eps=1e-3)
        results = [out, *moving, *genesis.autograd.grad(out, leaves, layout(genesis.from_numpy(g)))]
        for mine, want in zip(results, exact, strict=False):
            np.testing.assert_allclose(mine.detach().numpy(), want, rtol=2e-6, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("shape", [(9, 70), (2, 5, 33)], ids=str)
def test_threads_give_the_same_bits(shape, monkeypatch):
    monkeypatch.setitem(compiled.LARGE, "for threads", 1)
    x = genesis.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(np.float32)).requires_grad_()
    before, results = genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            out = F.batch_norm(x, None, None, training=True)
            results.append([out, *genesis.autograd.grad(out, x, out.detach() ** 3)])
    finally:
        genesis.set_num_threads(before)
    for others in results[1:]:
        assert all(genesis.equal(a, b) for a, b in zip(results[0], others, strict=True))


def test_a_channel_that_is_not_finite_leaves_the_others_as_they_are():
    x = np.random.default_rng(2).standard_normal((6, 20)).astype(np.float32)
    clean = F.batch_norm(genesis.from_numpy(x), None, None, training=True)
    x[0, 3], x[2, 18] = np.nan, np.inf
    out = F.batch_norm(genesis.from_numpy(x), None, None, training=True)
    wrong = ~np.isfinite(out.numpy()).all(0)
    assert np.flatnonzero(wrong).tolist() == [3, 18] and genesis.equal(out[:, ~wrong], clean[:, ~wrong])


def test_equal_numbers_are_zero():
    out = F.batch_norm(genesis.full((5, 9), 0.1), None, None, training=True)
    assert out.abs().max() == 0
