"""What every function that makes a tensor takes."""

from __future__ import annotations

import inspect

import pytest

import genesis as g
from genesis.base.device import MEMORIES

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
