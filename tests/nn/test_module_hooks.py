"""Hooks of modules, forward and backward, for any structure of outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import genesis as torch
from genesis import nn


def linear(value=2.0):
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.fill_(value)
    return layer


def test_backward_hooks_see_and_replace_gradients():
    layer, x = linear(), torch.ones(1, 2, requires_grad=True)
    seen = []
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((m is layer, gi[0].tolist(), go[0].tolist())))
    with layer.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,)):
        layer(x).sum().backward()
    assert seen == [(True, [[40.0, 40.0]], [[10.0, 10.0]])] and x.grad.tolist() == [[41.0, 41.0]]
    assert layer.weight.grad.tolist() == [[10.0, 10.0]] * 2
    layer(x).sum().backward()
    assert x.grad.tolist() == [[81.0, 81.0]]


def test_inputs_without_gradient():
    layer, seen = linear(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0, 1.0]])] and layer.weight.grad is not None
    with torch.no_grad():
        assert not layer(torch.ones(1, 2)).requires_grad


@dataclass
class Pair:
    first: Any
    second: Any


@pytest.mark.parametrize("make", [lambda a, b: {"a": a, "b": b}, lambda a, b: [a, b], lambda a, b: (a, (b, 3)), Pair])
def test_any_structure_of_outputs_and_inputs(make):
    class Tree(nn.Module):
        def forward(self, inputs, n):
            return make(inputs["x"] * n, inputs["y"] * 2)

    module, seen = Tree(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    first, second = [
        t for t in torch.utils.pytree.tree_flatten(module({"x": x, "y": y}, 3))[0] if isinstance(t, torch.Tensor)
    ]
    (first * 5 + second * 7).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_input[0]["x"].item() == 15.0 and grad_input[0]["y"].item() == 14.0 and grad_input[1] is None
    assert [g.item() for g in torch.utils.pytree.tree_flatten(grad_output)[0] if g is not None] == [5.0, 7.0]
    assert x.grad.item() == 15.0 and y.grad.item() == 14.0


def test_forward_hooks_with_keywords_order_and_failures():
    class Add(nn.Module):
        def forward(self, x, *, by=1):
            if by == 0:
                raise ValueError("nothing to add")
            return x + by

    module, order = Add(), []
    module.register_forward_pre_hook(
        lambda m, args, kwargs: ((args[0] * 10,), {"by": kwargs["by"] + 1}), with_kwargs=True
    )
    module.register_forward_pre_hook(lambda m, args: order.append("first"), prepend=True)
    module.register_forward_hook(lambda m, args, kwargs, out: order.append(kwargs["by"]), with_kwargs=True)
    handle = module.register_forward_hook(lambda m, args, out: order.append(out is None), always_call=True)
    assert module(torch.ones(1), by=2).item() == 13.0 and order == ["first", 3, False]
    order.clear()
    with pytest.raises(ValueError, match="nothing to add"):
        module(torch.ones(1), by=-1)
    assert order == ["first", True]
    handle.remove()


def test_hooks_on_every_module():
    from genesis.nn import hooks

    names = []
    net = nn.Sequential(linear(), nn.ReLU())
    with (
        hooks.register_module_forward_hook(lambda m, args, out: names.append(type(m).__name__)),
        hooks.register_module_full_backward_hook(lambda m, gi, go: names.append("back " + type(m).__name__)),
    ):
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert names == ["Linear", "ReLU", "Sequential", "back ReLU", "back Linear", "back Sequential"]
    net(torch.ones(1, 2))
    assert len(names) == 6


@pytest.mark.parity
def test_the_same_gradients_as_pytorch():
    reference = pytest.importorskip("torch")
    results = []
    for lib in (torch, reference):
        layer = lib.nn.Linear(3, 2)
        with lib.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.fill_(0.1)
        seen = []
        layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
        layer.register_full_backward_hook(lambda m, gi, go, seen=seen: seen.append([t.tolist() for t in (*gi, *go)]))
        x = lib.ones(2, 3, requires_grad=True)
        (layer(x) ** 2).sum().backward()
        results.append((seen, x.grad.tolist(), layer.weight.grad.tolist()))
    assert str(results[0]) == str(results[1])


def test_forward_hooks_put_no_node_into_the_graph():
    layer = nn.ReLU()
    layer.register_forward_hook(lambda module, args, result: None)
    assert layer(torch.ones(2, requires_grad=True)).grad_fn.name() == "ReluBackward"


def test_hooks_under_the_names_that_libraries_ask_for():
    layer = nn.Linear(2, 2)
    assert len(layer._forward_hooks) == len(layer._backward_hooks) == 0
    seen = []
    hook = lambda module, args, output: seen.append(1)  # noqa: E731
    handle = layer.register_forward_hook(hook)
    layer.register_forward_pre_hook(lambda module, args: seen.append(0))
    assert list(layer._forward_hooks.values()) == [hook] and len(layer._forward_pre_hooks) == 1
    layer(torch.ones(1, 2))
    assert seen == [0, 1]
    layer._forward_pre_hooks.clear()
    layer._forward_hooks[99] = lambda module, args, output: seen.append(2)
    layer(torch.ones(1, 2))
    assert seen == [0, 1, 1, 2]
    handle.remove()
    assert list(layer._forward_hooks) == [99]
    layer.register_buffer("passing", torch.ones(1), persistent=False)
    assert layer._non_persistent_buffers_set == {"passing"}
    with pytest.raises(AttributeError, match="_no_such_hooks"):
        layer._no_such_hooks


def test_hooks_are_printed_as_the_dictionary_that_they_are():
    module = nn.Identity()
    module.register_forward_pre_hook(print)
    assert repr(module._forward_pre_hooks) == f"OrderedDict({list(module._forward_pre_hooks.items())})"
