"""Checkpointing: the gradients of the plain call, less memory, and errors that show where two runs differ."""

from __future__ import annotations

import functools
import gc
import weakref

import pytest

import genesis as torch
from genesis.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_name,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    print_saved_residuals,
    save_only_these_names,
    saved_residuals,
)


@pytest.fixture
def counted():
    """A block that counts its runs, and its parameter."""
    w = torch.randn(4, 4, requires_grad=True)
    runs = []

    def block(x, *, scale=1.0):
        runs.append(1)
        return ((x @ w).tanh() * scale).sin()

    return block, w, runs


def gradients(f, *tensors, **options):
    found = torch.autograd.grad(f().sum(), tensors, **options)
    return [g.tolist() for g in found]


def test_the_same_gradients_with_keywords_structures_and_constant_inputs(counted):
    block, w, _runs = counted
    x = torch.randn(3, 4, requires_grad=True)
    assert gradients(lambda: checkpoint(block, x, scale=2.0), x, w) == gradients(lambda: block(x, scale=2.0), x, w)
    constant = torch.randn(3, 4)
    assert gradients(lambda: checkpoint(block, constant), w) == gradients(lambda: block(constant), w)

    def tree(inputs, factor):
        return {"y": inputs["a"].exp() * inputs["list"][0], "n": factor}

    inputs = {"a": x, "list": [torch.ones(4, requires_grad=True)]}
    out = checkpoint(tree, inputs, 3, use_reentrant=False)
    assert out["n"] == 3
    out["y"].sum().backward()
    assert torch.allclose(x.grad, x.exp()) and inputs["list"][0].grad.shape == (4,)


def test_it_runs_twice_and_keeps_nothing_in_between(counted):
    block, _, runs = counted
    x = torch.randn(3, 4, requires_grad=True)
    y = checkpoint(block, x)
    assert len(runs) == 1 and y.grad_fn.name() == "SinBackward"
    y.sum().backward()
    assert len(runs) == 2
    with torch.no_grad():
        checkpoint(block, x)
    assert len(runs) == 3

    kept = []

    def watched(x):
        hidden = x.exp()
        kept.append(weakref.ref(hidden))
        return hidden.sin()

    gc.disable()
    try:
        y = checkpoint(watched, x)
        assert kept[0]() is None
        y.sum().backward()
        del y
        assert all(ref() is None for ref in kept)
    finally:
        gc.enable()


def test_early_stop_leaves_out_what_is_not_needed():
    order = []

    def f(x):
        y = x.exp()
        order.append("exp")
        z = y.sin()
        order.append("after")
        return z

    x = torch.ones(2, requires_grad=True)
    checkpoint(f, x).sum().backward()
    assert order == ["exp", "after", "exp"]
    order.clear()
    checkpoint(f, x, early_stop=False).sum().backward()
    assert order == ["exp", "after", "exp", "after"]


def test_random_numbers_and_autocast_are_those_of_the_forward():
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    y = checkpoint(lambda t: torch.nn.functional.dropout(t.exp(), 0.5).sin(), x)
    after = torch.rand(1).item()
    torch.manual_seed(3)
    plain = torch.nn.functional.dropout(x.exp(), 0.5).sin()
    assert torch.rand(1).item() == after and torch.equal(y, plain)
    state = torch.random.get_rng_state()
    (g,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(torch.random.get_rng_state(), state) and torch.equal(g, torch.autograd.grad(plain.sum(), x)[0])

    w = torch.rand(3, 3, requires_grad=True)
    seen = []

    def product(t):
        seen.append((t @ t).dtype)
        return (t @ t).sin()

    with torch.autocast():
        y = checkpoint(product, w)
    y.float().sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16] and w.grad.dtype == torch.float32


def test_double_backward_retain_graph_nesting_and_autograd_grad(counted):
    block, w, _runs = counted
    x = torch.randn(2, 4, requires_grad=True)

    def second(f):
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        return torch.autograd.grad((g**2).sum(), [x, w])

    for a, b in zip(second(block), second(functools.partial(checkpoint, block)), strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    y = checkpoint(block, x)
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(y.sum(), x)[0])

    nested = checkpoint(lambda t: checkpoint(block, checkpoint(block, t)).cos(), x)
    assert torch.allclose(
        torch.autograd.grad(nested.sum(), x)[0], torch.autograd.grad(block(block(x)).cos().sum(), x)[0]
    )


def test_custom_functions_inside():
    class Cube(torch.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**3
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert torch.equal(y, x**3)
            return 3 * x**2 * g

    x = torch.tensor([2.0], requires_grad=True)
    y = checkpoint(lambda t: Cube.apply(Cube.apply(t)), x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 9 * 2.0**8 and torch.autograd.grad(g, x)[0].item() == 72 * 2.0**7


def test_two_runs_that_differ():
    calls = []

    def changes(x):
        calls.append(1)
        y = x.exp()
        return y.sin() if len(calls) == 1 else y.reshape(2, 1).cos()

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError,
        match=r"checkpoint: the second run of .*changes differs from the first at saved tensor 1\n  both runs "
        r"ExpBackward saves f32\[2\] at "
        r".*test_checkpoint.py.*\n  first run SinBackward saves f32\[2\] at .*\n  second run CosBackward saves "
        r"f32\[2, 1\] at .*\n  try: the function must do",
    ):
        checkpoint(changes, x).sum().backward()

    calls.clear()

    def fewer(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    with pytest.raises(RuntimeError, match="the second run saved fewer tensors"):
        checkpoint(fewer, x).sum().backward()

    calls.clear()

    def drifts(x):
        calls.append(1)
        return (x * float(len(calls))).exp()

    with pytest.raises(RuntimeError, match="differs from the first at saved tensor 0"):
        checkpoint(drifts, x, determinism_check="values").sum().backward()
    calls.clear()
    checkpoint(drifts, x, determinism_check="none").sum().backward()


def test_an_argument_that_was_written_to_and_wrong_options():
    x = torch.ones(2, requires_grad=True)
    h = x * 1
    y = checkpoint(torch.exp, h)
    h.add_(1)
    with pytest.raises(RuntimeError, match=r"checkpoint: an argument was modified in place by add_ since the forward"):
        y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check is 'all'"):
        checkpoint(torch.exp, x, determinism_check="all")
    with pytest.raises(ValueError, match="3 segments of 2 functions"):
        checkpoint_sequential([torch.exp, torch.sin], 3, x)


def test_sequential():
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(5)])
    x = torch.randn(2, 4, requires_grad=True)
    wanted = torch.autograd.grad(model(x).sum(), [x, *model.parameters()])
    for segments in (1, 2, 5):
        found = torch.autograd.grad(checkpoint_sequential(model, segments, x).sum(), [x, *model.parameters()])
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_policy_saves_products(counted):
    w = torch.randn(4, 4, requires_grad=True)
    decisions = []

    def policy(ctx, op, *args):
        decisions.append((ctx.is_recompute, op.name))
        return CheckpointPolicy.MUST_SAVE if op.name == "matmul" else CheckpointPolicy.PREFER_RECOMPUTE

    f = lambda x: ((x @ w).tanh() @ w).sin()
    x = torch.randn(3, 4, requires_grad=True)
    y = checkpoint(f, x, context_fn=functools.partial(create_selective_checkpoint_contexts, policy))
    found = torch.autograd.grad(y.sum(), [x, w])
    assert all(torch.equal(a, b) for a, b in zip(found, torch.autograd.grad(f(x).sum(), [x, w]), strict=True))
    assert (True, "matmul") in decisions and (False, "tanh") in decisions
    listed = functools.partial(create_selective_checkpoint_contexts, [torch.matmul, "tanh"])
    assert torch.equal(torch.autograd.grad(checkpoint(f, x, context_fn=listed).sum(), x)[0], found[0])


def test_names_and_reports(capsys):
    f = lambda x: checkpoint_name(x.exp(), "hidden").sin()
    x = torch.ones(3, requires_grad=True)
    y = checkpoint(
        f, x, context_fn=functools.partial(create_selective_checkpoint_contexts, save_only_these_names("hidden"))
    )
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.autograd.grad(f(x).sum(), x)[0])
    (exp, sin) = saved_residuals(f, x)
    assert exp[0] == "f32[3]" and exp[1].startswith("ExpBackward at ") and "test_checkpoint.py" in sin[1]
    print_saved_residuals(f, x)
    assert "SinBackward at" in capsys.readouterr().out
    assert saved_residuals(lambda t: checkpoint(f, t), x) == []


# ---- the hooks below it


def test_saved_tensors_hooks_see_every_saved_tensor_and_keep_second_derivatives():
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    seen = []

    def pack(t):
        seen.append(tuple(t.shape))
        return t.detach().numpy().copy()

    with hooks(pack, torch.from_numpy):
        y = torch.cat([x.exp(), x * x]).softmax(0)
    (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    z = torch.cat([x.exp(), x * x]).softmax(0)
    (wanted,) = torch.autograd.grad(z.square().sum(), x, create_graph=True)
    assert seen == [(2,), (2,), (2,), (4,)] and torch.allclose(g, wanted)
    assert torch.allclose(torch.autograd.grad(g.sum(), x)[0], torch.autograd.grad(wanted.sum(), x)[0])


def test_of_nested_hooks_the_innermost_alone_packs():
    hooks = torch.autograd.graph.saved_tensors_hooks
    order = []
    x = torch.ones(2, requires_grad=True)
    with (
        hooks(lambda t: (order.append("outer"), t * 2)[1], lambda t: (order.append("outer back"), t / 2)[1]),
        hooks(lambda t: (order.append("inner"), t + 1)[1], lambda t: (order.append("inner back"), t - 1)[1]),
    ):
        y = x.exp()
    y.sum().backward()
    assert order == ["inner", "inner back"] and torch.allclose(x.grad, x.exp())


def test_hooks_that_misbehave_and_disabled_hooks():
    graph = torch.autograd.graph
    x = torch.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: 1, lambda p: p):
        y = x.exp()
    with pytest.raises(TypeError, match=r"unpack_hook returned int, expected a tensor\n  for ExpBackward"):
        y.sum().backward()
    with graph.saved_tensors_hooks(lambda t: t[:1], lambda p: p):
        y = x.exp()
    with pytest.raises(RuntimeError, match=r"unpack_hook returned f32\[1\], packed was shape \[2\]"):
        y.sum().backward()
    with (
        graph.disable_saved_tensors_hooks("no hooks in here"),
        pytest.raises(RuntimeError, match="no hooks in here"),
        graph.save_on_cpu(),
    ):
        pass
    with graph.save_on_cpu(pin_memory=True):
        y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already differentiated"):
        y.sum().backward()
