"""Pooling, interpolation, reflected borders, windows as columns: kernels of tables, run by Python and by Triton's interpreter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.cuda.kernels import pooling_tiles
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
    "largest, places, too": (lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True)[0], (2, 3, 5, 6)),
    "largest of many": (lambda x: F.max_pool2d(x, 7, 1, 3), (1, 2, 9, 8)),
    "largest of more than 256": (lambda x: F.max_pool2d(x, 17, 1, 8), (1, 1, 18, 19)),
    "largest of all": (lambda x: F.adaptive_max_pool2d(x, 1), (2, 3, 7, 6)),
    "largest of one example": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (3, 8, 6)),
    "largest of every other": (lambda x: F.max_pool2d(x[:, :, ::2, 1:], 2), (2, 3, 8, 7)),
    "largest, expanded": (lambda x: F.max_pool2d(x.expand(2, 3, 6, 6), 2, 1), (1, 3, 1, 6)),
    "means without borders": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 3, 7, 6)),
    "means of volumes": (lambda x: F.avg_pool3d(x, 2, 1, 1), (1, 2, 4, 5, 4)),
    "means of cells": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (2, 3, 7, 6)),
    "nearest": (lambda x: F.interpolate(x, size=(5, 9)), (2, 3, 7, 6)),
    "linear": (lambda x: F.interpolate(x, scale_factor=2, mode="linear"), (2, 3, 7)),
    "bilinear": (lambda x: F.interpolate(x, size=(5, 9), mode="bilinear", align_corners=True), (2, 3, 7, 6)),
    "bilinear, smooth": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), (2, 3, 7, 6)),
    "bilinear, smooth, of many": (
        lambda x: F.interpolate(x, size=(2, 3), mode="bilinear", antialias=True),
        (1, 2, 21, 24),
    ),
    "means of large cells": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (1, 2, 21, 25)),
    "area": (lambda x: F.interpolate(x, size=(4, 3), mode="area"), (2, 3, 7, 6)),
    "bicubic": (lambda x: F.interpolate(x, size=(5, 9), mode="bicubic"), (1, 2, 7, 6)),
    "padded": (lambda x: F.pad(x, (2, 1, 1, 2), value=1.5), (2, 3, 7, 6)),
    "padded and cut": (lambda x: F.pad(x, (2, -1, -1, -2)), (2, 3, 7, 6)),
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", ["largest of windows", "means of windows", "means without borders", "bilinear", "nearest"]
)
def test_channels_last_stays(name, way):
    """Results and gradients lie as the input does, where channels are innermost."""
    function, (n, _, h, w) = FORMS[name]
    x = tensor(n, h, w, 16).permute(0, 3, 1, 2)
    with emulated(way):
        same(with_gradient(function), x, tolerance=2e-6)
        out, gradient = with_gradient(function)(x.to("cuda"))
        assert gradient.stride() == x.stride() and out.is_contiguous(memory_format=genesis.channels_last)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["largest of windows", "means of windows", "bilinear", "nearest"])
def test_a_launch_each_way(name, dtype):
    """Neither a sort nor a conversion: the forward is a launch, and so is its gradient."""
    function, shape = FORMS[name]

    def computed():
        out = function(x := tensor(*shape, dtype=dtype).to("cuda").requires_grad_())
        out.backward(out.detach())
        assert x.grad is not None

    kinds = [(type(kernel).__name__, kernel.form.kind) for kernel, _ in started(computed)]
    assert kinds == ([("Tiles", "largest"), ("Tiles", "back")] if "largest" in name else [("Tiles", "sum")] * 2)


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_second_derivatives_and_transforms(pool):
    def second(x):
        x = x.detach().requires_grad_()
        (first,) = genesis.autograd.grad(pool(x, 3, 2, 1).pow(3).sum(), [x], create_graph=True)
        return genesis.autograd.grad(first.square().sum(), [x])[0]

    def mapped(x):
        return genesis.func.vmap(genesis.func.grad(lambda a: pool(a, 3, 2, 1).square().sum()))(x)

    def forward_mode(x):
        return genesis.func.jvp(lambda a: pool(a, 2, 1), (x,), (x.cos(),))[1]

    with emulated():
        for function in (second, mapped, forward_mode):
            same(function, tensor(2, 3, 6, 5), tolerance=2e-5)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "name", ["largest of windows", "largest of volumes", "means of windows", "bilinear", "columns back"]
)
def test_other_dtypes(name, dtype):
    function, shape = FORMS[name]
    with emulated():
        same(
            with_gradient(function),
            tensor(*shape, dtype=dtype),
            tolerance={"float64": 1e-12, "float16": 4e-3}.get(dtype, 3e-2),
        )


@pytest.mark.parametrize(("examples", "long"), [(128, False), (4096, True)])
def test_offsets_are_of_32_bits_where_these_do(examples, long):
    """Those of the largest images of a batch, and of the batch that is too large for it."""

    def array(*shape):
        _, c, h, w = shape
        return SimpleNamespace(shape=shape, strides=(h * w * c, 1, w * c, c), dtype=np.dtype(np.float32))

    arrays = array(examples, 64, 112, 112), array(examples, 64, 56, 56)
    taps = SimpleNamespace(counts=(2, 2), weighted=False, whole=True)
    kernel, grid, _ = pooling_tiles._made("sum", arrays, 1, (2, 3), taps, 4)
    assert kernel.form.long is long and kernel.warps == (8 if long else 4)
    assert grid[0] * kernel.form.rows * kernel.form.columns == examples * 64 * 56 * 56


def test_nan_and_equals():
    nan, inf = float("nan"), float("inf")
    x = genesis.tensor([[1.0, 1.0, nan, 0.0, nan, 2.0, -inf, -inf, 5.0, inf]])
    with emulated():
        for size in (2, 3, 5):
            same(lambda x, size=size: F.max_pool1d(x, size, 1, return_indices=True), x)
        same(lambda x: F.max_pool1d(x, 2, return_indices=True), genesis.arange(8).reshape(1, 8).float())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["largest of windows", "means of windows", "bilinear"])
def test_gradients_that_are_one_number(name, way):
    """They are read where it is, whatever is innermost."""
    function, (n, _, h, w) = FORMS[name]

    def graded(x):
        x = x.detach().requires_grad_()
        function(x).sum().backward()
        return x.grad

    with emulated(way):
        for x in (
            tensor(n, 4, h, w),
            tensor(n, h, w, 4).permute(0, 3, 1, 2),
            tensor(1, 1, h, w),
            tensor(n, 1, h, 1).expand(n, 4, h, w),
        ):
            same(graded, x, tolerance=2e-6)


@pytest.mark.parametrize("way", WAYS)
def test_what_moves_elements_keeps_the_sign_of_a_zero(way):
    with emulated(way):
        x = genesis.tensor([[[-0.0, 0.0, -1.0]]])
        for moved in (lambda x: F.interpolate(x, size=7), lambda x: F.pad(x, (2, 1), mode="reflect")):
            same(lambda x, moved=moved: genesis.signbit(moved(x)), x)


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


def test_tables_that_graphs_read_stay(monkeypatch):
    """Others are made anew when there are many."""
    monkeypatch.setattr(pooling_tiles, "TABLES", 4)
    with emulated():
        step, x = genesis.compile(lambda x: F.max_pool2d(x, 3, 2, 1)), tensor(1, 2, 9, 9)
        for _ in range(3):
            step(x.to("cuda"))
        for size in range(2, 20):
            same(lambda x, size=size: F.interpolate(x, size=(size, size)), x)
            assert genesis.full((64,), -7, dtype=genesis.int32, device="cuda").sum().item() == -448
        assert step._recent[0].step.graphs
        same(lambda x: step(x) if x.device.type == "cuda" else F.max_pool2d(x, 3, 2, 1), x)


def test_compiled_steps_pool_so():
    """A step has a call each for a pool and its gradient, in the layout of their input."""

    def computed(x):
        x = x.detach().requires_grad_()
        out = F.max_pool2d(x * 2, 3, 2, 1)
        (out * out).sum().backward()
        return out, x.grad

    with emulated():
        for dtype, tolerance in (("float32", 1e-6), ("bfloat16", 3e-2)):
            x = tensor(2, 6, 5, 8, dtype=dtype).permute(0, 3, 1, 2)
            step = genesis.compile(computed)
            for _ in range(3):
                same(lambda x, step=step: step(x) if x.device.type == "cuda" else computed(x), x, tolerance=tolerance)
            out, gradient = step(x.to("cuda"))
            assert gradient.stride() == x.stride() and out.is_contiguous(memory_format=genesis.channels_last)
            said = str(step._recent[0].step.explain())
            assert said.count("call ") == 2 and "max_places" not in said and "scatter" not in said, said


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_machine_code(dtype):
    names = ("largest of windows", "largest of many", "means of windows", "bilinear")
    made = started(lambda: [with_gradient(FORMS[n][0])(tensor(*FORMS[n][1], dtype=dtype).to("cuda")) for n in names])
    tiles = {(k.source, a): (k, a) for k, a in made if type(k).__name__ == "Tiles"}
    assert len(tiles) >= 8
    for kernel, aligned in tiles.values():
        machine_code(kernel, aligned)


@needs_triton
@pytest.mark.slow
def test_channels_are_read_16_bytes_at_once(monkeypatch):
    """Forward and backward, of 16-bit floats whose channels are innermost; numbers of elements are bytes."""
    monkeypatch.setattr(pooling_tiles, "FEWEST", 1)
    x = tensor(1, 4, 112, 64, dtype="bfloat16").permute(0, 3, 1, 2)

    def computed():
        out = F.max_pool2d(given := x.to("cuda").requires_grad_(), 3, 2, 1)
        out.backward(out.detach())
        assert given.grad is not None

    tiles = {k.form.kind: (k, a) for k, a in started(computed) if type(k).__name__ == "Tiles"}
    forward, back = (machine_code(*tiles[kind]) for kind in ("largest", "back"))
    assert forward.count("LDG.E.128") == 9 and "STG.E.128" in forward and "STG.E.64" in forward
    assert back.count("LDG.E.128") == back.count("LDG.E.64") == 4 and "STG.E.128" in back
