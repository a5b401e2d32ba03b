"""Compiled `grid_sample`: beside the composition in float64, at borders and beyond, in any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import compiled
from genesis.kernels.llvm import loops

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite")
BORDERS = ["zeros", "border", "reflection"]
MODES = ["bilinear", "nearest"]


def pulled(x, grid, g, *options, mode="bilinear"):
    """The result and both gradients."""
    leaves = [t.detach().requires_grad_() for t in (x, grid)]
    out = F.grid_sample(*leaves, mode, *options)
    assert (type(out._node).__name__ == "GridSampleBackward") == (x.dtype == genesis.float32)
    return [t.detach().numpy() for t in (out, *genesis.autograd.grad(out, leaves, g))]


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "points"),
    [
        ((2, 3, 8, 9), (5, 7)),
        ((3, 4, 1, 5), (1, 33)),
        ((1, 9, 7, 1), (4, 4)),
        ((2, 2, 3, 4), (1, 3)),
        ((2, 1, 3, 4), (0, 3)),
    ],
)
def test_results_and_gradients(shape, points, border, corners, mode):
    # multiples of 1/64 as positions: at the same side of elements, borders and mirrors in both formats
    rng = np.random.default_rng(0)
    grid = (rng.integers(-160, 160, (shape[0], *points, 2)) + 0.5) / 64
    x, g = rng.standard_normal(shape), rng.standard_normal((*shape[:2], *points))
    wide = [genesis.tensor(a) for a in (x, grid, g)]
    exact = pulled(*wide, border, corners, mode=mode)
    for layout in (lambda t: t, lambda t: t.transpose(1, -1).contiguous().transpose(1, -1)):
        found = pulled(*[layout(t.float()) for t in wide], border, corners, mode=mode)
        for a, b in zip(found, exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=4e-6 * np.abs(b).max(initial=1))


@pytest.mark.parity
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_pytorch_reads_the_same(border, corners, mode):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, grid, g = (
        rng.standard_normal((2, 3, 8, 9)),
        rng.random((2, 5, 7, 2)) * 3 - 1.5,
        rng.standard_normal((2, 3, 5, 7)),
    )
    narrow = [a.astype(np.float32) for a in (x, grid, g)]
    leaves = [torch.tensor(a, requires_grad=True) for a in narrow[:2]]
    out = torch.nn.functional.grid_sample(*leaves, mode, border, corners)
    theirs = [out.detach(), *torch.autograd.grad(out, leaves, torch.tensor(narrow[2]))]
    for a, b in zip(pulled(*map(genesis.tensor, narrow), border, corners, mode=mode), theirs, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=0, atol=4e-6 * max(np.abs(b.numpy()).max(), 1))


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("corners", [False, True])
def test_the_nearest_of_narrow_and_of_wide_numbers_by_finite_differences(border, corners):
    # the middles of quarters: as far from where the nearest changes as from the element
    rng = np.random.default_rng(0)
    grid = (rng.integers(-6, 6, (2, 4, 5, 2)) + 0.5) / 4
    x, g = rng.standard_normal((2, 2, 4, 4)), rng.standard_normal((2, 2, 4, 5))
    _, gx, ggrid = pulled(
        *[genesis.tensor(a.astype(np.float32)) for a in (x, grid, g)], border, corners, mode="nearest"
    )
    at = lambda x, grid: F.grid_sample(*map(genesis.tensor, (x, grid)), "nearest", border, corners).numpy()  # noqa: E731
    for gradient, i in ((gx, 0), (ggrid, 1)):
        direction = rng.standard_normal((x, grid)[i].shape)
        moved = [[a + s * 1e-4 * direction if i == j else a for j, a in enumerate((x, grid))] for s in (1, -1)]
        slope = ((at(*moved[0]) - at(*moved[1])) * g).sum() / 2e-4
        np.testing.assert_allclose((gradient * direction).sum(), slope, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("border", BORDERS)
def test_points_at_the_elements_themselves(border, mode):
    x = genesis.rand(1, 2, 5, 5)
    line = genesis.linspace(-1, 1, 5)
    grid = genesis.stack(genesis.meshgrid(line, line, indexing="xy"), -1)[None]
    assert genesis.equal(F.grid_sample(x, grid, mode, padding_mode=border, align_corners=True), x)


def test_of_two_elements_as_near_it_is_the_one_with_an_even_index():
    x = genesis.arange(5.0).reshape(1, 1, 1, 5)
    grid = genesis.tensor([[[[t, 0.0] for t in (-0.75, -0.25, 0.25, 0.75)]]])
    assert F.grid_sample(x, grid, "nearest", align_corners=True).flatten().tolist() == [0, 2, 2, 4]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("border", BORDERS)
def test_nan_infinities_and_far_away_read_nothing_outside(border, mode):
    x = genesis.rand(2, 2, 6, 6)
    grid = genesis.zeros(2, 4, 5, 2)
    grid[0, 0] = float("nan")
    grid[0, 1], grid[0, 2] = float("inf"), -float("inf")
    grid[1, 0], grid[1, 1] = 1e30, -1e30
    out, gx, ggrid = pulled(x, grid, genesis.ones(2, 2, 4, 5), border, False, mode=mode)
    if mode == "nearest":
        by_itself = F.grid_sample(x.double(), grid.double(), mode, border, False)
        assert np.array_equal(out[0], by_itself[0].numpy()) and np.array_equal(gx[0].sum((1, 2)) >= 5, [True, True])
        assert not ggrid.any()
    assert np.isfinite(out[0, :, 3]).all() and np.isfinite(out[1, :, 2:]).all()
    assert gx.shape == x.shape and ggrid.shape == grid.shape
    if border == "border":
        corner = lambda i: np.broadcast_to(x.numpy()[0, :, i, i, None], (2, 5))  # noqa: E731
        assert np.array_equal(out[0, :, 1], corner(5)) and np.array_equal(out[0, :, 2], corner(0))


@pytest.mark.parametrize("mode", MODES)
def test_the_same_bits_in_any_number_of_threads(monkeypatch, mode):
    monkeypatch.setitem(compiled.LARGE, "for threads", 1)
    x, grid, g = genesis.randn(5, 3, 20, 21), genesis.rand(5, 30, 7, 2) * 2.4 - 1.2, genesis.randn(5, 3, 30, 7)
    before, results = genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            genesis.set_num_threads(threads)
            results.append(pulled(x, grid, g, "zeros", False, mode=mode))
    finally:
        genesis.set_num_threads(before)
    for others in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], others, strict=True))


def test_many_points_of_one_element_are_added_in_their_order():
    x, grid = genesis.zeros(1, 1, 2, 2), genesis.zeros(1, 1, 1000, 2)
    gx = pulled(x, grid - 0.5, genesis.ones(1, 1, 1, 1000), "zeros", False, mode="nearest")[1]
    assert np.array_equal(gx, np.array([[[[1000, 0], [0, 0]]]], np.float32))
    gx = pulled(x, grid, genesis.ones(1, 1, 1, 1000), "zeros", False)[1]
    assert np.array_equal(gx, np.full((1, 1, 2, 2), 250, np.float32))


def test_second_derivatives_are_those_of_the_composition():
    x, grid = (t.double().requires_grad_() for t in (genesis.rand(1, 2, 4, 4), genesis.rand(1, 4, 5, 2) - 0.5))
    assert genesis.autograd.gradgradcheck(lambda *t: F.grid_sample(*t, align_corners=True), (x, grid))
    second = []
    for leaves in ([x, grid], [t.detach().float().requires_grad_() for t in (x, grid)]):
        first = genesis.autograd.grad(F.grid_sample(*leaves).square().sum(), leaves[1], create_graph=True)[0]
        second.append(genesis.autograd.grad(first.sum(), leaves[0])[0].detach().numpy())
    np.testing.assert_allclose(second[1], second[0], rtol=0, atol=1e-4)


def test_compiled_steps_call_it():
    x, grid = genesis.rand(2, 3, 9, 9), genesis.rand(2, 6, 6, 2) - 0.5
    f = lambda x, grid: F.grid_sample(x * 2, grid, align_corners=False).relu() + 1  # noqa: E731
    np.testing.assert_allclose(genesis.compile(f)(x, grid).numpy(), f(x, grid).numpy(), rtol=1e-6)
