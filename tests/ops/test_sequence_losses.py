"""Losses, embeddings and activations against PyTorch: values, gradients, wrong shapes, empty batches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn import functional as F

rng = np.random.default_rng(0)


def real(*shape):
    return rng.standard_normal(shape)


def run(lib, name, args, kwargs):
    functional = F if lib is genesis else lib.nn.functional
    made = [lib.tensor(a, requires_grad=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a for a in args]
    options = {k: lib.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    out = getattr(functional, name)(*made, **options)
    weight = lib.tensor(np.cos(np.arange(out.numel())).reshape(tuple(out.shape)))
    (out * weight).sum().backward()
    leaves = [x for x in made if hasattr(x, "requires_grad") and x.requires_grad]
    return [out.detach().numpy(), *[None if x.grad is None else x.grad.numpy() for x in leaves]]


def agree(name, *args, **kwargs):
    torch = pytest.importorskip("torch")
    for i, (a, b) in enumerate(zip(*(run(lib, name, args, kwargs) for lib in (genesis, torch)), strict=True)):
        if a is None and b is None:
            continue
        b = np.zeros_like(a) if b is None else b
        a = np.zeros_like(b) if a is None else a
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"{name} {i} {kwargs}")


REDUCTIONS = ("mean", "sum", "none")
signs = lambda *shape: np.sign(real(*shape))  # noqa: E731


@pytest.mark.parity
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margin_losses_agree(reduction):
    classes = np.array([0, 2, 1, 1])
    for p, margin, weight in itertools.product((1, 2), (1.0, 0.3), (None, np.array([0.5, 2.0, 1.0]))):
        options = {"p": p, "margin": margin, "reduction": reduction}
        agree("multi_margin_loss", real(4, 3), classes, **options, weight=weight)
        agree("multi_margin_loss", real(3), np.array(2), **options)
    several = np.array([[0, 2, -1, 1], [3, 3, 1, -1], [-1, 0, 1, 2], [0, 1, 2, 3]])
    agree("multilabel_margin_loss", real(4, 4), several, reduction=reduction)
    agree("multilabel_margin_loss", real(4), several[0], reduction=reduction)
    agree("multilabel_soft_margin_loss", real(4, 3), rng.random((4, 3)), reduction=reduction)
    agree("multilabel_soft_margin_loss", real(4, 3), (real(4, 3) > 0) * 1.0, np.array([1.0, 2, 3]), reduction=reduction)
    agree("soft_margin_loss", real(4, 3) * 30, signs(4, 3).astype(int), reduction=reduction)
    for margin in (1.0, 0.2):
        agree("hinge_embedding_loss", real(4, 3), signs(4, 3), margin=margin, reduction=reduction)
        agree("hinge_embedding_loss", real(4, 3), np.zeros((4, 3)), margin=margin, reduction=reduction)
    for margin in (0.0, -0.5, 0.4):
        agree(
            "cosine_embedding_loss",
            real(4, 3),
            real(4, 3),
            np.array([1, -1, 0, -1]),
            margin=margin,
            reduction=reduction,
        )
    agree("cosine_embedding_loss", real(3), real(3), np.array(-1), reduction=reduction)
    for swap in (False, True):
        triple = real(4, 3), real(4, 3), real(4, 3)
        agree("triplet_margin_with_distance_loss", *triple, swap=swap, reduction=reduction)
        distance = lambda a, b: ((a - b) ** 2).sum(-1)  # noqa: E731
        agree("triplet_margin_with_distance_loss", *triple, distance_function=distance, swap=swap, reduction=reduction)


@pytest.mark.parity
def test_distances_agree():
    for p, keep in itertools.product((0.0, 1.0, 1.5, 2.0, float("inf")), (False, True)):
        agree("pairwise_distance", real(4, 3), real(4, 3), p=p, keepdim=keep)
        agree("pairwise_distance", real(3), real(4, 3), p=p, keepdim=keep)
    for p in (0.5, 1.0, 2.0, 3.0, float("inf")):
        agree("pdist", real(5, 3), p=p)
    repeated = real(1, 3).repeat(3, 0)
    agree("pdist", repeated)
    assert F.pdist(genesis.ones(1, 3)).shape == (0,) and F.pdist(genesis.ones(0, 3)).shape == (0,)


@pytest.mark.parity
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_linear_cross_entropy_agrees(reduction):
    for smoothing, ignore in itertools.product((0.0, 0.1), (None, 1)):
        options = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignore}
        agree("linear_cross_entropy", real(4, 2), real(3, 2), np.array([0, 2, 1, 1]), **options)
        agree("linear_cross_entropy", real(4, 2), real(3, 5, 2), rng.integers(0, 3, (4, 5)), **options)
    agree("linear_cross_entropy", real(4, 2), real(3, 2), real(4, 3), linear_bias=real(3), reduction=reduction)
    agree("linear_cross_entropy", real(2), real(3, 2), np.array(1), reduction=reduction, weight=np.array([1.0, 2, 3]))


@pytest.mark.parity
def test_shrinks_agree():
    x = np.array([-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, np.inf, -np.inf])
    for name, lambd in itertools.product(("hardshrink", "softshrink"), (0.5, 0.0, 0.3)):
        agree(name, x, lambd=lambd)
    assert F.hardshrink(genesis.tensor([float("nan")])).isnan().all()
    assert F.softshrink(genesis.tensor([float("nan")])).isnan().all()


def ctc(torch, x, targets, inputs, lengths, **options):
    """The loss and the gradient of the logits, of both."""
    out = []
    for lib in (genesis, torch):
        functional = F if lib is genesis else torch.nn.functional
        leaf = lib.tensor(x, requires_grad=True)
        loss = functional.ctc_loss(leaf.log_softmax(-1), lib.tensor(targets), inputs, lengths, **options)
        weight = lib.tensor(np.cos(np.arange(loss.numel())).reshape(tuple(loss.shape)))
        (loss * weight).sum().backward()
        out.append((loss.detach().numpy(), leaf.grad.numpy()))
    return out


@pytest.mark.parity
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("blank", [0, 3, 4])
def test_ctc_agrees(reduction, blank):
    torch = pytest.importorskip("torch")
    labels = np.array([c for c in range(5) if c != blank])
    for inputs, lengths in [((7, 5, 6), (3, 1, 2)), ((7, 7, 7), (0, 3, 3)), ((4, 7, 1), (2, 3, 0))]:
        targets = labels[rng.integers(0, 4, (3, 3))]
        targets[0, 1] = targets[0, 0]  # the same twice
        flat = np.concatenate([row[:n] for row, n in zip(targets, lengths, strict=True)])
        for given in (targets, flat):
            x = real(7, 3, 5)
            (a, ga), (b, gb) = ctc(torch, x, given, inputs, lengths, blank=blank, reduction=reduction)
            np.testing.assert_allclose(a, b, rtol=1e-10)
            np.testing.assert_allclose(ga, gb, rtol=1e-8, atol=1e-12)
    (a, ga), (b, gb) = ctc(torch, real(7, 5), targets[1, :2], (6,), (2,), blank=blank, reduction=reduction)
    np.testing.assert_allclose(a, b, rtol=1e-10), np.testing.assert_allclose(ga, gb, rtol=1e-8, atol=1e-12)


@pytest.mark.parity
def test_ctc_of_targets_that_do_not_fit():
    torch = pytest.importorskip("torch")
    x, targets = real(2, 2, 4), np.array([[1, 1], [3, 2]])
    (a, ga), (b, gb) = ctc(torch, x, targets, (2, 2), (2, 2), reduction="none", zero_infinity=True)
    np.testing.assert_allclose(a, b), np.testing.assert_allclose(ga, gb, atol=1e-12)
    (a, ga), (b, _) = ctc(torch, x, targets, (2, 2), (2, 2), reduction="none")
    assert np.isinf(a[0]) and np.isinf(b[0]) and a[1] == pytest.approx(b[1])
    assert not np.isfinite(ga[:, 0]).all() and np.isfinite(ga[:, 1]).all()
    nothing = F.ctc_loss(genesis.zeros(2, 2, 3), genesis.tensor([[1], [1]]), (0, 0), (0, 1), reduction="none")
    assert nothing.tolist() == [0.0, float("inf")]


def test_ctc_tells_what_does_not_fit():
    x = genesis.zeros(4, 2, 3)
    with pytest.raises(RuntimeError, match="rows of targets"):
        F.ctc_loss(x, genesis.ones(3, 2).long(), (4, 4), (1, 1))
    with pytest.raises(TypeError, match="input_lengths must be integers"):
        F.ctc_loss(x, genesis.ones(2, 2).long(), (4.0, 4), (1, 1))
    with pytest.raises(ValueError, match="reduction must be"):
        F.ctc_loss(x, genesis.ones(2, 2).long(), (4, 4), (1, 1), reduction="most")


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_agree(mode):
    weight = real(6, 3)
    for padding in (None, 2, -1):
        options = {"mode": mode, "padding_idx": padding}
        agree("embedding_bag", rng.integers(0, 6, (4, 5)), weight, **options)
        flat = np.array([1, 2, 2, 5, 0, 2, 4])
        for offsets in ([0, 3, 5], [0, 0, 2], [0, 7], [0]):
            agree("embedding_bag", flat, weight, np.array(offsets), **options)
            agree("embedding_bag", flat, weight, np.array([*offsets, 7]), **options, include_last_offset=True)
            agree("embedding_bag", flat[:0], weight, np.zeros(0, np.int64), mode=options["mode"])
    if mode == "sum":
        torch = pytest.importorskip("torch")
        factors, results = real(7), []
        for lib in (genesis, torch):
            functional, leaf = (F if lib is genesis else torch.nn.functional), lib.tensor(factors, requires_grad=True)
            table = lib.tensor(weight, requires_grad=True)
            out = functional.embedding_bag(
                lib.tensor(flat), table, lib.tensor([0, 3]), mode="sum", per_sample_weights=leaf
            )
            (out * out).sum().backward()
            results.append([x.detach().numpy() for x in (out, leaf.grad, table.grad)])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    assert F.embedding_bag(genesis.ones(0).long(), genesis.ones(4, 2), genesis.tensor([0, 0]), mode=mode).tolist() == [
        [0.0, 0.0],
        [0.0, 0.0],
    ]


@pytest.mark.parity
def test_embedding_options_agree():
    torch = pytest.importorskip("torch")
    numbers, table = np.array([[0, 2, 2], [3, 2, 0]]), real(5, 3)
    agree("embedding", numbers, table, scale_grad_by_freq=True)
    agree("embedding", numbers, table, scale_grad_by_freq=True, padding_idx=2)
    for norm_type in (2.0, 1.0):
        results = []
        for lib in (genesis, torch):
            functional, weight = (F if lib is genesis else torch.nn.functional), lib.tensor(table)
            out = functional.embedding(lib.tensor(numbers), weight, max_norm=0.7, norm_type=norm_type)
            results.append((out.numpy(), weight.numpy()))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)
    layer = nn.Embedding(5, 3, max_norm=0.5)
    out = layer(genesis.tensor([1, 2]))
    assert layer.weight.norm(2, 1)[1:3].max() <= 0.5001 and out.requires_grad
    out.sum().backward()


def test_gumbel_softmax_draws_from_the_distribution():
    genesis.manual_seed(0)
    logits = genesis.tensor([0.7, 0.2, 0.1]).log().expand(20000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert hard.sum(1).sub(1).abs().max() < 1e-6 and ((hard < 1e-6) | (hard > 1 - 1e-6)).all()
    assert (hard.mean(0) - genesis.tensor([0.7, 0.2, 0.1])).abs().max() < 0.02
    (hard * genesis.arange(3.0)).sum().backward()
    assert logits.grad.abs().sum() > 0
    soft = F.gumbel_softmax(logits, dim=0)
    assert genesis.allclose(soft.sum(0), genesis.ones(3), atol=1e-4)
