"""Gradients of leaves are memory of their own, whatever hooks did with what they saw."""

from __future__ import annotations

import numpy as np
import pytest

import genesis as T

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
