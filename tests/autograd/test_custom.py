"""Gradients of your own as decorators: values, first and second derivatives, captured tensors, errors."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import genesis
from genesis.autograd import (
    custom_function,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    defvjp,
    grad,
    gradcheck,
    gradgradcheck,
)
from genesis.base.errors import ArgumentError, ArgumentValueError, GraphError, InplaceError, ShapeError


def double(*shape):
    return genesis.randn(*shape, dtype=genesis.float64, requires_grad=True)


def scalar(value):
    return genesis.tensor(value, dtype=genesis.float64, requires_grad=True)


def derivatives(f, x, count=3):
    """f, f', f'', ... at x."""
    y = f(x)
    found = [y.item()]
    for _ in range(count):
        (y,) = grad(y, x, create_graph=True)
        found.append(y.item())
    return found


# ---- custom_gradient


def test_my_relu_with_a_mask():
    @custom_gradient
    def my_relu(x):
        def backward(g):
            g = g.clone()
            g[x < 0] = 0
            return g

        return x.clamp(min=0), backward

    x = genesis.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = my_relu(x)
    assert type(y.grad_fn).__name__ == "my_reluBackward" and y.tolist() == [0, 0, 2]
    y.backward(genesis.tensor([5.0, 6.0, 7.0]))
    assert x.grad.tolist() == [0, 6, 7]  # the rule runs as it is written: slope one at zero


@custom_gradient
def my_linear(x, weight, bias):  # x (n, in), weight (out, in)
    return x @ weight.t() + bias, lambda g: (g @ weight, g.t() @ x, g.sum(0))


@custom_gradient
def broken_linear(x, weight):
    return x @ weight.t(), lambda g: (g @ weight.t(), x.t() @ g)


def test_my_linear():
    args = double(3, 4), double(5, 4), double(5)
    assert gradcheck(my_linear, args) and gradgradcheck(my_linear, args)


def test_a_transposed_gradient_is_caught_by_its_shape_or_by_gradcheck():
    x, weight = double(3, 4), double(5, 4)
    with pytest.raises(RuntimeError, match="inner sizes differ, 5 and 4"):
        broken_linear(x, weight).sum().backward()
    only_weight = custom_gradient(lambda x, w: (x @ w.t(), lambda g: (None, x.t() @ g)))
    with pytest.raises(
        ShapeError,
        match=r"has shape \[4, 5\], the input has \[5, 4\]\n  called at .*test_custom.py.*\n  try: the gradient is "
        r"transposed",
    ):
        only_weight(x, weight).sum().backward()
    square = double(3, 4), double(4, 4)
    broken_linear(*square).sum().backward()  # no shape tells
    with pytest.raises(genesis.autograd.GradcheckError, match="the gradient of `.*` is wrong"):
        gradcheck(broken_linear, square)


def test_straight_through_in_closure_form():
    step = custom_gradient(lambda x: ((x > 0).float(), lambda g: g))
    x = genesis.tensor([-0.5, 0.5], requires_grad=True)
    y = step(x)
    y.sum().backward()
    assert y.tolist() == [0, 1] and x.grad.tolist() == [1, 1]


def test_several_outputs_containers_and_unused_ones():
    @custom_gradient
    def parts(x):
        return {"sum": x.sum(), "twice": [x * 2, 3]}, lambda a, b: a + b * 2

    x = double(4)
    out = parts(x)
    assert out["twice"][1] == 3 and out["sum"].output_nr == 0 and out["twice"][0].output_nr == 1
    (g,) = grad(out["twice"][0].sum(), x)
    assert g.tolist() == [2] * 4
    assert gradgradcheck(lambda x: parts(x)["sum"] * parts(x)["twice"][0], x)


def test_arguments_in_containers_by_keyword_and_without_gradient():
    @custom_gradient
    def f(pair, n, *, scale=None):
        a, b = pair
        return a * b * n, lambda g: ([g * b * n, g * a * n], None, None)

    a, b = double(2), double(2)
    for y in (f([a, b], 3), f(n=3, pair=[a, b]), f(pair=[a, b], n=3, scale=None)):
        assert np.allclose(grad(y.sum(), a)[0].tolist(), (b * 3).tolist())
    tensors_only = custom_gradient(lambda x, n: (x * n, lambda g: g * n))
    tensors_only(x := double(2), 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_second_derivative_with_arguments_outputs_and_intermediates_kept():
    saves_input = custom_gradient(lambda x: (x.exp(), lambda g: g * x.exp()))

    @custom_gradient
    def saves_output(x):
        y = x.exp()
        return y, lambda g: g * y

    @custom_gradient
    def saves_intermediate(x):
        half = (x / 2).exp()
        return half * half, lambda g: g * half * half

    @custom_gradient
    def hides_it_in_a_helper(x):
        half = [(x / 2).exp()]

        def slope(power):
            return half[0] ** power

        return half[0] ** 2, lambda g, slope=slope: g * slope(2)

    for f in (saves_input, saves_output, saves_intermediate, hides_it_in_a_helper):
        assert np.allclose(derivatives(f, scalar(0.7)), [np.exp(0.7)] * 4), f
        assert gradgradcheck(f, double(3))


def test_kept_squares():
    """Kept intermediates taken for constants would give 288 for 480."""

    @custom_gradient
    def cube_of_square(x):  # (x ** 2) ** 3
        s = x * x
        return s**3, lambda g: g * 3 * s * s * 2 * x

    x = scalar(2.0)
    assert derivatives(cube_of_square, x, 2) == [64, 6 * 32, 30 * 16]  # x ** 6

    @custom_gradient
    def cubed(x):
        s = x * x
        return s * x * 3, lambda g: g * 9 * s

    assert derivatives(cubed, scalar(2.0), 3) == [24, 36, 36, 18]


def test_nested_definition_gives_the_second_derivative_it_says():
    @custom_gradient
    def f(x):
        value, slope = x**3, 3 * x * x  # what a fused kernel would give

        def first(g):
            @custom_gradient
            def first_order(x):
                return slope, lambda gg: gg * 1000.0  # not the derivative of slope: shows whose rule is used

            return g * first_order(x)

        return value, first

    x = scalar(2.0)
    (g,) = grad(f(x), x, create_graph=True)
    assert g.item() == 12 and grad(g, x)[0].item() == 1000


def test_random_numbers_are_the_same_in_the_second_run():
    @custom_gradient
    def dropped(x):
        mask = (genesis.rand(*x.shape) > 0.5).double() * 2
        return x * x * mask, lambda g: g * 2 * x * mask

    x = double(50)
    y = dropped(x)
    before = genesis.get_rng_state().tolist()
    (g,) = grad(y.sum(), x, create_graph=True)
    (gg,) = grad(g.sum(), x)
    assert np.array_equal(gg.numpy(), 2 * (y / (x * x)).detach().numpy().round())
    assert genesis.get_rng_state().tolist() == before


def test_forward_is_not_recorded_and_runs_once():
    calls = []

    @custom_gradient
    def f(x):
        calls.append((x.requires_grad, (x * x).requires_grad))
        return x * x, lambda g: g * 2 * x

    x = double(2)
    f(x).sum().backward()
    assert calls == [(False, False)]
    with genesis.no_grad():
        assert not f(x).requires_grad
    assert not f(x.detach()).requires_grad


def test_memory_is_freed_without_the_collector():
    @custom_gradient
    def f(x):
        y, e = x.exp(), x * 2
        kept.append(weakref.ref(e))
        return y, lambda g: g * y + 0 * e

    kept = []
    x = double(3)
    gc.disable()
    try:
        y = f(x)
        ref = weakref.ref(y)
        y.sum().backward()
        del y
        assert ref() is None and kept[0]() is None
        y = f(x)
        y.sum().backward()
        with pytest.raises(GraphError, match="fBackward was already differentiated and what it saved was freed"):
            y.sum().backward()
    finally:
        gc.enable()


def test_writes_to_what_the_closure_keeps_are_noticed():
    @custom_gradient
    def f(x, w):
        e = x * w
        kept.append(e)
        return e * 1, lambda g: (g * w, g * x)

    @custom_gradient
    def f_intermediate(x):
        e = x.exp()
        kept.append(e)
        return e * 1, lambda g: g * e

    kept = []
    x, w = double(2), genesis.ones(2, dtype=genesis.float64)
    y = f(x, w)
    w.mul_(2)
    with pytest.raises(InplaceError, match="saved was modified in place by mul_"):
        y.sum().backward()
    y = f_intermediate(x)
    kept[-1].zero_()
    with pytest.raises(InplaceError, match="f_intermediateBackward saved was modified in place by zero_"):
        y.sum().backward()


GLOBAL_SCALE = genesis.tensor(2.0, dtype=genesis.float64, requires_grad=True)


@custom_gradient
def uses_global(x):
    return x * GLOBAL_SCALE, lambda g: g * GLOBAL_SCALE


class Layer:
    def __init__(self):
        self.weight = scalar(3.0)

    @custom_gradient
    def scaled(self, x):
        return x * self.weight, lambda g: (None, g * self.weight)

    @custom_gradient
    def with_variables(self, x):
        def backward(g, variables):
            assert variables[0] is not None and len(variables) == 1
            return (None, g * self.weight), [(g * x).sum()]

        return x * self.weight, backward


def test_a_captured_tensor_is_refused_by_name():
    w = double(2)
    h = w * 2
    inner = [w]
    cases = {
        "GLOBAL_SCALE": lambda x: uses_global(x),
        "w": lambda x: custom_gradient(lambda x: (x * w, lambda g: g * w))(x),
        "h": lambda x: custom_gradient(lambda x: (x * h, lambda g: g * h))(x),
        "inner[0]": lambda x: custom_gradient(lambda x: (x * inner[0], lambda g: g))(x),
        "self.weight": lambda x: Layer().scaled(x),
        "net.weight and net.bias": lambda x: custom_gradient(lambda x: (net(x), lambda g: g))(x),
        "weight": lambda x: custom_gradient(functools.partial(lambda x, weight: (x * weight, lambda g: g), weight=w))(
            x
        ),
    }
    net = genesis.nn.Linear(2, 2).double()
    for name, call in cases.items():
        with pytest.raises(GraphError) as caught:
            call(double(2))
        assert f"the function uses {name}, which require" in str(caught.value) and "would be lost" in str(caught.value)
        assert (
            f"try: pass {name.split(' and ')[0]} as an argument, give the gradient function a parameter variables"
            in str(caught.value)
        )
    with pytest.raises(
        GraphError, match="uses GLOBAL_SCALE, which requires grad and is not an argument: its gradient would be lost"
    ):
        uses_global(genesis.ones(2))  # also where no argument requires grad
    with genesis.no_grad():
        uses_global(double(2))


def test_variables():
    layer, x = Layer(), double(4)
    layer.with_variables(x).sum().backward()
    assert np.isclose(layer.weight.grad.item(), x.sum().item()) and x.grad.tolist() == [3] * 4
    layer.with_variables(x.detach()).sum().backward()  # only the variable requires grad
    assert np.isclose(layer.weight.grad.item(), 2 * x.sum().item())

    def total(x, w):
        @custom_gradient
        def f(x):
            e = (x * w).exp()
            return e, lambda g, variables=None: (g * e * w, [(g * e * x).sum()])

        return f(x)

    assert gradcheck(total, (double(3), scalar(0.3))) and gradgradcheck(total, (double(3), scalar(0.3)))

    @custom_gradient
    def unused(x):
        return x * 2, lambda g, variables: (g * 2, [])

    unused(x := double(1)).backward()
    assert x.grad.item() == 2


def test_the_gradient_of_one_variable_need_not_be_in_a_list():
    w, x = double(2), double(2)
    custom_gradient(lambda x: (x * w, lambda g, variables: (g * w, g * x)))(x).sum().backward()
    assert w.grad.tolist() == x.tolist() and x.grad.tolist() == w.tolist()


def test_gradients_of_keywords_may_be_left_out_whatever_their_number():
    x, y = double(2), double(2)

    @custom_gradient
    def product(x, y, *, scale):
        return x * y * scale, lambda g: (g * y * scale, g * x * scale)

    product(x, y, scale=genesis.tensor(3.0, dtype=genesis.float64)).sum().backward()
    assert x.grad.tolist() == (y * 3).tolist() and y.grad.tolist() == (x * 3).tolist()


def test_variables_wrong():
    w, x = double(2), double(2)
    with pytest.raises(GraphError, match="was given variables and returned Tensor, expected a pair"):
        custom_gradient(lambda x: (x * w, lambda g, variables: g))(x).sum().backward()
    with pytest.raises(GraphError, match="returned 2 variable gradients for 1 variables"):
        custom_gradient(lambda x: (x * w, lambda g, variables: (g, [g, g])))(x).sum().backward()


def test_an_argument_may_be_read_by_another_name():
    x = double(2)
    f = custom_gradient(lambda unused: (x * x, lambda g: g * 2 * x))
    assert grad(f(x).sum(), x)[0].tolist() == (2 * x).tolist()
    h = x * 2
    with pytest.raises(GraphError, match="the function uses h, which requires grad"):
        custom_gradient(lambda x: (x * h, lambda g: g * h))(x)


def test_a_captured_result_that_is_returned_unchanged_is_refused_too():
    w, x = double(2), double(2)
    h = w * 2
    with pytest.raises(GraphError, match="the function uses a tensor, which requires grad and is not an argument"):
        custom_gradient(lambda x: (h, lambda g: g))(x)
    with pytest.raises(GraphError, match="the function uses w, which"):
        custom_gradient(lambda x: (h, lambda g: g * w) if w is not None else None)(x)
    with pytest.raises(GraphError, match="the function uses w, which"):
        custom_gradient(lambda x: (w, lambda g: g))(x)


def test_keyword_only_arguments():
    @custom_gradient
    def f(x, *, mask):
        return x * mask, lambda g: g * mask

    x, mask = double(3), genesis.tensor([True, False, True])
    assert grad(f(x, mask=mask).sum(), x)[0].tolist() == [1, 0, 1]
    with pytest.raises(GraphError, match="the rule returned 1 gradients for 2 arguments"):
        f(x, mask=double(3)).sum().backward()
    g = defvjp(lambda x, *, k: x * k, lambda out, x, *, k: lambda g: g * k)
    assert grad(g(x, k=3.0).sum(), x)[0].tolist() == [3, 3, 3]
    with pytest.raises(GraphError, match="a keyword-only argument requires grad, rules are for positional ones"):
        g(x, k=double(3)).sum().backward()
    h = custom_jvp(lambda x, *, k: x * k)
    h.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ArgumentError, match="k is keyword-only, the rule would not see it"):
        h(x, k=2)


def test_results_that_are_arguments_or_views_of_them():
    flip = custom_gradient(lambda x: (x, lambda g: -g))
    x = double(2, 3)
    assert grad(flip(x).sum(), x)[0].tolist() == [[-1] * 3] * 2 and flip(x).data_ptr() == x.data_ptr()
    transposed = custom_gradient(lambda x: (x.t(), lambda g: g.t()))
    assert gradgradcheck(lambda x: transposed(x) ** 2, x)
    both = custom_gradient(lambda x: ((x, x), lambda a, b: a - b))
    first, second = both(x)
    assert grad((first * 5 + second * 3).sum(), x)[0].tolist() == [[2] * 3] * 2


def test_shapes_without_data():
    x = genesis.zeros(2, 3, device="meta", requires_grad=True)
    f = custom_gradient(lambda x: (x.exp(), lambda g: g * x.exp()))
    assert f(x).is_meta and f(x).shape == (2, 3) and f(x).requires_grad


def test_misuse_of_custom_gradient():
    x = double(2)
    with pytest.raises(ArgumentError, match="f: returned Tensor, expected a value and the function of its gradient"):

        @custom_gradient
        def f(x):
            return x * 2

        f(x)
    with pytest.raises(ArgumentError, match="returned tuple of 3"):
        custom_gradient(lambda x: (x, x, x))(x)
    with pytest.raises(GraphError, match="the rule returned 1 gradients for 2 arguments"):
        custom_gradient(lambda x, y: (x * y, lambda g: g))(x, x).sum().backward()
    with pytest.raises(GraphError, match="the rule returned 3 gradients for 2 arguments"):
        custom_gradient(lambda x, y: (x * y, lambda g: (g, g, g)))(x, x).sum().backward()
    with pytest.raises(ArgumentError, match="the gradient of x is float, expected a tensor or None"):
        custom_gradient(lambda x: (x * 2, lambda g: 2.0))(x).sum().backward()
    with pytest.raises(InplaceError, match="writes in place to an argument that requires grad"):
        custom_gradient(lambda x: (x.mul_(2), lambda g: g))(double(2) * 1)
    with pytest.raises(ArgumentError, match="custom_gradient: expected a function, got int"):
        custom_gradient(3)


# ---- custom_vjp


def test_custom_vjp():
    @custom_vjp
    def f(x, y):
        """Documented."""
        return x.sin() * y

    f.defvjp(lambda x, y: (f.function(x, y), (x.cos(), x.sin(), y)), lambda res, g: (res[0] * g * res[2], res[1] * g))
    args = double(3), double(3)
    assert gradcheck(f, args) and gradgradcheck(f, args)
    assert f.__doc__ == "Documented." and repr(f) == "<custom_vjp f>"


def test_custom_vjp_runs_the_rule_only_where_a_gradient_is_wanted():
    ran = []
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (ran.append(1), (x * 2, None))[1], lambda _, g: (g * 2,))
    f(double(2).detach())
    with genesis.no_grad():
        f(double(2))
    assert ran == []
    f(double(2))
    assert ran == [1]


def test_nondiff_arguments():
    def apply(function, x, n):
        return function(x) * n

    f = custom_vjp(apply, nondiff_argnums=(0, 2))
    f.defvjp(lambda function, x, n: (apply(function, x, n), x), lambda function, n, x, g: (g * n * x.cos(),))
    assert gradgradcheck(lambda x: f(genesis.sin, x, 3), double(3))
    by_name = custom_vjp(apply, nondiff_argnames=("function", "n"))
    by_name.defvjp(f.fwd, f.bwd)
    assert gradgradcheck(lambda x: by_name(n=3, x=x, function=genesis.sin), double(3))
    with pytest.raises(GraphError, match="argument 2 is declared not to be differentiated, but it requires grad"):
        f(genesis.sin, double(2), double(2))
    with pytest.raises(ArgumentValueError, match="nondiff_argnames names 'q', which is not a parameter"):
        custom_vjp(apply, nondiff_argnames="q")
    with pytest.raises(ArgumentValueError, match="nondiff_argnums names argument 3 of 3"):
        custom_vjp(apply, nondiff_argnums=3)


def test_containers_in_custom_vjp():
    @custom_vjp
    def f(p):
        return {"out": p["w"] * p["b"]}

    f.defvjp(lambda p: (f.function(p), p), lambda p, g: ({"w": g["out"] * p["b"], "b": g["out"] * p["w"]},))
    assert gradgradcheck(lambda w, b: f({"w": w, "b": b})["out"], (double(2), double(2)))
    f.defvjp(lambda p: (f.function(p), p), lambda p, g: (None,))
    w = double(2)
    f({"w": w, "b": double(2)})["out"].sum().backward()
    assert w.grad is None


def test_misuse_of_custom_vjp():
    x = double(2)
    f = custom_vjp(lambda x: x * 2)
    with pytest.raises(ArgumentError, match=r"it has no rule yet\n  try: lambda.defvjp"):
        f(x)
    f.defvjp(lambda x: x * 2, lambda res, g: (g,))
    with pytest.raises(ArgumentError, match="the forward rule returned Tensor, expected the value and the residuals"):
        f(x)
    w = double(2)
    f.defvjp(lambda x: (x * w, None), lambda res, g: (g,))
    with pytest.raises(GraphError, match="the function uses w, which requires grad"):
        f(x)


# ---- custom_jvp


def test_custom_jvp_is_transposed():
    @custom_jvp
    def f(x, y):
        return x.sin() * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), x.cos() * dx * y + x.sin() * dy

    args = double(3), double(3)
    assert gradcheck(f, args) and gradgradcheck(f, args)
    assert np.allclose(
        derivatives(lambda x: f(x, genesis.ones_like(x)), scalar(0.5)),
        [np.sin(0.5), np.cos(0.5), -np.sin(0.5), -np.cos(0.5)],
    )
    matmul = custom_jvp(lambda a, b: a @ b)
    matmul.defjvp(lambda p, t: (p[0] @ p[1], t[0] @ p[1] + p[0] @ t[1]))
    assert gradgradcheck(matmul, (double(2, 3), double(3, 4)))


def test_defjvps_and_several_outputs():
    f = custom_jvp(lambda x, n, y: x**n * y, nondiff_argnums=(1,))
    f.defjvps(lambda t, out, x, y: t * 3 * x**2 * y, lambda t, out, x, y: t * out / y)
    assert gradgradcheck(lambda x, y: f(x, 3, y), (double(3), double(3)))
    f.defjvps(None, None)
    x = double(2)
    f(x, 3, double(2)).sum().backward()
    assert x.grad is None
    two = custom_jvp(lambda x: (x.sin(), x.cos()))
    two.defjvp(lambda p, t: ((p[0].sin(), p[0].cos()), (t[0] * p[0].cos(), -t[0] * p[0].sin())))
    assert gradgradcheck(lambda x: two(x)[0] * two(x)[1], double(3))


def test_misuse_of_custom_jvp():
    x = double(2)
    f = custom_jvp(lambda x: x * 2)
    with pytest.raises(ArgumentError, match="it has no rule yet"):
        f(x)
    for rule, error, match in (
        (lambda p, t: t[0] * 2, ArgumentError, "the jvp rule returned Tensor, expected the value and its tangent"),
        (
            lambda p, t: (p[0] * 2, p[0]),
            ArgumentValueError,
            "the jvp rule is not linear: its tangent is not zero for zero tangents",
        ),
        (lambda p, t: (p[0] * 2, t[0].sum()), ShapeError, r"the tangent has shape \[\], the value has \[2\]"),
        (lambda p, t: (p[0] * 2, (t[0], t[0])), ArgumentError, "the jvp rule returned 2 tangents for 1 values"),
    ):
        f.defjvp(rule)
        with pytest.raises(error, match=match):
            f(x).sum().backward()
    f.defjvps(None, None)
    with pytest.raises(ArgumentError, match="defjvps has 2 rules for 1 arguments"):
        f(x).sum().backward()


# ---- custom_function, defvjp


def test_custom_function():
    f = custom_function(lambda x, y: x.exp() * y)
    args = double(2), double(2)
    assert gradgradcheck(f, args) and type(f(*args).grad_fn).__name__ == "MulBackward"  # no rule: its own gradient
    f.jvp(lambda primals, tangents: primals[0].exp() * (tangents[0] * primals[1] + tangents[1]))
    assert gradgradcheck(f, args) and type(f(*args).grad_fn).__name__ == "lambdaBackward"
    f.vjp(lambda primals, g, out: (g * out, g * primals[0].exp()))
    assert gradgradcheck(f, args)
    f.vjp(lambda primals, g, out: (g * 0 + 42, g))
    assert grad(f(*args).sum(), args[0])[0].tolist() == [42, 42]
    w = double(2)
    captures = custom_function(lambda x: x * w)
    captures.vjp(lambda x, g, out: g * w)
    with pytest.raises(GraphError, match="the function uses w"):
        captures(double(2))


def test_defvjp_runs_only_the_rules_that_are_needed():
    ran = []

    def maker(i):
        def rule(out, x, y):
            ran.append(i)
            return lambda g: g * (y if i == 0 else x)

        return rule

    f = defvjp(lambda x, y: x * y, maker(0), maker(1))
    assert gradgradcheck(f, (double(2), double(2)))
    ran.clear()
    f(double(2), double(2).detach()).sum().backward()
    assert ran == [0]
    only_second = defvjp(lambda x, y: x * y, maker(1), argnums=[1])
    only_second(double(2).detach(), double(2)).sum().backward()
    with pytest.raises(GraphError, match="it has no rule for argument 0, which requires grad"):
        only_second(double(2), double(2)).sum().backward()
    with pytest.raises(ArgumentValueError, match="1 rules for 2 argnums"):
        defvjp(lambda x: x, maker(0), argnums=[0, 1])
    zero = defvjp(lambda x, y: x * y, None, maker(1))
    zero(x := double(2), double(2)).sum().backward()
    assert x.grad is None


def test_gradients_in_a_dictionary_belong_to_the_argument_of_their_key():
    def parameters():
        return {"w": genesis.tensor([1.0, 2], requires_grad=True), "b": genesis.tensor([10.0, 20], requires_grad=True)}

    @custom_gradient
    def product(params):
        return params["w"].sum() * params["b"].sum(), lambda g: {
            "b": g * params["w"].sum().expand(2),
            "w": g * params["b"].sum().expand(2),
        }

    p = parameters()
    product(p).backward()
    assert p["w"].grad.tolist() == [30, 30] and p["b"].grad.tolist() == [3, 3]

    @custom_gradient
    def misnamed(params):
        return params["w"].sum() * params["b"].sum(), lambda g: {"c": g * genesis.ones(2), "w": g * genesis.ones(2)}

    with pytest.raises(GraphError, match="not like the argument"):
        misnamed(parameters()).backward()


def test_a_gradient_of_the_wrong_shape_names_the_parameter():
    @custom_gradient
    def f(a, weight, *more, options):
        return a.sum() * weight.sum(), lambda g: (g.expand(2), g.expand(1), *[g.expand(7)] * len(more), None)

    a, weight, extra = (genesis.ones(n, requires_grad=True) for n in (2, 3, 4))
    with pytest.raises(ShapeError, match=r"the gradient of weight has shape \[1\], the input has \[3\]"):
        f(a, weight, options={"x": 1}).backward()
    with pytest.raises(ShapeError, match=r"the gradient of more\[0\] has shape \[7\], the input has \[4\]"):
        f(a, weight.detach(), extra, options=None).backward()
