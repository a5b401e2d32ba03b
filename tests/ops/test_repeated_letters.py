"""Sums of products over letters: repeated ones, whose gradients go onto the diagonal, and random equations."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.ops.products.einsum import einsum_terms

CASES = [
    ("iji->j", [(3, 4, 3)]), ("iji->j", [(3, 3, 3)]), ("iji->j", [(1, 3, 1)]), ("iji->ij", [(3, 4, 3)]),
    ("iij->ij", [(3, 3, 2)]), ("jii->", [(2, 3, 3)]), ("ijij->ij", [(2, 3, 2, 3)]), ("iii->i", [(3, 3, 3)]),
    ("iji,jk->ik", [(2, 3, 2), (3, 2)]), ("ijki->kj", [(2, 3, 4, 2)]), ("ijjik->k", [(2, 3, 3, 2, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_gradients_are_those_of_finite_differences(equation, shapes):
    rng = np.random.default_rng(0)
    operands = [genesis.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    assert genesis.autograd.gradcheck(lambda *xs: genesis.einsum(equation, *xs), operands)
    value = np.einsum(equation, *[x.detach().numpy() for x in operands])
    np.testing.assert_allclose(genesis.einsum(equation, *operands).detach().numpy(), value)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("size", "index"), [((5,), (2, 0)), ((2, 3), (0,)), ((2, 3), (0, 3)), ((), (0,)), ((4,), (0, 2, 2))]
)
def test_gathering_nothing(size, index):
    torch = pytest.importorskip("torch")
    mine, theirs = (lib.gather(lib.ones(size), 0, lib.zeros(index, dtype=lib.int64)) for lib in (genesis, torch))
    assert tuple(mine.shape) == tuple(theirs.shape)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.complex64, genesis.int64])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 1), (3, 4)]), ("bij,bjk->bik", [(1, 2, 3), (5, 3, 2)]), ("ij,jk,kl->li", [(2, 3), (3, 4), (1, 2)]),
        ("i,i->", [(4,), (4,)]), ("ij,k->kji", [(2, 3), (4,)]), ("ij,kj->", [(0, 3), (2, 3)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,ji,ij,i->j", [(2, 3), (3, 2), (2, 3), (2,)]), ("...i,i->...", [(2, 3, 4), (4,)]), ("ii,i->i", [(3, 3), (3,)]),
    ],
)  # fmt: skip
def test_sums_are_those_that_numpy_plans(equation, shapes, dtype):
    rng = np.random.default_rng(0)
    operands = [genesis.tensor(rng.integers(-9, 9, shape)).to(dtype) for shape in shapes]
    found = genesis.einsum(equation, *operands)
    expected = np.einsum(equation, *[x.numpy() for x in operands], optimize=True)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), expected)


def _random_equation(rng, largest):
    """An equation with repeated letters, letters that are summed, and sizes of 0 and 1."""
    letters = "abcde"[: rng.integers(1, 6)]
    size = {c: int(rng.choice([0, 1, 2, largest], p=[0.03, 0.17, 0.3, 0.5])) for c in letters}
    terms = [
        "".join(rng.choice([*letters], rng.integers(0, 4), replace=rng.random() < 0.2 or len(letters) < 4))
        for _ in range(rng.integers(1, 5))
    ]
    shapes = []
    for term in terms:
        sizes = {c: 1 if rng.random() < 0.1 else size[c] for c in term}
        shapes.append([sizes[c] for c in term])
    have = sorted(set("".join(terms)))
    result = "".join(rng.permutation(have)[: rng.integers(0, len(have) + 1)])
    return terms, result, shapes


@pytest.mark.parametrize("largest", [3, 7])
def test_random_equations(largest):
    """Values and gradients are those of one sum by NumPy, whose gradients are such sums, too."""
    rng = np.random.default_rng(largest)
    for _ in range(150):
        terms, result, shapes = _random_equation(rng, largest)
        operands = [genesis.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
        got = [genesis.einsum(",".join(terms) + "->" + result, *operands), einsum_terms(operands, terms, result)]
        assert got[0].shape == got[1].shape, (terms, result, shapes)
        weights = genesis.tensor(rng.normal(size=tuple(got[0].shape)))
        gradients = [genesis.autograd.grad(y, operands, weights) for y in got]
        for mine, expected in zip((got[0], *gradients[0]), (got[1], *gradients[1]), strict=True):
            np.testing.assert_allclose(
                mine.detach().numpy(), expected.detach().numpy(), 1e-9, 1e-9, err_msg=str((terms, result))
            )
