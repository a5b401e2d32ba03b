"""Where descriptions of the function system contradict each other, one meaning was chosen: one test for each choice."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

import genesis
from genesis import Function

SOURCE = Path(__file__).read_text().splitlines()


def leaf(values=(1.0, 2.0), **options):
    return genesis.tensor(list(values), requires_grad=True, **options)


def made(forward, backward=lambda ctx, g: g, **members):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), **members})


def test_c01_apply_belongs_to_the_class():
    double = made(lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply
    x = leaf()
    double(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_c02_saved_tensors_is_a_tuple_and_calls_add_up():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 2)
        return x * 3

    def backward(ctx, g):
        seen.append(ctx.saved_tensors)
        return g * 3

    made(forward, backward).apply(leaf()).sum().backward()
    assert isinstance(seen[0], tuple)
    assert [t.tolist() for t in seen[0]] == [[1, 2], [2, 4]]


@pytest.mark.parametrize("door", ["save_for_backward", "attribute", "save_variable"])
def test_c03_a_tensor_is_safe_by_every_door(door):
    def forward(ctx, x):
        y = x.exp()
        if door == "save_for_backward":
            ctx.save_for_backward(y)
        elif door == "attribute":
            ctx.y = y
        else:
            ctx.save_variable("y", y)
        return y

    def backward(ctx, g):
        y = {
            "save_for_backward": lambda: ctx.saved_tensors[0],
            "attribute": lambda: ctx.y,
            "save_variable": lambda: ctx.saved_variables["y"],
        }[door]()
        return g * y

    cls = made(forward, backward)
    x = leaf()
    gc.disable()
    try:
        out = cls.apply(x)
        gone = weakref.ref(out)
        out.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2]), rtol=1e-6)
        with pytest.raises(RuntimeError, match="freed"):
            out.sum().backward()
        del out
        assert gone() is None  # no cycle through an output that was saved
    finally:
        gc.enable()
    out = cls.apply(x)
    out.add_(1)
    with pytest.raises(RuntimeError, match="modified in place by add_"):
        out.sum().backward()


def test_c04_integer_literals_that_require_grad():
    assert genesis.tensor([1, 2, 3], requires_grad=True).dtype is genesis.float32
    with pytest.raises(RuntimeError, match="int64"):
        genesis.tensor([1, 2, 3], dtype=genesis.int64, requires_grad=True)


def test_c05_zero_grad():
    x = leaf()
    x.sum().backward()
    held = x.grad
    x.zero_grad(set_to_none=False)
    assert x.grad is held
    assert held.tolist() == [0, 0]
    x.zero_grad()
    assert x.grad is None


def test_c06_implicit_seed_for_one_element_only():
    x = leaf([3.0])
    (x * 2).reshape(1, 1).backward()
    assert x.grad.tolist() == [2]
    with pytest.raises(
        RuntimeError, match=r"created implicitly only for one element, the output has shape \[2\]\n(?s:.*)gradient="
    ):
        (leaf() * 2).backward()


def test_c07_no_history_names_the_place():
    x = leaf()
    with genesis.no_grad():
        y = x * 2  # c07
    line = next(i for i, text in enumerate(SOURCE, 1) if text.endswith("# c07"))
    with (
        genesis.enable_grad(),
        pytest.raises(RuntimeError, match=rf"(?s)does not require grad.*no_grad.*test_decisions.py:{line}"),
    ):
        y.sum().backward()
    with genesis.no_grad(), genesis.enable_grad():
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_c08_gradcheck_in_float32():
    x = leaf([1.0, 2.0, 3.0])
    assert genesis.autograd.gradcheck(lambda x: (x**2).sum(), x, eps=1e-6) is True
    wrong = made(lambda ctx, x: (ctx.save_for_backward(x), x * x)[1], lambda ctx, g: g * ctx.saved_tensors[0] * 2.02)
    with pytest.raises(genesis.autograd.GradcheckError):
        genesis.autograd.gradcheck(wrong.apply, x, eps=1e-6)


def test_c09_slope_of_relu_at_zero():
    x = leaf([0.0])
    x.relu().backward()
    assert x.grad.item() == 0.0


def test_c10_backward_may_write_to_its_gradient():
    def backward(ctx, g):
        g.mul_(3)
        return g

    x, seed = leaf(), genesis.ones(2)
    y = made(lambda ctx, x: x * 3, backward).apply(x)
    (y + y).backward(seed)
    assert (x.grad.tolist(), seed.tolist()) == ([6, 6], [1, 1])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_c11_c12_gradients_for_arguments_left_to_their_defaults(count):
    cls = made(lambda ctx, x, a=1.0, b=None: x * a, lambda ctx, g: (g, None, None)[:count] if count > 1 else g)
    x = leaf()
    if count == 2:
        cls.apply(x, 1.0).sum().backward()
    else:
        cls.apply(x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_c11_a_surplus_that_is_not_none_is_an_error():
    cls = made(lambda ctx, x: x * 1, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="returned 2 gradients, expected 1"):
        cls.apply(leaf()).sum().backward()


def test_c13_undeclared_writes_are_found():
    def forward(ctx, x):
        x.add_(1)
        return x

    cls = made(forward)
    x = leaf()
    y = x * 2
    assert cls.apply(y) is y
    (y * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        cls.apply(leaf())


@pytest.mark.parametrize("keep", ["input", "detached", "square"])
def test_c14_second_derivatives_are_right_whatever_was_saved(keep):
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x.detach() if keep == "detached" else x, square if keep == "square" else None)
        return square**3

    def backward(ctx, g):
        x, square = ctx.saved_tensors
        return g * 6 * x * (x * x if square is None else square) ** 2

    x = genesis.tensor([2.0], dtype=genesis.float64, requires_grad=True)
    (g,) = genesis.autograd.grad(made(forward, backward).apply(x), x, create_graph=True)
    # 30 x^4; with the square for a constant it would be 96
    assert genesis.autograd.grad(g, x)[0].item() == pytest.approx(480.0)


def test_c15_an_override_reaches_the_kernel():
    cls = made(lambda ctx, a, b: genesis.ops.add(a, b), lambda ctx, g: (g, g))
    x = leaf()
    with genesis.ops.register_function("add", cls.apply):
        y = x + x  # would recurse for ever
    assert repr(y.grad_fn) == "<MadeBackward>"


def test_c16_a_gradient_for_a_number_is_ignored():
    cls = made(lambda ctx, a, b: a + b, lambda ctx, g: (g, g))
    x = leaf()
    cls.apply(x, 1).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_c17_gradients_are_summed_only_over_axes_that_were_broadcast():
    add = made(lambda ctx, a, b: a + b, lambda ctx, g: (g, g))
    a, b = genesis.ones(4, 3, requires_grad=True), genesis.ones(3, requires_grad=True)
    add.apply(a, b).sum().backward()
    assert b.grad.tolist() == [4, 4, 4]
    wrong = made(lambda ctx, x: x.sum(), lambda ctx, g: genesis.ones(4, 3))
    with pytest.raises(RuntimeError, match=r"the gradient of x has shape \[4, 3\], the input has \[3\]"):
        wrong.apply(leaf([1.0, 2.0, 3.0])).backward()


def test_c18_one_dimensional_operands():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (a @ b).backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([3, 4], [1, 2])
    with pytest.raises(IndexError, match="dim -2 is out of range"):
        genesis.autograd.MatMulFunction.apply(a, b).backward()


def test_c19_tensors_made_inside_forward():
    cls = made(lambda ctx, x: genesis.tensor(x.data.exp(), requires_grad=x.requires_grad), lambda ctx, g: g)
    assert repr(cls.apply(leaf()).grad_fn) == "<MadeBackward>"


def test_c20_size_is_a_number_and_a_method():
    x = genesis.zeros(2, 3)
    assert (x.size == 6, x.size(), x.size(0), x.size(-1)) == (True, (2, 3), 2, 3)


def test_c21_transpose_takes_two_numbers_or_one_sequence():
    x = genesis.zeros(2, 3, 4)
    assert (x.transpose(0, 1).shape, x.transpose((2, 0, 1)).shape, x.transpose().shape) == (
        (3, 2, 4),
        (4, 2, 3),
        (4, 3, 2),
    )


def test_c22_keyword_arguments():
    cls = made(lambda ctx, x, scale: x * scale, lambda ctx, g: (g, None))
    assert cls.apply(scale=2.0, x=leaf()).tolist() == [2, 4]
    with pytest.raises(TypeError, match="Made.apply"):
        cls.apply(leaf(), scal=2.0)


def test_c23_checkpoint():
    x = leaf()
    genesis.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(np.exp([1, 2])) * np.exp([1, 2]), rtol=1e-5)


def test_c24_a_transposed_gradient_is_an_error_that_says_so():
    cls = made(lambda ctx, x, w: x @ w.t(), lambda ctx, g: (None, genesis.ones(3, 2)))
    with pytest.raises(
        RuntimeError, match=r"(?s)the gradient of w has shape \[3, 2\], the input has \[2, 3\].*transposed"
    ):
        cls.apply(genesis.ones(4, 3), genesis.ones(2, 3, requires_grad=True)).sum().backward()


def test_c25_tiny_takes_scalars():
    from genesis import tiny

    assert tiny.numerical_diff(tiny.Square(), tiny.Variable(np.array(3.0))) == pytest.approx(6.0)
    assert tiny.Variable(np.float64(2.0)).data == 2.0


def test_c26_tiny_differentiates_graphs():
    from genesis import tiny

    x = tiny.Variable(np.array(2.0))
    (tiny.square(x) + x * x).backward()
    assert x.grad == 8.0


def test_c27_arrays_keep_their_dtype():
    assert genesis.tensor(np.array(0.5)).dtype is genesis.float64
    assert genesis.tensor(0.5).dtype is genesis.float32


def test_c28_how_nodes_print():
    x = leaf()
    assert (repr((x + x).grad_fn), repr((x + 2).grad_fn), repr((2 + x).grad_fn)) == ("<AddBackward>",) * 3


def test_c29_hooks_before_and_after_nodes_and_leaves():
    order = []
    x = leaf()
    y = x * 2
    x.register_hook(lambda g: order.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: order.append("accumulated"))
    y.grad_fn.register_prehook(lambda g: order.append("before"))
    y.grad_fn.register_hook(lambda gi, go: order.append("after"))
    y.sum().backward()
    assert order == ["before", "after", "tensor", "accumulated"]


def test_c30_autocast_by_attribute_and_by_context():
    a = genesis.ones(2, 2)
    with genesis.autocast():
        low = (a @ a).dtype
    genesis.enable_autocast = True
    try:
        assert (a @ a).dtype is low is not genesis.float32
    finally:
        genesis.enable_autocast = False
    assert (a @ a).dtype is genesis.float32
