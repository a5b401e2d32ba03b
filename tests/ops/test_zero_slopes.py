"""Where an op has slope zero its gradient is zero, whatever comes from above: infinity times a mask would be nan."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F
from genesis.core.call.op import REGISTRY
from genesis.core.graph.tensor import wrap
from genesis.testing import Maker, samples_of
from genesis.testing.opcheck import tensors_in

# Those that work element by element, and those that choose. What others have for zeros are factors and sums that cancel.
CHOICES = ("clamp", "clip", "max", "min", "amax", "amin", "aminmax", "fmax", "fmin", "relu6", "threshold", "hardtanh",
           "scatter_reduce", "index_reduce", "sort", "topk", "kthvalue", "cummax", "cummin", "masked_fill", "where", "angle",
           "hinge_embedding_loss", "margin_ranking_loss", "triplet_margin_loss", "multi_margin_loss", "triu", "tril")  # fmt: skip
OPS = [
    op for op in REGISTRY.values() if "f" in op.dtypes and not op.kind.draws and (op.kind.aligned or op.name in CHOICES)
]


def gradients(op, sample, g):
    inputs = [x for x in tensors_in((sample.args, sample.kwargs)) if x.requires_grad]
    outs = [y for y in tensors_in(op.call(*sample.args, **sample.kwargs)) if y.requires_grad]
    if not outs:
        return []
    seeds = [wrap(np.full(y.shape, g, y._array.dtype)) for y in outs]
    return [x.numpy() for x in genesis.autograd.grad(outs, inputs, seeds, materialize_grads=True)]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_slopes_of_zero(op):
    for i in range(len(samples_of(op, Maker()))):
        finite, infinite = (
            gradients(op, samples_of(op, Maker(seed=i, requires_grad=True))[i], g) for g in (1.7, np.inf)
        )
        for a, b in zip(finite, infinite, strict=True):
            assert not b[a == 0].any(), f"sample {i}: {b[a == 0]}"


ROOTS = {
    "relu": lambda x: x.relu(),
    "clamp": lambda x: x.clamp(min=0),
    "clamp_min": lambda x: genesis.clamp_min(x, genesis.zeros(3)),
    "clamp_max": lambda x: -genesis.clamp_max(-x, 0),
    "maximum": lambda x: genesis.maximum(x, genesis.zeros(3)),
    "minimum": lambda x: -genesis.minimum(-x, genesis.zeros(3)),
    "fmax": lambda x: genesis.fmax(genesis.zeros(3), x),
    "fmin": lambda x: -genesis.fmin(-x, genesis.zeros(3)),
    "relu6": F.relu6,
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
    "trunc": lambda x: (x / 8).trunc(),
    "amax": lambda x: genesis.stack([x, genesis.zeros(3)]).amax(0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ROOTS)
def test_the_root_of_what_was_cut_off(name, dtype):
    x = genesis.tensor([-1.0, -2.0, 4.0], dtype=getattr(genesis, dtype), requires_grad=True)
    (g,) = genesis.autograd.grad(ROOTS[name](x).sqrt().sum(), x)
    assert g[:2].tolist() == [0, 0]


def test_the_angle_of_nothing_has_slope_zero():
    x, y = (genesis.zeros(2, requires_grad=True) for _ in range(2))
    assert [g.tolist() for g in genesis.autograd.grad(genesis.atan2(x, y).sum(), (x, y))] == [[0, 0]] * 2


@pytest.mark.parametrize("choose", [genesis.maximum, genesis.minimum])
def test_nan_is_chosen_twice(choose):
    """Neither is larger, so that neither lost; as PyTorch has it, and no gradient disappears."""
    x, y = genesis.tensor([float("nan"), 1.0], requires_grad=True), genesis.full((2,), float("nan"), requires_grad=True)
    assert [g.tolist() for g in genesis.autograd.grad(choose(x, y).sum(), (x, y))] == [[1, 1]] * 2
