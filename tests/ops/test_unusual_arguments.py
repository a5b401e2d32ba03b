"""Calls that are legal and rare, and once were refused or answered otherwise than by PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import genesis


def test_hash_of_one_number():
    x = genesis.tensor(5)
    assert [genesis.hash_tensor(x, dim).item() for dim in (-1, 0, ())] == [5, 5, 5]
    with pytest.raises(IndexError, match="hash_tensor"):
        genesis.hash_tensor(x, 1)


def test_nothing_that_is_gathered_has_a_gradient():
    x = genesis.ones(5, requires_grad=True)
    y = genesis.gather(x, 0, genesis.zeros(2, 0, dtype=genesis.uint8))
    assert (y.shape, y.requires_grad) == ((2, 0), True)
    y.sum().backward()
    assert x.grad.tolist() == [0] * 5


def test_square_of_bools():
    x = genesis.tensor([True, False])
    assert genesis.square(x).dtype is x.square().dtype is genesis.int64
    assert genesis.square(x).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="cannot be cast to genesis.bool"):
        x.square_()


def test_nan_to_num_of_complex_numbers():
    nan, inf = float("nan"), float("inf")
    x = genesis.tensor([complex(nan, 1), complex(inf, -inf), 2 + 3j])
    assert genesis.nan_to_num(x, 5.0, 6.0, 7.0).tolist() == [5 + 1j, 6 + 7j, 2 + 3j]
    largest = genesis.finfo(genesis.float32).max
    assert x.nan_to_num_().tolist() == [1j, complex(largest, -largest), 2 + 3j]


def test_fill_by_indices_from_the_end():
    assert genesis.zeros(3).index_fill_(0, genesis.tensor([-1, 0]), 2).tolist() == [2, 0, 2]
    assert genesis.zeros(2, 2).index_fill(-1, genesis.tensor([-2]), genesis.tensor(1.0)).tolist() == [[1, 0], [1, 0]]
    with pytest.raises(IndexError, match="index_fill"):
        genesis.zeros(3).index_fill(0, genesis.tensor([-4]), 2)


def test_integers_are_rounded_to_no_other_digits():
    assert genesis.round(genesis.tensor([15]), decimals=0).tolist() == [15]
    with pytest.raises(NotImplementedError, match="round: integers are rounded to no other digits, got decimals=-1"):
        genesis.round(genesis.tensor([15]), decimals=-1)


def test_remainders_of_integers_by_zero_are_refused():
    for remainder in (genesis.fmod, genesis.remainder, genesis.floor_divide):
        for other in (0, genesis.tensor([1, 0])):
            with pytest.raises(RuntimeError, match="integers are divided by zero"):
                remainder(genesis.tensor([3]), other)


def test_cosine_similarity_of_integers_with_floats():
    x = genesis.tensor([[3, 4]])
    assert genesis.nn.functional.cosine_similarity(x, x.double()).tolist() == pytest.approx([1.0])


def test_small_things():
    assert genesis.block_diag().shape == (1, 0)
    x, at = genesis.tensor([1.0, 5.0]), genesis.tensor([0, 0])
    assert x.scatter_reduce(0, at, x * 2, "max").tolist() == [10, 5]
    assert genesis.mvlgamma(genesis.tensor([0.5]), 2).tolist() == [float("inf")]


def test_names_of_torch_that_differ_from_those_of_functional():
    from genesis.pytorch.modules import find

    x = genesis.tensor([[3.0, 1.0, 2.0]])
    values, places = find("torch", "adaptive_max_pool1d")(x, 1)
    assert (values.tolist(), places.tolist()) == ([[3]], [[0]])
    assert find("torch", "slice_copy")(x, -1, 0, None, 2).tolist() == [[3, 2]]


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int8", "int32"])
def test_integers_of_16_bits_in_what_16_bit_floats_compute_in_float32(dtype):
    kind = getattr(genesis, dtype)
    x = genesis.tensor([[1, 2], [3, 4]], dtype=kind)
    assert genesis.addmm(x, x, x).tolist() == [[8, 12], [18, 26]]
    assert genesis.trace(x).item() == 5
    assert genesis.nn.functional.softsign(x).dtype is genesis.float32
    assert x.scatter_add(0, genesis.zeros(1, 2).long(), x).tolist() == [[2, 4], [3, 4]]
    assert genesis.nn.functional.max_pool1d(x, 2).tolist() == [[2], [4]]
    assert genesis.diff(x).tolist() == [[1], [1]]


def test_tensordot_of_a_sum_keeps_the_dtype():
    x, y = genesis.ones(1, 2).byte(), genesis.ones(2, 3).byte()
    assert genesis.tensordot(x[:, :1], y, dims=1).dtype is genesis.uint8


def test_einsum_of_numbered_dimensions():
    x, y = genesis.randn(2, 3), genesis.randn(4, 3)
    assert genesis.equal(genesis.einsum(x, [0, 1], y, [2, 1], [0, 2]), genesis.einsum("ij,kj->ik", x, y))
    assert genesis.equal(genesis.einsum(x, [..., 1], y, [51, 1]), genesis.einsum("...j,kj", x, y))
    assert genesis.allclose(genesis.einsum(x, [3, 7], []), x.sum())
    for wrong in ((x, [0, 52]), (x, "ij"), (x, 1)):
        with pytest.raises(TypeError, match="neither an equation nor lists of numbers"):
            genesis.einsum(*wrong)


def test_powers_of_matrices_of_integers():
    x = genesis.tensor([[1, 1], [0, 1]])
    assert genesis.linalg.matrix_power(x, 5).tolist() == [[1, 5], [0, 1]]
    assert genesis.linalg.matrix_power(x, 0).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(RuntimeError, match="must be floating or complex"):
        genesis.linalg.matrix_power(x, -1)


def test_lazy_instance_norms_learn_and_keep_statistics():
    layer = genesis.nn.LazyInstanceNorm1d()
    layer(genesis.randn(2, 3, 5))
    assert (layer.weight.shape, layer.running_mean.shape) == ((3,), (3,))
    layer = genesis.nn.LazyInstanceNorm1d(1e-3, 0.2, False)
    layer(genesis.randn(2, 3, 5))
    assert (layer.weight, layer.running_mean.shape, layer.eps) == (None, (3,), 1e-3)
    assert genesis.nn.LazyInstanceNorm2d(track_running_stats=False).running_mean is None


@pytest.mark.parity
def test_methods_of_dimensions_take_several():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    values = np.arange(6.0).reshape(1, 3, 1, 2) % 4
    calls = [
        lambda x: x.squeeze(0, 2),
        lambda x: x.squeeze(2),
        lambda x: x.squeeze(dim=(0, 2)),
        lambda x: x.squeeze(0, 1).squeeze(),
        lambda x: x.count_nonzero(0, 1),
        lambda x: x.count_nonzero(dim=-1),
        lambda x: x.count_nonzero(),
        lambda x: x.broadcast_to(2, 3, 4, 2),
        lambda x: x.broadcast_to((2, 3, 4, 2)),
        lambda x: x[0, 0, 0].broadcast_to(2),
    ]
    for call in calls:
        ours, theirs = call(genesis.tensor(values)), call(torch.tensor(values))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    with pytest.raises(IndexError):
        genesis.tensor(values).squeeze(0, 4)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "floor_divide", "multiply", "true_divide", "pow"])
def test_arithmetic_of_two_numbers(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference here")
    for numbers in ((3, 2), (3, 2.5), (3.5, 2), (7, 4)):
        try:
            expected = getattr(torch, name)(*numbers)
        except (TypeError, RuntimeError):
            with pytest.raises((TypeError, RuntimeError)):
                getattr(genesis, name)(*numbers)
            continue
        actual = getattr(genesis, name)(*numbers)
        assert (actual.item(), str(actual.dtype)[8:]) == (expected.item(), str(expected.dtype)[6:])
