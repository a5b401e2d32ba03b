"""Losses of class indices as compiled loops: what the composition gives in float64, and of log probabilities its bits."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.autograd import grad
from genesis.core.call.fused import FusedNode
from genesis.kernels.cpu import classes
from genesis.kernels.llvm import loops
from genesis.testing.kernels import meanings_only

pytestmark = pytest.mark.skipif(not loops.available(), reason="the loops need llvmlite")
rng = np.random.default_rng(0)

SHAPES = [(7,), (1,), (5, 3), (4, 16), (6, 19), (3, 33), (2, 5, 3), (2, 17, 3, 2)]
SPECIAL = {
    "normal": lambda x: x,
    "far apart": lambda x: 40 * x,
    "-inf": lambda x: np.where(x > 1, -np.inf, x),
    "inf and nan": lambda x: np.select([x > 1.5, x < -1.5], [np.inf, np.nan], x),
}


def arguments(shape, special, weighted, ignored):
    x, count = SPECIAL[special](rng.normal(size=shape)).astype(np.float32), shape[1 if len(shape) > 1 else 0]
    labels = rng.integers(0, count, shape[:1] + shape[2:] if len(shape) > 1 else ())
    labels = np.full_like(labels, ignored) if ignored < -100 else labels
    return x, labels, rng.random(count).astype(np.float32) if weighted else None


def loss_and_gradient(function, x, labels, weight, dtype, **options):
    given = None if weight is None else genesis.tensor(weight.astype(dtype))
    x = genesis.tensor(x.astype(dtype), requires_grad=True)
    loss = function(x, genesis.tensor(labels), given, **options)
    alone = function(x.detach(), genesis.tensor(labels), given, **options)
    g = genesis.linspace(-1.0, 2.0, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
    return [each.detach().numpy() for each in (loss, alone, grad(loss, [x], [g])[0])]


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("shape", [(5, 3), (4, 16), (6, 19), (3, 33), (1, 1)])
def test_means_of_logits(special, shape):
    for ignored in (-100, 0, -101):
        x, labels, _ = arguments(shape, special, False, ignored)
        results = loss_and_gradient(F.cross_entropy, x, labels, None, np.float32, ignore_index=ignored)
        with meanings_only():
            want = loss_and_gradient(F.cross_entropy, x, labels, None, np.float64, ignore_index=ignored)
        # what does not count changes nothing, whatever its numbers are: the composition has nan times 0
        want[2] = np.where((labels != ignored)[:, None], want[2], 0)
        for a, b in zip(results, want, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_log_probabilities_have_the_bits_of_the_composition(special, reduction, weighted):
    for shape in SHAPES:
        for ignored in (-100, 0, -101):
            x, labels, weight = arguments(shape, special, weighted, ignored)
            options = {"ignore_index": ignored, "reduction": reduction}
            results = loss_and_gradient(F.nll_loss, x, labels, weight, np.float32, **options)
            with meanings_only():
                want = loss_and_gradient(F.nll_loss, x, labels, weight, np.float32, **options)
            for a, b in zip(results, want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_threads_change_nothing():
    x, labels = genesis.randn(3000, 101, requires_grad=True), genesis.randint(0, 101, (3000,))
    weight, before = genesis.rand(101), genesis.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            for loss in (F.cross_entropy(x, labels, ignore_index=4), F.nll_loss(x, labels, weight)):
                results.append((loss.detach().numpy().tobytes(), grad(loss, [x])[0].numpy().tobytes()))
    finally:
        genesis.set_num_threads(before)
    assert len(results) == 6 and len(set(results)) == 2


@pytest.mark.parametrize("function", [F.nll_loss, F.cross_entropy])
@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_class_out_of_range_is_named(function, wrong):
    for reduction in ("mean", "none"):
        with pytest.raises(IndexError, match=rf"target {wrong} is out of range for 5 classes"):
            function(genesis.randn(3, 5), genesis.tensor([0, wrong, 1]), ignore_index=1, reduction=reduction)


@pytest.mark.parametrize("function", [F.nll_loss, F.cross_entropy])
def test_gradients_of_weights_are_those_of_the_composition(function):
    x, labels = genesis.randn(6, 5, requires_grad=True), genesis.tensor([0, 1, 2, 2, 4, 1])
    weight = genesis.rand(5, requires_grad=True)
    loss = function(x, labels, weight)
    assert function is F.cross_entropy or isinstance(loss.grad_fn, FusedNode)
    results = grad(loss, [x, weight])
    with meanings_only():
        want = grad(function(x, labels, weight), [x, weight])
    for a, b in zip(results, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-7)


def test_layouts_and_classes_of_other_dtypes():
    x, labels = genesis.randn(5, 6).t(), genesis.tensor([0, 4, 1, 2, 2, 1])
    want = F.cross_entropy(x.contiguous(), labels)
    for dtype in (genesis.int32, genesis.uint8):
        assert F.cross_entropy(x, labels.to(dtype)).equal(want)
    turned = genesis.stack([labels, labels], 1)[:, 0]
    assert F.nll_loss(x, turned, reduction="sum").equal(F.nll_loss(x.contiguous(), labels, reduction="sum"))
    labels_before = labels.clone()
    logits = x.clone().requires_grad_()
    loss = F.cross_entropy(logits, labels)
    labels.zero_()  # the loss has classes of its own
    assert grad(loss, [logits])[0].equal(grad(F.cross_entropy(logits, labels_before), [logits])[0])


def test_small_and_large_calls_are_compiled():
    for shape in ((10, 16), (4, 10, 6), (3,)):
        x, labels, _ = arguments(shape, "normal", False, -100)
        assert classes.fit(x, labels, None, "mean")
    assert not classes.fit(x.astype(np.float64), labels, None, "mean")
