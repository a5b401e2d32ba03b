"""``x[::-1]``: views with negative strides, which PyTorch has not and NumPy has; against NumPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import genesis

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4))
KEYS = [
    np.s_[::-1],
    np.s_[:, ::-1],
    np.s_[::-1, ::-2],
    np.s_[2:0:-1, None],
    np.s_[..., ::-1],
    np.s_[::-1, None, 1],
    np.s_[5:0:-1],
    np.s_[0:5:-1],
    np.s_[::-1, [0, 2]],
    np.s_[[0, 2], ::-1],
]
VIEWS = KEYS[:8]


def numpy(x):
    return x.detach().numpy()


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading(key):
    x, want = genesis.tensor(A), A[key]
    y = x[key]
    np.testing.assert_array_equal(numpy(y), want)
    np.testing.assert_array_equal(numpy(y.reshape(-1)), want.reshape(-1))
    np.testing.assert_array_equal(
        numpy(y.clone() @ y.mT) if want.ndim == 2 else numpy(y), want @ want.T if want.ndim == 2 else want
    )
    for again in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y), y.contiguous()):
        np.testing.assert_array_equal(numpy(again), want)
    assert repr(y) == repr(genesis.tensor(want.copy()))


@pytest.mark.parametrize("key", VIEWS, ids=str)
def test_strides_without_data(key):
    y, m = genesis.tensor(A)[key], genesis.empty(3, 4, dtype=genesis.float64, device="meta")[key]
    steps = lambda t: [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]  # noqa: E731
    for f in (
        lambda t: t,
        lambda t: t + 1,
        lambda t: t.cumsum(0),
        lambda t: t.reshape(-1),
        lambda t: t.contiguous(),
        lambda t: t.float(),
    ):
        assert f(m).shape == f(y).shape and (0 in y.shape or steps(f(m)) == steps(f(y)))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gradients_of_reading_and_writing(key):
    want = A[key]
    c = RNG.normal(size=want.shape)
    x = genesis.tensor(A, requires_grad=True)
    (x[key].square() * genesis.tensor(c)).sum().backward()
    expected = np.zeros_like(A)
    expected[key] = 2 * want * c
    np.testing.assert_allclose(numpy(x.grad), expected)

    x, v, k = genesis.tensor(A, requires_grad=True), genesis.tensor(c, requires_grad=True), RNG.normal(size=A.shape)
    y = x * 1
    y[key] = v
    (y * genesis.tensor(k)).sum().backward()
    written, kept = A.copy(), k.copy()
    written[key], kept[key] = c, 0
    np.testing.assert_array_equal(numpy(y), written)
    np.testing.assert_array_equal(numpy(v.grad), k[key])
    np.testing.assert_array_equal(numpy(x.grad), kept)


@pytest.mark.parametrize("key", VIEWS, ids=str)
def test_writes_through_a_view(key):
    x, k = genesis.tensor(A, requires_grad=True), RNG.normal(size=A.shape)
    y = x * 1
    part = y[key]
    part.mul_(3)
    (y * genesis.tensor(k)).sum().backward()
    written, slope = A.copy(), k.copy()
    written[key] *= 3
    slope[key] *= 3
    np.testing.assert_array_equal(numpy(y), written)
    np.testing.assert_array_equal(numpy(part), written[key])
    np.testing.assert_allclose(numpy(x.grad), slope)


def written(x, key):
    x = x * 1
    x[key] = x[key] * 2
    return x


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("f", [lambda x, key: x[key].square().sin(), written], ids=["read", "written"])
def test_under_transforms(f, key):
    x, t = genesis.tensor(A), genesis.tensor(RNG.normal(size=A.shape))
    both = genesis.stack([x, t])
    np.testing.assert_array_equal(
        numpy(genesis.vmap(lambda v: f(v, key))(both)), numpy(genesis.stack([f(x, key), f(t, key)]))
    )
    _, pushed = genesis.func.jvp(lambda v: f(v, key), (x,), (t,))
    step = 1e-6
    np.testing.assert_allclose(
        numpy(pushed), numpy(f(x + step * t, key) - f(x - step * t, key)) / (2 * step), rtol=1e-5, atol=1e-8
    )
    for given in (x, t[::-1, ::-1]):
        graph = genesis.jit.trace(lambda v: f(v, key), given).verify()
        np.testing.assert_array_equal(numpy(graph.replay(given)), numpy(f(given, key)))
        np.testing.assert_array_equal(numpy(genesis.jit.optimized(graph).replay(given)), numpy(f(given, key)))


def test_views_share_memory():
    x = genesis.arange(12).reshape(3, 4)
    y = x[::-1, ::-1]
    assert y.stride() == (-4, -1) and not y.is_contiguous() and y.reshape(12)[0] == 11
    y[0, 0] = -1
    assert x[2, 3] == -1
    x.t()[::-1].zero_()
    assert not y.any()
    with pytest.raises(RuntimeError, match="needs a copy of this non-contiguous tensor"):
        x[::-1].view(12)
    with pytest.raises(ValueError, match="the step of a slice is 0"):
        x[::0]


def test_second_derivatives():
    x = genesis.tensor(A, requires_grad=True)
    assert genesis.autograd.gradcheck(lambda v: v[::-1, ::-2].sin(), x) and genesis.autograd.gradgradcheck(
        lambda v: v[::-1, ::-2].sin(), x
    )
