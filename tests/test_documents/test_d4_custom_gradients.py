"""What the comparison of custom gradients in two frameworks promises: both styles, the same results."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import Function


class MyReLU(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


class InPlaceReLU(MyReLU):
    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_output[input < 0] = 0
        return grad_output


class MyLinear(Function):
    needed: list = []

    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input @ weight.t()
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        MyLinear.needed.append(ctx.needs_input_grad)
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output @ weight
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t() @ input
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


def leaf(values):
    return genesis.tensor(values, requires_grad=True)


@pytest.mark.parametrize("cls", [MyReLU, InPlaceReLU])
def test_relu_clones_or_writes_to_the_gradient(cls):
    x = leaf([-1.0, 0.0, 2.0])
    seed = genesis.tensor([5.0, 6.0, 7.0])
    cls.apply(x).backward(seed)
    assert x.grad.tolist() == [0, 6, 7]  # the slope at 0 is what the rule says: 1
    assert seed.tolist() == [5, 6, 7]
    x.grad = None
    x.relu().backward(seed)
    assert x.grad.tolist() == [0, 0, 7]  # of the built-in it is 0


@pytest.mark.parametrize("bias", ["given", "none", "left out"])
def test_linear_and_what_needs_a_gradient(bias):
    MyLinear.needed.clear()
    x, w, b = genesis.ones(2, 3), leaf([[1.0, 2.0, 3.0]] * 2), leaf([1.0, 1.0])
    args = {"given": (x, w, b), "none": (x, w, None), "left out": (x, w)}[bias]
    MyLinear.apply(*args).sum().backward()
    assert MyLinear.needed[0][:2] == (False, True)
    assert w.grad.tolist() == [[2, 2, 2]] * 2
    if bias == "given":
        assert MyLinear.needed[0][2] is True
        assert b.grad.tolist() == [2, 2]


def test_custom_gradient():
    @genesis.custom_gradient
    def my_relu(x):
        def grad(dy):
            return dy * (x > 0)

        return x.clamp(min=0), grad

    x = leaf([-1.0, 2.0])
    my_relu(x).sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_gradient_tape_of_one_and_of_several_sources():
    x, w = leaf([3.0]), leaf([2.0])
    with genesis.GradientTape() as tape:
        y = x * x * w
    found = tape.gradient(y, [x, w])
    assert [g.tolist() for g in found] == [[12], [9]]
    with genesis.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x).tolist() == [6]


def test_linear_by_custom_gradient_and_its_broken_form():
    x, w = genesis.randn(3, 4, dtype=genesis.float64), genesis.randn(5, 4, dtype=genesis.float64)

    def linear(grads):
        @genesis.custom_gradient
        def my_linear(input, weight):
            return input @ weight.t(), lambda dy: grads(dy, input, weight)

        return my_linear

    right = linear(lambda dy, input, weight: (dy @ weight, dy.t() @ input))
    broken = linear(lambda dy, input, weight: (dy @ weight, input.t() @ dy))
    x.requires_grad_()
    w.requires_grad_()
    assert genesis.autograd.gradcheck(right, (x, w))
    with pytest.raises(
        RuntimeError, match=r"(?s)gradient of weight has shape \[4, 5\], the input has \[5, 4\].*transposed"
    ):
        broken(x, w).sum().backward()
    square = genesis.randn(4, 4, dtype=genesis.float64, requires_grad=True)
    broken(x, square).sum().backward()  # no shape tells
    with pytest.raises(genesis.autograd.GradcheckError, match="weight|inputs.1."):
        genesis.autograd.gradcheck(broken, (x, square))


@pytest.mark.parametrize("style", ["class", "closure"])
def test_straight_through_estimator(style):
    class STE(Function):
        @staticmethod
        def forward(ctx, x):
            return (x > 0).float()

        @staticmethod
        def backward(ctx, g):
            return g

    @genesis.custom_gradient
    def ste(x):
        return (x > 0).float(), lambda dy: dy

    x = leaf([-1.0, 2.0])
    y = (STE.apply if style == "class" else ste)(x)
    assert y.tolist() == [0, 1]
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_mark_non_differentiable():
    class TopOne(Function):
        @staticmethod
        def forward(ctx, x):
            value, index = x.max(0)
            ctx.mark_non_differentiable(index)
            ctx.index = index.item()
            ctx.n = len(x)
            return value, index

        @staticmethod
        def backward(ctx, g, _):
            grad = genesis.zeros(ctx.n)
            grad[ctx.index] = g
            return grad

    x = leaf([1.0, 5.0, 2.0])
    value, index = TopOne.apply(x)
    assert (value.requires_grad, index.requires_grad) == (True, False)
    value.backward()
    assert x.grad.tolist() == [0, 1, 0]


def test_numpy_inside_forward_is_tracked():
    class NumpySin(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return genesis.from_numpy(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos()

    x = leaf([0.5])
    y = NumpySin.apply(x)
    assert y.requires_grad
    y.backward()
    assert x.grad.item() == pytest.approx(np.cos(0.5), rel=1e-6)


def test_in_place_advice():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.add_(x)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


@pytest.mark.parametrize("split", [False, True], ids=["ctx", "setup_context"])
def test_two_gradients_where_the_bias_is_none(split):
    if split:

        class MyLinear(Function):
            @staticmethod
            def forward(x, w, b=None):
                return x @ w.t()

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, g):
                x, w, _ = ctx.saved_tensors
                return g @ w, g.t() @ x

    else:

        class MyLinear(Function):
            @staticmethod
            def forward(ctx, x, w, b):
                ctx.save_for_backward(x, w, b)
                return x @ w.t()

            @staticmethod
            def backward(ctx, g):
                x, w, _ = ctx.saved_tensors
                return g @ w, g.t() @ x

    x, w = (
        genesis.randn(4, 3, dtype=genesis.float64, requires_grad=True),
        genesis.randn(5, 3, dtype=genesis.float64, requires_grad=True),
    )
    assert genesis.autograd.gradcheck(lambda x, w: MyLinear.apply(x, w, None), (x, w))
    assert genesis.autograd.gradgradcheck(lambda x, w: MyLinear.apply(x, w, None), (x, w))
    assert MyLinear.apply(x, w, None).grad_fn.needs_input_grad == (True, True, False)
    if split:
        MyLinear.apply(x, w).sum().backward()  # the default value, the same
        assert w.grad is not None
    b = genesis.zeros(5, dtype=genesis.float64)
    with pytest.raises(RuntimeError, match="MyLinear.backward: returned 2 gradients, expected 3"):
        MyLinear.apply(x, w, b).sum().backward()
