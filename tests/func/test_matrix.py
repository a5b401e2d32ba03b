"""Every pair and a selection of triples of transforms, on functions with closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from custom_functions import Cube

import genesis
from genesis import Function
from genesis.func import grad, hessian, hvp, jacfwd, jacrev, jvp, linearize, vjp, vmap
from genesis.utils.checkpoint import checkpoint

F64 = genesis.float64


class CubeWithRules(Function):
    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x * x * t

    @staticmethod
    def vmap(info, in_dims, x):
        assert in_dims[0] == 0 and x.shape[0] == info.batch_size
        return CubeWithRules.apply(x), 0


class NumpyCube(Function):
    """Leaves Genesis in forward: forward mode comes from backward, batches go one by one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return genesis.tensor(x.detach().numpy() ** 3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


@genesis.custom_gradient
def tape_cube(x):
    return x * x * x, lambda g: 3 * x * x * g


CUBES = {
    "ops": lambda x: x * x * x,
    "function": Cube.apply,
    "function_with_rules": CubeWithRules.apply,
    "function_in_numpy": NumpyCube.apply,
    "custom_gradient": tape_cube,
    "checkpoint": lambda x: checkpoint(lambda y: y * y * y, x, use_reentrant=False),
}
# Each takes a function of one number to its derivative, another function of one number.
ONE = lambda: genesis.tensor(1.0, dtype=F64)  # noqa: E731
DERIVATIVES = {
    "grad": lambda f: grad(f),
    "vjp": lambda f: lambda x: vjp(f, x)[1](ONE())[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (ONE(),))[1],
    "jacrev": lambda f: jacrev(f),
    "jacfwd": lambda f: jacfwd(f),
    "linearize": lambda f: lambda x: linearize(f, x)[1](ONE()),
    "vmap_grad": lambda f: lambda x: vmap(grad(f))(x.unsqueeze(0)).squeeze(0),
    "vmap_jvp": lambda f: lambda x: vmap(lambda y: jvp(f, (y,), (ONE(),))[1])(x.unsqueeze(0)).squeeze(0),
    "grad_vmap": lambda f: grad(lambda x: vmap(f)(x.expand(3)).sum() / 3),
    "jvp_vmap": lambda f: lambda x: jvp(lambda y: vmap(f)(y.expand(2)), (x,), (ONE(),))[1][0],
    "checkpoint_grad": lambda f: grad(lambda x: checkpoint(f, x, use_reentrant=False)),
}
EXPECTED = {0: lambda x: x**3, 1: lambda x: 3 * x**2, 2: lambda x: 6 * x, 3: lambda x: 6.0}


def close(found, expected):
    assert abs(float(found.detach()) - expected) < 1e-10, f"{float(found.detach())}, expected {expected}"


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("pair", list(itertools.product(DERIVATIVES, repeat=2)), ids="-".join)
def test_pairs(pair, cube):
    f = CUBES[cube]
    outer, inner = (DERIVATIVES[name] for name in pair)
    x = genesis.tensor(1.5, dtype=F64)
    close(inner(f)(x), EXPECTED[1](1.5))
    close(outer(inner(f))(x), EXPECTED[2](1.5))


TRIPLES = [
    ("jvp", "jvp", "jvp"),
    ("jacfwd", "jacfwd", "jacfwd"),
    ("grad", "grad", "grad"),
    ("jvp", "grad", "jvp"),
    ("grad", "jvp", "grad"),
    ("grad", "jvp", "jvp"),
    ("jvp", "jvp", "grad"),
    ("jacrev", "jacfwd", "jacrev"),
    ("jacfwd", "jacrev", "jacfwd"),
    ("vmap_grad", "vmap_jvp", "vmap_grad"),
    ("grad_vmap", "jvp_vmap", "grad_vmap"),
    ("vmap_jvp", "grad_vmap", "jvp"),
    ("linearize", "vjp", "jvp"),
    ("checkpoint_grad", "jvp", "grad"),
    ("jvp", "checkpoint_grad", "vmap_grad"),
    ("vjp", "linearize", "jacfwd"),
]


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("triple", TRIPLES, ids="-".join)
def test_triples(triple, cube):
    f = CUBES[cube]
    for name in reversed(triple):
        f = DERIVATIVES[name](f)
    close(f(genesis.tensor(1.5, dtype=F64)), EXPECTED[3](1.5))


@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.filterwarnings("ignore:vmap")
def test_outer_backward_reaches_what_transforms_captured(cube):
    """A tensor of the outside, used inside of transforms: its .grad is the derivative of the whole."""
    f = CUBES[cube]
    xs = genesis.tensor([1.0, 2.0, 3.0], dtype=F64)
    for make, expected in (
        (lambda w: vmap(lambda x: f(w * x))(xs).sum(), 3 * 0.5**2 * 36),
        (lambda w: vmap(grad(lambda x: f(w * x)))(xs).sum(), sum(3 * 3 * 0.5**2 * n**2 for n in (1, 2, 3))),
        (
            lambda w: jvp(lambda x: f(w * x), (xs,), (genesis.ones(3, dtype=F64),))[1].sum(),
            sum(9 * 0.5**2 * n**2 for n in (1, 2, 3)),
        ),
        (lambda w: jacfwd(lambda x: f(w * x))(xs).sum(), sum(9 * 0.5**2 * n**2 for n in (1, 2, 3))),
        (
            lambda w: vmap(lambda x: jvp(lambda y: f(w * y), (x,), (w,))[1])(xs).sum(),
            sum(4 * 3 * 0.5**3 * n**2 for n in (1, 2, 3)),
        ),
    ):
        w = genesis.tensor(0.5, dtype=F64, requires_grad=True)
        make(w).backward()
        close(w.grad, expected)


def test_perturbations_are_not_confused():
    one = genesis.tensor(1.0)
    assert float(grad(lambda x: x * grad(lambda y: x + y)(one))(one)) == 1
    assert float(jvp(lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1], (one,), (one,))[1]) == 1
    assert float(grad(lambda x: x * jvp(lambda y: x * y, (one,), (one,))[1])(genesis.tensor(3.0))) == 6
    assert float(jvp(lambda x: x * grad(lambda y: x * y)(one), (genesis.tensor(3.0),), (one,))[1]) == 6


def test_nested_forward_mode_where_pytorch_gives_zero():
    assert float(jacfwd(jacfwd(lambda x: x**4))(genesis.tensor(3.0))) == 108


def test_hessian_of_rosenbrock():
    def f(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    x = genesis.linspace(-1, 1.2, 7, dtype=F64)
    v = x.numpy()
    n = len(v)
    expected = np.zeros((n, n))
    for i in range(n - 1):
        expected[i, i] += 1200 * v[i] ** 2 - 400 * v[i + 1] + 2
        expected[i, i + 1] -= 400 * v[i]
        expected[i + 1, i] -= 400 * v[i]
        expected[i + 1, i + 1] += 200
    for a, b in itertools.product((jacrev, jacfwd), repeat=2):
        np.testing.assert_allclose(a(b(f))(x).numpy(), expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(hessian(f)(x).numpy(), expected, rtol=1e-12, atol=1e-10)
    d = genesis.ones(n, dtype=F64)
    np.testing.assert_allclose(hvp(f, (x,), (d,)).numpy(), expected.sum(1), rtol=1e-12, atol=1e-10)


def test_functions_without_a_tangent():
    x = genesis.tensor([1.0, 2.0])
    assert jvp(lambda x: genesis.ones(2), (x,), (x,))[1].tolist() == [0, 0]
    assert jvp(lambda x: x.argmax(), (x,), (x,))[1].tolist() == 0
    with pytest.raises(RuntimeError, match="does not depend on the inputs"):
        jvp(lambda x: genesis.ones(2), (x,), (x,), strict=True)
    assert grad(lambda x: genesis.ones(()) * 2)(x).tolist() == [0, 0]


def test_what_a_transform_only_passes_through_has_its_gradient():
    """A captured tensor that meets nothing of the transform before it is returned."""
    w = genesis.tensor([1.0, 2.0], dtype=F64)
    three = genesis.zeros(3)
    assert grad(lambda v: vmap(lambda _: v * 2)(three).sum())(w).tolist() == [6, 6]
    assert grad(lambda v: vmap(lambda _: vmap(lambda _: v)(three))(three).sum())(w).tolist() == [9, 9]
    assert grad(lambda v: jvp(lambda _: v * 2, (w,), (w,))[0].sum())(w).tolist() == [2, 2]
    assert grad(lambda v: sum(y.sum() for y in vmap(lambda a: (v, a * v))(three.double())))(w).tolist() == [3, 3]
    assert jvp(lambda v: vmap(lambda _: v * v)(three), (w,), (w,))[1].tolist() == [[2, 8]] * 3


class Product(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * x * w * g, x * x * g


class ProductWithRules(Product):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)
        return x * x * w

    @staticmethod
    def jvp(ctx, dx, dw):
        x, w = ctx.saved_tensors
        return 2 * x * w * dx + x * x * dw

    @staticmethod
    def vmap(info, in_dims, x, w):
        x, w = (
            v if d is not None else v.unsqueeze(0).expand(info.batch_size, *v.shape)
            for v, d in zip((x, w), in_dims, strict=True)
        )
        return ProductWithRules.apply(x, w), 0


@genesis.custom_gradient
def tape_product(x, w):
    return x * x * w, lambda g: (2 * x * w * g, x * x * g)


@pytest.mark.parametrize(
    "f",
    [lambda x, w: x * x * w, Product.apply, ProductWithRules.apply, tape_product],
    ids=["ops", "function", "function_with_rules", "custom_gradient"],
)
def test_a_captured_argument_of_a_function(f):
    """The second argument comes from outside of the transforms and has a gradient there."""
    xs, one = genesis.tensor([1.0, 2.0, 3.0], dtype=F64), genesis.ones(3, dtype=F64)
    w0 = genesis.tensor(0.5, dtype=F64)
    inner = {
        "vmap": (lambda w: vmap(lambda x: f(x, w))(xs).sum(), 14.0),
        "jvp": (lambda w: jvp(lambda x: f(x, w.expand(3)), (xs,), (one,))[1].sum(), 12.0),
        "vmap of jvp": (lambda w: vmap(lambda x: jvp(lambda y: f(y, w), (x,), (ONE(),))[1])(xs).sum(), 12.0),
        "jvp of vmap": (lambda w: jvp(lambda v: vmap(lambda x: f(x, w))(v), (xs,), (one,))[1].sum(), 12.0),
        "jvp of jvp": (
            lambda w: jvp(lambda v: jvp(lambda x: f(x, w.expand(3)), (v,), (one,))[1], (xs,), (one,))[1].sum(),
            6.0,
        ),
        "vmap of grad": (lambda w: vmap(grad(lambda x: f(x, w)))(xs).sum(), 12.0),
    }
    for name, (value, slope) in inner.items():
        for how in (grad(value)(w0), jvp(value, (w0,), (ONE(),))[1], jacrev(value)(w0), jacfwd(value)(w0)):
            assert abs(float(how) - slope) < 1e-12, f"{name}: {float(how)}, expected {slope}"
        leaf = w0.clone().requires_grad_()
        value(leaf).backward()
        assert abs(float(leaf.grad) - slope) < 1e-12, name
