"""Gradients of leaves are memory of their own, whatever hooks did with what they saw."""

from __future__ import annotations

import numpy as np
import pytest

import genesis as T
from genesis.core.graph import engine

USES = {
    "nothing": lambda g: None,
    "detach": lambda g: g.detach(),
    "numpy": lambda g: g.numpy(),
    "tolist": lambda g: g.tolist(),
    "a view": lambda g: g.view(-1),
    "a part": lambda g: g[1:],
    "itself": lambda g: g,
    "data": lambda g: g.data,
    "a write": lambda g: g.mul_(1),
    "dlpack": lambda g: np.from_dlpack(g),
}
WAYS = {
    "mul": lambda s: s * 2,
    "add": lambda s: s + s,
    "chunk": lambda s: s.chunk(3)[2],
    "view": lambda s: s.view(3, 1),
}


def on_tensor(s, a, see):
    s.register_hook(lambda g: (see(g), None)[1])


def on_leaf(s, a, see):
    a.register_hook(lambda g: (see(g), None)[1])


def before_node(s, a, see):
    s.grad_fn.register_prehook(lambda gs: (see(gs[0]), None)[1])


def after_node(s, a, see):
    s.grad_fn.register_hook(lambda results, gs: (see(results[0]), see(results[1]), see(gs[0]), None)[-1])


def returned(s, a, see):
    s.register_hook(lambda g: (see(g), g)[1])


def returned_by_node(s, a, see):
    s.grad_fn.register_hook(lambda results, gs: (see(results[1]), (results[1], results[1]))[1])


def of_several(s, a, see):
    T.autograd.graph.register_multi_grad_hook((s, a), lambda gs: [see(g) for g in gs])


def retained(s, a, see):
    s.retain_grad()
    s.register_hook(lambda g: (see(g), None)[1])


HOOKS = (on_tensor, on_leaf, before_node, after_node, returned, returned_by_node, of_several, retained)


def arrays_of(kept):
    return [x._array if isinstance(x, T.Tensor) else x for x in kept if isinstance(x, T.Tensor | np.ndarray)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("hook", HOOKS, ids=lambda f: f.__name__)
def test_whatever_hooks_do(hook, use, way):
    a, b = (T.zeros(3, dtype=T.float64, requires_grad=True) for _ in range(2))
    s = a + b
    kept = []
    hook(s, a, lambda g: kept.append(USES[use](g)))
    WAYS[way](s).sum().backward()
    assert kept and not np.shares_memory(a.grad._array, b.grad._array)
    for array in arrays_of(kept):
        assert not any(np.shares_memory(array, x.grad._array) for x in (a, b))
    before = a.grad.tolist()
    (b * 5).sum().backward()
    assert a.grad.tolist() == before


def test_a_hook_may_give_what_it_keeps():
    kept = T.ones(3)
    a, b = (T.zeros(3, requires_grad=True) for _ in range(2))
    s = a + b
    s.register_hook(lambda g: kept)
    (s * 2).sum().backward()
    a.grad.mul_(7)
    assert kept.tolist() == b.grad.tolist() == [1, 1, 1]


@pytest.fixture
def lent(monkeypatch):
    from genesis.kernels.cpu import memory

    monkeypatch.setattr(memory, "LARGE", 1)
    yield
    memory.release()


def two_matrices():
    return [T.randn(80, 80).requires_grad_() for _ in range(2)]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("hook", HOOKS, ids=lambda f: f.__name__)
def test_whatever_hooks_do_with_memory_that_is_used_again(hook, use, lent):
    a, b = two_matrices()
    s, kept = a @ b, []
    hook(s, a, lambda g: g is not None and kept.append(USES[use](g)))
    (s * 2).sum().backward()
    for array in arrays_of(kept):
        assert not any(np.shares_memory(array, x.grad._array) for x in (a, b))
    before, seen = a.grad.tolist(), [np.array(array) for array in arrays_of(kept)]
    (a @ b).sum().backward()
    for array, value in zip(arrays_of(kept), seen, strict=False):
        assert np.array_equal(array, value)
    assert a.grad.tolist() != before


def test_what_a_function_keeps_of_memory_that_is_used_again(lent):
    kept = []

    class Double(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kept.append(g @ g)
            return kept[-1]

    a, b = T.randn(80, 80).requires_grad_(), T.randn(40, 160).requires_grad_()
    (Double.apply(a) + Double.apply(b.view(80, 80))).sum().backward()
    assert not any(np.shares_memory(g._array, x.grad._array) for g in kept for x in (a, b))


def test_products_are_given_without_a_copy(lent, monkeypatch):
    copies, apart = [], T.Tensor._apart
    monkeypatch.setattr(T.Tensor, "_apart", lambda self: copies.append(self) or apart(self))
    a, b = two_matrices()
    (a @ b).sum().backward()
    assert not copies or not engine.refs(a)  # where nobody counts as CPython does


def test_gradients_of_several_leaves_in_one_memory_are_told_apart(lent):
    class Split(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            both = g @ g
            return both, both.view(80, 80)

    a, b = two_matrices()
    Split.apply(a, b).sum().backward()
    assert not np.shares_memory(a.grad._array, b.grad._array)


def test_a_gradient_that_is_a_view_is_zeroed_in_place():
    x = T.ones(2, requires_grad=True)
    base = T.ones(4)
    x.grad = base[1:3]
    x.zero_grad(set_to_none=False)
    assert base.tolist() == [1, 0, 0, 1]


def test_numpy_takes_a_tensor_that_requires_grad_where_nothing_is_recorded():
    x = T.ones(2, requires_grad=True)
    with T.no_grad():
        x.numpy()[0] = 3
    assert x.tolist() == [3, 1] and x.requires_grad
