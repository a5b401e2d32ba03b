"""Integers of NumPy, and tensors of one integer, where PyTorch takes a Python integer."""

from __future__ import annotations

import numpy as np
import pytest

import genesis
import genesis.nn.functional as F

MAKERS = [np.int64, np.int32, genesis.tensor]
X = genesis.arange(24.0).reshape(4, 6)
CALLS = {
    "sum": lambda n: X.sum(n(1)),
    "argmax": lambda n: X.argmax(n(1)),
    "logsumexp": lambda n: X.logsumexp(n(1)),
    "var": lambda n: X.var(n(1)),
    "flip": lambda n: X.flip(n(0)),
    "squeeze": lambda n: X[None].squeeze(n(0)),
    "movedim": lambda n: X.movedim(n(0), n(1)),
    "normalize": lambda n: F.normalize(X, p=n(2), dim=n(1)),
    "roll": lambda n: X.roll(n(1)),
    "roll of a dim": lambda n: X.roll(n(1), n(0)),
    "roll of two": lambda n: X.roll((n(1), n(2)), (n(0), n(1))),
    "chunk": lambda n: X.chunk(n(2))[1],
    "split": lambda n: X.split(n(3))[1],
    "tensor_split": lambda n: X.tensor_split(n(3))[1],
    "unfold": lambda n: X.unfold(1, n(2), n(2)),
    "tile": lambda n: X.tile(n(2)),
    "zeros": lambda n: genesis.zeros(n(2)),
    "one_hot": lambda n: F.one_hot(genesis.tensor([1, 0]), n(3)),
    "LayerNorm": lambda n: genesis.nn.LayerNorm(n(6))(X),
    "hann_window": lambda n: genesis.hann_window(n(4)),
    "multinomial": lambda n: genesis.multinomial(genesis.tensor([0.0, 1.0]), n(1)),
    "masked sum": lambda n: genesis.masked.sum(X, n(1)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("make", MAKERS, ids=["int64", "int32", "tensor"])
def test_as_with_a_python_integer(name, make):
    want, got = CALLS[name](int), CALLS[name](make)
    assert got.dtype is want.dtype
    assert got.tolist() == want.tolist()


def test_an_array_without_dimensions_is_a_size():
    assert genesis.zeros(np.array(2)).shape == (2,)
    assert X.flip(np.array(0)).tolist() == X.flip(0).tolist()


def test_what_is_no_integer_is_refused():
    with pytest.raises(ValueError, match="num_classes"):
        F.one_hot(genesis.tensor([1, 0]), genesis.tensor(2.5))
    with pytest.raises(TypeError, match="size must be an integer"):
        X.unfold(1, 2.0, 1)


def test_a_seed_of_any_number_is_its_integer():
    draws = []
    for seed in (3, 3.9, np.float32(3), genesis.tensor(3), "3"):
        if seed == "3":
            with pytest.raises(TypeError, match="the seed must be an integer"):
                genesis.manual_seed(seed)
            continue
        genesis.manual_seed(seed)
        draws.append(genesis.rand(2).tolist())
    assert all(draw == draws[0] for draw in draws)


def test_shapes_stay_shapes_when_joined_and_repeated():
    shape = genesis.Size([2, 3])
    for got in (shape + (4,), (4,) + shape, shape * 2, 2 * shape, shape + shape):
        assert type(got) is genesis.Size
    assert ((4,) + shape).numel() == 24
    with pytest.raises(TypeError):
        shape + [4]
