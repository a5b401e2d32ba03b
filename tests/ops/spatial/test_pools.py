"""Pooling against PyTorch's, over random arguments: values, places, refusals, gradients of first and second order."""

from __future__ import annotations

import random

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F

STEMS = ["max_pool", "avg_pool", "lp_pool", "adaptive_avg_pool", "adaptive_max_pool", "fractional_max_pool"]

# what PyTorch refuses in some numbers of dimensions only
NARROWER = ("smaller than kernel size", "too large relative to input")


def _arguments(stem, seed):
    rng = random.Random(f"{stem}{seed}")
    dims = rng.choice([2, 3] if stem == "fractional_max_pool" else [1, 2, 3])
    some = lambda values: rng.choice(values) if rng.random() < 0.6 else tuple(rng.choice(values) for _ in range(dims))  # noqa: E731
    shape = (*([2] * (rng.random() < 0.7)), 2, *[rng.choice([1, 2, 4, 5, 7]) for _ in range(dims)])
    more = {}
    if stem.startswith("adaptive"):
        args = (some([1, 2, 3, 5]),) if dims == 1 or rng.random() < 0.8 else ((None,) * (dims - 1) + (2,),)
    elif stem == "fractional_max_pool":
        args, more = (some([1, 2]), some([1, 2, 3])), {"_random_samples": (2, 2, dims)}
    else:
        some = (lambda values: rng.choice(values)) if stem == "lp_pool" and dims == 1 else some
        args = (some([1, 2, 3]), some([1, 2, 3]) if rng.random() < 0.7 else None)
        if stem == "lp_pool":
            return f"lp_pool{dims}d", shape, (rng.choice([1.0, 2.0, 3.0]), *args), {"ceil_mode": rng.random() < 0.4}
        more = {"padding": some([0, 1]), "ceil_mode": rng.random() < 0.4}
    if stem == "avg_pool":
        more["count_include_pad"] = rng.random() < 0.5
        if dims > 1 and rng.random() < 0.3:
            more["divisor_override"] = rng.choice([1, 3])
    if stem == "max_pool":
        more["dilation"] = some([1, 2])
    if "max" in stem:
        more["return_indices"] = True
    return f"{stem}{dims}d", shape, args, more


def _derivatives(lib, name, numbers, args, more):
    x = lib.tensor(numbers).requires_grad_()
    if "_random_samples" in more:
        shape = (
            *(numbers.shape[: -int(name[-2])] if numbers.ndim - int(name[-2]) == 2 else (1, numbers.shape[0])),
            int(name[-2]),
        )
        more = {**more, "_random_samples": lib.tensor(np.random.default_rng(0).uniform(size=shape))}
    try:
        out = getattr(lib.nn.functional, name)(x, *args, **more)
    except (RuntimeError, ValueError) as error:
        return error
    out, *places = out if isinstance(out, tuple) else (out,)
    (g,) = lib.autograd.grad((out**2).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad((g**3).sum(), x)
    return [t.detach().numpy() for t in (out, *places, g, second)]


@pytest.mark.parity
@pytest.mark.parametrize("stem", STEMS)
def test_random_arguments(stem):
    torch = pytest.importorskip("torch")
    for seed in range(150):
        name, shape, args, more = _arguments(stem, seed)
        rng = np.random.default_rng(seed)
        numbers = rng.permutation(np.prod(shape)).reshape(shape) / 4 + 0.25
        if stem in ("max_pool", "adaptive_max_pool") and seed % 3 == 0:  # equals
            numbers = np.floor(numbers / 4)
        ours = _derivatives(genesis, name, numbers, args, more)
        if "sees nothing" in str(ours):
            continue  # PyTorch reads and writes elsewhere in memory
        theirs = _derivatives(torch, name, numbers, args, more)
        what = str((name, shape, args, more))
        if any(words in str(theirs) for words in NARROWER):
            continue
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), (what, ours, theirs)
        for a, b in zip(ours, theirs, strict=True) if not isinstance(ours, Exception) else ():
            assert a.shape == b.shape and a.dtype == b.dtype, what
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=what)


@pytest.mark.parity
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_special_numbers_and_16_bits(dims):
    """NaN and infinities, in the forward and in where the gradient goes; the dtype of 16-bit floats and integers."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(dims)
    numbers = rng.normal(size=(2, *[6] * dims))
    numbers[rng.uniform(size=numbers.shape) < 0.15] = np.nan
    numbers[rng.uniform(size=numbers.shape) < 0.3] = -np.inf
    for name, args in ((f"max_pool{dims}d", (3, 2, 1, 1, True, True)), (f"adaptive_max_pool{dims}d", (4, True))):
        found = []
        for lib in (genesis, torch):
            x = lib.tensor(numbers).requires_grad_()
            out, places = getattr(lib.nn.functional, name)(x, *args)
            out.sum().backward()
            found.append((out.detach().numpy(), places.numpy(), x.grad.numpy()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)
    whole = np.abs(rng.normal(size=(1, 2, *[6] * dims)))
    for name, args in (("max_pool", (2,)), ("avg_pool", (3, 2, 1)), ("adaptive_avg_pool", (4,)), ("lp_pool", (2.0, 2))):
        pool = f"{name}{dims}d"
        a = getattr(F, pool)(genesis.tensor(whole).to(genesis.bfloat16), *args)
        try:
            b = getattr(torch.nn.functional, pool)(torch.tensor(whole).to(torch.bfloat16), *args)
        except NotImplementedError:
            continue
        assert a.dtype is genesis.bfloat16
        np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=2**-7)


@pytest.mark.parity
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_is_that_of_pytorch(dims):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).normal(size=(2, 3, *[7] * dims))
    for args, size in (((7, 7), None), ((2,), [7] * dims), ((3, 2, 1), None), ((2,), [2, 3, *[7] * dims])):
        found = []
        for lib in (genesis, torch):
            f, x = lib.nn.functional, lib.tensor(numbers)
            values, places = getattr(f, f"max_pool{dims}d")(x, *args, return_indices=True)
            values = values.detach().requires_grad_()
            out = getattr(f, f"max_unpool{dims}d")(values, places, *args, output_size=size)
            (out**2).sum().backward()
            found.append((out.detach().numpy(), values.grad.numpy()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="output_size"):
        getattr(F, f"max_unpool{dims}d")(
            genesis.ones(2, *[2] * dims), genesis.zeros(2, *[2] * dims).long(), 2, output_size=[9] * dims
        )


def test_random_windows_are_drawn_in_order():
    x = genesis.arange(49.0).reshape(1, 1, 7, 7)
    genesis.manual_seed(0)
    a = F.fractional_max_pool2d(x, 2, output_ratio=0.5)
    genesis.manual_seed(0)
    assert genesis.equal(a, F.fractional_max_pool2d(x, 2, output_size=(3, 3))) and a.shape == (1, 1, 3, 3)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["avg_pool1d", "avg_pool2d", "avg_pool3d", "local_response_norm"])
def test_means_of_integers_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(0).integers(-9, 9, (2, 3, *[5] * int(name[-2] if name[-1] == "d" else 1)))
    for more in [{}] if name == "local_response_norm" else [{}, {"padding": 1, "count_include_pad": False}]:
        a, b = (getattr(lib.nn.functional, name)(lib.tensor(numbers), 2, **more) for lib in (genesis, torch))
        assert str(a.dtype).endswith(str(b.dtype).removeprefix("torch."))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_what_was_seen_before_is_looked_at_again_where_it_differs():
    x = genesis.arange(36.0).reshape(1, 1, 6, 6)
    assert F.max_pool2d(x, 1).shape == F.max_pool2d(x, 1).shape == (1, 1, 6, 6)
    with pytest.raises(TypeError):
        F.max_pool2d(x, True)  # equal to 1, no integer
    assert F.max_pool2d(x[..., :4], 2).shape == (1, 1, 3, 2)
    assert F.adaptive_avg_pool2d(x, 3).shape == (1, 1, 3, 3)
    with pytest.raises(TypeError):
        F.adaptive_avg_pool2d(x, 3.0)


@pytest.mark.parametrize("count", [4, 3, -4])
def test_means_of_what_is_not_finite(count):
    x = genesis.tensor([[[1.0, 2.0, float("inf"), 4.0], [5.0, 6.0, 7.0, float("nan")]]] * 2, requires_grad=True)
    y = F.avg_pool2d(x, 2, divisor_override=count)
    want = [[14.0 / count, float("nan")]]
    np.testing.assert_array_equal(y.detach().numpy(), np.float32([want] * 2))
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, 2, 4), np.float32(1) / np.float32(count)))
