"""16-bit floats: what takes several steps is computed in float32 and rounded once. The op records are tested in
test_generated.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis import jit
from genesis.base import dtypes
from genesis.core.call.op import REGISTRY
from genesis.testing import Maker, samples_of
from genesis.testing.arguments import replace, tensors_in
from genesis.testing.opcheck import sample_dtypes
from genesis.testing.precision import derivatives, ulps

HALVES = [genesis.float16, genesis.bfloat16]


# ---- values that overflow or vanish in 16 bits on the way


def test_layer_norm_of_large_values():
    y = F.layer_norm(genesis.tensor([[300.0, -300.0, 299.0, -301.0]]).half(), (4,))
    assert np.allclose(y.float().numpy(), [[1.0017, -0.9983, 0.9983, -1.0017]], atol=1e-3)


def test_rms_norm_of_large_values():
    assert F.rms_norm(genesis.full((1, 4), 400.0).half(), (4,), eps=1e-5).tolist() == [[1.0] * 4]


@pytest.mark.parametrize("dtype", HALVES)
def test_the_gradient_of_a_constant_row_leaves_the_residual_alone(dtype):
    x = genesis.full((2, 8), 3.0).to(dtype).requires_grad_()
    (x + F.layer_norm(x, (8,))).sum().backward()
    assert x.grad.tolist() == [[1.0] * 8] * 2


def test_norms_of_groups_and_batches():
    x = genesis.tensor([[300.0, -300.0], [299.0, -301.0]]).half()
    want = genesis.tensor([[300.0, -300.0], [299.0, -301.0]])
    for f in (
        lambda t: F.group_norm(t, 1),
        lambda t: F.batch_norm(t, None, None, training=True),
        lambda t: F.normalize(t),
        lambda t: genesis.cdist(t, -t),
    ):
        assert np.allclose(f(x).float().numpy(), f(want).numpy(), rtol=1e-3)


def test_attention_of_large_values():
    q = genesis.full((1, 3, 8), 80.0).half().requires_grad_()
    y = F.scaled_dot_product_attention(q, q, q)
    assert y.tolist() == [[[80.0] * 8] * 3]
    y.sum().backward()
    assert q.grad.isfinite().all()


def test_lerp_of_large_values():
    x, y = genesis.tensor([-60000.0]).half(), genesis.tensor([60000.0]).half()
    assert genesis.lerp(x, y, 0.5).tolist() == [0.0]


def test_quotients_are_truncated_before_they_are_rounded():
    x, y = genesis.tensor([2047.0]).half(), genesis.tensor([0.5004]).half()
    # 16-bit numbers are even there
    assert genesis.divide(x, y, rounding_mode="trunc").item() == math.trunc(2047.0 / y.item() / 2) * 2


# ---- many small terms


@pytest.mark.parametrize("dtype", HALVES)
def test_repeated_indices_are_summed_before_they_are_rounded(dtype):
    x = genesis.zeros(2).to(dtype).requires_grad_()
    x[genesis.zeros(5000, dtype=genesis.int64)].sum().backward()
    assert x.grad[0].item() == genesis.tensor(5000.0).to(dtype).item()
    many = genesis.ones(5000).to(dtype)
    assert (
        genesis.scatter_add(genesis.zeros(1).to(dtype), 0, genesis.zeros(5000, dtype=genesis.int64), many).item()
        == x.grad[0].item()
    )


def test_an_operand_given_twice_gets_one_gradient():
    """1 + 2**-11 and -1 are summed before they are rounded to float16."""
    x = genesis.tensor([1.0]).half().requires_grad_()
    y = genesis.addcmul(x, x, genesis.tensor([-(1.0 - 2.0**-11)]).half())
    y.backward()
    assert x.grad.item() == 2.0**-11


# ---- dtypes


def test_results_have_the_dtype_of_the_operands():
    half, single = genesis.randn(2, 3).half(), genesis.ones(3)
    assert F.mse_loss(half, half).dtype is genesis.float16
    assert F.mse_loss(half, half.float()).dtype is genesis.float32
    assert genesis.lerp(half, half.bfloat16(), 0.5).dtype is genesis.float32
    for norm in (
        F.layer_norm(half, (3,), single),
        F.rms_norm(half, (3,), single),
        F.batch_norm(half, single, single, single),
    ):
        assert norm.dtype is genesis.float16
    assert F.softmin(half, 1, genesis.float64).dtype is genesis.float64
    assert all(t.dtype is genesis.float16 for t in genesis.std_mean(half))


def test_products_still_refuse_mixed_dtypes():
    with pytest.raises(RuntimeError, match="dtypes differ"):
        genesis.addmm(genesis.ones(2, 2), genesis.ones(2, 2).half(), genesis.ones(2, 2))


def test_running_statistics_of_16_bits_are_written():
    mean, var = genesis.zeros(2).half(), genesis.ones(2).half()
    F.batch_norm(genesis.tensor([[300.0, 1.0], [302.0, 3.0]]).half(), mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [150.5, 1.0]
    assert var.tolist() == [1.5, 1.5]


def test_nothing_is_copied_where_nothing_is_computed():
    x = genesis.ones(3).half()
    assert F.dropout(x, 0.5, training=False) is x


# ---- in transforms


def norm_of(x):
    return F.layer_norm(x, (4,)) * genesis.sigmoid(x)


@pytest.mark.parametrize("dtype", HALVES)
def test_transforms_compute_in_float32(dtype):
    x = genesis.tensor([[300.0, -300.0, 299.0, -301.0], [1.0, 2.0, 3.0, 5.0]]).to(dtype)
    plain = norm_of(x)
    assert genesis.func.vmap(norm_of)(x).tolist() == plain.tolist()
    assert jit.trace(norm_of, x).replay(x).tolist() == plain.tolist()
    assert norm_of(x.to("meta")).dtype is dtype
    t = genesis.tensor([[1.0, -1.0, 0.5, 2.0], [1.0, -1.0, 0.5, 2.0]]).to(dtype)
    value, tangent = genesis.func.jvp(norm_of, (x,), (t,))
    exact = genesis.func.jvp(norm_of, (x.double(),), (t.double(),))[1]
    assert value.tolist() == plain.tolist()
    floor = np.abs(exact.numpy()).max() / 64
    assert ulps(tangent.float().numpy(), exact.numpy(), dtype.np, floor).max() < 3


def test_what_is_recorded_inside_is_float32():
    kinds = set()
    x = genesis.randn(2, 4).half().requires_grad_()
    with genesis.autograd.graph.saved_tensors_hooks(lambda t: kinds.add(t.dtype) or t, lambda t: t):
        F.layer_norm(x, (4,))
    assert kinds == {genesis.float32}


def test_autocast_goes_on():
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        q = genesis.full((1, 3, 8), 80.0)
        assert F.scaled_dot_product_attention(q, q, q).dtype is genesis.bfloat16
        assert F.gelu(q.half()).dtype is genesis.float16
        assert F.layer_norm(q.half(), (8,)).dtype is genesis.float16
        assert F.mse_loss(q.half(), q).dtype is genesis.float32


# ---- against PyTorch


def _peer(torch, op):
    found = torch
    for part in (op.torch_name or op.name).split("."):
        found = getattr(found, part, None)
    return found if op.torch_name != "" else None


def _torch_derivatives(torch, f, sample, kind):
    """As `derivatives`, to first order."""

    def moved(t):
        if t._array.dtype.kind in "biuc":
            return torch.tensor(t.numpy())
        return torch.tensor(t.detach().double().numpy()).to(kind).requires_grad_()

    def inside(value):
        if isinstance(value, dict):
            value = list(value.values())
        return (
            [x for v in value for x in inside(v)]
            if isinstance(value, list | tuple)
            else [value]
            if isinstance(value, torch.Tensor)
            else []
        )

    args, kwargs = replace(tuple(sample.args), moved), replace(dict(sample.kwargs), moved)
    inputs = [t for t in inside([args, kwargs]) if t.requires_grad]
    outs = [y for y in inside([f(*args, **kwargs)]) if y.is_floating_point()]
    found = [("result", y) for y in outs]
    outs = [y for y in outs if y.requires_grad]
    if outs and inputs:
        rng = np.random.Generator(np.random.Philox(11))
        seeds = [
            torch.tensor(
                np.asarray(rng.integers(64, 128, tuple(y.shape)) * rng.choice([-1.0, 1.0], tuple(y.shape)) / 64)
            ).to(y.dtype)
            for y in outs
        ]
        found += [("gradient", g) for g in torch.autograd.grad(outs, inputs, seeds, allow_unused=True) if g is not None]
    return [(name, y.detach().double().numpy()) for name, y in found]


def _worst(found, exact, dtype):
    errors = {}
    for (name, a), (_, b) in zip(found, exact, strict=False):
        if a.size and b.dtype == np.float64:
            floor = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))) / 16
            errors[name] = max(errors.get(name, 0.0), float(ulps(a, b, dtype, floor).max()))
    return errors


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.short)
def test_no_op_is_less_exact_than_in_pytorch(dtype):
    """At most two units in the last place, or PyTorch's own error on the same samples (half as much again: they are
    few).
    """
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype.name)
    compared, worse = 0, []
    for op in REGISTRY.values():
        f = _peer(torch, op)
        if f is None or getattr(dtypes, dtype.name) not in sample_dtypes(op) or op.kind in ("view", "elementwise_cast"):
            continue
        mine: dict[str, float] = {}
        its: dict[str, float] = {}
        for i in range(len(samples_of(op, Maker(dtype)))):
            sample = samples_of(op, Maker(dtype, seed=i))[i]
            if not all(t.dtype is dtype or not t.is_floating_point() for t in tensors_in((sample.args, sample.kwargs))):
                continue
            try:
                its_results = _torch_derivatives(torch, f, sample, kind)
            except (TypeError, RuntimeError, ValueError, NotImplementedError, IndexError):
                continue  # it has another signature, or does not take 16-bit floats
            exact = derivatives(op, sample, np.dtype(np.float64))
            for total, found in ((mine, derivatives(op, sample, dtype.np)), (its, its_results)):
                for name, error in _worst(found, exact, dtype.np).items():
                    total[name] = max(total.get(name, 0.0), error)
        compared += bool(its)
        worse += [
            (op.name, name, mine[name], its[name])
            for name in its
            if name in mine and mine[name] > max(2.0, 1.5 * its[name])
        ]
    assert compared > 150
    assert not worse
