"""Running maxima and minima, and elements named along a dimension, as compiled loops: what NumPy's meaning gives."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import adding, compiled, running
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="the loops need llvmlite")
SHAPES = [(1000, 20), (3, 40, 97), (9000,), (13, 997), (2, 5000, 1), (8200, 1), (100, 100, 3), (1, 9000)]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_with_equals_nan_and_infinities(shape, largest):
    op = REGISTRY["running_position"]
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
    x.flat[5], x.flat[17], x.flat[900], x.flat[3] = np.nan, -np.inf, np.inf, -0.0
    for dim in range(len(shape)):
        assert running._fits(x, dim, x.dtype)
        found = op.kernel(x, dim, largest)
        assert found.dtype == np.int64 and np.array_equal(found, op.meaning(x, dim, largest))
        values, indices = getattr(genesis.tensor(x), "cummax" if largest else "cummin")(dim)
        ufunc = np.maximum if largest else np.minimum
        assert np.array_equal(values.numpy(), ufunc.accumulate(x, dim), equal_nan=True)
        assert np.array_equal(indices.numpy(), found)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_along_a_dimension(shape):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    for dim in range(len(shape)):
        count = max(shape[dim] // 2, 9000 * shape[dim] // x.size + 1)
        index = rng.integers(0, shape[dim], [count if d == dim else n for d, n in enumerate(shape)])
        assert adding._takes(x, dim, index)
        for each in (index, index.astype(np.int32), np.asfortranarray(index)):
            found = genesis.tensor(x).gather(dim, genesis.from_numpy(each))
            assert np.array_equal(found.numpy(), np.take_along_axis(x, index, dim))
        w = genesis.tensor(x, requires_grad=True)
        g = rng.standard_normal(index.shape).astype(np.float32)
        (gx,) = genesis.autograd.grad(w.gather(dim, genesis.tensor(index)), w, genesis.tensor(g))
        wanted = np.zeros(shape)
        np.add.at(
            wanted, tuple([index if d == dim else i for d, i in enumerate(np.indices(index.shape, sparse=True))]), g
        )
        np.testing.assert_allclose(gx.numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 100, 2**40, -(2**62)])
def test_indices_outside_are_refused(wrong):
    index = genesis.zeros(100, 100, dtype=genesis.int64)
    index[3, 4] = wrong
    with pytest.raises(IndexError, match="gather: index .* is out of range for dim 1 of size 100"):
        genesis.ones(100, 100).gather(1, index)
    with pytest.raises(IndexError):
        adding.gathered(np.ones((100, 100), np.float32), 1, index.numpy())


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setitem(compiled.LARGE, "for threads", 1)
    x = genesis.randn(70, 150)
    index = genesis.randint(0, 150, (70, 200))
    before, results = genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            genesis.set_num_threads(threads)
            results.append([t.numpy().tobytes() for t in (*x.cummax(0), *x.cummin(1), x.gather(1, index))])
    finally:
        genesis.set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("shape", "dim"), [((100, 1000), (1,)), ((9001,), (0,)), ((7, 40, 131), (1, 2)), ((3, 5, 64, 65), (3,))]
)
def test_products_of_rows(shape, dim):
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    x[..., 1] *= -1
    assert running._is_of_rows(x, dim, False, x.dtype)
    for keepdim in (False, True):
        found = (
            genesis.tensor(x).prod(dim[0], keepdim) if len(dim) == 1 else genesis.prod(genesis.tensor(x), dim, keepdim)
        )
        wanted = np.prod(x, dim, np.float64, keepdims=keepdim)
        assert found.shape == wanted.shape
        rounding = 2 * np.finfo(np.float32).eps * np.sqrt(x.size / wanted.size)  # of as many factors
        np.testing.assert_allclose(found.numpy(), wanted, rtol=rounding)
    x[..., 2], x[..., 3] = np.inf, 0
    assert np.isnan(genesis.tensor(x).prod(-1).numpy()).all()


def test_products_of_other_layouts_are_left_to_numpy():
    x = genesis.rand(200, 100) + 0.5
    for y in (x.t(), x[:, ::2], x.double()):
        np.testing.assert_allclose(y.prod(1).numpy(), np.prod(y.numpy(), 1, np.float64), rtol=1e-5)
    np.testing.assert_allclose(x.prod(0).numpy(), np.prod(x.numpy(), 0, np.float64), rtol=1e-5)
    assert genesis.ones(3, 0, 5).prod(-1).shape == (3, 0)
