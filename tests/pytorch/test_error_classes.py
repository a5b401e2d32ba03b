"""Errors are of the class that PyTorch raises in the same place, so that an ``except`` of a program catches them."""

from __future__ import annotations

import pytest

import genesis

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CALLS = {
    "narrow, too long": lambda t, x: x.narrow(0, 1, 5),
    "narrow, a start that is not there": lambda t, x: x.narrow(0, 4, 1),
    "narrow, below the first": lambda t, x: x.narrow(0, -5, 1),
    "narrow, no such dimension": lambda t, x: x.narrow(3, 0, 1),
    "gather, index": lambda t, x: t.gather(x, 0, t.tensor([[5, 0]])),
    "gather, dimensions of the index": lambda t, x: t.gather(x, 0, t.tensor([0])),
    "gather, index of floats": lambda t, x: t.gather(x, 0, t.tensor([[0.0]])),
    "gather, no such dimension": lambda t, x: t.gather(x, 3, t.tensor([[0]])),
    "scatter, index": lambda t, x: t.scatter(x, 0, t.tensor([[5]]), 1.0),
    "rot90, one dimension": lambda t, x: t.rot90(x, 1, [0]),
    "rot90, three dimensions": lambda t, x: t.rot90(x, 1, [0, 1, 1]),
    "rot90, twice the same": lambda t, x: t.rot90(x, 1, [0, 0]),
    "rot90, no such dimension": lambda t, x: t.rot90(x, 1, [0, 5]),
    "repeat_interleave, too few": lambda t, x: t.repeat_interleave(x, t.tensor([1, 2]), 0),
    "repeat_interleave, negative": lambda t, x: t.repeat_interleave(x, -1),
    "repeat_interleave, one negative": lambda t, x: t.repeat_interleave(x, t.tensor([1, -2, 1]), 0),
    "repeat_interleave, a matrix": lambda t, x: t.repeat_interleave(x, t.ones(3, 3, dtype=t.int64), 0),
    "repeat_interleave, no such dimension": lambda t, x: t.repeat_interleave(x, 2, 5),
    "expand": lambda t, x: x.expand(2, 2),
    "hann_window": lambda t, x: t.hann_window(-1),
    "kaiser_window": lambda t, x: t.kaiser_window(-2),
    "one_hot, above": lambda t, x: t.nn.functional.one_hot(t.tensor([0, 5]), 3),
    "one_hot, below": lambda t, x: t.nn.functional.one_hot(t.tensor([-1])),
    "one_hot, of nothing": lambda t, x: t.nn.functional.one_hot(t.tensor([], dtype=t.int64)),
    "one_hot, of nothing, no classes": lambda t, x: t.nn.functional.one_hot(t.tensor([], dtype=t.int64), 0),
    "one_hot, negative classes": lambda t, x: t.nn.functional.one_hot(t.tensor([1]), -3),
    "embedding": lambda t, x: t.nn.functional.embedding(t.tensor([7]), x),
    "half normal": lambda t, x: t.distributions.HalfNormal(t.tensor(-1.0)),
    "half Cauchy": lambda t, x: t.distributions.HalfCauchy(t.tensor(-1.0)),
    "half normal, outside": lambda t, x: t.distributions.HalfNormal(1.0).log_prob(t.tensor(-1.0)),
    "resize_": lambda t, x: x.resize_(-1),
    "resize_, one of two": lambda t, x: x.resize_(2, -1),
    "sparse, of nothing": lambda t, x: t.sparse_coo_tensor(),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_class_of_an_error_is_pytorchs(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        CALLS[name](torch, torch.arange(12.0).reshape(3, 4))
    with pytest.raises(theirs.type):
        CALLS[name](genesis, genesis.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("damaged", [False, True])
def test_files_that_are_not_loaded(tmp_path, damaged):
    path = tmp_path / "a.pt"
    torch.save({"a": torch.ones(3), "b": None if damaged else _Payload()}, path)
    if damaged:
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        torch.load(path, weights_only=True)
    with pytest.raises(theirs.type):
        genesis.load(path)


class _Payload:
    pass


def test_a_sparse_tensor_of_a_size_alone():
    for make in (genesis, torch):
        x = make.sparse_coo_tensor(size=(5, 3), dtype=make.float64, check_invariants=True)
        assert (tuple(x.shape), x.to_dense().sum().item(), x.dtype) == ((5, 3), 0, make.float64)
