"""Hooks: their order, what they may replace, several gradients at once, every node, and what happens when they fail."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import genesis as torch
from genesis.profiler import profile

graph = torch.autograd.graph


def test_the_order_around_a_node_and_a_leaf():
    order = []
    note = lambda what: lambda *_: order.append(what)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(note("tensor 1"))
    y.register_hook(lambda g: (order.append("tensor 2"), g * 10)[1])
    y.retain_grad()
    node = y.grad_fn
    node.register_prehook(lambda gs: order.append(f"pre {gs[0].tolist()}"))
    node.register_hook(lambda gi, go: order.append(f"post {gi[0].tolist()} {go[0].tolist()}"))
    x.register_hook(note("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: order.append(f"accumulated {t.grad.tolist()}"))
    y.sum().backward()
    assert order == [
        "tensor 1",
        "tensor 2",
        "pre [10.0, 10.0]",
        "post [20.0, 20.0] [10.0, 10.0]",
        "leaf",
        "accumulated [20.0, 20.0]",
    ]
    assert y.grad.tolist() == [10.0, 10.0]


def test_node_hooks_replace_and_are_checked_and_removed():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with y.grad_fn.register_prehook(lambda gs: (gs[0] * 3,)), y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, None)):
        y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [7.0, 7.0]
    y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [9.0, 9.0]
    with (
        y.grad_fn.register_hook(lambda gi, go: gi[0]),
        pytest.raises(TypeError, match=r"MulBackward.register_hook: the hook returned 1 gradients, expected 2\n  try"),
    ):
        y.sum().backward(retain_graph=True)
    with (
        y.grad_fn.register_prehook(lambda gs: gs[0][:1]),
        pytest.raises(
            RuntimeError, match=r"MulBackward.register_prehook: the hook returned shape \[1\], the gradient has \[2\]"
        ),
    ):
        y.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [9.0, 9.0]
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_multi_grad_hooks():
    a, b, c = (torch.ones(1, requires_grad=True) for _ in range(3))
    seen = []
    everything = graph.register_multi_grad_hook(
        [a, b, c], lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    graph.register_multi_grad_hook([b, a], lambda g: seen.append(g.item()), mode="any")
    (a * 2 + b * 3).backward()
    assert sorted(map(str, seen)) in (["2.0", "[2.0, 3.0, None]"], ["3.0", "[2.0, 3.0, None]"])
    seen.clear()
    torch.autograd.grad((a * 2 + b * 3 + c).sum(), [a, c])
    assert [2.0, None, 1.0] in seen
    everything.remove()
    seen.clear()
    c.sum().backward()
    assert seen == []
    with pytest.raises(ValueError, match="mode is 'some'"):
        graph.register_multi_grad_hook([a], print, mode="some")


def test_every_node_and_the_end_of_a_backward():
    x = torch.ones(2, requires_grad=True)
    seen = []
    with graph.every_node(
        lambda node, go: seen.append("before " + node.name()),
        lambda node, gi, go: seen.append(f"after {node.name()} {len(gi)}"),
    ):
        (x * 2).sum().backward()
    assert seen == ["before SumBackward", "after SumBackward 1", "before MulBackward", "after MulBackward 2"]
    ends = []
    x.grad = None
    x.register_hook(lambda g: graph.on_backward_end(lambda: ends.append(x.grad.tolist())))
    (x * 3).sum().backward()
    assert ends == [[3.0, 3.0]]
    with pytest.raises(RuntimeError, match="on_backward_end: no backward is running in this thread"):
        graph.on_backward_end(print)


def test_gradient_edges_stand_for_tensors_that_are_gone():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    edge = graph.get_gradient_edge(h)
    y = (h**2).sum()
    alive = weakref.ref(h)
    del h
    gc.collect()
    assert torch.autograd.grad(y, edge, retain_graph=True)[0].tolist() == [4.0, 4.0]
    assert torch.autograd.grad(y, {"h": edge, "x": x}, retain_graph=True)["x"].tolist() == [8.0, 8.0]
    assert torch.autograd.grad(graph.get_gradient_edge(y), x, torch.ones(()), retain_graph=True)[0].tolist() == [
        8.0,
        8.0,
    ]
    _first, second = torch.ones(4, requires_grad=True).split(2)
    assert graph.get_gradient_edge(second).output_nr in (0, 1)
    with pytest.raises(RuntimeError, match="get_gradient_edge: the tensor does not require grad"):
        graph.get_gradient_edge(torch.ones(1))
    with pytest.raises(RuntimeError, match="a GradientEdge needs a gradient to start from"):
        torch.autograd.grad(graph.get_gradient_edge(y), x)
    y.backward(inputs=[x])
    assert alive() is None or x.grad.tolist() == [8.0, 8.0]


def test_batched_gradients_and_unused_inputs():
    x, z = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(3, requires_grad=True)
    y = x**2
    rows = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)[0]
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    y = x**2
    found = torch.autograd.grad(
        [y], {"x": x, "z": z}, [torch.ones(5, 2)], is_grads_batched=True, materialize_grads=True
    )
    assert found["x"].shape == (5, 2) and found["z"].tolist() == [[0.0] * 3] * 5
    with pytest.raises(RuntimeError, match=r"is_grads_batched: the first dimensions of grad_outputs are \[-1\]"):
        torch.autograd.grad((x**2).sum(), x, torch.ones(()), is_grads_batched=True)
    with pytest.raises(RuntimeError, match=r"the outputs do not depend on inputs\['z'\]"):
        torch.autograd.grad((x**2).sum(), {"z": z})
    assert torch.autograd.grad((x**2).sum(), [x, z], allow_unused=True)[1] is None


def test_a_failing_hook_leaves_every_grad_as_it_was():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x * w).sum().backward()
    h = x * w
    h.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (h + w).sum().backward()
    assert x.grad.tolist() == w.grad.tolist() == [1.0, 1.0]


def test_backward_inside_a_hook_and_in_two_threads():
    x, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    @torch.enable_grad()  # hooks run in the mode of the backward: unrecorded without create_graph
    def inner(g):
        (other * 3).sum().backward()

    x.register_hook(inner)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and other.grad.tolist() == [3.0, 3.0]

    seen = {}
    leaves = [torch.ones(1, requires_grad=True) for _ in range(4)]
    for i, leaf in enumerate(leaves):
        graph.register_multi_grad_hook(
            [leaf], lambda gs, i=i: seen.setdefault(i, (threading.get_ident(), gs[0].item()))
        )
    threads = [
        threading.Thread(target=lambda t=t, i=i: [(t * (i + 1)).backward() for _ in range(50)])
        for i, t in enumerate(leaves)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [seen[i][1] for i in range(4)] == [1.0, 2.0, 3.0, 4.0] and [t.grad.item() for t in leaves] == [
        50.0,
        100.0,
        150.0,
        200.0,
    ]


def test_hooks_registered_before_a_write_see_the_gradient_of_the_old_value():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    y.sum().backward()
    assert seen == [("new", [1.0, 1.0]), ("old", [5.0, 5.0])]


def test_increment_version():
    x = torch.ones(2, requires_grad=True)
    h = x * 1
    y = h.exp() * h
    graph.increment_version([h])
    with pytest.raises(
        RuntimeError, match=r"modified in place by increment_version since(.|\n)*written at .*test_hooks.py"
    ):
        y.sum().backward()
    with pytest.raises(TypeError, match="increment_version: expected a tensor, got int"):
        graph.increment_version([1])


def test_grad_of_a_computed_tensor_warns_once_it_is_asked_for():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    with pytest.warns(
        UserWarning,
        match=r"this tensor was computed by MulBackward at .*test_hooks.py:\d+ .*its .grad is not kept\n.*retain_grad",
    ):
        assert y.grad is None
    z = x * 2
    z.retain_grad()
    assert z.grad is None  # no warning: it will be kept
    z.sum().backward()
    assert z.grad.tolist() == [1, 1]


def test_a_post_hook_sees_gradients_without_the_dimensions_of_a_broadcast():
    x, y = torch.zeros(2, requires_grad=True), torch.zeros((), requires_grad=True)
    z = x + y
    seen = []
    z.grad_fn.register_hook(lambda grads, _: seen.extend([g.tolist() for g in grads]))
    z.backward(torch.tensor([1.0, 2.0]))
    assert seen == [[1.0, 2.0], 3.0]
    assert y.grad.item() == 3.0


def order_of_leaf_hooks(lib):
    x, first, second = (lib.ones(2, requires_grad=True) for _ in range(3))
    y = x * first
    seen = []
    y.register_hook(lambda g: seen.append("y"))
    for name, leaf in (("x", x), ("first", first), ("second", second)):
        leaf.register_hook(lambda g, name=name: seen.append(name))
        leaf.register_post_accumulate_grad_hook(lambda p, name=name: seen.append(f"{name}.grad"))
    (y * second).sum().backward()
    return seen


def test_hooks_of_a_leaf_run_as_soon_as_its_gradient_is_there():
    seen = order_of_leaf_hooks(torch)
    assert seen[:3] == ["second", "second.grad", "y"]
    assert sorted(seen[3:]) == ["first", "first.grad", "x", "x.grad"]


@pytest.mark.parity
def test_hooks_of_leaves_run_in_the_order_of_pytorch():
    assert order_of_leaf_hooks(torch) == order_of_leaf_hooks(pytest.importorskip("torch"))


@pytest.mark.parametrize("more", [False, True])
def test_gradients_that_hooks_see_after_accumulation_have_memory_of_their_own(more):
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    seen = []
    for leaf in (a, b):
        leaf.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
        if more:
            leaf.register_hook(lambda g: None)
    total = (a + b) * 2  # one gradient for both
    total.sum().backward()
    assert seen == [[2, 2, 2]] * 2 and not np.shares_memory(a.grad._array, b.grad._array)
    a.grad.mul_(5)
    assert b.grad.tolist() == [2, 2, 2]
    g = torch.ones(3)
    (a * 1).backward(g)
    a.grad.zero_()
    assert g.tolist() == [1, 1, 1]


@pytest.mark.parametrize("way", ["method", "attribute", "module"])
def test_hooks_outlive_a_time_without_gradients(way):
    """As where a GAN's discriminator is frozen for the steps of its generator."""
    module, seen = torch.nn.Linear(2, 1, bias=False), []
    w = module.weight
    w.register_hook(lambda g: seen.append("gradient"))
    handle = w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))

    def requires(value):
        if way == "attribute":
            w.requires_grad = value
        else:
            (w if way == "method" else module).requires_grad_(value)

    before = w.sum()  # its graph goes on as it was recorded
    requires(False)
    requires(False)
    assert copy.deepcopy(w).requires_grad_()._node._hooks is None
    requires(True)
    requires(True)
    w.sum().backward()
    assert seen == ["gradient", [[1, 1]]]
    before.backward()
    assert seen[2] == "gradient"
    requires(False)
    handle.remove()
    requires(True)
    del seen[:]
    w.sum().backward()
    assert seen == ["gradient"]


@pytest.mark.parametrize("how", ["plainly", "profiled", "with create_graph", "with inputs", "with a shared weight"])
def test_a_leaf_gets_its_gradient_as_soon_as_it_is_known(how):
    """What hangs on leaves may send their gradients on their way while backward goes on, or step and free them."""
    seen = []
    weights = [torch.ones(3, requires_grad=True) for _ in range(3)]
    for number, weight in enumerate(weights):
        weight.register_post_accumulate_grad_hook(lambda w, number=number: seen.append(f"leaf {number}"))
    value = torch.ones(3)
    for number, weight in enumerate(weights):
        value = value * weight * (weight if how == "with a shared weight" else 1.0)
        value.register_hook(lambda g, number=number: seen.append(f"value {number}"))
    options = {"with create_graph": {"create_graph": True}, "with inputs": {"inputs": weights}}.get(how, {})
    with profile() if how == "profiled" else nullcontext():
        value.sum().backward(**options)
    assert seen == ["value 2", "leaf 2", "value 1", "leaf 1", "value 0", "leaf 0"]


def test_hooks_are_called_in_the_reverse_order_of_the_forward():
    """Of a module that is used several times, too: who takes what a forward hook put into a list from its end relies on it."""
    order, seen = [], []
    inner, outer = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4)
    for name, module in (("inner", inner), ("outer", outer)):
        module.register_forward_hook(lambda module, args, out, name=name: seen.append((name, args[0])))
        module.register_full_backward_hook(lambda module, gi, go, name=name: order.append(name))
    inputs, h = [torch.randn(2, 3, requires_grad=True) for _ in range(3)], torch.zeros(2, 4, requires_grad=True)
    for x in inputs:
        x.register_hook(lambda g, x=x: order.append(x))
        h = (inner(x) + outer(h)).tanh()
    h.sum().backward()
    assert [o for o in order if isinstance(o, str)] == [name for name, _ in reversed(seen)]
    assert all(a is b for a, b in zip([o for o in order if not isinstance(o, str)], reversed(inputs), strict=True))


def test_hooks_of_branches_and_of_several_roots_are_called_from_the_last_to_the_first():
    order, a = [], torch.ones(2, requires_grad=True)

    def branches():
        order.clear()
        made = [a * i for i in range(1, 5)]
        for i, y in enumerate(made):
            y.register_hook(lambda g, i=i: order.append(i))
        return made

    b = branches()
    (b[0] + b[3] + b[1] * b[2]).sum().backward()
    assert order == [3, 2, 1, 0]
    b = branches()
    torch.autograd.backward([b[1].sum(), b[3].sum(), b[0].sum()])
    assert order == [3, 1, 0]
    b = branches()
    torch.autograd.grad((b[2].exp() + b[0] * b[1]).sum(), a)
    assert order == [2, 1, 0]


def test_parameters_that_are_used_last_have_their_gradients_first():
    order, parameters = [], [torch.ones(2, requires_grad=True) for _ in range(4)]
    for i, p in enumerate(parameters):
        p.register_post_accumulate_grad_hook(lambda p, i=i: order.append(i))
    y = parameters[0] * 2
    for p in parameters[1:]:
        y = y * p.exp()
    y.sum().backward()
    assert order == [3, 2, 1, 0]
