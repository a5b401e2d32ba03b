"""Compiled sums and maxima by rules: the bits of what NumPy computes by slices, and PyTorch's results of what is made of
them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.core.call.kinds import case
from genesis.core.call.op import REGISTRY
from genesis.kernels.cpu import pooling, sums
from genesis.kernels.cpu.compiled import LARGE
from genesis.kernels.llvm import loops
from genesis.ops.spatial.pooling import largest, window_means
from genesis.ops.spatial.tables import sizes_of
from genesis.testing import check_kernel

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")

RULES = {
    "windows that overlap, with padding": lambda n: ("windows", n, (n - 1) // 2 + 1, 3, 2, 1, 1),
    "pairs": lambda n: ("windows", n, n // 2, 2, 2, 0, 1),
    "neighbours": lambda n: ("windows", n, n, 3, 1, 1, 1),
    "windows apart": lambda n: ("windows", n, n // 3, 2, 3, 0, 1),
    "dilated": lambda n: ("windows", n, n - 2, 2, 1, 0, 2),
    "cells": lambda n: ("cells", n, 3),
    "reflect": lambda n: ("reflect", n, 2, 1),
    "replicate": lambda n: ("replicate", n, 0, 3),
    "circular": lambda n: ("circular", n, 1, 2),
    "nearest": lambda n: ("nearest", n, 2 * n, 2.0),
    "linear": lambda n: ("linear", n, n + 3, False, None, False),
    "smooth": lambda n: ("linear", n, max(n // 2, 1), False, None, True),
    "cubic": lambda n: ("cubic", n, 2 * n, True, None, False),
}
SHAPES = [(5, 4, 7), (2, 8, 10), (6, 40, 33), (4, 4, 17), (3, 6, 19)]


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def by_slices(x, rules, back):
    for i, rule in enumerate(reversed(rules)):
        x = REGISTRY["mix"].meaning(x, x.ndim - 1 - i, rule, back)
    return x


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_sums_have_the_bits_of_those_by_slices(rule, dims, back):
    for shape in SHAPES:
        rules = tuple(RULES[rule](n) for n in shape[-dims:])
        if not all(min(sizes_of(r)) for r in rules):
            continue
        x = numbers(2, *shape[:-dims], *[sizes_of(r, back)[0] for r in rules])
        for layout in (x, np.asfortranarray(x), x[::-1, ..., ::-1]):
            exact = by_slices(layout, rules, back)
            for count in (1, 4, 9):
                got = sums.by_rules(layout, rules, back, count)
                assert got.flags.c_contiguous
                np.testing.assert_array_equal(got, exact / np.float32(count))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_sums_along_one_of_several_dimensions(rule, back):
    one = RULES[rule](7)
    for dim in range(3):
        shape = [3, 4, 6]
        shape[dim] = sizes_of(one, back)[0]
        x = numbers(*shape)
        got = genesis.ops.spatial.sums.mix(genesis.tensor(x), dim, one, back).numpy()
        np.testing.assert_array_equal(got, REGISTRY["mix"].meaning(x, dim, one, back))


@pytest.mark.parametrize("rule", ["reflect", "replicate", "circular", "nearest"])
def test_what_is_moved_is_what_it_was(rule):
    rules = tuple(RULES[rule](n) for n in (4, 19))
    x = np.random.default_rng(0).choice(np.array([0, -0.0, 1, np.inf, np.nan], np.float32), (2, 4, 19))
    got, exact = sums.by_rules(x, rules), by_slices(x, rules, False)
    np.testing.assert_array_equal(got, exact)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(exact))


def test_the_sum_of_nothing_is_a_zero_without_a_sign():
    rules = (("windows", 7, 2, 2, 3, 0, 1),) * 2
    gradient = sums.by_rules(-numbers(1, 2, 2), rules, True)
    assert not gradient[0, 2].any() and not np.signbit(gradient[0, 2]).any() and not np.signbit(gradient[0, :, 2]).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_in_its_windows(value):
    x = numbers(1, 1, 6, 21)
    x[0, 0, 2, 4] = value
    for run in (
        lambda t: F.avg_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 2, 1),
        lambda t: F.pad(t, (2, 1, 0, 1), "reflect"),
    ):
        leaf = genesis.tensor(x, requires_grad=True)
        out = run(leaf)
        clean = run(genesis.tensor(np.where(np.isfinite(x), x, 0)))
        wrong = ~np.isfinite(out.detach().numpy())
        assert 0 < wrong.sum() < 4
        np.testing.assert_array_equal(out.detach().numpy()[~wrong], clean.numpy()[~wrong])
        out.sum().backward()
        assert np.isfinite(leaf.grad.numpy()).all()


@pytest.mark.parametrize(
    ("run", "shape"),
    [
        (lambda x: F.avg_pool2d(x, 2), (0, 3, 4, 4)),
        (lambda x: F.max_pool2d(x, 3, 1, 1), (0, 3, 4, 4)),
        (lambda x: F.pad(x, (1, 1), "reflect"), (0, 3, 4)),
        (lambda x: F.adaptive_avg_pool2d(x, 2), (2, 0, 4, 4)),
    ],
)
def test_no_examples_or_no_channels(run, shape):
    x = genesis.zeros(*shape, requires_grad=True)
    run(x).sum().backward()
    assert x.grad.shape == shape and run(x).shape[:2] == shape[:2]


@pytest.mark.parametrize("rule", ["windows that overlap, with padding", "pairs", "neighbours", "dilated"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_largest_and_its_gradient(monkeypatch, rule, dims):
    for shape in SHAPES:
        rules = tuple(RULES[rule](n) for n in shape[-dims:])
        x = np.random.default_rng(0).integers(-4, 4, (2, *shape)).astype(np.float32)
        x.reshape(-1)[:: max(x.size // 5, 1)] = np.nan
        x.reshape(-1)[-3:-1] = np.nan
        found = []
        for there in (True, False):
            monkeypatch.setattr(loops, "available", lambda there=there: there)
            leaf = genesis.tensor(x, requires_grad=True)
            out = largest(leaf, rules)
            out.backward(genesis.tensor(numbers(*out.shape)))
            found.append((out.detach().numpy(), leaf.grad.numpy()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


CALLS = {
    "avg_pool1d": (lambda F, x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 11)),
    "avg_pool2d": (lambda F, x: F.avg_pool2d(x, 2), (1, 2, 8, 10)),
    "avg_pool2d, some not whole": (lambda F, x: F.avg_pool2d(x, 3, 2, 1, True, False), (2, 3, 8, 11)),
    "avg_pool3d": (lambda F, x: F.avg_pool3d(x, 2, 1), (2, 3, 4, 5, 6)),
    "adaptive_avg_pool2d": (lambda F, x: F.adaptive_avg_pool2d(x, (3, 2)), (1, 2, 8, 11)),
    "max_pool1d": (lambda F, x: F.max_pool1d(x, 3, 2, 1), (2, 3, 11)),
    "max_pool2d": (lambda F, x: F.max_pool2d(x, 2), (1, 2, 8, 10)),
    "max_pool2d, overlapping": (lambda F, x: F.max_pool2d(x, 3, 1, 1), (2, 3, 5, 21)),
    "max_pool3d": (lambda F, x: F.max_pool3d(x, 2), (2, 3, 4, 5, 6)),
    "nearest": (lambda F, x: F.interpolate(x, scale_factor=2), (1, 2, 8, 10)),
    "area": (lambda F, x: F.interpolate(x, (3, 4), mode="area"), (1, 2, 8, 10)),
    "bilinear": (lambda F, x: F.interpolate(x, (5, 21), mode="bilinear"), (1, 2, 8, 10)),
    "bicubic": (lambda F, x: F.interpolate(x, scale_factor=1.7, mode="bicubic", align_corners=True), (1, 2, 8, 10)),
    "smaller": (lambda F, x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True), (1, 2, 8, 10)),
    "trilinear": (lambda F, x: F.interpolate(x, 4, mode="trilinear"), (1, 2, 3, 5, 2)),
    "reflect": (lambda F, x: F.pad(x, (3, 1, 0, 2), "reflect"), (1, 2, 8, 10)),
    "reflect, with less": (lambda F, x: F.pad(x, (3, -1, 0, 2), "reflect"), (1, 2, 8, 10)),
    "replicate": (lambda F, x: F.pad(x, (3, 1, 0, 2, 1, 1), "replicate"), (2, 2, 3, 4, 5)),
    "circular": (lambda F, x: F.pad(x, (3, 1), "circular"), (2, 8, 10)),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", CALLS)
def test_pytorch_has_the_same_results_and_gradients(name):
    torch = pytest.importorskip("torch")
    run, shape = CALLS[name]
    x, found = numbers(*shape), []
    for lib in (genesis, torch):
        leaf = lib.tensor(x, requires_grad=True)
        out = run(lib.nn.functional, leaf)
        out.backward(lib.tensor(numbers(*out.shape)))
        found.append((out.detach().numpy(), leaf.grad.numpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-6 * max(np.abs(b).max(), 1))


@pytest.mark.parametrize("name", CALLS)
def test_gradients_by_finite_differences_of_wide_numbers(name):
    run, shape = CALLS[name]
    x, direction = numbers(*shape).astype(np.float64), np.random.default_rng(1).standard_normal(shape)
    leaf = genesis.tensor(x.astype(np.float32), requires_grad=True)
    out = run(F, leaf)
    g = numbers(*out.shape)
    out.backward(genesis.tensor(g))
    ends = [run(F, genesis.tensor(x + s * 1e-6 * direction)).numpy() for s in (1, -1)]
    slope = ((ends[0] - ends[1]) * g).sum() / 2e-6
    np.testing.assert_allclose((leaf.grad.numpy() * direction).sum(), slope, rtol=0, atol=2e-4 * math.sqrt(x.size))


def test_the_kernels_are_what_their_ops_mean():
    rules = (RULES["neighbours"](5), RULES["cells"](7))
    x = genesis.tensor(numbers(2, 5, 7), requires_grad=True)
    check_kernel(REGISTRY["window_means"], case(x, rules, 3))
    check_kernel(REGISTRY["mix"], case(x, 1, rules[0]))
    check_kernel(REGISTRY["largest"], case(x, (rules[0], RULES["neighbours"](7))))


@pytest.mark.parametrize("call", [lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1)])
def test_the_same_bits_in_any_number_of_threads(monkeypatch, call):
    monkeypatch.setitem(LARGE, "for threads", 1)
    x, before, results = genesis.tensor(numbers(7, 3, 20, 21)), genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            genesis.set_num_threads(threads)
            leaf = x.clone().requires_grad_()
            out = call(leaf)
            out.square().sum().backward()
            results.append((out.detach().numpy(), leaf.grad.numpy()))
    finally:
        genesis.set_num_threads(before)
    for others in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], others, strict=True))


def test_arguments_that_are_equal_and_of_other_classes_are_told_apart():
    x = genesis.tensor(numbers(1, 1, 4, 4))
    assert F.interpolate(x, 2).shape == F.interpolate(x, (2, 2)).shape
    assert F.max_pool2d(x, 1).shape == x.shape and F.pad(x[0], (1, 1), "reflect").shape == (1, 4, 6)
    for wrong in (lambda: F.interpolate(x, 2.0), lambda: F.interpolate(x, (2.0, 2)), lambda: F.max_pool2d(x, 1.0),
                  lambda: F.pad(x[0], (1.0, 1), "reflect")):  # fmt: skip
        with pytest.raises(TypeError):
            wrong()


def test_compiled_steps_have_the_same_bits():
    def step(x):
        y = F.pad(F.avg_pool2d(F.interpolate(x, scale_factor=2, mode="bilinear"), 3, 2, 1), (1, 1, 1, 1), "reflect")
        z = F.max_pool2d(y, 3, 1, 1)
        return z, *genesis.autograd.grad((z * z).sum(), (x,))

    x = genesis.tensor(numbers(1, 2, 5, 6), requires_grad=True)
    for a, b in zip(genesis.compile(step)(x), step(x), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_few_windows_of_many_images_stay_a_product_of_matrices(monkeypatch):
    calls, original = [], pooling._sums
    monkeypatch.setattr(pooling, "_sums", lambda *args: (calls.append(1), original(*args))[1])
    F.adaptive_avg_pool2d(genesis.zeros(1, 2, 8, 8), 2)
    assert not calls
    F.adaptive_avg_pool2d(genesis.zeros(4, 16, 8, 8), 2)
    assert calls
    assert window_means(genesis.ones(4), (("windows", 4, 2, 2, 2, 0, 1),), 2).tolist() == [1, 1]
