"""Forward mode by hand, its errors, and the functions of `autograd.functional`."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis.autograd import forward_ad, functional
from genesis.func import grad, jacfwd, jacrev, jvp, linearize, vjp


def t(array, **options):
    return genesis.tensor(np.asarray(array, np.float64), **options)


def test_dual_levels():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t([1.0, 2]), t([1.0, 0]))
        y = x * x
        primal, tangent = forward_ad.unpack_dual(y)
        assert primal.tolist() == [1, 4] and tangent.tolist() == [2, 0]
        assert forward_ad.unpack_dual(t([1.0])).tangent is None
        with forward_ad.dual_level():  # a second derivative: a level inside
            z = forward_ad.make_dual(x, t([1.0, 0]))
            inner = forward_ad.unpack_dual(z**3)
        second = forward_ad.unpack_dual(inner.tangent).tangent
        assert second.tolist() == [6, 0]
    with pytest.raises(RuntimeError, match="no level of forward mode is open"):
        forward_ad.make_dual(t(1.0), t(1.0))
    with pytest.raises(RuntimeError, match="a tensor from inside dual_level is used after dual_level has ended"):
        y + 1
    level = forward_ad.enter_dual_level()
    assert forward_ad.unpack_dual(
        forward_ad.make_dual(t(1.0), t(2.0), level=level).exp()
    ).tangent.item() == pytest.approx(2 * np.e)
    forward_ad.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level is open"):
        forward_ad.exit_dual_level()


def test_backward_through_a_tangent_inside_the_level():
    x = t([1.0, 2.0], requires_grad=True)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, t([1.0, 1.0])) ** 3
        forward_ad.unpack_dual(y).tangent.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_training_through_a_directional_derivative():
    genesis.manual_seed(0)
    net = genesis.nn.Sequential(genesis.nn.Linear(2, 8), genesis.nn.Tanh(), genesis.nn.Linear(8, 1)).double()
    x, v = genesis.randn(5, 2, dtype=genesis.float64), genesis.randn(5, 2, dtype=genesis.float64)
    jvp(net, (x,), (v,))[1].square().sum().backward()
    found = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    net.zero_grad()
    points = x.clone().requires_grad_()
    (g,) = genesis.autograd.grad(net(points).sum(), points, create_graph=True)
    (g * v).sum(1).square().sum().backward()
    for name, p in net.named_parameters():
        if p.grad is not None:
            np.testing.assert_allclose(found[name].numpy(), p.grad.numpy(), rtol=1e-10, atol=1e-12)
    assert "2.bias" not in found or float(found["2.bias"].abs().sum()) == 0


def test_has_aux_and_structures():
    value, tangent, aux = jvp(
        lambda d: ({"y": d["x"] ** 2}, d["x"] + 1), ({"x": t(3.0)},), ({"x": t(1.0)},), has_aux=True
    )
    assert value["y"].item() == 9 and tangent["y"].item() == 6 and aux.item() == 4
    g, (v, a) = genesis.func.grad_and_value(lambda x: ((x**2).sum(), {"n": x.sum()}), has_aux=True)(t([1.0, 2]))
    (value, aux), gradient = genesis.func.value_and_grad(lambda x: ((x**2).sum(), {"n": x.sum()}), has_aux=True)(
        t([1.0, 2])
    )
    assert (value, aux["n"], gradient.tolist()) == (v, a["n"], g.tolist())
    assert (
        g.tolist() == [2, 4]
        and v.item() == 5
        and a["n"].item() == 3
        and not v.requires_grad
        and not a["n"].requires_grad
    )
    _, pull, aux = vjp(lambda x: (x**2, "note"), t([3.0]), has_aux=True)
    assert aux == "note" and pull(t([1.0]))[0].tolist() == [6]
    J, aux = jacrev(lambda x: (x**2, x.sum()), has_aux=True)(t([1.0, 2]))
    assert J.tolist() == [[2, 0], [0, 4]] and aux.item() == 3
    J, aux = jacfwd(lambda x: (x**2, (x.sum(), "note")), has_aux=True)(t([1.0, 2]))
    assert J.tolist() == [[2, 0], [0, 4]] and aux[0].item() == 3 and aux[1] == "note"
    J = jacrev(lambda a, b: {"p": a * b, "q": a.sum()}, argnums=(0, 1))(t([1.0, 2]), t([3.0, 4]))
    assert (
        J["p"][0].tolist() == [[3, 0], [0, 4]]
        and J["p"][1].tolist() == [[1, 0], [0, 2]]
        and J["q"][1].tolist() == [0, 0]
    )
    F = jacfwd(lambda a, b: {"p": a * b, "q": a.sum()}, argnums=(0, 1))(t([1.0, 2]), t([3.0, 4]))
    assert all(F[k][i].tolist() == J[k][i].tolist() for k in "pq" for i in (0, 1))


def test_linearize_runs_the_function_once():
    calls = []
    y, push = linearize(lambda a, b: (calls.append(1), a * b)[1], t([2.0]), t([3.0]))
    assert (
        push(t([1.0]), t([0.0])).tolist() == [3]
        and push(t([0.0]), t([1.0])).tolist() == [2]
        and len(calls) == 1
        and y.tolist() == [6]
    )


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: jvp(genesis.sin, (t([1.0, 2]),), (t([1.0]),)),
            RuntimeError,
            r"the tangent of `input` has shape \[1\], its primal \[2\]",
        ),
        (
            lambda: jvp(genesis.sin, (t([1.0]),), (genesis.ones(1),)),
            RuntimeError,
            "the tangent of `input` is genesis.float32, its primal genesis.float64",
        ),
        (lambda: jvp(genesis.sin, (t([1.0]),), (1.0,)), TypeError, "the tangent of `input` is float"),
        (lambda: jvp(genesis.sin, t([1.0]), t([1.0])), TypeError, "primals and tangents must be tuples"),
        (lambda: jvp(genesis.sin, (t(1.0), t(1.0)), (t(1.0),)), TypeError, "differ in structure"),
        (
            lambda: jvp(lambda x: 3.0, (t(1.0),), (t(1.0),)),
            TypeError,
            "the function must return tensors, it returned float",
        ),
        (lambda: grad(lambda x: x)(t([1.0, 2])), RuntimeError, r"must return a scalar tensor, it returned shape \[2\]"),
        (
            lambda: grad(lambda x: x.sum())(genesis.tensor([1, 2])),
            RuntimeError,
            "floating and complex tensors only, got genesis.int64",
        ),
        (lambda: grad(lambda x: x.sum())(3), TypeError, "by tensors only, the argument holds int 3"),
        (
            lambda: grad(lambda x: x.sum(), argnums=2)(t(1.0)),
            ValueError,
            "argnums names argument 2, <lambda> was given 1",
        ),
        (lambda: grad(lambda x: x.sum(), argnums=())(t(1.0)), ValueError, "argnums is empty"),
        (lambda: grad(t(1.0)), TypeError, r"expected a function, got Tensor"),
        (lambda: grad(lambda x: x.sum(), has_aux=True)(t(1.0)), TypeError, "must return a pair"),
        (
            lambda: vjp(genesis.sin, t([1.0, 2]))[1](t([1.0])),
            RuntimeError,
            r"cotangent 0 is shape \[1\], output 0 has shape \[2\]",
        ),
        (lambda: functional.jacobian(lambda x: x, t([1.0]), strategy="sideways"), ValueError, "strategy is 'sideways'"),
        (lambda: functional.jacobian(lambda x: x, t([1.0]), strategy="forward-mode"), ValueError, "vectorize=True"),
        (
            lambda: functional.jacobian(lambda x: genesis.ones(2), t([1.0]), strict=True),
            RuntimeError,
            "output 0 does not depend on the inputs",
        ),
        (lambda: functional.hessian(lambda x: x, t([1.0, 2])), RuntimeError, "must return one element"),
        (lambda: functional.vjp(lambda x: x, t([1.0, 2])), RuntimeError, "v may be left out only"),
        (lambda: functional.vjp(lambda x: x, "x"), TypeError, r"inputs\[0\] is str"),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_memory_of_tangents():
    """Writes to a value write to its tangent, and to nobody else's."""

    def f(x):
        y = x + 1  # the tangent of y is that of x
        y.mul_(3)
        z = y.t().clone()
        row = y[0]
        row.zero_()
        flat = (y.t() * 2).reshape(-1)  # a copy: its value is laid out by columns
        flat.add_(x.reshape(-1))
        return x * 1, y, z, flat

    x = t([[1.0, 2], [3, 4]])
    d = t([[1.0, 10], [100, 1000]])
    given = d.clone()
    values, tangents = jvp(f, (x,), (d,))
    assert tangents[0].tolist() == d.tolist() == given.tolist()
    assert tangents[1].tolist() == [[0, 0], [300, 3000]] and tangents[2].tolist() == [[3, 300], [30, 3000]]
    assert tangents[3].tolist() == [1, 610, 100, 7000] and values[3].tolist() == [1, 26, 3, 34]


def test_detach_is_a_constant_for_forward_mode_too():
    for f, slope in (
        (lambda x: x * x.detach(), 3.0),
        (lambda x: x.data * 2, 0.0),
        (lambda x: genesis.autograd.stop_gradient(x) + x, 1.0),
    ):
        assert jvp(f, (t(3.0),), (t(1.0),))[1].item() == grad(f)(t(3.0)).item() == slope
        assert genesis.vmap(lambda x, f=f: jvp(f, (x,), (t(1.0),))[1])(t([3.0])).item() == slope


def test_linear_transpose():
    from genesis.func import linear_transpose

    matrix = t([[1.0, 2, 3], [4, 5, 6]])
    assert linear_transpose(lambda x: matrix @ x, genesis.ones(3, dtype=genesis.float64))(t([1.0, 10]))[0].tolist() == [
        41,
        52,
        63,
    ]
    with pytest.raises(RuntimeError, match="is not linear"):
        linear_transpose(lambda x: x + 1, t([1.0]))


def test_functions_that_write_to_their_arguments_have_no_forward_mode():
    class Doubled(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(
        RuntimeError, match="a Function wrote to one of its arguments in place, its tangent would be lost"
    ):
        jvp(lambda x: Doubled.apply(x * 1), (t([1.0]),), (t([1.0]),))


# ---- autograd.functional


def test_jacobians_in_every_way():
    f = lambda x, y: (x * y.sum(), (x**2).sum())  # noqa: E731
    x, y = t([1.0, 2]), t([3.0, 4, 5])
    expected = ((np.eye(2) * 12, np.repeat([[1.0], [2]], 3, 1)), ([2.0, 4], [0.0, 0, 0]))
    for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        J = functional.jacobian(f, (x, y), **options)
        for row, wanted in zip(J, expected, strict=True):
            for found, want in zip(row, wanted, strict=True):
                np.testing.assert_allclose(found.numpy(), want)
                assert not found.requires_grad
    w = t([1.0, 2], requires_grad=True)
    for options in ({}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}):
        w.grad = None
        functional.jacobian(lambda x: x**3, w, create_graph=True, **options).sum().backward()
        assert w.grad.tolist() == [6, 12]


def test_hessians_in_every_way():
    f = lambda x, y: (x**2).sum() * y.sum()  # noqa: E731
    x, y = t([1.0, 2]), t([3.0])
    for options in ({}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}):
        H = functional.hessian(f, (x, y), **options)
        np.testing.assert_allclose(H[0][0].numpy(), 6 * np.eye(2))
        np.testing.assert_allclose(H[0][1].numpy(), [[2.0], [4]])
        np.testing.assert_allclose(H[1][0].numpy(), [[2.0, 4]])
        np.testing.assert_allclose(H[1][1].numpy(), [[0.0]])
    assert functional.hessian(lambda x: (x**3).sum(), x).tolist() == [[6, 0], [0, 12]]


def test_products():
    f, x, v = lambda x: (x**3).sum(), t([1.0, 2]), t([1.0, -1])  # noqa: E731
    for call in (functional.vhp, functional.hvp):
        value, product = call(f, x, v)
        assert value.item() == 9 and product.tolist() == [6, -12]
    assert functional.vjp(lambda x: x**2, x, v)[1].tolist() == [2, -4]
    assert functional.jvp(lambda x: x**2, x, v)[1].tolist() == [2, -4]
    w = t([1.0, 2], requires_grad=True)
    functional.jvp(lambda x: x**2, w, v, create_graph=True)[1].sum().backward()
    assert w.grad.tolist() == [2, -2]
    w.grad = None
    functional.vjp(lambda x: x**2, w, v, create_graph=True)[1].sum().backward()
    assert w.grad.tolist() == [2, -2]
    with pytest.raises(RuntimeError, match="is constant, and strict=True"):
        functional.vjp(lambda x: x * 2, w, v, create_graph=True, strict=True)


# ---- verify


def rule(jvp=None, vmap=None):
    members = {"forward": staticmethod(lambda ctx, x: (ctx.save_for_backward(x), ctx.save_for_forward(x), x**3)[2]),
               "backward": staticmethod(lambda ctx, g: 3 * ctx.saved_tensors[0] ** 2 * g)}  # fmt: skip
    members |= {} if jvp is None else {"jvp": staticmethod(jvp)}
    members |= {} if vmap is None else {"vmap": staticmethod(vmap)}
    return type("Cube", (genesis.Function,), members)


def test_verify_compares_jvp_with_backward_and_batches_with_loops():
    x = t([1.0, -2.0, 0.5])
    good = rule(lambda ctx, d: 3 * ctx.saved_tensors[0] ** 2 * d, lambda info, dims, x: (x**3, 0))
    report = genesis.autograd.verify(good, x)
    assert report, report
    assert "forward mode" in str(report) and "vmap" in str(report)
    wrong = genesis.autograd.verify(rule(lambda ctx, d: 2 * ctx.saved_tensors[0] ** 2 * d), x, checks=["forward_mode"])
    assert not wrong and "jvp and backward disagree about `x`" in str(wrong)
    wrong = genesis.autograd.verify(rule(vmap=lambda info, dims, x: (x**3 + x.sum(), 0)), x, checks=["vmap"])
    assert not wrong and "a batch gives other values than its samples one by one" in str(wrong)
    wrong = genesis.autograd.verify(rule(vmap=lambda info, dims, x: x), x, checks=["vmap"])
    assert not wrong and "its vmap rule fails" in str(wrong) and "must return (output, out_dims)" in str(wrong)
    assert "derived from backward" in str(genesis.autograd.verify(rule(), x, checks=["forward_mode"]))


def test_linearize_and_jvp_agree_about_no_grad():
    def f(x):
        with genesis.no_grad():
            c = x * x
        return x * c, c

    @genesis.no_grad()
    def decorated(x):
        return x * x * genesis.rand(1, dtype=x.dtype)

    x, dx = t([2.0]), t([1.0])
    for function in (f, decorated, lambda x: x * x.detach()):
        genesis.manual_seed(3)
        value, tangent = jvp(function, (x,), (dx,))
        genesis.manual_seed(3)
        again, push = linearize(function, x)
        after = genesis.rand(1).item()
        for found, wanted in (
            (again, value),
            (push(dx), tangent),
            (push(dx * 2), [w * 2 for w in tangent] if function is f else tangent * 2),
        ):
            assert str(found) == str(tuple(wanted) if isinstance(wanted, list) else wanted)
        genesis.manual_seed(3)
        genesis.rand(1)
        assert function is not decorated or genesis.rand(1).item() == after
    assert jvp(f, (x,), (dx,))[1][0].item() == 12


# ---- writes in place where vmap is inside or outside


WRITES = {
    "add_": lambda a, b: a.clone().add_(b),
    "into a view": lambda a, b: _with_first(a.clone(), b),
    "copy_": lambda a, b: a.clone().copy_(b),
    "copy_ into zeros": lambda a, b: genesis.zeros_like(a).copy_(b),
    "setitem": lambda a, b: _with_rest(a * 1, b),
}
OUT_OF_PLACE = {
    "add_": lambda a, b: a + b,
    "into a view": lambda a, b: genesis.cat([a[:1] + b[:1], a[1:]]),
    "copy_": lambda a, b: b + 0 * a,
    "copy_ into zeros": lambda a, b: b + 0 * a,
    "setitem": lambda a, b: genesis.cat([a[:1], b[1:]]),
}


def _with_first(c, b):
    c[0].add_(b[0])
    return c


def _with_rest(c, b):
    c[1:] = b[1:]
    return c


@pytest.mark.parametrize("dims", [(0, None), (0, 0)], ids=["shared", "batched"])
@pytest.mark.parametrize("write", WRITES)
def test_writes_under_vmap_of_values_with_tangents_and_gradients(write, dims):
    a = t(np.arange(6.0).reshape(2, 3))
    b = t(np.arange(3.0) + 5) if dims[1] is None else a * 2 + 1
    one, other = (
        lambda place, f=f: [
            jvp(lambda b: genesis.vmap(f, in_dims=dims)(a, b), (b,), (genesis.ones_like(b) * 2,)),
            jvp(
                lambda a, b: genesis.vmap(f, in_dims=dims)(a, b),
                (a, b),
                (genesis.ones_like(a), genesis.ones_like(b) * 2),
            ),
            jacfwd(lambda b: genesis.vmap(f, in_dims=dims)(a, b))(b),
            jacrev(lambda b: genesis.vmap(f, in_dims=dims)(a, b))(b),
            genesis.vmap(lambda a, b: jvp(lambda p: f(a * 1, p * 1), (b,), (genesis.ones_like(b),)), in_dims=dims)(
                a, b
            ),
            genesis.vmap(lambda a, b: jvp(lambda p: f(p * 1, b * 1), (a * 1,), (b * 1,)), in_dims=dims)(a, b),
        ][place]
        for f in (WRITES[write], OUT_OF_PLACE[write])
    )
    for place in range(6):
        found, wanted = one(place), other(place)
        for x, y in zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]:
            np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_what_has_a_tangent_may_meet_random_numbers():
    genesis.manual_seed(0)
    noise = genesis.rand(2)
    genesis.manual_seed(0)
    y, t = genesis.func.jvp(lambda x: x * genesis.rand(2), (genesis.ones(2),), (genesis.full((2,), 3.0),))
    assert y.tolist() == noise.tolist() and t.tolist() == (noise * 3).tolist()


def test_integers_have_no_tangents():
    with pytest.raises(
        RuntimeError, match="jvp: can differentiate by floating and complex tensors only, got genesis.int64"
    ):
        genesis.func.jvp(lambda x: x * 2, (genesis.tensor([1]),), (genesis.tensor([1]),))


def test_a_tangent_is_the_tensor_that_was_given():
    x, t = genesis.rand(3, 3), genesis.rand(3, 3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        assert forward_ad.unpack_dual(dual).tangent is t
        assert forward_ad.unpack_dual(forward_ad.make_dual(x, t.T)).tangent is not t  # it gets the layout of the value
        assert forward_ad.unpack_dual(dual.view(9)).tangent.tolist() == t.view(9).tolist()
        dual.mul_(2.0)
        assert forward_ad.unpack_dual(dual).tangent.tolist() == t.tolist()
        with forward_ad.dual_level():
            assert forward_ad.unpack_dual(dual).tangent is None
    w = genesis.rand(3, 3, requires_grad=True)
    with forward_ad.dual_level():
        seen = forward_ad.unpack_dual(forward_ad.make_dual(x, w)).tangent
        assert seen is w
        (seen**2).sum().backward()
    assert genesis.equal(w.grad, 2 * w.detach())
