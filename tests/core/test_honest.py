"""Second derivatives through a user's function: right, or an error that names what stands in the way."""

from __future__ import annotations

import numpy as np
import pytest

import genesis as torch


def second(function, x):
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0].item()


def cube(save, use):
    """x ** 3, whose forward saves with ``save(ctx, x, x * x, x ** 3)`` and whose backward gets 3 x ** 2 with
    ``use(ctx)``.
    """

    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            y = square * x
            save(ctx, x, square, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return use(ctx) * g

    return Cube.apply


def attribute(name):
    return lambda ctx, x, square, y: setattr(ctx, "kept", {"x": x, "square": square, "y": y}[name])


PATTERNS = {
    "input": (lambda c, x, s, y: c.save_for_backward(x), lambda c: 3 * c.saved_tensors[0] ** 2),
    "output": (lambda c, x, s, y: c.save_for_backward(y), lambda c: 3 * c.saved_tensors[0] ** (2 / 3)),
    "intermediate": (lambda c, x, s, y: c.save_for_backward(s), lambda c: 3 * c.saved_tensors[0]),
    "detached input": (lambda c, x, s, y: c.save_for_backward(x.detach()), lambda c: 3 * c.saved_tensors[0] ** 2),
    "data of the input": (lambda c, x, s, y: c.save_for_backward(x.data), lambda c: 3 * c.saved_tensors[0] ** 2),
    "input on an attribute": (attribute("x"), lambda c: 3 * c.kept**2),
    "intermediate on an attribute": (attribute("square"), lambda c: 3 * c.kept),
    "output on an attribute": (attribute("y"), lambda c: 3 * c.kept ** (2 / 3)),
    "detached input on an attribute": (lambda c, x, s, y: setattr(c, "kept", x.detach()), lambda c: 3 * c.kept**2),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_way_of_saving_is_right_to_second_order(pattern):
    function = cube(*PATTERNS[pattern])
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    assert second(function, x) == pytest.approx(12.0)
    between = function(x)
    (first,) = torch.autograd.grad(function(between).sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].item() == pytest.approx(72 * 2.0**7)  # (x^9)'' = 72 x^7


def test_an_input_that_is_gone_makes_it_an_error_that_names_the_line():
    function = cube(*PATTERNS["intermediate"])
    x = torch.tensor([2.0], requires_grad=True)
    y = function(x * 1)  # the product is gone after the call
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(
        RuntimeError,
        match=r"Cube.forward: saved tensor 0 is an intermediate value, a second derivative through it is not known "
        r"\(forward cannot be run again, an input is gone\)\n  saved f32\[1\](.|\n)*called at "
        r".*test_honest.py(.|\n)*save the inputs",
    ):
        torch.autograd.grad(first.sum(), x)


def test_288_for_432():
    """A published wrong answer: sinh-like functions that save an intermediate give a second derivative that is too
    small.
    """

    class Fourth(torch.Function):  # x ** 4 by way of x ** 2: the derivative 4 x^3 is taken as 4 x^2 * x with x^2 saved
        @staticmethod
        def forward(ctx, x):
            square = x**2
            ctx.save_for_backward(x, square)
            return square**2

        @staticmethod
        def backward(ctx, g):
            x, square = ctx.saved_tensors
            return 4 * square * x * g

    x = torch.tensor([6.0], dtype=torch.float64, requires_grad=True)
    assert second(Fourth.apply, x) == 432.0  # 12 x^2; taking the square for a constant gives 4 x^2 = 144


def test_288_for_480():
    class Fifth(torch.Function):  # x^5 / 5... with the input saved detached
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x.detach())
            return x**5

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 5 * x**4 * g

    x = torch.tensor([24.0 ** (1 / 3)], dtype=torch.float64, requires_grad=True)
    assert second(Fifth.apply, x) == pytest.approx(480.0)  # 20 x^3


def refused(function, words, x=None):
    x = torch.tensor([2.0], requires_grad=True) if x is None else x
    (first,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(RuntimeError, match=words):
        torch.autograd.grad(first.sum(), x)


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (lambda x: torch.tensor(3 * x.detach().numpy() ** 2), r"detach\(\)"),
        (lambda x: torch.tensor([3 * x.item() ** 2]), r"item\(\)"),
        (lambda x: torch.tensor([3 * x.tolist()[0] ** 2]), r"tolist\(\)"),
        (lambda x: 3 * x.data**2, r"\.data"),
        (lambda x: no_grad(lambda: 3 * x**2), "no_grad"),
    ],
)
@pytest.mark.parametrize("classes", [0, 1])
def test_a_backward_that_leaves_the_graph(rule, what, classes, classes_of_its_own):
    for _ in range(classes):  # calls go through code that asks such classes
        type("Kind", (torch.Tensor,), {})

    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return rule(ctx.saved_tensors[0]) * g

    refused(
        Cube.apply,
        rf"Cube.backward: its own derivative is not known: {what} left the recorded graph\n  lost at "
        r".*test_honest.py(.|\n)*once_differentiable",
    )


def no_grad(f):
    with torch.no_grad():
        return f()


def test_a_backward_computed_by_numpy_from_what_it_kept_itself():
    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach().numpy()
            return torch.tensor(ctx.x**3)

        @staticmethod
        def backward(ctx, g):
            return torch.tensor(3 * ctx.x**2 * g.detach().numpy())

    h = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad((Cube.apply(h) * 1.0).sum(), h, torch.ones(()).requires_grad_(), create_graph=True)
    assert first.item() == 12.0
    with pytest.raises(RuntimeError, match="Cube.backward"):
        torch.autograd.grad(first.sum(), h)


def test_once_differentiable():
    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return torch.tensor(3 * x.detach().numpy() ** 2) * g

    refused(
        Cube.apply,
        r"Cube.backward: is marked @once_differentiable and cannot be differentiated again\n  called at "
        r".*test_honest.py",
    )


def test_a_constant_may_be_declared():
    class Drop(torch.Function):
        @staticmethod
        def forward(ctx, x):
            mask = (torch.rand(x.shape) > 0.5).to(x.dtype) * 2
            ctx.save_for_backward(x, mask)
            ctx.mark_constant(mask)
            return x**3 * mask

        @staticmethod
        def backward(ctx, g):
            x, mask = ctx.saved_tensors
            return 3 * x**2 * mask * g

    x = torch.full((64,), 2.0, requires_grad=True)
    y = Drop.apply(x * 1)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (two,) = torch.autograd.grad(first.sum(), x)
    assert np.array_equal(two.numpy(), 12 * (y.detach().numpy() / 8))


def test_bool_and_integer_intermediates_never_stand_in_the_way():
    class Relu3(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x > 0)
            return x.clamp(min=0) ** 3

        @staticmethod
        def backward(ctx, g):
            x, positive = ctx.saved_tensors
            return 3 * x**2 * positive * g

    assert second(Relu3.apply, torch.tensor([2.0], requires_grad=True)) == 12.0


def test_a_random_intermediate_is_not_taken_from_the_second_run():
    class Noisy(torch.Function):
        @staticmethod
        def forward(ctx, x):
            noise = x * torch.rand(x.shape)
            ctx.save_for_backward(noise)
            return noise * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    torch.manual_seed(0)
    x = torch.tensor([2.0], requires_grad=True)
    (first,) = torch.autograd.grad(Noisy.apply(x).sum(), x, create_graph=True)
    state = torch.random.get_rng_state()
    with pytest.raises(RuntimeError, match="run again, forward saved another value"):
        torch.autograd.grad(first.sum(), x)
    assert torch.equal(torch.random.get_rng_state(), state)
