"""A kernel that is attached to an op computes it on every path; composites' kernels where nothing but arrays is
involved.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.autograd import grad
from genesis.base.errors import InplaceError
from genesis.core.call.kernels import attach
from genesis.core.call.op import REGISTRY
from genesis.testing import Maker, check_kernel, samples_of


@pytest.fixture
def restored():
    """Take kernels away again that a test attaches."""
    ops = [REGISTRY[name] for name in ("exp", "add", "sum", "matmul", "softplus", "layer_norm")]
    before = [(op, op.kernel, dict(op.kernels), op.call.__globals__.get("fused")) for op in ops]
    yield
    for op, kernel, kernels, fused in before:
        op.kernel = kernel
        op.kernels.clear()
        op.kernels.update(kernels)
        for rebind in op.shortcuts:
            rebind(kernel)
        if op.kind.composed:
            op.call.__globals__["fused"] = fused


def counting(calls, function):
    def kernel(*arrays):
        calls.append(arrays)
        return function(*arrays)

    return kernel


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("exp", lambda x: x.exp()),
        ("exp", lambda x: genesis.exp(x)),
        ("exp", lambda x: x.half().exp()),
        ("exp", lambda x: x.double().exp()),
        ("exp", lambda x: genesis.exp(x, out=genesis.empty(3))),
        ("exp", lambda x: x.clone().exp_()),
        ("exp", lambda x: genesis.vmap(genesis.exp)(x)),
        ("exp", lambda x: genesis.func.jvp(genesis.exp, (x,), (x,))[0]),
        ("exp", lambda x: genesis.jit.trace(genesis.exp, x).replay(x)),
        ("add", lambda x: x + x),
        ("add", lambda x: x + 1.0),
        ("add", lambda x: 1 + x),
        ("add", lambda x: x.clone().add_(x)),
        ("add", lambda x: genesis.add(x, x.double())),
        ("sum", lambda x: x.sum()),
        ("sum", lambda x: genesis.vmap(genesis.sum)(x.reshape(1, 3))),
        ("matmul", lambda x: x @ x),
        ("matmul", lambda x: genesis.matmul(x.double(), x.double())),
    ],
)
def test_every_path_uses_an_attached_kernel(restored, name, call):
    x, calls = genesis.tensor([1.0, 2.0, 3.0]), []
    expected = call(x)
    attach(name, np.ndarray, counting(calls, REGISTRY[name].kernel))
    found = call(x)
    assert calls
    np.testing.assert_allclose(found.float().numpy(), expected.float().numpy(), rtol=1e-6)


def test_in_place_without_recording_uses_it(restored):
    x, calls = genesis.tensor([1.0, 2.0]), []
    attach("add", np.ndarray, counting(calls, np.add))
    with genesis.no_grad():
        x += x
    assert calls and x.tolist() == [2, 4]


def test_where_a_kernel_declines_the_one_before_computes(restored):
    attach("exp", np.ndarray, lambda x: np.full_like(x, 7), when=lambda x: x.size == 2)
    attach("exp", np.ndarray, lambda x: np.full_like(x, 9), when=lambda x: x.size == 3)
    assert genesis.exp(genesis.zeros(2)).tolist() == [7, 7]
    assert genesis.exp(genesis.zeros(3)).tolist() == [9, 9, 9]
    assert genesis.exp(genesis.zeros(1)).tolist() == [1]


def test_attach_decorates_and_takes_the_function(restored):
    @attach(genesis.exp, np.ndarray)
    def kernel(x):
        return np.full_like(x, 7)

    assert genesis.exp(genesis.zeros(1)).tolist() == [7]
    assert kernel(np.zeros(1)).tolist() == [7]


# ---- composites


@pytest.fixture
def fused(restored):
    """`softplus` with a kernel that counts its calls."""
    calls = {"forward": 0, "backward": 0}

    @attach(F.softplus, np.ndarray, when=lambda x, *_: x.dtype == np.float32)
    def kernel(x, beta, threshold):
        calls["forward"] += 1
        return np.log1p(np.exp(x)).astype(x.dtype), 1 / (1 + np.exp(-x))

    @kernel.backward(reads=())
    def _(g, kept, needs):
        calls["backward"] += 1
        assert needs == (True,)
        return ((g * kept).astype(g.dtype),)

    return calls


@pytest.fixture
def fused_norm(restored):
    """`layer_norm` over the last dimension, with all its gradients."""

    @attach(F.layer_norm, np.ndarray, when=lambda x, shape, *_: tuple(shape) == x.shape[-1:])
    def kernel(x, shape, weight, bias, eps):
        rows = x - x.mean(-1, keepdims=True)
        root = 1 / np.sqrt((rows * rows).mean(-1, keepdims=True) + eps)
        rows *= root
        out = rows if weight is None else rows * weight
        return (out if bias is None else out + bias), (rows, root, weight)

    @kernel.backward(reads=("input", "weight"))
    def _(g, kept, needs):
        rows, root, weight = kept
        lead = tuple(range(g.ndim - 1))
        h = g if weight is None else g * weight
        gx = (h - h.mean(-1, keepdims=True) - rows * (h * rows).mean(-1, keepdims=True)) * root
        return gx if needs[0] else None, (g * rows).sum(lead) if needs[1] else None, g.sum(lead) if needs[2] else None


def test_a_fused_kernel_runs_forward_and_backward(fused):
    x = genesis.tensor([0.0, 1.0], requires_grad=True)
    y = F.softplus(x)
    assert type(y.grad_fn).__name__ == "SoftplusBackward"
    assert "test_kernels.py" in str(y.grad_fn.where())
    y.sum().backward()
    assert fused == {"forward": 1, "backward": 1}
    np.testing.assert_allclose(x.grad.numpy(), 1 / (1 + np.exp([0.0, -1.0])), rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.softplus(x.double()),
        lambda x: genesis.vmap(F.softplus)(x),
        lambda x: genesis.func.jvp(F.softplus, (x,), (x,))[1],
        lambda x: genesis.jit.trace(F.softplus, x).replay(x),
        lambda x: genesis.func.hessian(lambda x: F.softplus(x).sum())(x),
    ],
)
def test_transforms_and_traces_see_the_composition(fused, call):
    call(genesis.tensor([0.5, 1.0]))
    assert fused["forward"] == 0


def test_second_derivatives_are_those_of_the_composition(fused):
    x = genesis.tensor([0.5, 1.0], requires_grad=True)
    y = F.softplus(x)
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert fused == {"forward": 1, "backward": 0}
    s = 1 / (1 + np.exp(-x.detach().numpy()))
    np.testing.assert_allclose(g.detach().numpy(), s, rtol=1e-6)
    np.testing.assert_allclose(h.numpy(), s * (1 - s), rtol=1e-5)


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64])
def test_second_derivatives_follow_an_operand_made_of_another(fused_norm, dtype):
    x = genesis.tensor([[0.3, -1.0, 0.4]], requires_grad=True)

    def derivatives():
        z = x.to(dtype)
        w = (z * 2).reshape(3)
        (a,) = grad(F.layer_norm(z * z, (3,), w, w.sin()).cos().sum(), x, create_graph=True)
        return a.detach(), grad(a.to(dtype).sin().sum(), x)[0]

    found = derivatives()
    with genesis.testing.meanings_only():
        expected = derivatives()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3 if dtype is genesis.float32 else 1e-10)


def test_batched_gradients_of_a_fused_call(fused):
    x = genesis.tensor([0.5, 1.0], requires_grad=True)
    y = F.softplus(x)
    (rows,) = grad(y, x, genesis.eye(2), is_grads_batched=True)
    s = 1 / (1 + np.exp(-x.detach().numpy()))
    np.testing.assert_allclose(rows.numpy(), np.diag(s), rtol=1e-6)


def test_hooks_autocast_and_checkpoint_go_on_working(fused):
    x = genesis.tensor([0.5, 1.0], requires_grad=True)
    y = genesis.utils.checkpoint.checkpoint(F.softplus, x, use_reentrant=False)
    y.sum().backward()
    expected = 1 / (1 + np.exp(-x.detach().numpy()))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    seen = []
    with genesis.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        F.softplus(x).sum().backward()
    assert seen and fused["forward"] <= 2
    np.testing.assert_allclose(x.grad.numpy(), 2 * expected, rtol=1e-6)


def test_without_a_backward_it_runs_where_nothing_is_recorded(restored):
    attach(F.softplus, np.ndarray, lambda x, beta, threshold: np.full_like(x, 7))
    x = genesis.zeros(1, requires_grad=True)
    assert F.softplus(x).item() != 7
    with genesis.no_grad():
        assert F.softplus(x).item() == 7
    assert F.softplus(x.detach()).item() == 7


def test_a_kernel_that_fails_leaves_it_to_the_composition(restored):
    def broken(*arrays):
        raise ValueError("no")

    attach(F.softplus, np.ndarray, broken).backward(lambda g, kept, needs: (g,))
    assert F.softplus(genesis.zeros(1, requires_grad=True)).item() == pytest.approx(np.log(2))


def test_writes_to_what_backward_reads_are_refused_and_others_are_not(fused_norm):
    x, w, b = (genesis.randn(*s, requires_grad=True) for s in ((2, 3), (3,), (3,)))
    y = F.layer_norm(x, (3,), w, b)
    with genesis.no_grad():
        b.mul_(2)
    y.sum().backward(retain_graph=True)
    with pytest.raises(InplaceError, match="modified in place by mul_"):
        grad(y.sum(), x, create_graph=True)
    with genesis.no_grad():
        w.mul_(2)
    with pytest.raises(InplaceError, match="LayerNormBackward saved was modified in place by mul_"):
        y.sum().backward()


def test_what_is_kept_is_freed_by_backward_and_with_the_result(fused_norm):
    x = genesis.randn(4, 8, requires_grad=True)
    gc.disable()
    try:
        y = F.layer_norm(x, (8,))
        y.sum().backward()
        with pytest.raises(genesis.base.errors.GraphError, match="already differentiated"):
            y.sum().backward()
        import weakref

        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_inference_tensors_are_refused_by_a_recorded_fused_call(fused_norm):
    with genesis.inference_mode():
        w = genesis.ones(3)
    x = genesis.randn(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        F.layer_norm(x, (3,), w)


def test_the_check_of_kernels_finds_wrong_ones(restored):
    op = REGISTRY["layer_norm"]
    samples = lambda: samples_of(op, Maker(genesis.float64, requires_grad=True))[0]  # noqa: E731

    def attach_one(forward, weight):
        @attach(op, np.ndarray)
        def kernel(x, shape, *parameters):
            return forward * op.meaning(
                genesis.tensor(x), shape, *[genesis.tensor(p) if isinstance(p, np.ndarray) else p for p in parameters]
            ).numpy(), x

        kernel.backward(lambda g, kept, needs: (weight * g, *[None] * (len(needs) - 1)))

    attach_one(1.001, 1)
    with pytest.raises(AssertionError, match="layer_norm: value of the kernel"):
        check_kernel(op, samples())
    attach_one(1, 7)
    with pytest.raises(AssertionError, match="layer_norm: gradient of the kernel"):
        check_kernel(op, samples())
