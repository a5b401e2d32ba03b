"""Tensors that a compiled function makes on memory of the outside are none of the outside: what it captures are those that
were there before.
"""

import pytest

import genesis
from genesis import func, nn
from genesis.base.pytree import tree_flatten
from genesis.nn import functional as F


def leaves_of_its_own(way):
    def function(w, t, x):
        made = way(w, t)
        (made**2 * x).sum().backward()
        return made.grad, made.detach() * 2

    return function


WAYS = {
    "gradients by what is captured": lambda w, t, x: func.grad(lambda p: (p * p * x).sum())(t),
    "gradients by a captured leaf": lambda w, t, x: func.grad(lambda p: (p * p * x).sum())(w),
    "a pull": lambda w, t, x: func.vjp(lambda p: p * p * x, t)[1](x),
    "second derivatives": lambda w, t, x: func.hessian(lambda p: (p**3 * x).sum())(t),
    "detached": leaves_of_its_own(lambda w, t: w.detach().requires_grad_()),
    "what was none, detached": leaves_of_its_own(lambda w, t: t.detach().requires_grad_()),
    "data": leaves_of_its_own(lambda w, t: t.data.requires_grad_()),
    "a parameter": leaves_of_its_own(lambda w, t: nn.Parameter(t)),
    "results": lambda w, t, x: (w.detach(), t.data, x * 2),
}


def alike(results, expected):
    for x, y in zip(tree_flatten(results)[0], tree_flatten(expected)[0], strict=True):
        genesis.testing.assert_close(x.detach(), y.detach())
        assert x.requires_grad == y.requires_grad


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_memory_that_is_exchanged_is_read(way):
    genesis.manual_seed(0)
    w, t = nn.Parameter(genesis.randn(3)), genesis.randn(3)
    function = genesis.compile(lambda x: WAYS[way](w, t, x), fullgraph=True)
    for n in range(4):
        x = genesis.full((3,), n + 1.0)
        alike(function(x), WAYS[way](w, t, x))
        assert not t.requires_grad and t.grad is None and w.grad is None
        w.data, t.data = genesis.randn(3), genesis.randn(3)
    assert len(function._recent) == 1


def test_gradients_of_samples_by_captured_weights():
    genesis.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    weights = {name: p.detach() for name, p in model.named_parameters()}
    x, y = genesis.randn(8, 4), genesis.randint(0, 3, (8,))

    def loss(weights, x, y):
        return F.cross_entropy(func.functional_call(model, weights, (x[None],)), y[None])

    def gradients():
        return func.vmap(func.grad(loss), (None, 0, 0))(weights, x, y)

    compiled = genesis.compile(gradients, fullgraph=True)
    for _ in range(4):
        alike(compiled(), gradients())
        with genesis.no_grad():
            for p in model.parameters():
                p.mul_(1.5)
    assert len(compiled._recent) == 1


@pytest.mark.parametrize("end", [lambda w, t: w.detach().requires_grad_(), lambda w, t: nn.Parameter(t)])
def test_leaves_that_are_returned_are_refused(end, recwarn):
    w, t = nn.Parameter(genesis.ones(3)), genesis.ones(3)
    function = genesis.compile(lambda x: (end(w, t), x * 2))
    for _ in range(3):
        leaf, _ = function(genesis.ones(3))
        assert leaf.requires_grad and leaf is not w and leaf is not t and not t.requires_grad
    assert "a leaf that the function made" in str(recwarn[0].message)
