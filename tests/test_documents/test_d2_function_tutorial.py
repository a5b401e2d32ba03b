"""What the tutorial on custom Functions promises: model code written for ``import torch`` runs with ``import genesis as
torch``.
"""

from __future__ import annotations

import numpy as np
import pytest

import genesis as torch
from genesis.autograd import Function, gradcheck, gradgradcheck


class MyLinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MyLinearFunctionV2(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        saved = [input, weight]
        if bias is not None:
            saved.append(bias)
        ctx.save_for_backward(*saved)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors[:2]
        grads = [grad_output.mm(weight), grad_output.t().mm(input)]
        if len(ctx.saved_tensors) == 3:
            grads.append(grad_output.sum(0))
        return tuple(grads)


def inputs(dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in ((4, 3), (2, 3), (2,))]


@pytest.mark.parametrize("cls", [MyLinearFunction, MyLinearFunctionV2])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_function(cls, bias):
    x, w, b = inputs()
    args = (x, w, b) if bias else (x, w)
    y = cls.apply(*args)
    y.mean().backward()
    ours = [t.grad for t in args]
    assert all(g is not None for g in ours)  # the three prints of True
    for t in args:
        t.grad = None
    torch.nn.functional.linear(*args).mean().backward()
    for t, g in zip(args, ours, strict=True):
        np.testing.assert_allclose(g.numpy(), t.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("cls", [MyLinearFunction, MyLinearFunctionV2])
def test_gradcheck_of_the_tutorial(cls):
    x, w, b = inputs()
    assert gradcheck(cls.apply, (x, w, b), eps=1e-6, atol=1e-4)
    without = (lambda x, w: cls.apply(x, w, None)) if cls is MyLinearFunction else (lambda x, w: cls.apply(x, w))
    assert gradcheck(without, (x, w), eps=1e-6, atol=1e-4)
    assert gradgradcheck(cls.apply, (x, w, b))


def test_call_apply_not_forward():
    with pytest.raises((TypeError, AttributeError, RuntimeError)):
        MyLinearFunction.forward(*inputs())
    with pytest.raises(TypeError, match=r"a Function is not instantiated.*\n.*MyLinearFunction.apply"):
        MyLinearFunction()


def test_saved_tensors_are_not_to_be_modified():
    class Modifies(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            x.mul_(2)
            return g * x

    x = torch.ones(2, requires_grad=True)
    y = x * 1
    with pytest.raises(RuntimeError, match="Modifies.backward: wrote to a tensor that forward saved, with mul_"):
        Modifies.apply(y).sum().backward()


def test_higher_order_is_right_when_backward_is_differentiable_and_loud_when_it_is_not():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    class Numpy(Square):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return torch.from_numpy(g.detach().numpy() * 2 * x.detach().numpy())

    x = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(Square.apply(x), x, create_graph=True)
    assert torch.autograd.grad(g, x)[0].item() == 2.0
    (g,) = torch.autograd.grad(Numpy.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="Numpy"):
        torch.autograd.grad(g, x)


def test_one_gradient_for_each_argument_and_none_for_ctx():
    class TooMany(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None, g

    with pytest.raises(RuntimeError, match="TooMany.backward: returned 2 gradients, expected 1"):
        TooMany.apply(torch.ones(1, requires_grad=True)).backward()
