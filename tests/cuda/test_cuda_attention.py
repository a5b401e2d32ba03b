"""Attention by tiles: values and gradients of the CPU's, in all layouts and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from kernels_of import WAYS, emulated, machine_code, needs_triton, same, started

import genesis
from genesis.cuda.kernels.attention import KEYS, heads_of
from genesis.cuda.launch.kernel import interpreted
from genesis.nn import functional as F


@pytest.fixture(params=WAYS)
def gpu(request):
    with emulated(request.param) as driver:
        yield driver


def graded(**options):
    def both(q, k, v):
        q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, **options)
        out.float().sin().sum().backward()
        return out, q.grad, k.grad, v.grad

    return both


SHAPES = {
    "one head": ((5, 4), (5, 4), (5, 4)),
    "heads": ((2, 3, 37, 8), (2, 3, 37, 8), (2, 3, 37, 8)),
    "other keys": ((2, 9, 8), (2, 40, 8), (2, 40, 8)),
    "other values": ((2, 33, 20), (2, 17, 20), (2, 17, 5)),
    "many batches": ((2, 1, 2, 6, 4), (2, 1, 2, 7, 4), (2, 1, 2, 7, 4)),
    "one query": ((1, 1, 1, 16), (1, 1, 70, 16), (1, 1, 70, 16)),
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_values_and_gradients(name, causal, gpu):
    q, k, v = (genesis.randn(*shape) for shape in SHAPES[name])
    same(graded(is_causal=causal), q, k, v, tolerance=5e-6)
    assert gpu.calls["launch"] >= 4 * 1


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
def test_16_bits(dtype, gpu):
    if interpreted() and dtype is genesis.bfloat16:
        pytest.skip("the interpreter takes the bits of bfloat16 for integers")
    q, k, v = (genesis.randn(2, 2, 21, 8).to(dtype) for _ in range(3))
    same(graded(is_causal=True), q, k, v, tolerance=2e-2)


def test_heads_that_share_keys(gpu):
    q, k, v = genesis.randn(2, 6, 19, 8), genesis.randn(2, 2, 19, 8), genesis.randn(2, 2, 19, 8)
    same(graded(enable_gqa=True, is_causal=True), q, k, v, tolerance=5e-6)
    same(graded(enable_gqa=True, scale=0.3), q, k, v, tolerance=5e-6)


def test_layouts(gpu):
    """Heads behind rows, as projections give them, are read where they lie."""
    x = genesis.randn(2, 11, 3, 4, 8)

    def function(x):
        x = x.detach().requires_grad_()
        q, k, v = (t.transpose(1, 2) for t in x.unbind(2))
        F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).sin().sum().backward()
        return x.grad

    same(function, x, tolerance=5e-6)
    y = genesis.randn(2, 8, 13)
    same(lambda y: F.scaled_dot_product_attention(y.mT, y.mT[:, ::2], y.mT[:, ::2]), y, tolerance=5e-6)


def test_large_scores(gpu):
    q, k, v = (genesis.randn(1, 20, 4) * 100 for _ in range(3))
    same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v, tolerance=2e-4)


def test_launches(gpu):
    q = genesis.randn(2, 3, 33, 8, device="cuda", requires_grad=True)
    k, v = q.detach().clone().requires_grad_(), q.detach().clone().requires_grad_()
    before = gpu.calls.get("launch", 0)
    out = F.scaled_dot_product_attention(q, k, v)
    assert gpu.calls["launch"] - before == 1
    g = genesis.ones_like(out)
    before = gpu.calls["launch"]
    out.backward(g)
    assert gpu.calls["launch"] - before == 3


# ---- machine code for Hopper


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16, genesis.float32])
@pytest.mark.parametrize("features", [64, 128, 256])
def test_machine_code(features, dtype):
    if dtype is genesis.float32 and features > 128:
        return  # which are products and a softmax

    def function():
        x = genesis.ones(1, 2, 64, features, dtype=dtype, device="cuda", requires_grad=True)
        F.scaled_dot_product_attention(x, x, x, is_causal=True).backward(x.detach())

    made = [(kernel, aligned) for kernel, aligned in started(function) if type(kernel).__name__ == "Heads"]
    assert [kernel.part.name for kernel, _ in made] == ["forward", "delta", "keys", "queries"]
    for kernel, aligned in made:
        text = machine_code(kernel, aligned)
        if kernel.part.name != "delta":
            assert ("HGMMA" in text or "HMMA" in text) == (dtype is not genesis.float32)
        assert "LDG.E.128" in text or "LDGSTS" in text


def test_tiles_fit_all_heads():
    for wide in (1, 16, 17, 64, 100, 128, 256):
        kernel = heads_of(KEYS, genesis.float16.np, wide, wide, True)
        assert kernel.m % 16 == kernel.n % 16 == 0


@pytest.mark.parametrize("packed", [True, False])
def test_heads_lie_as_those_of_the_operands_do(packed):
    """What goes into the projections behind and before attention is not copied."""
    with emulated():
        x = genesis.randn(2, 5, 72, device="cuda", requires_grad=True)
        rows = [y.view(2, 5, 3, 8) for y in x.chunk(3, -1)]
        q, k, v = rows if packed else [y.detach().clone().requires_grad_() for y in rows]
        out = F.scaled_dot_product_attention(*[y.transpose(1, 2) for y in (q, k, v)], is_causal=True)
        assert out.transpose(1, 2).is_contiguous()
        gradients = genesis.autograd.grad(out.square().sum(), [q, k, v])
        assert all(g.is_contiguous() for g in gradients)


def split(x, batch):
    q, k, v = (t.view(batch, 9, 4, 8).transpose(1, 2) for t in x.chunk(3, -1))
    return q, k, v


def unbound(x, batch):
    return x.view(batch, 9, 3, 4, 8).permute(2, 0, 3, 1, 4)


def shared(x, batch):
    parts = x.split([64, 16, 16], -1)
    return [t.unflatten(-1, (-1, 8)).transpose(1, 2) for t in parts]


def sequences_first(x, batch):
    return [t.unflatten(-1, (4, 8)).permute(1, 2, 0, 3) for t in x.transpose(0, 1).contiguous().chunk(3, -1)]


JOINS = {"split": split, "unbound": unbound, "shared": shared, "sequences first": sequences_first}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", JOINS)
def test_gradients_are_written_to_one_array(name, batch, gpu):
    """In a compiled step those of queries, keys and values are parts of the gradient of what they were parts of."""

    def step(w, x):
        y = x @ w.t()
        q, k, v = JOINS[name](y, batch)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=name == "shared")
        return genesis.autograd.grad(out.sin().sum(), [w])[0]

    genesis.manual_seed(0)
    w, x = (genesis.randn(96, 96) * 0.2).requires_grad_(), genesis.randn(batch, 9, 96)
    there = w.detach().to("cuda").requires_grad_()
    compiled = genesis.compile(step)
    for _ in range(3):
        given = compiled(there, x.to("cuda")).cpu().numpy()
        np.testing.assert_allclose(given, step(w, x).numpy(), rtol=1e-4, atol=1e-4)
    made = next(entry.step for entry in compiled._recent)
    ops = [call.op for phase in made.phases for call in phase.calls]
    assert "cat" not in ops and sum("attention" in op for op in ops) == 2, ops
