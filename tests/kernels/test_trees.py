"""Sums of products in the order of the tree have the bits of products that are added afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.base import blas
from genesis.kernels.cpu import gemm, trees
from genesis.kernels.llvm import loops, products
from genesis.kernels.llvm import trees as code

# rows of each product, rows and columns of the result
SIZES = [
    (8, 64, 64),
    (32, 100, 130),
    (200, 333, 100),
    (129, 1000, 5),
    (300, 6, 960),
    (128, 90, 96),
    (9, 2000, 33),
    (1, 1, 1),
]


@pytest.fixture(params=[1, 3])
def threads(request):
    before = genesis.get_num_threads()
    genesis.set_num_threads(request.param)
    yield request.param
    genesis.set_num_threads(before)


@pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")
@pytest.mark.parametrize("count", [1, 2, 4, 8, 64])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sums_of_products_have_the_bits_of_products_that_are_added(threads, size, count):
    k, m, n = size
    rng = np.random.default_rng(count)
    a, b = (rng.standard_normal((count * k, w)).astype(np.float32) for w in (m, n))
    parts = [gemm.product(x.T, y) for x, y in zip(np.split(a, count), np.split(b, count), strict=True)]
    np.testing.assert_array_equal(trees.sum_of_products(a, b, count), trees.tree_sum(parts))
    wide = np.repeat(a, 2, 1)[:, ::2]  # whose columns are not beside each other
    np.testing.assert_array_equal(trees.sum_of_products(wide, b, count), trees.tree_sum(parts))


def test_sizes_meet_all_that_is_told_apart():
    """Parts of several chunks, several blocks of tiles, last panels of any width, second matrices that are not packed."""
    rows, width = gemm.tile()[0], gemm.width()
    assert any(k > products.CHUNK for k, _, _ in SIZES) and any(k < products.CHUNK for k, _, _ in SIZES)
    assert any(m > code.NEAR * rows for _, m, _ in SIZES) and any(m % rows for _, m, _ in SIZES)
    assert any(m <= gemm.code.FEW * rows and n % width == 0 for _, m, n in SIZES)
    assert {-(-(n % width) // (loops.width() // 4)) for _, _, n in SIZES} >= {0, 1, 2}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("shape", [(1, 3, 4), (2, 3, 1), (5, 40, 50), (40, 64, 9), (3, 0, 2)])
def test_matrices_together_have_the_bits_of_one_by_one(monkeypatch, shape, own):
    """With code of our own and without, and of size 0, too."""
    if not own:
        monkeypatch.setattr(trees.loops, "available", lambda: False)
        monkeypatch.setattr(blas, "own", [])
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b, g, bias = (rng.standard_normal(s).astype(np.float32) for s in ((4 * m, k), (k, n), (4 * m, n), (n,)))
    parts = list(zip(np.split(a, 4), np.split(g, 4), strict=True))
    for more in (None, bias):
        each = [trees.products(x, b, 1, more) for x, _ in parts]
        np.testing.assert_array_equal(trees.products(a, b, 4, more), np.concatenate(each))
    sums = [trees.sum_of_products(x, y, 1) for x, y in parts]
    np.testing.assert_array_equal(trees.sum_of_products(a, g, 4), trees.tree_sum(sums))
    np.testing.assert_allclose(trees.sum_of_products(a, g, 4), a.T @ g, rtol=1e-4, atol=1e-5)
    rows = [trees.sums_of_rows(y, 1) for _, y in parts]
    np.testing.assert_array_equal(trees.sums_of_rows(g, 4), trees.tree_sum(rows))
    np.testing.assert_allclose(trees.sums_of_rows(g, 4), g.sum(0), rtol=1e-4, atol=1e-5)
