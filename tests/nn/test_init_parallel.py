"""Initialisations that are not random draws alone, old names, modules on several devices."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
from genesis import nn


@pytest.mark.parity
@pytest.mark.parametrize(("shape", "groups"), [((4, 2, 3), 2), ((3, 5, 3, 4), 1), ((6, 2, 3, 3, 3), 3), ((2, 2, 1), 1)])
def test_dirac_as_pytorch(shape, groups):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    mine, theirs = (lib.nn.init.dirac_(lib.ones(*shape), groups) for lib in (genesis, torch))
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_sparse_columns():
    x = nn.init.sparse_(genesis.empty(10, 200), 0.25, std=2.0, generator=genesis.Generator().manual_seed(1))
    assert ((x == 0).sum(0) == 3).all() and 1.8 < float(x[x != 0].std()) < 2.2
    again = nn.init.sparse_(genesis.empty(10, 200), 0.25, std=2.0, generator=genesis.Generator().manual_seed(1))
    assert x.tolist() == again.tolist()


OLD = ["uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
       "kaiming_normal", "orthogonal", "sparse"]  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_old_names_say_so(name):
    x = genesis.empty(3, 3, 3) if name == "dirac" else genesis.empty(3, 4)
    more = {"constant": (0.5,), "sparse": (0.5,)}.get(name, ())
    with pytest.warns(FutureWarning, match=rf"nn.init.{name}: this name is deprecated\n  try: {name}_") as caught:
        assert getattr(nn.init, name)(x, *more) is x
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.init.dirac_(genesis.ones(2)), "dirac_: needs 3, 4 or 5 dimensions, got 1"),
        (lambda: nn.init.dirac_(genesis.ones(3, 1, 1), 2), "3 output channels cannot be divided by 2 groups"),
        (lambda: nn.init.sparse_(genesis.ones(2), 0.5), "sparse_: needs a matrix, got 1 dimensions"),
        (lambda: nn.init.sparse_(genesis.ones(2, 2), 1.5), r"sparsity must be in \[0, 1\], got 1.5"),
    ],
)
def test_errors(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_data_parallel_is_the_module():
    layer = nn.Linear(2, 3)
    model = nn.DataParallel(layer)
    x = genesis.ones(2)
    assert model(x).tolist() == layer(x).tolist() == nn.parallel.data_parallel(layer, x).tolist()
    model(x).sum().backward()
    assert model.module.weight.grad is layer.weight.grad is not None
    named = nn.DataParallel(layer, device_ids=[0, 1], output_device=0)  # as in PyTorch: there is no such device to ask
    assert named.module is layer and named.device_ids == [] and named(x).tolist() == layer(x).tolist()
