"""Interpolation, folds and shuffles against PyTorch's, over random arguments."""

from __future__ import annotations

import random

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F

DIMS = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}  # fmt: skip


def _arguments(mode, seed):
    rng = random.Random(f"{mode}{seed}")
    dims = rng.choice(DIMS[mode])
    shape = (2, 2, *[rng.choice([1, 2, 3, 5, 8]) for _ in range(dims)])
    more = {"mode": mode}
    if rng.random() < 0.5:
        more["size"] = tuple(rng.choice([1, 2, 3, 4, 7, 11]) for _ in range(dims))
    else:
        factors = [0.4, 0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 2.6]
        more["scale_factor"] = (
            rng.choice(factors) if rng.random() < 0.5 else tuple(rng.choice(factors) for _ in range(dims))
        )
        more["recompute_scale_factor"] = rng.choice([None, True, False])
    if "linear" in mode or "cubic" in mode:
        more["align_corners"] = rng.choice([None, True, False])
    if mode in ("bilinear", "bicubic"):
        more["antialias"] = rng.random() < 0.4
    return shape, more


@pytest.mark.parity
@pytest.mark.parametrize("mode", DIMS)
def test_interpolation_is_that_of_pytorch(mode):
    torch = pytest.importorskip("torch")
    for seed in range(120):
        shape, more = _arguments(mode, seed)
        numbers = np.random.default_rng(seed).normal(size=shape)
        found = []
        for lib in (genesis, torch):
            x = lib.tensor(numbers).requires_grad_()
            try:
                y = lib.nn.functional.interpolate(x, **more)
                (y**2).sum().backward()
            except (RuntimeError, ValueError) as error:
                found.append(error)
                continue
            found.append([y.detach().numpy(), x.grad.numpy()])
        assert isinstance(found[0], Exception) == isinstance(found[1], Exception), (shape, more, found)
        if isinstance(found[0], Exception):
            continue
        if more.get("antialias") and 1 in (shape[-1], found[0][0].shape[-1]):
            continue  # PyTorch 2.13 reads the first row only
        by_factor = "scale_factor" in more and more.get("recompute_scale_factor") is not True
        same = any(m in (n, 2 * n) for n, m in zip(shape[2:], found[0][0].shape[2:], strict=True))
        if by_factor and same and (mode in ("nearest", "bicubic") or more.get("antialias")):
            continue  # there it depends on the path whether the factor or the sizes count, and gradients take another
        for a, b in zip(*found, strict=True):
            assert a.shape == b.shape, (shape, more)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=str((shape, more)))


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_precision(mode, dtype):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(1, 3, 9, 7)).astype("float32")
    a, b = (
        lib.nn.functional.interpolate(lib.tensor(numbers).to(getattr(lib, dtype)), scale_factor=(1.7, 0.6), mode=mode)
        for lib in (genesis, torch)
    )
    assert str(a.dtype).split(".")[1] == dtype
    np.testing.assert_allclose(
        a.float().numpy(), b.float().numpy(), rtol=2e-2, atol=1e-2 if dtype == "bfloat16" else 2e-6
    )


def test_a_number_that_is_not_one_stays_where_it_is():
    x = genesis.tensor([[[1.0, float("nan"), 2.0, 3.0, 4.0, 5.0]]])
    assert F.interpolate(x, 3).isnan().tolist() == [[[False, False, False]]]
    assert F.interpolate(x, 3, mode="area").isnan().tolist() == [[[True, False, False]]]
    assert F.avg_pool1d(x, 2, 1, 1).isnan().tolist() == [[[False, True, True, False, False, False, False]]]


def test_nearest_elements_keep_the_sign_of_a_zero():
    for size in (3, 40):
        out = F.interpolate(genesis.tensor([[[-0.0, 0.0]]]), size=size)
        assert genesis.signbit(out).sum().item() == -(-size // 2)


@pytest.mark.parity
@pytest.mark.parametrize("seed", range(40))
def test_folds_are_those_of_pytorch(seed):
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    some = lambda values: rng.choice(values) if rng.random() < 0.5 else (rng.choice(values), rng.choice(values))  # noqa: E731
    sizes = (rng.choice([3, 4, 6]), rng.choice([2, 5]))
    options = {"dilation": some([1, 2]), "padding": some([0, 1]), "stride": some([1, 2])}
    kernel = some([1, 2, 3])
    numbers = np.random.default_rng(seed).normal(size=(*[2] * rng.choice([0, 1]), 3, *sizes))
    found = []
    for lib in (genesis, torch):
        f = lib.nn.functional
        x = lib.tensor(numbers).requires_grad_()
        try:
            y = f.unfold(x, kernel, **options)
            z = f.fold(y * y, sizes, kernel, **options)
        except RuntimeError as error:
            found.append(error)
            continue
        (z**2).sum().backward()
        found.append([t.detach().numpy() for t in (y, z, x.grad)])
    assert isinstance(found[0], Exception) == isinstance(found[1], Exception), found
    for a, b in zip(*found, strict=True) if isinstance(found[0], list) else ():
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parity
def test_shuffles_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(2, 3, 18, 6, 9))
    for name, x, factor in (
        ("pixel_shuffle", numbers, 3),
        ("pixel_unshuffle", numbers, 3),
        ("channel_shuffle", numbers[0], 6),
    ):
        a, b = (getattr(lib, name)(lib.tensor(x), factor).numpy() for lib in (genesis, torch))
        np.testing.assert_array_equal(a, b)
        assert getattr(F, name) is getattr(genesis, name)


def test_old_names_warn():
    with pytest.warns(UserWarning, match="upsample_bilinear is deprecated, call interpolate"):
        assert F.upsample_bilinear(genesis.ones(1, 1, 2, 2), 3).shape == (1, 1, 3, 3)
