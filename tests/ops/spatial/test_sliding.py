"""Compiled convolutions without copies of windows, beside those by windows and matrix products."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import convolution, sliding
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or no fused multiply-add here")


@pytest.fixture
def used(monkeypatch):
    """Every convolution that can be is computed by the loops; counts the calls."""
    calls = []
    monkeypatch.setattr(sliding, "LEAST", 0)
    for name in ("forward", "weight"):
        original = getattr(sliding, name)
        monkeypatch.setattr(
            sliding, name, lambda *args, name=name, original=original: (calls.append(name), original(*args))[1]
        )
    return calls


def both(monkeypatch, x, w, bias, g, **options):
    """The result and the gradients, by the loops and by windows in float64."""
    found = []
    for dtype in (np.float32, np.float64):
        a, b = (genesis.tensor(v.astype(dtype), requires_grad=True) for v in (x, w))
        c = None if bias is None else genesis.tensor(bias.astype(dtype))
        y = getattr(F, f"conv{x.ndim - 2}d")(a, b, c, **options)
        if g is None:
            g = np.random.default_rng(1).normal(size=y.shape)
        y.backward(genesis.tensor(g.astype(dtype)))
        found.append([v.detach().numpy() for v in (y, a.grad, b.grad)])
    for one, exact in zip(*found, strict=True):
        assert one.shape == exact.shape
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, exact, rtol=0, atol=3e-6 * max(np.abs(exact).max(initial=0), 1e-3))
    return found[0]


CASES = [
    # input, weight, options: rows that are whole vectors and such that are not, groups, every step and border
    ((2, 3, 16, 16), (5, 3, 3, 3), {"padding": 1}),
    ((5, 4, 13, 18), (9, 4, 3, 5), {"padding": (0, 2)}),
    ((2, 4, 15, 16), (8, 2, 3, 3), {"padding": 1, "groups": 2}),
    ((3, 6, 9, 9), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    ((2, 3, 17, 20), (17, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 3, 17, 19), (4, 3, 5, 2), {"stride": (3, 2), "dilation": (1, 2), "padding": 2}),
    ((2, 2, 32), (3, 2, 5), {"stride": 2, "padding": 2}),
    ((2, 2, 5, 6, 16), (3, 2, 2, 3, 3), {"padding": 1}),
    ((2, 2, 6, 5, 7), (3, 2, 2, 3, 3), {"stride": 2, "padding": 1}),
    ((1, 1, 3, 3), (1, 1, 3, 3), {}),
    ((2, 3, 4, 64), (2, 3, 1, 1), {"stride": 2}),
    ((3, 2, 5, 7), (3, 2, 3, 3), {"stride": (1, 2), "padding": 2}),
    ((3, 2, 7, 5), (3, 2, 3, 4), {"stride": (2, 1), "padding": (1, 3)}),
    ((2, 3, 9, 63), (4, 3, 3, 3), {"stride": (1, 2), "padding": 1}),
    # places of all rows that are whole vectors, and such that are not
    ((3, 2, 8, 8), (12, 2, 3, 3), {"padding": 1}),
    ((3, 4, 4, 4), (24, 2, 3, 3), {"padding": (2, 1), "groups": 2}),
    ((2, 1, 9, 10), (13, 1, 3, 5), {"padding": (0, 4), "dilation": (1, 2), "stride": (2, 1)}),
    ((2, 3, 3, 6, 5), (12, 3, 2, 3, 3), {"padding": 1}),
    ((3, 2, 41), (20, 2, 5), {"padding": 3, "stride": 2}),
    # channels that fill vectors, and some more
    ((5, 16, 9, 9), (20, 16, 3, 3), {"padding": 1}),
    ((3, 24, 9, 17), (7, 24, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 37, 5, 20), (9, 37, 2, 3), {"padding": (0, 2), "dilation": (2, 1)}),
    ((3, 17, 50), (5, 17, 5), {"padding": 2, "stride": 3}),
    ((2, 16, 4, 5, 6), (2, 16, 2, 3, 3), {"padding": (0, 3, 1)}),
]


@pytest.mark.parametrize("block", [1 << 8, 1 << 13, 1 << 19])
@pytest.mark.parametrize(("shape", "weight", "options"), CASES)
def test_results_and_gradients(monkeypatch, used, shape, weight, options, block):
    monkeypatch.setattr(sliding, "BLOCK", block)
    rng = np.random.default_rng(0)
    both(monkeypatch, rng.normal(size=shape), rng.normal(size=weight), rng.normal(size=weight[0]), None, **options)
    assert {"forward", "weight"} <= set(used)


@pytest.mark.parametrize(("shape", "weight", "options"), CASES)
def test_images_for_each_element_of_the_kernel(monkeypatch, used, shape, weight, options):
    monkeypatch.setattr(sliding, "APART", (0, 1 << 30))
    for name, made in (("_forward", sliding._Forward), ("_weight", sliding._Weight)):
        monkeypatch.setattr(sliding, name, functools.cache(made))
    rng = np.random.default_rng(0)
    both(monkeypatch, rng.normal(size=shape), rng.normal(size=weight), rng.normal(size=weight[0]), None, **options)
    assert {"forward", "weight"} <= set(used)


def test_two_sizes_with_the_same_places_share_nothing(monkeypatch, used):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4, 3, 3, 3))
    for size in (8, 7, 8):  # with a stride of 2 both have 4 x 4 places
        both(monkeypatch, rng.normal(size=(2, 3, size, size)), w, None, None, stride=2, padding=1)


def test_layouts_and_views(monkeypatch, used):
    x = np.random.default_rng(0).normal(size=(16, 16, 3, 4))
    w = np.random.default_rng(1).normal(size=(3, 3, 4, 5))
    both(monkeypatch, x.transpose(3, 2, 0, 1), w.transpose(2, 3, 0, 1)[:, :3], None, None, padding=1)
    both(monkeypatch, x.transpose(3, 2, 1, 0)[::-1, :, ::-1], w.transpose(2, 3, 0, 1)[:, 1:4], None, None)


@pytest.mark.parametrize(("width", "channels"), [(16, 2), (13, 2), (16, 18), (13, 16)])
def test_infinities_and_nan_stay_where_they_belong(used, width, channels):
    rng = np.random.default_rng(0)
    for bad in (np.inf, -np.inf, np.nan):
        x, w = rng.normal(size=(2, channels, 9, width)).astype("f"), rng.normal(size=(3, channels, 3, 3)).astype("f")
        x[0, 0, 4, 0] = x[1, 1, 0, width - 1] = bad
        results = []
        for least in (0, 1 << 62):
            sliding.LEAST = least
            a, b = genesis.tensor(x, requires_grad=True), genesis.tensor(w, requires_grad=True)
            y = F.conv2d(a, b, padding=1)
            g = np.ones(y.shape, "f")
            g[0, :, 3:6, :2] = 0
            y.backward(genesis.tensor(g))
            results.append([np.isnan(v.detach().numpy()) for v in (y, a.grad, b.grad)])
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("channels", [3, 16])
def test_the_bits_do_not_depend_on_threads(monkeypatch, used, channels):
    monkeypatch.setattr(sliding, "BLOCK", 1 << 16)
    monkeypatch.setattr(sliding, "SHARE", 1)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(9, channels, 20, 21)).astype("f"), rng.normal(size=(5, channels, 3, 3)).astype("f")
    before, found = genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            genesis.set_num_threads(threads)
            a, b = genesis.tensor(x, requires_grad=True), genesis.tensor(w, requires_grad=True)
            y = F.conv2d(a, b, padding=1)
            (y * y).sum().backward()
            found.append((y, a.grad, b.grad))
    finally:
        genesis.set_num_threads(before)
    for one, other in itertools.pairwise(found):
        assert all(genesis.equal(p, q) for p, q in zip(one, other, strict=True))


def test_calls_from_many_threads(used):
    rng = np.random.default_rng(0)
    x, w = (
        genesis.tensor(rng.normal(size=(4, 3, 12, 12)).astype("f")),
        genesis.tensor(rng.normal(size=(4, 3, 3, 3)).astype("f")),
    )
    alone = F.conv2d(x, w, padding=1)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: F.conv2d(x, w, padding=1), range(40)):
            assert genesis.equal(found, alone)


def test_long_sums_keep_their_digits(used):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 512, 7, 16)).astype("f"), rng.normal(size=(4, 512, 3, 3)).astype("f")
    y = F.conv2d(genesis.tensor(x), genesis.tensor(w), padding=1).numpy()
    exact = F.conv2d(genesis.tensor(x.astype("d")), genesis.tensor(w.astype("d")), padding=1).numpy()
    assert np.abs(y - exact).max() < 1e-6 * np.abs(exact).max()


def test_small_ones_and_other_dtypes_take_the_other_way(monkeypatch):
    monkeypatch.setattr(sliding, "forward", None)
    assert F.conv2d(genesis.ones(1, 1, 4, 4), genesis.ones(1, 1, 3, 3)).shape == (1, 1, 2, 2)
    big = genesis.ones(8, 16, 32, 32, dtype=genesis.float64)
    assert F.conv2d(big, genesis.ones(16, 16, 3, 3, dtype=genesis.float64)).shape == (8, 16, 30, 30)
    shape = convolution.Shape((3, 3), (1, 1), (0, 0), (1, 1), 1, (30, 30))
    assert not sliding.takes(big.numpy(), 16, shape)
    assert sliding.takes(big.float().numpy(), 16, shape)


TRANSPOSED = [
    ((2, 3, 5, 6), (3, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 4, 5, 6), (4, 2, 2, 5), {"stride": (3, 2), "padding": (0, 2), "groups": 2}),
    ((1, 2, 7), (2, 3, 3), {"stride": 4, "output_padding": 1}),  # places that no element of the kernel reaches
    ((2, 2, 4, 5), (2, 3, 4, 3), {"stride": 2, "dilation": (1, 2), "padding": (4, 2)}),
    ((1, 2, 3, 4, 3), (2, 2, 2, 3, 3), {"stride": 2, "padding": 1}),
]


@pytest.mark.parametrize(("shape", "weight", "options"), TRANSPOSED)
def test_transposed_with_a_stride(monkeypatch, used, shape, weight, options):
    phases, original = [], convolution._by_phases
    monkeypatch.setattr(convolution, "_by_phases", lambda *args: (phases.append(1), original(*args))[1])
    rng = np.random.default_rng(0)
    values, weights, bias = (
        rng.normal(size=shape),
        rng.normal(size=weight),
        rng.normal(size=weight[1] * options.get("groups", 1)),
    )
    found = []
    for dtype in (np.float32, np.float64):
        x, w, b = (genesis.tensor(v.astype(dtype), requires_grad=True) for v in (values, weights, bias))
        y = getattr(F, f"conv_transpose{len(shape) - 2}d")(x, w, b, **options)
        y.backward(genesis.tensor(np.random.default_rng(1).normal(size=y.shape).astype(dtype)))
        found.append([v.detach().numpy() for v in (y, x.grad, w.grad, b.grad)])
    assert phases
    for one, exact in zip(*found, strict=True):
        np.testing.assert_allclose(one, exact, rtol=0, atol=3e-6 * np.abs(exact).max())
