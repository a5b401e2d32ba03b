"""Compiled products of matrices, and attention, which is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.kernels.cpu import attention
from genesis.kernels.llvm import loops, native, products

pytestmark = pytest.mark.skipif(not loops.available(), reason="no llvmlite, or a processor without fma")


@pytest.fixture(scope="module", params=[(8, 3), (4, 3), (4, 1)], ids=str)
def multiply(request):
    """A product by tiles of so many rows and vectors, added to what is there or not."""
    rows, columns = request.param
    lanes = loops.width() // 4
    sizes = {name: tuple(map(len, getattr(products, name.upper()))) for name in ("pack", "multiply")}
    pack, product = native.nests(products.module(lanes, rows, columns), sizes)

    def run(a, b, out, more):
        (m, k), n = a.shape, b.shape[1]
        packed = np.full(-(-n // (lanes * columns)) * lanes * columns * k, np.nan, np.float32)
        spare = np.empty(lanes * columns, np.float32)
        pack(b.ctypes.data, packed.ctypes.data, n, k, *[s // 4 for s in b.strides])
        steps = [s // 4 for s in (*a.strides, out.strides[0])]
        addresses = [x.ctypes.data for x in (a, packed, out, spare)]
        product(*addresses, None, 0, -(-m // rows), m, n, k, k, lanes * columns, *steps, int(more))

    return run


SIZES = [(1, 1, 1), (5, 7, 3), (9, 49, 130), (17, 48, 128), (33, 100, 257), (8, 33, 1), (200, 16, 129), (3, 64, 300)]
SIZES += [(9, 32, 45), (9, 80, 32), (9, 64, 16)]  # last panels of whole vectors


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_product_is_numpys(multiply, size):
    m, n, k = size
    rng = np.random.default_rng(m)
    for flipped in (False, True):
        for step in (0, 1, 2):  # of columns that are lines of memory; or rows are
            a = rng.standard_normal((k, m) if flipped else (m, k)).astype(np.float32)
            b = rng.standard_normal((n, step * k) if step else (k, n)).astype(np.float32)
            a, b = a.T if flipped else a, b[:, ::step].T if step else b[::-1]
            memory = np.full((m + 1, n + 3), 7, np.float32)
            out = memory[:m, :n]
            exact = a.astype(np.float64) @ b.astype(np.float64)
            bound = 1e-7 * k * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-7
            multiply(a, b, out, False)
            assert (np.abs(out - exact) <= bound).all()
            multiply(a, b, out, True)
            assert (np.abs(out - 2 * exact) <= 4 * bound).all()
            assert (memory[:, n:] == 7).all() and (memory[m] == 7).all()  # nothing beyond its end


# ---- attention


def _meaning(query, key, value, causal):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights, weights @ value


def _gradients(g, query, key, value, weights):
    slopes = g @ value.swapaxes(-1, -2)
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdims=True)) / np.sqrt(query.shape[-1])
    return slopes @ key, slopes.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ g


def _laid_out(rng, shape, layout):
    if layout == "transposed":
        return rng.standard_normal((*shape[:-2], shape[-1], shape[-2])).astype(np.float32).swapaxes(-1, -2)
    if layout == "strided":
        return rng.standard_normal((*shape[:-1], 2 * shape[-1] + 1)).astype(np.float32)[..., 1::2]
    if layout == "expanded" and len(shape) > 2:
        return np.broadcast_to(rng.standard_normal((1, *shape[1:])).astype(np.float32), shape)
    return rng.standard_normal(shape).astype(np.float32)


CASES = [
    ((), 40, 70, 12, 20), ((2,), 1, 300, 64, 64), ((2, 3), 97, 97, 16, 50), ((1, 2), 64, 33, 5, 1), ((3,), 33, 64, 48, 49),
]  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "expanded"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention_and_its_gradients(monkeypatch, case, layout, causal):
    monkeypatch.setattr(attention, "LEAST", 1)
    lead, rows, columns, depth, width = case
    rng = np.random.default_rng(0)
    shapes = [(rows, depth), (columns, depth), (columns, width), (rows, width)]
    arrays = [_laid_out(rng, (*lead, *shape), layout) for shape in shapes]
    *inputs, g = [genesis.from_numpy(x.copy() if x.strides[:1] == (0,) else x) for x in arrays]
    inputs = [x.requires_grad_() for x in inputs]
    out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
    found = [out.detach(), *genesis.autograd.grad(out, inputs, g)]
    assert out.grad_fn.name().startswith("ScaledDotProductAttention")
    exact = [x.astype(np.float64) for x in arrays]
    weights, want = _meaning(*exact[:3], causal)
    for mine, right in zip(found, [want, *_gradients(exact[3], *exact[:3], weights)], strict=True):
        np.testing.assert_allclose(mine.numpy(), right, rtol=0, atol=2e-6 * np.abs(right).max())


def test_attention_has_the_same_bits_with_any_number_of_threads(threads_of):
    rng = np.random.default_rng(0)
    inputs = [genesis.from_numpy(rng.standard_normal((2, 3, 70, 32)).astype(np.float32)) for _ in range(3)]
    results = []
    for threads in (1, 2, 3, 5):
        genesis.set_num_threads(threads)
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = F.scaled_dot_product_attention(*leaves, is_causal=True)
        results.append([out.detach().numpy(), *[g.numpy() for g in genesis.autograd.grad(out.sum(), leaves)]])
    for others in results[1:]:
        for one, other in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def threads_of():
    before = genesis.get_num_threads()
    yield
    genesis.set_num_threads(before)


def test_attention_of_numbers_that_are_none(monkeypatch):
    """A nan in a row of the query reaches that row only, one in a key every row that sees it."""
    monkeypatch.setattr(attention, "LEAST", 1)
    query, key, value = (genesis.ones(4, 40, 8) for _ in range(3))
    query[0, 3, 0] = key[1, 5, 2] = float("nan")
    key[2, 6] = float("inf")
    out = F.scaled_dot_product_attention(query, key, value, is_causal=True).isnan().any(-1)
    want = genesis.zeros(4, 40, dtype=genesis.bool)
    want[0, 3] = want[1, 5:] = want[2, 6:] = True
    assert out.equal(want)


def test_weights_of_scores_that_are_far_below_the_largest_are_zero(monkeypatch):
    monkeypatch.setattr(attention, "LEAST", 1)
    query, key = genesis.full((1, 1), 200.0), genesis.tensor([[1.0], [0.0]])
    value = genesis.tensor([[1.0], [float("1e38")]])
    assert F.scaled_dot_product_attention(query, key, value, scale=1.0).item() == 1.0
