"""What every function that makes a tensor takes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import genesis as g
from genesis.base.device import MEMORIES
from genesis.ops.creation.random import _ranked

X = g.ones(2, 2)
MAKERS = {
    "zeros": lambda **k: g.zeros(2, **k), "ones": lambda **k: g.ones(2, **k), "empty": lambda **k: g.empty(2, **k),
    "full": lambda **k: g.full((2,), 1.0, **k), "rand": lambda **k: g.rand(2, **k), "randn": lambda **k: g.randn(2, **k),
    "randint": lambda **k: g.randint(3, (2,), **k), "randperm": lambda **k: g.randperm(3, **k),
    "arange": lambda **k: g.arange(3, **k), "range": lambda **k: g.range(0, 3, **k),
    "linspace": lambda **k: g.linspace(0, 1, 3, **k), "logspace": lambda **k: g.logspace(0, 1, 3, **k),
    "eye": lambda **k: g.eye(3, **k), "normal": lambda **k: g.normal(0.0, 1.0, (2,), **k),
    "tril_indices": lambda **k: g.tril_indices(3, 3, **k), "triu_indices": lambda **k: g.triu_indices(3, 3, **k),
    "zeros_like": lambda **k: g.zeros_like(X, **k), "ones_like": lambda **k: g.ones_like(X, **k),
    "empty_like": lambda **k: g.empty_like(X, **k), "rand_like": lambda **k: g.rand_like(X, **k),
    "randn_like": lambda **k: g.randn_like(X, **k), "full_like": lambda **k: g.full_like(X, 1.0, **k),
    "randint_like": lambda **k: g.randint_like(X, 3, **k), "scalar_tensor": lambda **k: g.scalar_tensor(1.0, **k),
    "new_zeros": lambda **k: X.new_zeros(2, **k), "new_ones": lambda **k: X.new_ones(2, **k),
    "new_empty": lambda **k: X.new_empty(2, **k), "new_full": lambda **k: X.new_full((2,), 1.0, **k),
    "new_tensor": lambda **k: X.new_tensor([1.0], **k), "empty_strided": lambda **k: g.empty_strided((2,), (1,), **k),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_the_keywords_of_memory(name):
    make = MAKERS[name]
    out = make(layout=g.strided, pin_memory=False, device="cpu", dtype=g.float64, requires_grad=True)
    assert out.dtype is g.float64 and out.requires_grad and out.is_leaf
    assert not make(layout=None).requires_grad and make(device="meta").device.type == "meta"
    for wrong in ({"colour": "red"}, {"pin_memory": [0.0, 0.0]}, {"pin_memory": g.zeros(2).numpy()}):
        if name not in ("normal", "empty_strided") or "colour" in wrong:
            with pytest.raises(TypeError, match="colour|pin_memory must be a bool"):
                make(**wrong)


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"normal", "empty_strided"}))
def test_what_there_is_no_memory_of(name, monkeypatch):
    monkeypatch.delitem(MEMORIES, "cuda", raising=False)
    make = MAKERS[name]
    with pytest.raises(NotImplementedError, match=r"layout=genesis.strided, got genesis.sparse_coo\n.*to_sparse"):
        make(layout=g.sparse_coo)
    with pytest.raises(RuntimeError, match="pin_memory=True, and there is no GPU"):
        make(pin_memory=True)


@pytest.mark.parametrize("make", [g.zeros, g.ones, g.empty, g.rand, g.randn, X.new_zeros, X.new_ones, X.new_empty])
def test_a_size_by_its_name(make):
    assert make(size=(2, 3)).shape == make(size=[2, 3]).shape == make(2, 3).shape == (2, 3)
    assert make(size=()).shape == () and make(size=(2,), dtype=g.float64).dtype is g.float64
    with pytest.raises((TypeError, RuntimeError)):
        make(2, size=(2, 3))


def test_a_tensor_of_data_takes_the_word_too(monkeypatch):
    monkeypatch.delitem(MEMORIES, "cuda", raising=False)
    assert g.tensor([1.0], pin_memory=False).item() == 1
    with pytest.raises(RuntimeError, match="tensor: pin_memory=True"):
        g.tensor([1.0], pin_memory=True)


def test_the_signature_names_them():
    assert {"layout", "pin_memory", "requires_grad", "out"} <= set(inspect.signature(g.randperm).parameters)
    assert "out" not in inspect.signature(g.full_like).parameters
    out = g.empty(0)
    assert g.linspace(0, 1, 3, out=out) is out and out.tolist() == [0, 0.5, 1]


# ---- integers in sequence, and in random order


@pytest.mark.parametrize(
    "bounds", [(0,), (5,), (2, 5), (-3, 2), (0, 10, 3), (1, 10, 3), (5, 5), (5, 0, -2), (2**40, 2**40 + 3), (True, 4)]
)
def test_integers_in_sequence_are_those_of_a_range(bounds):
    x = g.arange(*bounds)
    assert x.dtype is g.int64 and x.tolist() == list(range(*bounds))
    assert g.arange(*bounds, dtype=g.float64).tolist() == [float(n) for n in range(*bounds)]


def test_integers_in_sequence_are_made_where_the_default_is():
    with g.device("meta"):
        assert (g.arange(3).device.type, g.randperm(3).device.type) == ("meta", "meta")
    assert (g.arange(3).device.type, g.arange(0, 3, device="meta").shape) == ("cpu", (3,))


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ((3, 0), "step 1 does not lead from 3 to 0"),
        ((0, 3, 0), "step 0 does not lead from 0 to 3"),
        ((0, 3, -1), "step -1"),
    ],
)
def test_steps_that_lead_nowhere_are_refused(bounds, text):
    with pytest.raises(RuntimeError, match=f"arange: {text}"):
        g.arange(*bounds)


def test_integers_have_no_gradient():
    with pytest.raises(RuntimeError):
        g.arange(3, requires_grad=True)


@pytest.mark.parametrize("n", [0, 1, 2, 2047, 2048, 2049, 5000])
def test_a_permutation_is_the_order_of_the_words_of_its_stream(n):
    order = g.Generator().manual_seed(3).words(n).argsort(kind="stable").tolist()
    assert g.randperm(n, generator=g.Generator().manual_seed(3)).tolist() == order
    g.manual_seed(3)
    x = g.randperm(n)
    assert (x.dtype, x.tolist()) == (g.int64, order)
    g.manual_seed(3)
    assert g.randperm(n, dtype=g.int32).tolist() == order


@pytest.mark.parametrize("shift", [0, 3, 30, 62])
def test_words_that_are_equal_or_nearly_so_keep_their_order(shift):
    words = np.random.default_rng(0).integers(0, 4, (3, 3000)).astype(np.uint64) << np.uint64(shift)
    np.testing.assert_array_equal(_ranked(words), words.argsort(-1, "stable"))
