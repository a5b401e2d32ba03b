"""Running sums and products as compiled loops: the bits of NumPy's in float64, rounded; slopes of channels in one pass."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import compiled, running
from genesis.kernels.llvm import loops

rng = np.random.default_rng(0)
needs_llvm = pytest.mark.skipif(not loops.available(), reason="the loops need llvmlite")


@needs_llvm
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(1000, 20), (3, 40, 97), (9000,), (13, 997), (2, 5000, 1), (1, 9000), (8200, 1)])
def test_the_bits_of_numpy(name, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    x.flat[0] = x.flat[3] = -0.0
    x.flat[-1] = np.inf
    ufunc = {"cumsum": np.add, "cumprod": np.multiply}[name]
    for dim in range(len(shape)):
        assert running._fits(x, dim, x.dtype)
        with np.errstate(all="ignore"):
            want = ufunc.accumulate(x, dim, np.float64).astype(np.float32)
        got = getattr(genesis.tensor(x), name)(dim).numpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@needs_llvm
def test_nan_stays_and_threads_change_nothing():
    x = rng.standard_normal((600, 500)).astype(np.float32)
    x[7, 11] = np.nan
    before = genesis.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 4):
            genesis.set_num_threads(threads)
            results.append([genesis.tensor(x).cumsum(dim).numpy().tobytes() for dim in (0, 1)])
    finally:
        genesis.set_num_threads(before)
    assert results[0] == results[1] == results[2]
    got = genesis.tensor(x).cumsum(1).numpy()
    assert np.isnan(got[7, 11:]).all()
    assert not np.isnan(got[7, :11]).any()


def test_other_memory_and_dtypes():
    x = rng.standard_normal((300, 90)).astype(np.float32)
    for t in (genesis.tensor(x).t(), genesis.tensor(x)[::2], genesis.tensor(x)[:0], genesis.tensor(x).double()):
        want = np.cumsum(t.numpy(), 0, dtype=np.float64)
        np.testing.assert_allclose(t.cumsum(0).numpy(), want, rtol=1e-6, atol=1e-6)


@needs_llvm
@pytest.mark.parametrize(
    ("shape", "channels"), [((4, 3, 30, 30), 3), ((4, 3, 30, 30), 1), ((9000,), 1), ((300, 40), 40)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_of_channels(shape, channels, dtype):
    x, w, g = (rng.standard_normal(s).astype(dtype) for s in (shape, channels, shape))
    x.flat[5] = 0.0
    assert compiled._takes_slopes(x, w)
    input, weight = genesis.tensor(x, requires_grad=True), genesis.tensor(w, requires_grad=True)
    F.prelu(input, weight).backward(genesis.tensor(g))
    slopes = w.reshape(-1, *[1] * max(len(shape) - 2, 0)) if channels > 1 else w
    np.testing.assert_array_equal(F.prelu(input, weight).detach().numpy(), np.where(x > 0, x, x * slopes))
    np.testing.assert_array_equal(input.grad.numpy(), np.where(x > 0, g, g * slopes))
    below = np.where(x > 0, 0, x).astype(np.float64) * g
    want = below.sum(tuple(i for i in range(x.ndim) if i != 1)) if channels > 1 else below.sum().reshape(1)
    np.testing.assert_allclose(weight.grad.numpy(), want, rtol=1e-5, atol=1e-6 * np.abs(below).max() * x.size**0.5)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.bfloat16])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_a_slope_without_dimensions_has_a_gradient_without_dimensions(shape, dtype):
    x = genesis.full(shape, -2.0, dtype=dtype)
    slope = genesis.tensor(0.25, dtype=dtype, requires_grad=True)
    F.prelu(x, slope).sum().backward()
    assert slope.grad.shape == () and slope.grad.item() == -2 * x.numel()
    slope.grad.mul_(2)
    assert slope.grad.item() == -4 * x.numel()


@needs_llvm
def test_second_derivatives_of_slopes_are_those_of_the_composition():
    x = genesis.tensor(rng.standard_normal((100, 100)).astype(np.float32), requires_grad=True)
    w = genesis.full((100,), 0.25, requires_grad=True)
    (gx,) = genesis.autograd.grad(F.prelu(x, w).square().sum(), x, create_graph=True)
    (gw,) = genesis.autograd.grad(gx.sum(), w)  # gx is 2 w^2 x below zero
    want = (4 * 0.25 * np.minimum(x.detach().numpy(), 0)).sum(0)
    np.testing.assert_allclose(gw.numpy(), want, rtol=1e-4)
