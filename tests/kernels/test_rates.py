"""What is measured of a processor is measured of code that does what it says."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from genesis.kernels.llvm import loops, native, rates

pytestmark = pytest.mark.skipif(not loops.available(), reason="there is no llvmlite")


@pytest.mark.parametrize("groups", [1, 2, 7])
def test_all_numbers_are_read_once(groups):
    lanes = loops.width() // 4
    read = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        native.address("read", rates.reading_code(lanes))
    )
    x = np.random.default_rng(7).integers(-99, 99, (groups, rates.READ * lanes)).astype(np.float32)
    sums = np.full(rates.READ * lanes + 1, 7.0, np.float32)
    read(x.ctypes.data, x.nbytes, sums.ctypes.data)
    assert sums[:-1].tolist() == x.sum(0).tolist() and sums[-1] == 7.0


@pytest.mark.parametrize("size", [1, 4096, 100_001])
def test_any_size_can_be_measured(size):
    assert rates.reading(size, 3) > 0
