"""Pooling, interpolation, reflected borders, windows as columns: kernels of tables, run by Python and by Triton's interpreter."""

from __future__ import annotations

import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.nn import functional as F


def tensor(*shape, dtype="float32"):
    genesis.manual_seed(3)
    return genesis.randn(*shape).to(getattr(genesis, dtype))


def with_gradient(function):
    def computed(x):
        x = x.detach().requires_grad_()
        out = function(x)
        out.float().square().sum().backward()
        return out, x.grad

    return computed


FORMS = {
    "largest of windows": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 3, 7, 6)),
    "largest of one dimension": (lambda x: F.max_pool1d(x, 2), (2, 3, 7)),
    "largest of volumes": (lambda x: F.max_pool3d(x, 2), (1, 2, 4, 5, 4)),
    "largest, far apart": (lambda x: F.max_pool2d(x, 2, 1, 0, 2, True), (1, 2, 6, 5)),
    "largest of cells": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), (2, 3, 7, 6)),
    "means of windows": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 7, 6)),
    "means of cells": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 7, 6)),
    "nearest": (lambda x: F.interpolate(x, size=(5, 9)), (2, 3, 7, 6)),
    "linear": (lambda x: F.interpolate(x, scale_factor=2, mode="linear"), (2, 3, 7)),
    "bilinear": (lambda x: F.interpolate(x, size=(5, 9), mode="bilinear", align_corners=True), (2, 3, 7, 6)),
    "bilinear, smooth": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), (2, 3, 7, 6)),
    "bicubic": (lambda x: F.interpolate(x, size=(5, 9), mode="bicubic"), (1, 2, 7, 6)),
    "reflected": (lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"), (2, 3, 7, 6)),
    "around": (lambda x: F.pad(x, (2, 1), mode="circular"), (2, 3, 7)),
    "columns": (lambda x: F.unfold(x, (3, 2), (1, 2), (1, 2), (2, 1)), (2, 3, 7, 6)),
    "columns back": (lambda x: F.fold(x, (5, 6), (3, 2), 1, (1, 0), (2, 1)), (2, 12, 15)),
    "transposed": (lambda x: F.avg_pool2d(x.transpose(2, 3), 2), (2, 3, 6, 7)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FORMS)
def test_results_and_gradients(name, way):
    function, shape = FORMS[name]
    with emulated(way):
        same(with_gradient(function), tensor(*shape), tolerance=2e-6)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["largest of windows", "means of windows", "bilinear", "columns back"])
def test_other_dtypes(name, dtype):
    function, shape = FORMS[name]
    with emulated():
        same(
            with_gradient(function),
            tensor(*shape, dtype=dtype),
            tolerance={"float64": 1e-12, "float16": 4e-3}.get(dtype, 3e-2),
        )


def test_nan_and_equals():
    nan, inf = float("nan"), float("inf")
    x = genesis.tensor([[1.0, 1.0, nan, 0.0, nan, 2.0, -inf, -inf, 5.0, inf]])
    with emulated():
        for size in (2, 3, 5):
            same(lambda x, size=size: F.max_pool1d(x, size, 1, return_indices=True), x)
        same(lambda x: F.max_pool1d(x, 2, return_indices=True), genesis.arange(8).reshape(1, 8).float())


def test_no_elements():
    with emulated():
        same(lambda x: F.interpolate(x, size=(4, 4)), genesis.zeros(0, 2, 3, 3))


def test_a_compiled_step_is_a_graph():
    """Tables are made outside of what a graph repeats."""
    with emulated():
        step = genesis.compile(lambda x: F.max_pool2d(F.interpolate(x, scale_factor=2, mode="bilinear"), 2).sum())
        for i in range(4):
            x = genesis.randn(1, 2, 4 + 0 * i, 5)
            there = step(x.to("cuda")).item()
            assert abs(there - F.max_pool2d(F.interpolate(x, scale_factor=2, mode="bilinear"), 2).sum().item()) < 1e-4
        (entry,) = step._recent
        assert entry.step.graphs == 1, entry.step.why


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_machine_code(dtype):
    names = ("largest of windows", "bilinear")
    made = started(lambda: [with_gradient(FORMS[n][0])(tensor(*FORMS[n][1], dtype=dtype).to("cuda")) for n in names])
    taps = {(k.source, a): (k, a) for k, a in made if type(k).__name__ == "Lanes" and "taps" in k.code.name}
    assert len(taps) >= 4
    for kernel, aligned in taps.values():
        machine_code(kernel, aligned)
