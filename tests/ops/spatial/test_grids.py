"""Reading at any places, and what treats channels as wholes, against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("dims", [2, 3])
def test_reading_is_that_of_pytorch(mode, padding_mode, dims):
    torch = pytest.importorskip("torch")
    if mode == "bicubic" and dims == 3:
        with pytest.raises(RuntimeError, match="mode 'bicubic' is for images"):
            F.grid_sample(genesis.ones(1, 1, 2, 2, 2), genesis.ones(1, 1, 1, 1, 3), mode)
        return
    rng = np.random.default_rng(0)
    for align, sizes in itertools.product((True, False), ((4, 5, 3), (1, 3, 2))):
        numbers, grid = (
            rng.normal(size=(2, 3, *sizes[:dims])),
            rng.uniform(-1.8, 1.8, size=(2, *(3, 4, 2)[:dims], dims)),
        )
        found = []
        for lib in (genesis, torch):
            x, g = lib.tensor(numbers).requires_grad_(), lib.tensor(grid).requires_grad_()
            y = lib.nn.functional.grid_sample(x, g, mode, padding_mode, align)
            grads = lib.autograd.grad((y**2).sum(), (x, g), create_graph=mode != "bicubic")
            second = []
            if mode == "bilinear":
                second = lib.autograd.grad((grads[0] ** 2).sum(), (x, g))
            found.append([z.detach().numpy() for z in (y, *grads, *second)])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 2), (2, 3, 2, 3, 1)])
def test_affine_grids_are_those_of_pytorch(align, size):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(2, len(size) - 2, len(size) - 1))
    a, b = (lib.nn.functional.affine_grid(lib.tensor(numbers), size, align_corners=align) for lib in (genesis, torch))
    np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


@pytest.mark.parity
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_local_response_norm_is_that_of_pytorch(size):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(2, 4, 3, 2))
    found = []
    for lib in (genesis, torch):
        x = lib.tensor(numbers).requires_grad_()
        y = lib.nn.functional.local_response_norm(x, size, 0.3, 0.6, 2.0)
        (y**2).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_whole_channels_are_dropped(name):
    dims = int(name[-2]) if name[-1] == "d" else 2
    genesis.manual_seed(0)
    x = genesis.ones(40, 50, *[3] * dims)
    y = getattr(F, name)(x, 0.3, True).flatten(2)
    assert (y == y[:, :, :1]).all()
    share = (y[:, :, 0] == y.max()).float().mean().item()
    assert abs(share - 0.7) < 0.04
    if "alpha" not in name:
        assert sorted({round(v, 4) for v in y.unique().tolist()}) == [0.0, round(1 / 0.7, 4)]


def test_alpha_dropout_keeps_mean_and_variance():
    genesis.manual_seed(1)
    x = genesis.randn(200_000)
    y = F.alpha_dropout(x, 0.3, True)
    assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.03
    assert F.alpha_dropout(x, 0.3) is x


@pytest.mark.parametrize("name", ["dropout1d", "dropout3d"])
def test_one_example_has_no_dimension_of_examples(name):
    dims = int(name[-2])
    genesis.manual_seed(0)
    y = getattr(F, name)(genesis.ones(64, *[4] * dims)).flatten(1)
    assert (y == y[:, :1]).all() and 0 < (y == 0).float().mean().item() < 1


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d"])
def test_dropout_in_place(name):
    dims = int(name[-2]) if name[-1] == "d" else 1
    x = genesis.ones(8, 9, *[2] * dims).requires_grad_()
    y = x * 1
    genesis.manual_seed(0)
    z = getattr(F, name)(y, 0.5, True, inplace=True)
    assert z is y
    genesis.manual_seed(0)
    w = getattr(F, name)(x, 0.5, True)
    assert genesis.equal(z, w)
    for a, b in zip(genesis.autograd.grad(z.sum(), x), genesis.autograd.grad(w.sum(), x), strict=True):
        assert genesis.equal(a, b)
    with pytest.raises(RuntimeError):
        getattr(F, name)(genesis.ones(2, 3, *[2] * dims).requires_grad_(), 0.5, True, inplace=True)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_borders_are_those_of_pytorch(mode, dtype):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).integers(-8, 8, (2, 3, 5, 6))
    for pad in ((1, 2), (0, 3), (5, 0), (4, 4, 3, 2), (2, 1, 0, 0), (-1, 2, 1, -2)):
        found = []
        for lib in (genesis, torch):
            x = lib.tensor(numbers.tolist()).to(getattr(lib, dtype)).requires_grad_()
            given = x if len(pad) > 2 else x[0]
            y = lib.nn.functional.pad(given, pad, mode)
            (gx,) = lib.autograd.grad((y * y * 0.5).sum(), x)
            found.append([t.detach().double().numpy() for t in (y, gx)])
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders_of_every_width(mode):
    of_numpy = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    for n in range(1, 6):
        x = genesis.arange(2.0 * n).reshape(2, n)
        most = {"reflect": n - 1, "replicate": 4, "circular": n}[mode]
        for before in range(most + 1):
            for after in range(most + 1):
                expected = np.pad(x.numpy(), ((0, 0), (before, after)), mode=of_numpy)
                assert genesis.nn.functional.pad(x, (before, after), mode).tolist() == expected.tolist()
