"""Compiled layer and RMS norm: rows of any length, with parameters or without, in any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")

EPS = 1e-5


def _norm(name, x, weight, bias):
    if name == "layer_norm":
        return F.layer_norm(x, (x.shape[-1],), weight, bias, EPS)
    return F.rms_norm(x, (x.shape[-1],), weight, EPS)


def _exact(name, x, weight, bias, g):
    """The result and the gradients, in float64."""
    x, g = x.astype(np.float64), g.astype(np.float64)
    away = x - x.mean(-1, keepdims=True) if name == "layer_norm" else x
    root = np.sqrt((away * away).mean(-1, keepdims=True) + EPS)
    rows = away / root
    h = g * (1 if weight is None else weight)
    gx = h - rows * (h * rows).mean(-1, keepdims=True)
    gx = (gx - (h.mean(-1, keepdims=True) if name == "layer_norm" else 0)) / root
    out = rows * (1 if weight is None else weight) + (0 if bias is None else bias)
    columns = tuple(range(x.ndim - 1))
    return out, gx, (g * rows).sum(columns), g.sum(columns)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("shape", [(700, 17), (64, 130), (3, 50, 64), (2, 5000), (600, 16)], ids=str)
@pytest.mark.parametrize("parameters", ["both", "weight", "none"])
def test_results_and_gradients(name, shape, parameters):
    rng = np.random.default_rng(shape[-1])
    x, g = (rng.standard_normal(shape).astype(np.float32) * 3 + 1 for _ in range(2))
    weight = None if parameters == "none" else rng.standard_normal(shape[-1]).astype(np.float32)
    bias = rng.standard_normal(shape[-1]).astype(np.float32) if (parameters, name) == ("both", "layer_norm") else None
    leaves = [None if p is None else genesis.from_numpy(p).requires_grad_() for p in (x, weight, bias)]
    out = _norm(name, *leaves)
    found = [out.detach(), *genesis.autograd.grad(out, [p for p in leaves if p is not None], genesis.from_numpy(g))]
    for mine, want in zip(found, _exact(name, x, weight, bias, g), strict=False):
        np.testing.assert_allclose(mine.numpy(), want, rtol=3e-6, atol=3e-7 * np.abs(want).max())


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_the_same_bits_in_any_number_of_threads_and_layout(name):
    rng = np.random.default_rng(0)
    wide = genesis.from_numpy(rng.standard_normal((33, 2 * 301)).astype(np.float32))
    weight = genesis.from_numpy(rng.standard_normal(301).astype(np.float32))
    before, results = genesis.get_num_threads(), []
    try:
        for threads, x in [
            (1, wide[:, ::2]),
            (2, wide[:, ::2].clone()),
            (3, wide[:, ::2].T.contiguous().T),
            (9, wide[:, ::2]),
        ]:
            genesis.set_num_threads(threads)
            leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
            out = _norm(name, *leaves, None)
            gradients = genesis.autograd.grad((out * out).sum(), leaves)
            results.append([p.detach().numpy() for p in (out, *gradients)])
    finally:
        genesis.set_num_threads(before)
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_equal_numbers_have_no_deviation():
    x = genesis.full((100, 100), 0.1)
    assert (F.layer_norm(x, (100,)) == 0).all()


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_rows_with_nan_keep_it_to_themselves(name):
    x = genesis.ones(200, 50)
    x[3, 7], x[5, 0] = float("nan"), float("inf")
    bad = _norm(name, x, None, None).isnan().any(-1)
    assert bad.nonzero().flatten().tolist() == [3, 5]
