"""Losses, tables and activations as modules: arguments, results and state as PyTorch's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import genesis
from genesis import nn

rng = np.random.default_rng(0)
X, Y, SIGNS = rng.standard_normal((4, 3)), rng.standard_normal((4, 3)), np.sign(rng.standard_normal((4, 3))).astype(int)
CLASSES = np.array([0, 2, 1, 1])
CASES = [
    ("MultiMarginLoss", (2, 0.5), (X, CLASSES)),
    ("MultiMarginLoss", (1, 1.0, None, None, None, "none"), (X, CLASSES)),
    ("MultiLabelMarginLoss", (), (X, np.array([[0, -1, 1]] * 4))),
    ("MultiLabelSoftMarginLoss", (), (X, (Y > 0) * 1.0)),
    ("SoftMarginLoss", (), (X, SIGNS)),
    ("HingeEmbeddingLoss", (0.3,), (X, SIGNS)),
    ("CosineEmbeddingLoss", (0.1,), (X, Y, SIGNS[:, 0])),
    ("TripletMarginWithDistanceLoss", (), (X, Y, X - 1)),
    ("PairwiseDistance", (1.0, 1e-4, True), (X, Y)),
    ("CTCLoss", (2,), (np.log(np.full((4, 2, 3), 1 / 3)), np.array([[0, 1], [1, 1]]), (4, 4), (2, 1))),
    ("NLLLoss2d", (), (np.log(np.full((1, 3, 2, 2), 1 / 3)), np.ones((1, 2, 2), int))),
    ("Hardshrink", (0.3,), (X,)),
    ("Softshrink", (0.3,), (X,)),
    ("Softmax2d", (), (X.reshape(2, 3, 2, 1),)),
    ("PReLU", (3, 0.4), (X,)),
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:`NLLLoss2d` has been deprecated")
@pytest.mark.parametrize(("name", "options", "inputs"), CASES)
def test_modules_agree(name, options, inputs):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (genesis, torch):
        module = getattr(lib.nn, name)(*options)
        module = module.to(lib.float64)
        found.append(module(*[lib.tensor(x) if isinstance(x, np.ndarray) else x for x in inputs]).detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_arguments_have_pytorchs_names_and_order():
    torch = pytest.importorskip("torch")
    for name in ("Embedding", "EmbeddingBag", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss", "PReLU", "RReLU",
                 "Transformer", "TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder",
                 "TransformerDecoder", "LSTMCell", "GRUCell", "RNNCell", "LinearCrossEntropyLoss"):  # fmt: skip
        ours, theirs = (list(inspect.signature(getattr(lib.nn, name)).parameters) for lib in (genesis, torch))
        assert ours == theirs, name


def test_losses_refuse_what_they_do_not_know():
    with pytest.raises(TypeError, match="unexpected arguments 3"):
        nn.SoftMarginLoss(None, None, "mean", 3)
    with pytest.raises(TypeError, match="given twice"):
        nn.CTCLoss(1, blank=2)
    with pytest.raises(TypeError, match="unexpected arguments"):
        nn.TripletMarginWithDistanceLoss(lambda a, b: a)
    with pytest.raises(ValueError, match="3 or 4 dimensions"):
        nn.Softmax2d()(genesis.ones(2, 2))


@pytest.mark.parity
@pytest.mark.parametrize("bias", [True, False])
def test_adaptive_softmax_agrees(bias):
    torch = pytest.importorskip("torch")
    options = (8, 20, [4, 9, 15])
    ours = nn.AdaptiveLogSoftmaxWithLoss(*options, div_value=2.0, head_bias=bias).double()
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*options, div_value=2.0, head_bias=bias).double()
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    x, y = rng.standard_normal((12, 8)), rng.integers(0, 20, 12)
    for rows in (slice(None), slice(0, 3), 4):
        results = []
        for lib, layer in ((genesis, ours), (torch, theirs)):
            layer.zero_grad()
            leaf = lib.tensor(x[rows], requires_grad=True)
            out = layer(leaf, lib.tensor(y[rows]))
            (out.loss + (out.output * out.output).sum()).backward()
            grads = [p.grad for p in layer.parameters()]
            results.append([out.output.detach(), out.loss.detach(), leaf.grad, *grads])
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(0 if a is None else a.numpy(), 0 if b is None else b.numpy(), atol=1e-12)
    np.testing.assert_allclose(
        ours.log_prob(genesis.tensor(x)).detach().numpy(), theirs.log_prob(torch.tensor(x)).detach().numpy()
    )
    assert ours.predict(genesis.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    for wrong in ([], [5, 3], [0, 3], [25], [3, 3]):
        with pytest.raises(ValueError, match="cutoffs must be growing"):
            nn.AdaptiveLogSoftmaxWithLoss(8, 20, wrong)
    with pytest.raises(RuntimeError, match="8 features"):
        ours(genesis.ones(2, 3), genesis.tensor([1, 2]))
    with pytest.raises(RuntimeError, match=r"targets must be in \[0, 20\)"):
        ours(genesis.ones(1, 8).double(), genesis.tensor([20]))


def test_tables_of_given_rows():
    rows = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(rows, padding_idx=0)
    assert not layer.weight.requires_grad and layer(genesis.tensor([1])).tolist() == [[3.0, 4.0]]
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(rows, mode="sum")
    assert bag(genesis.tensor([[0, 1]])).tolist() == [[4.0, 6.0]]
    assert repr(nn.Embedding(3, 2, padding_idx=-1)) == "Embedding(3, 2, padding_idx=2)"
    assert repr(nn.EmbeddingBag(3, 2)) == "EmbeddingBag(3, 2, mode='mean')"
    with pytest.raises(ValueError, match="padding_idx is 5"):
        nn.Embedding(3, 2, padding_idx=5)
    with pytest.raises(ValueError, match=r"expected \[3, 2\]"):
        nn.Embedding(3, 2, _weight=rows)
    with pytest.raises(TypeError, match="must be a matrix"):
        nn.Embedding.from_pretrained(rows[0])
    layer = nn.LinearCrossEntropyLoss(3, 4, out_features=(2,), bias=True)
    loss = layer(genesis.ones(5, 3), genesis.zeros(5, 2).long())
    loss.backward()
    assert layer.linear.weight.shape == (8, 3) and layer.linear.bias.grad is not None


def test_random_slopes_only_in_training():
    genesis.manual_seed(0)
    layer, x = nn.RReLU(), -genesis.ones(100)
    assert layer(x).std() > 0.01
    assert layer.eval()(x).unique().numel() == 1


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_a_batch_that_is_ignored_has_a_gradient_of_zero(name, shape):
    x = genesis.randn(shape).requires_grad_()
    target = genesis.full((shape[0], *shape[2:]), -100)
    loss = getattr(genesis.nn.functional, name)(x, target)
    loss.backward()
    assert loss.isnan() and (x.grad == 0).all()
