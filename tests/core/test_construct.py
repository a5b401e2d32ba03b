"""Tensors of lists in which there are tensors and NumPy values: a tensor in a list is a number, dtypes are promoted."""

from __future__ import annotations

import numpy as np
import pytest

import genesis

ONE, TWO, INT = genesis.ones(1), genesis.ones(2), genesis.tensor(3)
ROW = np.ones(2, np.float32)


@pytest.mark.parametrize(
    "data, shape, dtype",
    [
        ([ONE, ONE], (2,), "float32"),
        ([[ONE], [ONE]], (2, 1), "float32"),
        ([genesis.ones(1, 1), 1.0], (2,), "float32"),
        ([True, ONE], (2,), "float32"),
        ([[1.0, 2.0], [ONE, ONE]], (2, 2), "float32"),
        ([[1.0, 2.0], TWO], (2, 2), "float32"),
        ([INT, INT], (2,), "int64"),
        ([[INT, 1], [2.0, INT]], (2, 2), "float32"),
        ([ONE.double(), 1.0], (2,), "float64"),
        ([ONE.half(), INT], (2,), "float16"),
        ([ROW, ROW], (2, 2), "float32"),
        ([ROW, [1.0, 2.0]], (2, 2), "float32"),
        ([np.float32(1), 2], (2,), "float32"),
        ([np.float64(1), 2.0], (2,), "float64"),
        ([np.int32(1), 2.0], (2,), "float32"),
    ],
)
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_shapes_and_dtypes(data, shape, dtype):
    for made in (genesis.tensor(data), genesis.as_tensor(data)):
        assert tuple(made.shape) == shape and made.dtype is getattr(genesis, dtype)
    try:
        import torch
    except ImportError:
        return
    theirs = torch.tensor(_theirs(data, torch))
    assert theirs.tolist() == made.tolist() and str(theirs.dtype) == f"torch.{dtype}"


def _theirs(data, torch):
    if isinstance(data, genesis.Tensor):
        return torch.from_numpy(data.numpy())
    return [_theirs(part, torch) for part in data] if isinstance(data, list) else data


@pytest.mark.parametrize("data", [[TWO, TWO], [[TWO], [TWO]], [genesis.ones(0)]])
def test_a_tensor_of_several_elements_is_no_number(data):
    with pytest.raises(ValueError, match="a tensor in a list stands for a number, this one has"):
        genesis.tensor(data)


FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8", "bool"])
@pytest.mark.parametrize("number", [True, 1, 1.0, 1j])
@pytest.mark.parametrize("nested", [False, True])
def test_numbers_and_tensors_in_one_list_have_the_dtype_of_both_in_any_order(dtype, number, nested):
    kind = getattr(genesis, dtype)
    of_number = {bool: genesis.bool, int: genesis.int64, float: genesis.float32, complex: genesis.complex64}[
        type(number)
    ]
    want = genesis.promote_types(kind, of_number)
    value = genesis.tensor(1, dtype=kind)
    for items in ([number, value], [value, number], (number, number, value)):
        made = genesis.tensor([list(items)] * 2 if nested else items)
        assert made.dtype == want
        assert made.shape == ((2, len(items)) if nested else (len(items),))
        assert genesis.equal(made.flatten()[0], genesis.tensor(items[0], dtype=want))
        assert genesis.tensor(items, dtype=genesis.complex128).dtype == genesis.complex128


def test_a_float64_among_numbers_keeps_its_digits():
    third = genesis.tensor(1 / 3, dtype=genesis.float64)
    for value in (third, third.numpy()[()], third.numpy()):
        made = genesis.tensor([0.0, value])
        assert made.dtype == genesis.float64
        assert made[1].item() == 1 / 3
    assert genesis.tensor([[0.0], [third]]).dtype == genesis.float64
    assert genesis.tensor([1, np.int16(2)]).dtype == genesis.int64
    assert genesis.tensor([True, np.int16(2)]).dtype == genesis.int16
    assert genesis.as_tensor([0, third]).dtype == genesis.float64


def test_numbers_alone_have_the_default_dtype():
    assert genesis.tensor([1, 2.0, True]).dtype == genesis.float32
    assert genesis.tensor([[1, True], (2, 3)]).dtype == genesis.int64
    assert genesis.tensor([[], []]).dtype == genesis.float32
    with pytest.raises(TypeError, match="cannot make a tensor"):
        genesis.tensor([genesis.tensor(1.0), "a"])
    with pytest.raises(TypeError, match="cannot make a tensor"):
        genesis.tensor([np.float32(1), None])
