"""Pruned parameters: masks as PyTorch's, one after the other, over several parameters, and their removal."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.nn.utils import prune


def _layer(lib):
    layer = lib.nn.Linear(5, 4)
    layer.weight.data = lib.tensor(np.random.default_rng(0).normal(size=(4, 5)).astype("float32"))
    return layer


WAYS = {
    "l1": lambda p, m: p.l1_unstructured(m, "weight", 0.3),
    "l1 count": lambda p, m: p.l1_unstructured(m, "weight", 7),
    "l1 none": lambda p, m: p.l1_unstructured(m, "weight", 0),
    "l1 all": lambda p, m: p.l1_unstructured(m, "weight", 1.0),
    "ln": lambda p, m: p.ln_structured(m, "weight", 0.5, n=2, dim=0),
    "ln columns": lambda p, m: p.ln_structured(m, "weight", 2, n=1, dim=-1),
    "identity": lambda p, m: p.identity(m, "weight"),
    "l1 after ln": lambda p, m: p.l1_unstructured(p.ln_structured(m, "weight", 1, n=2, dim=0), "weight", 0.4),
    "ln after l1": lambda p, m: p.ln_structured(p.l1_unstructured(m, "weight", 0.4), "weight", 1, n=2, dim=1),
    "ln after ln": lambda p, m: p.ln_structured(p.ln_structured(m, "weight", 1, n=2, dim=0), "weight", 1, n=2, dim=0),
}


@pytest.mark.parity
@pytest.mark.parametrize("way", WAYS)
def test_masks_as_pytorch(way):
    pytest.importorskip("torch", reason="PyTorch is the reference here")
    import torch
    import torch.nn.utils.prune as theirs

    found = []
    for lib, p in ((genesis, prune), (torch, theirs)):
        layer = _layer(lib)
        WAYS[way](p, layer)
        layer(lib.ones(5))
        found.append((layer.weight_mask.tolist(), layer.weight.tolist(), sorted(layer.state_dict())))
        assert p.is_pruned(layer)
        p.remove(layer, "weight")
        assert not p.is_pruned(layer) and layer.weight.tolist() == found[-1][1]
    assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


@pytest.mark.parity
def test_several_parameters_as_pytorch():
    pytest.importorskip("torch", reason="PyTorch is the reference here")
    import torch
    import torch.nn.utils.prune as theirs

    found = []
    for lib, p in ((genesis, prune), (torch, theirs)):
        a, b = _layer(lib), _layer(lib)
        b.weight.data = b.weight.data * 0.5
        p.l1_unstructured(a, "weight", 3)
        p.global_unstructured([(a, "weight"), (b, "weight")], p.L1Unstructured, amount=0.4)
        found.append((a.weight_mask.tolist(), b.weight_mask.tolist()))
    assert found[0] == found[1]


def test_gradients_reach_what_is_left():
    layer = _layer(genesis)
    custom = genesis.zeros(4, 5)
    custom[0, 1] = 1
    prune.custom_from_mask(layer, "weight", custom)
    layer(genesis.ones(5)).sum().backward()
    assert layer.weight_orig.grad.tolist() == custom.tolist()


@pytest.mark.parametrize("way", ["random_unstructured", "random_structured"])
def test_random_ones_leave_so_many(way):
    layer = _layer(genesis)
    getattr(prune, way)(layer, "weight", 2, **({"dim": 0} if way == "random_structured" else {}))
    assert int((layer.weight_mask == 0).sum()) == (10 if way == "random_structured" else 2)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda m: prune.l1_unstructured(m, "x", 1), ValueError, "L1Unstructured: Linear has no parameter 'x'"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "amount must be a part in"),
        (lambda m: prune.l1_unstructured(m, "weight", 99), ValueError, "amount=99 is more than the 20 there are"),
        (lambda m: prune.l1_unstructured(m, "weight", "a"), TypeError, "amount must be a number, got str"),
        (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "slices are of at least 2 dimensions, got 1"),
        (lambda m: prune.ln_structured(m, "weight", 1, 2, 7), IndexError, "dim 7 is out of range"),
        (lambda m: prune.custom_from_mask(m, "weight", genesis.ones(2)), RuntimeError, "another shape"),
        (lambda m: prune.remove(m, "weight"), ValueError, "'weight' of Linear is not pruned"),
        (
            lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1),
            TypeError,
            "needs an unstructured method",
        ),
    ],
)
def test_errors_change_nothing(make, error, words):
    layer = _layer(genesis)
    before = layer.weight
    with pytest.raises(error, match=words):
        make(layer)
    assert layer.weight is before and sorted(layer.state_dict()) == ["bias", "weight"]


def test_a_pruned_module_in_a_network():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert not prune.is_pruned(model)
    prune.identity(model[0], "bias")
    assert prune.is_pruned(model)
