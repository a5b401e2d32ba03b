"""`Function`: forward, backward, apply and the context."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import genesis as torch


class Linear(torch.Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w, b)
        out = x @ w.t()
        if b is not None:
            out += b.unsqueeze(0).expand_as(out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return (
            (g @ w if needs[0] else None),
            (g.t() @ x if needs[1] else None),
            (g.sum(0) if b is not None and needs[2] else None),
        )


class Split(torch.Function):
    @staticmethod
    def forward(ctx, x, n):
        return x[:n].clone(), x[n:].clone()

    @staticmethod
    def backward(ctx, a, b):
        assert a is not None and b is not None
        return torch.cat([a, b]), None


def test_linear_with_and_without_bias():
    x, w, b = (
        torch.randn(4, 3, requires_grad=True),
        torch.randn(2, 3, requires_grad=True),
        torch.randn(2, requires_grad=True),
    )
    assert torch.autograd.gradcheck(Linear.apply, (x, w, b)) and torch.autograd.gradgradcheck(Linear.apply, (x, w, b))
    assert torch.autograd.gradcheck(lambda x, w: Linear.apply(x, w), (x, w))
    assert type(Linear.apply(x, w).grad_fn).__name__ == "LinearBackward"
    assert Linear.apply(x.detach(), w).grad_fn.needs_input_grad == (False, True)


def test_several_outputs_unused_ones_get_zeros():
    x = torch.arange(5.0).requires_grad_()
    a, _ = Split.apply(x, 2)
    (a * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 0, 0, 0]
    assert a.grad_fn.next_functions[0][0].variable is x and a.output_nr == 0


def test_none_instead_of_zeros():
    class Two(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a

    x = torch.ones(1, requires_grad=True)
    Two.apply(x)[0].backward()
    assert x.grad.tolist() == [1]


def test_results_computed_by_numpy_are_tracked():
    class Sine(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(np.sin(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos()

    assert torch.autograd.gradcheck(Sine.apply, torch.randn(3, requires_grad=True))


def test_non_differentiable_and_integer_outputs():
    class Sort(torch.Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            mask = values * 0
            ctx.mark_non_differentiable(mask)
            ctx.indices = indices
            return values, indices, mask

        @staticmethod
        def backward(ctx, g, _, __):
            return torch.zeros_like(g).scatter_(0, ctx.indices, g)

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, indices, mask = Sort.apply(x)
    assert values.requires_grad and not indices.requires_grad and not mask.requires_grad
    values.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [3, 1, 2]


def test_returning_an_input_uses_the_custom_backward():
    class Reverse(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = torch.ones(2, requires_grad=True)
    y = Reverse.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1]


def test_undeclared_write_is_found_and_old_names_stay_right():
    class AddInplace(torch.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a.add_(b)

        @staticmethod
        def backward(ctx, g):
            return g, g * 10

    x, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a = x * 2
    out = AddInplace.apply(a, b)
    assert out is a
    a.sum().backward()  # the old name
    assert x.grad.tolist() == [2, 2] and b.grad.tolist() == [10, 10]
    with pytest.raises(RuntimeError, match="a leaf that requires grad is written to in place"):
        AddInplace.apply(x, b)


def test_saved_output_makes_no_cycle_and_is_right_to_second_order():
    class Exp(torch.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = torch.randn(3, requires_grad=True)
    assert torch.autograd.gradgradcheck(Exp.apply, x)
    gc.disable()
    try:
        y = Exp.apply(x)
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_stale_saved_tensor_names_both_sides():
    x = torch.randn(2, 2, requires_grad=True)
    h = x * 1
    y = Linear.apply(h, torch.randn(2, 2, requires_grad=True))
    h.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"a tensor that LinearBackward saved was modified in place by add_ since.*\n  saved f32\[2, 2\]\n  "
        r"saved at .*test_function.py:184 in test_stale.*\n  written at .*test_function.py:185 in "
        r"test_stale.*\n  try: use the out-of-place form",
    ):
        y.sum().backward()


def returns(*values):
    class Bad(torch.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return tuple(v(g) if callable(v) else v for v in values)

    return Bad


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ((None,), RuntimeError, "Bad.backward: returned 1 gradients, expected 2"),
        ((None, None, 1.0), RuntimeError, "Bad.backward: returned 3 gradients, expected 2"),
        ((1.0, None), TypeError, "Bad.*: the gradient of x is float, expected a tensor or None"),
        (
            (lambda g: g.expand(4, 3), None),
            RuntimeError,
            r"BadBackward: the gradient of x has shape \[4, 3\], the input has \[3\]\n  called at "
            r".*test_function.py.*\n  try: sum it over the first 1 axes",
        ),
        ((lambda g: g[:2], None), RuntimeError, r"the gradient of x has shape \[2\], the input has \[3\]"),
    ],
)
def test_wrong_gradients_are_errors(values, error, words):
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with pytest.raises(error, match=words):
        returns(*values).apply(x, y).sum().backward()
    assert x.grad is None and y.grad is None


@pytest.mark.parametrize(
    ("args", "kwargs", "fits"),
    [
        ((), {}, True),
        ((None,), {}, True),
        ((), {"n": 3}, True),
        ((3,), {}, False),
        ((3,), {"m": 1}, False),
        ((None,), {"m": 1}, True),
    ],
)
def test_gradients_of_trailing_arguments_may_be_left_out_unless_they_were_given_by_position(args, kwargs, fits):
    class Times(torch.Function):
        @staticmethod
        def forward(ctx, x, n=2, m=1):
            ctx.n = (n or 1) * m
            return x * ctx.n

        @staticmethod
        def backward(ctx, g):
            return g * ctx.n

    x = torch.ones(3, requires_grad=True)
    y = Times.apply(x, *args, **kwargs)
    if fits:
        y.sum().backward()
        assert x.grad.tolist() == y.tolist()
    else:
        with pytest.raises(RuntimeError, match="Times.backward: returned 1 gradients, expected [23]"):
            y.sum().backward()


def test_surplus_none_is_accepted_and_broadcast_gradients_are_summed():
    x, y = torch.ones(3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    returns(lambda g: g, lambda g: g, None).apply(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_misuse():
    with pytest.raises(
        TypeError,
        match=r"Linear: a Function is not instantiated\n  try: make its methods static and call "
        r"Linear.apply",
    ):
        Linear()

    class Half(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    y = Half.apply(torch.ones(1, requires_grad=True))
    with pytest.raises(NotImplementedError, match="Half.backward is not implemented"):
        y.backward()

    class Saves(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward([x])

    with pytest.raises(
        TypeError, match="Saves.save_for_backward: argument 0 is list, expected a tensor, a number or None"
    ):
        Saves.apply(torch.ones(1))


def test_nothing_is_recorded_without_need():
    assert Linear.apply(torch.ones(1, 2), torch.ones(2, 2)).grad_fn is None
    x = torch.ones(1, 2, requires_grad=True)
    with torch.no_grad():
        assert Linear.apply(x, torch.ones(2, 2)).grad_fn is None


class Same(torch.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def test_a_returned_input_is_not_written_to_through_the_result():
    x = torch.ones(2, requires_grad=True)
    y = Same.apply(x)
    with pytest.raises(RuntimeError, match="add_: a view of a leaf that requires grad is written to in place"):
        y.add_(1)
    assert x.tolist() == [1, 1]
    z = Same.apply(x * 2)
    with pytest.raises(RuntimeError, match="an input returned by a Function, is written to"):
        z.add_(1)


def test_backward_on_the_meta_device():
    x = torch.zeros(2, device="meta", requires_grad=True)
    (Same.apply(x.exp()) * 2).sum().backward()
    assert x.grad.is_meta and x.grad.shape == (2,)


def test_a_saved_bool_output_carries_no_history():
    class Mask(torch.Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            ctx.save_for_backward(x, mask)
            return x**2 * mask, mask

        @staticmethod
        def backward(ctx, g, _):
            x, mask = ctx.saved_tensors
            assert not mask.requires_grad and mask.dtype == torch.bool
            return 2 * x * mask * g

    x = torch.tensor([2.0, -1.0], requires_grad=True)
    (first,) = torch.autograd.grad(Mask.apply(x)[0].sum(), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [2.0, 0.0]


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_function_whose_results_all_got_none_is_asked_still(materialize, outputs):
    got = []

    class Asked(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return (x * 2, x * 3)[:outputs] if outputs > 1 else x * 2

        @staticmethod
        def backward(ctx, *gs):
            got.append([g if g is None else g.tolist() for g in gs])
            return torch.ones(2) * 0.0

    class Nothing(torch.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    result = Asked.apply(x)
    # the product between passes nothing on
    Nothing.apply((result[0] if outputs > 1 else result) * 2, y).sum().backward()
    assert got == [[[0, 0] if materialize else None] * outputs]
    # zeros, as in PyTorch: an optimizer decays the weight
    assert x.grad.tolist() == [0, 0] and y.grad.tolist() == [1, 1]


def test_arguments_after_a_star_are_named_by_their_place():
    class First(torch.Function):
        @staticmethod
        def forward(ctx, scale, *xs):
            return scale * (xs[0] + xs[1])

        @staticmethod
        def backward(ctx, g):
            return tuple(1.0 if i == ctx.wrong else g for i in range(3))

    for wrong, name in enumerate(("scale", r"xs\[0\]", r"xs\[1\]")):
        y = First.apply(*[torch.ones(2, requires_grad=True) for _ in range(3)])
        y.grad_fn.wrong = wrong
        with pytest.raises(TypeError, match=f"the gradient of {name} is float"):
            y.sum().backward()


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sys.version_info >= (3, 14), reason="counts references as CPython 3.13 does"
)
def test_a_gradient_that_nobody_else_holds_is_not_copied():
    made = []

    class Twice(torch.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            gx = g * 2
            made.append(gx.data_ptr())
            return gx

    x = torch.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    x.grad.add_(1)
    assert x.grad.data_ptr() == made[0] and x.grad.tolist() == [3, 3]


def test_a_gradient_may_keep_dimensions_of_one_element_that_expanding_made():
    class Scaled(torch.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            return x * factor.expand(len(x), 1)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g, (g * x).sum(1, keepdim=True)

    factor = torch.tensor(2.0, requires_grad=True)
    Scaled.apply(torch.ones(3, 4), factor).sum().backward()
    assert factor.grad.item() == 12.0


def test_a_graph_that_backward_makes_for_itself_takes_detached_attributes_as_they_are():
    """What is detached in forward and differentiated in backward by itself is no other name of the argument."""

    class Square(torch.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach()
            return x * x

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                x = ctx.x.requires_grad_()
                torch.autograd.backward(x * x, g)
            return x.grad

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]
    y = x * 1
    (g,) = torch.autograd.grad(Square.apply(y).sum(), x)
    assert g.tolist() == [6.0] and x.grad.tolist() == [6.0]
