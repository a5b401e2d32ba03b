"""The first gradient of a leaf has the strides of the leaf, as PyTorch's has: programs look at gradients by
``p.grad.view(-1)``.
"""

from __future__ import annotations

import pytest

import genesis

USES = {
    "transposed": lambda w, x: x @ w.t(),
    "of more dimensions": lambda w, x: w.mT @ genesis.ones(3, 2),
    "elementwise": lambda w, x: w.T * 2,
    "expanded": lambda w, x: w.expand(2, 3, 4),
}
LEAVES = {
    "rows": (lambda: genesis.randn(3, 4), (4, 1)),
    "columns": (lambda: genesis.randn(4, 3).t(), (1, 3)),
    "with gaps": (lambda: genesis.randn(6, 8)[::2, ::2], (4, 1)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("leaf", "strides"), LEAVES.values(), ids=LEAVES)
def test_strides_and_numbers(use, leaf, strides):
    w, x = leaf().requires_grad_(), genesis.randn(5, 4)
    use(w, x).square().sum().backward()
    first = w.grad
    (expected,) = genesis.autograd.grad(use(w, x).square().sum(), w)
    assert first.stride() == strides and genesis.equal(first, expected)
    use(w, x).square().sum().backward()
    assert w.grad is first and first.stride() == strides and genesis.allclose(first, 2 * expected)


def test_compiled_steps():
    w, x = genesis.randn(3, 4, requires_grad=True), genesis.randn(5, 4)

    def step(x):
        w.grad = None
        (x @ w.t()).square().sum().backward()

    compiled, expected = genesis.compile(step, fullgraph=True), 2 * (x @ w.t()).t() @ x
    for _ in range(3):
        compiled(x)
        assert w.grad.stride() == (4, 1) and genesis.allclose(w.grad, expected, atol=1e-4)


def test_gradients_with_a_history():
    w, x = genesis.randn(3, 4, requires_grad=True, dtype="float64"), genesis.randn(5, 4, dtype="float64")
    (x @ w.t()).pow(3).sum().backward(create_graph=True)
    seen, w.grad = w.grad, None
    assert seen.stride() == (4, 1) and seen.requires_grad
    seen.sum().backward()
    assert w.grad.stride() == (4, 1)
    assert genesis.allclose(w.grad, 6 * (x @ w.t()).t() @ (x * x.sum(1, keepdim=True)))


def test_hooks_see_what_came_and_what_is_kept():
    w, x, seen = genesis.randn(3, 4, requires_grad=True), genesis.randn(5, 4), []
    w.register_hook(lambda g: seen.append(g.stride()))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.stride()))
    (x @ w.t()).sum().backward()
    assert seen == [(1, 3), (4, 1)]
