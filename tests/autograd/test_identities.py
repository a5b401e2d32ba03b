"""Values as they are, gradients changed."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.autograd import (
    clip_gradient,
    grad,
    grad_pass_through,
    gradcheck,
    gradgradcheck,
    reverse_gradient,
    scale_gradient,
    stop_gradient,
    straight_through,
)
from genesis.base.errors import ArgumentError, ArgumentValueError, DTypeError, ShapeError


def double(*shape):
    return genesis.randn(*shape, dtype=genesis.float64, requires_grad=True)


def test_stop_gradient_of_containers():
    x = double(2)
    out = genesis.stop_gradient({"a": [x * 2, 3], "b": None})
    assert out["a"][1] == 3 and out["b"] is None and not out["a"][0].requires_grad
    assert out["a"][0].tolist() == (x * 2).tolist()
    (x * stop_gradient(x)).sum().backward()
    assert x.grad.tolist() == x.tolist()


def test_straight_through():
    @straight_through
    def quantize(x, scale):
        return (x / scale).round() * scale

    x, scale = double(5), genesis.tensor(0.25, dtype=genesis.float64, requires_grad=True)
    y = quantize(x, scale)
    assert np.array_equal(y.detach().numpy() * 4, np.round(x.detach().numpy() * 4))
    gx, gs = grad((y * 3).sum(), (x, scale), allow_unused=True)
    assert gx.tolist() == [3] * 5 and gs is None
    (g,) = grad((straight_through(genesis.round)(x) ** 3).sum(), x, create_graph=True)
    (gg,) = grad(g.sum(), x)  # 6 round(x), by way of the identity
    assert np.allclose(gg.numpy(), 6 * np.round(x.detach().numpy()))
    assert quantize(x=x, scale=scale).requires_grad and quantize.__name__ == "quantize"
    with genesis.no_grad():
        assert not quantize(x, scale).requires_grad


def test_straight_through_pairs_results_with_arguments_and_ignores_what_is_captured():
    w = double(3)
    a, b = double(3), double(3)
    y, z = grad_pass_through(lambda a, b: (a.sign() * w, b.sign()))(a, b)
    found = grad((y * 2 + z * 5).sum(), (a, b, w), allow_unused=True)
    assert found[0].tolist() == [2] * 3 and found[1].tolist() == [5] * 3 and found[2] is None


def test_straight_through_wrong():
    x = double(3)
    with pytest.raises(ShapeError, match=r"result 0 has shape \[\], its argument has \[3\]"):
        straight_through(genesis.sum)(x)
    with pytest.raises(
        DTypeError, match=r"result 0 has dtype genesis.bool, which carries no gradient\n  try: return y.to"
    ):
        straight_through(lambda x: x > 0)(x)
    with pytest.raises(ArgumentError, match="2 results for 1 tensor arguments"):
        straight_through(lambda x: (x, x))(x)
    with pytest.raises(ArgumentError, match="straight_through: expected a function, got Tensor"):
        straight_through(x)


def test_reverse_and_scale():
    x = double(3)
    assert grad((reverse_gradient(x) ** 2).sum(), x)[0].tolist() == (-2 * x).tolist()
    assert grad((reverse_gradient(x, 0.5) ** 2).sum(), x)[0].tolist() == (-x).tolist()
    assert grad((scale_gradient(x, 3.0) ** 2).sum(), x)[0].tolist() == (6 * x).tolist()
    per_element = genesis.tensor([0.0, 1.0, 2.0], dtype=genesis.float64)
    assert grad(scale_gradient(x, per_element).sum(), x)[0].tolist() == [0, 1, 2]
    y = scale_gradient(x, 3.0)
    assert y.tolist() == x.tolist() and y.data_ptr() == x.data_ptr()


def test_second_derivative_passes_twice():
    """g = s y'(x): its derivative comes back through the identity once more, s ** 2 y''."""
    x = double(3)
    (g,) = grad((scale_gradient(x, 3.0) ** 3).sum(), x, create_graph=True)
    (gg,) = grad(g.sum(), x)
    assert np.allclose(gg.numpy(), 9 * 6 * x.detach().numpy())


def test_clip_by_value_and_by_norm():
    x = genesis.tensor([3.0, 4.0], dtype=genesis.float64, requires_grad=True)
    assert grad((clip_gradient(x, -1, 7) ** 2).sum(), x)[0].tolist() == [6, 7]
    assert grad((clip_gradient(x, high=6.5) ** 2).sum(), x)[0].tolist() == [6, 6.5]
    assert np.allclose(grad((clip_gradient(x, max_norm=5.0) ** 2).sum(), x)[0].numpy(), [3, 4])
    assert grad((clip_gradient(x, max_norm=50.0) ** 2).sum(), x)[0].tolist() == [6, 8]
    assert grad((clip_gradient(x, max_norm=5.0) * 0).sum(), x)[0].tolist() == [0, 0]


def test_clipped_gradients_are_differentiable():
    seed = genesis.tensor([3.0, -4.0, 0.5], dtype=genesis.float64, requires_grad=True)

    def gradient_of(**limits):
        def f(g):
            x = genesis.ones(3, dtype=genesis.float64, requires_grad=True)
            return grad(clip_gradient(x, **limits), x, g, create_graph=True)[0]

        return f

    for limits in ({"low": -1, "high": 1}, {"max_norm": 2.0}, {"max_norm": 20.0}):
        assert gradcheck(gradient_of(**limits), seed) and gradgradcheck(gradient_of(**limits), seed)


def test_clip_wrong():
    x = double(2)
    for limits in ({}, {"low": 0, "max_norm": 1}):
        with pytest.raises(ArgumentValueError, match="expected either low and high or max_norm"):
            clip_gradient(x, **limits)
    with pytest.raises(ArgumentValueError, match="low is 2, above high, 1"):
        clip_gradient(x, 2, 1)
    with pytest.raises(ArgumentValueError, match="max_norm is 0, expected a positive number"):
        clip_gradient(x, max_norm=0)
    for f in (reverse_gradient, lambda x: scale_gradient(x, 2), lambda x: clip_gradient(x, 0, 1)):
        with pytest.raises(ArgumentError, match="expected a tensor, got float"):
            f(1.0)
