"""Group norm: groups of any size, compiled and by NumPy, in any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import compiled, group_norm
from genesis.kernels.llvm import loops

EPS = 1e-5
SHAPES = [((4, 12, 13, 17), 3), ((2, 6, 40, 41), 6), ((3, 5, 700), 1), ((9, 64, 4, 4, 4), 8)]


def exact(x, groups, weight, bias, g):
    """The result and the gradients, in float64."""
    x, g = x.astype(np.float64), g.astype(np.float64)
    cut = x.reshape(len(x), groups, -1)
    root = np.sqrt(cut.var(2, keepdims=True) + EPS)
    rows = ((cut - cut.mean(2, keepdims=True)) / root).reshape(x.shape)
    along = (-1, *[1] * (x.ndim - 2))
    w, b = (np.ones(1), np.zeros(1)) if weight is None else (weight.reshape(along), bias.reshape(along))
    h, standard = (g * w).reshape(cut.shape), rows.reshape(cut.shape)
    gx = (h - h.mean(2, keepdims=True) - standard * (h * standard).mean(2, keepdims=True)) / root
    rest = (0, *range(2, x.ndim))
    return rows * w + b, gx.reshape(x.shape), (g * rows).sum(rest), g.sum(rest)


@pytest.mark.parametrize("by_loops", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize(("shape", "groups"), [*SHAPES, ((3, 16), 2), ((2, 6, 3), 3), ((700, 16), 4)], ids=str)
@pytest.mark.parametrize("plain", [False, True])
def test_results_and_gradients(shape, groups, plain, by_loops, monkeypatch):
    if not by_loops:
        monkeypatch.setattr(group_norm, "_is_compiled", lambda x: False)
    rng = np.random.default_rng(shape[1])
    x, g = (rng.standard_normal(shape).astype(np.float32) * 3 + 1 for _ in range(2))
    weight, bias = (None, None) if plain else rng.standard_normal((2, shape[1])).astype(np.float32)
    leaves = [None if p is None else genesis.from_numpy(p).requires_grad_() for p in (x, weight, bias)]
    out = F.group_norm(leaves[0], groups, *leaves[1:], EPS)
    found = [out.detach(), *genesis.autograd.grad(out, [p for p in leaves if p is not None], genesis.from_numpy(g))]
    for mine, want in zip(found, exact(x, groups, weight, bias, g), strict=False):
        np.testing.assert_allclose(mine.numpy(), want, rtol=3e-6, atol=5e-7 * np.abs(want).max())


@pytest.mark.skipif(not loops.available(), reason="no llvmlite")
@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
def test_the_same_bits_in_any_number_of_threads_and_layout(shape, groups, monkeypatch):
    monkeypatch.setitem(compiled.LARGE, "for threads", 1)
    x = genesis.randn(*shape)
    w, before, results = genesis.randn(shape[1]), genesis.get_num_threads(), []
    try:
        for threads, each in [(1, x), (2, x), (3, x.transpose(0, -1).contiguous().transpose(0, -1)), (7, x)]:
            genesis.set_num_threads(threads)
            leaves = [each.detach().requires_grad_(), w.detach().requires_grad_()]
            out = F.group_norm(leaves[0], groups, leaves[1])
            results.append([p.detach().numpy() for p in (out, *genesis.autograd.grad((out * out).sum(), leaves))])
    finally:
        genesis.set_num_threads(before)
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_equal_numbers_have_no_deviation_and_nan_stays_in_its_group():
    x = genesis.full((3, 8, 40, 40), 0.1)
    assert (F.group_norm(x, 4) == 0).all()
    x[1, 2, 3, 4], x[2, 7, 0, 0] = float("nan"), float("inf")
    bad = F.group_norm(x, 4).isnan().flatten(2).any(-1).nonzero().tolist()
    assert bad == [[1, 2], [1, 3], [2, 6], [2, 7]]
