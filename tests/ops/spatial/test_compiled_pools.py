"""The compiled gradient of max pooling and the compiled batch norm, beside what NumPy computes."""

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import channel_norm, pooling
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or no fused multiply-add here")


def both(monkeypatch, module, name, f):
    """What f gives with the loops, which it must call, and without them."""
    calls, original = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: (calls.append(name), original(*args))[1])
    found = []
    for least in (1, 1 << 60):
        monkeypatch.setitem(LARGE, "elements", least)
        found.append(f())
    assert calls
    return found


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_stays_in_its_cell(value):
    x = np.random.default_rng(0).normal(size=(3, 2, 6, 6)).astype("f")
    x[1, 1, 4, 0] = value
    a = genesis.tensor(x, requires_grad=True)
    y = F.adaptive_avg_pool2d(a, 2)
    expected = x.reshape(3, 2, 2, 3, 2, 3).mean((3, 5))
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=0, atol=1e-6)
    g = np.ones(y.shape, "f")
    g[0, 0, 1, 1] = value
    y.backward(genesis.tensor(g))
    np.testing.assert_allclose(a.grad.numpy(), np.repeat(np.repeat(g / 9, 3, 2), 3, 3), rtol=0, atol=1e-6)


def test_few_cells_are_one_product(monkeypatch):
    calls, original = [], pooling._sums
    monkeypatch.setattr(pooling, "_sums", lambda *args: (calls.append(1), original(*args))[1])
    x = np.random.default_rng(0).normal(size=(3, 2, 7, 5))
    for kernel, stride in ((2, None), (3, 2), (2, 1)):
        a = genesis.tensor(x, requires_grad=True)
        y = F.avg_pool2d(a, kernel, stride)
        y.sum().backward()
        few = y.shape[2] * y.shape[3] <= pooling.FEW
        assert len(calls) == (2 if few else 0)
        calls.clear()
        step = stride or kernel
        expected = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))[:, :, ::step, ::step]
        np.testing.assert_allclose(y.detach().numpy(), expected.mean((4, 5)), rtol=0, atol=1e-12)


POOLS = [
    ((2, 3, 9), 3, {}),
    ((2, 3, 8, 9), 2, {}),
    ((2, 3, 8, 9), (3, 2), {"stride": 1, "padding": 1}),
    ((1, 2, 9, 9), 3, {"stride": 2, "padding": 1, "ceil_mode": True}),
    ((1, 2, 11, 9), 3, {"stride": 2, "dilation": 2}),
    ((2, 2, 5, 6, 7), 2, {"padding": 1}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), POOLS)
def test_gradients_of_max_pooling(monkeypatch, shape, kernel, options):
    values = np.random.default_rng(0).integers(-3, 4, size=shape).astype("f")  # many are equal

    def gradient():
        x = genesis.tensor(values, requires_grad=True)
        y = getattr(F, f"max_pool{len(shape) - 2}d")(x, kernel, **options)
        y.backward(genesis.arange(1.0, y.numel() + 1).reshape(y.shape))
        return x.grad.numpy()

    np.testing.assert_array_equal(*both(monkeypatch, pooling, "_compiled", gradient))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(2, 3, 8, 32), (1, 2, 6, 64), (3, 4, 12), (2, 2, 4, 14), (1, 1, 2, 2)])
def test_windows_of_two_rows_and_columns(monkeypatch, shape, threads):
    """Values and gradients, of equals and of nan the first."""
    monkeypatch.setattr("genesis.base.threads.get_num_threads", lambda: threads)
    rng = np.random.default_rng(0)
    values = rng.integers(-3, 4, size=shape).astype("f")
    values[rng.random(shape) < 0.05] = np.nan

    def results():
        x = genesis.tensor(values, requires_grad=True)
        y = F.max_pool2d(x, 2)
        y.backward(genesis.arange(1.0, y.numel() + 1).reshape(y.shape))
        return y.detach().numpy(), x.grad.numpy()

    for one, other in zip(*both(monkeypatch, pooling, "_of_pairs", results), strict=True):
        np.testing.assert_array_equal(one, other)


def test_pooling_of_a_view_and_with_nan(monkeypatch):
    monkeypatch.setitem(LARGE, "elements", 1)
    x = genesis.tensor([[[1.0, float("nan"), 0.0, 2.0]]], requires_grad=True)
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[[0.0, 1.0, 0.0, 1.0]]]
    x = genesis.arange(24.0).reshape(1, 4, 6).requires_grad_()
    F.max_pool1d(x.transpose(1, 2).flip(2), 2).sum().backward()
    assert x.grad.sum().item() == 12
    assert x.grad[0, [0, 2]].tolist() == [[0.0] * 6] * 2


NORMS = [(64, 3, 40), (2, 5, 4, 4), (3, 4, 7, 9), (2, 3, 3, 5, 4), (9, 2, 16)]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", NORMS)
def test_batch_norm(monkeypatch, shape, affine):
    rng = np.random.default_rng(0)
    values, g = (rng.normal(3, 2, size=shape).astype("f") for _ in range(2))

    def results():
        norm = getattr(genesis.nn, f"BatchNorm{len(shape) - 2}d")(shape[1], affine=affine)
        x = genesis.tensor(values, requires_grad=True)
        y = norm(x)
        y.backward(genesis.tensor(g))
        return [v.detach().numpy() for v in (y, x.grad, *[p.grad for p in norm.parameters()], *norm.buffers())]

    for name in ("_compiled_forward", "_compiled_gradients"):
        for one, other in zip(*both(monkeypatch, channel_norm, name, results), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_channel_of_equal_numbers_has_no_spread(monkeypatch):
    monkeypatch.setitem(LARGE, "elements", 1)
    x = genesis.full((7, 3, 40), 0.1)
    assert not F.batch_norm(x, None, None, training=True).any()
    norm = genesis.nn.BatchNorm1d(3, momentum=1.0)
    norm(x)
    assert norm.running_mean.tolist() == x[0, :, 0].tolist()
    assert norm.running_var.tolist() == [0.0] * 3


def test_infinities_stay_in_their_channel(monkeypatch):
    monkeypatch.setitem(LARGE, "elements", 1)
    x = genesis.randn(4, 3, 40)
    x[1, 1, 7] = float("inf")
    y = F.batch_norm(x, None, None, training=True)
    assert y[:, 1].isnan().any()
    assert y[:, [0, 2]].isfinite().all()


def test_moments_of_channels_that_begin_far_from_their_mean(monkeypatch):
    monkeypatch.setitem(LARGE, "elements", 1)
    values = np.random.default_rng(0).normal(size=(4, 5, 50)).astype("f")
    values[0, :, 0] = [1e6, -1e3, np.inf, -np.inf, np.nan]
    mean, var = (genesis.zeros(5) for _ in range(2))
    F.batch_norm(genesis.tensor(values), mean, var, training=True, momentum=1.0)
    exact = values.astype("d")
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(mean.numpy(), exact.mean((0, 2)), rtol=1e-6)
        np.testing.assert_allclose(var.numpy(), exact.var((0, 2), ddof=1), rtol=1e-6)
