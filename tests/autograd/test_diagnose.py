"""The parts of `verify`: where it moves inputs, how it judges, and the words for what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.autograd import verify
from genesis.autograd.checking.conduct import equal
from genesis.autograd.checking.differences import SINGLE, slope
from genesis.autograd.checking.evidence import region_words

X, W = (
    genesis.from_numpy(np.array([[0.3, -1.2, 0.8], [1.7, 0.4, -0.9]])),
    genesis.from_numpy(np.array([[0.5, -0.7, 1.1], [-1.3, 0.6, 0.2]])),
)


def rule(forward, backward):
    def saving(ctx, *args):
        ctx.save_for_backward(*args)
        return forward(*args)

    return type("Rule", (genesis.Function,), {"forward": staticmethod(saving), "backward": staticmethod(backward)})


@pytest.mark.parametrize(("x", "wrong", "words"), [
    ([-1.0, 2.0, -3.0, 0.5], [1, 0, 1, 0], "where x < 0"),
    ([-1.0, 2.0, -3.0, 0.5], [0, 1, 0, 1], "where x > 0"),
    ([-1.0, 2.0, -4.0, 0.5], [0, 1, 1, 0], "where |x| > 1.5"),
    ([-1.0, 2.0, -4.0, 0.5], [1, 0, 0, 1], "where |x| < 1.5"),
    ([1.0, 2.0, 4.0], [0, 0, 1], "where |x| > 3"),
    ([-3.0, -1.0, 2.0], [0, 1, 1], "where |x| < 2.5"),
    ([-3.0, -1.0, 4.0], [0, 1, 1], "where x > -2"),
    ([1.0, 2.0, 4.0], [0, 1, 0], None),
    ([1.0, 2.0], [0, 1], None),  # any two numbers lie on two sides of something
    ([-1.0, 2.0], [0, 1], "where x > 0"),
])  # fmt: skip
def test_regions(x, wrong, words):
    assert region_words("x", np.array(x), np.array(wrong, bool)) == words


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_first_step_is_the_longest(scale):
    points = []
    slope(lambda s: points.append(s) or s, SINGLE, scale)
    assert max(map(abs, points)) == SINGLE.step * scale


def test_a_single_number_computed_in_float32_is_checked_to_its_digits():
    single = rule(lambda x: (x.float() * x.float()).sum().double(), lambda ctx, g: 2 * g * ctx.saved_tensors[0])
    assert verify(single, X)
    wrong = rule(lambda x: (x.float() * x.float()).sum().double(), lambda ctx, g: 2.02 * g * ctx.saved_tensors[0])
    assert "1 % too large" in str(verify(wrong, X))


@pytest.mark.parametrize(("end", "word"), [(0, "first"), (1, "last")])
def test_one_element_where_a_sum_belongs(end, word):
    found = verify(rule(lambda x: genesis.stack([x, x]) * W, lambda ctx, g: g[end] * W[end]), X[0], checks="gradient")
    assert f"is missing the sum over axis 0 of grad_output: only the {word} element is used" in str(found)


def test_along_an_axis_of_one_element_everything_is_constant():
    odd = rule(
        lambda x: x.exp(),
        lambda ctx, g: g * ctx.saved_tensors[0].exp() + g * genesis.tensor([[0.3], [-0.8], [0.1], [2.0]]),
    )
    found = verify(odd, genesis.from_numpy(np.array([[0.3], [-1.2], [0.8], [0.5]])), checks="gradient")
    assert not found and "missing a term" not in str(found), str(found)


@pytest.mark.parametrize("ignored", [0, 1])
def test_an_output_whose_gradient_is_ignored_is_named(ignored):
    parts = [lambda x, g, h: 2 * g * x, lambda x, g, h: h * x.exp()]
    found = verify(
        rule(lambda x: (x * x, x.exp()), lambda ctx, g, h: parts[1 - ignored](ctx.saved_tensors[0], g, h)),
        X,
        checks="gradient",
    )
    assert f"ignores the gradient of output {ignored}" in str(found)


def test_complex_outputs_are_weighted_by_complex_numbers():
    z = genesis.from_numpy(np.array([1 + 2j, 0.5 - 1j, -0.3 + 0.2j]))
    assert verify(rule(lambda z: z * 1, lambda ctx, g: g), z, checks="gradient")
    assert not verify(rule(lambda z: z * 1, lambda ctx, g: g.real + 0j), z, checks="gradient")


def test_a_kink_is_moved_off_though_nothing_can_be_said_of_another_input():
    at_zero = genesis.from_numpy(np.array([0.0, 1.0]))
    report = verify(
        lambda x, y: (x.relu(), genesis.where(y < 0, float("nan"), y * 2)), at_zero, at_zero, checks="gradient"
    )
    assert (
        report["gradient of `x`"].words == "correct except at 1 kink, moved off"
        and report["gradient of `y`"].status == "skipped"
    )


def test_a_spread_grad_output_is_grad_output_unchanged():
    found = verify(rule(lambda x: (x * W).sum(), lambda ctx, g: g.expand(2, 3)), X, checks="gradient")
    assert "is grad_output unchanged" in str(found)


def test_a_batch_of_different_samples_shows_that_only_the_first_is_computed():
    class First(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

        @staticmethod
        def vmap(info, in_dims, x):
            x = x.movedim(in_dims[0], 0)
            return (x[:1] * 2.0).expand(x.shape), 0

    assert "a batch gives other values than its samples one by one" in str(verify(First, X))


def test_a_gradient_that_is_no_number_is_not_called_nonlinear():
    def backward(ctx, g):
        slope = genesis.where(ctx.saved_tensors[0] > 1, float("nan"), W)
        return genesis.where(g == 0, 0.0, g * slope)

    found = str(verify(rule(lambda x: x * W, backward), X))
    assert "is wrong only where" in found and "is not linear" not in found


def test_an_infinite_element_does_not_make_the_others_equal():
    a, b = np.array([np.inf, 1.0, np.nan]), np.array([np.inf, 2.0, np.nan])
    assert equal(a, a, 1e-9) and not equal(a, b, 1e-9)


def test_a_saved_tensor_that_forward_writes_to_afterwards_is_stale():
    class Late(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            kept = x * 1.0
            ctx.save_for_backward(kept)
            y = kept * kept
            kept.add_(0.5)
            return y

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    assert "forward changes saved tensor 0 after saving it" in str(verify(Late, X))
