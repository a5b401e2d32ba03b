"""The loss of a last layer, some rows at a time, against all logits at once in float64; and what it is for: memory."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn import functional as F

REDUCTIONS = ("mean", "sum", "none")
TOLERANCE = {genesis.float64: 1e-12, genesis.float32: 1e-5, genesis.bfloat16: 2**-7, genesis.float16: 2**-9}


def by_rows(rows: int, **options):
    return nn.LinearCrossEntropyOptions(batch_chunk_size=rows, chunking_method=None, **options)


def operands(dtype, rows: int = 7, classes: int = 5, features: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    shapes = (rows, features), (classes, features), (classes,)
    given = [genesis.tensor(rng.standard_normal(s), dtype=dtype).requires_grad_() for s in shapes]
    weight = genesis.tensor(rng.random(classes) + 0.5, dtype=dtype if dtype.itemsize > 2 else genesis.float32)
    return given, weight, genesis.tensor(rng.integers(0, classes, rows))


def gradients(loss, given):
    g = genesis.tensor(np.cos(np.arange(loss.numel())).reshape(tuple(loss.shape)), dtype=loss.dtype)
    loss.backward(g)
    return [loss.detach().double(), *[x.grad.double() for x in given]]


def agree(dtype, options, weighted=False, seed=0, **arguments):
    (x, w, b), weight, target = operands(dtype, seed=seed)
    weight = weight if weighted else None
    loss = F.linear_cross_entropy(x, w, target, linear_bias=b, weight=weight, options=options, **arguments)
    assert loss.dtype is dtype
    wide = [v.detach().double().requires_grad_() for v in (x, w, b)]
    reference = F.linear_cross_entropy(
        wide[0], wide[1], target, linear_bias=wide[2], weight=None if weight is None else weight.double(), **arguments
    )
    for one, other in zip(gradients(loss, (x, w, b)), gradients(reference, wide), strict=True):
        assert (one - other).abs().max() <= TOLERANCE[dtype] * max(other.abs().max(), 1)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_same_as_at_once(dtype, reduction):
    for weighted, ignored, smoothing, rows in itertools.product((False, True), (None, 2), (0.0, 0.1), (1, 3, 7, 100)):
        agree(dtype, by_rows(rows), weighted, reduction=reduction, ignore_index=ignored, label_smoothing=smoothing)


@pytest.mark.parametrize("policy", ["accurate", "balanced", "compact"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_policies(dtype, policy):
    agree(dtype, by_rows(2, acc_policy=policy), reduction="mean")
    agree(dtype, by_rows(2, acc_policy=policy, acc_dtype=genesis.float64), reduction="sum")


@pytest.mark.parity
@pytest.mark.parametrize("method", ["auto", "aspect_ratio", "aspect_ratio:2"])
def test_as_pytorch(method):
    torch = pytest.importorskip("torch")
    (x, w, b), _, target = operands(genesis.float64, 40, 50, 8)
    theirs = [torch.tensor(v.detach().numpy()).requires_grad_() for v in (x, w, b)]
    loss = F.linear_cross_entropy(
        x, w, target, linear_bias=b, options=nn.LinearCrossEntropyOptions(chunking_method=method)
    )
    other = torch.nn.functional.linear_cross_entropy(
        theirs[0], theirs[1], torch.tensor(target.numpy()), linear_bias=theirs[2],
        options=torch.nn.LinearCrossEntropyOptions(chunking_method=method),
    )  # fmt: skip
    loss.backward(), other.backward()
    assert abs(loss.item() - other.item()) < 1e-12
    for one, another in zip((x, w, b), theirs, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), another.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_options_of_another_framework():
    class Dtype:
        def __repr__(self):
            return "torch.float64"

    fields = {"allow_retain_graph": True, "batch_chunk_size": 2, "chunking_method": None, "acc_policy": "accurate"}
    (x, w, _), _, target = operands(genesis.float32, 40, 50, 8)
    for dtype in (None, Dtype()):
        theirs = SimpleNamespace(**fields, acc_dtype=dtype)
        ours = nn.LinearCrossEntropyOptions(**fields, acc_dtype=dtype and genesis.float64)
        losses = [F.linear_cross_entropy(x, w, target, options=options) for options in (theirs, ours)]
        assert genesis.equal(*losses)


def test_never_all_of_the_logits():
    rows, classes = 1024, 4000
    (x, w, _), _, target = operands(genesis.float32, rows, classes, 4)
    peaks = []
    for options in (None, by_rows(64)):
        x.grad = w.grad = None
        tracemalloc.start()
        F.linear_cross_entropy(x, w, target, options=options).backward()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    logits = 4 * rows * classes
    assert peaks[0] > 1.5 * logits
    assert peaks[1] < 0.4 * logits


def test_one_row_and_rows_that_do_not_count():
    x, w = genesis.ones(3, requires_grad=True), genesis.zeros(4, 3, requires_grad=True)
    loss = F.linear_cross_entropy(x, w, genesis.tensor(1), options=by_rows(2), reduction="none")
    assert loss.shape == () and abs(loss.item() - np.log(4)) < 1e-6
    x, target = genesis.ones(5, 3, requires_grad=True), genesis.full((5,), -100)
    loss = F.linear_cross_entropy(x, w, target, options=by_rows(2))
    loss.backward()
    assert loss.isnan() and not x.grad.any() and not w.grad.any()
    target[4] = 2  # some rows at a time of which none counts
    assert abs(F.linear_cross_entropy(x, w, target, options=by_rows(2)).item() - np.log(4)) < 1e-6


def test_what_is_frozen_has_no_gradient():
    (x, w, _), _, target = operands(genesis.float32)
    for frozen, other in ((x, w), (w, x)):
        frozen.requires_grad_(False), other.requires_grad_(True)
        frozen.grad = other.grad = None
        F.linear_cross_entropy(x, w, target, options=by_rows(3)).backward()
        got, other.grad = other.grad, None
        F.linear_cross_entropy(x, w, target).backward()
        assert frozen.grad is None and (got - other.grad).abs().max() < 1e-6


def test_backward_twice_and_writes():
    (x, w, _), _, target = operands(genesis.float32)
    loss = F.linear_cross_entropy(x, w, target, options=by_rows(3))
    loss.backward(retain_graph=True)
    first = w.grad.clone()
    with genesis.no_grad():
        x.zero_()  # the gradients were computed with the loss
    loss.backward()
    assert (w.grad == 2 * first).all()
    loss = F.linear_cross_entropy(x, w, target, options=by_rows(3), reduction="none").sum()
    with genesis.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified in place"):
        loss.backward()


def test_transforms_and_derivatives_of_derivatives():
    (x, w, _), _, target = operands(genesis.float64)
    some = lambda x, w: F.linear_cross_entropy(x, w, target, options=by_rows(2))  # noqa: E731
    whole = lambda x, w: F.linear_cross_entropy(x, w, target)  # noqa: E731
    assert genesis.autograd.gradcheck(some, (x, w)) and genesis.autograd.gradgradcheck(some, (x, w))
    x, w = x.detach(), w.detach()
    for transformed in (
        lambda f: genesis.func.jvp(f, (x, w), (x, w))[1],
        lambda f: genesis.func.vmap(f, (0, None))(genesis.stack([x, 2 * x]), w),
        lambda f: genesis.func.vmap(genesis.func.grad(f), (0, None))(genesis.stack([x, 2 * x]), w),
        lambda f: genesis.func.hessian(f)(x, w),
    ):
        assert (transformed(some) - transformed(whole)).abs().max() < 1e-14


def test_compiled():
    (x, w, _), _, target = operands(genesis.float32)
    layer = nn.Parameter(w.detach().clone())

    def step(x, target):
        loss = F.linear_cross_entropy(x, layer, target, options=by_rows(3))
        layer.grad = None
        loss.backward()
        return loss

    compiled, x = genesis.compile(step, fullgraph=True), x.detach()
    for _ in range(3):
        loss, gradient = compiled(x, target), layer.grad.clone()
        assert loss == step(x, target) and (gradient == layer.grad).all()
    assert "not compiled" not in str(compiled.explain())


def test_autocast():
    (x, w, _), _, target = operands(genesis.float32, 64, 50, 16)
    with genesis.autocast("cpu", dtype=genesis.bfloat16):
        loss, whole = (
            F.linear_cross_entropy(x, w, target, options=o) for o in (by_rows(16, acc_policy="compact"), None)
        )
    assert loss.dtype is whole.dtype is genesis.float32 and abs(loss.item() - whole.item()) < 1e-5
    loss.backward()
    assert x.grad.dtype is w.grad.dtype is genesis.float32


def test_of_other_losses_all_is_computed_at_once():
    x, w = genesis.randn(4, 2), genesis.randn(3, 2)
    with pytest.warns(UserWarning, match="options have no effect"):
        loss = F.linear_cross_entropy(x, w, genesis.ones(4, 3) / 3, options=by_rows(2))
    assert loss == F.linear_cross_entropy(x, w, genesis.ones(4, 3) / 3)
    weight, target = genesis.ones(3, requires_grad=True), genesis.tensor([0, 1, 2, 0])
    with pytest.warns(UserWarning, match="a weight without a gradient"):
        F.linear_cross_entropy(x, w, target, weight=weight, options=by_rows(2), reduction="sum").backward()
    assert weight.grad.all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.linear_cross_entropy(x, w, genesis.tensor([0, 1, 2, 0]), options=by_rows(2))


def test_which_gradients_are_wanted_may_change_between_traces():
    (x, w, _), _, target = operands(genesis.float32)
    step = genesis.compile(lambda x, w, t: F.linear_cross_entropy(x, w, t, options=by_rows(2)))
    for given in ((x, w), (x.detach(), w), (x, w.detach())):
        wanted = [z for z in given if z.requires_grad]
        expected = F.linear_cross_entropy(*given, target)
        for _ in range(3):
            loss = step(*given, target)
            genesis.testing.assert_close(loss.detach(), expected.detach())
            for a, b in zip(
                genesis.autograd.grad(loss, wanted),
                genesis.autograd.grad(expected, wanted, retain_graph=True),
                strict=True,
            ):
                genesis.testing.assert_close(a, b)
    with genesis.no_grad():
        genesis.testing.assert_close(step(x, w, target), expected.detach())


def test_without_gradients_none_are_computed():
    (x, w, _), _, target = operands(genesis.float32)
    with genesis.no_grad():
        graph = genesis.jit.trace(lambda x, w, t: F.linear_cross_entropy(x, w, t, options=by_rows(2)), x, w, target)
    assert "False, False, False" in str(graph)


def test_how_many_rows():
    options, x = nn.LinearCrossEntropyOptions, genesis.empty(8192, 4096, device="meta")
    assert options().rows(x, 1 << 17) == 1024
    assert options(chunking_method="aspect_ratio").rows(x, 151936) == 256
    assert options(chunking_method="aspect_ratio:2").rows(x, 151936) == 128
    assert options(batch_chunk_size=300).rows(x, 10) == 300
    assert options(chunking_method=None).rows(x, 10) == 8192
    for wrong in (
        {"acc_policy": "loose"}, {"batch_chunk_size": 0}, {"chunking_method": "aspect_ratio:0"}, {"chunking_method": np.zeros(2)},
        {"acc_policy": np.zeros(2)}, {"acc_dtype": genesis.int64}
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            options(**wrong)
    with pytest.raises(ValueError, match="asks for 256 rows"):
        options(batch_chunk_size=5, chunking_method="aspect_ratio").rows(x, 151936)
