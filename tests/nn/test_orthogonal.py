"""Orthogonal weights: as PyTorch's, from the same parameters."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn.utils import parametrizations, parametrize

CASES = [
    (shape, way, trivial)
    for shape in ((4, 4), (5, 3), (3, 5))
    for way in ("matrix_exp", "cayley", "householder")
    for trivial in (True, False)
]


def _layer(lib, shape):
    layer = lib.nn.Linear(shape[1], shape[0], dtype=lib.float64)
    layer.weight.data = lib.tensor(np.random.default_rng(0).normal(size=shape))
    return layer


@pytest.mark.parity
@pytest.mark.parametrize(("shape", "way", "trivial"), CASES)
def test_as_pytorch(shape, way, trivial):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    n = max(shape)
    base = np.linalg.qr(np.random.default_rng(1).normal(size=(n, n)))[0]
    found = []
    for lib in (genesis, torch):
        layer = _layer(lib, shape)
        lib.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=way, use_trivialization=trivial)
        state = layer.state_dict()
        rng = np.random.default_rng(2)
        state["parametrizations.weight.original"] = lib.tensor(rng.normal(size=shape) + 2 * np.eye(*shape))
        if trivial:
            state["parametrizations.weight.0.base"] = lib.tensor(base)
        layer.load_state_dict(state)
        (layer.weight * lib.tensor(rng.normal(size=shape))).sum().backward()
        found.append((layer.weight.detach().numpy(), layer.parametrizations.weight.original.grad.numpy()))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "way", "trivial"), CASES)
def test_orthogonal_while_it_learns(shape, way, trivial, dtype):
    layer = _layer(genesis, shape).to(getattr(genesis, dtype))
    parametrizations.orthogonal(layer, orthogonal_map=way, use_trivialization=trivial)
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(genesis.ones(shape[1], dtype=layer.bias.dtype)) ** 2).sum().backward()
        optimizer.step()
    w = layer.weight if shape[0] >= shape[1] else layer.weight.T
    error = (w.T @ w - genesis.eye(min(shape), dtype=w.dtype)).abs().max()
    assert float(error) < (1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_what_is_assigned_is_the_weight(shape):
    layer = _layer(genesis, shape)
    parametrizations.orthogonal(layer)
    target = np.linalg.qr(np.random.default_rng(3).normal(size=(max(shape), max(shape))))[0][: shape[0], : shape[1]]
    layer.weight = genesis.tensor(target)
    np.testing.assert_allclose(layer.weight.tolist(), target, atol=1e-12)
    parametrize.remove_parametrizations(layer, "weight")
    np.testing.assert_allclose(layer.weight.tolist(), target, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda m: parametrizations.orthogonal(m, "bias"), ValueError, "needs a matrix or several, got 1 dimensions"),
        (lambda m: parametrizations.orthogonal(m, "x"), ValueError, "Linear has no parameter or buffer 'x'"),
        (lambda m: parametrizations.orthogonal(m, orthogonal_map="x"), ValueError, "unknown orthogonal_map 'x'"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make(nn.Linear(3, 2))
