"""What comes out of transforms of constants is a constant, however they are nested."""

from __future__ import annotations

import itertools

import pytest

import genesis
from genesis.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


def f(x, y):
    return (x.sin() * y * y + x * x * y).sum()


TRANSFORMS = {
    "grad": lambda f: lambda x, y: grad(f)(x, y).sum(),
    "vjp": lambda f: lambda x, y: (lambda out, pull: pull(genesis.ones_like(out))[0].sum() * out)(*vjp(f, x, y)),
    "linearize": lambda f: lambda x, y: (lambda out, push: push(x, y) * out)(*linearize(f, x, y)),
    "jvp": lambda f: lambda x, y: jvp(f, (x, y), (y, x))[1],
    "jacrev": lambda f: lambda x, y: jacrev(f, argnums=1)(x, y).sum(),
    "jacfwd": lambda f: lambda x, y: jacfwd(f, argnums=1)(x, y).sum(),
    "hessian": lambda f: lambda x, y: hessian(f)(x, y).sum(),
    "vmap": lambda f: lambda x, y: vmap(f)(genesis.stack([x, y]), genesis.stack([y, x])).sum(),
    "by y": lambda f: lambda x, y: grad(lambda z: f(x, z))(y).sum(),
}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(TRANSFORMS, repeat=2)))
def test_nested_transforms_of_constants_have_no_history(outer, inner):
    x, y = genesis.tensor([0.3, -0.7], dtype=genesis.float64), genesis.tensor([1.2, 0.4], dtype=genesis.float64)
    nested = TRANSFORMS[outer](TRANSFORMS[inner](f))
    result = nested(x, y)
    assert not result.requires_grad
    tracked = nested(x.detach().requires_grad_(), y)
    assert tracked.requires_grad and tracked.item() == pytest.approx(result.item())


def test_an_argument_of_a_transform_that_is_open_counts():
    x, y = genesis.tensor(2.0), genesis.tensor(3.0)
    assert grad(lambda y: grad(lambda x: x * x * y)(x))(y).item() == 4
    out, pull = vjp(lambda y: grad(lambda x: x * x * y * y)(x), y)
    assert not out.requires_grad and pull(genesis.tensor(1.0))[0].item() == 24
    assert grad(lambda s: pull(s)[0] * s)(genesis.tensor(1.0)).item() == 48
