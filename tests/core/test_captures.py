"""Tensors that a Function's forward reads without being given them: refused by name, or given gradients."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import genesis
from genesis import Function, nn
from genesis.base import library
from genesis.core.functions.captures import may_reach_tensors
from genesis.core.graph import lost

WEIGHT = genesis.tensor([2.0, 3.0], requires_grad=True)
TABLE = {"scale": genesis.tensor([5.0, 5.0], requires_grad=True)}
CONSTANT = genesis.tensor([2.0, 3.0])


def helper(x):
    return x * WEIGHT


def leaf(*values):
    return genesis.tensor(values or (1.0, 2.0), requires_grad=True)


def function(body, **members):
    """A Function whose forward is ``body(x)``."""

    def forward(ctx, x, *rest):
        return body(x, *rest)

    return type(
        "Captures",
        (Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, *g: g[0]), **members},
    )


def closure_case():
    weight = leaf(2.0, 3.0)
    return function(lambda x: x * weight), "weight"


def module_case():
    layer = nn.Linear(2, 2)
    return function(lambda x: genesis.ops.matmul(x, layer.weight)), "layer.weight"


def partial_case():
    weight = leaf(2.0, 3.0)
    return function(functools.partial(lambda w, x: x * w, weight)), r"body.*"


@pytest.mark.parametrize("make", [closure_case, module_case])
def test_closures_are_refused_by_name(make):
    cls, name = make()
    with pytest.raises(
        RuntimeError,
        match=rf"(?s)Captures.forward: uses {name}, which requires grad but is no argument.*try: pass it to apply, "
        rf"or use {name}.detach\(\)",
    ):
        cls.apply(leaf())


def test_partial_arguments_are_refused():
    cls, _ = partial_case()
    with pytest.raises(RuntimeError, match="its gradient would be lost"):
        cls.apply(leaf())


class ReadsGlobal(Function):
    @staticmethod
    def forward(ctx, x):
        return x * WEIGHT

    @staticmethod
    def backward(ctx, g):
        return g


class ReadsByHelper(Function):
    @staticmethod
    def forward(ctx, x):
        return helper(x)

    @staticmethod
    def backward(ctx, g):
        return g


class ReadsTable(Function):
    @staticmethod
    def forward(ctx, x):
        return TABLE["scale"] + x

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.parametrize(
    "cls, name", [(ReadsGlobal, "WEIGHT"), (ReadsByHelper, "WEIGHT"), (ReadsTable, "TABLE\\['scale'\\]")]
)
def test_globals_are_refused_by_name(cls, name):
    with pytest.raises(RuntimeError, match=f"uses {name}, which requires grad"):
        cls.apply(leaf())
    with pytest.raises(RuntimeError, match=f"uses {name}, which requires grad"):  # also where no argument requires grad
        cls.apply(genesis.ones(2))
    with genesis.no_grad():
        assert cls.apply(genesis.zeros(2)).shape == (2,)


def test_objects_among_the_arguments():
    layer = nn.Linear(2, 2, bias=False)
    cls = function(
        lambda x, module: genesis.ops.matmul(x, module.weight), backward=staticmethod(lambda ctx, g: (g, None))
    )
    with pytest.raises(RuntimeError, match=r"uses rest\[0\].weight|uses .*weight, which requires grad|uses a tensor"):
        cls.apply(leaf(), layer)
    for p in layer.parameters():
        p.requires_grad_(False)
    assert cls.apply(leaf(), layer).requires_grad


def test_what_is_no_gradient_lost_is_allowed():
    other = leaf()
    uses_constant = function(lambda x: x * CONSTANT)
    uses_detached = function(lambda x: x * other.detach())
    uses_shape = function(lambda x: x * len(other))
    for cls in (uses_constant, uses_detached, uses_shape):
        x = leaf()
        cls.apply(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
    argument = function(lambda x, y: x * other, backward=staticmethod(lambda ctx, g: (g, g)))
    assert argument.apply(leaf(), other).requires_grad  # given, by another name


def test_nothing_stays_open_after_an_error():
    weight, before = leaf(), [*lost.HISTORY_WATCHES]  # a Ctrl-C in another test may have left some

    def fail(x):
        x * weight
        raise KeyError

    with pytest.raises(KeyError):
        function(fail).apply(leaf())
    assert before == lost.HISTORY_WATCHES


def test_capture_gives_gradients_by_name():
    weight, bias = leaf(2.0, 3.0), leaf(0.5, 0.5)

    class Affine(Function):
        capture = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, weight)
            return x * weight + bias

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return {"x": g * w, "weight": g * x, "bias": g}

    x = leaf()
    (Affine.apply(x) * genesis.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [2, 30]
    assert weight.grad.tolist() == [1, 20]
    assert bias.grad.tolist() == [1, 10]
    y = Affine.apply(genesis.ones(2))  # only what is captured requires grad
    assert y.requires_grad
    assert [n.name() for n, _ in y.grad_fn.next_functions if n is not None] == ["AccumulateGrad"] * 2
    x = leaf()
    (g,) = genesis.autograd.grad(Affine.apply(x).square().sum(), x, create_graph=True)
    (h,) = genesis.autograd.grad(g.sum(), weight)
    # d/dw of 2 (x w + b) w = 4 x w + 2 b
    np.testing.assert_allclose(h.numpy(), [4 * 1 * 2 + 1, 4 * 2 * 3 + 1])


def test_captured_gradients_are_asked_for():
    weight = leaf()

    def made(result):
        return function(lambda x: x * weight, capture=True, backward=staticmethod(lambda ctx, g: result(g)))

    with pytest.raises(
        RuntimeError,
        match=r"(?s)the gradient of the captured weight is missing.*return gradients by name, \{\.\.\., 'weight': "
        r"gradient\}",
    ):
        made(lambda g: g).apply(leaf()).sum().backward()
    with pytest.raises(RuntimeError, match="the gradient of the captured weight is missing"):
        made(lambda g: {"x": g}).apply(leaf()).sum().backward()
    with pytest.raises(RuntimeError, match=r"the gradient of weight has shape \[3\], the input has \[2\]"):
        made(lambda g: {"x": g, "weight": genesis.ones(3)}).apply(leaf()).sum().backward()
    made(lambda g: {"x": g, "weight": None}).apply(leaf()).sum().backward()
    assert weight.grad is None


def test_containers_and_captures():
    weight = leaf(2.0, 3.0)

    class Sum(Function):
        capture = True

        @staticmethod
        def forward(ctx, xs):
            return (xs["a"] + xs["b"]) * weight

        @staticmethod
        def backward(ctx, g):
            return {"xs": {"a": g * 1, "b": g * 2}, "weight": g * 3}

    a, b = leaf(), leaf()
    Sum.apply({"a": a, "b": b}).sum().backward()
    assert [a.grad.tolist(), b.grad.tolist(), weight.grad.tolist()] == [[1, 1], [2, 2], [3, 3]]


def test_threads_watch_their_own_forward():
    weight = leaf()
    started, go = threading.Event(), threading.Event()

    def slow(x):
        started.set()
        go.wait(5)
        return x * CONSTANT

    results = []
    thread = threading.Thread(target=lambda: results.append(function(slow).apply(leaf())))
    thread.start()
    started.wait(5)
    with genesis.no_grad():
        weight * 2  # not part of that forward
    go.set()
    thread.join()
    assert results[0].requires_grad


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def test_functions_that_call_each_other_reach_no_tensors():
    assert not may_reach_tensors(even)
    assert may_reach_tensors(helper)


def test_a_graph_that_forward_makes_for_itself_is_its_own():
    """Gradients taken inside forward read what was recorded there; of that nothing is lost."""

    class Inner(Function):
        @staticmethod
        def forward(ctx, net, x, *weights):
            with genesis.enable_grad():
                inner = x.detach().requires_grad_()
                out = net(inner)
                ctx.save_for_backward(*genesis.autograd.grad(out.square().sum(), (inner, *weights)))
            return out.detach()

        @staticmethod
        def backward(ctx, grad):
            return None, *[g * grad.sum() for g in ctx.saved_tensors]

    net, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), leaf()
    Inner.apply(net, x, *net.parameters())[0].backward()
    got = [t.grad for t in (x, *net.parameters())]
    want = genesis.autograd.grad(net(x).square().sum(), (x, *net.parameters()))
    assert all(genesis.allclose(a, b) for a, b in zip(got, want, strict=True))


def test_programs_for_pytorch_are_warned(monkeypatch):
    """Reversible networks have a backward that computes everything again and adds to .grad by itself."""
    monkeypatch.setattr(library, "_library", ["torch"])

    class Again(Function):
        @staticmethod
        def forward(ctx, x, net):
            ctx.net, ctx.x = net, x.detach()
            return net(ctx.x)

        @staticmethod
        def backward(ctx, grad):
            with genesis.enable_grad():
                x = ctx.x.detach().requires_grad_()
                genesis.autograd.backward(ctx.net(x), grad)
            return x.grad, None

    net, x = nn.Linear(2, 3), leaf()
    with pytest.warns(UserWarning, match="weight and .*bias, which require grad but are no arguments"):
        out = Again.apply(x, net)
    out.square().sum().backward()
    got = [t.grad for t in (x, *net.parameters())]
    want = genesis.autograd.grad(net(x).square().sum(), (x, *net.parameters()))
    assert all(genesis.allclose(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (2,)])
def test_gradients_of_programs_for_pytorch_are_summed_with_a_warning(shape, monkeypatch):
    class Total(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return grad * genesis.ones(shape)

    x = genesis.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="the gradient of x has shape"):
        Total.apply(x).backward()
    monkeypatch.setattr(library, "_library", ["torch"])
    if shape == (2,):
        with pytest.raises(RuntimeError, match="the gradient of x has shape"):
            Total.apply(x).backward()
        return
    with pytest.warns(UserWarning, match="is summed to \\[3\\], the shape of the input"):
        Total.apply(x).backward()
    assert x.grad.tolist() == [genesis.ones(shape).numel() / 3] * 3
