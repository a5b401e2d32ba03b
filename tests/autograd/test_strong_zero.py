"""Strong zeros: branches that were not taken give no NaN, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.autograd import strong_zero

F64 = genesis.float64


def gradient(f, values):
    x = genesis.tensor(values, dtype=F64, requires_grad=True)
    (g,) = genesis.autograd.grad(f(x).sum(), x)
    return g.numpy()


CASES = {
    "where_log": (lambda x: genesis.where(x > 0, x.log(), 0.0), [0.0, 2.0], [0.0, 0.5]),
    "where_sqrt": (lambda x: genesis.where(x == 0, 0.0, x.sqrt()), [0.0, 4.0], [0.0, 0.25]),
    "where_divide": (lambda x: genesis.where(x == 0, 1.0, x.sin() / x), [0.0, 1.0], [0.0, np.cos(1) - np.sin(1)]),
    "where_pow": (lambda x: genesis.where(x > 0, x**-0.5, 0.0), [0.0, 4.0], [0.0, -0.0625]),
    "minimum_of_reciprocal": (lambda x: genesis.minimum(genesis.ones_like(x), 1 / x), [0.0, 2.0], [0.0, -0.25]),
    "clamp_of_reciprocal": (lambda x: (1 / x).clamp(max=1.0), [0.0, 2.0], [0.0, -0.25]),
    "masked_exp": (lambda x: genesis.where(x < 100, (x * 1e300 * 1e300).sin(), x), [200.0], [1.0]),
    "times_zero_mask": (lambda x: x.log() * genesis.tensor([0.0, 1.0], dtype=F64), [0.0, 2.0], [0.0, 0.5]),
    "index_of_norms": (
        lambda x: (x.reshape(2, 2) / x.reshape(2, 2).norm(dim=1, keepdim=True))[1],
        [0.0, 0.0, 3.0, 4.0],
        [0.0, 0.0, (16 - 12) / 125, (9 - 12) / 125],
    ),
    "selected_logsumexp": (
        lambda x: x.reshape(2, 2).log().logsumexp(1)[1],
        [0.0, 0.0, 1.0, 3.0],
        [0.0, 0.0, 0.25, 0.25],
    ),
    "selected_std": (
        lambda x: x.reshape(2, 2).sqrt().std(1)[1],
        [0.0, 0.0, 1.0, 4.0],
        [0.0, 0.0, -0.5 / np.sqrt(2), 0.25 / np.sqrt(2)],
    ),
    "softmax_of_a_masked_row": (
        lambda x: x.reshape(2, 2).log().softmax(-1) * genesis.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=F64),
        [0.0, 0.0, 1.0, 1.0],
        [0.0, 0.0, 0.25, -0.25],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_branches_that_were_not_taken(name):
    f, values, expected = CASES[name]
    with np.errstate(all="ignore"):
        assert np.isnan(gradient(f, values)).any() or name in ("masked_exp",)  # what everybody gets
        with strong_zero():
            np.testing.assert_allclose(gradient(f, values), expected, rtol=1e-12)


def test_products_leave_out_the_terms_of_zero_gradients():
    x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=F64, requires_grad=True)
    w = genesis.tensor([[1.0, float("inf")], [1.0, 5.0]], dtype=F64)
    pick = genesis.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=F64)
    for product in (lambda: x @ w, lambda: genesis.einsum("ij,jk->ik", x, w), lambda: nn.functional.linear(x, w.T)):
        y = product()
        with strong_zero():
            (g,) = genesis.autograd.grad(y, x, pick)
        np.testing.assert_array_equal(g.numpy(), [[1.0, 1.0], [np.inf, 5.0]])  # the second row really has inf * 1


def test_real_infinities_and_nans_stay():
    with strong_zero():
        np.testing.assert_array_equal(gradient(lambda x: x.sqrt(), [0.0, 4.0]), [np.inf, 0.25])
        assert np.isnan(gradient(lambda x: x * float("nan"), [1.0])).all()


def test_functions_of_users():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g / 0.0, None

    x, w = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    with strong_zero():
        (Bad.apply(x, w) * 0).sum().backward()
    assert x.grad.tolist() == [0, 0]
    assert w.grad is None


def test_second_derivatives():
    x = genesis.tensor([0.0, 2.0], dtype=F64, requires_grad=True)
    with strong_zero():
        (g,) = genesis.autograd.grad(genesis.where(x > 0, x.log(), 0.0).sum(), x, create_graph=True)
        (h,) = genesis.autograd.grad(g.sum(), x)
    assert g.tolist() == [0, 0.5]
    assert h.tolist() == [0, -0.25]


def test_good_gradients_are_the_same_bit_for_bit():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    x, y = genesis.randn(6, 5), genesis.tensor([0, 1, 2, 0, 1, 2])

    def gradients():
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        return [p.grad.numpy().copy() for p in model.parameters()]

    plain = gradients()
    with strong_zero():
        strong = gradients()
    for a, b in zip(plain, strong, strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_ends():
    with strong_zero():
        pass
    assert np.isnan(gradient(*CASES["where_log"][:2])).any()
