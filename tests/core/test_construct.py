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
