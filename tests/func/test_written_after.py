"""What transforms save, and what is written to afterwards: the gradient is right, or an error says that it cannot be."""

import pytest

import genesis
from genesis.autograd import forward_ad
from genesis.func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap


def _dual(value, tangent, factor):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(value, tangent)
        return forward_ad.unpack_dual(dual * dual * factor).tangent


TRANSFORMS = {
    "vmap": lambda x, w: vmap(lambda a, b: a * b)(x, w),
    "vmap of a square": lambda x, w: vmap(lambda a, b: a * a + b)(x, w),
    "vmap with dimensions": lambda x, w: vmap(lambda a, b: (a + b).exp(), 1, 1)(x, w),
    "vmap of a result": lambda x, w: vmap(lambda a, b: (a + b).exp())(x, w),
    "vmap of one": lambda x, w: vmap(lambda a: a * w[0])(x),
    "vmap of grad": lambda x, w: vmap(grad(lambda b, a: (a * a * b * b).sum()), (None, 0))(w[0], x),
    "vmap of a cube's grad": lambda x, w: vmap(grad(lambda a, b: (a * a * a * b).sum()))(x, w),
    "grad": lambda x, w: grad(lambda a, b: (a * b).exp().sum())(x, w),
    "jvp": lambda x, w: jvp(lambda a, b: a * b, (x, w), (w, x))[0],
    "jvp's tangent": lambda x, w: jvp(lambda a, b: a * b, (x, w), (w, x))[1],
    "jvp by a constant": lambda x, w: jvp(lambda b: x * b, (w,), (w,))[0],
    "jvp along a constant": lambda x, w: jvp(lambda a: x * a, (x,), (w,))[1],
    "jvp of a result": lambda x, w: jvp(genesis.exp, (x,), (w,))[0],
    "jvp's tangent of a result": lambda x, w: jvp(genesis.exp, (x,), (w,))[1],
    "vjp": lambda x, w: vjp(genesis.exp, x)[1](w)[0],
    "vjp's value": lambda x, w: vjp(genesis.exp, x)[0],
    "jacrev": lambda x, w: jacrev(lambda a: a * a * w)(x),
    "jacfwd": lambda x, w: jacfwd(lambda a: a * a * w)(x),
    "linearize": lambda x, w: linearize(lambda a: a * a * w, x)[1](w),
    "make_dual": lambda x, w: _dual(x, w, w),
    "make_dual of a constant": lambda x, w: _dual(w, x, w),
    "make_dual along a constant": lambda x, w: _dual(w, w, x),
}


def _gradient(function, written):
    genesis.manual_seed(0)
    w, x = genesis.ones(4, 3), genesis.randn(4, 3).requires_grad_()
    y = function(x, w)
    if written:
        {"w": w, "x": x.detach(), "y": y.detach()}[written].add_(1)
    y.sum().backward()
    return x.grad


@pytest.mark.parametrize("written", ["w", "x", "y"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_write_is_seen(name, written):
    expected = _gradient(TRANSFORMS[name], None)
    try:
        gradient = _gradient(TRANSFORMS[name], written)
    except RuntimeError as error:
        assert "add_" in str(error) and "modified" in str(error), error
    else:
        assert genesis.equal(gradient, expected)


@pytest.mark.parametrize(
    ("name", "written"),
    [("vmap", "w"), ("vmap of a result", "y"), ("jvp by a constant", "w"), ("jvp along a constant", "w")],
)
def test_what_was_saved_and_written_to_is_an_error(name, written):
    with pytest.raises(RuntimeError, match="modified"):
        _gradient(TRANSFORMS[name], written)


def test_a_write_inside_is_seen_outside():
    x = genesis.randn(3, 2)
    w = genesis.ones(3, 2, requires_grad=True)
    y = w * x
    vmap(lambda a: a.add_(1))(x)
    with pytest.raises(RuntimeError, match="modified"):
        y.sum().backward()


def test_a_write_inside_leaves_views_outside_as_they_are():
    x = genesis.zeros(3, 2)
    rows = [x[0], x.t()]
    vmap(lambda a: a.add_(genesis.ones(2)))(x)
    assert [list(r.shape) for r in rows] == [[2], [2, 3]]
    assert genesis.equal(rows[0], genesis.ones(2)) and genesis.equal(rows[1], genesis.ones(2, 3))


SEEDED = {
    "grad": lambda x, w: genesis.autograd.grad(x.exp(), x, w, create_graph=True)[0],
    "grad of a view": lambda x, w: genesis.autograd.grad(x.view(-1), x, w, create_graph=True)[0] * x,
    "grad of two": lambda x, w: genesis.autograd.grad((x.sin(), x * 2), x, (w, w), create_graph=True)[0] * x,
    "functional.vjp": lambda x, w: genesis.autograd.functional.vjp(genesis.exp, x, w, create_graph=True)[1],
    "functional.jvp": lambda x, w: genesis.autograd.functional.jvp(genesis.exp, x, w, create_graph=True)[1],
    "functional.hvp": lambda x, w: genesis.autograd.functional.hvp(
        lambda a: a.exp().sum(), x, w, create_graph=True
    )[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDED)
def test_gradients_that_a_backward_starts_from_may_be_written_to(name):
    def gradient(written):
        genesis.manual_seed(0)
        w, x = genesis.randn(3), genesis.randn(3, requires_grad=True)
        y = SEEDED[name](x, w)
        if written:
            w.add_(1)
        (y * y).sum().backward()
        return x.grad

    assert genesis.equal(gradient(True), gradient(False))


CUBE = grad(lambda a: (a**3).sum())


@pytest.mark.parametrize(
    "function",
    [
        vmap(CUBE),
        vmap(lambda a: CUBE(a).add_(1)),
        lambda x: jvp(CUBE, (x,), (x,))[0],
        lambda x: jvp(CUBE, (x,), (x,))[1],
        lambda x: jvp(lambda a: CUBE(a).add_(1), (x,), (x,))[1],
    ],
)
def test_gradients_that_leave_a_transform_keep_their_order_in_memory(function):
    """A copy in another order is summed in another order: a trace, which makes no copy, would round differently."""
    x = genesis.randn(40, 30).t()
    assert function(x).stride() == CUBE(x).stride() == (1, 30)


def _same_twice(a):
    gradient = CUBE(a)
    return gradient, gradient


@pytest.mark.parametrize(
    "function",
    [
        vmap(_same_twice),
        lambda x: jvp(_same_twice, (x,), (x,))[0],
        lambda x: jvp(_same_twice, (x,), (x,), has_aux=True)[::2],
    ],
    ids=["vmap", "jvp", "jvp with aux"],
)
def test_a_gradient_that_leaves_a_transform_twice_is_one_memory(function):
    first, second = function(genesis.ones(2, 3))
    first.add_(1)
    first[0].add_(1)
    assert first.tolist() == second.tolist() == [[5] * 3, [4] * 3]


@pytest.mark.parametrize("mapped", [vmap(CUBE), lambda x: jvp(CUBE, (x,), (x,))[1]])
def test_a_write_to_a_part_of_a_gradient_that_left_a_transform_is_traced(mapped):
    def f(x):
        gradient = mapped(x)
        gradient[1].add_(2)
        return gradient * 2

    x = genesis.randn(3, 4)
    assert genesis.equal(genesis.jit.trace(f, x).replay(x), f(x))


def test_the_value_of_a_dual_gradient_is_a_view_of_it():
    x = genesis.ones(3, requires_grad=True)
    with forward_ad.dual_level():
        (gradient,) = genesis.autograd.grad(x, x, forward_ad.make_dual(genesis.ones(3), genesis.ones(3)))
        forward_ad.unpack_dual(gradient).primal.add_(1)
        assert forward_ad.unpack_dual(gradient).primal.tolist() == [2, 2, 2]
