"""A gradient that a hook or a backward gets may be written to in place: nobody else sees it, whatever memory it came
in.
"""

from __future__ import annotations

import contextlib

import pytest

import genesis
from genesis.testing.fuzz_paths import general_path

WRITES = {
    "mul_": lambda g: g.mul_(2),
    "mul_ tensor": lambda g: g.mul_(genesis.full(g.shape, 2.0)),
    "sin_": lambda g: g.sin_(),
    "zero_": lambda g: g.zero_(),
    "fill_": lambda g: g.fill_(3.0),
    "copy_": lambda g: g.copy_(genesis.full(g.shape, 3.0)),
    "setitem": lambda g: (g.__setitem__(0, 3.0), g)[1],
    "imul": lambda g: g.__imul__(2),
}


def by_function(x, write):
    class Written(genesis.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return write(g)

    Written.apply(x).sum().backward()
    return x.grad


def by_leaf_hook(x, write):
    x.register_hook(write)
    x.sum().backward()
    return x.grad


def by_hook(x, write):
    y = x * 1
    y.register_hook(lambda g: (write(g), None)[1])
    y.sum().backward()
    return x.grad


def by_prehook(x, write):
    y = x * 1
    y.grad_fn.register_prehook(lambda grads: (write(grads[0]),))
    y.sum().backward()
    return x.grad


def by_posthook(x, write):
    loss = (x * 1).sum()
    loss.grad_fn.register_hook(lambda grads, _: (write(grads[0]),))
    loss.backward()
    return x.grad


def of_grad(x, write):
    return write(genesis.autograd.grad(x.sum(), x)[0])


def of_grad_of_a_result(x, write):
    y = x * 1
    return write(genesis.autograd.grad(y.sum(), y)[0])


PLACES = [by_function, by_leaf_hook, by_hook, by_prehook, by_posthook, of_grad, of_grad_of_a_result]


@pytest.mark.parametrize("size", [3, 300])  # small expanded gradients are copied at once
@pytest.mark.parametrize("path", [contextlib.nullcontext, general_path])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("place", PLACES)
def test_an_expanded_gradient_is_written_to(place, write, path, size):
    with path():
        found = place(genesis.ones(2, size, requires_grad=True), WRITES[write])
    assert found.tolist() == WRITES[write](genesis.ones(2, size)).tolist()


@pytest.mark.parametrize("registered", ["y", "z"])
def test_a_hook_that_writes_changes_the_gradient_of_its_tensor_only(registered):
    x = genesis.ones(3, requires_grad=True)
    y, z = x * 1, x * 1
    {"y": y, "z": z}[registered].register_hook(lambda g: g.mul_(2))
    ((y + z) * 3).sum().backward()
    assert x.grad.tolist() == [9, 9, 9]


def test_a_prehook_that_writes_changes_the_gradient_of_its_node_only():
    x = genesis.ones(3, requires_grad=True)
    y, z = x * 1, x * 1
    y.grad_fn.register_prehook(lambda grads: (grads[0].mul_(2),))
    ((y + z) * 3).sum().backward()
    assert x.grad.tolist() == [9, 9, 9]


def test_an_expanded_tensor_is_not_written_to():
    with pytest.raises(RuntimeError, match="the memory cannot be written to"):
        genesis.ones(1).expand(3).mul_(2)
